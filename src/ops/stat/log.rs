//! What is counted in a log: one segment's figures, and how those of two segments become one.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::distinct::Distinct;
use super::distribution::Distribution;
use super::transactions::TransactionTrail;
use crate::format::compression::Codec;
use crate::format::record::Record;
use crate::format::{BATCH_HEADER, BatchHeader, Offset, TimestampMs, len_u64};

const HOUR_MS: i64 = 3_600_000;

/// Bytes of the batches of one codec.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CodecUse {
    /// Batches.
    pub batches: u64,
    /// As they are on disk.
    pub bytes: u64,
    /// As they would be without compression; `None` where that was not looked at.
    pub uncompressed_bytes: Option<u64>,
}

/// Bytes of the records' parts, before compression.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PayloadBytes {
    /// Keys.
    pub keys: u64,
    /// Values.
    pub values: u64,
    /// Keys and values of headers.
    pub headers: u64,
}

impl PayloadBytes {
    /// All parts together.
    pub fn total(&self) -> u64 {
        self.keys.saturating_add(self.values).saturating_add(self.headers)
    }
}

/// The figures of a log or a part of it.
#[derive(Clone, Default, Debug)]
pub struct LogFigures {
    /// Sound batches.
    pub batches: u64,
    /// Their bytes on disk.
    pub batch_bytes: u64,
    /// Batches of magic 0, 1 and 2.
    pub batches_by_magic: [u64; 3],
    /// Records, those of control batches included, without those in unopened wrappers.
    pub counted_records: u64,
    /// Legacy wrappers whose messages were not counted.
    pub unopened_wrappers: u64,
    /// Records of control batches.
    pub control_records: u64,
    /// Batches that belong to transactions, markers not included.
    pub transactional_batches: u64,
    /// Batches that carry a producer id.
    pub idempotent_batches: u64,
    /// By codec.
    pub codecs: BTreeMap<Codec, CodecUse>,
    /// Sizes of batches.
    pub batch_sizes: Distribution,
    /// Records of data batches.
    pub batch_records: Distribution,
    /// First offset of the first batch.
    pub first_offset: Option<Offset>,
    /// Last offset of the last batch.
    pub last_offset: Option<Offset>,
    /// Smallest timestamp.
    pub first_timestamp: Option<TimestampMs>,
    /// Largest timestamp.
    pub last_timestamp: Option<TimestampMs>,
    /// Bytes of data batches by the hour of the day, in UTC, of their largest timestamp.
    pub bytes_by_hour: [u64; 24],
    /// What the records say; `None` where only headers were read.
    pub content: Option<ContentFigures>,
    /// Bytes that are no sound batch.
    pub damaged_bytes: u64,
    /// Transactions that are open, as far as this part tells.
    pub transactions: TransactionTrail,
}

/// What the records of data batches say.
#[derive(Clone, Default, Debug)]
pub struct ContentFigures {
    /// Sizes of records: key, value and headers before compression.
    pub record_sizes: Distribution,
    /// The same by part.
    pub payload: PayloadBytes,
    /// Different keys.
    pub keys: Distinct,
    /// Records without a key.
    pub unkeyed: u64,
    /// Records with a key and without a value.
    pub tombstones: u64,
    /// Batches whose records could not be read.
    pub unreadable_batches: u64,
}

impl LogFigures {
    /// Nothing yet, of a log whose records will be read.
    pub fn with_content() -> Self {
        Self { content: Some(ContentFigures::default()), ..Self::default() }
    }

    /// Records, those of control batches included; `None` where wrappers were not opened.
    pub fn records(&self) -> Option<u64> {
        (self.unopened_wrappers == 0).then_some(self.counted_records)
    }

    /// Counts a batch by its header. The records of a legacy wrapper are added by [`Self::add_wrapped`].
    pub fn add_header(&mut self, header: &BatchHeader) {
        self.batches += 1;
        self.batch_bytes += header.size_bytes;
        let magic = usize::try_from(header.magic.clamp(0, 2)).unwrap_or(2);
        if let Some(count) = self.batches_by_magic.get_mut(magic) {
            *count += 1;
        }
        self.batch_sizes.add(header.size_bytes);
        self.idempotent_batches += u64::from(header.producer_id.is_some());
        self.first_offset = self.first_offset.or(Some(header.base_offset));
        self.last_offset = Some(header.last_offset);
        if let Some(codec) = Codec::from_id(header.attributes.codec_id()) {
            let used = self.codecs.entry(codec).or_default();
            used.batches += 1;
            used.bytes += header.size_bytes;
            if codec == Codec::None {
                used.uncompressed_bytes = Some(used.uncompressed_bytes.unwrap_or(0) + header.size_bytes);
            }
        }
        self.add_records_count(header);
        self.add_times(header);
        self.transactions.add_data(header);
    }

    fn add_records_count(&mut self, header: &BatchHeader) {
        if header.is_legacy_wrapper() {
            self.unopened_wrappers += 1;
            return;
        }
        let count = header.records_count.map_or(1, |count| u64::try_from(count).unwrap_or(0));
        self.counted_records += count;
        if header.is_control() {
            self.control_records += count;
            return;
        }
        self.transactional_batches += u64::from(header.is_transactional());
        self.batch_records.add(count);
    }

    /// Counts the messages of the wrapper whose header was added last.
    pub fn add_wrapped(&mut self, first_offset: Offset, messages: u64) {
        self.unopened_wrappers = self.unopened_wrappers.saturating_sub(1);
        self.counted_records += messages;
        self.batch_records.add(messages);
        if self.batches == 1 {
            // A wrapper's own offset is that of its last message.
            self.first_offset = Some(first_offset);
        }
    }

    fn add_times(&mut self, header: &BatchHeader) {
        if header.is_control() {
            return;
        }
        // With a delete horizon the base timestamp is that horizon, and the header has none.
        self.note_time(header.base_timestamp);
        self.note_time(header.max_timestamp);
        if let Some(timestamp) = header.max_timestamp {
            let hour = usize::try_from(timestamp.0.div_euclid(HOUR_MS).rem_euclid(24)).unwrap_or(0);
            if let Some(bytes) = self.bytes_by_hour.get_mut(hour) {
                *bytes += header.size_bytes;
            }
        }
    }

    fn note_time(&mut self, timestamp: Option<TimestampMs>) {
        let Some(timestamp) = timestamp else { return };
        self.first_timestamp = Some(self.first_timestamp.map_or(timestamp, |first| first.min(timestamp)));
        self.last_timestamp = Some(self.last_timestamp.map_or(timestamp, |last| last.max(timestamp)));
    }

    /// Counts a record of a data batch.
    pub fn add_record(&mut self, record: &Record<'_>) -> ControlFlow<()> {
        self.note_time(record.timestamp);
        let Some(content) = &mut self.content else { return ControlFlow::Break(()) };
        let key = record.key.map_or(0, |key| len_u64(key.len()));
        let value = record.value.map_or(0, |value| len_u64(value.len()));
        let headers = record.headers.iter().map(|header| {
            len_u64(header.key.len()).saturating_add(header.value.map_or(0, |value| len_u64(value.len())))
        });
        let headers: u64 = headers.sum();
        content.payload.keys += key;
        content.payload.values += value;
        content.payload.headers += headers;
        content.record_sizes.add(key + value + headers);
        match record.key {
            Some(key) => content.keys.add(key),
            None => content.unkeyed += 1,
        }
        content.tombstones += u64::from(record.is_tombstone());
        ControlFlow::Continue(())
    }

    /// Counts what decompression of a batch came to.
    pub fn add_uncompressed(&mut self, header: &BatchHeader, records_bytes: u64) {
        let Some(codec) = Codec::from_id(header.attributes.codec_id()).filter(|codec| *codec != Codec::None) else {
            return;
        };
        let overhead = if header.is_legacy() { 0 } else { len_u64(BATCH_HEADER) };
        let used = self.codecs.entry(codec).or_default();
        used.uncompressed_bytes = Some(used.uncompressed_bytes.unwrap_or(0) + overhead + records_bytes);
    }

    /// Adds the figures of the part that follows this one in the log.
    pub fn append(&mut self, later: &Self) {
        self.batches += later.batches;
        self.batch_bytes += later.batch_bytes;
        for (count, more) in self.batches_by_magic.iter_mut().zip(later.batches_by_magic) {
            *count += more;
        }
        self.counted_records += later.counted_records;
        self.unopened_wrappers += later.unopened_wrappers;
        self.control_records += later.control_records;
        self.transactional_batches += later.transactional_batches;
        self.idempotent_batches += later.idempotent_batches;
        for (codec, more) in &later.codecs {
            self.codecs.entry(*codec).or_default().add(more);
        }
        self.batch_sizes.merge(&later.batch_sizes);
        self.batch_records.merge(&later.batch_records);
        self.first_offset = self.first_offset.or(later.first_offset);
        self.last_offset = later.last_offset.or(self.last_offset);
        self.note_time(later.first_timestamp);
        self.note_time(later.last_timestamp);
        for (bytes, more) in self.bytes_by_hour.iter_mut().zip(later.bytes_by_hour) {
            *bytes += more;
        }
        if let (Some(content), Some(more)) = (&mut self.content, &later.content) {
            content.add(more);
        }
        self.damaged_bytes += later.damaged_bytes;
        self.transactions.append(&later.transactions);
    }

    /// Bytes of all batches without compression, where all of them were looked at.
    pub fn uncompressed_bytes(&self) -> Option<u64> {
        self.codecs.values().map(|used| used.uncompressed_bytes).sum()
    }

    /// Milliseconds between the smallest and the largest timestamp.
    pub fn span_ms(&self) -> Option<i64> {
        let (first, last) = self.first_timestamp.zip(self.last_timestamp)?;
        last.0.checked_sub(first.0)
    }
}

impl CodecUse {
    fn add(&mut self, more: &Self) {
        let fresh = self.batches == 0;
        self.batches += more.batches;
        self.bytes += more.bytes;
        self.uncompressed_bytes = match (self.uncompressed_bytes, more.uncompressed_bytes) {
            (Some(sum), Some(more)) => Some(sum + more),
            (None, more) if fresh => more,
            _ => None,
        };
    }
}

impl ContentFigures {
    fn add(&mut self, more: &Self) {
        self.record_sizes.merge(&more.record_sizes);
        self.payload.keys += more.payload.keys;
        self.payload.values += more.payload.values;
        self.payload.headers += more.payload.headers;
        self.keys.merge(&more.keys);
        self.unkeyed += more.unkeyed;
        self.tombstones += more.tombstones;
        self.unreadable_batches += more.unreadable_batches;
    }
}

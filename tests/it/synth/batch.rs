//! Batches of magic 2.
//!
//! ```text
//! 0 base offset · 8 length · 12 leader epoch · 16 magic · 17 crc · 21 attributes · 23 last offset delta · 27 base timestamp
//! 35 max timestamp · 43 producer id · 51 producer epoch · 53 base sequence · 57 records count · 61 records
//! ```

use super::Codec;
use super::bytes::{Bytes, len_i32};

/// One record. Its offset delta defaults to its place in the batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    pub(crate) timestamp_ms: i64,
    pub(crate) offset_delta: Option<i32>,
    pub(crate) attributes: i8,
}

/// A record with key and value, at time 0.
pub(crate) fn record(key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Record {
    Record { key: Some(key.as_ref().to_vec()), value: Some(value.as_ref().to_vec()), ..Record::default() }
}

impl Record {
    pub(crate) fn without_key(value: impl AsRef<[u8]>) -> Self {
        Self { value: Some(value.as_ref().to_vec()), ..Self::default() }
    }

    pub(crate) fn tombstone(key: impl AsRef<[u8]>) -> Self {
        Self { key: Some(key.as_ref().to_vec()), ..Self::default() }
    }

    pub(crate) fn at(mut self, timestamp_ms: i64) -> Self {
        self.timestamp_ms = timestamp_ms;
        self
    }

    pub(crate) fn offset_delta(mut self, delta: i32) -> Self {
        self.offset_delta = Some(delta);
        self
    }

    pub(crate) fn header(mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((key.as_ref().to_vec(), Some(value.as_ref().to_vec())));
        self
    }

    pub(crate) fn null_header(mut self, key: impl AsRef<[u8]>) -> Self {
        self.headers.push((key.as_ref().to_vec(), None));
        self
    }

    fn encode(&self, place: i32, base_timestamp_ms: i64) -> Vec<u8> {
        let body = Bytes::new()
            .i8(self.attributes)
            .varlong(self.timestamp_ms.wrapping_sub(base_timestamp_ms))
            .varint(self.offset_delta.unwrap_or(place))
            .varint_bytes(self.key.as_deref())
            .varint_bytes(self.value.as_deref())
            .varint(i32::try_from(self.headers.len()).unwrap());
        let body = self
            .headers
            .iter()
            .fold(body, |body, (key, value)| body.varint_bytes(Some(key)).varint_bytes(value.as_deref()));
        Bytes::new().varint_bytes(Some(&body.0)).0
    }
}

/// One batch. Fields left `None` are computed from the records.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    pub(crate) base_offset: i64,
    pub(crate) leader_epoch: i32,
    pub(crate) magic: i8,
    pub(crate) codec: Codec,
    /// Attribute bits beside the codec.
    pub(crate) flags: i16,
    pub(crate) producer_id: i64,
    pub(crate) producer_epoch: i16,
    pub(crate) base_sequence: i32,
    pub(crate) records: Vec<Record>,
    pub(crate) last_offset_delta: Option<i32>,
    pub(crate) base_timestamp_ms: Option<i64>,
    pub(crate) max_timestamp_ms: Option<i64>,
    pub(crate) records_count: Option<i32>,
    /// What stands after the header, instead of the records.
    pub(crate) payload: Option<Vec<u8>>,
    pub(crate) length: Option<i32>,
    pub(crate) crc: Option<u32>,
}

const LOG_APPEND_TIME: i16 = 1 << 3;
const TRANSACTIONAL: i16 = 1 << 4;
const CONTROL: i16 = 1 << 5;
const DELETE_HORIZON: i16 = 1 << 6;

impl Batch {
    /// An empty batch without producer in leader epoch 0.
    pub(crate) fn at(base_offset: i64) -> Self {
        Self {
            base_offset,
            leader_epoch: 0,
            magic: 2,
            codec: Codec::NONE,
            flags: 0,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            records: Vec::new(),
            last_offset_delta: None,
            base_timestamp_ms: None,
            max_timestamp_ms: None,
            records_count: None,
            payload: None,
            length: None,
            crc: None,
        }
    }

    pub(crate) fn record(mut self, record: Record) -> Self {
        self.records.push(record);
        self
    }

    pub(crate) fn records(mut self, records: impl IntoIterator<Item = Record>) -> Self {
        self.records.extend(records);
        self
    }

    pub(crate) fn leader_epoch(mut self, epoch: i32) -> Self {
        self.leader_epoch = epoch;
        self
    }

    pub(crate) fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    pub(crate) fn producer(mut self, id: i64, epoch: i16, base_sequence: i32) -> Self {
        (self.producer_id, self.producer_epoch, self.base_sequence) = (id, epoch, base_sequence);
        self
    }

    pub(crate) fn transactional(self) -> Self {
        self.flags(TRANSACTIONAL)
    }

    pub(crate) fn control(self) -> Self {
        self.flags(CONTROL)
    }

    /// The broker's time stands for that of every record.
    pub(crate) fn log_append_time(mut self, timestamp_ms: i64) -> Self {
        self.max_timestamp_ms = Some(timestamp_ms);
        self.flags(LOG_APPEND_TIME)
    }

    /// Base timestamp is the time from which tombstones and markers may go.
    pub(crate) fn delete_horizon(mut self, horizon_ms: i64) -> Self {
        self.base_timestamp_ms = Some(horizon_ms);
        self.flags(DELETE_HORIZON)
    }

    /// Sets further attribute bits.
    pub(crate) fn flags(mut self, bits: i16) -> Self {
        self.flags |= bits;
        self
    }

    pub(crate) fn magic(mut self, magic: i8) -> Self {
        self.magic = magic;
        self
    }

    pub(crate) fn last_offset_delta(mut self, delta: i32) -> Self {
        self.last_offset_delta = Some(delta);
        self
    }

    pub(crate) fn max_timestamp(mut self, timestamp_ms: i64) -> Self {
        self.max_timestamp_ms = Some(timestamp_ms);
        self
    }

    pub(crate) fn base_timestamp(mut self, timestamp_ms: i64) -> Self {
        self.base_timestamp_ms = Some(timestamp_ms);
        self
    }

    pub(crate) fn records_count(mut self, count: i32) -> Self {
        self.records_count = Some(count);
        self
    }

    /// Writes these bytes after the header, whatever the records are.
    pub(crate) fn payload(mut self, bytes: Vec<u8>) -> Self {
        self.payload = Some(bytes);
        self
    }

    /// Overrules the length field.
    pub(crate) fn length(mut self, length: i32) -> Self {
        self.length = Some(length);
        self
    }

    /// Overrules the checksum.
    pub(crate) fn crc(mut self, crc: u32) -> Self {
        self.crc = Some(crc);
        self
    }

    /// Inclusive.
    pub(crate) fn last_offset(&self) -> i64 {
        self.base_offset + i64::from(self.computed_last_offset_delta())
    }

    /// The last sequence, wrapped as Kafka does.
    pub(crate) fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 {
            return -1;
        }
        let sum = i64::from(self.base_sequence) + i64::from(self.computed_last_offset_delta());
        i32::try_from(sum % (1 << 31)).unwrap()
    }

    pub(crate) fn is_control(&self) -> bool {
        self.flags & CONTROL != 0
    }

    pub(crate) fn is_transactional(&self) -> bool {
        self.flags & TRANSACTIONAL != 0
    }

    /// As in the header: the largest of the records, -1 without any.
    pub(crate) fn computed_max_timestamp(&self) -> i64 {
        let largest = self.records.iter().map(|record| record.timestamp_ms).max();
        self.max_timestamp_ms.unwrap_or(largest.unwrap_or(-1))
    }

    pub(crate) fn computed_last_offset_delta(&self) -> i32 {
        let place = i32::try_from(self.records.len()).unwrap() - 1;
        let last = self.records.last().map(|record| record.offset_delta.unwrap_or(place));
        self.last_offset_delta.unwrap_or(last.unwrap_or(0))
    }

    fn computed_base_timestamp(&self) -> i64 {
        self.base_timestamp_ms.unwrap_or(self.records.first().map_or(-1, |record| record.timestamp_ms))
    }

    /// The records as they stand after the header, before compression.
    pub(crate) fn encoded_records(&self) -> Vec<u8> {
        let base = self.computed_base_timestamp();
        (0..).zip(&self.records).flat_map(|(place, record)| record.encode(place, base)).collect()
    }

    /// The batch's bytes.
    pub(crate) fn build(&self) -> Vec<u8> {
        let payload = match (&self.payload, self.records.is_empty()) {
            (Some(payload), _) => payload.clone(),
            (None, true) => Vec::new(),
            (None, false) => (self.codec.compress)(&self.encoded_records()),
        };
        let count = i32::try_from(self.records.len()).unwrap();
        let checked = Bytes::new()
            .i16(self.flags | i16::from(self.codec.id))
            .i32(self.computed_last_offset_delta())
            .i64(self.computed_base_timestamp())
            .i64(self.computed_max_timestamp())
            .i64(self.producer_id)
            .i16(self.producer_epoch)
            .i32(self.base_sequence)
            .i32(self.records_count.unwrap_or(count))
            .raw(&payload)
            .0;
        Bytes::new()
            .i64(self.base_offset)
            .i32(self.length.unwrap_or(9 + len_i32(&checked)))
            .i32(self.leader_epoch)
            .i8(self.magic)
            .u32(self.crc.unwrap_or_else(|| crc32c::crc32c(&checked)))
            .raw(&checked)
            .0
    }
}

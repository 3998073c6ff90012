//! A batch without the records that go, encoded as a broker's cleaner does it (`MemoryRecords.buildRetainedRecordsInto`,
//! `MemoryRecordsBuilder`, `DefaultRecordBatch.writeEmptyHeader`).

use std::ops::ControlFlow;

use super::failure::{CleanFailure, UncleanableKind};
use super::verdict::Kept;
use crate::format::compression::{Codec, Compressor, Level, Lz4Checksum};
use crate::format::encode::{BatchFields, Deltas, encode_batch, encode_legacy_message, encode_record};
use crate::format::record::Record;
use crate::format::{Attributes, BatchHeader, Offset, TimestampMs, TimestampType, len_u64};
use crate::logdir::Scanned;
use crate::ops::RecordReader;
use crate::ops::broker::cleaner_rules::LegacyOutput;

/// Attribute bits that a rewritten batch keeps from the one it is made of: codec, time, transaction, control.
const KEPT_ATTRIBUTES: i16 = 0x3f;
const LOG_APPEND_TIME: i16 = 0x08;
const LEGACY_LOG_APPEND_TIME: u8 = 0x08;
const CODEC_BITS: i16 = 0x07;
const HAS_HORIZON: i16 = 0x40;
/// The magic of the batches that 4.0 and later make of everything.
const CURRENT: i8 = 2;

/// How a batch is to be rewritten.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape<'k> {
    /// The records that stay.
    pub(super) kept: Kept<'k>,
    /// The delete horizon.
    pub(super) horizon: Option<TimestampMs>,
    /// First offset and last offset delta of a legacy message that became a v2 batch in an earlier round.
    pub(super) span: Option<(Offset, i32)>,
    /// What becomes of legacy messages.
    pub(super) legacy: LegacyOutput,
}

/// What came out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rewritten {
    /// Its size.
    pub(super) size_bytes: u64,
    /// Its magic.
    pub(super) magic: i8,
    /// First offset.
    pub(super) base_offset: Offset,
    /// Last offset minus first offset.
    pub(super) last_offset_delta: i32,
    /// The largest timestamp; -1 where there is none.
    pub(super) max_timestamp: i64,
    /// Offset of the last record.
    pub(super) last_record_offset: Offset,
}

impl Rewritten {
    /// The last offset of the batch that came out.
    pub(super) fn last_offset(&self) -> Offset {
        self.base_offset.saturating_add(i64::from(self.last_offset_delta))
    }
}

/// Rewrites batch after batch. Keeps its buffers and the compressors' contexts: one for each thread.
#[derive(Debug, Default)]
pub(super) struct Rewriter {
    compressor: Compressor,
    content: Vec<u8>,
}

/// What the records that stay add up to.
#[derive(Clone, Copy, Debug)]
struct Gathered {
    count: i32,
    base_timestamp: Option<i64>,
    max_timestamp: i64,
    first_offset: Option<Offset>,
    last_offset: Offset,
}

impl Rewriter {
    /// Appends the batch, with these records only, to `out`.
    pub(super) fn rewrite(
        &mut self,
        batch: &Scanned<'_>,
        shape: &Shape<'_>,
        reader: &mut RecordReader,
        out: &mut Vec<u8>,
    ) -> Result<Rewritten, CleanFailure> {
        let header = *batch.header();
        check_producer(&header)?;
        let start = len_u64(out.len());
        let mut rewritten = if header.is_legacy() && shape.legacy == LegacyOutput::SameMagic {
            self.rewrite_legacy(batch, shape, reader, out)?
        } else {
            self.rewrite_current(batch, shape, reader, out)?
        };
        rewritten.size_bytes = len_u64(out.len()).saturating_sub(start);
        Ok(rewritten)
    }

    fn rewrite_current(
        &mut self,
        batch: &Scanned<'_>,
        shape: &Shape<'_>,
        reader: &mut RecordReader,
        out: &mut Vec<u8>,
    ) -> Result<Rewritten, CleanFailure> {
        let header = *batch.header();
        let horizon = shape.horizon.filter(|horizon| horizon.0 >= 0);
        let base_offset = if header.is_legacy() { shape.span.map(|(base, _)| base) } else { Some(header.base_offset) };
        self.content.clear();
        let content = &mut self.content;
        let gathered = gather(batch, shape.kept, reader, |record, gathered| {
            let first = *gathered.first_offset.get_or_insert(record.offset);
            let base =
                *gathered.base_timestamp.get_or_insert_with(|| horizon.map_or_else(|| raw_time(record), |h| h.0));
            let offset = record.offset.checked_sub(base_offset.unwrap_or(first)).and_then(|d| i32::try_from(d).ok());
            let offset = offset.ok_or(UncleanableKind::OffsetSpan)?;
            let deltas = Deltas { timestamp: raw_time(record).wrapping_sub(base), offset };
            encode_record(deltas, (record.key, record.value), &record.headers, content)?;
            Ok(())
        })?;
        let base_offset = base_offset.or(gathered.first_offset).unwrap_or(header.base_offset);
        let last_offset_delta = match (header.is_legacy(), shape.span) {
            (false, _) => header.last_offset_delta,
            (true, Some((_, delta))) => delta,
            (true, None) => delta_between(gathered.last_offset, base_offset)?,
        };
        let is_log_append_time = header.timestamp_type() == TimestampType::LogAppendTime;
        let max_timestamp = if is_log_append_time { raw(header.max_timestamp) } else { gathered.max_timestamp };
        let mut attributes = header.attributes.0 & KEPT_ATTRIBUTES;
        if header.is_legacy() {
            attributes &= CODEC_BITS | if is_log_append_time { LOG_APPEND_TIME } else { 0 };
        }
        if horizon.is_some() {
            attributes |= HAS_HORIZON;
        }
        let fields = BatchFields {
            base_offset,
            last_offset_delta,
            attributes: Attributes(attributes),
            base_timestamp: gathered.base_timestamp.map(TimestampMs),
            max_timestamp: Some(TimestampMs(max_timestamp)),
            records_count: gathered.count,
            ..BatchFields::of(&header)
        };
        let codec = codec_of(&header)?;
        let records = self.compressor.compress(codec, Lz4Checksum::Verified, Level::Default, &self.content)?;
        encode_batch(&fields, records, out)?;
        Ok(Rewritten {
            size_bytes: 0,
            magic: CURRENT,
            base_offset,
            last_offset_delta,
            max_timestamp,
            last_record_offset: gathered.last_offset,
        })
    }

    /// A wrapper with fewer messages, of its own magic whatever theirs was (KAFKA-4298).
    fn rewrite_legacy(
        &mut self,
        batch: &Scanned<'_>,
        shape: &Shape<'_>,
        reader: &mut RecordReader,
        out: &mut Vec<u8>,
    ) -> Result<Rewritten, CleanFailure> {
        let header = *batch.header();
        let magic = header.magic;
        let is_log_append_time = header.timestamp_type() == TimestampType::LogAppendTime;
        let inner_attributes = if is_log_append_time { LEGACY_LOG_APPEND_TIME } else { 0 };
        self.content.clear();
        let content = &mut self.content;
        let gathered = gather(batch, shape.kept, reader, |record, gathered| {
            let first = *gathered.first_offset.get_or_insert(record.offset);
            let offset = if magic == 0 { record.offset } else { Offset(record.offset.0.wrapping_sub(first.0)) };
            let timestamp = Some(TimestampMs(raw_time(record)));
            encode_legacy_message((offset, magic, inner_attributes), timestamp, (record.key, record.value), content)?;
            Ok(())
        })?;
        let max_timestamp = match (magic, is_log_append_time) {
            (0, _) => -1,
            (_, true) => raw(header.max_timestamp),
            (_, false) => gathered.max_timestamp,
        };
        let codec = codec_of(&header)?;
        let lz4 = if magic == 0 { Lz4Checksum::IgnoredInMagic0 } else { Lz4Checksum::Verified };
        let value = self.compressor.compress(codec, lz4, Level::Default, &self.content)?;
        let attributes = header.attributes.codec_id() | inner_attributes;
        let place = (gathered.last_offset, magic, attributes);
        encode_legacy_message(place, Some(TimestampMs(max_timestamp)), (None, Some(value)), out)?;
        Ok(Rewritten {
            size_bytes: 0,
            magic,
            base_offset: gathered.last_offset,
            last_offset_delta: 0,
            max_timestamp,
            last_record_offset: gathered.last_offset,
        })
    }
}

/// Appends what is left of a v2 batch that loses all its records and stays: its header (`writeEmptyHeader`).
pub(super) fn write_header_only(header: &BatchHeader, out: &mut Vec<u8>) -> Result<Rewritten, CleanFailure> {
    let fields = BatchFields {
        attributes: Attributes(header.attributes.0 & KEPT_ATTRIBUTES & !CODEC_BITS),
        base_timestamp: None,
        records_count: 0,
        ..BatchFields::of(header)
    };
    let start = out.len();
    encode_batch(&fields, &[], out)?;
    Ok(Rewritten {
        size_bytes: len_u64(out.len() - start),
        magic: CURRENT,
        base_offset: header.base_offset,
        last_offset_delta: header.last_offset_delta,
        max_timestamp: raw(header.max_timestamp),
        last_record_offset: header.last_offset,
    })
}

/// Visits the records that stay, with the builder's checks, and adds them up.
fn gather(
    batch: &Scanned<'_>,
    kept: Kept<'_>,
    reader: &mut RecordReader,
    mut take: impl FnMut(&Record<'_>, &mut Gathered) -> Result<(), UncleanableKind>,
) -> Result<Gathered, CleanFailure> {
    let mut gathered = Gathered {
        count: 0,
        base_timestamp: None,
        max_timestamp: -1,
        first_offset: None,
        last_offset: Offset(i64::MIN),
    };
    let mut index = 0u64;
    let mut refusal = None;
    let read = reader.read(batch, &mut |record: &Record<'_>| {
        let is_kept = kept.contains(index);
        index += 1;
        if !is_kept {
            return ControlFlow::Continue(());
        }
        let checked = check_record(record, &gathered).and_then(|()| take(record, &mut gathered));
        if let Err(kind) = checked {
            refusal = Some(kind);
            return ControlFlow::Break(());
        }
        gathered.count = gathered.count.saturating_add(1);
        gathered.max_timestamp = gathered.max_timestamp.max(raw_time(record));
        gathered.last_offset = record.offset;
        ControlFlow::Continue(())
    });
    if let Some(kind) = refusal {
        return Err(kind.at(batch.header().position));
    }
    read.map(|_| gathered).map_err(|error| CleanFailure::of_records(error, batch.header().position))
}

/// What `MemoryRecordsBuilder.appendWithOffset` refuses.
fn check_record(record: &Record<'_>, gathered: &Gathered) -> Result<(), UncleanableKind> {
    match raw_time(record) {
        time if time < -1 => Err(UncleanableKind::TimestampNegative(time)),
        _ if gathered.count > 0 && record.offset <= gathered.last_offset => Err(UncleanableKind::OffsetOrder),
        _ => Ok(()),
    }
}

/// `MemoryRecordsBuilder.validateProducerState`.
fn check_producer(header: &BatchHeader) -> Result<(), CleanFailure> {
    let lacks_sequence = header.base_sequence.is_none_or(|sequence| sequence.0 < 0) && !header.is_control();
    let refused = if header.producer_id.is_none() {
        header.is_transactional()
    } else {
        header.producer_epoch.is_none() || lacks_sequence
    };
    if refused { Err(UncleanableKind::ProducerState.at(header.position)) } else { Ok(()) }
}

fn delta_between(last: Offset, base: Offset) -> Result<i32, UncleanableKind> {
    last.checked_sub(base).and_then(|delta| i32::try_from(delta).ok()).ok_or(UncleanableKind::OffsetSpan)
}

fn codec_of(header: &BatchHeader) -> Result<Codec, CleanFailure> {
    Codec::from_id(header.attributes.codec_id()).ok_or_else(|| UncleanableKind::CodecUnknown.at(header.position))
}

fn raw(timestamp: Option<TimestampMs>) -> i64 {
    timestamp.map_or(-1, |timestamp| timestamp.0)
}

fn raw_time(record: &Record<'_>) -> i64 {
    raw(record.timestamp)
}

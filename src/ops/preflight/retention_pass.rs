//! The first pass of retention after a start, and whether it is misled by a time index.

use super::cut::location_of;
use super::options::Options;
use super::report::{PartitionReport, RetentionDelete};
use crate::format::time_index::{TIME_INDEX_ENTRY, TimeIndex};
use crate::format::{Offset, Position, TimestampMs, len_u64};
use crate::logdir::names::{FileKind, FileName, FileSuffix};
use crate::logdir::{LogScanner, ReadError};
use crate::ops::broker::Rules;
use crate::ops::broker::load::LoadedLog;
use crate::ops::broker::retention::{
    RetentionOffsets, RetentionRule, RetentionSegment, TimestampSource, apply_retention,
};
use crate::ops::{Finding, FindingId, PartitionImage, Severity};

/// The largest time index that is read whole.
const MOST_INDEX_BYTES: u64 = 512 * 1024 * 1024;

/// The segments of a log as retention sees them, oldest first.
pub(crate) fn retention_segments(log: &LoadedLog) -> Result<Vec<RetentionSegment>, ReadError> {
    log.segments.iter().map(|base| retention_segment(&log.image, *base)).collect()
}

fn retention_segment(image: &PartitionImage, base: Offset) -> Result<RetentionSegment, ReadError> {
    let log = image.file(&name(base, FileKind::Log));
    let last = match image.file(&name(base, FileKind::TimeIndex)) {
        Some(file) if file.size_bytes() >= len_u64(TIME_INDEX_ENTRY) => last_entry(image, base)?,
        _ => None,
    };
    let (largest_timestamp, timestamp_source) = match last {
        Some(timestamp) if timestamp.0 >= 0 => (timestamp, TimestampSource::TimeIndex),
        _ => (log.map_or(TimestampMs(0), |log| log.modified), TimestampSource::FileTime),
    };
    let size_bytes = log.map_or(0, crate::ops::ImageFile::size_bytes);
    Ok(RetentionSegment { base_offset: base, size_bytes, largest_timestamp, timestamp_source })
}

/// The timestamp of the last whole entry of a time index.
fn last_entry(image: &PartitionImage, base: Offset) -> Result<Option<TimestampMs>, ReadError> {
    let file = image.open(&name(base, FileKind::TimeIndex), crate::logdir::IoMode::Pread)?;
    let entries = file.size() / len_u64(TIME_INDEX_ENTRY);
    let Some(slot) = entries.checked_sub(1) else { return Ok(None) };
    let mut bytes = [0; TIME_INDEX_ENTRY];
    file.read_exact_at(&mut bytes, Position(slot * len_u64(TIME_INDEX_ENTRY)))?;
    Ok(TimeIndex::new(base, &bytes).last().map(|entry| entry.timestamp))
}

fn name(base: Offset, kind: FileKind) -> std::ffi::OsString {
    FileName::Segment { base, kind, suffix: FileSuffix::None }.to_name().unwrap_or_default()
}

/// Adds the first pass to a report.
pub(super) fn add(
    report: &mut PartitionReport,
    log: &LoadedLog,
    options: &Options,
    rules: &Rules,
) -> Result<(), ReadError> {
    let segments = retention_segments(log)?;
    // A broker that starts alone becomes leader of what it has.
    let offsets = RetentionOffsets {
        log_start: log.log_start_offset,
        high_watermark: log.log_end_offset,
        log_end: log.log_end_offset,
    };
    let settings = &options.settings.retention;
    let outcome = apply_retention(&segments, offsets, settings, rules, options.now);
    for (segment, rule) in outcome.deleted() {
        let mut delete = RetentionDelete {
            segment_base_offset: segment.base_offset,
            because: rule,
            largest_timestamp: segment.largest_timestamp,
            timestamp_source: segment.timestamp_source,
            misled_by: None,
            records: 0,
        };
        if rule == RetentionRule::RetentionMs && segment.timestamp_source == TimestampSource::TimeIndex {
            explain(report, log, &mut delete, options)?;
        }
        report.retention_deletes.push(delete);
    }
    Ok(())
}

/// Compares the time index's last word with the batches: a segment whose records are younger goes wrongly.
fn explain(
    report: &mut PartitionReport,
    log: &LoadedLog,
    delete: &mut RetentionDelete,
    options: &Options,
) -> Result<(), ReadError> {
    let base = delete.segment_base_offset;
    let file = log.image.open(&name(base, FileKind::Log), options.io)?;
    let mut scanner = LogScanner::new(&file);
    let (mut largest, mut records) = (None, 0u64);
    while let Ok(Some(batch)) = scanner.next_batch() {
        let header = batch.header();
        largest = largest.max(header.max_timestamp);
        records = records.saturating_add(header.records_count.map_or(1, |count| u64::try_from(count).unwrap_or(0)));
    }
    let Some(largest) = largest.filter(|largest| *largest > delete.largest_timestamp) else { return Ok(()) };
    let limit = options.settings.retention.retention_ms.unwrap_or(i64::MAX);
    if options.now.0.wrapping_sub(largest.0) > limit {
        return Ok(());
    }
    let index_name = name(base, FileKind::TimeIndex);
    let bytes = log.image.read_small(&index_name, MOST_INDEX_BYTES)?.unwrap_or_default();
    let id = match () {
        () if bytes.iter().all(|byte| *byte == 0) => FindingId::TimeIndexNeverWritten,
        () if delete.largest_timestamp == TimestampMs(0) => FindingId::TimeIndexZeroPadded,
        () => FindingId::TimeIndexLastEntryLow,
    };
    delete.misled_by = Some(id);
    delete.records = records;
    let finding = Finding::new(id, location_of(&log.image, &index_name)).with_severity(Severity::Critical);
    report.findings.push(finding);
    Ok(())
}

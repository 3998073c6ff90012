//! The log as a round of cleaning sees it: segments, and what their logs are made of. After a first round that is no longer files
//! but files and verdicts on their batches.

use std::ffi::OsString;
use std::sync::Arc;

use super::verdict::Verdicts;
use crate::format::offset_index::{OFFSET_INDEX_ENTRY, OffsetIndex};
use crate::format::time_index::{TIME_INDEX_ENTRY, TimeIndex};
use crate::format::txn_index::{AbortedTransaction, TxnIndex};
use crate::format::{Offset, Position, TimestampMs, len_u64};
use crate::logdir::names::{FileKind, FileName, FileSuffix};
use crate::logdir::{IoMode, ReadError};
use crate::ops::PartitionImage;
use crate::ops::broker::index_rules::BuiltIndexes;
use crate::ops::broker::load::LoadedLog;

/// The largest index that is read whole: that of a segment of 2 GiB at any interval.
pub(super) const MOST_INDEX_BYTES: u64 = 512 * 1024 * 1024;

/// A log file on the disk, with what earlier rounds have decided about its batches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// Base offset of the segment whose log it is.
    pub base: Offset,
    /// Verdicts of earlier rounds; `None` before the first.
    pub verdicts: Option<Arc<Verdicts>>,
}

/// A segment.
#[derive(Clone, Debug)]
pub struct LogSegment {
    /// Its base offset.
    pub base: Offset,
    /// Bytes of its log.
    pub size_bytes: u64,
    /// Bytes of the whole entries of its offset index.
    pub offset_index_bytes: u64,
    /// Bytes of the whole entries of its time index.
    pub time_index_bytes: u64,
    /// When its log was last modified.
    pub modified: TimestampMs,
    /// The timestamp of the last entry of its time index.
    pub last_indexed_timestamp: Option<TimestampMs>,
    /// Its transaction index.
    pub aborted: Vec<AbortedTransaction>,
    /// The offset after its last batch, where a round has seen it.
    pub next_offset: Option<Offset>,
    /// What its log is made of.
    pub sources: Vec<Source>,
    /// Its indexes, where a round has built them.
    pub built: Option<Arc<BuiltIndexes>>,
}

impl LogSegment {
    /// The segment as it is on the disk.
    fn of(image: &PartitionImage, base: Offset) -> Result<Self, ReadError> {
        let whole = |kind, entry: usize| {
            let size = image.size_of(&segment_file(base, kind));
            size - size % len_u64(entry)
        };
        let txn_index = image.read_small(&segment_file(base, FileKind::TxnIndex), MOST_INDEX_BYTES)?;
        let time_index_bytes = whole(FileKind::TimeIndex, TIME_INDEX_ENTRY);
        Ok(Self {
            base,
            size_bytes: image.size_of(&segment_file(base, FileKind::Log)),
            offset_index_bytes: whole(FileKind::OffsetIndex, OFFSET_INDEX_ENTRY),
            time_index_bytes,
            modified: image.file(&segment_file(base, FileKind::Log)).map_or(TimestampMs(0), |file| file.modified),
            last_indexed_timestamp: last_indexed(image, base, time_index_bytes)?,
            aborted: TxnIndex::new(&txn_index.unwrap_or_default()).iter().collect(),
            next_offset: None,
            sources: vec![Source { base, verdicts: None }],
            built: None,
        })
    }

    /// `LogSegment.largestTimestamp`: the last word of the time index, else the time of the file.
    pub fn largest_timestamp(&self) -> TimestampMs {
        self.last_indexed_timestamp.filter(|timestamp| timestamp.0 >= 0).unwrap_or(self.modified)
    }

    /// Where a read of `offset` begins, by the offset index.
    pub(super) fn position_of(&self, image: &PartitionImage, offset: Offset) -> Result<Position, ReadError> {
        let bytes = self.offset_index(image)?;
        let entry = OffsetIndex::new(self.base, &bytes).lookup(offset);
        Ok(entry.map_or(Position(0), |(_, entry)| entry.position))
    }

    /// Position of the last entry of the offset index.
    pub(super) fn last_indexed_position(&self, image: &PartitionImage) -> Result<Position, ReadError> {
        let bytes = self.offset_index(image)?;
        Ok(OffsetIndex::new(self.base, &bytes).iter().next_back().map_or(Position(0), |entry| entry.position))
    }

    fn offset_index(&self, image: &PartitionImage) -> Result<Vec<u8>, ReadError> {
        if let Some(built) = &self.built {
            return Ok(built.offset_index.clone());
        }
        let name = segment_file(self.base, FileKind::OffsetIndex);
        Ok(image.read_small(&name, MOST_INDEX_BYTES)?.unwrap_or_default())
    }
}

/// The name of a segment's file in use.
pub(super) fn segment_file(base: Offset, kind: FileKind) -> OsString {
    FileName::Segment { base, kind, suffix: FileSuffix::None }.to_name().unwrap_or_default()
}

fn last_indexed(image: &PartitionImage, base: Offset, bytes: u64) -> Result<Option<TimestampMs>, ReadError> {
    let Some(start) = bytes.checked_sub(len_u64(TIME_INDEX_ENTRY)) else { return Ok(None) };
    let file = image.open(&segment_file(base, FileKind::TimeIndex), IoMode::Pread)?;
    let mut entry = [0; TIME_INDEX_ENTRY];
    file.read_exact_at(&mut entry, Position(start))?;
    Ok(TimeIndex::new(base, &entry).last().map(|entry| entry.timestamp))
}

/// The segments of a log, oldest first; the last one is active.
#[derive(Clone, Debug)]
pub struct CleanerLog {
    segments: Vec<LogSegment>,
}

impl CleanerLog {
    /// Bytes of rewritten batches that are kept.
    pub(super) fn made_bytes(&self) -> u64 {
        let sources = self.segments().iter().flat_map(|segment| &segment.sources);
        sources.filter_map(|source| source.verdicts.as_ref()).map(|verdicts| verdicts.made_bytes()).sum()
    }

    /// The log as a broker has loaded it.
    pub fn of(log: &LoadedLog) -> Result<Self, ReadError> {
        let segments = log.segments.iter().map(|base| LogSegment::of(&log.image, *base)).collect::<Result<_, _>>()?;
        Ok(Self { segments })
    }

    /// All of them.
    pub fn segments(&self) -> &[LogSegment] {
        &self.segments
    }

    /// The base offset of the active segment.
    pub fn active_base(&self) -> Offset {
        self.segments.last().map_or(Offset(0), |segment| segment.base)
    }

    /// `LogSegments.values(from, to)`: from the segment that holds `from`, or the first one, up to those that start below `to`.
    pub fn range(&self, from: Offset, to: Offset) -> &[LogSegment] {
        if from >= to {
            return &[];
        }
        let first = self.segments.partition_point(|segment| segment.base <= from).saturating_sub(1);
        let end = self.segments.partition_point(|segment| segment.base < to);
        self.segments.get(first..end).unwrap_or_default()
    }

    /// `nonActiveLogSegmentsFrom`.
    pub fn non_active_from(&self, from: Offset) -> &[LogSegment] {
        self.range(from, self.active_base())
    }

    /// `LocalLog.collectAbortedTransactions`: from the segment that holds `from` on, up to the index that says it is complete.
    pub(super) fn aborted_within(&self, log_start: Offset, from: Offset, to: Offset) -> Vec<AbortedTransaction> {
        let mut found = Vec::new();
        let floor = self.segments.partition_point(|segment| segment.base <= from);
        // Kafka starts at the floor segment and finds nothing where there is none.
        let Some(first) = floor.checked_sub(1) else { return found };
        for segment in self.segments.get(first..).unwrap_or_default() {
            for entry in &segment.aborted {
                if entry.last_offset >= log_start && entry.first_offset < to {
                    found.push(*entry);
                }
                if entry.last_stable_offset >= to {
                    return found;
                }
            }
        }
        found
    }

    /// Puts a segment in the place of those that start in `[first, end)`.
    pub(super) fn replace(&mut self, first: Offset, end: Offset, with: LogSegment) {
        let from = self.segments.partition_point(|segment| segment.base < first);
        let to = self.segments.partition_point(|segment| segment.base < end);
        self.segments.splice(from..to, [with]);
    }

    /// Bytes of all logs.
    pub fn size_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.size_bytes).fold(0, u64::saturating_add)
    }
}

/// Bytes of logs.
pub(super) fn bytes_of(segments: &[LogSegment]) -> u64 {
    segments.iter().map(|segment| segment.size_bytes).fold(0, u64::saturating_add)
}

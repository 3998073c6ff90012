//! A partition opened for look-ups: its range, its segments with their indexes, and what is sound about them.

use std::ffi::OsStr;
use std::path::PathBuf;

use super::answer::{Answer, EpochAnswer, IndexUse, Step, Verdict};
use super::{Options, Query};
use crate::format::checkpoint::{LeaderEpochCheckpoint, OffsetCheckpoint};
use crate::format::offset_index::OffsetIndex;
use crate::format::time_index::TimeIndex;
use crate::format::{BatchHeader, LeaderEpoch, Offset, Position, TimestampMs};
use crate::logdir::names::{CheckpointKind, FileKind};
use crate::logdir::{
    IndexFile, IoMode, LockHolder, LogScanner, PartitionDir, ReadError, Segment, SegmentFile, probe_lock,
};
use crate::ops::broker::epochs::EpochHistory;
use crate::ops::{Finding, FindingId, Location, RecordReader};

/// Bytes that a read of a look-up asks for: one index interval.
const READ_BYTES: usize = 4096;
/// The largest checkpoint that is read.
const MOST_CHECKPOINT_BYTES: u64 = 256 * 1024 * 1024;

/// A segment with its files open.
#[derive(Debug)]
pub(super) struct OpenSegment {
    pub(super) base_offset: Offset,
    pub(super) next_base_offset: Option<Offset>,
    pub(super) log: SegmentFile,
    /// When the log file was last modified: what a broker takes for the largest timestamp where the time index has none.
    modified: TimestampMs,
    offset_index: IndexState,
    time_index: IndexState,
    /// The largest timestamp by a scan, for a time index that is not sound.
    scanned_largest: Scanned,
}

/// The largest timestamp of a segment and its offset, as a scan finds it.
#[derive(Clone, Copy, Debug)]
enum Scanned {
    NotYet,
    Done(Option<(TimestampMs, Offset)>),
}

/// An index, and how many of its entries can be trusted.
#[derive(Debug)]
enum IndexState {
    Missing,
    Sound { file: IndexFile, entries: usize },
    Unsound,
}

/// A partition opened for look-ups. Segments are opened when first needed and stay open.
#[derive(Debug)]
pub struct Lookup {
    partition: PartitionDir,
    segments: Vec<Segment>,
    pub(super) open: Vec<Option<OpenSegment>>,
    options: Options,
    index_mode: IoMode,
    is_closed_cleanly: bool,
    range: (Offset, Offset),
    pub(super) reader: RecordReader,
    pub(super) findings: Vec<Finding>,
}

impl Lookup {
    /// Opens a partition. `only` narrows it to the segment of one file.
    pub fn open(partition: &PartitionDir, only: Option<Offset>, options: &Options) -> Result<Self, ReadError> {
        let segments: Vec<Segment> = partition
            .segments()
            .into_iter()
            .filter(|segment| segment.log.as_ref().is_some_and(|log| log.not_a_file.is_none()))
            .filter(|segment| only.is_none_or(|only| only == segment.base_offset))
            .collect();
        // A broker may trim an index while it runs; a map of it would then end this process.
        let index_mode = match probe_lock(partition.log_dir()) {
            LockHolder::Nobody => IoMode::Mmap,
            LockHolder::Process(_) => IoMode::Pread,
        };
        let mut lookup = Self {
            partition: partition.clone(),
            open: segments.iter().map(|_| None).collect(),
            segments,
            options: *options,
            index_mode,
            is_closed_cleanly: partition.log_dir().join(".kafka_cleanshutdown").exists(),
            range: (Offset(0), Offset(0)),
            reader: RecordReader::new(options.limits),
            findings: Vec::new(),
        };
        lookup.range = (lookup.log_start_offset()?, lookup.log_end_offset()?);
        Ok(lookup)
    }

    /// Answers one question. Nothing of it depends on the questions before.
    pub fn answer(&mut self, query: Query) -> Result<Answer, ReadError> {
        let mut answer = Answer {
            log_dir: self.partition.log_dir().to_path_buf(),
            topic_partition: self.partition.topic_partition().clone(),
            query,
            range: self.range,
            offset: None,
            segment_base_offset: None,
            index: None,
            scan: None,
            batch: None,
            record: None,
            epoch: None,
            steps: vec![Step::Range { log_start_offset: self.range.0, log_end_offset: self.range.1 }],
            findings: Vec::new(),
        };
        match query {
            Query::Offset(offset) => self.find_offset(offset, &mut answer)?,
            Query::Timestamp(timestamp) => self.find_timestamp(timestamp, &mut answer)?,
            Query::MaxTimestamp => self.find_max_timestamp(&mut answer)?,
            Query::Earliest => answer.offset = Some(self.range.0),
            Query::Latest => answer.offset = Some(self.range.1),
            Query::LeaderEpoch(epoch) => answer.epoch = Some(self.end_of_epoch(epoch)?),
        }
        answer.findings.clone_from(&self.findings);
        Ok(answer)
    }

    /// The offsets that the log has: the first, and after the last.
    pub fn range(&self) -> (Offset, Offset) {
        self.range
    }

    /// Number of segments.
    pub(super) fn len(&self) -> usize {
        self.segments.len()
    }

    /// Index of the segment that a broker looks into for an offset: the last whose base offset is not above it.
    pub(super) fn floor_segment(&self, offset: Offset) -> Option<usize> {
        self.segments.partition_point(|segment| segment.base_offset <= offset).checked_sub(1)
    }

    fn log_start_offset(&self) -> Result<Offset, ReadError> {
        if let Some(offset) = self.options.log_start_offset {
            return Ok(offset);
        }
        let first = self.segments.first().map_or(Offset(0), |segment| segment.base_offset);
        let path = self.partition.log_dir().join(CheckpointKind::LogStartOffset.file_name());
        let bytes = match SegmentFile::open(&path, IoMode::Pread) {
            Ok(file) => file.read_whole(MOST_CHECKPOINT_BYTES)?,
            // Without a checkpoint the log starts with its first segment.
            Err(_) => return Ok(first),
        };
        let topic_partition = self.partition.topic_partition();
        let checkpoint = OffsetCheckpoint::parse(&bytes).content;
        let recorded =
            topic_partition.topic_str().and_then(|topic| checkpoint.offset_of(topic, topic_partition.partition()));
        Ok(recorded.map_or(first, |offset| offset.max(first)))
    }

    fn log_end_offset(&mut self) -> Result<Offset, ReadError> {
        let Some(last) = self.len().checked_sub(1) else { return Ok(self.range.0) };
        let Some(segment) = self.segment(last)? else { return Ok(self.range.0) };
        let mut end = segment.base_offset;
        // The last entry of the index leaves one interval to read.
        let start =
            segment.offset_index().and_then(|index| index.len().checked_sub(1).and_then(|slot| index.entry(slot)));
        let start = start.map_or(Position(0), |entry| entry.position);
        let mut scanner = LogScanner::over(&segment.log, start, segment.log.end()).reading(READ_BYTES);
        // What cannot be read any more is what a broker would cut.
        while let Ok(Some(header)) = scanner.next_header() {
            end = end.max(header.next_offset());
        }
        Ok(end)
    }

    fn end_of_epoch(&self, requested: LeaderEpoch) -> Result<EpochAnswer, ReadError> {
        let none = EpochAnswer { requested, epoch: None, end_offset: None };
        let Some(bytes) = self.partition.read_small(OsStr::new("leader-epoch-checkpoint"), MOST_CHECKPOINT_BYTES)?
        else {
            return Ok(none);
        };
        let lines = LeaderEpochCheckpoint::parse(&bytes).content.entries;
        let Ok(history) = EpochHistory::from_lines(lines) else { return Ok(none) };
        if requested.0 < 0 {
            return Ok(none);
        }
        Ok(history.end_offset_for(requested, self.range.1).map_or(none, |end| EpochAnswer {
            requested,
            epoch: Some(end.epoch),
            end_offset: Some(end.start_offset),
        }))
    }

    /// A segment, opened when first asked for.
    pub(super) fn segment(&mut self, index: usize) -> Result<Option<&mut OpenSegment>, ReadError> {
        let (Some(slot), Some(segment)) = (self.open.get_mut(index), self.segments.get(index)) else { return Ok(None) };
        if slot.is_none() {
            let next_base_offset = self.segments.get(index.saturating_add(1)).map(|next| next.base_offset);
            let Some(log) = &segment.log else { return Ok(None) };
            let file = self.partition.open_file(&log.name, self.options.io)?;
            let mut opened = OpenSegment {
                base_offset: segment.base_offset,
                next_base_offset,
                modified: log.modified,
                log: file,
                offset_index: IndexState::Missing,
                time_index: IndexState::Missing,
                scanned_largest: Scanned::NotYet,
            };
            let is_settled = next_base_offset.is_some() || self.is_closed_cleanly;
            let mut indexes = IndexOpener {
                partition: &self.partition,
                mode: self.index_mode,
                is_settled,
                findings: &mut self.findings,
            };
            opened.offset_index = indexes.offset_index(segment, opened.log.end());
            opened.time_index = indexes.time_index(segment);
            *slot = Some(opened);
        }
        Ok(slot.as_mut())
    }

    /// Notes an entry of the offset index that the log contradicts, and trusts the index no more.
    pub(super) fn distrust_offset_index(&mut self, index: usize, entry: (Offset, Position)) {
        let Some(segment) = self.segments.get(index) else { return };
        if let Some(file) = segment.file(FileKind::OffsetIndex) {
            let location = self.location(&file.name);
            self.findings.push(
                Finding::new(FindingId::OffsetIndexEntryWrong, location)
                    .with_facts(None, crate::ops::Fact::Pair(entry.0.0, i64::try_from(entry.1.0).unwrap_or(i64::MAX))),
            );
        }
        if let Some(Some(open)) = self.open.get_mut(index) {
            open.offset_index = IndexState::Unsound;
        }
    }

    fn location(&self, name: &OsStr) -> Location {
        location(&self.partition, name)
    }
}

fn location(partition: &PartitionDir, name: &OsStr) -> Location {
    Location::of_path(
        PathBuf::from(partition.log_dir()),
        Some(partition.topic_partition().clone()),
        partition.relative(name),
    )
}

/// Opens indexes and sees at once what can be seen without the log.
struct IndexOpener<'a> {
    partition: &'a PartitionDir,
    mode: IoMode,
    /// Whether the segment's indexes should have been trimmed.
    is_settled: bool,
    findings: &'a mut Vec<Finding>,
}

impl IndexOpener<'_> {
    fn offset_index(&mut self, segment: &Segment, log_end: Position) -> IndexState {
        use FindingId::{OffsetIndexEntryOrder, OffsetIndexMisaligned, OffsetIndexNeverWritten, OffsetIndexZeroPadded};
        let Some(entry) = segment.file(FileKind::OffsetIndex) else { return IndexState::Missing };
        let Some(file) = self.read(&entry.name) else { return IndexState::Unsound };
        let index = OffsetIndex::new(segment.base_offset, file.bytes());
        let (len, plausible, zeros) = (index.len(), index.plausible_len(log_end), index.zero_tail_len());
        let ids = [OffsetIndexMisaligned, OffsetIndexNeverWritten, OffsetIndexZeroPadded, OffsetIndexEntryOrder];
        let shape = Shape { len, plausible, zeros, remainder: index.remainder().len() };
        self.judge(&entry.name, file, &shape, ids)
    }

    fn time_index(&mut self, segment: &Segment) -> IndexState {
        use FindingId::{TimeIndexEntryOrder, TimeIndexMisaligned, TimeIndexNeverWritten, TimeIndexZeroPadded};
        let Some(entry) = segment.file(FileKind::TimeIndex) else { return IndexState::Missing };
        let Some(file) = self.read(&entry.name) else { return IndexState::Unsound };
        let index = TimeIndex::new(segment.base_offset, file.bytes());
        let (len, plausible, zeros) = (index.len(), index.plausible_len(), index.zero_tail_len());
        let ids = [TimeIndexMisaligned, TimeIndexNeverWritten, TimeIndexZeroPadded, TimeIndexEntryOrder];
        let shape = Shape { len, plausible, zeros, remainder: index.remainder().len() };
        self.judge(&entry.name, file, &shape, ids)
    }

    fn read(&self, name: &OsStr) -> Option<IndexFile> {
        IndexFile::open(&self.partition.path().join(name), self.mode).ok()
    }

    /// `ids` are those for a size that is no multiple of the entry, for nothing but zeros, for zeros behind entries, and for entries
    /// out of order.
    fn judge(&mut self, name: &OsStr, file: IndexFile, shape: &Shape, ids: [FindingId; 4]) -> IndexState {
        let [misaligned, never_written, padded, disordered] = ids;
        let id = match shape {
            Shape { remainder: 1.., .. } => misaligned,
            Shape { plausible, len, .. } if plausible == len => return IndexState::Sound { file, entries: *len },
            Shape { plausible, len, zeros, .. } if plausible.saturating_add(*zeros) >= *len => {
                if !self.is_settled {
                    // Zeros behind the entries are how an index looks while its segment is written.
                    return IndexState::Sound { file, entries: shape.plausible };
                }
                if shape.plausible == 0 { never_written } else { padded }
            }
            _ => disordered,
        };
        self.findings.push(Finding::new(id, location(self.partition, name)));
        IndexState::Unsound
    }
}

struct Shape {
    len: usize,
    plausible: usize,
    zeros: usize,
    remainder: usize,
}

impl OpenSegment {
    /// The entries of the offset index that can be trusted.
    pub(super) fn offset_index(&self) -> Option<OffsetIndex<'_>> {
        match &self.offset_index {
            IndexState::Sound { file, entries } => {
                Some(OffsetIndex::new(self.base_offset, file.bytes()).truncated(*entries))
            }
            IndexState::Missing | IndexState::Unsound => None,
        }
    }

    /// The entries of the time index that can be trusted.
    pub(super) fn time_index(&self) -> Option<TimeIndex<'_>> {
        match &self.time_index {
            IndexState::Sound { file, entries } => {
                Some(TimeIndex::new(self.base_offset, file.bytes()).truncated(*entries))
            }
            IndexState::Missing | IndexState::Unsound => None,
        }
    }

    /// Whether there is an index that must not be used.
    pub(super) fn has_unsound_index(&self) -> bool {
        matches!(self.offset_index, IndexState::Unsound) || matches!(self.time_index, IndexState::Unsound)
    }

    /// The largest timestamp and its offset, as the last entry of the time index tells (`LogSegment.maxTimestampSoFar`): after a
    /// clean stop that entry is the segment's largest. Of an index that is still growing, or is not sound, the log is asked.
    pub(super) fn max_timestamp_so_far(&mut self) -> Option<(TimestampMs, Offset)> {
        if let (Some(index), Some(_)) = (self.time_index(), self.next_base_offset) {
            return index.last().map(|entry| (entry.timestamp, entry.offset));
        }
        if matches!(self.time_index, IndexState::Missing) {
            return None;
        }
        if let Scanned::Done(largest) = self.scanned_largest {
            return largest;
        }
        let largest = self.scan_largest();
        self.scanned_largest = Scanned::Done(largest);
        largest
    }

    fn scan_largest(&self) -> Option<(TimestampMs, Offset)> {
        let last_entry = self.time_index().and_then(|index| index.last()).map(|entry| (entry.timestamp, entry.offset));
        let start = last_entry
            .and_then(|(_, offset)| self.offset_index()?.lookup(offset))
            .map_or(Position(0), |(_, entry)| entry.position);
        let mut largest = last_entry;
        let mut scanner = LogScanner::over(&self.log, start, self.log.end());
        while let Ok(Some(header)) = scanner.next_header() {
            let Some(time) = header.max_timestamp.filter(|time| time.0 >= 0) else { continue };
            if largest.is_none_or(|(known, _)| time > known) {
                largest = Some((time, header.last_offset));
            }
        }
        largest
    }

    /// What a broker compares an instant with to choose a segment (`LogSegment.largestTimestamp`).
    pub(super) fn largest_timestamp(&mut self) -> TimestampMs {
        self.max_timestamp_so_far().map_or(self.modified, |(timestamp, _)| timestamp)
    }

    /// Where to begin reading for an offset, and how the index said so.
    pub(super) fn start_for(&self, target: Offset, steps: &mut Vec<Step>) -> IndexUse {
        let mut found = IndexUse { entry_offset: self.base_offset, entry_position: Position(0), entries: 0, probes: 0 };
        match self.offset_index() {
            None => {
                if self.has_unsound_index() {
                    steps.push(Step::IndexPassedOver);
                }
            }
            Some(index) => {
                found.entries = crate::format::len_u64(index.len());
                let mut previous = None;
                let floor = index.lookup_explained(target, |slot, entry| {
                    // A broker looks at the only or first entry twice in a row; that costs nothing.
                    if previous.replace(slot) == Some(slot) {
                        return;
                    }
                    found.probes += 1;
                    let verdict = if entry.offset > target { Verdict::TooHigh } else { Verdict::NotAbove };
                    let slot = crate::format::len_u64(slot);
                    steps.push(Step::OffsetProbe { slot, offset: entry.offset, position: entry.position, verdict });
                });
                if let Some((_, entry)) = floor {
                    (found.entry_offset, found.entry_position) = (entry.offset, entry.position);
                }
            }
        }
        steps.push(Step::OffsetFloor { offset: found.entry_offset, position: found.entry_position });
        found
    }

    /// A scan from a place of the index on, with reads of one index interval.
    pub(super) fn scan_from(&self, position: Position) -> LogScanner<'_> {
        LogScanner::over(&self.log, position, self.log.end()).reading(READ_BYTES)
    }

    /// Whether a batch stands where an entry points, and could have been indexed so.
    pub(super) fn supports(&self, entry: &IndexUse) -> bool {
        if entry.entry_position == Position(0) {
            return true;
        }
        let fits = |header: &BatchHeader| {
            header.magic >= 0
                && header.magic <= 2
                && header.base_offset >= self.base_offset
                && (header.is_legacy() || header.base_offset <= entry.entry_offset)
        };
        matches!(self.scan_from(entry.entry_position).next_header(), Ok(Some(header)) if fits(&header))
    }
}

//! What a look-up came to, and each step of the way.

use std::path::PathBuf;

use super::Query;
use crate::format::{BatchHeader, LeaderEpoch, Offset, Position, TimestampMs};
use crate::logdir::TopicPartition;
use crate::ops::Finding;

/// How an index was used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexUse {
    /// Offset of the entry that the search ended on; the base offset where it began at the start of the file.
    pub entry_offset: Offset,
    /// Position of that entry.
    pub entry_position: Position,
    /// Entries of the index.
    pub entries: u64,
    /// Entries that were looked at.
    pub probes: u64,
}

/// How much of the log was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScanUse {
    /// Where reading began.
    pub from_position: Position,
    /// Where the batch that holds the answer ends, or where reading ended without one.
    pub to_position: Position,
    /// Batches looked at, the last included.
    pub batches: u64,
}

/// The batch that holds the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchPlace {
    /// Where it starts.
    pub position: Position,
    /// Its size.
    pub size_bytes: u64,
    /// Offset of its first record.
    pub base_offset: Offset,
    /// Offset of its last record, inclusive.
    pub last_offset: Offset,
}

/// The record that is the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordPlace {
    /// Its offset.
    pub offset: Offset,
    /// Its time.
    pub timestamp: Option<TimestampMs>,
}

/// What a follower is told of a leader epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EpochAnswer {
    /// The epoch it asked for.
    pub requested: LeaderEpoch,
    /// The largest known epoch not above it; `None` where the request is beyond every known epoch.
    pub epoch: Option<LeaderEpoch>,
    /// The first offset after that epoch.
    pub end_offset: Option<Offset>,
}

/// What a probe of an index decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The entry lies above what is looked for: go left.
    TooHigh,
    /// The entry does not: it will do unless a later one does too.
    NotAbove,
}

/// One step of a look-up, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// The offsets that the log has.
    Range {
        /// The first.
        log_start_offset: Offset,
        /// After the last.
        log_end_offset: Offset,
    },
    /// The segment was chosen.
    Segment {
        /// Its base offset.
        base_offset: Offset,
        /// Segments there are.
        segments: u64,
        /// Base offset of the next one.
        next_base_offset: Option<Offset>,
        /// For an instant: the segment's largest timestamp, or the file's time where it has none.
        largest_timestamp: Option<TimestampMs>,
        /// Bytes of its log file.
        size_bytes: u64,
    },
    /// An entry of the time index was looked at.
    TimeProbe {
        /// Its slot, from 0.
        slot: u64,
        /// Its timestamp.
        timestamp: TimestampMs,
        /// Its offset.
        offset: Offset,
        /// What followed.
        verdict: Verdict,
    },
    /// The entry of the time index that the search ended on.
    TimeFloor {
        /// Its timestamp, or `None` where the search begins at the base offset.
        timestamp: Option<TimestampMs>,
        /// Its offset.
        offset: Offset,
    },
    /// An entry of the offset index was looked at.
    OffsetProbe {
        /// Its slot, from 0.
        slot: u64,
        /// Its offset.
        offset: Offset,
        /// Its position.
        position: Position,
        /// What followed.
        verdict: Verdict,
    },
    /// The entry of the offset index that the search ended on.
    OffsetFloor {
        /// Its offset; the base offset where there is no entry to begin at.
        offset: Offset,
        /// Where reading begins.
        position: Position,
    },
    /// An index is not sound; reading begins at the start of the file.
    IndexPassedOver,
    /// A batch was read and passed.
    Passed(BatchPlace),
    /// A batch holds the answer, or could.
    Reached(BatchPlace),
    /// No record of a batch is the answer: cleaned, or all too early.
    NoRecordIn(BatchPlace),
    /// The segment has nothing; the next one is tried.
    NextSegment(Offset),
}

/// The answer for one partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The log dir, as it was given.
    pub log_dir: PathBuf,
    /// The partition.
    pub topic_partition: TopicPartition,
    /// What was looked for.
    pub query: Query,
    /// The offsets that the log has: the first, and after the last.
    pub range: (Offset, Offset),
    /// The answer as an offset.
    pub offset: Option<Offset>,
    /// The segment that holds it.
    pub segment_base_offset: Option<Offset>,
    /// How the offset index of that segment was used.
    pub index: Option<IndexUse>,
    /// How much of its log was read.
    pub scan: Option<ScanUse>,
    /// The batch.
    pub batch: Option<BatchPlace>,
    /// The record.
    pub record: Option<RecordPlace>,
    /// For a leader epoch.
    pub epoch: Option<EpochAnswer>,
    /// The steps on the way.
    pub steps: Vec<Step>,
    /// What was found wrong on the way.
    pub findings: Vec<Finding>,
}

impl Answer {
    /// Whether there is an answer.
    pub fn is_found(&self) -> bool {
        match self.query {
            Query::LeaderEpoch(_) => self.epoch.is_some_and(|epoch| epoch.end_offset.is_some()),
            _ => self.offset.is_some(),
        }
    }

    /// Whether the answer is the very offset or instant that was asked for.
    pub fn is_exact(&self) -> bool {
        match self.query {
            Query::Offset(wanted) => self.offset == Some(wanted),
            Query::Timestamp(wanted) => self.record.is_some_and(|record| record.timestamp == Some(wanted)),
            Query::LeaderEpoch(wanted) => self.epoch.is_some_and(|epoch| epoch.epoch == Some(wanted)),
            Query::Earliest | Query::Latest | Query::MaxTimestamp => self.is_found(),
        }
    }
}

impl BatchPlace {
    /// The place that a header names. Of a legacy wrapper the base offset is not yet the first record's.
    pub(super) fn of(header: &BatchHeader) -> Self {
        Self {
            position: header.position,
            size_bytes: header.size_bytes,
            base_offset: header.base_offset,
            last_offset: header.last_offset,
        }
    }

    /// The first byte after it.
    pub fn end(&self) -> Position {
        self.position.advance(self.size_bytes)
    }
}

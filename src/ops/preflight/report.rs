//! What a start will do.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::format::{Offset, Position, TimestampMs};
use crate::logdir::{ReadError, TopicPartition};
use crate::ops::broker::retention::{RetentionRule, TimestampSource};
use crate::ops::broker::{FailureKind, KafkaVersion};
use crate::ops::{Finding, FindingId, PartitionImage};

/// What becomes of a partition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Outcome {
    /// Nothing is done to it.
    Unchanged,
    /// Indexes, snapshots or leftovers are put in order; no record is lost.
    Recovered,
    /// It loses records, or bytes that were none.
    Truncated,
    /// It loses all its records.
    Emptied,
    /// The directory is about to be deleted anyway.
    Deleted,
    /// The broker renames the directory and no longer serves it.
    Stray,
    /// Over it the broker's start fails, or the log dir is given up.
    Fatal,
}

impl Outcome {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Recovered => "recovered",
            Self::Truncated => "truncated",
            Self::Emptied => "emptied",
            Self::Deleted => "deleted",
            Self::Stray => "stray",
            Self::Fatal => "fatal",
        }
    }
}

/// Where a log is cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TruncatedAt {
    /// The log file, relative to the log dir.
    pub path: PathBuf,
    /// The first byte that goes.
    pub position: Position,
}

/// Offsets of records that are lost, first and last inclusive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LostOffsets {
    /// The first.
    pub first: Offset,
    /// The last.
    pub last: Offset,
}

/// A segment that the first pass of retention deletes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetentionDelete {
    /// The segment.
    pub segment_base_offset: Offset,
    /// The rule.
    pub because: RetentionRule,
    /// The segment's largest timestamp, as the broker believes.
    pub largest_timestamp: TimestampMs,
    /// Where the broker takes it from.
    pub timestamp_source: TimestampSource,
    /// What is wrong with that timestamp, where the segment's records say otherwise.
    pub misled_by: Option<FindingId>,
    /// Sound records in the segment, counted where it goes wrongly.
    pub records: u64,
}

/// What a start does to one partition directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionReport {
    /// The log dir.
    pub log_dir: PathBuf,
    /// The directory in it.
    pub dir_name: OsString,
    /// The partition.
    pub topic_partition: TopicPartition,
    /// Whether it is the copy that is being moved here from another log dir.
    pub is_future: bool,
    /// What becomes of it.
    pub outcome: Outcome,
    /// Where the log starts afterwards.
    pub log_start_offset: Offset,
    /// The end of what an ideal reader can find now.
    pub log_end_offset_before: Offset,
    /// Where the broker believes that the log ends.
    pub log_end_offset_after: Offset,
    /// Bytes cut off log files that stay.
    pub truncated_bytes: u64,
    /// The first such place.
    pub truncated_at: Option<TruncatedAt>,
    /// Segments whose log goes.
    pub deleted_segments: Vec<Offset>,
    /// Files that go.
    pub deleted_files: Vec<PathBuf>,
    /// Files that are written anew, or made.
    pub rebuilt_files: Vec<PathBuf>,
    /// Files, or the directory itself, that get another name.
    pub renamed_files: Vec<(PathBuf, PathBuf)>,
    /// Sound records that are discarded, or hidden from every fetch.
    pub records_lost: u64,
    /// Bytes of log files that go.
    pub bytes_lost: u64,
    /// The offsets of the lost records.
    pub lost_offsets: Vec<LostOffsets>,
    /// What the first pass of retention deletes.
    pub retention_deletes: Vec<RetentionDelete>,
    /// Why, as ids of findings, each once.
    pub reasons: Vec<FindingId>,
    /// What is wrong and where.
    pub findings: Vec<Finding>,
    /// The directory after the start and an orderly stop; `None` where it does not come that far.
    pub image: Option<PartitionImage>,
}

impl PartitionReport {
    /// Records that the first pass of retention deletes because of a wrong time index.
    pub fn records_misled(&self) -> u64 {
        self.retention_deletes.iter().map(|delete| delete.records).fold(0, u64::saturating_add)
    }
}

/// Why a broker does not start, or gives a log dir up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fatal {
    /// What happens.
    pub kind: FailureKind,
    /// The log dir.
    pub log_dir: PathBuf,
    /// The file or directory at fault, relative to the log dir; empty for the log dir itself.
    pub path: PathBuf,
    /// What is wrong.
    pub reason: FindingId,
    /// Whether the next start fails as well.
    pub every_start: bool,
}

/// The numbers of a whole start.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Summary {
    /// Partition directories.
    pub partitions: u64,
    /// Those that lose something.
    pub truncated: u64,
    /// Records lost in all.
    pub records_lost: u64,
    /// Bytes of log files that go.
    pub bytes_lost: u64,
    /// Records that the first pass of retention deletes because of wrong time indexes.
    pub records_misled: u64,
}

/// What a start does to the log dirs of a broker.
#[derive(Debug)]
pub struct Report {
    /// The broker's version.
    pub version: KafkaVersion,
    /// Whether the rules were recorded from that very version.
    pub is_recorded: bool,
    /// Whether the start is one after a clean shutdown, in every log dir.
    pub clean_shutdown: bool,
    /// Whether a process holds a log dir's lock: what was read may have changed under way.
    pub is_live: bool,
    /// Why the broker does not come up, if it does not.
    pub fatal: Option<Fatal>,
    /// Every partition directory, in the order of log dir, topic, partition.
    pub partitions: Vec<PartitionReport>,
    /// What is wrong with the log dirs themselves.
    pub findings: Vec<Finding>,
    /// What could not be read: the prediction is not complete.
    pub unreadable: Vec<ReadError>,
    /// The numbers.
    pub summary: Summary,
}

impl Report {
    /// Every finding, those of the log dirs first.
    pub fn all_findings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().chain(self.partitions.iter().flat_map(|partition| &partition.findings))
    }
}

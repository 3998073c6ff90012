//! What a command would change, as a value: printed as it is, or carried out by `store`. One shape for `reindex`, `repair`,
//! `compact` and `retain`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::image::{Change, Content, PartitionImage};
use super::{Finding, FindingId};
use crate::format::Offset;
use crate::logdir::LogDir;
use crate::logdir::names::CheckpointKind;
use crate::ops::broker::KafkaVersion;
use crate::ops::broker::retention::RetentionRule;

/// A log dir and those of its partition directories that a plan is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanInput {
    /// The log dir.
    pub log_dir: LogDir,
    /// The directories.
    pub partitions: Vec<OsString>,
}

/// Why a file changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum PlanReason {
    /// Something is wrong with it.
    Finding(FindingId),
    /// A rule of retention asks for its deletion.
    Retention(RetentionRule),
    /// The active segment is to be deleted, so that a new one is begun.
    Rolled,
    /// Records go that a later one, or time, has overtaken.
    Cleaned,
    /// What is left of it is in the file of an earlier segment.
    Merged,
    /// It was to be made anew from the log, and comes out otherwise.
    Rebuilt,
    /// It follows from a change of another file.
    Follows,
}

/// Where records have gone.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Dropped {
    /// A later record has the same key.
    pub superseded: u64,
    /// Tombstones and markers whose time is over.
    pub tombstone: u64,
    /// Records of aborted transactions.
    pub aborted: u64,
    /// Records without a key in a cleaned topic.
    pub unkeyed: u64,
    /// Records of segments that retention deletes.
    pub retention: u64,
}

/// What goes in and what comes out, of log files alone.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Accounting {
    /// Bytes before.
    pub bytes_in: u64,
    /// Bytes after.
    pub bytes_kept: u64,
    /// Bytes put aside.
    pub bytes_quarantined: u64,
    /// Records before.
    pub records_in: u64,
    /// Records after.
    pub records_kept: u64,
    /// Records that are not kept.
    pub dropped: Dropped,
}

/// What keeps a command from doing more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Blocker {
    /// What it is.
    pub because: BlockerKind,
    /// The first offset concerned.
    pub offset: Offset,
}

/// Kinds of blockers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum BlockerKind {
    /// A transaction is open: nothing from its first record on is cleaned.
    OpenTransaction,
    /// A timestamp lies in the future.
    FutureTimestamp,
    /// A timestamp is in microseconds or nanoseconds.
    TimestampTooFine,
    /// A timestamp is in seconds.
    TimestampTooCoarse,
    /// The high watermark: what lies beyond it is not on every replica.
    HighWatermark,
    /// `min.compaction.lag.ms`.
    CompactionLag,
    /// The active segment is not cleaned.
    ActiveSegment,
    /// Too little is dirty.
    DirtyRatio,
    /// A record without a key in a cleaned topic.
    UnkeyedRecord,
    /// A broker's cleaner dies of what is in this segment.
    Uncleanable,
}

impl BlockerKind {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenTransaction => "open-transaction",
            Self::FutureTimestamp => "future-timestamp",
            Self::TimestampTooFine => "timestamp-too-fine",
            Self::TimestampTooCoarse => "timestamp-too-coarse",
            Self::HighWatermark => "high-watermark",
            Self::CompactionLag => "compaction-lag",
            Self::ActiveSegment => "active-segment",
            Self::DirtyRatio => "dirty-ratio",
            Self::UnkeyedRecord => "unkeyed-record",
            Self::Uncleanable => "uncleanable",
        }
    }
}

/// Bytes of a file that no file keeps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quarantined {
    /// Their name in the journal.
    pub name: OsString,
    /// Where they are.
    pub content: Content,
    /// Why they go.
    pub reasons: Vec<PlanReason>,
}

/// What changes in one partition directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionPlan {
    /// The directory as it is.
    pub before: PartitionImage,
    /// The directory as it will be.
    pub after: PartitionImage,
    /// Why files change, by name.
    pub reasons: BTreeMap<OsString, Vec<PlanReason>>,
    /// Bytes that are put aside.
    pub quarantined: Vec<Quarantined>,
    /// What goes in and comes out.
    pub accounting: Accounting,
    /// Offsets that are missing afterwards where there were some, first and last inclusive.
    pub gaps: Vec<(Offset, Offset)>,
    /// What keeps the command from doing more.
    pub blockers: Vec<Blocker>,
}

impl PartitionPlan {
    /// A plan that changes nothing.
    pub fn unchanged(image: PartitionImage) -> Self {
        Self {
            after: image.clone(),
            before: image,
            reasons: BTreeMap::new(),
            quarantined: Vec::new(),
            accounting: Accounting::default(),
            gaps: Vec::new(),
            blockers: Vec::new(),
        }
    }

    /// What has to be done, in the order of names.
    pub fn changes(&self) -> Vec<Change> {
        self.before.difference(&self.after)
    }

    /// Why a file changes; [`PlanReason::Follows`] where nothing was noted.
    pub fn reasons_of(&self, name: &OsStr) -> &[PlanReason] {
        self.reasons.get(name).map_or(&[PlanReason::Follows], Vec::as_slice)
    }

    /// Notes why a file changes.
    pub fn note(&mut self, name: &OsStr, reason: PlanReason) {
        let reasons = self.reasons.entry(name.to_os_string()).or_default();
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
}

/// A checkpoint file of a log dir that is written anew.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckpointPlan {
    /// The log dir.
    pub log_dir: PathBuf,
    /// Which of the four.
    pub kind: CheckpointKind,
    /// Its bytes; `None` where there is no such file.
    pub before: Option<Vec<u8>>,
    /// Its bytes afterwards.
    pub after: Vec<u8>,
    /// Why.
    pub reasons: Vec<PlanReason>,
}

/// What a command would change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The broker version whose rules it goes by.
    pub version: KafkaVersion,
    /// Whether those rules were recorded from that very version.
    pub is_recorded: bool,
    /// Every partition that was asked for, changed or not.
    pub partitions: Vec<PartitionPlan>,
    /// Checkpoint files that change.
    pub checkpoints: Vec<CheckpointPlan>,
    /// What is wrong with the data, as far as it was looked at.
    pub findings: Vec<Finding>,
    /// Whether everything that the plan stands on could be read.
    pub is_complete: bool,
}

//! What a repair comes to.

use std::ffi::OsString;

use super::options::Mode;
use super::start::Surroundings;
use crate::format::{Offset, Position};
use crate::ops::plan::Plan;
use crate::ops::preflight::Outcome;
use crate::ops::{Finding, FindingId};

/// A range of a log file that is not in the result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetAside {
    /// The file it lies in.
    pub file: OsString,
    /// Its first byte.
    pub position: Position,
    /// Its length.
    pub size_bytes: u64,
    /// Why.
    pub reason: FindingId,
    /// The offsets concerned, first and last inclusive, where they are known.
    pub offsets: Option<(Offset, Offset)>,
    /// Records of sound batches in it.
    pub records: u64,
    /// Whether everything in it is also among what is kept, or it never held data.
    pub is_spare: bool,
}

/// What the next start does to the result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StartAfter {
    /// What becomes of the partition.
    pub outcome: Outcome,
    /// Bytes cut off log files.
    pub truncated_bytes: u64,
    /// Segments that go.
    pub deleted_segments: u64,
    /// Records lost.
    pub records_lost: u64,
    /// Why, where it does not come up or loses something.
    pub reasons: Vec<FindingId>,
}

impl StartAfter {
    /// Whether nothing is lost by it.
    pub fn loses_nothing(&self) -> bool {
        self.truncated_bytes == 0 && self.deleted_segments == 0 && self.records_lost == 0
    }

    /// Whether the broker comes up and keeps everything.
    pub fn is_good(&self) -> bool {
        self.outcome != Outcome::Fatal && self.loses_nothing()
    }
}

/// What a repair makes of a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionRepair {
    /// Where the log starts afterwards.
    pub log_start: Offset,
    /// Where it ends afterwards.
    pub log_end: Offset,
    /// Sound records that are not in the result, and not in another copy there.
    pub records_lost: u64,
    /// What is not in the result.
    pub set_aside: Vec<SetAside>,
    /// What the next start does to the result.
    pub start: StartAfter,
    /// What the log dir will say of the partition; `None` where a broker's start leaves it alone.
    pub(super) around: Option<Surroundings>,
}

impl PartitionRepair {
    /// Whether bytes go that may have been data.
    pub fn is_lossy(&self) -> bool {
        self.records_lost > 0 || self.set_aside.iter().any(|range| !range.is_spare)
    }
}

/// A plan, and what it comes to for each of its partitions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RepairPlan {
    /// Which directories it makes.
    pub mode: Mode,
    /// What changes.
    pub plan: Plan,
    /// In the order of the plan's partitions.
    pub repairs: Vec<PartitionRepair>,
    /// What is wrong with the result.
    pub remaining: Vec<Finding>,
}

impl RepairPlan {
    /// Whether bytes go that may have been data.
    pub fn is_lossy(&self) -> bool {
        self.repairs.iter().any(PartitionRepair::is_lossy)
    }

    /// Whether anything changes.
    pub fn changes_anything(&self) -> bool {
        !self.plan.checkpoints.is_empty()
            || self.plan.partitions.iter().any(|partition| !partition.changes().is_empty())
    }

    /// Sound records that are not in the result.
    pub fn records_lost(&self) -> u64 {
        self.repairs.iter().map(|repair| repair.records_lost).fold(0, u64::saturating_add)
    }
}

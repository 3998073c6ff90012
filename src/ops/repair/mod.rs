//! `repair`: what a log dir can be made into, so that a broker starts over it and serves everything that is still sound.
//!
//! Two ways. [`Mode::Salvage`] keeps every batch that verifies, wherever it lies, and puts the rest aside byte for byte; the result
//! has to pass `verify` and a predicted start before it is a plan. [`Mode::LikeBroker`] is the directory that a broker's own
//! recovery would leave, which is often much less.
//!
//! Nothing here writes: the outcome is a [`Plan`](super::plan::Plan). Records are never changed and never made.

mod accounting;
mod arrange;
mod checkpoints;
mod companions;
mod like_broker;
mod options;
mod plan;
mod recheck;
mod report;
mod salvage;
mod select;
mod source;
mod start;
mod topic_id;

pub use options::{DeletedFiles, Mode, RepairError, RepairOptions};
pub use plan::plan;
pub use recheck::{RecheckError, recheck};
pub use report::{PartitionRepair, RepairPlan, SetAside, StartAfter};

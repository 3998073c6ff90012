//! What a broker will do to its log dirs when it starts: truncate, rebuild, delete, refuse, expire. Never writes.
//!
//! The rules are those of [`super::broker`]; here they are applied to whole log dirs, in the order of a broker's start, and what
//! they cost is counted. An image of every partition directory comes along, as it will be after the start and an orderly stop.

mod cut;
mod identity;
mod log_dirs;
mod loss;
mod metadata_log;
mod options;
mod partition;
mod remote_cache;
mod report;
mod retention_pass;

pub(crate) use metadata_log::predict_metadata_log;
pub(crate) use retention_pass::retention_segments;

pub use log_dirs::{BrokenLogDir, Scope, StartInput, inspect};
pub use options::{Compaction, Options, StartSettings, Tiering};
pub use partition::{EveryStart, PartitionStart, PredictError, Predicted, predict_partition};
pub use report::{Fatal, LostOffsets, Outcome, PartitionReport, Report, RetentionDelete, Summary, TruncatedAt};

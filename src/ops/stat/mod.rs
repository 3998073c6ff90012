//! The numbers that people monitor, per partition and topic, from the files alone.
//!
//! A log is measured segment by segment on all threads; the figures of parts are put together in the order of the log, so that any
//! number of threads gives the same report. What is no sound batch is a finding and counted apart.

mod cleaning;
mod distinct;
mod distribution;
mod file_system;
mod headers;
mod inspect;
mod log;
mod measure;
mod options;
mod partition;
mod report;
mod transactions;

pub use cleaning::Cleaning;
pub use distinct::Distinct;
pub use distribution::{Distribution, Quantiles};
pub use inspect::inspect;
pub use log::{CodecUse, PayloadBytes};
pub use options::StatOptions;
pub use partition::StatTarget;
pub use report::{
    ContentSummary, Depth, FileFigures, FileSystemConcern, LogDirStat, LogSummary, PartitionStat, StatReport,
    TopicStat, Totals,
};
pub use transactions::OpenSince;

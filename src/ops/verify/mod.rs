//! `verify`: every byte of every file, and every relation between files.
//!
//! The pieces, from the inside out: [`batch`] looks at one batch by itself, [`segment`] at the batches of one segment in order with
//! its indexes beside them, [`partition`] puts segments together with the small files around them, [`root`] and [`across`] look at
//! log dirs. Workers do the first two, one segment or one stretch of a large segment at a time; the rest follows on one thread in
//! the order of offsets, so that any number of workers gives the same report.
//!
//! Nothing that compaction, retention, transactions, followers or old brokers leave is a finding; severities follow what brokers
//! were seen to do.

mod across;
mod batch;
mod context;
mod directory;
mod epochs;
mod index_file;
mod input;
mod kraft;
mod large;
mod oddity;
mod offset_index;
mod options;
mod order;
mod partition;
mod producers;
mod remote_cache;
mod report;
mod root;
mod run;
mod scan;
mod segment;
mod single;
mod snapshot;
mod stretch;
mod swap;
mod time_index;
mod txn_index;

pub use context::{DirectoryState, Shutdown};
pub use input::PartitionInput;
pub use options::{Level, Options};
pub use report::{FileReport, FileRole, Report, Sound, Summary};
pub use run::{VerifyError, inspect, inspect_images};

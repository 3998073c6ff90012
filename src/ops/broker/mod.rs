//! Kafka's own rules, pure, each once: what brokers derive from the batches of a log, and what they do at start.
//!
//! `verify`, `reindex`, `preflight`, `repair`, `compact`, `retain` and the simulation ask here. Nothing below this module reads a
//! clock or writes; what differs between versions is in [`Rules`], and no other place compares versions.

pub mod cleaner_rules;
mod environment;
pub mod epochs;
mod failure;
pub mod index_rules;
pub mod load;
mod log_reading;
pub mod markers;
pub mod producers;
mod recover;
pub mod retention;
mod rules;
mod segment_files;
mod snapshots;
mod split;
mod swap;
pub mod transactions;

pub use environment::{LoadEnvironment, ProgressRef, RecordFormat};
pub use failure::{FailureKind, LoadStop, StartFailure};
pub use rules::{
    AppendIndexing, BadFileOutcome, EpochsKept, FormatSetting, IndexRecovery, KafkaVersion, LegacyLeaderEpochs,
    OffsetSearch, RetentionOrder, Rules, StrayReplicas, SwapCompletion, TxnVersionCheck, UnknownVersion,
};

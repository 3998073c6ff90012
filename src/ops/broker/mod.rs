//! Kafka's own rules, pure, each once: what brokers derive from the batches of a log, and what they do at start.
//!
//! `verify`, `reindex`, `preflight`, `repair`, `compact`, `retain` and the simulation ask here. Nothing below this module reads a
//! clock; what differs between versions is in [`Rules`], and no other place compares versions.

pub mod epochs;
pub mod index_rules;
pub mod producers;
mod rules;
pub mod transactions;

pub use rules::{
    AppendIndexing, BadFileOutcome, IndexClose, KafkaVersion, OffsetSearch, RecoveryIoError, RetentionOrder, Rules,
    SnapshotDeletion, SwapCompletion, TxnVersionCheck, UnknownVersion,
};

//! What a load depends on besides the directory: version, settings, clock.

use super::index_rules::IndexSettings;
use super::rules::Rules;
use crate::format::TimestampMs;
use crate::logdir::IoMode;
use crate::ops::{Progress, RecordReader};

/// The message format that a topic is set to (`message.format.version`). Only brokers before 3.0 ask for it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum RecordFormat {
    /// Messages of magic 0 or 1: no producers, no leader epochs.
    Legacy,
    /// Batches of magic 2.
    #[default]
    Current,
}

/// What a load depends on besides the directory.
#[derive(Debug)]
pub struct LoadEnvironment<'e> {
    /// The broker's version.
    pub rules: &'e Rules,
    /// What index files depend on.
    pub index: IndexSettings,
    /// The message format the topic is set to.
    pub record_format: RecordFormat,
    /// The time of the start.
    pub now: TimestampMs,
    /// `producer.id.expiration.ms`.
    pub producer_expiration_ms: i64,
    /// How log files are read.
    pub io: IoMode,
    /// Told of the bytes that recovery has read.
    pub progress: ProgressRef<'e>,
    /// Decodes records where a broker does.
    pub records: RecordReader,
}

/// Whom to tell of progress.
#[derive(Clone, Copy)]
pub struct ProgressRef<'e>(pub &'e dyn Progress);

impl std::fmt::Debug for ProgressRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProgressRef")
    }
}

impl LoadEnvironment<'_> {
    pub(super) fn records_without_producers(&self) -> bool {
        self.record_format == RecordFormat::Legacy
    }
}

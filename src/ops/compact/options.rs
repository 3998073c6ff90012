//! What a compaction depends on besides the log dir.

use std::sync::Arc;

use super::key_map::DigestKey;
use crate::format::{Offset, TimestampMs};
use crate::logdir::IoMode;
use crate::ops::broker::index_rules::IndexSettings;
use crate::ops::broker::{RecordFormat, Rules};

/// Bytes of log that a thread gets at a time where nothing is said.
pub const DEFAULT_PART_BYTES: u64 = 1024 * 1024;

/// Whether records without a key may go. A broker drops them; nobody can tell what they were for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum UnkeyedRecords {
    /// A log that loses some is refused.
    #[default]
    Refuse,
    /// They go, as with a broker.
    Drop,
}

/// How many rounds are made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Rounds {
    /// One, as a broker makes when it picks the log.
    #[default]
    One,
    /// As many as it takes until nothing is left to clean.
    UntilClean,
}

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Purpose {
    /// What a broker would do.
    #[default]
    Clean,
    /// Also what a round would do that a broker does not make yet.
    Explain,
}

/// The settings of topic and broker, under Kafka's names.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CleanerSettings {
    /// `min.cleanable.dirty.ratio`: a log is cleaned when more of it is dirty.
    pub min_cleanable_dirty_ratio: f64,
    /// `delete.retention.ms`.
    pub delete_retention_ms: i64,
    /// `min.compaction.lag.ms`.
    pub min_compaction_lag_ms: i64,
    /// `max.compaction.lag.ms`.
    pub max_compaction_lag_ms: i64,
    /// `segment.bytes`: the most that segments cleaned into one may have together.
    pub segment_bytes: u64,
    /// `index.interval.bytes` and `segment.index.bytes`.
    pub index: IndexSettings,
    /// `max.message.bytes` of the topic.
    pub max_message_bytes: u64,
    /// `message.max.bytes` of the broker, up to which the cleaner's buffers grow in any case.
    pub max_io_buffer_bytes: u64,
    /// Bytes of each of the two buffers of a cleaner thread.
    pub io_buffer_bytes: u64,
    /// Bytes of the offset map of a cleaner thread.
    pub map_bytes: u64,
    /// `log.cleaner.io.buffer.load.factor`: how full the map may become.
    pub load_factor: f64,
}

impl Default for CleanerSettings {
    fn default() -> Self {
        Self {
            min_cleanable_dirty_ratio: 0.5,
            delete_retention_ms: 24 * 3_600_000,
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX,
            segment_bytes: 1 << 30,
            index: IndexSettings::default(),
            max_message_bytes: 1_048_588,
            max_io_buffer_bytes: 1_048_588,
            io_buffer_bytes: 256 * 1024,
            map_bytes: 128 << 20,
            load_factor: 0.9,
        }
    }
}

/// What a compaction depends on besides the log dir.
#[derive(Clone, Debug)]
pub struct CompactOptions {
    /// The rules of the broker's version.
    pub rules: Rules,
    /// The settings.
    pub settings: CleanerSettings,
    /// The time of the rounds.
    pub now: TimestampMs,
    /// `producer.id.expiration.ms`.
    pub producer_expiration_ms: i64,
    /// The message format the topic is set to.
    pub record_format: RecordFormat,
    /// Where the log is dirty from, instead of `cleaner-offset-checkpoint`.
    pub first_dirty_offset: Option<Offset>,
    /// The high watermark, instead of `replication-offset-checkpoint`.
    pub high_watermark: Option<Offset>,
    /// The log start, instead of `log-start-offset-checkpoint`.
    pub log_start_offset: Option<Offset>,
    /// Whether records without a key may go.
    pub unkeyed: UnkeyedRecords,
    /// How many rounds are made.
    pub rounds: Rounds,
    /// What is asked for.
    pub purpose: Purpose,
    /// The secret of this run's key digests.
    pub digest_key: DigestKey,
    /// Bytes that verdicts on batches may take in memory.
    pub most_verdict_bytes: u64,
    /// Bytes of batches that were compressed anew, and are kept until they are written; what is beyond is compressed once more.
    pub most_made_bytes: u64,
    /// How log files are read.
    pub io: IoMode,
    /// Bytes of log that a thread gets at a time; the result is the same for any number.
    pub part_bytes: u64,
    /// Threads for what is written after the plan is made; `None`: rayon's own.
    pub pool: Option<Arc<rayon::ThreadPool>>,
}

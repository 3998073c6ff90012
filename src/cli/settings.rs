//! The settings that segtool reads, as a table: spellings in order of precedence, type, bounds, place in [`BrokerConfig`].
//!
//! Bounds from the `ConfigDef`s of Kafka 4.4, except where older brokers accepted smaller values that real directories
//! were written with (`segment.bytes` below 1 MiB).

use super::config_file::BrokerConfig;

/// One setting.
pub(super) struct Setting {
    /// Its names: the topic-level one first, then broker-level ones, milliseconds before minutes before hours.
    pub(super) spellings: &'static [Spelling],
    /// Type, bounds and where the value goes.
    pub(super) kind: Kind,
}

/// A name of a setting.
pub(super) struct Spelling {
    /// As in a properties file.
    pub(super) name: &'static str,
    /// What the number under this name is multiplied with.
    pub(super) unit_ms: i64,
}

/// The type of a setting.
pub(super) enum Kind {
    /// A whole number; bounds are those before multiplication.
    Long { least: i64, most: i64, field: fn(&mut BrokerConfig) -> &mut Option<i64> },
    /// A time whose negative values all mean "no limit".
    RetentionTime { field: fn(&mut BrokerConfig) -> &mut Option<i64> },
    /// A number from 0 to 1.
    Ratio { field: fn(&mut BrokerConfig) -> &mut Option<f64> },
    /// true or false.
    Flag { field: fn(&mut BrokerConfig) -> &mut Option<bool> },
    /// `cleanup.policy`.
    Policy,
    /// A word that the command interprets.
    Text { field: fn(&mut BrokerConfig) -> &mut Option<String> },
}

const INT_MAX: i64 = i32::MAX as i64;
const MINUTES: i64 = 60_000;
const HOURS: i64 = 60 * MINUTES;

const fn plain(name: &'static str) -> Spelling {
    Spelling { name, unit_ms: 1 }
}

const fn minutes(name: &'static str) -> Spelling {
    Spelling { name, unit_ms: MINUTES }
}

const fn hours(name: &'static str) -> Spelling {
    Spelling { name, unit_ms: HOURS }
}

const fn int(spellings: &'static [Spelling], least: i64, field: fn(&mut BrokerConfig) -> &mut Option<i64>) -> Setting {
    Setting { spellings, kind: Kind::Long { least, most: INT_MAX, field } }
}

const fn long(spellings: &'static [Spelling], least: i64, field: fn(&mut BrokerConfig) -> &mut Option<i64>) -> Setting {
    Setting { spellings, kind: Kind::Long { least, most: i64::MAX, field } }
}

const fn ratio(spellings: &'static [Spelling], field: fn(&mut BrokerConfig) -> &mut Option<f64>) -> Setting {
    Setting { spellings, kind: Kind::Ratio { field } }
}

const fn flag(spellings: &'static [Spelling], field: fn(&mut BrokerConfig) -> &mut Option<bool>) -> Setting {
    Setting { spellings, kind: Kind::Flag { field } }
}

/// Every setting that some command reads.
pub(super) const SETTINGS: &[Setting] = &[
    Setting { spellings: &[plain("cleanup.policy"), plain("log.cleanup.policy")], kind: Kind::Policy },
    // From 4.0 on small segments need the hidden name; where both stand, the hidden one counts.
    int(&[plain("internal.segment.bytes"), plain("segment.bytes"), plain("log.segment.bytes")], 1, |c| {
        &mut c.segment_bytes
    }),
    long(&[plain("segment.ms"), plain("log.roll.ms"), hours("log.roll.hours")], 1, |c| &mut c.segment_ms),
    long(&[plain("segment.jitter.ms"), plain("log.roll.jitter.ms"), hours("log.roll.jitter.hours")], 0, |c| {
        &mut c.segment_jitter_ms
    }),
    int(&[plain("segment.index.bytes"), plain("log.index.size.max.bytes")], 4, |c| &mut c.segment_index_bytes),
    int(&[plain("index.interval.bytes"), plain("log.index.interval.bytes")], 0, |c| &mut c.index_interval_bytes),
    int(&[plain("max.message.bytes"), plain("message.max.bytes")], 0, |c| &mut c.max_message_bytes),
    int(&[plain("max.decompressed.message.bytes")], 1, |c| &mut c.max_decompressed_message_bytes),
    Setting {
        spellings: &[
            plain("retention.ms"),
            plain("log.retention.ms"),
            minutes("log.retention.minutes"),
            hours("log.retention.hours"),
        ],
        kind: Kind::RetentionTime { field: |c| &mut c.retention_ms },
    },
    long(&[plain("retention.bytes"), plain("log.retention.bytes")], i64::MIN, |c| &mut c.retention_bytes),
    long(&[plain("local.retention.ms"), plain("log.local.retention.ms")], -2, |c| &mut c.local_retention_ms),
    long(&[plain("local.retention.bytes"), plain("log.local.retention.bytes")], -2, |c| &mut c.local_retention_bytes),
    flag(&[plain("remote.storage.enable")], |c| &mut c.remote_storage_enable),
    flag(&[plain("remote.log.copy.disable")], |c| &mut c.remote_log_copy_disable),
    flag(&[plain("remote.log.storage.system.enable")], |c| &mut c.remote_log_storage_system_enable),
    long(&[plain("file.delete.delay.ms"), plain("log.segment.delete.delay.ms")], 0, |c| &mut c.file_delete_delay_ms),
    long(&[plain("delete.retention.ms"), plain("log.cleaner.delete.retention.ms")], 0, |c| &mut c.delete_retention_ms),
    long(&[plain("min.compaction.lag.ms"), plain("log.cleaner.min.compaction.lag.ms")], 0, |c| {
        &mut c.min_compaction_lag_ms
    }),
    long(&[plain("max.compaction.lag.ms"), plain("log.cleaner.max.compaction.lag.ms")], 1, |c| {
        &mut c.max_compaction_lag_ms
    }),
    ratio(&[plain("min.cleanable.dirty.ratio"), plain("log.cleaner.min.cleanable.ratio")], |c| {
        &mut c.min_cleanable_dirty_ratio
    }),
    flag(&[plain("preallocate"), plain("log.preallocate")], |c| &mut c.preallocate),
    Setting {
        spellings: &[plain("message.format.version"), plain("log.message.format.version")],
        kind: Kind::Text { field: |c| &mut c.message_format_version },
    },
    Setting {
        spellings: &[plain("message.timestamp.type"), plain("log.message.timestamp.type")],
        kind: Kind::Text { field: |c| &mut c.message_timestamp_type },
    },
    flag(&[plain("log.cleaner.enable")], |c| &mut c.log_cleaner_enable),
    int(&[plain("log.cleaner.threads")], 0, |c| &mut c.log_cleaner_threads),
    long(&[plain("log.cleaner.dedupe.buffer.size")], 0, |c| &mut c.log_cleaner_dedupe_buffer_size),
    int(&[plain("log.cleaner.io.buffer.size")], 0, |c| &mut c.log_cleaner_io_buffer_size),
    ratio(&[plain("log.cleaner.io.buffer.load.factor")], |c| &mut c.log_cleaner_io_buffer_load_factor),
    long(&[plain("log.cleaner.backoff.ms")], 0, |c| &mut c.log_cleaner_backoff_ms),
    long(&[plain("log.retention.check.interval.ms")], 1, |c| &mut c.log_retention_check_interval_ms),
    int(&[plain("producer.id.expiration.ms")], 1, |c| &mut c.producer_id_expiration_ms),
    int(&[plain("transaction.max.timeout.ms")], 1, |c| &mut c.transaction_max_timeout_ms),
    int(&[plain("transactional.id.expiration.ms")], 1, |c| &mut c.transactional_id_expiration_ms),
    int(&[plain("offsets.topic.segment.bytes")], 1, |c| &mut c.offsets_topic_segment_bytes),
    int(&[plain("transaction.state.log.segment.bytes")], 1, |c| &mut c.transaction_state_log_segment_bytes),
    int(&[plain("default.replication.factor")], 1, |c| &mut c.default_replication_factor),
    int(&[plain("num.partitions")], 1, |c| &mut c.num_partitions),
    int(&[plain("node.id"), plain("broker.id")], -1, |c| &mut c.node_id),
];

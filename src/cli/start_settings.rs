//! The settings of a broker's start, from a properties file: shared by the commands that ask what a broker would do.

use std::path::{Path, PathBuf};

use clap::Args;

use super::args::{InstantArg, parse_instant};
use super::config_file::{BrokerConfig, read_config_file};
use super::context::Context;
use super::error::CliError;
use crate::format::TimestampMs;
use crate::ops::broker::index_rules::IndexSettings;
use crate::ops::broker::retention::{Deletion, RetentionSettings};
use crate::ops::broker::{KafkaVersion, RecordFormat};
use crate::ops::preflight::{Compaction, StartSettings, Tiering};

/// Which broker, with which settings, and when.
#[derive(Clone, Debug, Args)]
pub struct BrokerArgs {
    /// The broker's version: 2.8, 3.0 to 3.9, 4.0 to 4.4 [default: the newest]
    #[arg(long, value_name = "X.Y")]
    pub kafka_version: Option<KafkaVersion>,
    /// A properties file with the settings of topic or broker
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The time at which it happens: epoch ms, RFC 3339, a date, `2h ago` [default: now]
    #[arg(long, value_name = "INSTANT", value_parser = parse_instant)]
    pub now: Option<InstantArg>,
}

impl BrokerArgs {
    /// The version asked for.
    pub fn version(&self) -> KafkaVersion {
        self.kafka_version.unwrap_or_default()
    }

    /// The time asked for.
    pub fn now(&self, context: &Context<'_>) -> TimestampMs {
        let now = context.now();
        self.now.map_or(now, |instant| instant.resolve(now))
    }

    /// The settings of `--config`; what it warns of goes to standard error.
    pub fn read_config(&self, context: &mut Context<'_>) -> Result<BrokerConfig, CliError> {
        self.config.as_deref().map_or(Ok(BrokerConfig::default()), |path| read(path, context))
    }
}

fn read(path: &Path, context: &mut Context<'_>) -> Result<BrokerConfig, CliError> {
    let file = read_config_file(path).map_err(|error| CliError::usage(format!("{}: {error}", path.display())))?;
    for warning in &file.warnings {
        context.note(&format!("warning: {}: {warning}", path.display()));
    }
    Ok(file.config)
}

/// What a start goes by, out of a broker's settings; the rest is Kafka's defaults.
pub(super) fn start_settings(config: &BrokerConfig) -> StartSettings {
    let positive =
        |value: Option<i64>, default: u32| value.and_then(|value| u32::try_from(value).ok()).unwrap_or(default);
    let defaults = IndexSettings::default();
    let (compact, delete) = config.cleanup_policy.map_or((false, true), |policy| (policy.compact, policy.delete));
    StartSettings {
        index: IndexSettings {
            interval_bytes: positive(config.index_interval_bytes, defaults.interval_bytes),
            segment_index_bytes: positive(config.segment_index_bytes, defaults.segment_index_bytes),
        },
        record_format: record_format(config.message_format_version.as_deref()),
        retention: retention_settings(config, delete),
        compaction: if compact { Compaction::On } else { Compaction::Off },
        producer_expiration_ms: config.producer_id_expiration_ms,
        node_id: config.node_id.and_then(|id| i32::try_from(id).ok()).filter(|id| *id >= 0),
        tiering: match config.remote_log_storage_system_enable {
            Some(true) => Tiering::On,
            _ => Tiering::Off,
        },
    }
}

fn retention_settings(config: &BrokerConfig, delete: bool) -> RetentionSettings {
    let default = RetentionSettings::default();
    RetentionSettings {
        deletion: if delete { Deletion::ByAllRules } else { Deletion::BelowLogStart },
        retention_ms: config.retention_ms.map_or(default.retention_ms, |limit| (limit >= 0).then_some(limit)),
        retention_bytes: config.retention_bytes.map_or(default.retention_bytes, |limit| u64::try_from(limit).ok()),
    }
}

/// Formats before 0.11 have no batches of magic 2.
fn record_format(version: Option<&str>) -> RecordFormat {
    let mut parts = version.unwrap_or_default().split(['.', '-']).map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(0)), Some(Ok(minor))) if minor < 11 => RecordFormat::Legacy,
        _ => RecordFormat::Current,
    }
}

//! `--config FILE`: settings of a topic or a broker, under Kafka's own names, typed and checked.
//!
//! A file may hold topic-level names (`retention.ms`), broker-level names (`log.retention.hours`) or both. A topic-level
//! name beats its broker-level ones, milliseconds beat minutes, minutes beat hours (`org.apache.kafka.server.config
//! .ServerTopicConfigSynonyms`). Unknown names are ignored, as a broker does, but one that is nearly a known name is
//! worth a [`ConfigWarning`]: `log.segment.ms` sets nothing. Bounds are those of Kafka's `ConfigDef`.

use std::collections::BTreeMap;
use std::path::Path;

use super::settings::{Kind, SETTINGS, Setting, Spelling};
use crate::format::FormatErrorKind;
use crate::format::checkpoint::java_properties::{Property, parse_properties};

/// Which of Kafka's two policies apply. Neither is possible too: then nothing is ever removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CleanupPolicy {
    /// `compact` is in the list.
    pub compact: bool,
    /// `delete` is in the list.
    pub delete: bool,
}

/// The settings of a file; what it does not mention is `None`. Fields carry the topic-level names, `_ms` in
/// milliseconds, `_bytes` and `_size` in bytes. Flags and defaults are applied by each command.
#[derive(Clone, PartialEq, Default, Debug)]
#[expect(missing_docs, reason = "each field is Kafka's setting of the same name")]
pub struct BrokerConfig {
    pub cleanup_policy: Option<CleanupPolicy>,
    pub segment_bytes: Option<i64>,
    pub segment_ms: Option<i64>,
    pub segment_jitter_ms: Option<i64>,
    pub segment_index_bytes: Option<i64>,
    pub index_interval_bytes: Option<i64>,
    pub max_message_bytes: Option<i64>,
    pub max_decompressed_message_bytes: Option<i64>,
    pub retention_ms: Option<i64>,
    pub retention_bytes: Option<i64>,
    pub local_retention_ms: Option<i64>,
    pub local_retention_bytes: Option<i64>,
    pub remote_storage_enable: Option<bool>,
    pub remote_log_copy_disable: Option<bool>,
    pub remote_log_storage_system_enable: Option<bool>,
    pub file_delete_delay_ms: Option<i64>,
    pub delete_retention_ms: Option<i64>,
    pub min_compaction_lag_ms: Option<i64>,
    pub max_compaction_lag_ms: Option<i64>,
    pub min_cleanable_dirty_ratio: Option<f64>,
    pub preallocate: Option<bool>,
    pub message_format_version: Option<String>,
    pub message_timestamp_type: Option<String>,
    pub log_cleaner_enable: Option<bool>,
    pub log_cleaner_threads: Option<i64>,
    pub log_cleaner_dedupe_buffer_size: Option<i64>,
    pub log_cleaner_io_buffer_size: Option<i64>,
    pub log_cleaner_io_buffer_load_factor: Option<f64>,
    pub log_cleaner_backoff_ms: Option<i64>,
    pub log_retention_check_interval_ms: Option<i64>,
    pub producer_id_expiration_ms: Option<i64>,
    pub transaction_max_timeout_ms: Option<i64>,
    pub transactional_id_expiration_ms: Option<i64>,
    pub offsets_topic_segment_bytes: Option<i64>,
    pub transaction_state_log_segment_bytes: Option<i64>,
    pub default_replication_factor: Option<i64>,
    pub num_partitions: Option<i64>,
    pub node_id: Option<i64>,
}

/// A name that sets nothing but looks as if it were meant to.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: unknown setting `{name}` is ignored; did you mean `{meant}`?")]
pub struct ConfigWarning {
    /// Number of the line, from 1.
    pub line: u32,
    /// The name as written.
    pub name: String,
    /// The known name that it resembles.
    pub meant: &'static str,
}

/// Why a file of settings cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("read {path}: {source}")]
    Unreadable {
        /// The file, as given.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A known setting has a value that Kafka would refuse.
    #[error("line {line}: `{name}` is `{value}`, expected {expected}")]
    InvalidValue {
        /// Number of the line, from 1.
        line: u32,
        /// The name as written.
        name: &'static str,
        /// The value as written.
        value: String,
        /// What Kafka accepts.
        expected: String,
    },
    /// Java refuses the whole file.
    #[error("{0}")]
    Malformed(FormatErrorKind),
    /// Kafka refuses such a pair.
    #[error("min.compaction.lag.ms {least} is larger than max.compaction.lag.ms {most}")]
    CompactionLags {
        /// min.compaction.lag.ms.
        least: i64,
        /// max.compaction.lag.ms.
        most: i64,
    },
}

/// A file of settings, read.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct ConfigFile {
    /// What it sets.
    pub config: BrokerConfig,
    /// What in it has no effect although it looks as if it should.
    pub warnings: Vec<ConfigWarning>,
}

/// Reads and parses the file at `path`.
pub fn read_config_file(path: &Path) -> Result<ConfigFile, ConfigError> {
    let bytes =
        std::fs::read(path).map_err(|source| ConfigError::Unreadable { path: path.display().to_string(), source })?;
    parse_config(&bytes)
}

/// Parses the bytes of a properties file.
pub fn parse_config(bytes: &[u8]) -> Result<ConfigFile, ConfigError> {
    let properties = parse_properties(bytes).strict().map_err(|error| ConfigError::Malformed(error.kind))?;
    // A later line replaces an earlier one.
    let properties: BTreeMap<String, Property> =
        properties.into_iter().map(|property| (property.key.clone(), property)).collect();
    let mut config = BrokerConfig::default();
    for setting in SETTINGS {
        if let Some((spelling, property)) = winning(setting, &properties) {
            apply(&mut config, setting, spelling, property)?;
        }
    }
    if let (Some(least), Some(most)) = (config.min_compaction_lag_ms, config.max_compaction_lag_ms)
        && least > most
    {
        return Err(ConfigError::CompactionLags { least, most });
    }
    let warnings = properties
        .iter()
        .filter_map(|(name, property)| {
            near_miss(name).map(|meant| ConfigWarning { line: property.line, name: name.clone(), meant })
        })
        .collect();
    Ok(ConfigFile { config, warnings })
}

fn winning<'a>(
    setting: &Setting,
    properties: &'a BTreeMap<String, Property>,
) -> Option<(&'static Spelling, &'a Property)> {
    setting.spellings.iter().find_map(|spelling| properties.get(spelling.name).map(|property| (spelling, property)))
}

fn apply(
    config: &mut BrokerConfig,
    setting: &Setting,
    spelling: &'static Spelling,
    property: &Property,
) -> Result<(), ConfigError> {
    let text = property.value.trim();
    let invalid = |expected: String| ConfigError::InvalidValue {
        line: property.line,
        name: spelling.name,
        value: text.to_owned(),
        expected,
    };
    match setting.kind {
        Kind::Long { least, most, field } => {
            let accepted = text.parse::<i64>().ok().filter(|value| *value >= least && *value <= most);
            let value = accepted.ok_or_else(|| invalid(whole_number(least, most)))?;
            *field(config) = Some(value.saturating_mul(spelling.unit_ms));
        }
        Kind::RetentionTime { field } => {
            let value = text.parse::<i64>().map_err(|_| invalid("a whole number, negative for no limit".to_owned()))?;
            *field(config) = Some(if value < 0 { -1 } else { value.saturating_mul(spelling.unit_ms) });
        }
        Kind::Ratio { field } => {
            let accepted = text.parse::<f64>().ok().filter(|value| (0.0..=1.0).contains(value));
            *field(config) = Some(accepted.ok_or_else(|| invalid("a number from 0 to 1".to_owned()))?);
        }
        Kind::Flag { field } => {
            let value = match text.to_ascii_lowercase().as_str() {
                "true" => true,
                "false" => false,
                _ => return Err(invalid("true or false".to_owned())),
            };
            *field(config) = Some(value);
        }
        Kind::Policy => {
            let policy = parse_policy(text).ok_or_else(|| invalid("a list of compact and delete".to_owned()))?;
            config.cleanup_policy = Some(policy);
        }
        Kind::Text { field } => *field(config) = Some(text.to_owned()),
    }
    Ok(())
}

fn whole_number(least: i64, most: i64) -> String {
    match most {
        i64::MAX => format!("a whole number from {least} on"),
        _ => format!("a whole number from {least} to {most}"),
    }
}

/// `cleanup.policy`: Kafka lower-cases it; an empty list means that nothing is removed.
pub fn parse_policy(text: &str) -> Option<CleanupPolicy> {
    let mut policy = CleanupPolicy { compact: false, delete: false };
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        match name.to_ascii_lowercase().as_str() {
            "compact" => policy.compact = true,
            "delete" => policy.delete = true,
            _ => return None,
        }
    }
    Some(policy)
}

/// The known name that an unknown one resembles, if any.
fn near_miss(name: &str) -> Option<&'static str> {
    let known = || SETTINGS.iter().flat_map(|setting| setting.spellings).map(|spelling| spelling.name);
    if known().any(|candidate| candidate == name) {
        return None;
    }
    let plain: String = name.to_ascii_lowercase().replace(['_', '-'], ".");
    if let Some(meant) = known().find(|candidate| *candidate == plain) {
        return Some(meant);
    }
    if let Some(meant) = known().find(|candidate| candidate.strip_prefix("log.") == Some(&plain)) {
        return Some(meant);
    }
    if let Some(topic_level) = plain.strip_prefix("log.")
        && let Some(setting) = SETTINGS.iter().find(|s| s.spellings.first().is_some_and(|f| f.name == topic_level))
    {
        return setting.spellings.get(1).or_else(|| setting.spellings.first()).map(|spelling| spelling.name);
    }
    known()
        .map(|candidate| (edit_distance(&plain, candidate), candidate))
        .filter(|(d, _)| *d <= 2)
        .min()
        .map(|(_, c)| c)
}

/// Levenshtein's distance between two names.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, l) in left.chars().enumerate() {
        let mut next = Vec::with_capacity(row.len());
        let mut last = index + 1;
        next.push(last);
        for ((r, diagonal), above) in right.iter().zip(&row).zip(row.iter().skip(1)) {
            last = (diagonal + usize::from(l != *r)).min(above + 1).min(last + 1);
            next.push(last);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> BrokerConfig {
        parse_config(text.as_bytes()).unwrap().config
    }

    fn error(text: &str) -> String {
        parse_config(text.as_bytes()).unwrap_err().to_string()
    }

    fn warnings(text: &str) -> Vec<&'static str> {
        parse_config(text.as_bytes()).unwrap().warnings.into_iter().map(|warning| warning.meant).collect()
    }

    #[test]
    fn topic_level_beats_broker_level_and_ms_beats_minutes_beats_hours() {
        assert_eq!(config("log.retention.hours=2").retention_ms, Some(7_200_000));
        assert_eq!(config("log.retention.hours=2\nlog.retention.minutes=3").retention_ms, Some(180_000));
        assert_eq!(config("log.retention.minutes=3\nlog.retention.ms=4").retention_ms, Some(4));
        assert_eq!(config("log.retention.ms=4\nretention.ms=5").retention_ms, Some(5));
        assert_eq!(config("log.roll.hours=1").segment_ms, Some(3_600_000));
        assert_eq!(config("log.segment.bytes=2097152\nsegment.bytes=1048576").segment_bytes, Some(1_048_576));
        assert_eq!(config("segment.bytes=1048576\ninternal.segment.bytes=2000").segment_bytes, Some(2000));
    }

    #[test]
    fn negative_retention_is_no_limit_and_huge_hours_do_not_overflow() {
        assert_eq!(config("log.retention.hours=-5").retention_ms, Some(-1));
        assert_eq!(config("log.retention.hours=9223372036854775807").retention_ms, Some(i64::MAX));
        assert_eq!(config("delete.retention.ms=9223372036854775807").delete_retention_ms, Some(i64::MAX));
    }

    #[test]
    fn values_are_typed() {
        let read = config(
            "cleanup.policy=Compact, delete\nmin.cleanable.dirty.ratio=0.9\npreallocate=TRUE\n\
             message.timestamp.type=LogAppendTime\nlog.cleaner.io.buffer.load.factor=0.8\n",
        );
        assert_eq!(read.cleanup_policy, Some(CleanupPolicy { compact: true, delete: true }));
        assert_eq!(read.min_cleanable_dirty_ratio, Some(0.9));
        assert_eq!(read.preallocate, Some(true));
        assert_eq!(read.message_timestamp_type.as_deref(), Some("LogAppendTime"));
        assert_eq!(read.log_cleaner_io_buffer_load_factor, Some(0.8));
        assert_eq!(read.retention_ms, None);
    }

    #[test]
    fn values_that_kafka_refuses_are_errors_with_their_line() {
        assert_eq!(
            error("# x\nsegment.bytes=1GiB"),
            "line 2: `segment.bytes` is `1GiB`, expected a whole number from 1 to 2147483647"
        );
        assert!(error("index.interval.bytes=-1").contains("from 0 to 2147483647"));
        assert!(error("min.cleanable.dirty.ratio=1.5").contains("a number from 0 to 1"));
        assert!(error("cleanup.policy=shrink").contains("a list of compact and delete"));
        assert!(error("preallocate=yes").contains("true or false"));
        assert!(error("min.compaction.lag.ms=5\nmax.compaction.lag.ms=4").contains("is larger than"));
    }

    #[test]
    fn a_near_miss_is_warned_about_and_a_foreign_name_is_not() {
        assert_eq!(warnings("log.segment.ms=1"), ["log.roll.ms"]);
        assert_eq!(warnings("retention.mss=1"), ["retention.ms"]);
        assert_eq!(warnings("retention_ms=1"), ["retention.ms"]);
        assert_eq!(warnings("cleaner.threads=1"), ["log.cleaner.threads"]);
        assert_eq!(warnings("Segment.Bytes=1"), ["segment.bytes"]);
        assert_eq!(warnings("log.dirs=/a\nnode.id=1\nlisteners=x\ncompression.type=zstd\nretention.ms=1"), [""; 0]);
    }

    #[test]
    fn a_broken_unicode_escape_spoils_the_file_as_in_java() {
        assert!(error("a=1\nb=\\u00").starts_with("line 2: expected"));
    }

    #[test]
    fn distances_are_levenshteins() {
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("same", "same"), 0);
    }
}

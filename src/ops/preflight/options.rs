//! What a prediction depends on besides the log dirs.

use std::collections::BTreeMap;

use crate::format::{TimestampMs, Uuid};
use crate::logdir::IoMode;
use crate::ops::broker::index_rules::IndexSettings;
use crate::ops::broker::load::Shutdown;
use crate::ops::broker::retention::RetentionSettings;
use crate::ops::broker::{KafkaVersion, LoadEnvironment, ProgressRef, RecordFormat, Rules};
use crate::ops::{Progress, RecordReader};

/// Settings of broker and topics. They hold for every topic alike.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StartSettings {
    /// `index.interval.bytes` and `segment.index.bytes`.
    pub index: IndexSettings,
    /// From `message.format.version`.
    pub record_format: RecordFormat,
    /// `cleanup.policy`, `retention.ms`, `retention.bytes`.
    pub retention: RetentionSettings,
    /// Whether `cleanup.policy` names `compact`.
    pub compaction: Compaction,
    /// `producer.id.expiration.ms`, where it is set.
    pub producer_expiration_ms: Option<i64>,
    /// `node.id`, where it is set.
    pub node_id: Option<i32>,
    /// `remote.log.storage.system.enable`.
    pub tiering: Tiering,
}

/// Whether topics are cleaned.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Compaction {
    /// They are not.
    #[default]
    Off,
    /// They are.
    On,
}

/// Whether the broker keeps segments in remote storage.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Tiering {
    /// It does not.
    #[default]
    Off,
    /// It does.
    On,
}

/// What a prediction depends on besides the log dirs.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// The broker's version.
    pub version: KafkaVersion,
    /// How the broker before is taken to have stopped; `None`: as the marker says.
    pub assume: Option<Shutdown>,
    /// Settings of broker and topics.
    pub settings: StartSettings,
    /// The time of the start.
    pub now: TimestampMs,
    /// The topic ids that the cluster knows. With any of them, a partition without an id or with another one is stray.
    pub topic_ids: BTreeMap<String, Uuid>,
    /// How log files are read.
    pub io: IoMode,
}

impl Options {
    /// The newest version and defaults, at this time.
    pub fn at(now: TimestampMs) -> Self {
        Self {
            version: KafkaVersion::NEWEST,
            assume: None,
            settings: StartSettings::default(),
            now,
            topic_ids: BTreeMap::new(),
            io: IoMode::default(),
        }
    }

    /// What the loading of a log depends on.
    pub fn environment<'e>(&self, rules: &'e Rules, progress: &'e dyn Progress) -> LoadEnvironment<'e> {
        let expiration = self.settings.producer_expiration_ms.unwrap_or(rules.producer_expiration_ms);
        LoadEnvironment {
            rules,
            index: self.settings.index,
            record_format: rules.record_format(self.settings.record_format),
            now: self.now,
            producer_expiration_ms: expiration,
            io: self.io,
            progress: ProgressRef(progress),
            records: RecordReader::default(),
        }
    }
}

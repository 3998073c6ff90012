//! What a rebuilding is asked for.

use crate::format::TimestampMs;
use crate::logdir::IoMode;
use crate::ops::broker::index_rules::IndexSettings;
use crate::ops::broker::{KafkaVersion, Rules};

/// Bytes of a large log that a worker gets at a time where nothing is said.
pub const DEFAULT_PART_BYTES: u64 = 16 * 1024 * 1024;

/// Which files of a kind are made anew.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Extent {
    /// Those that are missing or wrong.
    #[default]
    Needed,
    /// All of them.
    All,
}

/// What a rebuilding is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReindexOptions {
    /// The broker whose recovery it is like.
    pub version: KafkaVersion,
    /// Which indexes.
    pub indexes: Extent,
    /// Which producer snapshots.
    pub snapshots: Extent,
    /// `index.interval.bytes` and `segment.index.bytes`.
    pub index: IndexSettings,
    /// `producer.id.expiration.ms`; `None`: the version's default.
    pub producer_expiration_ms: Option<i64>,
    /// When the recovery happens: it forgets producers that have been idle for too long.
    pub now: TimestampMs,
    /// How log files are read.
    pub io: IoMode,
    /// Bytes of a large log that a worker gets at a time; the result is the same for any number.
    pub part_bytes: u64,
}

impl ReindexOptions {
    /// What the newest version does with default settings, at this time.
    pub fn at(now: TimestampMs) -> Self {
        Self {
            version: KafkaVersion::NEWEST,
            indexes: Extent::Needed,
            snapshots: Extent::Needed,
            index: IndexSettings::default(),
            producer_expiration_ms: None,
            now,
            io: IoMode::default(),
            part_bytes: DEFAULT_PART_BYTES,
        }
    }

    /// Whether nothing depends on what is wrong.
    pub(super) fn rebuilds_everything(&self) -> bool {
        self.indexes == Extent::All && self.snapshots == Extent::All
    }

    pub(super) fn expiration_ms(&self) -> i64 {
        self.producer_expiration_ms.unwrap_or(Rules::of(self.version).producer_expiration_ms)
    }
}

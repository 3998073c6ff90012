//! What differs between broker versions, gathered in one value. Nothing else compares versions.
//!
//! Rules of 2.8, 3.9 and 4.4 (4.3 in part) were recorded from real brokers; those of the others are the nearest recorded ones
//! with the changes that their release notes and classes show.

use std::fmt;
use std::str::FromStr;

use super::cleaner_rules::CleanerRules;
use super::environment::RecordFormat;
use crate::format::TimestampMs;

/// A broker version, without its patch level.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KafkaVersion {
    major: u8,
    minor: u8,
}

impl KafkaVersion {
    /// The newest version that is known.
    pub const NEWEST: Self = Self::new(4, 4);
    /// Every version whose rules are known, oldest first.
    pub const ALL: [Self; 16] = [
        Self::new(2, 8),
        Self::new(3, 0),
        Self::new(3, 1),
        Self::new(3, 2),
        Self::new(3, 3),
        Self::new(3, 4),
        Self::new(3, 5),
        Self::new(3, 6),
        Self::new(3, 7),
        Self::new(3, 8),
        Self::new(3, 9),
        Self::new(4, 0),
        Self::new(4, 1),
        Self::new(4, 2),
        Self::new(4, 3),
        Self::NEWEST,
    ];

    const fn new(major: u8, minor: u8) -> Self {
        Self { major, minor }
    }

    const fn is_at_least(self, major: u8, minor: u8) -> bool {
        self.major > major || (self.major == major && self.minor >= minor)
    }
}

impl Default for KafkaVersion {
    fn default() -> Self {
        Self::NEWEST
    }
}

impl fmt::Display for KafkaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A text that names no version whose rules are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("known versions are 2.8, 3.0 to 3.9 and 4.0 to 4.4")]
pub struct UnknownVersion;

impl FromStr for KafkaVersion {
    type Err = UnknownVersion;

    /// Reads `4.4`; a patch level behind it is accepted and ignored.
    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        let mut parts = text.split('.');
        let mut number = || parts.next().and_then(|part| part.parse::<u8>().ok()).ok_or(UnknownVersion);
        let version = Self::new(number()?, number()?);
        let is_patched = parts.next().is_none_or(|patch| patch.bytes().all(|b| b.is_ascii_digit()));
        let is_known = is_patched && parts.next().is_none() && Self::ALL.contains(&version);
        if is_known { Ok(version) } else { Err(UnknownVersion) }
    }
}

/// How a segment is searched for an offset, from the position that the index gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OffsetSearch {
    /// The first batch whose last offset reaches it (`FileRecords.searchForOffsetWithSize`, up to 4.0).
    FirstReaching,
    /// The batch before the first whose base offset is beyond it (`searchForOffsetFromPosition`, KAFKA-18989, 4.1). It reads one
    /// batch further, and asks legacy wrappers for their first offset, which has to be decompressed.
    LookAhead,
}

/// What a start does with `leader-epoch-checkpoint` beside a log in a format before 2 (`UnifiedLog.maybeCreateLeaderEpochCache`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LegacyLeaderEpochs {
    /// It is read, so that one that cannot be read matters, and removed (up to 3.7).
    ReadAndRemoved,
    /// It is removed unread (3.8).
    Removed,
}

/// How an interrupted swap is finished at start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwapCompletion {
    /// Index files of the swap are dropped, the log is recovered and takes the place of the segments it covers (up to 2.8).
    RecoverAndReplace,
    /// All files are renamed as they are, after what they cover is deleted (3.0).
    RenameAll,
}

/// The order of the three deletions in one retention pass (KAFKA-12177).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RetentionOrder {
    /// Time, size, log start (up to 2.8).
    TimeSizeStart,
    /// Log start, size, time (3.0).
    StartSizeTime,
}

/// How a broker reads the version of a transaction index's entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TxnVersionCheck {
    /// The first byte only: above 0 is fatal, below is not.
    HighByte,
    /// The whole number: any but 0 is fatal (4.4).
    Whole,
}

/// What an unreadable `leader-epoch-checkpoint` or `partition.metadata` does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadFileOutcome {
    /// The start fails (2.8).
    StartFails,
    /// The log dir goes offline.
    LogDirOffline,
}

/// When an append adds an entry to the indexes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AppendIndexing {
    /// At most once for all batches of one append.
    PerAppend,
    /// For every batch (KAFKA-806: 4.1, and the last patches of 4.0 and 3.9, as recorded from 3.9.1).
    PerBatch,
}

/// Whether the recovery of a segment for the sake of its indexes alone enters leader epochs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexRecovery {
    /// It looks at indexes and producers only (up to 2.8).
    WithoutEpochs,
    /// It does.
    WithEpochs,
}

/// From where on a start keeps leader epochs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EpochsKept {
    /// From the log start on (up to 2.8).
    FromLogStart,
    /// From the log start of the checkpoint on, though the first segment may begin later.
    FromCheckpoint,
}

/// Whether replicas that the cluster does not place here are put aside (KAFKA-15489, 3.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StrayReplicas {
    /// They are served as any other.
    Served,
    /// Their directory is renamed to `-stray`.
    PutAside,
}

/// Who asks for a topic's message format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FormatSetting {
    /// The loader does (`message.format.version`, up to 3.9; from 3.0 on only under an older `inter.broker.protocol.version`).
    Honoured,
    /// Nobody does (4.0).
    Ignored,
}

/// The rules of one broker version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Whose rules these are.
    pub version: KafkaVersion,
    /// Whether they were recorded from a broker of this very version.
    pub is_recorded: bool,
    /// How a segment is searched for an offset.
    pub offset_search: OffsetSearch,
    /// How an interrupted swap is finished.
    pub swap_completion: SwapCompletion,
    /// The order of one retention pass.
    pub retention_order: RetentionOrder,
    /// How versions in a transaction index are read.
    pub txn_version_check: TxnVersionCheck,
    /// What an unreadable `leader-epoch-checkpoint` does.
    pub bad_leader_epochs: BadFileOutcome,
    /// What becomes of that file beside a log in a format without epochs.
    pub legacy_leader_epochs: LegacyLeaderEpochs,
    /// What an unreadable `partition.metadata` does.
    pub bad_partition_metadata: BadFileOutcome,
    /// The largest version of `partition.metadata` that is accepted.
    pub newest_partition_metadata: i32,
    /// Whether the recovery of a segment without index enters leader epochs.
    pub index_recovery: IndexRecovery,
    /// From where on a start keeps leader epochs.
    pub epochs_kept: EpochsKept,
    /// When appends write index entries.
    pub append_indexing: AppendIndexing,
    /// What becomes of replicas that do not belong here.
    pub stray_replicas: StrayReplicas,
    /// Whether a topic's message format is asked for.
    pub format_setting: FormatSetting,
    /// The cleaner's.
    pub cleaner: CleanerRules,
    /// How long an idle producer is remembered where no setting says so, in milliseconds.
    pub producer_expiration_ms: i64,
}

const DAY_MS: i64 = 86_400_000;

impl Rules {
    /// The rules of a version.
    pub fn of(version: KafkaVersion) -> Self {
        let since = |major, minor| version.is_at_least(major, minor);
        let bad_file = if since(3, 0) { BadFileOutcome::LogDirOffline } else { BadFileOutcome::StartFails };
        Self {
            version,
            is_recorded: [(2, 8), (3, 9), (4, 4)]
                .map(|(major, minor)| KafkaVersion::new(major, minor))
                .contains(&version),
            offset_search: if since(4, 1) { OffsetSearch::LookAhead } else { OffsetSearch::FirstReaching },
            swap_completion: if since(3, 0) { SwapCompletion::RenameAll } else { SwapCompletion::RecoverAndReplace },
            retention_order: if since(3, 0) { RetentionOrder::StartSizeTime } else { RetentionOrder::TimeSizeStart },
            txn_version_check: if since(4, 4) { TxnVersionCheck::Whole } else { TxnVersionCheck::HighByte },
            bad_leader_epochs: bad_file,
            legacy_leader_epochs: if since(3, 8) {
                LegacyLeaderEpochs::Removed
            } else {
                LegacyLeaderEpochs::ReadAndRemoved
            },
            bad_partition_metadata: bad_file,
            newest_partition_metadata: if since(3, 0) { i32::MAX } else { 0 },
            index_recovery: if since(3, 0) { IndexRecovery::WithEpochs } else { IndexRecovery::WithoutEpochs },
            epochs_kept: if since(3, 0) { EpochsKept::FromCheckpoint } else { EpochsKept::FromLogStart },
            append_indexing: if since(3, 9) { AppendIndexing::PerBatch } else { AppendIndexing::PerAppend },
            stray_replicas: if since(3, 7) { StrayReplicas::PutAside } else { StrayReplicas::Served },
            format_setting: if since(4, 0) { FormatSetting::Ignored } else { FormatSetting::Honoured },
            cleaner: CleanerRules::of(since),
            producer_expiration_ms: if since(3, 4) { DAY_MS } else { 7 * DAY_MS },
        }
    }

    /// The message format that the loader goes by where a topic is set to `configured`.
    pub fn record_format(&self, configured: RecordFormat) -> RecordFormat {
        match self.format_setting {
            FormatSetting::Honoured => configured,
            FormatSetting::Ignored => RecordFormat::Current,
        }
    }

    /// Whether a producer without an open transaction that was last heard of at `last` is forgotten at `now`
    /// (`ProducerStateManager.isProducerExpired`).
    pub fn is_expired(last: TimestampMs, now: TimestampMs, expiration_ms: i64) -> bool {
        now.0.wrapping_sub(last.0) >= expiration_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_with_and_without_patch_level_and_others_refused() {
        for version in KafkaVersion::ALL {
            assert_eq!(version.to_string().parse(), Ok(version));
            assert_eq!(format!("{version}.1").parse(), Ok(version));
            assert_eq!(Rules::of(version).version, version);
        }
        for text in ["2.7", "3.10", "4.5", "4", "4.4.x", "4.4.0.1", "", "4,4"] {
            assert_eq!(text.parse::<KafkaVersion>(), Err(UnknownVersion), "{text}");
        }
    }
}

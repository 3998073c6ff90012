//! Names of the files directly inside a log dir.

use std::ffi::{OsStr, OsString};

/// One of the four offset checkpoints, which share a format and differ in what the offset means.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CheckpointKind {
    /// Next offset to recover from.
    RecoveryPoint,
    /// Log start offset.
    LogStartOffset,
    /// High watermark.
    HighWatermark,
    /// First offset that is not yet cleaned.
    CleanerOffset,
}

impl CheckpointKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::RecoveryPoint, Self::LogStartOffset, Self::HighWatermark, Self::CleanerOffset];

    /// The file's name.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::RecoveryPoint => "recovery-point-offset-checkpoint",
            Self::LogStartOffset => "log-start-offset-checkpoint",
            Self::HighWatermark => "replication-offset-checkpoint",
            Self::CleanerOffset => "cleaner-offset-checkpoint",
        }
    }
}

/// What the name of a file directly inside a log dir says. Brokers ignore every other file there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RootName {
    /// `.lock`: what a running broker holds locked. Its being there says nothing.
    Lock,
    /// `.kafka_cleanshutdown`: its being there says that the last stop was clean.
    CleanShutdownMarker,
    /// `meta.properties`: the identity of cluster, node and directory.
    MetaProperties,
    /// An offset checkpoint.
    Checkpoint(CheckpointKind),
    /// `bootstrap.checkpoint`: metadata records of the format command, 3.3 to 4.3.
    BootstrapCheckpoint,
    /// `_rlmm_committed_offsets`: tiered storage, 3.1 to 3.5.
    RemoteMetadataOffsets,
    /// A name that ends in `.tmp`: what a crash leaves between the writing of a file and its renaming.
    Temporary,
    /// Any other name.
    Unknown,
}

impl RootName {
    const KNOWN: [Self; 9] = [
        Self::Lock,
        Self::CleanShutdownMarker,
        Self::MetaProperties,
        Self::Checkpoint(CheckpointKind::RecoveryPoint),
        Self::Checkpoint(CheckpointKind::LogStartOffset),
        Self::Checkpoint(CheckpointKind::HighWatermark),
        Self::Checkpoint(CheckpointKind::CleanerOffset),
        Self::BootstrapCheckpoint,
        Self::RemoteMetadataOffsets,
    ];

    /// Reads the name of a file.
    pub fn parse(name: &OsStr) -> Self {
        let Some(name) = name.to_str() else { return Self::Unknown };
        let known = Self::KNOWN.into_iter().find(|known| known.text() == Some(name));
        known.unwrap_or(if name.strip_suffix(".tmp").is_some() { Self::Temporary } else { Self::Unknown })
    }

    /// The name; `None` where the variant does not know it.
    pub fn to_name(self) -> Option<OsString> {
        self.text().map(OsString::from)
    }

    fn text(self) -> Option<&'static str> {
        match self {
            Self::Lock => Some(".lock"),
            Self::CleanShutdownMarker => Some(".kafka_cleanshutdown"),
            Self::MetaProperties => Some("meta.properties"),
            Self::Checkpoint(kind) => Some(kind.file_name()),
            Self::BootstrapCheckpoint => Some("bootstrap.checkpoint"),
            Self::RemoteMetadataOffsets => Some("_rlmm_committed_offsets"),
            Self::Temporary | Self::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_a_log_dir_is_known_both_ways() {
        for known in RootName::KNOWN {
            assert_eq!(known.to_name().map(|name| RootName::parse(&name)), Some(known));
        }
        for (name, expected) in [
            ("recovery-point-offset-checkpoint.tmp", RootName::Temporary),
            ("meta.properties.bak", RootName::Unknown),
            ("log-dirs.json", RootName::Unknown),
            ("", RootName::Unknown),
        ] {
            assert_eq!(RootName::parse(OsStr::new(name)), expected, "{name:?}");
        }
    }
}

//! What a verification came to.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use super::context::Place;
use crate::format::Offset;
use crate::logdir::TopicPartition;
use crate::ops::coverage::Coverage;
use crate::ops::{Finding, FindingId, Severity};

/// What a file is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum FileRole {
    /// `.log`.
    Log,
    /// `.index`.
    OffsetIndex,
    /// `.timeindex`.
    TimeIndex,
    /// `.txnindex`.
    TxnIndex,
    /// `.snapshot` of the producers.
    Snapshot,
    /// `leader-epoch-checkpoint`.
    LeaderEpochCheckpoint,
    /// `partition.metadata`.
    PartitionMetadata,
    /// One of the four offset checkpoints.
    Checkpoint,
    /// `meta.properties`.
    MetaProperties,
    /// `.kafka_cleanshutdown`.
    CleanShutdownMarker,
    /// `quorum-state`.
    QuorumState,
    /// A snapshot of the metadata log, or `bootstrap.checkpoint`.
    KraftSnapshot,
    /// An index in `remote-log-index-cache`.
    RemoteIndex,
    /// What an interrupted cleaning, swap or deletion left.
    Leftover,
    /// Anything else.
    Other,
}

impl FileRole {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::OffsetIndex => "offset_index",
            Self::TimeIndex => "time_index",
            Self::TxnIndex => "txn_index",
            Self::Snapshot => "snapshot",
            Self::LeaderEpochCheckpoint => "leader_epoch_checkpoint",
            Self::PartitionMetadata => "partition_metadata",
            Self::Checkpoint => "checkpoint",
            Self::MetaProperties => "meta_properties",
            Self::CleanShutdownMarker => "clean_shutdown_marker",
            Self::QuorumState => "quorum_state",
            Self::KraftSnapshot => "kraft_snapshot",
            Self::RemoteIndex => "remote_index",
            Self::Leftover => "leftover",
            Self::Other => "other",
        }
    }
}

/// One file, and what became of its bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileReport {
    /// The log dir.
    pub log_dir: PathBuf,
    /// The partition, where there is one.
    pub topic_partition: Option<TopicPartition>,
    /// The file, relative to the log dir.
    pub path: PathBuf,
    /// What it is.
    pub role: FileRole,
    /// Its size.
    pub size_bytes: u64,
    /// What became of its bytes.
    pub coverage: Coverage,
    /// Sound batches in it.
    pub sound: Sound,
    /// Of a log that is damaged: those behind the first damage.
    pub behind_damage: Option<Sound>,
}

/// Sound batches, all or some of a file.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sound {
    /// How many.
    pub batches: u64,
    /// Records in them.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The lowest offset and the highest.
    pub offsets: Option<(Offset, Offset)>,
}

impl Sound {
    /// These and others.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.batches = self.batches.saturating_add(other.batches);
        self.records = self.records.saturating_add(other.records);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.offsets = match (self.offsets, other.offsets) {
            (Some((first, last)), Some((other_first, other_last))) => {
                Some((first.min(other_first), last.max(other_last)))
            }
            (offsets, other_offsets) => offsets.or(other_offsets),
        };
        self
    }
}

impl FileReport {
    /// A file at a place. What became of its bytes must add up to its size.
    pub(super) fn new(place: &Place, role: FileRole, size_bytes: u64, coverage: Coverage) -> Self {
        debug_assert_eq!(coverage.total(), size_bytes, "{}", place.path.display());
        Self {
            log_dir: place.log_dir.clone(),
            topic_partition: place.topic_partition.clone(),
            path: place.path.clone(),
            role,
            size_bytes,
            coverage,
            sound: Sound::default(),
            behind_damage: None,
        }
    }

    /// The same with what is sound in it.
    #[must_use]
    pub(super) fn with_sound(mut self, all: Sound, behind_damage: Option<Sound>) -> Self {
        (self.sound, self.behind_damage) = (all, behind_damage);
        self
    }
}

/// Numbers over all files.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Summary {
    /// Partition directories.
    pub partitions: u64,
    /// Log files of segments.
    pub segments: u64,
    /// Files.
    pub files: u64,
    /// Sound batches.
    pub batches: u64,
    /// Records in these.
    pub records: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Findings by severity: critical, error, warning, info.
    pub findings: [u64; 4],
}

impl Summary {
    /// Findings of a severity.
    pub fn count_of(&self, severity: Severity) -> u64 {
        let [critical, error, warning, info] = self.findings;
        match severity {
            Severity::Critical => critical,
            Severity::Error => error,
            Severity::Warning => warning,
            Severity::Info => info,
        }
    }
}

/// What a verification came to. Sorted by place.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Report {
    /// Whether every byte was looked at.
    pub is_complete: bool,
    /// Whether a broker holds one of the log dirs.
    pub is_live: bool,
    /// Every file that was met.
    pub files: Vec<FileReport>,
    /// Everything that is wrong, or worth knowing.
    pub findings: Vec<Finding>,
    /// Numbers over all.
    pub summary: Summary,
}

impl Report {
    /// Sorts and counts.
    pub(super) fn of(mut files: Vec<FileReport>, mut findings: Vec<Finding>, partitions: u64, is_live: bool) -> Self {
        files.sort_by(|a, b| path_order(&a.log_dir, &b.log_dir).then_with(|| path_order(&a.path, &b.path)));
        findings.sort_by(|a, b| {
            a.location
                .cmp(&b.location)
                .then_with(|| (a.id, a.severity).cmp(&(b.id, b.severity)))
                .then_with(|| (&a.expected, &a.found).cmp(&(&b.expected, &b.found)))
        });
        findings.dedup();
        let mut summary = Summary { partitions, files: files.len() as u64, ..Summary::default() };
        for file in &files {
            summary.segments += u64::from(file.role == FileRole::Log);
            summary.batches = summary.batches.saturating_add(file.sound.batches);
            summary.records = summary.records.saturating_add(file.sound.records);
            summary.bytes = summary.bytes.saturating_add(file.size_bytes);
        }
        for finding in &findings {
            let [critical, error, warning, info] = &mut summary.findings;
            *match finding.severity {
                Severity::Critical => critical,
                Severity::Error => error,
                Severity::Warning => warning,
                Severity::Info => info,
            } += 1;
        }
        let was_read = |file: &FileReport| file.coverage.unreadable_bytes == 0;
        let is_complete = files.iter().all(was_read)
            && !findings.iter().any(|f| matches!(f.id, FindingId::LimitReached | FindingId::LogUnreadableRange));
        Self { is_complete, is_live, files, findings, summary }
    }
}

/// The order of paths, component by component. Much faster than that of `Path` where paths are plain.
fn path_order(a: &Path, b: &Path) -> Ordering {
    if a.as_os_str() == b.as_os_str() { Ordering::Equal } else { component_bytes(a).cmp(component_bytes(b)) }
}

/// The bytes of a path in which a separator comes before all else.
fn component_bytes(path: &Path) -> impl Iterator<Item = u8> {
    path.as_os_str().as_encoded_bytes().iter().map(|byte| if *byte == b'/' { 0 } else { *byte })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_ordered_by_their_components() {
        let paths = ["a", "a/b", "a/c", "a-1/a", "a-1/b", "a-10/a", "a.b/a", "b", ""];
        for (a, b) in paths.iter().flat_map(|a| paths.iter().map(move |b| (Path::new(a), Path::new(b)))) {
            assert_eq!(path_order(a, b), a.cmp(b), "{} {}", a.display(), b.display());
        }
    }
}

//! The files beside the logs, entry by entry: indexes, producer snapshots, checkpoints, properties.

use std::ffi::OsStr;

use crate::format::checkpoint::java_properties::parse_properties;
use crate::format::checkpoint::{
    CleanShutdownMarker, LeaderEpochCheckpoint, OffsetCheckpoint, PartitionMetadata, QuorumState,
};
use crate::format::offset_index::{OffsetIndex, OffsetIndexEntry};
use crate::format::producer_snapshot::{ProducerEntry, ProducerSnapshot};
use crate::format::time_index::{TimeIndex, TimeIndexEntry};
use crate::format::txn_index::{AbortedTransaction, TxnIndex};
use crate::format::{FormatError, FormatErrorKind, LeaderEpoch, Offset, Position, Shape, Uuid, len_u64};
use crate::logdir::names::{FileKind, FileName, RemoteCacheName, RootName};
use crate::ops::FindingId;

/// One entry of a file that is no log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileEntry {
    /// Of an offset index.
    OffsetIndex(OffsetIndexEntry),
    /// Of a time index.
    TimeIndex(TimeIndexEntry),
    /// Of a transaction index.
    AbortedTransaction(AbortedTransaction),
    /// Of a producer snapshot.
    Producer(ProducerEntry),
    /// Of an offset checkpoint.
    Checkpoint {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// What the checkpoint says of it.
        offset: Offset,
    },
    /// Of a leader-epoch checkpoint.
    LeaderEpoch {
        /// The epoch.
        epoch: LeaderEpoch,
        /// Where it begins.
        start_offset: Offset,
    },
    /// A key and its value, of the files that hold such.
    Property {
        /// The key.
        key: String,
        /// The value; `None` for none.
        value: Option<String>,
    },
}

/// What a file that is no log holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileShape {
    /// `.index` of a segment with this base offset.
    OffsetIndex(Offset),
    /// `.timeindex` of a segment with this base offset.
    TimeIndex(Offset),
    /// `.txnindex`.
    TxnIndex,
    /// `.snapshot`.
    ProducerSnapshot,
    /// One of the four offset checkpoints.
    OffsetCheckpoint,
    /// `leader-epoch-checkpoint`.
    LeaderEpochs,
    /// `partition.metadata`.
    PartitionMetadata,
    /// `meta.properties`.
    MetaProperties,
    /// `quorum-state`.
    QuorumState,
    /// `.kafka_cleanshutdown`.
    CleanShutdownMarker,
}

impl FileShape {
    /// The shape that a name promises, in a partition directory, in a log dir or in the cache of tiered storage; `None` for logs
    /// and for names that promise nothing.
    pub fn of(name: &OsStr) -> Option<Self> {
        match FileName::parse(name) {
            FileName::Segment { base, kind, .. } => return Self::of_kind(kind, base),
            FileName::Snapshot { .. } => return Some(Self::ProducerSnapshot),
            FileName::LeaderEpochCheckpoint => return Some(Self::LeaderEpochs),
            FileName::PartitionMetadata => return Some(Self::PartitionMetadata),
            FileName::QuorumState => return Some(Self::QuorumState),
            _ => {}
        }
        if let Some(cached) = RemoteCacheName::parse(name) {
            return Self::of_kind(cached.kind, cached.start_offset);
        }
        match RootName::parse(name) {
            RootName::Checkpoint(_) | RootName::RemoteMetadataOffsets => Some(Self::OffsetCheckpoint),
            RootName::MetaProperties => Some(Self::MetaProperties),
            RootName::CleanShutdownMarker => Some(Self::CleanShutdownMarker),
            _ => None,
        }
    }

    fn of_kind(kind: FileKind, base: Offset) -> Option<Self> {
        match kind {
            FileKind::Log => None,
            FileKind::OffsetIndex => Some(Self::OffsetIndex(base)),
            FileKind::TimeIndex => Some(Self::TimeIndex(base)),
            FileKind::TxnIndex => Some(Self::TxnIndex),
            FileKind::Snapshot => Some(Self::ProducerSnapshot),
        }
    }

    /// What it is called when it cannot be read.
    pub(super) fn fault_id(self) -> FindingId {
        match self {
            Self::OffsetIndex(_) => FindingId::OffsetIndexMisaligned,
            Self::TimeIndex(_) => FindingId::TimeIndexMisaligned,
            Self::TxnIndex => FindingId::TxnIndexMisaligned,
            Self::ProducerSnapshot => FindingId::SnapshotMalformed,
            Self::LeaderEpochs => FindingId::LeaderEpochMalformed,
            Self::PartitionMetadata => FindingId::PartitionMetadataMalformed,
            Self::MetaProperties => FindingId::MetaPropertiesMalformed,
            Self::OffsetCheckpoint | Self::QuorumState | Self::CleanShutdownMarker => FindingId::CheckpointMalformed,
        }
    }

    /// The entries that can be read, in order, and what stops Kafka's reader. The visitor gives `false` to end.
    pub(super) fn read(self, bytes: &[u8], visit: &mut dyn FnMut(FileEntry) -> bool) -> Option<FormatError> {
        match self {
            Self::OffsetIndex(base) => {
                let index = OffsetIndex::new(base, bytes);
                let _ = index.iter().map(FileEntry::OffsetIndex).all(visit);
                left_over(bytes, index.remainder(), Shape::OffsetIndexEntry)
            }
            Self::TimeIndex(base) => {
                let index = TimeIndex::new(base, bytes);
                let _ = index.iter().map(FileEntry::TimeIndex).all(visit);
                left_over(bytes, index.remainder(), Shape::TimeIndexEntry)
            }
            Self::TxnIndex => {
                let index = TxnIndex::new(bytes);
                let _ = index.iter().map(FileEntry::AbortedTransaction).all(visit);
                left_over(bytes, index.remainder(), Shape::TxnIndexEntry)
            }
            Self::ProducerSnapshot => {
                let snapshot = ProducerSnapshot::parse(bytes);
                let _ = snapshot.content.entries.into_iter().map(FileEntry::Producer).all(visit);
                snapshot.fault
            }
            Self::OffsetCheckpoint => {
                let checkpoint = OffsetCheckpoint::parse(bytes);
                let entries = checkpoint.content.entries.into_iter();
                let as_entry = |entry: crate::format::checkpoint::OffsetEntry| FileEntry::Checkpoint {
                    topic: entry.topic,
                    partition: entry.partition,
                    offset: entry.offset,
                };
                let _ = entries.map(as_entry).all(visit);
                checkpoint.fault
            }
            Self::LeaderEpochs => {
                let checkpoint = LeaderEpochCheckpoint::parse(bytes);
                let entries = checkpoint.content.entries.into_iter();
                let as_entry = |entry: crate::format::checkpoint::EpochEntry| FileEntry::LeaderEpoch {
                    epoch: entry.epoch,
                    start_offset: entry.start_offset,
                };
                let _ = entries.map(as_entry).all(visit);
                checkpoint.fault
            }
            Self::PartitionMetadata | Self::MetaProperties | Self::QuorumState | Self::CleanShutdownMarker => {
                let (properties, fault) = self.properties(bytes);
                let _ = properties.into_iter().map(|(key, value)| FileEntry::Property { key, value }).all(visit);
                fault
            }
        }
    }

    fn properties(self, bytes: &[u8]) -> (Vec<(String, Option<String>)>, Option<FormatError>) {
        match self {
            Self::PartitionMetadata => {
                let metadata = PartitionMetadata::parse(bytes);
                let content = metadata.content;
                let version = ("version".to_owned(), Some(content.version.to_string()));
                (vec![version, ("topic_id".to_owned(), content.topic_id.map(text))], metadata.fault)
            }
            Self::MetaProperties => {
                let properties = parse_properties(bytes);
                let fault = crate::format::checkpoint::MetaProperties::parse(bytes).fault;
                (properties.content.into_iter().map(|p| (p.key, Some(p.value))).collect(), fault)
            }
            Self::QuorumState => {
                let state = QuorumState::parse(bytes);
                (quorum_properties(state.content), state.fault)
            }
            _ => {
                let marker = CleanShutdownMarker::parse(bytes);
                (vec![("brokerEpoch".to_owned(), marker.broker_epoch.map(|epoch| epoch.to_string()))], None)
            }
        }
    }
}

fn text(id: Uuid) -> String {
    id.to_string()
}

fn quorum_properties(state: QuorumState) -> Vec<(String, Option<String>)> {
    let voters = |voters: Vec<i32>| voters.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
    let number = |number: Option<i32>| number.map(|number| number.to_string());
    vec![
        ("data_version".to_owned(), Some(state.data_version.to_string())),
        ("leaderId".to_owned(), number(state.leader_id)),
        ("leaderEpoch".to_owned(), Some(state.leader_epoch.to_string())),
        ("votedId".to_owned(), number(state.voted_id)),
        ("votedDirectoryId".to_owned(), state.voted_directory_id.map(text)),
        ("currentVoters".to_owned(), state.current_voters.map(voters)),
    ]
}

/// Bytes behind the last whole entry.
fn left_over(bytes: &[u8], remainder: &[u8], shape: Shape) -> Option<FormatError> {
    let count = len_u64(remainder.len());
    let position = Position(len_u64(bytes.len()).saturating_sub(count));
    (count > 0).then(|| FormatError::new(position, FormatErrorKind::TrailingBytes { shape, count }))
}

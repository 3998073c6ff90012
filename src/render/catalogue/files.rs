//! Manual entries: snapshots, checkpoints, names, leftovers, metadata.

use super::entry::Entry;
use crate::ops::FindingId as Id;

const fn entry(id: Id, means: &'static str, broker: &'static str, now: &'static str) -> Entry {
    Entry { id, means, broker, now }
}

const SNAPSHOTS: &str = "`segtool reindex` writes snapshots again from the log; nothing is lost by it.";

pub(super) const ENTRIES: &[Entry] = &[
    entry(
        Id::SnapshotMalformed,
        "A producer snapshot is too short, of an unknown version, or counts more entries than it has.",
        "The next start removes it and reads the log again from an older snapshot, or from the beginning: the start takes longer.",
        SNAPSHOTS,
    ),
    entry(
        Id::SnapshotCrcMismatch,
        "The checksum of a producer snapshot is wrong. A shorter snapshot written over a longer one of the same name looks like this too.",
        "The next start removes it and reads the log again from an older snapshot.",
        SNAPSHOTS,
    ),
    entry(
        Id::SnapshotStateMismatch,
        "A producer snapshot says of a producer what the log disproves, does not know one that it must know, or lies beyond the end of the log.",
        "With a wrong snapshot a producer may be refused, or a repeated batch be taken for a new one. One beyond the log's end is removed.",
        SNAPSHOTS,
    ),
    entry(
        Id::SnapshotMissing,
        "The log holds producers and the snapshot that the version writes at this offset is not there.",
        "Without any snapshot a clean start forgets all producers and open transactions; otherwise it reads the log again from an older one.",
        SNAPSHOTS,
    ),
    entry(
        Id::SnapshotOpenTransactionStale,
        "A producer snapshot names an open transaction that the log has ended.",
        "The broker believes the snapshot: consumers of committed records wait, and the cleaner stops.",
        SNAPSHOTS,
    ),
    entry(
        Id::LeaderEpochMalformed,
        "leader-epoch-checkpoint cannot be read.",
        "The log dir goes offline, or the broker does not start, at every start.",
        "`segtool repair` writes it from the batches. By hand: remove it; a clean start then makes an empty one and followers compare by offsets.",
    ),
    entry(
        Id::LeaderEpochOrder,
        "The epochs or the offsets in leader-epoch-checkpoint do not increase.",
        "A later line drives out the earlier ones that it contradicts; epochs are forgotten.",
        "`segtool repair` writes it from the batches.",
    ),
    entry(
        Id::LeaderEpochMismatch,
        "leader-epoch-checkpoint says another epoch of an offset than its batch, or does not know an epoch of the log.",
        "A follower that asks where an epoch ended is told wrong, and may keep or cut the wrong records.",
        "`segtool repair` writes it from the batches. After a crash the end of the file may lag behind; the start mends that.",
    ),
    entry(
        Id::CheckpointMalformed,
        "A checkpoint file of the log dir is not a version, a count and that many lines.",
        "With the recovery point or log start checkpoint the log dir goes offline, at every start; a word in place of a number only makes it begin from 0. With the others the values are lost.",
        "Remove the file: the broker then begins from 0, or from the first segment. `segtool repair` writes one from what can be read.",
    ),
    entry(
        Id::CheckpointBeyondLogEnd,
        "A checkpoint names an offset beyond the end of the log: the log has lost its end, or was put back from an older copy.",
        "A recovery point beyond the end hides damage from an unclean start. A high watermark or cleaner offset is set back.",
        "Find out what became of the records. `segtool repair` sets the checkpoint to the log's end.",
    ),
    entry(
        Id::CheckpointUnknownPartition,
        "A checkpoint names a partition that has no directory here.",
        "It is ignored, and dropped when the file is next written.",
        "Nothing.",
    ),
    entry(
        Id::LogStartBeyondLogEnd,
        "log-start-offset-checkpoint names an offset beyond the end of the log.",
        "The next start deletes every segment of the partition and begins an empty log there.",
        "Before the broker starts: correct or remove the line, or use `segtool repair`.",
    ),
    entry(
        Id::PartitionMetadataMissing,
        "A partition directory has no partition.metadata, which names its topic's id.",
        "A KRaft broker takes the directory for stray: it is renamed, and deleted later. With ZooKeeper it is written again.",
        "Under KRaft, before the broker starts: write the file with the id that `kafka-topics.sh --describe` shows.",
    ),
    entry(
        Id::PartitionMetadataMalformed,
        "partition.metadata cannot be read, or is of a version that only newer brokers take.",
        "The log dir goes offline, or the broker does not start, at every start.",
        "Write it with the id that `kafka-topics.sh --describe` shows: two lines, `version: 0` and `topic_id: ID`.",
    ),
    entry(
        Id::TopicIdConflict,
        "Partitions of one topic have different topic ids, or one has an id that Kafka never gives.",
        "The broker takes those whose id the cluster does not know for stray: they are renamed, and deleted later.",
        "Ask the cluster for the topic's id. The others are of an earlier topic of the same name, or were copied from elsewhere.",
    ),
    entry(
        Id::CleanMarkerContradicted,
        "The clean-shutdown marker is there, but files are as only a crash leaves them: the machine stopped after the broker and before the disk had everything.",
        "The next start believes the marker and recovers nothing: see the other findings of the file.",
        "`segtool repair` or `reindex` before the start. Removing the marker makes the broker recover every partition, and may cut others.",
    ),
    entry(
        Id::MetaPropertiesMalformed,
        "meta.properties cannot be read, or is missing or empty where the node needs it.",
        "The log dir counts as failed; the broker does not start if it has no other, or if the metadata log lies there.",
        "Write it again with the ids of cluster, node and directory.",
    ),
    entry(
        Id::MetaPropertiesConflict,
        "The log dirs of one broker disagree about the cluster, the node or the directory id, or one has no meta.properties at all.",
        "The broker does not start, at any start.",
        "Find out where the odd one comes from: a disk of another broker, or a mount that is missing.",
    ),
    entry(
        Id::LeftoverCleaned,
        "A file of a cleaning or a split that was interrupted before its swap.",
        "The next start removes it; the segments it was made from are still there.",
        "Nothing.",
    ),
    entry(
        Id::LeftoverSwap,
        "A file of a swap that was interrupted: its log takes the place of other segments at the next start.",
        "Brokers finish the swap: the segments in its range of offsets are deleted, and it gets their name. Where it holds less than they do, or is damaged, records are lost.",
        "If the topic is cleaned and the file is whole: nothing. Otherwise `segtool repair`, which keeps what either side has.",
    ),
    entry(
        Id::LeftoverDeleted,
        "A file that a broker had marked for removal.",
        "The next start removes it.",
        "Nothing, unless it is the only copy of a missing segment (then this is critical): `segtool repair` brings it back.",
    ),
    entry(
        Id::PartitionTwice,
        "The same partition is in two log dirs.",
        "The broker does not start, at any start.",
        "Move one of the two out of the log dir: usually the one that ends earlier.",
    ),
    entry(
        Id::StrayDirectory,
        "A directory in a log dir has a name that is no partition's.",
        "The broker does not start, at any start.",
        "Move it out of the log dir. For lost+found use a sub-directory of the mount as the log dir.",
    ),
    entry(
        Id::SegmentNameInvalid,
        "A file is called as a segment's is, but what stands before the dot is no number of 20 digits.",
        "Without a number the broker does not start. A short number such as 45.log makes it open an empty segment 45, which hides the offsets behind it. In the index cache of tiered storage any other file keeps the broker from starting.",
        "Move the file out of the directory.",
    ),
    entry(
        Id::UnknownFile,
        "A file that is none of Kafka's.",
        "It is ignored; one whose name begins with a number goes with the segments that a swap replaces.",
        "Nothing. Better kept elsewhere.",
    ),
    entry(
        Id::KraftSnapshotIncomplete,
        "A snapshot of the cluster's metadata does not begin with its header record or does not end with its footer.",
        "The node loads what is there without a word; a damaged or empty one keeps it from starting.",
        "If another controller is healthy: stop this one, set its metadata log dir aside, and let it fetch everything again.",
    ),
    entry(
        Id::KraftSnapshotMissing,
        "The metadata log begins after offset 0, and no snapshot covers what lies before.",
        "The node does not start, at any start.",
        "If another controller is healthy: set the metadata log dir aside and let the node fetch everything again.",
    ),
    entry(
        Id::QuorumStateMalformed,
        "quorum-state, in which a node keeps its vote, cannot be read.",
        "The node does not start, at any start.",
        "If the other voters are healthy: remove the file; the node may then vote a second time in the same epoch, so do this on one node at a time.",
    ),
    entry(
        Id::QuorumStateStale,
        "quorum-state is missing, or its epoch is below that of the metadata log.",
        "The node starts with a warning and has forgotten its vote.",
        "Nothing, if this is known; otherwise find out who put the file back.",
    ),
];

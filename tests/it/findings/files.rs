//! Damaged snapshots, checkpoints and other files.

use std::fs;
use std::path::Path;

use segtool::ops::FindingId as Id;

use super::fixture::{Damaged, Fixture, batch, closed, closed_with, of_batches, only, orders};
use super::producers::{END_SNAPSHOT, transactions};
use crate::synth::control::{leader_change, snapshot_header};
use crate::synth::{Batch, Partition, Segment, T, files, record};

pub(super) const FIXTURES: &[Fixture] = &[
    only(Id::SnapshotMalformed, |root| {
        let dir = closed(root, transactions());
        let cut = fs::read(dir.orders(END_SNAPSHOT)).unwrap();
        dir.put(END_SNAPSHOT, &cut[..4]);
    }),
    only(Id::SnapshotCrcMismatch, |root| drop(closed(root, transactions()).overwrite(END_SNAPSHOT, 12, &[9]))),
    only(Id::SnapshotStateMismatch, |root| {
        let partition = transactions();
        closed(root, partition).put(END_SNAPSHOT, super::producers::snapshot(|producer| producer.last_sequence += 5));
    }),
    only(Id::SnapshotMissing, |root| drop(closed(root, transactions()).remove(END_SNAPSHOT))),
    only(Id::SnapshotOpenTransactionStale, |root| {
        closed(root, transactions())
            .put(END_SNAPSHOT, super::producers::snapshot(|producer| producer.transaction_first_offset = 0));
    }),
    only(Id::LeaderEpochMalformed, |root| {
        drop(closed(root, orders()).put("leader-epoch-checkpoint", "0\n1\nzero 0\n"))
    }),
    only(Id::LeaderEpochOrder, |root| {
        let partition = of_batches([batch(0), batch(2).leader_epoch(1)]);
        closed(root, partition).put("leader-epoch-checkpoint", files::leader_epoch_checkpoint(&[(1, 2), (0, 0)]));
    }),
    only(Id::LeaderEpochMismatch, |root| {
        let partition = of_batches([batch(0), batch(2).leader_epoch(1), batch(4).leader_epoch(2)]);
        closed(root, partition).put("leader-epoch-checkpoint", files::leader_epoch_checkpoint(&[(0, 0), (2, 2)]));
    }),
    only(Id::CheckpointMalformed, |root| {
        closed(root, orders()).put_top("replication-offset-checkpoint", "0\n2\norders 0 18\n");
    }),
    only(Id::CheckpointBeyondLogEnd, |root| {
        closed(root, orders()).put_top("replication-offset-checkpoint", files::offset_checkpoint(&[("orders", 0, 99)]));
    }),
    only(Id::CheckpointUnknownPartition, |root| {
        let entries = [("orders", 0, 18), ("payments", 3, 7)];
        closed(root, orders()).put_top("replication-offset-checkpoint", files::offset_checkpoint(&entries));
    }),
    only(Id::LogStartBeyondLogEnd, |root| {
        closed(root, orders()).put_top("log-start-offset-checkpoint", files::offset_checkpoint(&[("orders", 0, 99)]));
    }),
    only(Id::PartitionMetadataMissing, |root| drop(closed(root, orders()).remove("partition.metadata"))),
    only(Id::PartitionMetadataMalformed, |root| drop(closed(root, orders()).put("partition.metadata", "version: 0\n"))),
    only(Id::TopicIdConflict, |root| {
        let other = Partition { topic_id: [7; 16], number: 1, ..orders() };
        closed_with(root, [orders(), other]);
    }),
    only(Id::MetaPropertiesMalformed, |root| {
        closed(root, orders())
            .put_top("meta.properties", "version=1\nnode.id=one\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n");
    }),
    only(Id::KraftSnapshotIncomplete, |root| {
        let dir = metadata(root, 10);
        let header = Batch::at(0).control().record(snapshot_header(T).at(T));
        let snapshot = [header.build(), Batch::at(1).record(record("", "state").at(T)).build()].concat();
        fs::write(dir.join("__cluster_metadata-0/00000000000000000010-0000000000.checkpoint"), snapshot).unwrap();
    }),
    only(Id::KraftSnapshotMissing, |root| drop(metadata(root, 10))),
    only(Id::QuorumStateMalformed, |root| {
        metadata(root, 0).put_top("__cluster_metadata-0/quorum-state", "{\"leaderId\":");
    }),
    only(Id::QuorumStateStale, |root| {
        fs::remove_file(metadata(root, 0).join("__cluster_metadata-0/quorum-state")).unwrap();
    }),
];

/// A KRaft node's log dir whose metadata log starts at an offset.
fn metadata(root: &Path, start: i64) -> Damaged {
    let leader = Batch::at(start).leader_epoch(1).control().record(leader_change(1, &[1], &[1]).at(T));
    let segment = Segment::at(start).append(leader).append(batch(start + 1).leader_epoch(1));
    let topic = Partition::new("__cluster_metadata", 0);
    let partition = Partition { segments: vec![segment], topic_id: 1_u128.to_be_bytes(), ..topic };
    let dir = closed(root, partition);
    let quorum =
        r#"{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}"#;
    dir.put_top("__cluster_metadata-0/quorum-state", quorum)
}

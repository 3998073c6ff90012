//! Producers and transactions.

use segtool::ops::FindingId as Id;

use super::fixture::{Fixture, batch, closed, of_batches, only};
use crate::synth::control::{Marker, end_transaction};
use crate::synth::files::{self, Producer};
use crate::synth::{Batch, Partition, T, record};

/// Of [`transactions`].
pub(super) const END_SNAPSHOT: &str = "00000000000000000006.snapshot";

/// Producer 7 aborts a transaction, then commits one.
pub(super) fn transactions() -> Partition {
    let data = |base: i64, sequence: i32| batch(base).producer(7, 0, sequence).transactional();
    of_batches([data(0, 0), end(2, Marker::Abort, 0), data(3, 2), end(5, Marker::Commit, 0)])
}

fn end(offset: i64, marker: Marker, coordinator_epoch: i32) -> Batch {
    end_transaction(offset, marker, (7, 0), coordinator_epoch, T + offset)
}

/// The snapshot at the end of [`transactions`], changed.
pub(super) fn snapshot(change: fn(&mut Producer)) -> Vec<u8> {
    let mut producer = Producer {
        id: 7,
        epoch: 0,
        last_sequence: 3,
        last_offset: 4,
        offset_delta: 1,
        timestamp_ms: T + 5,
        coordinator_epoch: 0,
        transaction_first_offset: -1,
    };
    change(&mut producer);
    files::producer_snapshot(&[producer])
}

pub(super) const FIXTURES: &[Fixture] = &[
    only(Id::TransactionOpen, |root| {
        closed(root, of_batches([batch(0).producer(7, 0, 0).transactional(), batch(2)]));
    }),
    only(Id::TransactionHanging, |root| {
        let days_later = Batch::at(2).record(record("key-0", "days later").at(T + 3 * 86_400_000));
        closed(root, of_batches([batch(0).producer(7, 0, 0).transactional(), days_later]));
    }),
    only(Id::TransactionForeignBatch, |root| {
        let inside = batch(2).producer(7, 0, 2);
        let batches = [batch(0).producer(7, 0, 0).transactional(), inside, end(4, Marker::Commit, 0)];
        // No broker comes far enough to write a snapshot.
        closed(root, of_batches(batches)).killed().remove("00000000000000000005.snapshot");
    }),
    only(Id::ProducerSequenceGap, |root| {
        closed(root, of_batches([batch(0).producer(7, 0, 0), batch(2).producer(7, 0, 5)]));
    }),
    only(Id::ControlEpochRegression, |root| {
        let data = |base: i64, sequence: i32| batch(base).producer(7, 0, sequence).transactional();
        closed(root, of_batches([data(0, 0), end(2, Marker::Commit, 4), data(3, 2), end(5, Marker::Commit, 3)]));
    }),
];

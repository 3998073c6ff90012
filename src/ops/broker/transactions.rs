//! Open and ended transactions of a log (`ProducerStateManager.ongoingTxns`, `LogSegment.updateTxnIndex`): what the last stable
//! offset is, and which entries the transaction indexes get.

use std::collections::BTreeMap;

use crate::format::record::Record;
use crate::format::txn_index::AbortedTransaction;
use crate::format::{Cursor, Offset, ProducerId, Shape, TimestampMs};

/// How a transaction ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TransactionOutcome {
    /// Its records count.
    Committed,
    /// Its records do not.
    Aborted,
}

/// The end marker of a transaction: the first record of a control batch (`EndTransactionMarker`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndMarker {
    /// How the transaction ended.
    pub outcome: TransactionOutcome,
    /// Epoch of the coordinator that wrote it.
    pub coordinator_epoch: i32,
    /// The record's timestamp.
    pub timestamp: TimestampMs,
}

impl EndMarker {
    /// Reads the record of a control batch (`EndTransactionMarker.deserialize`). `None` where it is no end marker: another type of
    /// control record, or key or value shorter than they must be.
    pub fn of_record(record: &Record<'_>) -> Option<Self> {
        let mut key = Cursor::new(record.key?);
        let mut value = Cursor::new(record.value?);
        key.read_i16(Shape::ControlRecord).ok()?;
        let outcome = match key.read_i16(Shape::ControlRecord).ok()? {
            0 => TransactionOutcome::Aborted,
            1 => TransactionOutcome::Committed,
            _ => return None,
        };
        value.read_i16(Shape::ControlRecord).ok()?;
        let coordinator_epoch = value.read_i32(Shape::ControlRecord).ok()?;
        Some(Self { outcome, coordinator_epoch, timestamp: record.timestamp.unwrap_or(TimestampMs(-1)) })
    }
}

/// A transaction that its marker has just ended. One without data before the marker does not show up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndedTransaction {
    /// The producer.
    pub producer_id: ProducerId,
    /// Offset of its first record.
    pub first_offset: Offset,
    /// Offset of the marker.
    pub last_offset: Offset,
    /// How it ended.
    pub outcome: TransactionOutcome,
    /// Where the oldest transaction of another producer that is still open begins, else after the marker
    /// (`ProducerStateManager.lastStableOffset(CompletedTxn)`).
    pub last_stable_offset: Offset,
}

impl EndedTransaction {
    /// The entry that the transaction index gets, if any: only aborted ones are listed.
    pub fn index_entry(&self) -> Option<AbortedTransaction> {
        (self.outcome == TransactionOutcome::Aborted).then_some(AbortedTransaction {
            version: 0,
            producer_id: self.producer_id,
            first_offset: self.first_offset,
            last_offset: self.last_offset,
            last_stable_offset: self.last_stable_offset,
        })
    }
}

/// A transaction that has not ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OpenTransaction {
    /// Offset of its first record.
    pub first_offset: Offset,
    /// The producer.
    pub producer_id: ProducerId,
}

/// The transactions that are open at some place of the log, oldest first.
///
/// A broker keys them by their first offset; a second one that claims the same (only damage does) takes the place of the first.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct OpenTransactions {
    by_first_offset: BTreeMap<Offset, ProducerId>,
}

impl OpenTransactions {
    /// All of them, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = OpenTransaction> + '_ {
        self.by_first_offset.iter().map(|(first_offset, producer_id)| OpenTransaction {
            first_offset: *first_offset,
            producer_id: *producer_id,
        })
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_first_offset.is_empty()
    }

    /// Where the oldest one begins, held at the log start: the last stable offset where the high watermark is beyond it.
    pub fn first_unstable_offset(&self, log_start_offset: Offset) -> Option<Offset> {
        self.by_first_offset.keys().next().map(|first| (*first).max(log_start_offset))
    }

    pub(super) fn open(&mut self, transaction: OpenTransaction) {
        self.by_first_offset.insert(transaction.first_offset, transaction.producer_id);
    }

    pub(super) fn clear(&mut self) {
        self.by_first_offset.clear();
    }

    /// What the last stable offset becomes where `producer_id` ends a transaction with the marker at `marker`.
    pub(super) fn stable_after(&self, producer_id: ProducerId, marker: Offset) -> Offset {
        let others = self.by_first_offset.iter().find(|(_, other)| **other != producer_id);
        others.map_or(marker.next(), |(first, _)| *first)
    }

    /// Ends the one that begins at `first_offset`; `None` where there is no such, which a broker does not survive.
    pub(super) fn close(&mut self, first_offset: Offset) -> Option<ProducerId> {
        self.by_first_offset.remove(&first_offset)
    }
}

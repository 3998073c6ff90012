//! What a broker knows of the producers of a log: the state that its snapshots hold (`ProducerStateManager`,
//! `ProducerAppendInfo`, `ProducerStateEntry`).
//!
//! Fed with the batches of a log in order, the state is that of a broker that replays them; nothing is refused here that a
//! broker accepts when it replays, such as sequences out of order or epochs that go back.

use std::collections::{HashMap, VecDeque};

use super::rules::Rules;
use super::transactions::{EndMarker, EndedTransaction, OpenTransaction, OpenTransactions};
use crate::format::producer_snapshot::ProducerEntry as StoredProducer;
use crate::format::{BatchHeader, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

/// Batches that a broker remembers of each producer, to recognise a repeated one.
const BATCHES_KEPT: usize = 5;
/// What stands for "no epoch", "no sequence", "no timestamp" on disk.
const NONE: i8 = -1;

/// A data batch of a producer, as far as a broker remembers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RememberedBatch {
    /// Sequence of its last record; -1 where it has none.
    pub last_sequence: Sequence,
    /// Its last offset.
    pub last_offset: Offset,
    /// Last offset minus base offset, in 32 bits as a broker counts.
    pub offset_delta: i32,
    /// Its largest timestamp.
    pub timestamp: TimestampMs,
}

/// What a broker knows of one producer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProducerEntry {
    /// The producer.
    pub producer_id: ProducerId,
    /// Its epoch; -1 before the first batch.
    pub epoch: ProducerEpoch,
    /// Its latest batches of this epoch, five at most, latest last. A snapshot keeps the last one only.
    pub batches: VecDeque<RememberedBatch>,
    /// Largest timestamp of the last data batch, or the last marker's; -1 before the first.
    pub timestamp: TimestampMs,
    /// Coordinator epoch of the last marker; -1 before the first.
    pub coordinator_epoch: i32,
    /// Where its open transaction begins.
    pub transaction_first_offset: Option<Offset>,
}

impl ProducerEntry {
    /// A producer of which nothing is known.
    pub fn unknown(producer_id: ProducerId) -> Self {
        Self {
            producer_id,
            epoch: ProducerEpoch(NONE.into()),
            batches: VecDeque::new(),
            timestamp: TimestampMs(NONE.into()),
            coordinator_epoch: NONE.into(),
            transaction_first_offset: None,
        }
    }

    /// What a broker reads back from a snapshot.
    pub fn from_stored(stored: &StoredProducer) -> Self {
        let timestamp = stored.timestamp.unwrap_or(TimestampMs(NONE.into()));
        let last_batch = stored.last_offset.filter(|offset| offset.0 >= 0).map(|last_offset| RememberedBatch {
            last_sequence: stored.last_sequence.unwrap_or(Sequence(NONE.into())),
            last_offset,
            offset_delta: stored.offset_delta,
            timestamp,
        });
        Self {
            producer_id: stored.producer_id,
            epoch: stored.producer_epoch,
            batches: last_batch.into_iter().collect(),
            timestamp,
            coordinator_epoch: stored.coordinator_epoch.unwrap_or(NONE.into()),
            transaction_first_offset: stored.current_txn_first_offset.filter(|offset| offset.0 >= 0),
        }
    }

    /// What a broker writes into a snapshot.
    pub fn to_stored(&self) -> StoredProducer {
        let last_batch = self.last_batch();
        let present = |raw: i64| raw != i64::from(NONE);
        StoredProducer {
            producer_id: self.producer_id,
            producer_epoch: self.epoch,
            last_sequence: last_batch.map(|batch| batch.last_sequence).filter(|sequence| present(sequence.0.into())),
            last_offset: last_batch.map(|batch| batch.last_offset).filter(|offset| present(offset.0)),
            offset_delta: last_batch.map_or(0, |batch| batch.offset_delta),
            timestamp: Some(self.timestamp).filter(|timestamp| present(timestamp.0)),
            coordinator_epoch: Some(self.coordinator_epoch).filter(|epoch| present((*epoch).into())),
            current_txn_first_offset: self.transaction_first_offset,
        }
    }

    /// Its last data batch.
    pub fn last_batch(&self) -> Option<&RememberedBatch> {
        self.batches.back()
    }

    /// Offset of the last record of its last data batch.
    pub fn last_data_offset(&self) -> Option<Offset> {
        self.last_batch().map(|batch| batch.last_offset)
    }

    fn take_epoch(&mut self, epoch: ProducerEpoch) {
        if self.epoch != epoch {
            self.batches.clear();
            self.epoch = epoch;
        }
    }

    fn remember(&mut self, batch: RememberedBatch) {
        if self.batches.len() == BATCHES_KEPT {
            self.batches.pop_front();
        }
        self.batches.push_back(batch);
    }

    /// Whether the entry goes at `now`.
    pub fn is_expired(&self, now: TimestampMs, expiration_ms: i64) -> bool {
        self.transaction_first_offset.is_none() && Rules::is_expired(self.timestamp, now, expiration_ms)
    }
}

/// Why a broker does not survive the replay of a batch: the start fails, at every start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReplayError {
    /// A batch outside of a transaction, from a producer that has one open (`InvalidTxnStateException`).
    #[error(
        "batch at offset {offset} of producer {producer_id} is outside of the transaction that is open since {since}"
    )]
    ForeignBatch {
        /// The producer.
        producer_id: ProducerId,
        /// The batch's first offset.
        offset: Offset,
        /// Where the transaction began.
        since: Offset,
    },
    /// A marker ends a transaction that another one with the same first offset has pushed out (`IllegalArgumentException`).
    #[error("marker at offset {offset} ends a transaction that was never begun")]
    NeverBegun {
        /// The producer.
        producer_id: ProducerId,
        /// The marker's offset.
        offset: Offset,
    },
}

/// The producers of a log up to some offset.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ProducerState {
    entries: HashMap<ProducerId, ProducerEntry>,
    order: JavaHashOrder,
    open: OpenTransactions,
}

impl ProducerState {
    /// The state that a snapshot restores at `now`: producers that have been idle for too long are left out.
    pub fn from_snapshot(
        entries: impl IntoIterator<Item = ProducerEntry>,
        now: TimestampMs,
        expiration_ms: i64,
    ) -> Self {
        let mut state = Self::default();
        for entry in entries.into_iter().filter(|entry| !entry.is_expired(now, expiration_ms)) {
            if let Some(first_offset) = entry.transaction_first_offset {
                state.open.open(OpenTransaction { first_offset, producer_id: entry.producer_id });
            }
            state.put(entry);
        }
        state
    }

    /// Takes a batch in. `marker` is the end marker of a control batch, `None` where the cleaner has emptied it; it is not looked
    /// at for data batches. Batches without a producer change nothing.
    ///
    /// Returns the transaction that the batch ends. An error leaves the state as it was before the batch.
    pub fn append(
        &mut self,
        header: &BatchHeader,
        marker: Option<&EndMarker>,
    ) -> Result<Option<EndedTransaction>, ReplayError> {
        let Some(producer_id) = producer_of(header) else { return Ok(None) };
        if header.is_control() {
            return self.append_control(producer_id, header, marker);
        }
        let mut entry = self.entries.remove(&producer_id).unwrap_or_else(|| ProducerEntry::unknown(producer_id));
        if let (Some(since), false) = (entry.transaction_first_offset, header.is_transactional()) {
            if self.order.contains(producer_id) {
                self.entries.insert(producer_id, entry);
            }
            return Err(ReplayError::ForeignBatch { producer_id, offset: header.base_offset, since });
        }
        entry.take_epoch(raw_epoch(header));
        let last = header.last_offset;
        let timestamp = header.max_timestamp.unwrap_or(TimestampMs(NONE.into()));
        entry.remember(RememberedBatch {
            last_sequence: header.last_sequence().unwrap_or(Sequence(NONE.into())),
            last_offset: last,
            offset_delta: header.last_offset_delta,
            timestamp,
        });
        entry.timestamp = timestamp;
        if header.is_transactional() && entry.transaction_first_offset.is_none() {
            entry.transaction_first_offset = Some(header.base_offset);
            self.open.open(OpenTransaction { first_offset: header.base_offset, producer_id });
        }
        self.put(entry);
        Ok(None)
    }

    fn append_control(
        &mut self,
        producer_id: ProducerId,
        header: &BatchHeader,
        marker: Option<&EndMarker>,
    ) -> Result<Option<EndedTransaction>, ReplayError> {
        let mut entry = self.entries.get(&producer_id).cloned().unwrap_or_else(|| ProducerEntry::unknown(producer_id));
        let Some(marker) = marker else {
            self.put(entry);
            return Ok(None);
        };
        let ended = match entry.transaction_first_offset {
            None => None,
            Some(first_offset) => {
                let last_stable_offset = self.open.stable_after(producer_id, header.base_offset);
                if self.open.close(first_offset).is_none() {
                    return Err(ReplayError::NeverBegun { producer_id, offset: header.base_offset });
                }
                let outcome = marker.outcome;
                let last_offset = header.base_offset;
                Some(EndedTransaction { producer_id, first_offset, last_offset, outcome, last_stable_offset })
            }
        };
        entry.take_epoch(raw_epoch(header));
        entry.coordinator_epoch = marker.coordinator_epoch;
        entry.timestamp = marker.timestamp;
        entry.transaction_first_offset = None;
        self.put(entry);
        Ok(ended)
    }

    fn put(&mut self, entry: ProducerEntry) {
        self.order.insert(entry.producer_id);
        self.entries.insert(entry.producer_id, entry);
    }

    /// Forgets the producers that have been idle for too long, as a running broker does every ten minutes.
    pub fn expire(&mut self, now: TimestampMs, expiration_ms: i64) {
        let order = &mut self.order;
        self.entries.retain(|producer_id, entry| {
            let is_expired = entry.is_expired(now, expiration_ms);
            if is_expired {
                order.remove(*producer_id);
            }
            !is_expired
        });
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.order.clear();
        self.open.clear();
    }

    /// Whether no producer is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many producers are known.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// What is known of a producer.
    pub fn get(&self, producer_id: ProducerId) -> Option<&ProducerEntry> {
        self.entries.get(&producer_id)
    }

    /// All producers, in the order in which a broker since 3.5 writes them: that of a Java hash map filled in the order in which
    /// they came.
    pub fn entries(&self) -> impl Iterator<Item = &ProducerEntry> {
        self.order.iter().filter_map(|producer_id| self.entries.get(&producer_id))
    }

    /// The transactions that are open.
    pub fn open_transactions(&self) -> &OpenTransactions {
        &self.open
    }
}

/// The producer of a batch as a broker sees it: any id above -1 counts (`RecordBatch.hasProducerId`).
fn producer_of(header: &BatchHeader) -> Option<ProducerId> {
    header.producer_id.filter(|producer_id| producer_id.0 >= 0)
}

fn raw_epoch(header: &BatchHeader) -> ProducerEpoch {
    header.producer_epoch.unwrap_or(ProducerEpoch(NONE.into()))
}

/// The iteration order of a `java.util.HashMap<Long, _>`, which is that of the entries in a snapshot.
///
/// Buckets of eight and more become trees in Java; that is left out, since it takes tables of 64 buckets and keys made for it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct JavaHashOrder {
    buckets: Vec<Vec<ProducerId>>,
    len: usize,
}

impl JavaHashOrder {
    const FIRST_TABLE: usize = 16;

    /// The bucket of a key in a table whose size is a power of two.
    fn bucket_of(producer_id: ProducerId, table: usize) -> usize {
        let bits = producer_id.0 as u64;
        let hash = ((bits ^ (bits >> 32)) & 0xffff_ffff) as usize;
        (hash ^ (hash >> 16)) & table.saturating_sub(1)
    }

    fn bucket(&self, producer_id: ProducerId) -> Option<&Vec<ProducerId>> {
        self.buckets.get(Self::bucket_of(producer_id, self.buckets.len()))
    }

    fn contains(&self, producer_id: ProducerId) -> bool {
        self.bucket(producer_id).is_some_and(|bucket| bucket.contains(&producer_id))
    }

    fn insert(&mut self, producer_id: ProducerId) {
        if self.contains(producer_id) {
            return;
        }
        if self.buckets.is_empty() {
            self.buckets.resize(Self::FIRST_TABLE, Vec::new());
        }
        self.push(producer_id);
        self.len += 1;
        // Doubled once more than three quarters are used.
        if self.len > self.buckets.len() / 4 * 3 {
            let doubled = self.buckets.len().saturating_mul(2);
            let old = std::mem::take(&mut self.buckets);
            self.buckets.resize(doubled, Vec::new());
            old.into_iter().flatten().for_each(|producer_id| self.push(producer_id));
        }
    }

    fn push(&mut self, producer_id: ProducerId) {
        let table = self.buckets.len();
        if let Some(bucket) = self.buckets.get_mut(Self::bucket_of(producer_id, table)) {
            bucket.push(producer_id);
        }
    }

    /// The table keeps its size.
    fn remove(&mut self, producer_id: ProducerId) {
        let table = self.buckets.len();
        if let Some(bucket) = self.buckets.get_mut(Self::bucket_of(producer_id, table)) {
            let before = bucket.len();
            bucket.retain(|other| *other != producer_id);
            self.len -= before - bucket.len();
        }
    }

    fn clear(&mut self) {
        self.buckets.iter_mut().for_each(Vec::clear);
        self.len = 0;
    }

    fn iter(&self) -> impl Iterator<Item = ProducerId> + '_ {
        self.buckets.iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::transactions::TransactionOutcome;
    use super::*;
    use crate::format::{Attributes, LeaderEpoch, Position};

    const TRANSACTIONAL: i16 = 0x10;
    const CONTROL: i16 = 0x30;

    fn batch(producer_id: i64, offsets: (i64, i64), attributes: i16) -> BatchHeader {
        let delta = i32::try_from(offsets.1 - offsets.0).unwrap();
        BatchHeader {
            position: Position(0),
            size_bytes: 61,
            magic: 2,
            base_offset: Offset(offsets.0),
            last_offset: Offset(offsets.1),
            crc: 0,
            attributes: Attributes(attributes),
            leader_epoch: Some(LeaderEpoch(0)),
            last_offset_delta: delta,
            base_timestamp: Some(TimestampMs(2222)),
            max_timestamp: Some(TimestampMs(2222)),
            producer_id: Some(ProducerId(producer_id)),
            producer_epoch: Some(ProducerEpoch(2)),
            base_sequence: Some(Sequence(7)),
            records_count: Some(delta + 1),
        }
    }

    fn marker(outcome: TransactionOutcome) -> EndMarker {
        EndMarker { outcome, coordinator_epoch: 5, timestamp: TimestampMs(3333) }
    }

    fn end(
        state: &mut ProducerState,
        producer_id: i64,
        offset: i64,
        outcome: TransactionOutcome,
    ) -> Option<EndedTransaction> {
        state.append(&batch(producer_id, (offset, offset), CONTROL), Some(&marker(outcome))).unwrap()
    }

    #[test]
    fn a_transaction_opens_with_its_first_batch_and_ends_with_its_marker() {
        let mut state = ProducerState::default();
        assert_eq!(state.append(&batch(4000, (1, 2), TRANSACTIONAL), None), Ok(None));
        let entry = state.get(ProducerId(4000)).unwrap();
        assert_eq!(entry.last_batch().map(|b| (b.last_sequence, b.offset_delta)), Some((Sequence(8), 1)));
        assert_eq!((entry.timestamp, entry.transaction_first_offset), (TimestampMs(2222), Some(Offset(1))));
        let ended = end(&mut state, 4000, 3, TransactionOutcome::Aborted).unwrap();
        let aborted = ended.index_entry().unwrap();
        assert_eq!(
            (aborted.first_offset, aborted.last_offset, aborted.last_stable_offset),
            (Offset(1), Offset(3), Offset(4))
        );
        let entry = state.get(ProducerId(4000)).unwrap();
        assert_eq!((entry.timestamp, entry.coordinator_epoch), (TimestampMs(3333), 5));
        assert_eq!((entry.transaction_first_offset, entry.last_data_offset()), (None, Some(Offset(2))));
        assert!(state.open_transactions().is_empty());
    }

    #[test]
    fn the_last_stable_offset_of_an_abort_is_where_another_transaction_is_still_open() {
        let mut state = ProducerState::default();
        state.append(&batch(1, (0, 0), TRANSACTIONAL), None).unwrap();
        state.append(&batch(2, (2, 2), TRANSACTIONAL), None).unwrap();
        assert_eq!(state.open_transactions().first_unstable_offset(Offset(1)), Some(Offset(1)));
        assert_eq!(end(&mut state, 1, 3, TransactionOutcome::Aborted).unwrap().last_stable_offset, Offset(2));
        assert_eq!(end(&mut state, 2, 4, TransactionOutcome::Aborted).unwrap().last_stable_offset, Offset(5));
    }

    #[test]
    fn a_marker_of_a_higher_epoch_forgets_the_batches_and_one_without_data_ends_nothing() {
        let mut state = ProducerState::default();
        state.append(&batch(9, (0, 0), TRANSACTIONAL), None).unwrap();
        let mut bumped = batch(9, (1, 1), CONTROL);
        bumped.producer_epoch = Some(ProducerEpoch(3));
        assert!(state.append(&bumped, Some(&marker(TransactionOutcome::Committed))).unwrap().is_some());
        let entry = state.get(ProducerId(9)).unwrap();
        assert_eq!((entry.epoch, entry.batches.len()), (ProducerEpoch(3), 0));
        assert_eq!(end(&mut state, 9, 2, TransactionOutcome::Aborted), None);
    }

    #[test]
    fn an_emptied_marker_leaves_a_bare_entry_that_counts_as_expired() {
        let mut state = ProducerState::default();
        assert_eq!(state.append(&batch(9, (1, 1), CONTROL), None), Ok(None));
        assert_eq!(state.get(ProducerId(9)), Some(&ProducerEntry::unknown(ProducerId(9))));
        let reloaded = ProducerState::from_snapshot(state.entries().cloned(), TimestampMs(90_000_000), 86_400_000);
        assert!(reloaded.is_empty());
    }

    #[test]
    fn a_batch_outside_of_the_open_transaction_is_refused_and_changes_nothing() {
        let mut state = ProducerState::default();
        state.append(&batch(9, (5, 5), TRANSACTIONAL), None).unwrap();
        let before = state.clone();
        let refused = state.append(&batch(9, (6, 6), 0), None);
        let expected = ReplayError::ForeignBatch { producer_id: ProducerId(9), offset: Offset(6), since: Offset(5) };
        assert_eq!((refused, state), (Err(expected), before));
    }

    #[test]
    fn five_batches_are_remembered_and_open_transactions_never_expire() {
        let mut state = ProducerState::default();
        for offset in 0..7 {
            state.append(&batch(1, (offset, offset), 0), None).unwrap();
        }
        assert_eq!(state.get(ProducerId(1)).map(|entry| entry.batches.len()), Some(5));
        state.append(&batch(2, (7, 7), TRANSACTIONAL), None).unwrap();
        state.expire(TimestampMs(i64::MAX), 1);
        assert_eq!(state.entries().map(|entry| entry.producer_id).collect::<Vec<_>>(), [ProducerId(2)]);
    }

    #[test]
    fn entries_come_in_the_order_of_a_java_hash_map() {
        let mut state = ProducerState::default();
        // 17 follows 1 in its bucket until the table is doubled by the thirteenth key.
        for producer_id in [17, 1, 33, 5, 1 << 32, 4, 16] {
            state.append(&batch(producer_id, (0, 0), 0), None).unwrap();
        }
        let order = |state: &ProducerState| state.entries().map(|entry| entry.producer_id.0).collect::<Vec<_>>();
        assert_eq!(order(&state), [16, 17, 1, 33, 1 << 32, 4, 5]);
        for producer_id in 100..106 {
            state.append(&batch(producer_id, (0, 0), 0), None).unwrap();
        }
        assert_eq!(order(&state), [1, 33, 1 << 32, 4, 100, 5, 101, 102, 103, 104, 105, 16, 17]);
    }
}

//! What a broker remembers of the producers while it appends: source of the snapshots and of the transaction indexes.

use std::collections::BTreeMap;

use super::Batch;
use super::files::{AbortedTransaction, Producer};

/// Producers by id, as they are after some appends.
#[derive(Debug, Clone, Default)]
pub(crate) struct Producers {
    by_id: BTreeMap<i64, Producer>,
}

impl Producers {
    /// Entries of a snapshot taken now.
    pub(crate) fn snapshot(&self) -> Vec<Producer> {
        self.by_id.values().copied().collect()
    }

    /// Takes a batch into account; an ABORT marker that ends a transaction gives the entry of its index.
    pub(crate) fn append(&mut self, batch: &Batch) -> Option<AbortedTransaction> {
        if batch.producer_id < 0 {
            return None;
        }
        if batch.is_control() {
            return self.end_transaction(batch);
        }
        let producer = self.entry(batch);
        producer.last_sequence = batch.last_sequence();
        producer.last_offset = batch.last_offset();
        producer.offset_delta = batch.computed_last_offset_delta();
        producer.timestamp_ms = batch.computed_max_timestamp();
        if batch.is_transactional() && producer.transaction_first_offset < 0 {
            producer.transaction_first_offset = batch.base_offset;
        }
        None
    }

    fn end_transaction(&mut self, batch: &Batch) -> Option<AbortedTransaction> {
        let record = batch.records.first()?;
        let aborted = record.key.as_ref()?[2..4] == [0, 0];
        let coordinator_epoch: [u8; 4] = record.value.as_ref()?[2..6].try_into().unwrap();
        let producer = self.entry(batch);
        let first_offset = std::mem::replace(&mut producer.transaction_first_offset, -1);
        producer.coordinator_epoch = i32::from_be_bytes(coordinator_epoch);
        producer.timestamp_ms = record.timestamp_ms;
        let open = self.by_id.values().map(|producer| producer.transaction_first_offset).filter(|offset| *offset >= 0);
        let last_stable_offset = open.min().unwrap_or(batch.base_offset + 1);
        let (producer_id, last_offset) = (batch.producer_id, batch.base_offset);
        (aborted && first_offset >= 0).then_some(AbortedTransaction {
            producer_id,
            first_offset,
            last_offset,
            last_stable_offset,
        })
    }

    /// The producer's entry in the batch's epoch; a new epoch forgets the sequence.
    fn entry(&mut self, batch: &Batch) -> &mut Producer {
        let fresh = Producer {
            id: batch.producer_id,
            epoch: batch.producer_epoch,
            last_sequence: -1,
            last_offset: -1,
            offset_delta: 0,
            timestamp_ms: -1,
            coordinator_epoch: -1,
            transaction_first_offset: -1,
        };
        let producer = self.by_id.entry(batch.producer_id).or_insert(fresh);
        if producer.epoch != batch.producer_epoch {
            let Producer { coordinator_epoch, transaction_first_offset, .. } = *producer;
            *producer = Producer { coordinator_epoch, transaction_first_offset, ..fresh };
        }
        producer
    }
}

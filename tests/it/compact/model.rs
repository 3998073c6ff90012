//! What a cleaner does, in the plainest words: batches as lists of records, transactions as they were meant, no bytes. Nothing of
//! the code under test is used.

use std::collections::{BTreeMap, HashMap};

use crate::synth::control::Marker;
use crate::synth::{Batch, Partition, Record, Unit};

/// Which rules hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Era {
    /// Tombstones and markers go by times of segments.
    V2_8,
    /// By horizons in batches.
    V3_9,
    /// The last batch of a round stays.
    V4_3,
    /// The last batch below the high watermark stays.
    V4_4,
}

impl Era {
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::V2_8 => "2.8",
            Self::V3_9 => "3.9",
            Self::V4_3 => "4.3",
            Self::V4_4 => "4.4",
        }
    }
}

/// A record and its offset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ModelRecord {
    pub(crate) offset: i64,
    pub(crate) record: Record,
}

/// A batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ModelBatch {
    pub(crate) base: i64,
    pub(crate) last: i64,
    pub(crate) producer: (i64, i16, i32),
    pub(crate) leader_epoch: i32,
    pub(crate) codec: u8,
    pub(crate) is_transactional: bool,
    pub(crate) marker: Option<Marker>,
    pub(crate) horizon: Option<i64>,
    pub(crate) max_timestamp: i64,
    pub(crate) records: Vec<ModelRecord>,
}

/// A segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ModelSegment {
    pub(crate) base: i64,
    pub(crate) modified: i64,
    pub(crate) batches: Vec<ModelBatch>,
}

/// A transaction as it was meant.
#[derive(Clone, Copy, Debug)]
struct Transaction {
    producer: i64,
    first: i64,
    marker: Option<(i64, Marker)>,
}

/// What a broker still knows of a producer.
#[derive(Clone, Copy, Debug)]
struct LastWord {
    data_offset: Option<i64>,
    epoch: i16,
    timestamp: i64,
    is_open: bool,
}

/// A log.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) segments: Vec<ModelSegment>,
    transactions: Vec<Transaction>,
    producers: HashMap<i64, LastWord>,
    pub(crate) end: i64,
}

/// The circumstances of a round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances {
    pub(crate) era: Era,
    pub(crate) now: i64,
    pub(crate) first_dirty: i64,
    pub(crate) high_watermark: i64,
    pub(crate) delete_retention_ms: i64,
    pub(crate) producer_expiration_ms: i64,
    pub(crate) most_keys: usize,
    pub(crate) segment_bytes: u64,
}

/// What a round came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ModelRound {
    pub(crate) first_uncleanable: i64,
    pub(crate) end: i64,
}

impl Model {
    /// Of a partition whose files were all modified at the times given.
    pub(crate) fn of(partition: &Partition, modified: &dyn Fn(i64) -> i64) -> Self {
        let segments = partition.segments.iter().map(|segment| ModelSegment {
            base: segment.base_offset,
            modified: modified(segment.base_offset),
            batches: segment.units.iter().map(batch_of).collect(),
        });
        let mut model = Self {
            segments: segments.collect(),
            transactions: Vec::new(),
            producers: HashMap::new(),
            end: partition.log_end_offset(),
        };
        model.replay();
        model
    }

    fn replay(&mut self) {
        let mut open: HashMap<i64, usize> = HashMap::new();
        for batch in self.segments.iter().flat_map(|segment| &segment.batches) {
            let (producer, epoch, _) = batch.producer;
            if producer < 0 {
                continue;
            }
            let word = self.producers.entry(producer).or_insert(LastWord {
                data_offset: None,
                epoch,
                timestamp: -1,
                is_open: false,
            });
            if word.epoch != epoch {
                (word.epoch, word.data_offset) = (epoch, None);
            }
            word.timestamp = batch.max_timestamp;
            match batch.marker {
                None => {
                    word.data_offset = Some(batch.last);
                    if batch.is_transactional && !open.contains_key(&producer) {
                        open.insert(producer, self.transactions.len());
                        self.transactions.push(Transaction { producer, first: batch.base, marker: None });
                        word.is_open = true;
                    }
                }
                Some(marker) => {
                    word.is_open = false;
                    if let Some(index) = open.remove(&producer) {
                        self.transactions[index].marker = Some((batch.base, marker));
                    }
                }
            }
        }
    }

    fn transaction_of(&self, batch: &ModelBatch) -> Option<&Transaction> {
        self.transactions.iter().find(|transaction| {
            let end = transaction.marker.map_or(i64::MAX, |(offset, _)| offset);
            batch.is_transactional
                && transaction.producer == batch.producer.0
                && (transaction.first..=end).contains(&batch.base)
        })
    }

    fn is_aborted_data(&self, batch: &ModelBatch) -> bool {
        let of = self.transaction_of(batch).and_then(|transaction| transaction.marker);
        batch.marker.is_none() && matches!(of, Some((_, Marker::Abort)))
    }

    pub(crate) fn active_base(&self) -> i64 {
        self.segments.last().unwrap().base
    }

    /// Where a round has to end.
    fn first_uncleanable(&self, round: &Circumstances) -> i64 {
        let open = self.transactions.iter().filter(|transaction| transaction.marker.is_none());
        let mut bound = open.map(|transaction| transaction.first).min().unwrap_or(i64::MAX).min(self.active_base());
        if round.era >= Era::V3_9 {
            bound = bound.min(round.high_watermark);
        }
        let bound = bound.max(round.first_dirty);
        let holding = self.segments.iter().rev().find(|segment| segment.base <= bound);
        holding.map_or(self.active_base(), |segment| segment.base).min(self.active_base())
    }

    /// Latest offsets of keys in the dirty part, and how far they go.
    fn latest(&self, round: &Circumstances, until: i64) -> (HashMap<Vec<u8>, i64>, i64) {
        let mut latest = HashMap::new();
        let mut reached = -1;
        let floor = self.segments.iter().rev().find(|segment| segment.base <= round.first_dirty).map_or(0, |s| s.base);
        let dirty: Vec<&ModelSegment> =
            self.segments.iter().filter(|segment| segment.base >= floor && segment.base < until).collect();
        for (index, segment) in dirty.iter().enumerate() {
            for batch in &segment.batches {
                if batch.marker.is_none() && !self.is_aborted_data(batch) {
                    for ModelRecord { offset, record } in &batch.records {
                        let Some(key) = record.key.as_ref().filter(|_| *offset >= round.first_dirty) else { continue };
                        if latest.len() >= round.most_keys {
                            return (latest, reached);
                        }
                        latest.insert(key.clone(), *offset);
                        reached = *offset;
                    }
                }
                if batch.last >= round.first_dirty {
                    reached = batch.last;
                }
            }
            reached = dirty.get(index + 1).map_or(until, |next| next.base) - 1;
        }
        (latest, reached)
    }

    /// Makes a round. `sizes` are the bytes of each segment's log, offset index and time index.
    pub(crate) fn clean(
        &mut self,
        round: &Circumstances,
        sizes: &BTreeMap<i64, (u64, u64, u64)>,
    ) -> Option<ModelRound> {
        let until = self.first_uncleanable(round);
        let dirty_bytes = sizes.range(..until).filter(|(base, _)| {
            let next = self.segments.iter().find(|segment| segment.base > **base).map_or(i64::MAX, |s| s.base);
            next > round.first_dirty
        });
        if round.first_dirty >= until || dirty_bytes.map(|(_, size)| size.0).sum::<u64>() == 0 {
            return None;
        }
        let (latest, reached) = self.latest(round, until);
        let end = reached + 1;
        let clean = self.segments.iter().rfind(|segment| segment.base < round.first_dirty);
        let segment_horizon = clean.map_or(0, |segment| segment.modified - round.delete_retention_ms);
        let count = self.segments.iter().filter(|segment| segment.base < end).count();
        let cleaned: Vec<ModelSegment> = self.segments[..count]
            .iter()
            .map(|segment| ModelSegment {
                batches: self.clean_segment(segment, round, until, (&latest, reached), segment_horizon),
                ..segment.clone()
            })
            .collect();
        let rest = self.segments.split_off(count);
        self.segments = group(cleaned, sizes, round, until);
        self.segments.extend(rest);
        Some(ModelRound { first_uncleanable: until, end })
    }

    fn clean_segment(
        &self,
        segment: &ModelSegment,
        round: &Circumstances,
        until: i64,
        (latest, reached): (&HashMap<Vec<u8>, i64>, i64),
        segment_horizon: i64,
    ) -> Vec<ModelBatch> {
        let goes_by_time = round.era == Era::V2_8 && segment.modified <= segment_horizon;
        let mut out = Vec::new();
        for batch in &segment.batches {
            let has_data = self.has_data_before(batch);
            let can_go = match batch.marker {
                None => self.is_aborted_data(batch),
                // A marker that an earlier round has emptied.
                Some(_) if batch.records.is_empty() => true,
                Some(_) => !has_data,
            };
            let time_is_over = batch.horizon.is_some_and(|horizon| horizon <= round.now);
            let discards = can_go && (batch.marker.is_none() || goes_by_time || time_is_over);
            let stays_empty = self.is_last_word(batch, round)
                || (round.era == Era::V4_3 && batch.last + 1 == until)
                || (round.era == Era::V4_4 && batch.last + 1 == round.high_watermark);
            let keeps = |ModelRecord { offset, record }: &ModelRecord| {
                if discards {
                    return false;
                }
                if batch.marker.is_some() || *offset > reached {
                    return true;
                }
                let Some(key) = &record.key else { return false };
                let tombstones_stay = match round.era {
                    Era::V2_8 => !goes_by_time,
                    _ => batch.horizon.is_none_or(|horizon| round.now < horizon),
                };
                latest.get(key).is_none_or(|latest| *offset >= *latest) && (record.value.is_some() || tombstones_stay)
            };
            let records: Vec<ModelRecord> = batch.records.iter().filter(|record| keeps(record)).cloned().collect();
            if records.is_empty() {
                if stays_empty {
                    out.push(ModelBatch { codec: 0, horizon: None, records, ..batch.clone() });
                }
                continue;
            }
            let has_tombstone = records.iter().any(|record| record.record.value.is_none());
            let is_stamped = round.era >= Era::V3_9
                && batch.horizon.is_none()
                && (has_tombstone || (batch.marker.is_some() && can_go));
            let horizon = if is_stamped { Some(round.now + round.delete_retention_ms) } else { batch.horizon };
            let is_rebuilt = is_stamped || records.len() < batch.records.len();
            let largest = records.iter().map(|record| record.record.timestamp_ms).max().unwrap().max(-1);
            let max_timestamp = if is_rebuilt { largest } else { batch.max_timestamp };
            out.push(ModelBatch { horizon, max_timestamp, records, ..batch.clone() });
        }
        out
    }

    /// Whether data of the marker's transaction is left, headers without records included.
    fn has_data_before(&self, marker: &ModelBatch) -> bool {
        let Some(transaction) = self.transaction_of(marker) else { return false };
        let all = self.segments.iter().flat_map(|segment| &segment.batches);
        all.filter(|batch| batch.marker.is_none() && batch.producer.0 == marker.producer.0 && batch.is_transactional)
            .any(|batch| (transaction.first..marker.base).contains(&batch.base))
    }

    fn is_last_word(&self, batch: &ModelBatch, round: &Circumstances) -> bool {
        let (producer, epoch, _) = batch.producer;
        let Some(word) = self.producers.get(&producer) else { return false };
        if !word.is_open && round.now - word.timestamp >= round.producer_expiration_ms {
            return false;
        }
        match word.data_offset {
            Some(offset) => batch.last == offset,
            None => batch.marker.is_some() && epoch == word.epoch,
        }
    }

    /// What a consumer that reads committed data ends up with: the last value of each key, tombstones left out.
    pub(crate) fn last_values(&self) -> BTreeMap<Vec<u8>, (i64, Vec<u8>)> {
        let mut values = BTreeMap::new();
        for batch in self.segments.iter().flat_map(|segment| &segment.batches) {
            let is_open = self.transaction_of(batch).is_some_and(|transaction| transaction.marker.is_none());
            if batch.marker.is_some() || is_open || self.is_aborted_data(batch) {
                continue;
            }
            for ModelRecord { offset, record } in &batch.records {
                let Some(key) = record.key.clone() else { continue };
                match record.value.clone() {
                    Some(value) => values.insert(key, (*offset, value)),
                    None => values.remove(&key),
                };
            }
        }
        values
    }
}

fn group(
    cleaned: Vec<ModelSegment>,
    sizes: &BTreeMap<i64, (u64, u64, u64)>,
    round: &Circumstances,
    until: i64,
) -> Vec<ModelSegment> {
    let bases: Vec<i64> = cleaned.iter().map(|segment| segment.base).collect();
    let mut groups: Vec<(ModelSegment, (u64, u64, u64))> = Vec::new();
    for (index, segment) in cleaned.into_iter().enumerate() {
        let size = sizes[&segment.base];
        let last = bases.get(index + 1).copied().unwrap_or(until) - 1;
        match groups.last_mut() {
            Some((open, sum))
                if sum.0 + size.0 <= round.segment_bytes
                    && sum.1 + size.1 <= 10_485_760
                    && sum.2 + size.2 <= 10_485_760
                    && (size.0 == 0 && round.era > Era::V2_8 || last - open.base <= i64::from(i32::MAX)) =>
            {
                open.modified = segment.modified;
                open.batches.extend(segment.batches);
                *sum = (sum.0 + size.0, sum.1 + size.1, sum.2 + size.2);
            }
            _ => groups.push((segment, size)),
        }
    }
    groups.into_iter().map(|(segment, _)| segment).collect()
}

fn batch_of(unit: &Unit) -> ModelBatch {
    let Unit::Batch(batch) = unit else { panic!("the model knows no legacy messages") };
    let Batch { base_offset, records, .. } = batch;
    let marker = batch.is_control().then(|| {
        let kind = records[0].key.as_ref().unwrap()[3];
        if kind == 0 { Marker::Abort } else { Marker::Commit }
    });
    let with_offset = |(place, record): (i64, &Record)| ModelRecord {
        offset: base_offset + record.offset_delta.map_or(place, i64::from),
        record: record.clone(),
    };
    ModelBatch {
        base: *base_offset,
        last: batch.last_offset(),
        producer: (batch.producer_id, batch.producer_epoch, batch.base_sequence),
        leader_epoch: batch.leader_epoch,
        codec: batch.codec.id,
        is_transactional: batch.is_transactional(),
        marker,
        horizon: None,
        max_timestamp: batch.computed_max_timestamp(),
        records: (0..).zip(records).map(with_offset).collect(),
    }
}

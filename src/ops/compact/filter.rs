//! What stays of a batch, by the cleaner's rules (`Cleaner.cleanInto`'s `RecordFilter`, `MemoryRecords.filterTo`).

use std::collections::HashMap;

use super::cleaner::Value;
use super::key_map::{Digest, DigestKey, KeyMap};
use super::transactions::TransactionFate;
use super::view::BatchView;
use crate::format::record::Record;
use crate::format::{BatchHeader, Offset, ProducerEpoch, ProducerId, TimestampMs};
use crate::ops::broker::cleaner_rules::{CleanerRules, ControlRecords, DeleteRetention};
use crate::ops::broker::producers::ProducerState;

/// What a broker last heard of a producer that it still knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct LastRecord {
    data_offset: Option<Offset>,
    epoch: ProducerEpoch,
}

/// The batches that stay whatever becomes of their records, because they are the last word of a producer.
#[derive(Clone, Default, Debug)]
pub(super) struct LastRecords {
    by_producer: HashMap<ProducerId, LastRecord>,
}

impl LastRecords {
    /// Of all producers that are known (`UnifiedLog.lastRecordsOfActiveProducers`).
    pub(super) fn of(state: &ProducerState) -> Self {
        let entries = state.entries().map(|entry| {
            let data_offset = entry.last_data_offset().filter(|offset| offset.0 >= 0);
            (entry.producer_id, LastRecord { data_offset, epoch: entry.epoch })
        });
        Self { by_producer: entries.collect() }
    }

    fn protects(&self, header: &BatchHeader) -> bool {
        let Some(producer_id) = header.producer_id.filter(|producer_id| producer_id.0 >= 0) else { return false };
        self.by_producer.get(&producer_id).is_some_and(|last| match last.data_offset {
            Some(offset) => header.last_offset == offset,
            None => header.is_control() && header.producer_epoch.unwrap_or(ProducerEpoch(-1)) == last.epoch,
        })
    }
}

/// What becomes of a batch before its records are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Retention {
    /// It goes, records and all.
    Delete,
    /// It stays, if only as a header.
    RetainEmpty,
    /// It goes if no record stays.
    DeleteEmpty,
}

/// The verdict on a batch before its records are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Judged {
    /// What becomes of it.
    pub(super) retention: Retention,
    /// Whether its records go in any case.
    pub(super) records: RecordsFate,
    /// Whether its transaction is known to have no data any more.
    pub(super) marker: MarkerState,
}

/// Whether the records of a batch are asked about one by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RecordsFate {
    /// They are.
    Examined,
    /// They all go.
    Discarded,
}

/// Whether a batch is a marker that has nothing left to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MarkerState {
    /// It is.
    OfEmptyTransaction,
    /// It is not, or it is no marker.
    Other,
}

/// What becomes of a record, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RecordFate {
    /// It stays.
    Kept,
    /// A later record has its key.
    Superseded,
    /// It is a tombstone whose time is over.
    Tombstone,
    /// It belongs to an aborted transaction.
    Aborted,
    /// It is a marker that has nothing left to end.
    Marker,
    /// It has no key.
    Unkeyed,
}

/// Whether tombstones and markers of a segment stay, where its own time decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SegmentDeletes {
    /// They stay.
    Retained,
    /// They go.
    Discarded,
}

/// The rules of one round.
#[derive(Debug)]
pub(super) struct RoundFilter<'r> {
    /// The version's rules.
    pub(super) rules: CleanerRules,
    /// Latest offsets by key.
    pub(super) map: &'r KeyMap,
    /// The secret of its digests.
    pub(super) digest_key: DigestKey,
    /// The last offset that the map speaks of.
    pub(super) latest_mapped: Offset,
    /// The last words of producers.
    pub(super) last_records: &'r LastRecords,
    /// The batch that ends before this offset stays.
    pub(super) protected_end: Option<Offset>,
    /// The time of the round.
    pub(super) now: TimestampMs,
    /// `delete.retention.ms`.
    pub(super) delete_retention_ms: i64,
}

impl RoundFilter<'_> {
    /// `checkBatchRetention`, once the batch's transaction is known.
    pub(super) fn judge(&self, view: &BatchView<'_>, fate: TransactionFate, segment: SegmentDeletes) -> Judged {
        let header = &view.header;
        let can_go = fate == TransactionFate::CanGo;
        let marker_is_over = match self.rules.delete_retention {
            DeleteRetention::SegmentTime => segment == SegmentDeletes::Discarded,
            rule @ DeleteRetention::BatchHorizon => view.horizon(rule).is_some_and(|horizon| horizon <= self.now),
        };
        let discards = can_go && (!header.is_control() || marker_is_over);
        let retention = match () {
            () if self.last_records.protects(header) => Retention::RetainEmpty,
            () if self.protected_end == Some(header.next_offset()) => Retention::RetainEmpty,
            () if discards => Retention::Delete,
            () => Retention::DeleteEmpty,
        };
        Judged {
            retention,
            records: if discards { RecordsFate::Discarded } else { RecordsFate::Examined },
            marker: if can_go && header.is_control() { MarkerState::OfEmptyTransaction } else { MarkerState::Other },
        }
    }

    /// `shouldRetainRecord`, as far as the record's key does not matter; `None` where it does.
    pub(super) fn fate_without_key(
        &self,
        view: &BatchView<'_>,
        records: RecordsFate,
        record: &Record<'_>,
    ) -> Option<RecordFate> {
        let is_control = view.header.is_control();
        if records == RecordsFate::Discarded {
            return Some(if is_control { RecordFate::Marker } else { RecordFate::Aborted });
        }
        if is_control && self.rules.control_records == ControlRecords::Exempt {
            return Some(RecordFate::Kept);
        }
        (record.offset > self.latest_mapped).then_some(RecordFate::Kept)
    }

    /// The rest of `shouldRetainRecord`.
    pub(super) fn fate_of_key(
        &self,
        view: &BatchView<'_>,
        segment: SegmentDeletes,
        digest: Digest,
        (offset, value): (Offset, Value),
    ) -> RecordFate {
        if self.map.latest(digest).is_some_and(|latest| offset < latest) {
            return if view.header.is_control() { RecordFate::Marker } else { RecordFate::Superseded };
        }
        if value == Value::Present || self.keeps_tombstones(view, segment) {
            RecordFate::Kept
        } else {
            RecordFate::Tombstone
        }
    }

    /// `now + delete.retention.ms`; a sum beyond 64 bits wraps to a negative number, which is no horizon.
    pub(super) fn new_horizon(&self) -> TimestampMs {
        TimestampMs(self.now.0.wrapping_add(self.delete_retention_ms))
    }

    fn keeps_tombstones(&self, view: &BatchView<'_>, segment: SegmentDeletes) -> bool {
        match self.rules.delete_retention {
            rule @ DeleteRetention::BatchHorizon if !view.header.is_legacy() => {
                view.horizon(rule).is_none_or(|horizon| self.now < horizon)
            }
            _ => segment == SegmentDeletes::Retained,
        }
    }
}

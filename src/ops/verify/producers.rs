//! Producers and transactions along a log: what idempotence would have refused, what is left open, and what the producer snapshots
//! say against what the log says.

use std::collections::HashMap;

use super::context::{Place, SegmentContext};
use super::segment::ProducerBatch;
use super::snapshot::{Knowledge, SnapshotFile, compare};
use crate::format::{BatchHeader, Offset, Position, ProducerId, TimestampMs};
use crate::ops::broker::producers::{ProducerState, ReplayError};
use crate::ops::broker::transactions::{EndedTransaction, TransactionOutcome};
use crate::ops::{Fact, Finding, FindingId, Severity};

/// Producers that are followed in one partition. A broker holds them all; a log with more is looked at without this check.
const MOST_PRODUCERS: usize = 200_000;
/// How long a transaction may be open before it counts as hanging (`kafka-transactions.sh find-hanging`).
const HANGING_AFTER_MS: i64 = 15 * 60 * 1000;

/// An abort marker of the segment being read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AbortMarker {
    pub(super) producer_id: ProducerId,
    pub(super) offset: Offset,
    /// The transaction that it ended, if the log holds its data.
    pub(super) ended: Option<EndedTransaction>,
}

/// A producer's last batch or marker.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastSeen {
    pub(super) offset: Offset,
    /// Places before its last data batch where offsets are missing.
    gaps: u64,
}

/// Where a transaction began.
#[derive(Clone, Debug)]
struct Begun {
    place: Place,
    position: Position,
    size_bytes: u64,
}

/// Follows the producers of one partition.
#[derive(Debug)]
pub(super) struct ProducerFold {
    state: ProducerState,
    snapshots: Vec<SnapshotFile>,
    next_snapshot: usize,
    /// Whether the log goes back to its very first offset, so that no producer can be unknown to it.
    start: Knowledge,
    /// What lies before it may be unknown to a broker.
    log_start: Offset,
    /// Places so far where offsets are missing.
    gaps: u64,
    /// Each producer's last batch or marker.
    last_seen: HashMap<ProducerId, LastSeen>,
    begun: HashMap<ProducerId, Begun>,
    pub(super) aborts: Vec<AbortMarker>,
    is_over: bool,
    pub(super) has_producers: bool,
}

impl ProducerFold {
    pub(super) fn new(snapshots: Vec<SnapshotFile>, start: Knowledge, log_start: Offset) -> Self {
        Self {
            state: ProducerState::default(),
            snapshots,
            next_snapshot: 0,
            start,
            log_start,
            gaps: 0,
            last_seen: HashMap::new(),
            begun: HashMap::new(),
            aborts: Vec::new(),
            is_over: false,
            has_producers: false,
        }
    }

    /// Notes that offsets are missing before what comes next.
    pub(super) fn gap(&mut self) {
        self.gaps += 1;
    }

    /// Takes the next batch of a producer in.
    pub(super) fn batch(
        &mut self,
        batch: &ProducerBatch,
        place: &Place,
        context: &SegmentContext,
        out: &mut Vec<Finding>,
    ) {
        let header = &batch.header;
        self.gaps += u64::from(batch.follows_gap);
        self.compare_snapshots(header.base_offset, out);
        let Some(producer_id) = header.producer_id.filter(|id| id.0 >= 0 && !self.is_over) else { return };
        self.has_producers = true;
        if self.state.len() >= MOST_PRODUCERS && self.state.get(producer_id).is_none() {
            self.is_over = true;
            out.push(place.finding_at(FindingId::LimitReached, header.position, header.size_bytes));
            return;
        }
        self.check_before(producer_id, batch, place, context, out);
        let was_open = self.is_open(producer_id);
        match self.state.append(header, batch.marker.as_ref()) {
            Ok(ended) => self.note_marker(producer_id, batch, ended),
            Err(error) => out.push(replay_finding(&error, header, place, context)),
        }
        if !was_open && self.is_open(producer_id) {
            let begun = Begun { place: place.clone(), position: header.position, size_bytes: header.size_bytes };
            self.begun.insert(producer_id, begun);
        }
        let before = self.last_seen.get(&producer_id).filter(|_| header.is_control());
        let gaps = before.map_or(self.gaps, |seen| seen.gaps);
        let seen = LastSeen { offset: header.last_offset.max(header.base_offset), gaps };
        self.last_seen.insert(producer_id, seen);
    }

    fn is_open(&self, producer_id: ProducerId) -> bool {
        self.state.get(producer_id).is_some_and(|entry| entry.transaction_first_offset.is_some())
    }

    fn note_marker(&mut self, producer_id: ProducerId, batch: &ProducerBatch, ended: Option<EndedTransaction>) {
        if batch.marker.is_some_and(|marker| marker.outcome == TransactionOutcome::Aborted) {
            self.aborts.push(AbortMarker { producer_id, offset: batch.header.base_offset, ended });
        }
    }

    /// What a leader would have refused to append.
    fn check_before(
        &self,
        producer_id: ProducerId,
        batch: &ProducerBatch,
        place: &Place,
        context: &SegmentContext,
        out: &mut Vec<Finding>,
    ) {
        let (header, Some(entry)) = (&batch.header, self.state.get(producer_id)) else { return };
        let finding = |id: FindingId, expected: i64, found: i64| {
            let mut finding = place
                .finding_at(id, header.position, header.size_bytes)
                .with_facts(Fact::Number(expected), Fact::Number(found));
            finding.severity = context.log_severity(finding.severity);
            finding.location = finding.location.offsets(header.base_offset, header.last_offset);
            finding
        };
        let epoch = header.producer_epoch.map_or(-1, |epoch| epoch.0);
        if epoch < entry.epoch.0 {
            let id =
                if header.is_control() { FindingId::ControlEpochRegression } else { FindingId::ProducerSequenceGap };
            out.push(finding(id, i64::from(entry.epoch.0), i64::from(epoch)));
            return;
        }
        if let Some(marker) = batch.marker.filter(|_| header.is_control()) {
            if marker.coordinator_epoch < entry.coordinator_epoch {
                let (expected, found) = (i64::from(entry.coordinator_epoch), i64::from(marker.coordinator_epoch));
                out.push(finding(FindingId::ControlEpochRegression, expected, found));
            }
            return;
        }
        let (Some(last), Some(base)) = (entry.last_batch(), header.base_sequence) else { return };
        // Cleaning leaves gaps; a producer that was forgotten begins again at 0.
        let has_gap = self.last_seen.get(&producer_id).is_none_or(|seen| seen.gaps != self.gaps);
        if epoch != entry.epoch.0 || last.last_sequence.0 < 0 || base.0 <= 0 || has_gap {
            return;
        }
        let expected = last.last_sequence.increment(1);
        if base != expected {
            out.push(finding(FindingId::ProducerSequenceGap, i64::from(expected.0), i64::from(base.0)));
        }
    }

    /// Compares the snapshots that end at or before an offset that comes next.
    fn compare_snapshots(&mut self, next: Offset, out: &mut Vec<Finding>) {
        while let Some(snapshot) = self.snapshots.get(self.next_snapshot).filter(|snapshot| snapshot.offset <= next) {
            if !self.is_over {
                out.extend(compare(
                    snapshot,
                    &self.state,
                    &self.last_seen,
                    if self.gaps == 0 { self.start } else { Knowledge::Partial },
                    self.log_start,
                ));
            }
            self.next_snapshot += 1;
        }
    }

    /// The log ends at `end`: the rest of the snapshots, and the transactions that are open. `newest` is the largest timestamp of
    /// a data batch: markers have the broker's clock, which need not be that of the records.
    pub(super) fn finish(
        &mut self,
        end: Offset,
        newest: Option<TimestampMs>,
        context: &SegmentContext,
        out: &mut Vec<Finding>,
    ) {
        self.compare_snapshots(end, out);
        let left = self.snapshots.get(self.next_snapshot..).unwrap_or_default();
        out.extend(left.iter().filter_map(|snapshot| snapshot.beyond(end, context.shutdown)));
        for open in self.state.open_transactions().iter() {
            let Some(begun) = self.begun.get(&open.producer_id) else { continue };
            let last = self.state.get(open.producer_id).map_or(TimestampMs(-1), |entry| entry.timestamp);
            let age = newest.map_or(0, |newest| newest.0.saturating_sub(last.0));
            let hangs = age > HANGING_AFTER_MS;
            let id = if hangs { FindingId::TransactionHanging } else { FindingId::TransactionOpen };
            let mut finding = begun
                .place
                .finding_at(id, begun.position, begun.size_bytes)
                .with_facts(None, Fact::Number(open.producer_id.0));
            finding.severity = context.log_severity(finding.severity);
            finding.location = finding.location.offsets(open.first_offset, open.first_offset);
            out.push(finding);
        }
    }

    /// Whether offsets are missing anywhere so far.
    pub(super) fn has_gaps(&self) -> bool {
        self.gaps > 0
    }

    /// Whether no producer is known at the end.
    pub(super) fn is_empty(&self) -> bool {
        self.state.is_empty()
    }
}

/// What a start that replays the batch fails over.
fn replay_finding(error: &ReplayError, header: &BatchHeader, place: &Place, context: &SegmentContext) -> Finding {
    let (ReplayError::ForeignBatch { producer_id, .. } | ReplayError::NeverBegun { producer_id, .. }) = error;
    let mut finding = place
        .finding_at(FindingId::TransactionForeignBatch, header.position, header.size_bytes)
        .with_facts(None, Fact::Number(producer_id.0));
    finding.severity = context.log_severity(Severity::Critical);
    finding.location = finding.location.offsets(header.base_offset, header.last_offset);
    finding
}

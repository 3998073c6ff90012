//! Producer snapshots by themselves and against the producers that the log shows.
//!
//! A log shows less than a snapshot knows: what lies before its first segment is gone, cleaning removes batches, and a broker forgets
//! producers that have been idle. So a snapshot is wrong only where the log proves it.

use std::collections::{HashMap, HashSet};

use super::context::{DirectoryState, Place, Shutdown};
use super::producers::LastSeen;
use crate::format::producer_snapshot::{ProducerEntry, ProducerSnapshot};
use crate::format::{FormatErrorKind, Offset, Position, ProducerId, TimestampMs};
use crate::ops::broker::producers::{self, ProducerState};
use crate::ops::{Fact, Finding, FindingId, Severity};

/// The shortest time after which brokers forget an idle producer where nothing is set.
const EXPIRES_AFTER_MS: i64 = 86_400_000;

/// How much of a partition's past its log still shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Knowledge {
    /// All of it: what it does not show has never been.
    Whole,
    /// Earlier segments are gone, or batches are cleaned away.
    Partial,
}

/// A producer snapshot that can be read.
#[derive(Clone, Debug)]
pub(super) struct SnapshotFile {
    pub(super) offset: Offset,
    pub(super) place: Place,
    pub(super) modified: TimestampMs,
    pub(super) entries: Vec<ProducerEntry>,
    pub(super) directory: DirectoryState,
    size_bytes: u64,
}

/// Reads a snapshot: its content, or why a broker removes it.
pub(super) fn read(
    bytes: &[u8],
    offset: Offset,
    place: Place,
    modified: TimestampMs,
    directory: DirectoryState,
) -> Result<SnapshotFile, Box<Finding>> {
    let size_bytes = bytes.len() as u64;
    let finding = |id: FindingId, position: Position| {
        let finding = place.finding_at(id, position, size_bytes.saturating_sub(position.0));
        let severity = severity_in(directory, finding.severity);
        finding.with_severity(severity)
    };
    let snapshot = ProducerSnapshot::parse(bytes);
    if let Some(fault) = snapshot.fault {
        return Err(Box::new(match fault.kind {
            FormatErrorKind::ChecksumMismatch { stored, computed, .. } => {
                let facts = (Fact::Checksum(stored), Fact::Checksum(computed));
                finding(FindingId::SnapshotCrcMismatch, Position(0)).with_facts(facts.0, facts.1)
            }
            kind => finding(FindingId::SnapshotMalformed, fault.position.min(Position(size_bytes))).with_cause(kind),
        }));
    }
    Ok(SnapshotFile { offset, modified, entries: snapshot.content.entries, directory, size_bytes, place })
}

fn severity_in(directory: DirectoryState, usual: Severity) -> Severity {
    match directory {
        DirectoryState::Live => usual,
        DirectoryState::Metadata => usual.min(Severity::Warning),
        DirectoryState::Doomed | DirectoryState::Aside => usual.min(Severity::Info),
    }
}

impl SnapshotFile {
    fn finding(&self, id: FindingId, usual: Severity) -> Finding {
        let finding = self.place.finding_at(id, Position(0), self.size_bytes);
        finding.with_severity(severity_in(self.directory, usual))
    }

    fn mismatch(&self, producer_id: ProducerId, expected: Option<Fact>, severity: Severity) -> Finding {
        let finding = self.finding(FindingId::SnapshotStateMismatch, severity);
        finding.with_facts(expected, Fact::Text(format!("producer {producer_id}")))
    }

    /// A snapshot that ends beyond the log. After a crash the next start drops it.
    pub(super) fn beyond(&self, end: Offset, shutdown: Shutdown) -> Option<Finding> {
        let severity = if shutdown == Shutdown::Unclean { Severity::Warning } else { Severity::Error };
        (self.offset > end).then(|| {
            self.finding(FindingId::SnapshotStateMismatch, severity)
                .with_facts(Fact::Offset(end), Fact::Offset(self.offset))
        })
    }
}

/// What a snapshot says that the log disproves.
pub(super) fn compare(
    snapshot: &SnapshotFile,
    state: &ProducerState,
    last_seen: &HashMap<ProducerId, LastSeen>,
    knowledge: Knowledge,
    log_start: Offset,
) -> Option<Finding> {
    let mut seen = HashSet::new();
    for entry in &snapshot.entries {
        let is_twice = !seen.insert(entry.producer_id);
        let known = state.get(entry.producer_id);
        let beyond = |offset: Option<Offset>| offset.is_some_and(|offset| offset >= snapshot.offset);
        if is_twice || entry.producer_id.0 < 0 || beyond(entry.last_offset) || beyond(entry.current_txn_first_offset) {
            return Some(snapshot.mismatch(entry.producer_id, None, Severity::Error));
        }
        let seen = last_seen.get(&entry.producer_id).map(|seen| seen.offset);
        if is_stale(entry, known, seen) {
            let finding = snapshot.finding(FindingId::SnapshotOpenTransactionStale, Severity::Warning);
            let found = Fact::Text(format!("producer {}", entry.producer_id));
            return Some(finding.with_facts(None, found));
        }
        match known {
            None if knowledge == Knowledge::Whole => {
                return Some(snapshot.mismatch(entry.producer_id, None, Severity::Error));
            }
            Some(known) if contradicts(entry, known, seen, knowledge, log_start) => {
                let expected = known.last_data_offset().map(Fact::Offset);
                return Some(snapshot.mismatch(entry.producer_id, expected, Severity::Error));
            }
            _ => {}
        }
    }
    missing_producer(snapshot, state, &seen, knowledge)
}

/// Whether the snapshot has a transaction open that the log knows to be over.
fn is_stale(entry: &ProducerEntry, known: Option<&producers::ProducerEntry>, seen: Option<Offset>) -> bool {
    let is_over = known.is_some_and(|known| known.transaction_first_offset.is_none());
    // Where cleaning has removed what came after, the log only seems to know.
    is_over && entry.current_txn_first_offset.is_some_and(|first| seen.is_some_and(|seen| seen >= first))
}

fn contradicts(
    entry: &ProducerEntry,
    known: &producers::ProducerEntry,
    seen: Option<Offset>,
    knowledge: Knowledge,
    log_start: Offset,
) -> bool {
    let is_proof = knowledge == Knowledge::Whole;
    if entry.producer_epoch != known.epoch {
        // A marker that the cleaner has emptied leaves an entry without an epoch.
        return known.epoch.0 >= 0 && (entry.producer_epoch < known.epoch || is_proof);
    }
    let transactions = match (entry.current_txn_first_offset, known.transaction_first_offset) {
        (None, Some(_)) => is_proof,
        // A broker that replays the log from its start does not see what lies before.
        (Some(_), Some(seen)) if seen < log_start => false,
        (Some(said), Some(seen)) => said > seen || (is_proof && said != seen),
        _ => false,
    };
    // Brokers of 0.11 counted the marker as the producer's last batch.
    let is_marker = entry.last_offset.is_some() && entry.last_offset == seen && seen != known.last_data_offset();
    let batches = match (entry.last_offset, known.last_batch()) {
        _ if is_marker => false,
        (None, Some(_)) => true,
        (Some(_), None) => is_proof,
        (Some(said), Some(seen)) if said == seen.last_offset => {
            entry.last_sequence.map_or(-1, |sequence| sequence.0) != seen.last_sequence.0
                || entry.offset_delta != seen.offset_delta
        }
        (Some(said), Some(seen)) => said < seen.last_offset || is_proof,
        (None, None) => false,
    };
    transactions || batches
}

/// A producer that the snapshot should know: one with an open transaction is never forgotten, others only after a day of silence.
fn missing_producer(
    snapshot: &SnapshotFile,
    state: &ProducerState,
    seen: &HashSet<ProducerId>,
    knowledge: Knowledge,
) -> Option<Finding> {
    let missing = state.entries().filter(|known| !seen.contains(&known.producer_id));
    let mut worst: Option<Finding> = None;
    for known in missing {
        let is_open = knowledge == Knowledge::Whole && known.transaction_first_offset.is_some();
        let age = snapshot.modified.0.saturating_sub(known.timestamp.0);
        let is_fresh = known.timestamp.0 >= 0 && age < EXPIRES_AFTER_MS;
        if is_open || is_fresh {
            // How long a broker remembers is a setting: the others may only have been forgotten early.
            let severity = if is_open { Severity::Error } else { Severity::Info };
            let expected = known.last_data_offset().map(Fact::Offset);
            let finding = snapshot.mismatch(known.producer_id, expected, severity);
            if worst.as_ref().is_none_or(|worst| worst.severity < finding.severity) {
                worst = Some(finding);
            }
        }
    }
    worst
}

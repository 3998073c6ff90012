//! A transaction index against the abort markers of its segment.

use super::context::{Place, SegmentContext};
use super::index_file::IndexFile;
use super::producers::AbortMarker;
use crate::format::txn_index::{AbortedTransaction, TXN_INDEX_ENTRY, TxnIndex};
use crate::format::{Offset, Position, len_u64};
use crate::ops::{Fact, Finding, FindingId};

/// What is known of the log beside the index.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkedLog {
    /// Whether part of the segment is no sound batch: markers may be in it.
    pub(super) is_damaged: bool,
    /// Whether batches may have been cleaned away, or lie before the log's start.
    pub(super) has_gaps: bool,
    /// The offset after the last one that the segment can hold: an append, and with it what it makes known, never spans segments.
    pub(super) end: Offset,
}

/// What is wrong with a transaction index, or with there being none.
pub(super) fn check(
    index: Option<(&Place, &IndexFile)>,
    aborts: &[AbortMarker],
    log: MarkedLog,
    log_place: &Place,
    context: &SegmentContext,
    out: &mut Vec<Finding>,
) {
    let expected = aborts.iter().filter_map(|abort| abort.ended?.index_entry());
    let Some((place, file)) = index else {
        let count = expected.count();
        if count > 0 {
            let path = log_place.path.with_extension("txnindex");
            let finding = log_place.with_path(path).finding(FindingId::TxnIndexMissing);
            let severity = context.index_severity(finding.severity);
            let count = Fact::Number(i64::try_from(count).unwrap_or(i64::MAX));
            out.push(finding.with_severity(severity).with_facts(count, Fact::Number(0)));
        }
        return;
    };
    out.extend(file.check_size(FindingId::TxnIndexMisaligned, place, context));
    // Zeros at the end are entries too; nobody preallocates this file.
    let mut bytes = file.bytes.clone();
    let zeros = usize::try_from(file.zero_entries()).unwrap_or(0).min(1);
    bytes.resize(bytes.len().saturating_add(zeros.saturating_mul(TXN_INDEX_ENTRY)), 0);
    let entries: Vec<AbortedTransaction> = TxnIndex::new(&bytes).iter().collect();
    check_entries(&entries, aborts, log, place, context, out);
    for missing in expected.filter(|abort| !entries.iter().any(|entry| is_same_marker(entry, abort))) {
        let finding = place.finding(FindingId::TxnIndexEntryMissing);
        let severity = context.index_severity(finding.severity);
        let mut finding = finding.with_severity(severity).with_facts(fact(&missing), None);
        finding.location = finding.location.offsets(missing.first_offset, missing.last_offset);
        out.push(finding);
        if out.len() > super::segment::MOST_FINDINGS {
            return;
        }
    }
}

fn fact(entry: &AbortedTransaction) -> Fact {
    Fact::Pair(entry.first_offset.0, entry.last_offset.0)
}

fn is_same_marker(a: &AbortedTransaction, b: &AbortedTransaction) -> bool {
    (a.producer_id, a.last_offset) == (b.producer_id, b.last_offset)
}

fn check_entries(
    entries: &[AbortedTransaction],
    aborts: &[AbortMarker],
    log: MarkedLog,
    place: &Place,
    context: &SegmentContext,
    out: &mut Vec<Finding>,
) {
    let mut previous: Option<&AbortedTransaction> = None;
    for (slot, entry) in entries.iter().enumerate() {
        let position = Position(len_u64(slot.saturating_mul(TXN_INDEX_ENTRY)));
        let finding = |id: FindingId| {
            let finding = place.finding_at(id, position, TXN_INDEX_ENTRY as u64);
            let severity = context.index_severity(finding.severity);
            finding.with_severity(severity)
        };
        if entry.version != 0 {
            let found = Fact::Number(i64::from(entry.version));
            out.push(finding(FindingId::TxnIndexVersionUnknown).with_facts(Fact::Number(0), found));
            return;
        }
        let marker =
            aborts.iter().find(|abort| abort.producer_id == entry.producer_id && abort.offset == entry.last_offset);
        let follows = previous.is_none_or(|previous| previous.last_offset < entry.last_offset);
        let is_possible = follows
            && entry.last_offset >= context.base_offset
            && entry.first_offset <= entry.last_offset
            && entry.last_stable_offset.0 >= 0
            && (log.is_damaged || entry.last_stable_offset <= log.end);
        let is_right = match marker {
            Some(marker) => fits(entry, marker, log),
            None => log.is_damaged,
        };
        if !is_possible || !is_right {
            let expected = marker.and_then(|marker| marker.ended?.index_entry()).as_ref().map(fact);
            out.push(finding(FindingId::TxnIndexEntryWrong).with_facts(expected, fact(entry)));
            if out.len() > super::segment::MOST_FINDINGS {
                return;
            }
        }
        previous = Some(entry);
    }
}

/// Whether an entry is that of a marker. Where data may be gone the entry may reach further back than the log shows. Brokers before
/// 2.8 wrote entries for markers without data.
fn fits(entry: &AbortedTransaction, marker: &AbortMarker, log: MarkedLog) -> bool {
    match marker.ended {
        Some(_) if log.has_gaps || log.is_damaged => marker.ended.is_some_and(|e| entry.first_offset <= e.first_offset),
        Some(ended) => {
            // A follower sees transactions that begin later in the same fetch.
            let is_stable =
                entry.last_stable_offset == ended.last_stable_offset || entry.last_stable_offset > entry.last_offset;
            entry.first_offset == ended.first_offset && is_stable
        }
        None => log.has_gaps || log.is_damaged || entry.first_offset == entry.last_offset,
    }
}

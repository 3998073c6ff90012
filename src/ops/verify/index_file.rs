//! The bytes of an index file, its padding apart: a preallocated file of 10 MiB is mostly zeros.

use super::context::{Place, SegmentContext};
use crate::format::{Position, len_u64, len_usize};
use crate::logdir::{ReadError, SegmentFile};
use crate::ops::{Fact, Finding, FindingId, Severity};

/// Bytes that are read at a time.
const PIECE: usize = 64 * 1024;
/// Bytes of entries that are looked at. A broker's own bound is `segment.index.bytes`, 10 MiB where nothing else is set.
const MOST_ENTRIES_BYTES: usize = 16 * 1024 * 1024;

/// An index file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct IndexFile {
    /// The bytes up to the last entry that is not all zeros.
    pub(super) bytes: Vec<u8>,
    /// Its size.
    pub(super) size_bytes: u64,
    entry: usize,
    /// Bytes that were looked at.
    pub(super) checked_bytes: u64,
}

impl IndexFile {
    /// Reads an index whose entries have `entry` bytes.
    pub(super) fn read(file: &SegmentFile, entry: usize) -> Result<Self, ReadError> {
        let mut bytes: Vec<u8> = Vec::new();
        let mut zeros = 0u64;
        let mut piece = vec![0; PIECE.min(len_usize(file.size()))];
        let mut at = Position(0);
        while at < file.end() {
            let count = len_usize(file.end().since(at)).min(piece.len());
            let part = piece.get_mut(..count).unwrap_or_default();
            file.read_exact_at(part, at)?;
            at = at.advance(len_u64(count));
            let Some(last) = part.iter().rposition(|byte| *byte != 0) else {
                zeros = zeros.saturating_add(len_u64(count));
                continue;
            };
            // Zeros count as padding until something follows them.
            let held = len_u64(bytes.len()).saturating_add(zeros).saturating_add(len_u64(count));
            if held > len_u64(MOST_ENTRIES_BYTES) {
                break;
            }
            bytes.resize(bytes.len().saturating_add(len_usize(zeros)), 0);
            bytes.extend_from_slice(part.get(..=last).unwrap_or_default());
            zeros = len_u64(count.saturating_sub(last + 1));
        }
        // The last entry may end in zeros of its own.
        let whole = bytes.len().next_multiple_of(entry).min(len_usize(file.size()));
        bytes.resize(whole.max(bytes.len()), 0);
        Ok(Self { bytes, size_bytes: file.size(), entry, checked_bytes: at.0 })
    }

    /// Entries behind the last real one that are nothing but zeros.
    pub(super) fn zero_entries(&self) -> u64 {
        self.size_bytes.saturating_sub(len_u64(self.bytes.len())) / len_u64(self.entry)
    }

    /// Whether there is nothing but zeros.
    pub(super) fn is_never_written(&self) -> bool {
        self.bytes.is_empty() && self.zero_entries() > 0
    }

    /// Where the padding begins.
    pub(super) fn padding_start(&self) -> Position {
        Position(len_u64(self.bytes.len()))
    }

    /// Says whether the size is a multiple of the entry, and whether the bound of this check was reached.
    pub(super) fn check_size(&self, misaligned: FindingId, place: &Place, context: &SegmentContext) -> Vec<Finding> {
        let mut findings = Vec::new();
        let remainder = self.size_bytes % len_u64(self.entry);
        if remainder > 0 {
            let start = Position(self.size_bytes - remainder);
            let mut finding = place.finding_at(misaligned, start, remainder);
            finding.severity = context.index_severity(finding.severity);
            let bytes = i64::try_from(remainder).unwrap_or(i64::MAX);
            findings.push(finding.with_facts(Fact::Number(0), Fact::Number(bytes)));
        }
        if self.checked_bytes < self.size_bytes {
            let left = self.size_bytes.saturating_sub(self.checked_bytes);
            findings.push(place.finding_at(FindingId::LimitReached, Position(self.checked_bytes), left));
        }
        findings
    }

    /// What the padding is, if there is any: legal after a crash, harm where nothing was to be written any more.
    pub(super) fn check_padding(
        &self,
        (padded, never_written): (FindingId, FindingId),
        place: &Place,
        context: &SegmentContext,
        out: &mut Vec<Finding>,
    ) {
        let zeros = self.zero_entries();
        if zeros == 0 {
            return;
        }
        let id = if self.is_never_written() { never_written } else { padded };
        let start = self.padding_start();
        let finding = place.finding_at(id, start, self.size_bytes.saturating_sub(start.0));
        let severity = context.untrimmed_index_severity(finding.severity);
        let count = Fact::Number(i64::try_from(zeros).unwrap_or(i64::MAX));
        out.push(finding.with_severity(severity).with_facts(Fact::Number(0), count));
        if context.contradicts_marker() && severity > Severity::Info {
            out.push(place.finding(FindingId::CleanMarkerContradicted));
        }
    }
}

/// Slots of an index that are wrong in one way: how many, and the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WrongSlots {
    first_slot: usize,
    last_slot: usize,
    count: u64,
    expected: Option<(i64, i64)>,
    found: (i64, i64),
}

impl WrongSlots {
    /// Counts one more.
    pub(super) fn add(wrong: &mut Option<Self>, slot: usize, expected: Option<(i64, i64)>, found: (i64, i64)) {
        match wrong {
            Some(wrong) => {
                wrong.last_slot = slot;
                wrong.count += 1;
            }
            None => *wrong = Some(Self { first_slot: slot, last_slot: slot, count: 1, expected, found }),
        }
    }

    /// The finding for all of them: its range reaches from the first to the last.
    pub(super) fn finding(
        &self,
        id: FindingId,
        entry: usize,
        place: &Place,
        severity: impl Fn(Severity) -> Severity,
    ) -> Finding {
        let start = len_u64(self.first_slot.saturating_mul(entry));
        let end = len_u64(self.last_slot.saturating_add(1).saturating_mul(entry));
        let finding = place.finding_at(id, Position(start), end.saturating_sub(start));
        let severity = severity(finding.severity);
        let pair = |(a, b): (i64, i64)| Fact::Pair(a, b);
        finding.with_severity(severity).with_facts(self.expected.map(pair), pair(self.found))
    }
}

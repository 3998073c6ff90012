//! A time index against the batches of its log. An entry says that no record up to its offset is younger than its timestamp; brokers
//! up to 3.7 named the record that is, later ones the end of its batch.

use super::batch::BatchFacts;
use super::context::{Place, SegmentContext, SegmentRole};
use super::index_file::{IndexFile, WrongSlots};
use crate::format::time_index::{TIME_INDEX_ENTRY, TimeIndex, TimeIndexEntry};
use crate::format::{Offset, Position, TimestampMs};
use crate::ops::{Fact, Finding, FindingId, Severity};

/// Follows the entries of a time index along the batches.
#[derive(Debug)]
pub(super) struct TimeIndexCheck {
    base: Offset,
    file: IndexFile,
    followed: usize,
    next: usize,
    largest: Option<TimestampMs>,
    /// Damage may have held the largest timestamp: entries can no longer be judged.
    is_unsure: bool,
    order: Option<WrongSlots>,
    wrong: Option<WrongSlots>,
}

fn pair(entry: &TimeIndexEntry) -> (i64, i64) {
    (entry.timestamp.0, entry.offset.0)
}

/// What the log that an index belongs to is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexedLog {
    /// Where it ends.
    pub(super) end: Position,
    /// Whether it has no batches of magic 2: brokers up to 0.10.0 kept no time index, and later ones leave an empty one.
    pub(super) is_legacy: bool,
    /// Whether the batches follow each other in offsets.
    pub(super) has_ordered_batches: bool,
    /// When the log file was last modified: retention goes by it where the index is empty.
    pub(super) modified: TimestampMs,
}

impl IndexedLog {
    /// Nothing is known of it.
    pub(super) fn unknown() -> Self {
        Self { end: Position(u64::MAX), is_legacy: false, has_ordered_batches: true, modified: TimestampMs(0) }
    }
}

/// A segment that counts as so much older than it is will be deleted before its time.
const TOO_OLD_MS: i64 = 10 * 60 * 1000;

impl TimeIndexCheck {
    pub(super) fn new(base: Offset, file: IndexFile) -> Self {
        let mut check =
            Self { base, file, followed: 0, next: 0, largest: None, is_unsure: false, order: None, wrong: None };
        check.follow_order();
        check
    }

    fn index(&self) -> TimeIndex<'_> {
        TimeIndex::new(self.base, &self.file.bytes)
    }

    fn follow_order(&mut self) {
        let mut order = None;
        let mut followed = 0;
        // The cleaner of 0.10.1 wrote -1 where it knew no offset.
        let least = self.base.saturating_add(-1);
        let mut previous = TimeIndexEntry { timestamp: TimestampMs(-1), offset: least };
        for (slot, entry) in self.index().iter().enumerate() {
            if entry.timestamp <= previous.timestamp || entry.offset < previous.offset {
                let expected = (slot > 0).then(|| pair(&previous));
                WrongSlots::add(&mut order, slot, expected, pair(&entry));
                break;
            }
            previous = entry;
            followed = slot + 1;
        }
        (self.order, self.followed) = (order, followed);
    }

    fn next_entry(&self) -> Option<TimeIndexEntry> {
        if self.next < self.followed { self.index().entry(self.next) } else { None }
    }

    /// The next sound batch of the log.
    pub(super) fn batch(&mut self, facts: &BatchFacts) {
        let header = &facts.header;
        // Brokers of 0.10 indexed the times of messages that they then stored without them.
        self.is_unsure |= header.magic == 0;
        let before = self.largest;
        self.largest = before.max(header.max_timestamp);
        while let Some(entry) = self.next_entry().filter(|entry| entry.offset <= header.last_offset) {
            // Its batch may be gone: then it speaks of those before.
            let is_inside = entry.offset >= header.base_offset || !facts.is_first_known;
            let has_offset = entry.offset >= self.base;
            let expected = if is_inside { self.largest } else { before };
            if expected != Some(entry.timestamp) && has_offset && !self.is_unsure {
                let expected = (expected.map_or(-1, |timestamp| timestamp.0), entry.offset.0);
                WrongSlots::add(&mut self.wrong, self.next, Some(expected), pair(&entry));
            }
            self.next += 1;
        }
    }

    /// A damaged range.
    pub(super) fn damage(&mut self) {
        self.is_unsure = true;
    }

    /// What is wrong with the index by itself, its log unknown.
    pub(super) fn finish_alone(mut self, place: &Place, context: &SegmentContext, out: &mut Vec<Finding>) {
        self.is_unsure = true;
        let _ = self.finish(IndexedLog::unknown(), place, context, out);
    }

    /// What is wrong with the index.
    pub(super) fn finish(
        mut self,
        log: IndexedLog,
        place: &Place,
        context: &SegmentContext,
        out: &mut Vec<Finding>,
    ) -> u64 {
        for slot in self.next..self.followed {
            let Some(entry) = self.index().entry(slot).filter(|_| !self.is_unsure) else { break };
            let expected = (self.largest.map_or(-1, |timestamp| timestamp.0), entry.offset.0);
            WrongSlots::add(&mut self.wrong, slot, Some(expected), pair(&entry));
        }
        out.extend(self.file.check_size(FindingId::TimeIndexMisaligned, place, context));
        // Twelve zero bytes in the first slot are an entry where the first record's time is 0.
        let is_genuine =
            self.file.zero_entries() == 1 && self.file.bytes.is_empty() && self.largest == Some(TimestampMs(0));
        if !is_genuine {
            let ids = (FindingId::TimeIndexZeroPadded, FindingId::TimeIndexNeverWritten);
            self.file.check_padding(ids, place, context, out);
        }
        let wrong = self.wrong.filter(|_| log.has_ordered_batches);
        out.extend(wrong.map(|slots| {
            let severity = |usual| context.index_severity(usual);
            slots.finding(FindingId::TimeIndexEntryWrong, TIME_INDEX_ENTRY, place, severity)
        }));
        out.extend(self.order.map(|slots| {
            let severity = |usual| context.untrimmed_index_severity(usual);
            slots.finding(FindingId::TimeIndexEntryOrder, TIME_INDEX_ENTRY, place, severity)
        }));
        if wrong.is_none() && !is_genuine {
            out.extend(self.check_last(log, place, context));
        }
        self.file.checked_bytes
    }

    /// A closed segment's last entry has its largest timestamp: retention looks at nothing else.
    fn check_last(&self, log: IndexedLog, place: &Place, context: &SegmentContext) -> Option<Finding> {
        let largest = self.largest.filter(|timestamp| timestamp.0 >= 0)?;
        let last = self.followed.checked_sub(1).and_then(|slot| self.index().entry(slot));
        let is_low = last.is_none_or(|entry| entry.timestamp < largest);
        let has_padding = self.file.zero_entries() > 0;
        if context.role != SegmentRole::Closed || !is_low || has_padding || self.is_unsure {
            return None;
        }
        let start = Position((self.followed.saturating_sub(1) as u64).saturating_mul(TIME_INDEX_ENTRY as u64));
        let size_bytes = self.file.size_bytes.saturating_sub(start.0);
        let finding = place.finding_at(FindingId::TimeIndexLastEntryLow, start, size_bytes);
        // What retention takes for the time of the youngest record.
        let believed = self.index().last().map_or(log.modified, |entry| entry.timestamp);
        let severity = match () {
            () if log.is_legacy && last.is_none() => Severity::Info,
            () if largest.0.saturating_sub(believed.0) > TOO_OLD_MS => Severity::Critical,
            () => finding.severity,
        };
        let severity = context.index_severity(severity);
        let found = last.map_or(TimestampMs(-1), |entry| entry.timestamp);
        Some(finding.with_severity(severity).with_facts(Fact::Timestamp(largest), Fact::Timestamp(found)))
    }
}

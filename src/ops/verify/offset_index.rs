//! An offset index against the batches of its log: invariants, never byte equality. An entry may be coarse: followers and the
//! cleaner write one for many batches.

use super::batch::BatchFacts;
use super::context::{Place, SegmentContext};
use super::index_file::{IndexFile, WrongSlots};
use super::time_index::IndexedLog;
use crate::format::offset_index::{OFFSET_INDEX_ENTRY, OffsetIndex, OffsetIndexEntry};
use crate::format::{Offset, Position};
use crate::ops::{Finding, FindingId};

/// Follows the entries of an offset index along the batches.
#[derive(Debug)]
pub(super) struct OffsetIndexCheck {
    base: Offset,
    file: IndexFile,
    /// Entries that can be followed: both columns grow up to here.
    followed: usize,
    next: usize,
    largest_last_offset: Option<Offset>,
    order: Option<WrongSlots>,
    no_batch_start: Option<WrongSlots>,
    wrong_offset: Option<WrongSlots>,
    /// An offset beyond the segment's end: it misleads nobody.
    beyond_end: Option<WrongSlots>,
    past_end: Option<WrongSlots>,
}

fn pair(entry: &OffsetIndexEntry) -> (i64, i64) {
    (entry.offset.0, i64::from(entry.stored_position()))
}

impl OffsetIndexCheck {
    pub(super) fn new(base: Offset, file: IndexFile) -> Self {
        let mut check = Self {
            base,
            file,
            followed: 0,
            next: 0,
            largest_last_offset: None,
            order: None,
            no_batch_start: None,
            wrong_offset: None,
            beyond_end: None,
            past_end: None,
        };
        check.follow_order();
        check
    }

    fn index(&self) -> OffsetIndex<'_> {
        OffsetIndex::new(self.base, &self.file.bytes)
    }

    fn follow_order(&mut self) {
        let mut order = None;
        let mut followed = 0;
        let mut previous: Option<OffsetIndexEntry> = None;
        for (slot, entry) in self.index().iter().enumerate() {
            let grows = previous.is_none_or(|last| entry.offset > last.offset && entry.position > last.position);
            if !grows || entry.offset < self.base || entry.stored_position() < 0 {
                WrongSlots::add(&mut order, slot, previous.as_ref().map(pair), pair(&entry));
                break;
            }
            previous = Some(entry);
            followed = slot + 1;
        }
        (self.order, self.followed) = (order, followed);
    }

    fn next_entry(&self) -> Option<OffsetIndexEntry> {
        if self.next < self.followed { self.index().entry(self.next) } else { None }
    }

    /// The next sound batch of the log.
    pub(super) fn batch(&mut self, facts: &BatchFacts) {
        let position = facts.header.position;
        while let Some(entry) = self.next_entry().filter(|entry| entry.position < position) {
            WrongSlots::add(&mut self.no_batch_start, self.next, None, pair(&entry));
            self.next += 1;
        }
        if let Some(entry) = self.next_entry().filter(|entry| entry.position == position) {
            let is_before = facts.is_first_known && entry.offset < facts.first_offset;
            let is_behind = self.largest_last_offset.is_some_and(|largest| entry.offset <= largest);
            if is_before || is_behind {
                let expected = (facts.header.last_offset.0, pair(&entry).1);
                WrongSlots::add(&mut self.wrong_offset, self.next, Some(expected), pair(&entry));
            }
            self.next += 1;
        }
        self.largest_last_offset = self.largest_last_offset.max(Some(facts.header.last_offset));
    }

    /// A damaged range: what points into it cannot be judged.
    pub(super) fn damage(&mut self, end: Position) {
        while self.next_entry().is_some_and(|entry| entry.position < end) {
            self.next += 1;
        }
    }

    /// What is wrong with the index by itself, its log unknown.
    pub(super) fn finish_alone(mut self, place: &Place, context: &SegmentContext, out: &mut Vec<Finding>) {
        self.next = self.followed;
        let _ = self.finish(IndexedLog::unknown(), place, context, out);
    }

    /// What is wrong with the index. Where the log's own offsets are out of order, entries are not judged by them.
    pub(super) fn finish(
        mut self,
        log: IndexedLog,
        place: &Place,
        context: &SegmentContext,
        out: &mut Vec<Finding>,
    ) -> u64 {
        let end = self.largest_last_offset;
        let slots = self.next..self.followed;
        for slot in slots {
            let Some(entry) = self.index().entry(slot) else { break };
            if entry.position >= log.end {
                WrongSlots::add(&mut self.past_end, slot, None, pair(&entry));
            } else {
                WrongSlots::add(&mut self.no_batch_start, slot, None, pair(&entry));
            }
        }
        if let (Some(slot), Some(end)) = (self.followed.checked_sub(1), end)
            && let Some(entry) = self.index().entry(slot).filter(|entry| entry.offset > end)
            && self.past_end.is_none()
        {
            WrongSlots::add(&mut self.beyond_end, slot, Some((end.0, pair(&entry).1)), pair(&entry));
        }
        out.extend(self.file.check_size(FindingId::OffsetIndexMisaligned, place, context));
        let ids = (FindingId::OffsetIndexZeroPadded, FindingId::OffsetIndexNeverWritten);
        self.file.check_padding(ids, place, context, out);
        let wrong = [
            (FindingId::OffsetIndexEntryPastEnd, self.past_end),
            (FindingId::OffsetIndexEntryWrong, self.no_batch_start),
            (FindingId::OffsetIndexEntryWrong, self.wrong_offset.filter(|_| log.has_ordered_batches)),
        ];
        for (id, slots) in wrong {
            out.extend(slots.map(|slots| {
                let severity = |usual| context.misleading_index_severity(usual);
                slots.finding(id, OFFSET_INDEX_ENTRY, place, severity)
            }));
        }
        out.extend(self.beyond_end.filter(|_| log.has_ordered_batches).map(|slots| {
            let severity = |usual| context.index_severity(usual);
            slots.finding(FindingId::OffsetIndexEntryWrong, OFFSET_INDEX_ENTRY, place, severity)
        }));
        // What a truncation left behind the entries of a file that was not cut.
        out.extend(self.order.map(|slots| {
            let severity = |usual| context.untrimmed_index_severity(usual);
            slots.finding(FindingId::OffsetIndexEntryOrder, OFFSET_INDEX_ENTRY, place, severity)
        }));
        self.file.checked_bytes
    }
}

//! The offset index of a segment (`.index`): where in the log file to begin looking for an offset.
//!
//! ```text
//!  0               4               8
//!  | offset - base | position      |     8 bytes an entry, big-endian, no header, no checksum
//! ```
//!
//! The base offset comes from the file's name. A position is where a batch starts; the offset beside it is the last one of some
//! append that starts there, so that every batch in front of the position ends below the offset. While a segment is being
//! written its index has its full size and ends in zeros, or in entries that a truncation has left behind.
//!
//! Rules: `org.apache.kafka.storage.internals.log.{OffsetIndex, AbstractIndex}`.

use super::index_search::{ceiling_slot, floor_slot};
use super::{FormatError, FormatErrorKind, Offset, Position, Shape};

/// Bytes of an entry.
pub const OFFSET_INDEX_ENTRY: usize = 4 + 4;

/// An entry: the batch that holds `offset` starts at `position` or after it, and no earlier batch holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OffsetIndexEntry {
    /// Base offset plus the stored number, which wraps as in Java where a name is absurd.
    pub offset: Offset,
    /// Where in the log file. The 32 bits are taken without a sign, so that a damaged one lies past the end of any log file.
    pub position: Position,
}

impl OffsetIndexEntry {
    fn parse(base: Offset, bytes: [u8; OFFSET_INDEX_ENTRY]) -> Self {
        let relative = bytes.first_chunk().map_or(0, |number| i32::from_be_bytes(*number));
        let position = bytes.last_chunk().map_or(0, |number| u32::from_be_bytes(*number));
        Self { offset: Offset(base.0.wrapping_add(i64::from(relative))), position: Position(u64::from(position)) }
    }

    /// The position as Kafka reads it, with its sign.
    pub fn stored_position(&self) -> i32 {
        u32::try_from(self.position.0).unwrap_or(u32::MAX) as i32
    }

    /// Appends the entry to an index whose segment starts at `base`.
    ///
    /// Refuses an offset below `base` or more than 2^31 - 1 above, and a position beyond 2^31 - 1.
    pub fn encode(&self, base: Offset, out: &mut Vec<u8>) -> Result<(), FormatError> {
        let shape = Shape::OffsetIndexEntry;
        let relative = relative_offset(shape, self.offset, base)?;
        let position = i32::try_from(self.position.0).map_err(|_| {
            FormatError::new(Position(0), FormatErrorKind::PositionOverflow { shape, found: self.position })
        })?;
        out.extend_from_slice(&relative.to_be_bytes());
        out.extend_from_slice(&position.to_be_bytes());
        Ok(())
    }
}

/// The offset as an index stores it, or why it cannot (`AbstractIndex.toRelative`).
pub(super) fn relative_offset(shape: Shape, offset: Offset, base: Offset) -> Result<i32, FormatError> {
    offset
        .checked_sub(base)
        .and_then(|relative| i32::try_from(relative).ok())
        .filter(|relative| *relative >= 0)
        .ok_or(FormatError::new(Position(0), FormatErrorKind::RelativeOffsetOverflow { shape, offset, base }))
}

/// The entries of an offset index, borrowed from its bytes.
///
/// ```
/// use segtool::format::{Offset, Position, offset_index::{OffsetIndex, OffsetIndexEntry}};
///
/// let bytes = [0, 0, 0, 0x34, 0, 0, 0x10, 0x22, 0, 0, 0, 0x75, 0, 0, 0x20, 0x44];
/// let index = OffsetIndex::new(Offset(50), &bytes);
/// assert_eq!(index.lookup(Offset(130)), Some((0, OffsetIndexEntry { offset: Offset(102), position: Position(4130) })));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OffsetIndex<'a> {
    base: Offset,
    entries: &'a [[u8; OFFSET_INDEX_ENTRY]],
    remainder: &'a [u8],
}

impl<'a> OffsetIndex<'a> {
    /// The index of the segment that starts at `base`. Any bytes are an index; what is wrong with them is for the caller to see.
    pub fn new(base: Offset, data: &'a [u8]) -> Self {
        let (entries, remainder) = data.as_chunks();
        Self { base, entries, remainder }
    }

    /// The segment's base offset.
    pub fn base(&self) -> Offset {
        self.base
    }

    /// Entries, padding included: what a broker counts when it opens the file.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes behind the last whole entry.
    pub fn remainder(&self) -> &'a [u8] {
        self.remainder
    }

    /// The entry in a slot.
    pub fn entry(&self, slot: usize) -> Option<OffsetIndexEntry> {
        self.entries.get(slot).map(|bytes| OffsetIndexEntry::parse(self.base, *bytes))
    }

    /// All entries in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = OffsetIndexEntry> + ExactSizeIterator + use<'a> {
        let base = self.base;
        self.entries.iter().map(move |bytes| OffsetIndexEntry::parse(base, *bytes))
    }

    /// The first `len` entries, as after trimming.
    #[must_use]
    pub fn truncated(&self, len: usize) -> Self {
        Self { base: self.base, entries: self.entries.get(..len).unwrap_or(self.entries), remainder: &[] }
    }

    /// The largest entry not above `target` and its slot, as a broker's binary search finds it. `None` means that the search for
    /// an offset begins at position 0.
    pub fn lookup(&self, target: Offset) -> Option<(usize, OffsetIndexEntry)> {
        self.lookup_explained(target, |_, _| {})
    }

    /// [`Self::lookup`], telling `probe` every slot that is looked at, in order.
    pub fn lookup_explained(
        &self,
        target: Offset,
        mut probe: impl FnMut(usize, OffsetIndexEntry),
    ) -> Option<(usize, OffsetIndexEntry)> {
        let slot = floor_slot(self.entries.len(), OFFSET_INDEX_ENTRY, |slot| match self.entry(slot) {
            Some(entry) => {
                probe(slot, entry);
                entry.offset.cmp(&target)
            }
            None => std::cmp::Ordering::Greater,
        })?;
        self.entry(slot).map(|entry| (slot, entry))
    }

    /// The first entry whose position is not below `end`: a read of the log up to `end` gives nothing at or above its offset
    /// (`OffsetIndex.fetchUpperBoundOffset`, which passes over a first entry that is equal). `None`: the index does not say.
    pub fn upper_bound(&self, end: Position) -> Option<OffsetIndexEntry> {
        let slot = ceiling_slot(self.entries.len(), OFFSET_INDEX_ENTRY, |slot| match self.entry(slot) {
            // As Java compares: with a sign.
            Some(entry) => i64::from(entry.stored_position()).cmp(&i64::try_from(end.0).unwrap_or(i64::MAX)),
            None => std::cmp::Ordering::Greater,
        })?;
        self.entry(slot)
    }

    /// How many entries at the start can be real, for a log file of `log_size` bytes: both columns grow, the position is inside
    /// the log and not 0. What follows is padding, or was left by a truncation. Whether a position is the start of a batch only
    /// the log can tell.
    pub fn plausible_len(&self, log_size: Position) -> usize {
        let mut previous = OffsetIndexEntry { offset: Offset(self.base.0.saturating_sub(1)), position: Position(0) };
        let plausible = |entry: &OffsetIndexEntry| {
            let follows = entry.offset > previous.offset && entry.position > previous.position;
            previous = *entry;
            follows && entry.offset >= self.base && entry.position < log_size && entry.stored_position() > 0
        };
        self.iter().take_while(plausible).count()
    }

    /// Entries at the end that are nothing but zeros.
    pub fn zero_tail_len(&self) -> usize {
        self.entries.iter().rev().take_while(|bytes| bytes.iter().all(|byte| *byte == 0)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(offset: i64, position: u64) -> OffsetIndexEntry {
        OffsetIndexEntry { offset: Offset(offset), position: Position(position) }
    }

    fn encoded(base: i64, entries: &[OffsetIndexEntry]) -> Vec<u8> {
        let mut out = Vec::new();
        for entry in entries {
            entry.encode(Offset(base), &mut out).unwrap();
        }
        out
    }

    #[test]
    fn the_published_entries_read_and_write() {
        let bytes = [0, 0, 0, 0x34, 0, 0, 0x10, 0x22, 0, 0, 0, 0x75, 0, 0, 0x20, 0x44];
        let index = OffsetIndex::new(Offset(50), &bytes);
        let entries = [entry(102, 4130), entry(167, 8260)];
        assert_eq!(index.iter().collect::<Vec<_>>(), entries);
        assert_eq!(encoded(50, &entries), bytes);
        assert_eq!(index.plausible_len(Position(8261)), 2);
        assert_eq!(index.plausible_len(Position(8260)), 1);
        // What LogSegment appends, and what it writes when it recovers the same log.
        let appended = [0, 0, 0, 4, 0, 0, 0, 0xc6, 0, 0, 0, 5, 0, 0, 1, 0xef];
        assert_eq!(encoded(50, &[entry(54, 198), entry(55, 495)]), appended);
        let recovered = [0, 0, 0, 2, 0, 0, 0, 0xc6, 0, 0, 0, 4, 0, 0, 1, 0x8c, 0, 0, 0, 6, 0, 0, 2, 0x52];
        assert_eq!(encoded(50, &[entry(52, 198), entry(54, 396), entry(56, 594)]), recovered);
    }

    #[test]
    fn a_lookup_floors_and_starts_at_the_beginning_where_nothing_is_below() {
        let bytes = encoded(50, &[entry(102, 4130), entry(167, 8260)]);
        let index = OffsetIndex::new(Offset(50), &bytes);
        for (target, expected) in [(101, None), (102, Some(0)), (166, Some(0)), (167, Some(1)), (i64::MAX, Some(1))] {
            assert_eq!(index.lookup(Offset(target)).map(|(slot, _)| slot), expected, "{target}");
        }
        for (end, expected) in [(0, Some(102)), (4130, Some(167)), (4131, Some(167)), (8260, Some(167)), (8261, None)] {
            assert_eq!(index.upper_bound(Position(end)).map(|found| found.offset.0), expected, "{end}");
        }
        assert_eq!(OffsetIndex::new(Offset(50), &[]).lookup(Offset(60)), None);
    }

    #[test]
    fn probes_are_told_in_order() {
        let entries: Vec<_> = (1..=5000).map(|n| entry(n * 10, 100 * n as u64)).collect();
        let bytes = encoded(0, &entries);
        let mut probes = Vec::new();
        let found = OffsetIndex::new(Offset(0), &bytes).lookup_explained(Offset(45_005), |slot, _| probes.push(slot));
        assert_eq!(found, Some((4499, entry(45_000, 450_000))));
        // First the border of the last 8192 bytes, then halves of what lies behind it.
        assert_eq!(probes[..3], [3975, 4487, 4743]);
        assert!(probes.len() <= 12);
    }

    #[test]
    fn padding_and_what_a_truncation_left_are_not_plausible() {
        let mut bytes = encoded(0, &[entry(10, 100), entry(20, 200), entry(15, 150), entry(30, 300)]);
        bytes.extend_from_slice(&[0; 24 + 3]);
        let index = OffsetIndex::new(Offset(0), &bytes);
        assert_eq!((index.len(), index.plausible_len(Position(u64::MAX)), index.zero_tail_len()), (7, 2, 3));
        assert_eq!(index.remainder(), [0; 3]);
        assert_eq!(index.truncated(2).iter().last(), Some(entry(20, 200)));
        // Zeros count as entries of base and position 0, which costs a broker a scan but nothing else.
        assert_eq!(index.lookup(Offset(35)), Some((6, entry(0, 0))));
    }

    #[test]
    fn negative_numbers_survive_and_are_past_any_end() {
        let index = OffsetIndex::new(Offset(50), &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfb]);
        let first = index.entry(0).unwrap();
        assert_eq!((first.offset, first.stored_position()), (Offset(49), -5));
        assert_eq!(index.plausible_len(Position(u64::MAX)), 0);
    }

    #[test]
    fn only_31_bits_above_the_base_can_be_stored() {
        let mut out = Vec::new();
        let most = i64::from(i32::MAX);
        assert_eq!(entry(5 + most, 1).encode(Offset(5), &mut out), Ok(()));
        for (offset, base) in [(6 + most, 5), (4, 5), (i64::MAX, i64::MIN)] {
            let error = entry(offset, 1).encode(Offset(base), &mut out).unwrap_err();
            let shape = Shape::OffsetIndexEntry;
            let kind = FormatErrorKind::RelativeOffsetOverflow { shape, offset: Offset(offset), base: Offset(base) };
            assert_eq!(error.kind, kind);
        }
        let error = entry(5, 1 << 31).encode(Offset(5), &mut out).unwrap_err();
        let found = Position(1 << 31);
        assert_eq!(error.kind, FormatErrorKind::PositionOverflow { shape: Shape::OffsetIndexEntry, found });
        assert_eq!(out.len(), 8);
    }

    proptest! {
        #[test]
        fn entries_read_back(base in 0..i64::MAX >> 1, pairs in proptest::collection::vec((0..i32::MAX, 0..i32::MAX), 0..50)) {
            let entries: Vec<_> =
                pairs.iter().map(|(relative, position)| entry(base + i64::from(*relative), *position as u64)).collect();
            let bytes = encoded(base, &entries);
            prop_assert_eq!(OffsetIndex::new(Offset(base), &bytes).iter().collect::<Vec<_>>(), entries);
        }

        #[test]
        fn any_bytes_are_an_index(base: i64, data in proptest::collection::vec(any::<u8>(), 0..200), target: i64, end: u64) {
            let index = OffsetIndex::new(Offset(base), &data);
            let _ = (index.lookup(Offset(target)), index.upper_bound(Position(end)));
            prop_assert!(index.plausible_len(Position(end)) <= index.len());
            prop_assert_eq!(index.len() * OFFSET_INDEX_ENTRY + index.remainder().len(), data.len());
        }
    }
}

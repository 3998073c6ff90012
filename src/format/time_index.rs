//! The time index of a segment (`.timeindex`): from which offset on a timestamp can be.
//!
//! ```text
//!  0                               8               12
//!  | largest timestamp so far, ms  | offset - base |     12 bytes an entry, big-endian, no header, no checksum
//! ```
//!
//! The base offset comes from the file's name. The timestamp is the largest of all batches up to and including the one that
//! holds the offset, so that any record of a later time is in a later batch. A broker takes the last entry of a closed segment
//! for its largest timestamp, and deletes by it.
//!
//! Rules: `org.apache.kafka.storage.internals.log.{TimeIndex, AbstractIndex}`.

use super::index_search::floor_slot;
use super::offset_index::relative_offset;
use super::{FormatError, Offset, Shape, TimestampMs};

/// Bytes of an entry.
pub const TIME_INDEX_ENTRY: usize = 8 + 4;

/// An entry: no record up to `offset`'s batch has a timestamp above `timestamp`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeIndexEntry {
    /// The largest timestamp so far, as stored.
    pub timestamp: TimestampMs,
    /// Base offset plus the stored number, which wraps as in Java where a name is absurd.
    pub offset: Offset,
}

impl TimeIndexEntry {
    fn parse(base: Offset, bytes: [u8; TIME_INDEX_ENTRY]) -> Self {
        let timestamp = bytes.first_chunk().map_or(0, |number| i64::from_be_bytes(*number));
        let relative = bytes.last_chunk().map_or(0, |number| i32::from_be_bytes(*number));
        Self { timestamp: TimestampMs(timestamp), offset: Offset(base.0.wrapping_add(i64::from(relative))) }
    }

    /// Appends the entry to an index whose segment starts at `base`.
    ///
    /// Refuses an offset below `base` or more than 2^31 - 1 above.
    pub fn encode(&self, base: Offset, out: &mut Vec<u8>) -> Result<(), FormatError> {
        let relative = relative_offset(Shape::TimeIndexEntry, self.offset, base)?;
        out.extend_from_slice(&self.timestamp.0.to_be_bytes());
        out.extend_from_slice(&relative.to_be_bytes());
        Ok(())
    }
}

/// The entries of a time index, borrowed from its bytes.
///
/// ```
/// use segtool::format::{Offset, TimestampMs, time_index::{TimeIndex, TimeIndexEntry}};
///
/// let bytes = [0, 0, 1, 0x8b, 0xcf, 0xe5, 0x68, 5, 0, 0, 0, 0x34];
/// let index = TimeIndex::new(Offset(50), &bytes);
/// let entry = TimeIndexEntry { timestamp: TimestampMs(1_700_000_000_005), offset: Offset(102) };
/// assert_eq!(index.lookup(TimestampMs(1_700_000_000_006)), Some((0, entry)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TimeIndex<'a> {
    base: Offset,
    entries: &'a [[u8; TIME_INDEX_ENTRY]],
    remainder: &'a [u8],
}

impl<'a> TimeIndex<'a> {
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
    pub fn entry(&self, slot: usize) -> Option<TimeIndexEntry> {
        self.entries.get(slot).map(|bytes| TimeIndexEntry::parse(self.base, *bytes))
    }

    /// The last entry, padding included: what a broker takes for the segment's largest timestamp.
    pub fn last(&self) -> Option<TimeIndexEntry> {
        self.entries.last().map(|bytes| TimeIndexEntry::parse(self.base, *bytes))
    }

    /// All entries in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = TimeIndexEntry> + ExactSizeIterator + use<'a> {
        let base = self.base;
        self.entries.iter().map(move |bytes| TimeIndexEntry::parse(base, *bytes))
    }

    /// The first `len` entries, as after trimming.
    #[must_use]
    pub fn truncated(&self, len: usize) -> Self {
        Self { base: self.base, entries: self.entries.get(..len).unwrap_or(self.entries), remainder: &[] }
    }

    /// The entry of the largest timestamp not above `target` and its slot, as a broker's binary search finds it. `None` means
    /// that the search begins at the base offset.
    pub fn lookup(&self, target: TimestampMs) -> Option<(usize, TimeIndexEntry)> {
        self.lookup_explained(target, |_, _| {})
    }

    /// [`Self::lookup`], telling `probe` every slot that is looked at, in order.
    pub fn lookup_explained(
        &self,
        target: TimestampMs,
        mut probe: impl FnMut(usize, TimeIndexEntry),
    ) -> Option<(usize, TimeIndexEntry)> {
        let slot = floor_slot(self.entries.len(), TIME_INDEX_ENTRY, |slot| match self.entry(slot) {
            Some(entry) => {
                probe(slot, entry);
                entry.timestamp.cmp(&target)
            }
            None => std::cmp::Ordering::Greater,
        })?;
        self.entry(slot).map(|entry| (slot, entry))
    }

    /// How many entries at the start can be real: timestamps grow and are not negative, offsets do not fall. What follows is
    /// padding, or was left by a truncation. The cleaner of 0.10.1 wrote offset -1 where it did not know better.
    ///
    /// Twelve zero bytes in the first slot are an entry of timestamp 0 where they are all there is or where a later timestamp
    /// follows; in front of more zeros they are padding.
    pub fn plausible_len(&self) -> usize {
        let mut previous = TimeIndexEntry { timestamp: TimestampMs(-1), offset: self.base };
        let plausible = |entry: &TimeIndexEntry| {
            let follows =
                entry.timestamp > previous.timestamp && (entry.offset >= previous.offset || entry.offset == Offset(-1));
            previous = *entry;
            follows
        };
        let len = self.iter().take_while(plausible).count();
        let only_zeros = len == 1 && self.len() > 1 && self.entries.first() == Some(&[0; TIME_INDEX_ENTRY]);
        if only_zeros { 0 } else { len }
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

    const T: i64 = 1_700_000_000_000;

    fn entry(timestamp: i64, offset: i64) -> TimeIndexEntry {
        TimeIndexEntry { timestamp: TimestampMs(timestamp), offset: Offset(offset) }
    }

    fn encoded(base: i64, entries: &[TimeIndexEntry]) -> Vec<u8> {
        let mut out = Vec::new();
        for entry in entries {
            entry.encode(Offset(base), &mut out).unwrap();
        }
        out
    }

    #[test]
    fn the_published_entries_read_and_write() {
        let bytes = [
            0, 0, 1, 0x8b, 0xcf, 0xe5, 0x68, 5, 0, 0, 0, 0x34, //
            0, 0, 1, 0x8b, 0xcf, 0xe5, 0x68, 9, 0, 0, 0, 0x75,
        ];
        let index = TimeIndex::new(Offset(50), &bytes);
        let entries = [entry(T + 5, 102), entry(T + 9, 167)];
        assert_eq!(index.iter().collect::<Vec<_>>(), entries);
        assert_eq!(encoded(50, &entries), bytes);
        assert_eq!((index.plausible_len(), index.zero_tail_len(), index.last()), (2, 0, Some(entry(T + 9, 167))));
        let appended = [0, 0, 0, 0, 0, 0, 4, 0x4c, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 4, 0xb0, 0, 0, 0, 6];
        assert_eq!(encoded(50, &[entry(1100, 52), entry(1200, 56)]), appended);
    }

    #[test]
    fn a_lookup_floors_the_timestamp() {
        let bytes = encoded(50, &[entry(1100, 52), entry(1200, 56)]);
        let index = TimeIndex::new(Offset(50), &bytes);
        for (target, expected) in [(1099, None), (1100, Some(0)), (1199, Some(0)), (1200, Some(1)), (i64::MAX, Some(1))]
        {
            assert_eq!(index.lookup(TimestampMs(target)).map(|(slot, _)| slot), expected, "{target}");
        }
        let mut probes = Vec::new();
        let _ = index.lookup_explained(TimestampMs(1150), |slot, entry| probes.push((slot, entry.timestamp.0)));
        // Fewer than 682 entries are all in the warm part, which starts with slot 0.
        assert_eq!(probes, [(0, 1100), (1, 1200)]);
    }

    #[test]
    fn a_zero_entry_is_real_only_where_it_can_be() {
        let zeros = |count: usize| vec![0u8; TIME_INDEX_ENTRY * count];
        let plausible = |bytes: &[u8]| TimeIndex::new(Offset(0), bytes).plausible_len();
        assert_eq!(plausible(&zeros(1)), 1);
        assert_eq!(plausible(&zeros(80)), 0);
        let real_zero = encoded(0, &[entry(0, 0), entry(7, 3)]);
        assert_eq!(plausible(&[real_zero, zeros(5)].concat()), 2);
        let padded = encoded(0, &[entry(T, 3), entry(T + 1, 3)]);
        let padded = [padded, zeros(5)].concat();
        assert_eq!((plausible(&padded), TimeIndex::new(Offset(0), &padded).zero_tail_len()), (2, 5));
        let of_old_cleaner = [0, 0, 1, 0x45, 0xf6, 0x80, 0xbe, 0x60, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(plausible(&of_old_cleaner), 1);
        // What a truncation left behind: an older entry after a newer one.
        let stale = encoded(0, &[entry(T, 3), entry(T + 9, 5), entry(T + 4, 4), entry(T + 20, 9)]);
        assert_eq!(plausible(&stale), 2);
    }

    proptest! {
        #[test]
        fn entries_read_back(base in 0..i64::MAX >> 1, pairs in proptest::collection::vec((any::<i64>(), 0..i32::MAX), 0..50)) {
            let entries: Vec<_> =
                pairs.iter().map(|(timestamp, relative)| entry(*timestamp, base + i64::from(*relative))).collect();
            let bytes = encoded(base, &entries);
            prop_assert_eq!(TimeIndex::new(Offset(base), &bytes).iter().collect::<Vec<_>>(), entries);
        }

        #[test]
        fn any_bytes_are_an_index(base: i64, data in proptest::collection::vec(any::<u8>(), 0..200), target: i64) {
            let index = TimeIndex::new(Offset(base), &data);
            let _ = index.lookup(TimestampMs(target));
            prop_assert!(index.plausible_len() <= index.len());
            prop_assert_eq!(index.len() * TIME_INDEX_ENTRY + index.remainder().len(), data.len());
        }
    }
}

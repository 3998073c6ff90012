//! What recovery writes into the indexes of a segment (`LogSegment.recover`, `OffsetIndex.append`, `TimeIndex.maybeAppend`).
//!
//! The result depends on the batches, the interval and the capacity alone, so it is byte for byte what a broker writes that
//! recovers the segment. What appends have written may be coarser: see [`super::rules::AppendIndexing`].

use crate::format::offset_index::{OFFSET_INDEX_ENTRY, OffsetIndexEntry};
use crate::format::time_index::{TIME_INDEX_ENTRY, TimeIndexEntry};
use crate::format::txn_index::AbortedTransaction;
use crate::format::{BatchHeader, Offset, Position, TimestampMs};

/// `index.interval.bytes` where nothing is said.
pub const DEFAULT_INDEX_INTERVAL_BYTES: u32 = 4096;
/// `segment.index.bytes` where nothing is said.
pub const DEFAULT_SEGMENT_INDEX_BYTES: u32 = 10 * 1024 * 1024;
/// What an empty time index counts as its last timestamp (`RecordBatch.NO_TIMESTAMP`).
const NO_TIMESTAMP: TimestampMs = TimestampMs(-1);

/// The settings that index files depend on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexSettings {
    /// `index.interval.bytes`.
    pub interval_bytes: u32,
    /// `segment.index.bytes`.
    pub segment_index_bytes: u32,
}

impl Default for IndexSettings {
    fn default() -> Self {
        Self { interval_bytes: DEFAULT_INDEX_INTERVAL_BYTES, segment_index_bytes: DEFAULT_SEGMENT_INDEX_BYTES }
    }
}

impl IndexSettings {
    /// Entries that an offset index can hold.
    pub fn offset_index_capacity(&self) -> usize {
        self.segment_index_bytes as usize / OFFSET_INDEX_ENTRY
    }

    /// Entries that a time index can hold, the one reserved for closing included.
    pub fn time_index_capacity(&self) -> usize {
        self.segment_index_bytes as usize / TIME_INDEX_ENTRY
    }
}

/// Why an index cannot take an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IndexRefusal {
    /// The batch's last offset lies below the segment's base offset or more than 2^31 - 1 above it
    /// (`LogSegmentOffsetOverflowException`): the segment is split.
    #[error("offset {offset} cannot be stored relative to {base}")]
    OffsetOverflow {
        /// The batch's last offset.
        offset: Offset,
        /// The segment's base offset.
        base: Offset,
    },
    /// The offset does not lie above the last entry's, or below it in the time index (`InvalidOffsetException`): the segment is
    /// emptied.
    #[error("offset {offset} does not follow {last}")]
    InvalidOffset {
        /// The batch's last offset, or that of the batch with the largest timestamp.
        offset: Offset,
        /// The last entry's.
        last: Offset,
    },
    /// One of the two indexes is full (`IllegalArgumentException`): the start fails.
    #[error("the index is full with {entries} entries")]
    Full {
        /// Entries that it holds.
        entries: usize,
    },
}

/// The bytes of the two indexes of a segment, cut to their entries.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct BuiltIndexes {
    /// `.index`.
    pub offset_index: Vec<u8>,
    /// `.timeindex`.
    pub time_index: Vec<u8>,
}

/// Builds the indexes of a segment batch by batch, as recovery does.
#[derive(Clone, Debug)]
pub struct IndexBuilder {
    base: Offset,
    settings: IndexSettings,
    /// Bytes of the batches taken in: where the next one starts.
    valid: u64,
    last_indexed: u64,
    largest: TimeIndexEntry,
    last_offset: Option<Offset>,
    last_time: Option<TimeIndexEntry>,
    built: BuiltIndexes,
}

impl IndexBuilder {
    /// For the segment that starts at `base`.
    pub fn new(base: Offset, settings: IndexSettings) -> Self {
        Self {
            base,
            settings,
            valid: 0,
            last_indexed: 0,
            largest: TimeIndexEntry { timestamp: NO_TIMESTAMP, offset: Offset(-1) },
            last_offset: None,
            last_time: None,
            built: BuiltIndexes::default(),
        }
    }

    /// Takes the next batch in. After an error the builder stands where a broker's does: nothing of the batch is in, except
    /// that its timestamp may be the largest.
    pub fn add(&mut self, header: &BatchHeader) -> Result<(), IndexRefusal> {
        let last_offset = header.last_offset;
        if !fits(last_offset, self.base) {
            return Err(IndexRefusal::OffsetOverflow { offset: last_offset, base: self.base });
        }
        // A legacy wrapper of magic 0 has no timestamp, and the absent one is not above anything.
        if let Some(timestamp) = header.max_timestamp.filter(|timestamp| *timestamp > self.largest.timestamp) {
            self.largest = TimeIndexEntry { timestamp, offset: last_offset };
        }
        if self.valid.saturating_sub(self.last_indexed) > u64::from(self.settings.interval_bytes) {
            self.append_offset(last_offset)?;
            self.offer_time()?;
            self.last_indexed = self.valid;
        }
        self.valid = self.valid.saturating_add(header.size_bytes);
        Ok(())
    }

    fn append_offset(&mut self, offset: Offset) -> Result<(), IndexRefusal> {
        let entries = self.built.offset_index.len() / OFFSET_INDEX_ENTRY;
        if entries >= self.settings.offset_index_capacity() {
            return Err(IndexRefusal::Full { entries });
        }
        // An empty index takes anything, even the base offset itself.
        if let Some(last) = self.last_offset.filter(|last| offset <= *last) {
            return Err(IndexRefusal::InvalidOffset { offset, last });
        }
        let entry = OffsetIndexEntry { offset, position: Position(self.valid) };
        // Log files beyond 2^31 - 1 bytes are refused before they are indexed.
        if entry.encode(self.base, &mut self.built.offset_index).is_ok() {
            self.last_offset = Some(offset);
        }
        Ok(())
    }

    /// `TimeIndex.maybeAppend`: one entry stays reserved for closing, and only a larger timestamp is entered.
    fn offer_time(&mut self) -> Result<(), IndexRefusal> {
        let entries = self.built.time_index.len() / TIME_INDEX_ENTRY;
        if entries >= self.settings.time_index_capacity().saturating_sub(1) {
            return Err(IndexRefusal::Full { entries });
        }
        self.append_time()
    }

    fn append_time(&mut self) -> Result<(), IndexRefusal> {
        let (offset, last) = (self.largest.offset, self.last_time);
        if let Some(last) = last.filter(|last| offset < last.offset) {
            return Err(IndexRefusal::InvalidOffset { offset, last: last.offset });
        }
        let is_larger = self.largest.timestamp > last.map_or(NO_TIMESTAMP, |entry| entry.timestamp);
        if is_larger && self.largest.encode(self.base, &mut self.built.time_index).is_ok() {
            self.last_time = Some(self.largest);
        }
        Ok(())
    }

    /// Bytes of the batches taken in.
    pub fn valid_bytes(&self) -> u64 {
        self.valid
    }

    /// The files as they are, without the last time entry.
    pub fn so_far(&self) -> BuiltIndexes {
        self.built.clone()
    }

    /// The largest timestamp so far and the last offset of the first batch that has it.
    pub fn largest_timestamp(&self) -> Option<TimeIndexEntry> {
        (self.largest.timestamp > NO_TIMESTAMP).then_some(self.largest)
    }

    /// The files, with the last time entry that every closed segment has, whether or not there is room. Fails where that entry
    /// does not fit behind the one before.
    pub fn finish(mut self) -> Result<BuiltIndexes, IndexRefusal> {
        self.append_time()?;
        Ok(self.built)
    }
}

/// Whether an index can store `offset` relative to `base`.
pub fn fits(offset: Offset, base: Offset) -> bool {
    offset.checked_sub(base).is_some_and(|relative| (0..=i64::from(i32::MAX)).contains(&relative))
}

/// Builds a transaction index.
#[derive(Clone, Default, Debug)]
pub struct TxnIndexBuilder {
    last_offset: Option<Offset>,
    bytes: Vec<u8>,
}

/// An entry that does not end after the last one (`IllegalArgumentException`): the start fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("aborted transaction with marker at {} does not follow the one with marker at {last}", .entry.last_offset)]
pub struct TxnOrder {
    /// The entry.
    pub entry: AbortedTransaction,
    /// Offset of the marker before it.
    pub last: Offset,
}

impl TxnIndexBuilder {
    /// Takes the next aborted transaction in.
    pub fn add(&mut self, entry: &AbortedTransaction) -> Result<(), TxnOrder> {
        if let Some(last) = self.last_offset.filter(|last| *last >= entry.last_offset) {
            return Err(TxnOrder { entry: *entry, last });
        }
        self.last_offset = Some(entry.last_offset);
        entry.encode(&mut self.bytes);
        Ok(())
    }

    /// The file; empty where there is no entry.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Attributes, ProducerId};

    fn batch(base: i64, last: i64, size_bytes: u64, timestamp: i64) -> BatchHeader {
        BatchHeader {
            position: Position(0),
            size_bytes,
            magic: 2,
            base_offset: Offset(base),
            last_offset: Offset(last),
            crc: 0,
            attributes: Attributes(0),
            leader_epoch: None,
            last_offset_delta: 0,
            base_timestamp: None,
            max_timestamp: (timestamp != -1).then_some(TimestampMs(timestamp)),
            producer_id: None,
            producer_epoch: None,
            base_sequence: None,
            records_count: Some(1),
        }
    }

    fn builder(base: i64, interval_bytes: u32) -> IndexBuilder {
        IndexBuilder::new(Offset(base), IndexSettings { interval_bytes, ..IndexSettings::default() })
    }

    #[test]
    fn the_published_accumulation_is_reproduced() {
        // Seven batches of 99 bytes, interval 100, base 50: what LogSegment.recover writes for them.
        let mut indexes = builder(50, 100);
        for (i, timestamp) in [1000, 1010, 1100, 1050, 1060, 1070, 1200].into_iter().enumerate() {
            let offset = 50 + i64::try_from(i).unwrap();
            indexes.add(&batch(offset, offset, 99, timestamp)).unwrap();
        }
        let built = indexes.finish().unwrap();
        let offsets = [0, 0, 0, 2, 0, 0, 0, 0xc6, 0, 0, 0, 4, 0, 0, 1, 0x8c, 0, 0, 0, 6, 0, 0, 2, 0x52];
        assert_eq!(built.offset_index, offsets);
        let times: Vec<(i64, i32)> = built
            .time_index
            .chunks(12)
            .map(|e| (i64::from_be_bytes(e[..8].try_into().unwrap()), i32::from_be_bytes(e[8..].try_into().unwrap())))
            .collect();
        assert_eq!(times, [(1100, 2), (1200, 6)]);
    }

    #[test]
    fn an_offset_that_goes_back_is_refused_only_where_an_entry_is_due() {
        let sequence = [0, 1, 2, 3, 4, 5, 2, 6];
        let mut coarse = builder(0, 4096);
        assert!(sequence.iter().all(|&offset| coarse.add(&batch(offset, offset, 80, 1)).is_ok()));
        let mut fine = builder(0, 50);
        let refused = sequence.iter().find_map(|&offset| fine.add(&batch(offset, offset, 80, 1)).err());
        assert_eq!(refused, Some(IndexRefusal::InvalidOffset { offset: Offset(2), last: Offset(5) }));
    }

    #[test]
    fn the_last_offset_that_fits_is_taken_and_the_next_is_not() {
        let most = i64::from(i32::MAX);
        let mut indexes = builder(7, 4096);
        assert_eq!(indexes.add(&batch(7 + most, 7 + most, 80, 1)), Ok(()));
        for offset in [8 + most, 6, i64::MIN] {
            let overflow = IndexRefusal::OffsetOverflow { offset: Offset(offset), base: Offset(7) };
            assert_eq!(indexes.add(&batch(offset, offset, 80, 1)), Err(overflow));
        }
    }

    #[test]
    fn a_full_index_fails_and_one_time_entry_stays_reserved() {
        let settings = IndexSettings { interval_bytes: 0, segment_index_bytes: 40 };
        let mut indexes = IndexBuilder::new(Offset(0), settings);
        let results: Vec<_> = (0..4).map(|offset| indexes.add(&batch(offset, offset, 80, 100 + offset))).collect();
        assert_eq!(results, [Ok(()), Ok(()), Ok(()), Err(IndexRefusal::Full { entries: 2 })]);
        assert_eq!(indexes.finish().unwrap().time_index[24..32], 103i64.to_be_bytes());
        let mut indexes = IndexBuilder::new(Offset(0), settings);
        let results: Vec<_> = (0..7).map(|offset| indexes.add(&batch(offset, offset, 80, -1))).collect();
        assert_eq!(results.last(), Some(&Err(IndexRefusal::Full { entries: 5 })));
    }

    #[test]
    fn a_largest_timestamp_behind_the_last_entry_is_refused() {
        let mut indexes = builder(0, 50);
        for (offset, timestamp) in [(0, 1), (9, 2), (12, 2)] {
            indexes.add(&batch(offset, offset, 80, timestamp)).unwrap();
        }
        // The batch is too close to the last entry for one of its own, but the closing entry cannot be made.
        let mut close = builder(0, 100);
        for (offset, timestamp) in [(0, 1), (8, 1), (9, 2), (2, 3)] {
            close.add(&batch(offset, offset, 80, timestamp)).unwrap();
        }
        assert_eq!(close.finish(), Err(IndexRefusal::InvalidOffset { offset: Offset(2), last: Offset(9) }));
    }

    #[test]
    fn batches_without_timestamps_leave_the_time_index_empty() {
        let mut indexes = builder(0, 0);
        for offset in 0..3 {
            indexes.add(&batch(offset, offset, 80, -1)).unwrap();
        }
        assert_eq!(indexes.largest_timestamp(), None);
        assert!(indexes.finish().unwrap().time_index.is_empty());
    }

    #[test]
    fn aborted_transactions_must_end_one_after_the_other() {
        let entry = |last| AbortedTransaction {
            version: 0,
            producer_id: ProducerId(1),
            first_offset: Offset(0),
            last_offset: Offset(last),
            last_stable_offset: Offset(last + 1),
        };
        let mut index = TxnIndexBuilder::default();
        assert_eq!(index.add(&entry(3)), Ok(()));
        assert_eq!(index.add(&entry(3)), Err(TxnOrder { entry: entry(3), last: Offset(3) }));
        assert_eq!(index.finish().len(), 34);
    }
}

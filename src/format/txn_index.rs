//! The transaction index of a segment (`.txnindex`): the aborted transactions whose marker the segment holds.
//!
//! ```text
//!  0    2            10            18            26                  34
//!  |ver | producerId | firstOffset | lastOffset  | lastStableOffset  |     34 bytes an entry, big-endian, no header
//! ```
//!
//! Offsets are absolute; the last one is the marker's. The last stable offset is that of the moment after the abort.
//!
//! Rules: `org.apache.kafka.storage.internals.log.{TransactionIndex, AbortedTxn}`.

use super::{Cursor, Offset, ProducerId, Shape};

/// Bytes of an entry.
pub const TXN_INDEX_ENTRY: usize = 2 + 8 + 8 + 8 + 8;
const _: () = assert!(TXN_INDEX_ENTRY == 34);

/// An aborted transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AbortedTransaction {
    /// Version of the entry; 0 is the only one there is.
    pub version: i16,
    /// The producer.
    pub producer_id: ProducerId,
    /// Offset of the first record of the transaction; may lie in an earlier segment.
    pub first_offset: Offset,
    /// Offset of the abort marker.
    pub last_offset: Offset,
    /// The last stable offset once the transaction was aborted: where the oldest open one starts, which may be before the first
    /// offset, else after the marker.
    pub last_stable_offset: Offset,
}

impl AbortedTransaction {
    fn parse(bytes: &[u8; TXN_INDEX_ENTRY]) -> Option<Self> {
        let mut cursor = Cursor::new(bytes);
        Some(Self {
            version: cursor.read_i16(Shape::TxnIndexEntry).ok()?,
            producer_id: ProducerId(cursor.read_i64(Shape::TxnIndexEntry).ok()?),
            first_offset: Offset(cursor.read_i64(Shape::TxnIndexEntry).ok()?),
            last_offset: Offset(cursor.read_i64(Shape::TxnIndexEntry).ok()?),
            last_stable_offset: Offset(cursor.read_i64(Shape::TxnIndexEntry).ok()?),
        })
    }

    /// Appends the entry.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.version.to_be_bytes());
        for number in [self.producer_id.0, self.first_offset.0, self.last_offset.0, self.last_stable_offset.0] {
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

/// The entries of a transaction index, borrowed from its bytes.
#[derive(Clone, Copy, Debug)]
pub struct TxnIndex<'a> {
    entries: &'a [[u8; TXN_INDEX_ENTRY]],
    remainder: &'a [u8],
}

impl<'a> TxnIndex<'a> {
    /// Any bytes are an index; what is wrong with them is for the caller to see.
    pub fn new(data: &'a [u8]) -> Self {
        let (entries, remainder) = data.as_chunks();
        Self { entries, remainder }
    }

    /// Whole entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes behind the last whole entry, which readers ignore and behind which later entries are written out of step.
    pub fn remainder(&self) -> &'a [u8] {
        self.remainder
    }

    /// The entry in a slot.
    pub fn entry(&self, slot: usize) -> Option<AbortedTransaction> {
        self.entries.get(slot).and_then(AbortedTransaction::parse)
    }

    /// All entries in order.
    pub fn iter(&self) -> impl Iterator<Item = AbortedTransaction> + use<'a> {
        self.entries.iter().filter_map(AbortedTransaction::parse)
    }

    /// The transactions that a fetch of `from..to` is told of: those that reach into it, up to and including the first whose last
    /// stable offset is not below `to` (`TransactionIndex.collectAbortedTxns`).
    pub fn aborted_within(&self, from: Offset, to: Offset) -> AbortedWithin {
        let mut found = AbortedWithin { transactions: Vec::new(), is_complete: false };
        for aborted in self.iter() {
            if aborted.last_offset >= from && aborted.first_offset < to {
                found.transactions.push(aborted);
            }
            if aborted.last_stable_offset >= to {
                found.is_complete = true;
                break;
            }
        }
        found
    }
}

/// What [`TxnIndex::aborted_within`] found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AbortedWithin {
    /// The transactions in the file's order.
    pub transactions: Vec<AbortedTransaction>,
    /// Whether the indexes of later segments need not be asked.
    pub is_complete: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn aborted(first: i64, last: i64, stable: i64) -> AbortedTransaction {
        AbortedTransaction {
            version: 0,
            producer_id: ProducerId(4000),
            first_offset: Offset(first),
            last_offset: Offset(last),
            last_stable_offset: Offset(stable),
        }
    }

    fn encoded(entries: &[AbortedTransaction]) -> Vec<u8> {
        let mut out = Vec::new();
        for entry in entries {
            entry.encode(&mut out);
        }
        out
    }

    #[test]
    fn the_published_entry_reads_and_writes() {
        let bytes = [
            0, 0, 0, 0, 0, 0, 0, 0, 0x0f, 0xa0, 0, 0, 0, 0, 0, 0, 0, 0x2a, 0, 0, 0, 0, 0, 0, 0, 0x2e, 0, 0, 0, 0, 0, 0,
            0, 0x2f,
        ];
        let index = TxnIndex::new(&bytes);
        assert_eq!(index.iter().collect::<Vec<_>>(), [aborted(42, 46, 47)]);
        assert_eq!(encoded(&[aborted(42, 46, 47)]), bytes);
        assert_eq!(TxnIndex::new(&bytes[..33]).len(), 0);
        assert_eq!(TxnIndex::new(&bytes[..33]).remainder().len(), 33);
    }

    #[test]
    fn a_fetch_is_told_of_what_reaches_into_it() {
        let bytes = encoded(&[aborted(0, 10, 11), aborted(5, 20, 21), aborted(30, 40, 41), aborted(35, 50, 51)]);
        let found = TxnIndex::new(&bytes).aborted_within(Offset(11), Offset(31));
        assert_eq!(found.transactions, [aborted(5, 20, 21), aborted(30, 40, 41)]);
        assert!(found.is_complete);
        let found = TxnIndex::new(&bytes).aborted_within(Offset(45), Offset(100));
        assert_eq!((found.transactions, found.is_complete), (vec![aborted(35, 50, 51)], false));
    }

    proptest! {
        #[test]
        fn entries_read_back(numbers in proptest::collection::vec(any::<[i64; 4]>(), 0..20), version: i16) {
            let entries: Vec<_> = numbers.iter().map(|[producer_id, first, last, stable]| AbortedTransaction {
                version, producer_id: ProducerId(*producer_id), ..aborted(*first, *last, *stable)
            }).collect();
            let bytes = encoded(&entries);
            prop_assert_eq!(TxnIndex::new(&bytes).iter().collect::<Vec<_>>(), entries);
        }

        #[test]
        fn any_bytes_are_an_index(data in proptest::collection::vec(any::<u8>(), 0..200), from: i64, to: i64) {
            let index = TxnIndex::new(&data);
            prop_assert!(index.aborted_within(Offset(from), Offset(to)).transactions.len() <= index.len());
            prop_assert_eq!(index.iter().count() * TXN_INDEX_ENTRY + index.remainder().len(), data.len());
        }
    }
}

//! The leader epochs of a partition and where each begins (`LeaderEpochCheckpointFile`).

use super::frame::{encode_entries, parse_entries};
use super::lines::Line;
use crate::format::java_number::{parse_java_int, parse_java_long};
use crate::format::{FormatError, LeaderEpoch, Lenient, Offset};

/// An epoch and the first offset written in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EpochEntry {
    /// The epoch.
    pub epoch: LeaderEpoch,
    /// Its first offset.
    pub start_offset: Offset,
}

/// What Kafka's reader of the file lets pass, and its user does not or not silently.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EpochOddity {
    /// Epoch or offset is negative, at which a start fails.
    Negative {
        /// Place in [`LeaderEpochCheckpoint::entries`].
        index: usize,
    },
    /// Epoch or offset is not above that of the entry before. When the file is loaded the later entry drives out the earlier ones that
    /// are not below it in both.
    NotIncreasing {
        /// Place in [`LeaderEpochCheckpoint::entries`].
        index: usize,
    },
}

/// A leader epoch checkpoint.
///
/// ```
/// use segtool::format::{LeaderEpoch, Offset, checkpoint::{EpochEntry, LeaderEpochCheckpoint}};
///
/// let checkpoint = LeaderEpochCheckpoint::parse(b"0\n2\n0 0\n3 42\n").strict().unwrap();
/// assert_eq!(checkpoint.entries.last(), Some(&EpochEntry { epoch: LeaderEpoch(3), start_offset: Offset(42) }));
/// assert_eq!(LeaderEpochCheckpoint::encode(&checkpoint.entries), b"0\n2\n0 0\n3 42\n");
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LeaderEpochCheckpoint {
    /// The entries in the file's order.
    pub entries: Vec<EpochEntry>,
}

impl LeaderEpochCheckpoint {
    /// Reads a checkpoint. A file of 0 bytes is a sound one.
    pub fn parse(data: &[u8]) -> Lenient<Self> {
        let Lenient { content: entries, fault } = parse_entries(data, parse_entry);
        Lenient { content: Self { entries }, fault }
    }

    /// What is odd about the entries, in their order.
    pub fn oddities(&self) -> Vec<EpochOddity> {
        let mut oddities = Vec::new();
        let mut previous: Option<EpochEntry> = None;
        for (index, entry) in self.entries.iter().enumerate() {
            if entry.epoch < LeaderEpoch(0) || entry.start_offset < Offset(0) {
                oddities.push(EpochOddity::Negative { index });
            }
            if previous.is_some_and(|before| entry.epoch <= before.epoch || entry.start_offset <= before.start_offset) {
                oddities.push(EpochOddity::NotIncreasing { index });
            }
            previous = Some(*entry);
        }
        oddities
    }

    /// The bytes of a checkpoint with these entries.
    pub fn encode(entries: &[EpochEntry]) -> Vec<u8> {
        encode_entries(entries.iter().map(|entry| format!("{} {}", entry.epoch, entry.start_offset)))
    }
}

fn parse_entry(line: Line<'_>, fields: &[&str]) -> Result<EpochEntry, FormatError> {
    let [epoch, start_offset] = fields else { return Err(line.malformed("epoch and start offset")) };
    let epoch = parse_java_int(epoch).map(LeaderEpoch).ok_or(line.not_a_number("epoch"))?;
    let start_offset = parse_java_long(start_offset).map(Offset).ok_or(line.not_a_number("startOffset"))?;
    Ok(EpochEntry { epoch, start_offset })
}

#[cfg(test)]
mod tests {
    use super::super::{ReaderException, reader_exception};
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Vec<(i32, i64)> {
        let checkpoint = LeaderEpochCheckpoint::parse(text.as_bytes()).strict().unwrap();
        checkpoint.entries.iter().map(|entry| (entry.epoch.0, entry.start_offset.0)).collect()
    }

    #[test]
    fn kafka_reads_these_files() {
        // Each as read by LeaderEpochCheckpointFile of 4.4.0; what it makes of the entries is another matter.
        assert_eq!(parsed(""), []);
        assert_eq!(parsed("0\n2\n0 0\n3 42\n"), [(0, 0), (3, 42)]);
        assert_eq!(parsed("0\n1\n-1 0\n"), [(-1, 0)]);
        assert_eq!(parsed("0\n1\n0 -1\n"), [(0, -1)]);
        assert_eq!(parsed("0\n2\n3 42\n0 0\n"), [(3, 42), (0, 0)]);
        assert_eq!(parsed("0\n1\n0 0 \n"), [(0, 0)]);
    }

    #[test]
    fn kafka_does_not_read_these_files_and_throws_this() {
        for (text, exception) in [
            ("0\n1\n0\n", ReaderException::Io),
            ("0\n1\n0 0 0\n", ReaderException::Io),
            ("\0\0", ReaderException::Io),
            ("1\n1\n0 0\n", ReaderException::Io),
            ("0\n2\n0 0\n", ReaderException::Io),
            ("0\n1\nx 0\n", ReaderException::Other),
            ("0\n1\n0 x\n", ReaderException::Other),
        ] {
            let fault = LeaderEpochCheckpoint::parse(text.as_bytes()).fault.unwrap();
            assert_eq!(reader_exception(&fault), exception, "{text:?}");
        }
    }

    #[test]
    fn what_is_odd_is_told_by_index() {
        let checkpoint = LeaderEpochCheckpoint::parse(b"0\n4\n-1 0\n1 5\n1 6\n2 6\n").strict().unwrap();
        assert_eq!(
            checkpoint.oddities(),
            [
                EpochOddity::Negative { index: 0 },
                EpochOddity::NotIncreasing { index: 2 },
                EpochOddity::NotIncreasing { index: 3 }
            ]
        );
    }

    proptest! {
        #[test]
        fn entries_read_back(pairs in proptest::collection::vec((any::<i32>(), any::<i64>()), 0..20)) {
            let entries: Vec<_> = pairs.into_iter()
                .map(|(epoch, start)| EpochEntry { epoch: LeaderEpoch(epoch), start_offset: Offset(start) }).collect();
            let data = LeaderEpochCheckpoint::encode(&entries);
            prop_assert_eq!(LeaderEpochCheckpoint::parse(&data).strict().unwrap().entries, entries);
        }
    }
}

//! Offset checkpoints: one offset for each partition of a log dir (`OffsetCheckpointFile`).

use std::collections::BTreeMap;

use super::frame::{encode_entries, parse_entries};
use super::lines::Line;
use crate::format::java_number::{parse_java_int, parse_java_long};
use crate::format::{FormatError, Lenient, Offset};

/// A line of an offset checkpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OffsetEntry {
    /// Number of the line, from 1.
    pub line: u32,
    /// The topic, whatever it is called: Kafka does not check it here.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The offset; what it means depends on the file.
    pub offset: Offset,
}

/// What Kafka reads without a word though it cannot be meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OffsetOddity {
    /// An earlier line names the same partition; this one counts.
    Repeated {
        /// Number of the line.
        line: u32,
        /// Number of the line before.
        earlier_line: u32,
    },
    /// The partition number is negative.
    NegativePartition {
        /// Number of the line.
        line: u32,
    },
    /// The offset is negative.
    NegativeOffset {
        /// Number of the line.
        line: u32,
    },
}

/// An offset checkpoint: recovery points, log start offsets, high watermarks or first uncleaned offsets.
///
/// ```
/// use segtool::format::{Offset, checkpoint::OffsetCheckpoint};
///
/// let checkpoint = OffsetCheckpoint::parse(b"0\n1\nmy-topic 3 123\n").strict().unwrap();
/// assert_eq!(checkpoint.offset_of("my-topic", 3), Some(Offset(123)));
/// assert!(OffsetCheckpoint::parse(b"").strict().unwrap().entries.is_empty());
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct OffsetCheckpoint {
    /// The lines in the file's order.
    pub entries: Vec<OffsetEntry>,
}

impl OffsetCheckpoint {
    /// Reads a checkpoint. A file of 0 bytes is a sound one.
    pub fn parse(data: &[u8]) -> Lenient<Self> {
        let Lenient { content: entries, fault } = parse_entries(data, parse_entry);
        Lenient { content: Self { entries }, fault }
    }

    /// The offset that counts for a partition: that of its last line.
    pub fn offset_of(&self, topic: &str, partition: i32) -> Option<Offset> {
        let of_partition = |entry: &&OffsetEntry| entry.partition == partition && entry.topic == topic;
        self.entries.iter().rev().find(of_partition).map(|entry| entry.offset)
    }

    /// The offsets that count, by topic and partition.
    pub fn effective(&self) -> BTreeMap<(&str, i32), Offset> {
        self.entries.iter().map(|entry| ((&*entry.topic, entry.partition), entry.offset)).collect()
    }

    /// What is odd about the lines, in their order.
    pub fn oddities(&self) -> Vec<OffsetOddity> {
        let mut lines = BTreeMap::new();
        let mut oddities = Vec::new();
        for entry in &self.entries {
            let line = entry.line;
            if let Some(earlier_line) = lines.insert((&*entry.topic, entry.partition), line) {
                oddities.push(OffsetOddity::Repeated { line, earlier_line });
            }
            if entry.partition < 0 {
                oddities.push(OffsetOddity::NegativePartition { line });
            }
            if entry.offset < Offset(0) {
                oddities.push(OffsetOddity::NegativeOffset { line });
            }
        }
        oddities
    }

    /// The bytes of a checkpoint with these topics, partitions and offsets, in this order. Kafka's own order is that of a hash map.
    pub fn encode<'a>(entries: impl ExactSizeIterator<Item = (&'a str, i32, Offset)>) -> Vec<u8> {
        encode_entries(entries.map(|(topic, partition, offset)| format!("{topic} {partition} {offset}")))
    }
}

fn parse_entry(line: Line<'_>, fields: &[&str]) -> Result<OffsetEntry, FormatError> {
    let [topic, partition, offset] = fields else { return Err(line.malformed("topic, partition and offset")) };
    let partition = parse_java_int(partition).ok_or(line.not_a_number("partition"))?;
    let offset = parse_java_long(offset).map(Offset).ok_or(line.not_a_number("offset"))?;
    Ok(OffsetEntry { line: line.number, topic: (*topic).to_owned(), partition, offset })
}

#[cfg(test)]
mod tests {
    use super::super::{ReaderException, reader_exception};
    use super::*;
    use crate::format::{FormatErrorKind, Position, Shape};
    use proptest::prelude::*;

    #[test]
    fn the_published_file_reads_and_writes() {
        let bytes = b"0\n2\nmy-topic 0 123\nmy-topic 10 0\n";
        let checkpoint = OffsetCheckpoint::parse(bytes).strict().unwrap();
        let entries: Vec<_> = checkpoint.entries.iter().map(|e| (&*e.topic, e.partition, e.offset)).collect();
        assert_eq!(entries, [("my-topic", 0, Offset(123)), ("my-topic", 10, Offset(0))]);
        assert_eq!(OffsetCheckpoint::encode(entries.into_iter()), bytes);
        assert_eq!(OffsetCheckpoint::encode(std::iter::empty()), b"0\n0\n");
    }

    #[test]
    fn kafka_reads_these_files() {
        // Each as read by OffsetCheckpointFile of 4.4.0.
        for (text, expected) in [
            ("", None),
            ("0", None),
            ("0\n", None),
            ("0\n0", None),
            ("0\n0\n", None),
            ("0\n1\na 0 5\n", Some(("a", 0, 5))),
            ("0\n1\na 0 5", Some(("a", 0, 5))),
            ("0\r\n1\r\na 0 5\r\n", Some(("a", 0, 5))),
            ("0\r1\ra 0 5\r", Some(("a", 0, 5))),
            ("0\n1\na 0 5 \n", Some(("a", 0, 5))),
            ("0\n1\na\t0\u{b}\u{c}5\n", Some(("a", 0, 5))),
            ("0\n1\na 0 -5\n", Some(("a", 0, -5))),
            ("0\n1\na -1 5\n", Some(("a", -1, 5))),
            ("0\n1\na +1 +5\n", Some(("a", 1, 5))),
            ("0\n1\na 01 05\n", Some(("a", 1, 5))),
            ("+0\n1\na 0 5\n", Some(("a", 0, 5))),
            ("0\n2\na 0 5\na 0 6\n", Some(("a", 0, 6))),
            ("0\n1\né 0 5\n", Some(("é", 0, 5))),
            ("0\n1\na ٣ ٤\n", Some(("a", 3, 4))),
        ] {
            let checkpoint = OffsetCheckpoint::parse(text.as_bytes()).strict().unwrap();
            let effective: Vec<_> = checkpoint.effective().into_iter().map(|((t, p), o)| (t, p, o.0)).collect();
            assert_eq!(effective, Vec::from_iter(expected), "{text:?}");
        }
    }

    #[test]
    fn kafka_does_not_read_these_files_and_throws_this() {
        // Each as refused by OffsetCheckpointFile of 4.4.0.
        for (text, line, exception) in [
            (&b"0\n1\na 0 5\n\n"[..], 4, ReaderException::Io),
            (b"0\n1\n\na 0 5\n", 3, ReaderException::Io),
            (b"0\n1\n a 0 5\n", 3, ReaderException::Io),
            (b"0\n1\na 0\n", 3, ReaderException::Io),
            (b"0\n1\na 0 5 6\n", 3, ReaderException::Io),
            (b"0\n0\na b", 3, ReaderException::Io),
            (b"0\nx\na 0 5\n", 2, ReaderException::Io),
            (b"0\n1 \na 0 5\n", 2, ReaderException::Io),
            (b"0 \n1\na 0 5\n", 1, ReaderException::Io),
            (b" 0\n1\na 0 5\n", 1, ReaderException::Io),
            (b"x", 1, ReaderException::Io),
            (b"\n", 1, ReaderException::Io),
            (b"\0\0\0\0", 1, ReaderException::Io),
            (b"\xef\xbb\xbf0\n1\na 0 5\n", 1, ReaderException::Io),
            (b"0\n1\n\xff 0 5\n", 2, ReaderException::Io),
            (b"0\n1\na x 5\n", 3, ReaderException::Other),
            (b"0\n1\na 0 x\n", 3, ReaderException::Other),
            (b"0\n3\na 0 x\n", 3, ReaderException::Other),
            (b"0\n1\na 2147483648 5\n", 3, ReaderException::Other),
            (b"0\n1\na 0 9223372036854775808\n", 3, ReaderException::Other),
        ] {
            let fault = OffsetCheckpoint::parse(text).fault.unwrap();
            assert_eq!(reader_exception(&fault), exception, "{text:?}");
            match fault.kind {
                FormatErrorKind::MalformedLine { line: found, .. }
                | FormatErrorKind::NotANumber { line: found, .. } => {
                    assert_eq!(found, line, "{text:?}");
                }
                other => panic!("{text:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn counts_and_versions_that_do_not_fit_are_told_in_numbers() {
        let shape = Shape::TextFile;
        let mismatch = |expected, found| FormatErrorKind::Mismatch { shape, field: "count", expected, found };
        let most = i64::from(i32::MAX);
        for (text, position, kind) in [
            ("0\n2\na 0 5\n", 2, mismatch(2, 1)),
            ("0\n1\na 0 5\nb 0 6\n", 2, mismatch(1, 2)),
            ("0\n2147483647\n", 2, mismatch(most, 0)),
            ("1\n1\na 0 5\n", 0, FormatErrorKind::UnknownValue { shape, field: "version", found: 1 }),
            ("0\n-1\n", 2, FormatErrorKind::LengthOutOfRange { shape, found: -1, least: 0, most }),
        ] {
            let fault = OffsetCheckpoint::parse(text.as_bytes()).fault;
            assert_eq!(fault, Some(FormatError::new(Position(position), kind)), "{text:?}");
        }
    }

    #[test]
    fn what_can_be_read_of_a_damaged_file_is_read() {
        let lenient = OffsetCheckpoint::parse(b"7\n9\na 0 5\nb x 1\n\xff 1 2\nc 0");
        let entries: Vec<_> = lenient.content.entries.iter().map(|e| (e.line, &*e.topic, e.offset.0)).collect();
        assert_eq!(entries, [(3, "a", 5), (5, "\u{fffd}", 2)]);
        assert!(lenient.fault.is_some());
    }

    #[test]
    fn what_is_odd_is_told_by_line() {
        let checkpoint = OffsetCheckpoint::parse(b"0\n4\na 0 5\na -1 -5\nb 0 1\na 0 6\n").strict().unwrap();
        assert_eq!(
            checkpoint.oddities(),
            [
                OffsetOddity::NegativePartition { line: 4 },
                OffsetOddity::NegativeOffset { line: 4 },
                OffsetOddity::Repeated { line: 6, earlier_line: 3 }
            ]
        );
        assert_eq!(checkpoint.offset_of("a", 0), Some(Offset(6)));
        assert_eq!(checkpoint.offset_of("c", 0), None);
    }

    proptest! {
        #[test]
        fn entries_read_back(entries in proptest::collection::vec(("[A-Za-z0-9._-]{1,20}", any::<i32>(), any::<i64>()), 0..20)) {
            let given = entries.iter().map(|(topic, partition, offset)| (&**topic, *partition, Offset(*offset)));
            let checkpoint = OffsetCheckpoint::parse(&OffsetCheckpoint::encode(given.clone())).strict().unwrap();
            let read: Vec<_> = checkpoint.entries.iter().map(|e| (&*e.topic, e.partition, e.offset)).collect();
            prop_assert_eq!(read, given.collect::<Vec<_>>());
        }

        #[test]
        fn any_bytes_are_read_without_panic(data in proptest::collection::vec(prop::sample::select(b"0123 -ab\n\r\xff\xc3".to_vec()), 0..60)) {
            let _ = OffsetCheckpoint::parse(&data).content.oddities();
        }
    }
}

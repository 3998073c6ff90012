//! A topic's name and a partition number, as a directory name gives them.

use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write as _};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// One partition of one topic.
///
/// The topic is kept as the bytes of the directory name: Kafka allows only `[A-Za-z0-9._-]` but does not look again at start, so
/// a directory may be called anything. Ordered by topic bytes, then by number.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TopicPartition {
    topic: OsString,
    partition: i32,
}

impl TopicPartition {
    /// The partition `partition` of `topic`.
    pub fn new(topic: impl Into<OsString>, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }

    /// A topic given as bytes, such as a part of a directory name.
    pub(crate) fn from_bytes(topic: &[u8], partition: i32) -> Self {
        Self { topic: OsString::from_vec(topic.to_vec()), partition }
    }

    /// The topic's name.
    pub fn topic(&self) -> &OsStr {
        &self.topic
    }

    /// The topic's name as bytes.
    pub fn topic_bytes(&self) -> &[u8] {
        self.topic.as_bytes()
    }

    /// The topic's name where it is UTF-8, as every name that Kafka makes is.
    pub fn topic_str(&self) -> Option<&str> {
        self.topic.to_str()
    }

    /// The partition number; never negative where it comes from a directory name.
    pub fn partition(&self) -> i32 {
        self.partition
    }

    /// The name of the partition's directory, `<topic>-<partition>` (`LocalLog.logDirName`).
    pub fn dir_name(&self) -> OsString {
        let mut name = self.topic.clone();
        name.push(format!("-{}", self.partition));
        name
    }

    /// Whether Kafka itself would let a topic of this name be created (`Topic.validate`).
    pub fn has_legal_topic(&self) -> bool {
        is_legal_topic(self.topic_bytes())
    }
}

/// Whether Kafka would let a topic of this name be created: 1 to 249 of `[A-Za-z0-9._-]`, and neither `.` nor `..`.
pub fn is_legal_topic(topic: &[u8]) -> bool {
    let legal = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=249).contains(&topic.len()) && topic != b"." && topic != b".." && topic.iter().all(legal)
}

impl Ord for TopicPartition {
    fn cmp(&self, other: &Self) -> Ordering {
        self.topic_bytes().cmp(other.topic_bytes()).then(self.partition.cmp(&other.partition))
    }
}

impl PartialOrd for TopicPartition {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// `<topic>-<partition>`, safe for a terminal and without loss: a byte that is no UTF-8 stands as `\xNN`, a character that is not
/// printable as `\u{..}`, a backslash as `\\`.
impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.topic_bytes().utf8_chunks() {
            for c in chunk.valid().chars() {
                // Debug escapes exactly what is not printable, and quotes, which are.
                match c {
                    '"' | '\'' => f.write_char(c)?,
                    _ => write!(f, "{}", c.escape_debug())?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        write!(f, "-{}", self.partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_sort_by_topic_bytes_then_by_number() {
        let mut sorted = [("b", 0), ("a", 10), ("a", 9), ("a-b", 1)].map(|(t, p)| TopicPartition::new(t, p));
        sorted.sort();
        assert_eq!(sorted.map(|tp| tp.to_string()), ["a-9", "a-10", "a-b-1", "b-0"]);
    }

    #[test]
    fn a_name_that_is_no_text_prints_without_loss_and_without_control_characters() {
        let tp = TopicPartition::from_bytes(b"a\xff\x1b[31m\\\"\xc3\xa9", 3);
        assert_eq!(tp.to_string(), "a\\xff\\u{1b}[31m\\\\\"é-3");
        assert_eq!(tp.dir_name().as_bytes(), b"a\xff\x1b[31m\\\"\xc3\xa9-3");
        assert_eq!(tp.topic_str(), None);
        assert!(!tp.has_legal_topic());
    }

    #[test]
    fn legal_topics_are_those_that_kafka_creates() {
        let long = "x".repeat(249);
        for (topic, legal) in [("a", true), ("A.b_c-9", true), (&*long, true), ("", false), (".", false), ("..", false)]
        {
            assert_eq!(is_legal_topic(topic.as_bytes()), legal, "{topic:?}");
        }
        assert!(!is_legal_topic("é".as_bytes()));
        assert!(!is_legal_topic(&[b'x'; 250]));
    }
}

//! Names of the directories inside a log dir (`kafka.log.LocalLog.parseTopicPartitionName`).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::format::java_number::parse_java_int;
use crate::logdir::TopicPartition;

const DELETE: &[u8] = b"-delete";
const FUTURE: &[u8] = b"-future";
const STRAY: &[u8] = b"-stray";
const REMOTE_INDEX_CACHE: &[u8] = b"remote-log-index-cache";
const CLUSTER_METADATA: &[u8] = b"__cluster_metadata";
/// The metadata topic's name in the 2.8 preview, whose brokers skip it as later ones skip `__cluster_metadata`.
const PREVIEW_METADATA: &[u8] = b"@metadata";
/// The longest file name that brokers make; the topic is cut where a suffix would exceed it.
const LONGEST_NAME: usize = 255;

/// What the name of a directory inside a log dir says.
///
/// ```
/// use segtool::logdir::{TopicPartition, names::DirName};
///
/// assert_eq!(DirName::parse("a--5".as_ref()), DirName::Partition(TopicPartition::new("a-", 5)));
/// assert_eq!(DirName::parse("lost+found".as_ref()), DirName::NotAPartition);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum DirName {
    /// `<topic>-<partition>`: a live replica.
    Partition(TopicPartition),
    /// `<topic>-<partition>.<id>-delete`: to be deleted. Brokers since 2.3 cut a long topic, so the topic may be a prefix only.
    Delete {
        /// The partition it held.
        topic_partition: TopicPartition,
        /// The random part of the name.
        id: OsString,
    },
    /// `<topic>-<partition>.<id>-future`: where a replica is being moved to.
    Future {
        /// The partition being moved.
        topic_partition: TopicPartition,
        /// The random part of the name.
        id: OsString,
    },
    /// `<topic>-<partition>.<id>-stray`: a replica that the cluster does not place here. A long topic may be cut.
    Stray {
        /// The partition it held.
        topic_partition: TopicPartition,
        /// The random part of the name.
        id: OsString,
    },
    /// `__cluster_metadata-<n>`, or `@metadata-<n>` of the 2.8 preview: the metadata log of KRaft, loaded apart from the others.
    ClusterMetadata(TopicPartition),
    /// `remote-log-index-cache`: indexes fetched from tiered storage.
    RemoteIndexCache,
    /// A broker refuses to start over this directory.
    NotAPartition,
}

impl DirName {
    /// Reads the name of a directory.
    ///
    /// A partition number is what Java's parser takes: zeros in front and digits of other scripts pass.
    pub fn parse(name: &OsStr) -> Self {
        let bytes = name.as_bytes();
        if bytes == REMOTE_INDEX_CACHE {
            return Self::RemoteIndexCache;
        }
        let doomed = [DELETE, FUTURE, STRAY].into_iter().find(|suffix| bytes.ends_with(suffix));
        let parsed = match doomed {
            Some(suffix) => parse_suffixed(bytes, suffix),
            None => parse_topic_partition(bytes).map(Self::of_live),
        };
        parsed.unwrap_or(Self::NotAPartition)
    }

    fn of_live(topic_partition: TopicPartition) -> Self {
        match topic_partition.topic_bytes() {
            CLUSTER_METADATA | PREVIEW_METADATA => Self::ClusterMetadata(topic_partition),
            _ => Self::Partition(topic_partition),
        }
    }

    /// The partition that the name speaks of.
    pub fn topic_partition(&self) -> Option<&TopicPartition> {
        match self {
            Self::Partition(topic_partition)
            | Self::ClusterMetadata(topic_partition)
            | Self::Delete { topic_partition, .. }
            | Self::Future { topic_partition, .. }
            | Self::Stray { topic_partition, .. } => Some(topic_partition),
            Self::RemoteIndexCache | Self::NotAPartition => None,
        }
    }

    /// The name a broker gives such a directory; `None` where there is none. It may differ from the name that was read: a
    /// partition number may have been padded.
    pub fn to_name(&self) -> Option<OsString> {
        let with_suffix = |topic_partition: &TopicPartition, id: &OsString, suffix: &[u8]| {
            let mut name = topic_partition.dir_name().into_vec();
            name.push(b'.');
            name.extend_from_slice(id.as_bytes());
            name.extend_from_slice(suffix);
            Some(OsString::from_vec(name))
        };
        match self {
            Self::Partition(topic_partition) | Self::ClusterMetadata(topic_partition) => {
                Some(topic_partition.dir_name())
            }
            Self::Delete { topic_partition, id } => with_suffix(topic_partition, id, DELETE),
            Self::Future { topic_partition, id } => with_suffix(topic_partition, id, FUTURE),
            Self::Stray { topic_partition, id } => with_suffix(topic_partition, id, STRAY),
            Self::RemoteIndexCache => Some(OsString::from_vec(REMOTE_INDEX_CACHE.to_vec())),
            Self::NotAPartition => None,
        }
    }

    /// Whether the log manager opens the directory as a log at start. It passes over the index cache and everything that belongs
    /// to the metadata topic, and fails on what is no partition. Since 3.0 the preview's `@metadata` is a topic as any other.
    pub fn is_loaded(&self) -> bool {
        self.topic_partition().is_some_and(|topic_partition| topic_partition.topic_bytes() != CLUSTER_METADATA)
    }
}

/// The name of the directory in which a broker since 2.3 deletes `topic_partition`, the topic cut to fit 255 bytes.
pub fn doomed_dir_name(topic_partition: &TopicPartition, id: &OsStr) -> OsString {
    capped_name(topic_partition, id, DELETE)
}

/// The name a broker gives to a replica that does not belong here, the topic cut to fit 255 bytes.
pub fn stray_dir_name(topic_partition: &TopicPartition, id: &OsStr) -> OsString {
    capped_name(topic_partition, id, STRAY)
}

fn capped_name(topic_partition: &TopicPartition, id: &OsStr, suffix: &[u8]) -> OsString {
    let mut tail = format!("-{}.", topic_partition.partition()).into_bytes();
    tail.extend_from_slice(id.as_bytes());
    tail.extend_from_slice(suffix);
    let room = LONGEST_NAME.saturating_sub(tail.len());
    let mut name: Vec<u8> = topic_partition.topic_bytes().iter().copied().take(room).collect();
    name.extend_from_slice(&tail);
    OsString::from_vec(name)
}

/// `(\S+)-(\S+)\.(\S+)` in front of the suffix, then split at the last dot and the last dash before it.
fn parse_suffixed(name: &[u8], suffix: &[u8]) -> Option<DirName> {
    let body = name.strip_suffix(suffix)?;
    if body.iter().any(|byte| is_java_space(*byte)) {
        return None;
    }
    // The pattern has greedy parts but backs up: any dash after something, then any dot after something, then something.
    let dash = 1 + body.get(1..)?.iter().position(|byte| *byte == b'-')?;
    let after_dash = body.get(dash + 1..)?;
    let dot = 1 + after_dash.get(1..)?.iter().position(|byte| *byte == b'.')?;
    if after_dash.len() <= dot + 1 {
        return None;
    }
    let last_dot = body.iter().rposition(|byte| *byte == b'.')?;
    let (live, id) = body.split_at_checked(last_dot)?;
    let topic_partition = parse_topic_partition(live)?;
    let id = OsString::from_vec(id.strip_prefix(b".")?.to_vec());
    Some(match suffix {
        DELETE => DirName::Delete { topic_partition, id },
        FUTURE => DirName::Future { topic_partition, id },
        _ => DirName::Stray { topic_partition, id },
    })
}

/// Splits at the last dash: a topic that is not empty, and a number.
fn parse_topic_partition(name: &[u8]) -> Option<TopicPartition> {
    let dash = name.iter().rposition(|byte| *byte == b'-')?;
    let (topic, partition) = name.split_at_checked(dash)?;
    let partition = std::str::from_utf8(partition.strip_prefix(b"-")?).ok().and_then(parse_java_int)?;
    (!topic.is_empty()).then(|| TopicPartition::from_bytes(topic, partition))
}

/// What `\s` matches in a Java pattern.
fn is_java_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn live(topic: &str, partition: i32) -> DirName {
        DirName::Partition(TopicPartition::new(topic, partition))
    }

    fn doomed(topic: &str, partition: i32, id: &str) -> DirName {
        DirName::Delete { topic_partition: TopicPartition::new(topic, partition), id: id.into() }
    }

    #[test]
    fn directory_names_read_as_kafka_reads_them() {
        // Each as read by LocalLog.parseTopicPartitionName of 4.4.0.
        let rows = [
            ("my-topic-3", live("my-topic", 3)),
            ("a--5", live("a-", 5)),
            ("a-+5", live("a", 5)),
            ("a-007", live("a", 7)),
            ("a-٣", live("a", 3)),
            ("a b-1", live("a b", 1)),
            ("x.y-0", live("x.y", 0)),
            ("-5", DirName::NotAPartition),
            ("--5", live("-", 5)),
            ("a-", DirName::NotAPartition),
            ("a", DirName::NotAPartition),
            ("", DirName::NotAPartition),
            ("lost+found", DirName::NotAPartition),
            ("a-b", DirName::NotAPartition),
            ("a-2147483648", DirName::NotAPartition),
            ("x.y-0.abc-delete", doomed("x.y", 0, "abc")),
            ("a-b.c-0.-delete", doomed("a-b.c", 0, "")),
            ("a-0.b.c-delete", DirName::NotAPartition),
            ("a-0.-delete", DirName::NotAPartition),
            ("a-0-delete", DirName::NotAPartition),
            ("a-0.b-stray-delete", doomed("a", 0, "b-stray")),
            ("a-0.b-delete-0", live("a-0.b-delete", 0)),
            ("-delete", DirName::NotAPartition),
            ("a-0.x -delete", DirName::NotAPartition),
            ("a\u{a0}b-0.x-delete", doomed("a\u{a0}b", 0, "x")),
            ("a b-0.abc-delete", DirName::NotAPartition),
            ("a-x.abc-delete", DirName::NotAPartition),
            ("-0.abc-delete", DirName::NotAPartition),
            ("topic-delete-0", live("topic-delete", 0)),
            ("__cluster_metadata-0", DirName::ClusterMetadata(TopicPartition::new("__cluster_metadata", 0))),
            ("@metadata-0", DirName::ClusterMetadata(TopicPartition::new("@metadata", 0))),
            ("remote-log-index-cache", DirName::RemoteIndexCache),
        ];
        for (name, expected) in rows {
            assert_eq!(DirName::parse(OsStr::new(name)), expected, "{name:?}");
        }
    }

    #[test]
    fn suffixes_tell_a_move_from_a_deletion_from_a_stray() {
        let parsed = |name: &str| DirName::parse(OsStr::new(name));
        let topic_partition = TopicPartition::new("t", 1);
        let id = OsString::from("0f0f");
        let copied = || (topic_partition.clone(), id.clone());
        let (topic_partition, id) = copied();
        assert_eq!(parsed("t-1.0f0f-future"), DirName::Future { topic_partition, id });
        let (topic_partition, id) = copied();
        assert_eq!(parsed("t-1.0f0f-stray"), DirName::Stray { topic_partition, id });
        assert!(parsed("t-1.0f0f-stray").is_loaded());
        assert!(!parsed("__cluster_metadata-0.0f0f-delete").is_loaded());
        assert!(!parsed("__cluster_metadata-0").is_loaded());
        assert!(!parsed("remote-log-index-cache").is_loaded());
    }

    #[test]
    fn a_name_that_is_no_text_keeps_its_bytes() {
        let parsed = DirName::parse(OsStr::from_bytes(b"a\xff-2.id-delete"));
        assert_eq!(parsed.topic_partition().map(TopicPartition::topic_bytes), Some(&b"a\xff"[..]));
        assert_eq!(parsed.to_name().as_deref(), Some(OsStr::from_bytes(b"a\xff-2.id-delete")));
        assert_eq!(DirName::parse(OsStr::from_bytes(b"a-\xff")), DirName::NotAPartition);
    }

    #[test]
    fn long_topics_are_cut_where_brokers_cut_them() {
        let topic_partition = TopicPartition::new("x".repeat(249), 0);
        let id = "0".repeat(32);
        let name = doomed_dir_name(&topic_partition, OsStr::new(&id));
        assert_eq!(name.len(), 255);
        let parsed = DirName::parse(&name);
        assert_eq!(parsed.topic_partition().map(|tp| tp.topic_bytes().len()), Some(213));
        let stray = DirName::parse(&stray_dir_name(&topic_partition, OsStr::new(&id)));
        assert_eq!(stray.topic_partition().map(|tp| tp.topic_bytes().len()), Some(214));
    }

    proptest! {
        #[test]
        fn names_of_brokers_read_back(topic in "[A-Za-z0-9._-]{1,40}", partition in 0..i32::MAX, id in "[0-9a-f]{32}") {
            let topic_partition = TopicPartition::new(&*topic, partition);
            let id = OsString::from(id);
            for name in [
                DirName::Partition(topic_partition.clone()),
                DirName::Delete { topic_partition: topic_partition.clone(), id: id.clone() },
                DirName::Future { topic_partition: topic_partition.clone(), id: id.clone() },
                DirName::Stray { topic_partition: topic_partition.clone(), id: id.clone() },
            ] {
                let text = name.to_name().unwrap();
                prop_assert_eq!(DirName::parse(&text), name);
            }
        }

        #[test]
        fn any_bytes_are_read_without_panic_and_what_is_a_partition_can_be_named(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let parsed = DirName::parse(OsStr::from_bytes(&bytes));
            if let Some(name) = parsed.to_name() {
                prop_assert_eq!(DirName::parse(&name), parsed);
            }
        }

        #[test]
        fn names_of_dots_and_dashes_agree_with_a_naive_reading(name in "[a1.-]{0,8}-(delete|future|stray)") {
            let parsed = DirName::parse(OsStr::new(&name));
            let (body, _) = name.rsplit_once('-').unwrap();
            let matches = (1..body.len()).any(|dash| body.as_bytes()[dash] == b'-'
                && (dash + 2..body.len().saturating_sub(1)).any(|dot| body.as_bytes()[dot] == b'.'));
            let expected = body.rsplit_once('.').filter(|_| matches).and_then(|(live, _)| live.rsplit_once('-'))
                .and_then(|(topic, number)| number.parse::<i32>().ok().filter(|_| !topic.is_empty() && !number.starts_with('-')));
            prop_assert_eq!(parsed.topic_partition().map(TopicPartition::partition), expected);
        }
    }
}

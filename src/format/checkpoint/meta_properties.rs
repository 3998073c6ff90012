//! `meta.properties`: which cluster, node and directory a log dir belongs to (`MetaProperties`).

use super::java_properties::{Property, parse_properties, value_of};
use crate::format::java_number::parse_java_int;
use crate::format::{FormatError, FormatErrorKind, Lenient, Position, Shape, Uuid};

/// The identity of a log dir. Version 0 is that of ZooKeeper, 1 that of KRaft; migrated nodes may keep 0.
///
/// ```
/// use segtool::format::checkpoint::MetaProperties;
///
/// let text = b"#\n#Sat Mar 01 12:00:00 UTC 2025\nnode.id=1\nversion=1\ncluster.id=abc\n";
/// let meta = MetaProperties::parse(text).strict().unwrap();
/// assert_eq!((meta.version, meta.node_id, meta.cluster_id.as_deref()), (1, Some(1), Some("abc")));
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MetaProperties {
    /// Version of the file; 0 where it says none.
    pub version: i32,
    /// `node.id` of version 1, `broker.id` of version 0.
    pub node_id: Option<i32>,
    /// `cluster.id`, any text.
    pub cluster_id: Option<String>,
    /// `directory.id`, 3.7 and later.
    pub directory_id: Option<Uuid>,
    /// Every property in the file's order, those that Kafka ignores included.
    pub properties: Vec<Property>,
}

impl MetaProperties {
    const KNOWN_KEYS: [&'static str; 5] = ["version", "broker.id", "node.id", "cluster.id", "directory.id"];

    /// Reads the file. A broker (3.7 and later) that meets a fault takes the log dir for failed, or exits.
    ///
    /// An empty file is not at fault by itself: it reads as version 0 without any id.
    pub fn parse(data: &[u8]) -> Lenient<Self> {
        let Lenient { content: properties, fault } = parse_properties(data);
        let mut content = Self { properties, ..Self::default() };
        let read = content.read_properties();
        Lenient { content, fault: fault.or(read.err()) }
    }

    /// In the order in which Kafka asks, but going on after a fault.
    fn read_properties(&mut self) -> Result<(), FormatError> {
        let properties = &self.properties;
        let int = |key: &'static str| match value_of(properties, key) {
            None => Ok(None),
            Some(property) => match parse_java_int(&property.value) {
                Some(number) => Ok(Some(number)),
                None => Err(fault(FormatErrorKind::NotANumber { line: property.line, field: key })),
            },
        };
        let version = value_of(properties, "version").map_or(Ok(0), |property| {
            // The version alone is trimmed.
            let not_a_number = FormatErrorKind::NotANumber { line: property.line, field: "version" };
            match parse_java_int(property.value.trim_matches(|c| c <= ' ')) {
                Some(version @ 0..=1) => Ok(version),
                Some(version) => Err((version, unknown_version(version))),
                None => Err((0, fault(not_a_number))),
            }
        });
        self.version = version.as_ref().map_or_else(|(version, _)| *version, |version| *version);
        let node_id = if self.version == 0 { int("broker.id") } else { int("node.id") };
        self.node_id = *node_id.as_ref().unwrap_or(&None);
        self.cluster_id = value_of(properties, "cluster.id").map(|property| property.value.clone());
        let directory_id = match value_of(properties, "directory.id") {
            None => Ok(None),
            Some(property) => match Uuid::parse(&property.value) {
                Some(id) => Ok(Some(id)),
                None => Err(fault(FormatErrorKind::NotAnId { line: property.line, field: "directory.id" })),
            },
        };
        self.directory_id = *directory_id.as_ref().unwrap_or(&None);
        version.map_err(|(_, fault)| fault)?;
        let has_node = node_id?.is_some();
        directory_id?;
        match (self.version, has_node, &self.cluster_id) {
            (1, false, _) => Err(missing("node.id")),
            (1, true, None) => Err(missing("cluster.id")),
            _ => Ok(()),
        }
    }

    /// Properties that Kafka ignores, and loses when it writes the file again.
    pub fn unknown(&self) -> impl Iterator<Item = &Property> {
        self.properties.iter().filter(|property| !Self::KNOWN_KEYS.contains(&&*property.key))
    }
}

fn fault(kind: FormatErrorKind) -> FormatError {
    FormatError::new(Position(0), kind)
}

fn unknown_version(found: i32) -> FormatError {
    fault(FormatErrorKind::UnknownValue { shape: Shape::TextFile, field: "version", found: i64::from(found) })
}

fn missing(field: &'static str) -> FormatError {
    fault(FormatErrorKind::MissingField { shape: Shape::TextFile, field })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read<'a> = (i32, Option<i32>, Option<&'a str>, bool);

    #[test]
    fn kafka_reads_these_files() {
        // Each as read by MetaProperties of 4.4.0.
        let id = "directory.id=AAECAwQFBgcICQoLDA0ODw";
        let rows: [(String, Read<'_>); 11] = [
            (format!("version=1\ncluster.id=abc\nnode.id=1\n{id}"), (1, Some(1), Some("abc"), true)),
            ("version=0\nbroker.id=1".to_owned(), (0, Some(1), None, false)),
            ("version=0".to_owned(), (0, None, None, false)),
            (String::new(), (0, None, None, false)),
            ("version= 01 \nnode.id=+1\ncluster.id=".to_owned(), (1, Some(1), Some(""), false)),
            ("version=0\nbroker.id=-1".to_owned(), (0, Some(-1), None, false)),
            ("version=0\nbroker.id=1\nnode.id=2".to_owned(), (0, Some(1), None, false)),
            ("version=1\nbroker.id=x\nnode.id=2\ncluster.id=c".to_owned(), (1, Some(2), Some("c"), false)),
            ("version=0\ncluster.id=x".to_owned(), (0, None, Some("x"), false)),
            (format!("version=0\n{id}"), (0, None, None, true)),
            ("foo=bar\nversion=0".to_owned(), (0, None, None, false)),
        ];
        for (text, expected) in rows {
            let meta = MetaProperties::parse(text.as_bytes()).strict().unwrap();
            let read = (meta.version, meta.node_id, meta.cluster_id.as_deref(), meta.directory_id.is_some());
            assert_eq!(read, expected, "{text:?}");
        }
    }

    #[test]
    fn kafka_does_not_read_these_files() {
        let number = |line, field| FormatErrorKind::NotANumber { line, field };
        for (text, kind) in [
            ("version=1\ncluster.id=abc", missing("node.id").kind),
            ("version=1\nnode.id=1", missing("cluster.id").kind),
            ("version=2\nnode.id=1\ncluster.id=a", unknown_version(2).kind),
            ("version=x", number(1, "version")),
            ("version=1\nnode.id=1 \ncluster.id=a", number(2, "node.id")),
            ("version=1\nnode.id=x\ncluster.id=a", number(2, "node.id")),
            ("version=0\nbroker.id=x", number(2, "broker.id")),
            ("version=0\ndirectory.id=x", FormatErrorKind::NotAnId { line: 2, field: "directory.id" }),
            ("version=0\ndirectory.id=", FormatErrorKind::NotAnId { line: 2, field: "directory.id" }),
        ] {
            assert_eq!(MetaProperties::parse(text.as_bytes()).fault.map(|fault| fault.kind), Some(kind), "{text:?}");
        }
        assert!(MetaProperties::parse(b"version=1\nnode.id=\\u12").fault.is_some());
    }

    #[test]
    fn what_is_sound_survives_a_fault_and_unknown_keys_are_kept() {
        let meta = MetaProperties::parse(b"version=7\nnode.id=3\ncluster.id=c\ncolour=blue").content;
        assert_eq!((meta.version, meta.node_id, meta.cluster_id.as_deref()), (7, Some(3), Some("c")));
        let unknown: Vec<_> = meta.unknown().map(|property| (&*property.key, &*property.value)).collect();
        assert_eq!(unknown, [("colour", "blue")]);
    }
}

//! `partition.metadata`: the id of the topic that a partition directory belongs to (`PartitionMetadataFile`, 2.8 and later).

use super::frame::decode;
use super::lines::{Line, is_java_space, java_lines};
use crate::format::java_number::parse_java_int;
use crate::format::{FormatError, FormatErrorKind, Lenient, Position, Shape, Uuid, len_u64};

/// The topic id of a partition.
///
/// ```
/// use segtool::format::checkpoint::PartitionMetadata;
///
/// let text = b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw";
/// let metadata = PartitionMetadata::parse(text).strict().unwrap();
/// assert_eq!(PartitionMetadata::encode(metadata.topic_id.unwrap()), text);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PartitionMetadata {
    /// Version of the file; later ones than 0 are read alike.
    pub version: i32,
    /// The topic's id; there is one unless the file is at fault.
    pub topic_id: Option<Uuid>,
}

impl PartitionMetadata {
    /// Reads the file: two lines, of which only what follows the colon and white space matters. Further lines are not looked at,
    /// but have to be UTF-8.
    pub fn parse(data: &[u8]) -> Lenient<Self> {
        let (text, not_text) = decode(data);
        let mut content = Self::default();
        let read = content.read(&text);
        Lenient { content, fault: not_text.or(read.err()) }
    }

    fn read(&mut self, text: &str) -> Result<(), FormatError> {
        let mut lines = java_lines(text);
        let end = || {
            let kind = FormatErrorKind::UnexpectedEnd { shape: Shape::TextFile, needed: 1, available: 0 };
            FormatError::new(Position(len_u64(text.len())), kind)
        };
        let line = lines.next().ok_or_else(end)?;
        self.version = parse_java_int(value_of(line)?).ok_or(line.malformed("a version"))?;
        if self.version < 0 {
            let found = i64::from(self.version);
            let kind = FormatErrorKind::UnknownValue { shape: Shape::TextFile, field: "version", found };
            return Err(FormatError::new(line.position, kind));
        }
        let line = lines.next().ok_or_else(end)?;
        let not_an_id = FormatErrorKind::NotAnId { line: line.number, field: "topic_id" };
        let topic_id = Uuid::parse(value_of(line)?).ok_or(FormatError::new(line.position, not_an_id))?;
        self.topic_id = Some(topic_id);
        if topic_id == Uuid::ZERO { Err(line.malformed("an id that is not zero")) } else { Ok(()) }
    }

    /// The bytes of the file.
    pub fn encode(topic_id: Uuid) -> Vec<u8> {
        format!("version: 0\ntopic_id: {topic_id}").into_bytes()
    }
}

/// What stands behind the colon. `Pattern.compile(":\\s+").split(line)` must give two parts; empty ones at the end do not count.
fn value_of(line: Line<'_>) -> Result<&str, FormatError> {
    let mut parts = Vec::new();
    let mut rest = line.text;
    let mut from = 0;
    while let Some(colon) = rest.get(from..).and_then(|text| text.find(':')).map(|at| at.saturating_add(from)) {
        let behind = rest.get(colon.saturating_add(1)..).unwrap_or_default();
        let value = behind.trim_start_matches(is_java_space);
        if value.len() == behind.len() {
            from = colon.saturating_add(1);
            continue;
        }
        parts.push(rest.get(..colon).unwrap_or_default());
        rest = value;
        from = 0;
    }
    parts.push(rest);
    while parts.last().is_some_and(|part| part.is_empty()) {
        parts.pop();
    }
    match *parts {
        [_, value] => Ok(value),
        _ => Err(line.malformed("a name, a colon and a value")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ReaderException, reader_exception};
    use super::*;

    #[test]
    fn kafka_reads_these_files() {
        // Each as read by PartitionMetadataFile of 4.4.0.
        for (text, version) in [
            ("version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw", 0),
            ("version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\n", 0),
            ("version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw==", 0),
            ("version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODx", 0),
            ("a: 7\nb: AAECAwQFBgcICQoLDA0ODw\nrest", 7),
            ("version:  \t0\ntopic_id:\tAAECAwQFBgcICQoLDA0ODw", 0),
            ("version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw: ", 0),
            ("version: 0: \ntopic_id: AAECAwQFBgcICQoLDA0ODw", 0),
            (": 0\n: AAECAwQFBgcICQoLDA0ODw", 0),
        ] {
            let metadata = PartitionMetadata::parse(text.as_bytes()).strict().unwrap();
            assert_eq!(metadata.version, version, "{text:?}");
            assert_eq!(metadata.topic_id.unwrap().to_string(), "AAECAwQFBgcICQoLDA0ODw", "{text:?}");
        }
    }

    #[test]
    fn kafka_does_not_read_these_files_and_throws_this() {
        for (text, exception) in [
            (&b"version:0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"[..], ReaderException::Io),
            (b"version: 0 \ntopic_id: AAECAwQFBgcICQoLDA0ODw", ReaderException::Io),
            (b"version: -1\ntopic_id: AAECAwQFBgcICQoLDA0ODw", ReaderException::Io),
            (b"version: x\ntopic_id: AAECAwQFBgcICQoLDA0ODw", ReaderException::Io),
            (b"version: 0 : 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw", ReaderException::Io),
            (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", ReaderException::Io),
            (b"version: 0\ntopic_id: ", ReaderException::Io),
            (b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\n\xff", ReaderException::Io),
            (b"\n", ReaderException::Io),
            (b"\0\0", ReaderException::Io),
            (b"\xff\xfe", ReaderException::Io),
            (b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw=", ReaderException::Other),
            (b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0OD", ReaderException::Other),
            (b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw ", ReaderException::Other),
            (b"", ReaderException::Other),
            (b"version: 0", ReaderException::Other),
            (b"version: 0\n", ReaderException::Other),
        ] {
            let fault = PartitionMetadata::parse(text).fault.unwrap();
            assert_eq!(reader_exception(&fault), exception, "{text:?}");
        }
    }
}

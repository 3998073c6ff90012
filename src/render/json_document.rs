//! What JSON documents that are made by `serde` have in common: findings, names that may be no text, the document itself.

use std::ffi::OsStr;
use std::path::Path;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::base64::push_base64;
use super::finding::push_finding;
use super::untrusted::is_deceptive;
use crate::logdir::TopicPartition;
use crate::ops::Finding;

/// A finding, with the members that it has everywhere.
#[derive(serde::Serialize)]
#[serde(transparent)]
pub(super) struct FindingDto(serde_json::Value);

impl From<&Finding> for FindingDto {
    fn from(finding: &Finding) -> Self {
        let mut bytes = Vec::new();
        push_finding(&mut bytes, finding);
        Self(serde_json::from_slice(&bytes).unwrap_or_default())
    }
}

/// A member whose value is a name: `name` where it is UTF-8, else `name_base64`. Stands in a struct with `#[serde(flatten)]`.
pub(super) struct Named {
    member: &'static str,
    bytes: Vec<u8>,
}

impl Named {
    pub(super) fn new(member: &'static str, name: impl AsRef<OsStr>) -> Self {
        Self { member, bytes: name.as_ref().as_encoded_bytes().to_vec() }
    }

    pub(super) fn path(path: &Path) -> Self {
        Self::new("path", path)
    }

    pub(super) fn log_dir(path: &Path) -> Self {
        Self::new("log_dir", path)
    }

    pub(super) fn topic(topic_partition: &TopicPartition) -> Self {
        Self { member: "topic", bytes: topic_partition.topic_bytes().to_vec() }
    }
}

impl Serialize for Named {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        if let Ok(text) = std::str::from_utf8(&self.bytes) {
            map.serialize_entry(self.member, text)?;
        } else {
            let mut base64 = Vec::new();
            push_base64(&mut base64, &self.bytes);
            let text = String::from_utf8(base64).unwrap_or_default();
            map.serialize_entry(&format!("{}_base64", self.member), &text)?;
        }
        map.end()
    }
}

/// A path in a list, as JSON text.
pub(super) fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A document and a newline. Characters that could drive a terminal are spelled as `\u` escapes; they stand in strings only.
pub(super) fn document(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let text = serde_json::to_string(value)?;
    let mut out = String::with_capacity(text.len() + 1);
    for character in text.chars() {
        if character == '\u{7f}' || is_deceptive(character) {
            let mut units = [0u16; 2];
            for unit in character.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(character);
        }
    }
    out.push('\n');
    Ok(out.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[derive(serde::Serialize)]
    struct Row {
        #[serde(flatten)]
        path: Named,
        size: u64,
    }

    #[test]
    fn names_that_are_no_text_stand_as_base64_and_deceptive_ones_are_escaped() {
        let row =
            |name: &[u8]| document(&Row { path: Named::path(Path::new(OsStr::from_bytes(name))), size: 1 }).unwrap();
        assert_eq!(row(b"a-0/x"), b"{\"path\":\"a-0/x\",\"size\":1}\n");
        assert_eq!(row(b"\xff"), b"{\"path_base64\":\"/w==\",\"size\":1}\n");
        assert_eq!(
            row("\u{202e}\u{e0001}\u{7f}".as_bytes()),
            b"{\"path\":\"\\u202e\\udb40\\udc01\\u007f\",\"size\":1}\n"
        );
    }
}

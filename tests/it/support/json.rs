//! JSON as tests look at it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Parses JSON Lines; blank lines are not allowed.
#[track_caller]
pub(crate) fn lines(bytes: &[u8]) -> Vec<Value> {
    let mut found = Vec::new();
    for (at, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let parsed = serde_json::from_slice(line);
        found.push(parsed.unwrap_or_else(|error| {
            panic!("line {} is not JSON: {error}: {}", at + 1, String::from_utf8_lossy(line));
        }));
    }
    found
}

/// Parses a file of JSON Lines.
#[track_caller]
pub(crate) fn lines_of(path: &std::path::Path) -> Vec<Value> {
    lines(&std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// The bytes behind `key`, whichever form they stand in: text under the key itself, or base64 under `<key>_base64`.
/// `None` when the value is null or missing.
#[track_caller]
pub(crate) fn bytes(object: &Value, key: &str) -> Option<Vec<u8>> {
    if let Some(encoded) = object.get(format!("{key}_base64")).and_then(Value::as_str) {
        return Some(base64(encoded));
    }
    object.get(key).and_then(Value::as_str).map(|text| text.as_bytes().to_vec())
}

/// Decodes standard base64.
#[track_caller]
pub(crate) fn base64(encoded: &str) -> Vec<u8> {
    STANDARD.decode(encoded).unwrap_or_else(|error| panic!("not base64: {error}: {encoded}"))
}

//! JSON written by hand, for lines that are printed by the million. The same text as `serde_json` makes, except that characters
//! which could drive a terminal are spelled as `\u` escapes.

use serde::Serialize;

use super::base64::push_base64;
use super::untrusted::is_deceptive;

/// A value as one JSON document with a line end. Characters that could drive a terminal are escaped; they only occur in strings.
pub fn to_document(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let text = serde_json::to_string(value)?;
    let mut out = Vec::with_capacity(text.len() + 1);
    let mut rest = text.as_str();
    while let Some(at) = rest.find(|character| character == '\x7f' || is_deceptive(character)) {
        let (plain, tail) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.extend_from_slice(plain.as_bytes());
        let mut characters = tail.chars();
        if let Some(character) = characters.next() {
            push_unicode_escape(&mut out, character);
        }
        rest = characters.as_str();
    }
    out.extend_from_slice(rest.as_bytes());
    out.push(b'\n');
    Ok(out)
}

/// Appends a JSON string with its quotes.
pub fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    push_escaped(out, text);
    out.push(b'"');
}

/// Appends a number.
#[inline]
pub fn push_number(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends a number, or null.
#[inline]
pub fn push_optional(out: &mut Vec<u8>, number: Option<impl itoa::Integer>) {
    match number {
        Some(number) => push_number(out, number),
        None => out.extend_from_slice(b"null"),
    }
}

/// Appends `true` or `false`.
#[inline]
pub fn push_flag(out: &mut Vec<u8>, value: impl Into<bool>) {
    out.extend_from_slice(if value.into() { b"true" } else { b"false" });
}

/// Appends `"name":"text"` where the bytes are UTF-8, else `"name_base64":"..."`; null is `"name":null`.
pub fn push_member_bytes(out: &mut Vec<u8>, name: &str, bytes: Option<&[u8]>) {
    match bytes.map(|bytes| (bytes, std::str::from_utf8(bytes))) {
        Some((_, Ok(text))) => {
            push_name(out, name, "");
            push_string(out, text);
        }
        Some((bytes, Err(_))) => push_member_base64(out, name, Some(bytes)),
        None => {
            push_name(out, name, "");
            out.extend_from_slice(b"null");
        }
    }
}

/// Appends `"name_base64":"..."`; null is `"name":null`.
pub fn push_member_base64(out: &mut Vec<u8>, name: &str, bytes: Option<&[u8]>) {
    let Some(bytes) = bytes else {
        push_name(out, name, "");
        out.extend_from_slice(b"null");
        return;
    };
    push_name(out, name, "_base64");
    out.push(b'"');
    push_base64(out, bytes);
    out.push(b'"');
}

/// Appends a member's name, which needs no escapes, and the colon.
#[inline]
pub fn push_name(out: &mut Vec<u8>, name: &str, suffix: &str) {
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(suffix.as_bytes());
    out.extend_from_slice(b"\":");
}

fn push_escaped(out: &mut Vec<u8>, text: &str) {
    let mut rest = text;
    while !rest.is_empty() {
        let plain = plain_prefix(rest.as_bytes());
        let (head, tail) = rest.split_at_checked(plain).unwrap_or((rest, ""));
        out.extend_from_slice(head.as_bytes());
        let mut characters = tail.chars();
        if let Some(character) = characters.next() {
            push_character(out, character);
        }
        rest = characters.as_str();
    }
}

/// Bytes at the start that stand for themselves: printable ASCII but for quote and backslash.
#[inline]
#[expect(
    clippy::needless_bitwise_bool,
    reason = "a lazy operator is a branch, and branches keep a block from being vectorised"
)]
fn plain_prefix(bytes: &[u8]) -> usize {
    const BLOCK: usize = 16;
    let is_special = |byte: u8| (byte < 0x20) | (byte == b'"') | (byte == b'\\') | (byte >= 0x7f);
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    // A block without a branch inside becomes a handful of vector instructions.
    let clean =
        blocks.iter().take_while(|block| !block.iter().fold(false, |any, &byte| any | is_special(byte))).count();
    let start = clean * BLOCK;
    let rest = bytes.get(start..).unwrap_or_default();
    start + rest.iter().position(|&byte| is_special(byte)).unwrap_or(rest.len())
}

fn push_character(out: &mut Vec<u8>, character: char) {
    match character {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\n' => out.extend_from_slice(b"\\n"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\t' => out.extend_from_slice(b"\\t"),
        '\u{8}' => out.extend_from_slice(b"\\b"),
        '\u{c}' => out.extend_from_slice(b"\\f"),
        '\0'..='\x1f' | '\x7f' => push_unicode_escape(out, character),
        _ if is_deceptive(character) => push_unicode_escape(out, character),
        _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

fn push_unicode_escape(out: &mut Vec<u8>, character: char) {
    for &mut unit in character.encode_utf16(&mut [0; 2]) {
        out.extend_from_slice(b"\\u");
        for byte in unit.to_be_bytes() {
            super::untrusted::push_hex_byte(out, byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn string(text: &str) -> String {
        let mut out = Vec::new();
        push_string(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn harmless_text_is_what_serde_json_writes() {
        for text in
            ["", "plain", "ä€😀", "quote \" backslash \\ tab \t", "0123456789abcdef\n0123456789abcdef", "\u{8}\u{c}\0"]
        {
            assert_eq!(string(text), serde_json::to_string(text).unwrap());
        }
        assert_eq!(string("\u{7f}\u{202e}\u{e0001}"), "\"\\u007f\\u202e\\udb40\\udc01\"");
    }

    #[test]
    fn a_document_never_drives_a_terminal() {
        let document = to_document(&["plain ä", "\u{7f}\u{202e}x\u{e0001}"]).unwrap();
        assert_eq!(document, "[\"plain ä\",\"\\u007f\\u202ex\\udb40\\udc01\"]\n".as_bytes());
    }

    proptest! {
        #[test]
        fn any_text_reads_back_as_it_was(text in any::<String>()) {
            prop_assert_eq!(serde_json::from_str::<String>(&string(&text)).unwrap(), text);
        }

        #[test]
        fn any_bytes_read_back_as_they_were(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut out = b"{".to_vec();
            push_member_bytes(&mut out, "key", Some(&bytes));
            out.push(b'}');
            let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
            match std::str::from_utf8(&bytes) {
                Ok(text) => prop_assert_eq!(&value["key"], text),
                Err(_) => prop_assert!(value["key_base64"].is_string()),
            }
        }
    }
}

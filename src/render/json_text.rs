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

/// Bytes that are looked at together.
const BLOCK: usize = 8;

/// Copies block by block, as far as bytes stand for themselves.
fn push_escaped(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + BLOCK);
    let mut rest = text.as_bytes();
    while let Some((block, tail)) = rest.split_first_chunk::<BLOCK>() {
        // A copy of fixed size is one instruction; what is too much is taken back.
        out.extend_from_slice(block);
        let plain = plain_prefix(*block);
        if plain == BLOCK {
            rest = tail;
            continue;
        }
        out.truncate(out.len().saturating_sub(BLOCK - plain));
        rest = match rest.get(plain..) {
            // By far the most frequent, in values that are JSON themselves.
            Some([b'"', tail @ ..]) => {
                out.extend_from_slice(b"\\\"");
                tail
            }
            _ => push_special(out, text, text.len() - rest.len() + plain),
        };
    }
    while let Some((&byte, tail)) = rest.split_first() {
        if is_plain(byte) {
            out.push(byte);
            rest = tail;
        } else {
            rest = push_special(out, text, text.len() - rest.len());
        }
    }
}

/// Appends the character that starts at `at`, and gives the bytes behind it.
fn push_special<'t>(out: &mut Vec<u8>, text: &'t str, at: usize) -> &'t [u8] {
    let mut characters = text.get(at..).unwrap_or_default().chars();
    if let Some(character) = characters.next() {
        push_character(out, character);
    }
    characters.as_str().as_bytes()
}

/// Whether a byte stands for itself: printable ASCII but for quote and backslash.
fn is_plain(byte: u8) -> bool {
    (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\'
}

/// How many bytes at the start stand for themselves. The eight are looked at as one number, whose every byte has its top bit set
/// where it does not; a borrow can only set a bit behind the first.
#[inline]
fn plain_prefix(block: [u8; BLOCK]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = ONES << 7;
    // The first byte comes lowest, where the borrow starts.
    let word = u64::from_be_bytes(block).swap_bytes();
    let below = |number: u64, limit: u8| number.wrapping_sub(ONES * u64::from(limit)) & !number;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let special = (word | below(word, 0x20) | is(b'"') | is(b'\\') | is(0x7f)) & TOPS;
    usize::try_from(special.trailing_zeros() / 8).unwrap_or(0)
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

    #[test]
    fn every_byte_is_found_at_every_place_of_a_block() {
        for byte in 0..=255u8 {
            for place in 0..BLOCK {
                let mut block = *b"plaintxt";
                block[place] = byte;
                let expected = if is_plain(byte) { BLOCK } else { place };
                assert_eq!(plain_prefix(block), expected, "{byte:#x} at {place}");
                // What stands behind the first does not matter.
                block[place + 1..].fill(0x1f);
                let expected = if is_plain(byte) { place + 1 } else { place };
                assert_eq!(plain_prefix(block), expected, "{byte:#x} at {place} before others");
            }
        }
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

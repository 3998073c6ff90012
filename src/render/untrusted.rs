//! Bytes from a log on their way to a terminal. They never reach it raw: control characters, bidirectional overrides, invisible
//! characters and invalid UTF-8 are escaped, always, whether or not there is a terminal.

/// Appends text for people: printable characters as they are, everything else as `\n`, `\t`, `\xNN` or `\u{NNNN}`. Quotes and
/// backslashes are escaped too, so that what stands between two quotes can be told apart from what follows.
pub fn push_untrusted(out: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        push_valid(out, chunk.valid());
        for &byte in chunk.invalid() {
            push_hex_escape(out, byte);
        }
    }
}

/// The same for a whole line of output, in which quotes and backslashes stand for themselves.
pub fn push_printable(out: &mut Vec<u8>, line: &[u8]) {
    for piece in line.split_inclusive(|byte| matches!(byte, b'"' | b'\\')) {
        match piece.split_last() {
            Some((end @ (b'"' | b'\\'), head)) => {
                push_untrusted(out, head);
                out.push(*end);
            }
            _ => push_untrusted(out, piece),
        }
    }
}

/// The same for a piece of text that other text is made from.
pub fn untrusted(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    push_untrusted(&mut out, bytes);
    String::from_utf8(out).unwrap_or_default()
}

/// A path, for people. A plain one stands as it is.
pub fn untrusted_path(path: &std::path::Path) -> String {
    untrusted(path.as_os_str().as_encoded_bytes())
}

fn push_valid(out: &mut Vec<u8>, text: &str) {
    let mut encoded = [0u8; 4];
    for character in text.chars() {
        match character {
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\0'..='\x1f' | '\x7f' => push_hex_escape(out, u8::try_from(character).unwrap_or(0)),
            _ if is_deceptive(character) => {
                out.extend_from_slice(b"\\u{");
                push_hex_digits(out, u32::from(character));
                out.push(b'}');
            }
            _ => out.extend_from_slice(character.encode_utf8(&mut encoded).as_bytes()),
        }
    }
}

/// Characters that change how their neighbours are shown, or that are not seen: C1 controls, zero-width characters, line and
/// paragraph separators, bidirectional overrides and isolates, the byte order mark.
pub(super) fn is_deceptive(character: char) -> bool {
    matches!(
        character,
        '\u{80}'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

const DIGITS: [u8; 16] = *b"0123456789abcdef";

/// Appends two hexadecimal digits.
pub(super) fn push_hex_byte(out: &mut Vec<u8>, byte: u8) {
    for nibble in [byte >> 4, byte & 0x0f] {
        out.push(DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0'));
    }
}

fn push_hex_escape(out: &mut Vec<u8>, byte: u8) {
    out.extend_from_slice(b"\\x");
    push_hex_byte(out, byte);
}

fn push_hex_digits(out: &mut Vec<u8>, value: u32) {
    let digits = (8 - value.leading_zeros() / 4).max(1);
    for digit in (0..digits).rev() {
        let nibble = usize::try_from((value >> (4 * digit)) & 0x0f).unwrap_or(0);
        out.push(DIGITS.get(nibble).copied().unwrap_or(b'0'));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_could_drive_a_terminal_is_spelled_out() {
        for (bytes, shown) in [
            (&b"plain \xc3\xa4\xe2\x82\xac"[..], "plain ä€"),
            (b"\x1b[31mred\x07", "\\x1b[31mred\\x07"),
            (b"a\rb\nc\td", "a\\rb\\nc\\td"),
            (b"\xc2\x9bA", "\\u{9b}A"),
            (b"\xff\xc3", "\\xff\\xc3"),
            ("\u{202e}gnp\u{feff}\u{200b}".as_bytes(), "\\u{202e}gnp\\u{feff}\\u{200b}"),
            (b"say \"no\\\"", "say \\\"no\\\\\\\""),
            (b"\x00\x7f", "\\x00\\x7f"),
        ] {
            assert_eq!(untrusted(bytes), shown);
        }
    }

    proptest! {
        #[test]
        fn no_control_byte_ever_gets_through(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let shown = untrusted(&bytes);
            prop_assert!(!shown.chars().any(|c| c.is_control() || is_deceptive(c)), "{shown:?}");
        }
    }
}

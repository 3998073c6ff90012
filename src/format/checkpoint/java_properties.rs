//! The Java properties format (`java.util.Properties.load`).
//!
//! Bytes are ISO-8859-1. Comments start with `#` or `!`; a key ends at `=`, `:` or a blank; a backslash at the end of a line
//! continues it, before `u` and four hexadecimal digits it gives a UTF-16 unit, and before anything else the letter itself or a
//! control character. Blanks are space, tab and form feed.

use crate::format::{FormatError, FormatErrorKind, Lenient, Position, len_u64};

/// A key with its value, escapes resolved. Half of a surrogate pair, which Java can hold, stands as U+FFFD.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Property {
    /// Number of the line on which it starts, from 1.
    pub line: u32,
    /// The key.
    pub key: String,
    /// The value; white space in front is not part of it, white space behind is.
    pub value: String,
}

/// Reads properties in the file's order; of a repeated key the last counts.
///
/// The only fault is a `\u` without four hexadecimal digits, at which Java throws away the whole file. Its letters are kept.
///
/// ```
/// use segtool::format::checkpoint::java_properties::parse_properties;
///
/// let properties = parse_properties(b"# comment\nnode.id : 1\n").strict().unwrap();
/// assert_eq!((&*properties[0].key, &*properties[0].value, properties[0].line), ("node.id", "1", 2));
/// ```
pub fn parse_properties(data: &[u8]) -> Lenient<Vec<Property>> {
    let mut content = Vec::new();
    let mut fault = None;
    let mut lines = LogicalLines { data, at: 0, line: 1 };
    while let Some((line, position, text)) = lines.read() {
        let (key, value) = split_entry(&text);
        let mut unescaped = |text: &[u8]| {
            let (text, is_sound) = unescape(text);
            if !is_sound {
                let kind = FormatErrorKind::MalformedLine { line, expected: "\\u and four hexadecimal digits" };
                fault = fault.take().or(Some(FormatError::new(position, kind)));
            }
            text
        };
        let (key, value) = (unescaped(key), unescaped(value));
        content.push(Property { line, key, value });
    }
    Lenient { content, fault }
}

/// The value that counts for a key: the last one.
pub fn value_of<'a>(properties: &'a [Property], key: &str) -> Option<&'a Property> {
    properties.iter().rev().find(|property| property.key == key)
}

/// `Properties.LineReader`: lines without blanks in front, comments and empty lines left out, continued lines joined.
struct LogicalLines<'a> {
    data: &'a [u8],
    at: usize,
    line: u32,
}

impl LogicalLines<'_> {
    fn peek(&self) -> Option<u8> {
        self.data.get(self.at).copied()
    }

    fn bump(&mut self) {
        // A line ends at \n, at \r, and once at \r\n.
        let here = self.peek();
        self.at = self.at.saturating_add(1);
        if here == Some(b'\n') || (here == Some(b'\r') && self.peek() != Some(b'\n')) {
            self.line = self.line.saturating_add(1);
        }
    }

    fn skip_while(&mut self, skip: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&skip) {
            self.bump();
        }
    }

    fn read(&mut self) -> Option<(u32, Position, Vec<u8>)> {
        let mut text = Vec::new();
        let mut start = (self.line, Position(len_u64(self.at)));
        while self.peek().is_some() {
            if text.is_empty() {
                // Also after a line of nothing but a backslash: what follows it may be a comment.
                self.skip_while(|byte| is_blank(byte) || is_end(byte));
                if matches!(self.peek(), Some(b'#' | b'!')) {
                    self.skip_while(|byte| !is_end(byte));
                    continue;
                }
                start = (self.line, Position(len_u64(self.at)));
            }
            match self.append_line(&mut text) {
                LineEnd::Whole if text.is_empty() => return None,
                LineEnd::Whole | LineEnd::Broken => return Some((start.0, start.1, text)),
                LineEnd::Continued => self.skip_while(is_blank),
            }
        }
        (!text.is_empty()).then_some((start.0, start.1, text))
    }

    /// Takes the rest of a line with its end.
    fn append_line(&mut self, text: &mut Vec<u8>) -> LineEnd {
        let mut escaped = false;
        while let Some(byte) = self.peek().filter(|byte| !is_end(*byte)) {
            text.push(byte);
            escaped = byte == b'\\' && !escaped;
            self.bump();
        }
        if escaped {
            text.pop();
        }
        let is_last = self.at.saturating_add(1) >= self.data.len();
        self.skip_line_end();
        match (escaped, is_last) {
            (false, _) => LineEnd::Whole,
            (true, false) => LineEnd::Continued,
            (true, true) => LineEnd::Broken,
        }
    }

    fn skip_line_end(&mut self) {
        let first = self.peek();
        self.bump();
        if first == Some(b'\r') && self.peek() == Some(b'\n') {
            self.bump();
        }
    }
}

enum LineEnd {
    Whole,
    /// A backslash continues the line.
    Continued,
    /// A backslash, and nothing follows: to Java a line all the same, even where it is empty.
    Broken,
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0c)
}

fn is_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

fn split_entry(line: &[u8]) -> (&[u8], &[u8]) {
    let mut escaped = false;
    let end = line.iter().position(|byte| {
        let ends = !escaped && (is_blank(*byte) || matches!(byte, b'=' | b':'));
        escaped = *byte == b'\\' && !escaped;
        ends
    });
    let Some((key, rest)) = end.and_then(|end| line.split_at_checked(end)) else { return (line, &[]) };
    let mut has_separator = false;
    let start = rest.iter().position(|byte| {
        if !has_separator && matches!(byte, b'=' | b':') {
            has_separator = true;
            return false;
        }
        !is_blank(*byte)
    });
    (key, start.and_then(|start| rest.get(start..)).unwrap_or_default())
}

/// The text, and whether all its escapes are sound.
fn unescape(text: &[u8]) -> (String, bool) {
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut is_sound = true;
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        let mut unit = u16::from(*byte);
        if *byte == b'\\'
            && let Some((escaped, after)) = rest.split_first()
        {
            rest = after;
            unit = match escaped {
                b't' => 0x09,
                b'n' => 0x0a,
                b'f' => 0x0c,
                b'r' => 0x0d,
                b'u' => {
                    let unicode = hexadecimal(rest);
                    is_sound &= unicode.is_some();
                    let (unicode, after) = unicode.unwrap_or((u16::from(b'u'), rest));
                    rest = after;
                    unicode
                }
                other => u16::from(*other),
            };
        }
        units.push(unit);
    }
    (String::from_utf16_lossy(&units), is_sound)
}

fn hexadecimal(text: &[u8]) -> Option<(u16, &[u8])> {
    let (digits, after) = text.split_at_checked(4)?;
    let mut unit = 0u16;
    for digit in digits {
        unit = unit << 4 | u16::try_from(char::from(*digit).to_digit(16)?).ok()?;
    }
    Some((unit, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Row<'a> = (&'a [u8], &'a [(&'a str, &'a str)]);

    fn pairs(text: &[u8]) -> Vec<(String, String)> {
        parse_properties(text).content.into_iter().map(|property| (property.key, property.value)).collect()
    }

    #[test]
    fn files_are_read_as_java_reads_them() {
        // Each as loaded by java.util.Properties.
        let rows: &[Row<'_>] = &[
            (b"a=b", &[("a", "b")]),
            (
                b"#c\n!d\n  e = f \n g:h\n i  j\nk\nl==m\nn : = o\n",
                &[("e", "f "), ("g", "h"), ("i", "j"), ("k", ""), ("l", "=m"), ("n", "= o")],
            ),
            (b"a\\=b=c\\n\\t\\u0041\\q\\\\", &[("a=b", "c\n\tAq\\")]),
            (b"a=1\\\n   2\\\r\n   3\n", &[("a", "123")]),
            (b"a=1\\\\\nb=2", &[("a", "1\\"), ("b", "2")]),
            (b"a=b\\", &[("a", "b")]),
            (b"a=\\uD800", &[("a", "\u{fffd}")]),
            (b"a=\\uD83D\\uDE00", &[("a", "😀")]),
            (b"a=\\U0041", &[("a", "U0041")]),
            (b"=v", &[("", "v")]),
            (b":v", &[("", "v")]),
            (b"\\ k=v", &[(" k", "v")]),
            (b"a=\xe9", &[("a", "é")]),
            (b"# c \\\na=b", &[("a", "b")]),
            (b"a=b\\\n# c", &[("a", "b# c")]),
            (b"a=b\\\n\n c=d", &[("a", "b"), ("c", "d")]),
            (b"a\x0cb", &[("a", "b")]),
            (b"\x0ca=b", &[("a", "b")]),
            (b"\0\0\0", &[("\0\0\0", "")]),
            (b"a = \\ b", &[("a", " b")]),
            (b"a\x0bb=c", &[("a\x0bb", "c")]),
            (b"a=b\\\r\r c", &[("a", "b"), ("c", "")]),
            (b"a=b\\\n\r\n c", &[("a", "b"), ("c", "")]),
            (b"\\\n a=b", &[("a", "b")]),
            (b"a=b \\\n", &[("a", "b ")]),
            (b"  \n\t\n=\n", &[("", "")]),
            (b"\\\n#c\na=b", &[("a", "b")]),
            (b"\\\n\n\\\n a=b", &[("a", "b")]),
            (b"\\", &[("", "")]),
            (b"\\\n", &[("", "")]),
            (b"a=b\n\\\n", &[("a", "b"), ("", "")]),
            (b"\\\n\\\n\\\n=\n", &[("", "")]),
            (b"\\\n\n\n c", &[("c", "")]),
            (b"a=b\\\n   \\\n c", &[("a", "bc")]),
            (b"a\\\n\n=b", &[("a", ""), ("", "b")]),
            (b"", &[]),
        ];
        for (text, expected) in rows {
            let expected: Vec<_> =
                expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            assert_eq!(pairs(text), expected, "{text:?}");
            assert_eq!(parse_properties(text).fault, None, "{text:?}");
        }
    }

    #[test]
    fn a_broken_unicode_escape_is_the_one_fault() {
        for text in [&b"x=1\na=\\u00"[..], b"x=1\na=\\u00zz", b"x=1\n\\u=b", b"x=1\na=\\u+041"] {
            let lenient = parse_properties(text);
            assert_eq!(lenient.fault.map(|fault| fault.position), Some(Position(4)), "{text:?}");
            assert_eq!(lenient.content.len(), 2);
        }
    }

    #[test]
    fn the_last_of_a_repeated_key_counts_and_lines_are_numbered() {
        let properties = parse_properties(b"a=1\r\n\r\n#\rb=\\\n 2\na=3").content;
        assert_eq!(value_of(&properties, "a").map(|a| (a.line, &*a.value)), Some((6, "3")));
        assert_eq!(value_of(&properties, "b").map(|b| (b.line, &*b.value)), Some((4, "2")));
        assert_eq!(value_of(&properties, "c"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_properties(data in proptest::collection::vec(prop::sample::select(b"ab \\\n\r#!=:u04\x0c\xff".to_vec()), 0..60)) {
            let properties = parse_properties(&data).content;
            prop_assert!(properties.is_sorted_by_key(|property| property.line));
        }
    }
}

//! Lines and fields of text as the JVM splits them.

use crate::format::{FormatError, FormatErrorKind, Position, len_u64};

/// A line, its number from 1, and where it starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Line<'a> {
    pub(super) number: u32,
    pub(super) position: Position,
    pub(super) text: &'a str,
}

impl Line<'_> {
    pub(super) fn malformed(&self, expected: &'static str) -> FormatError {
        FormatError::new(self.position, FormatErrorKind::MalformedLine { line: self.number, expected })
    }

    pub(super) fn not_a_number(&self, field: &'static str) -> FormatError {
        FormatError::new(self.position, FormatErrorKind::NotANumber { line: self.number, field })
    }
}

/// The lines of a text as `BufferedReader.readLine` gives them: a line ends at `\n`, `\r` or `\r\n`, or at the end of the text where
/// something stands before that.
pub(super) fn java_lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut rest = text;
    let mut number = 0u32;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let position = Position(len_u64(text.len().saturating_sub(rest.len())));
        let end = rest.find(['\n', '\r']).unwrap_or(rest.len());
        let (line, ended) = rest.split_at_checked(end)?;
        rest = ended.strip_prefix("\r\n").or_else(|| ended.strip_prefix(['\r', '\n'])).unwrap_or(ended);
        number = number.saturating_add(1);
        Some(Line { number, position, text: line })
    })
}

/// `Pattern.compile("\\s+").split(line)`: white space in front makes an empty first field, behind it makes none.
pub(super) fn split_white_space(line: &str) -> Vec<&str> {
    let mut fields: Vec<&str> = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find(is_java_space) {
        let (field, spaces) = rest.split_at_checked(start).unwrap_or((rest, ""));
        fields.push(field);
        rest = spaces.trim_start_matches(is_java_space);
        if rest.is_empty() {
            return fields;
        }
    }
    fields.push(rest);
    fields
}

/// What `\s` matches in a Java pattern.
pub(super) fn is_java_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(text: &str) -> Vec<&str> {
        java_lines(text).map(|line| line.text).collect()
    }

    #[test]
    fn lines_end_as_in_java() {
        assert_eq!(texts(""), [""; 0]);
        assert_eq!(texts("\n"), [""]);
        assert_eq!(texts("a\r\nb\rc\nd"), ["a", "b", "c", "d"]);
        assert_eq!(texts("a\n\r\n"), ["a", ""]);
        let places: Vec<_> = java_lines("ab\r\nc\n").map(|line| (line.number, line.position)).collect();
        assert_eq!(places, [(1, Position(0)), (2, Position(4))]);
    }

    #[test]
    fn fields_are_split_as_in_java() {
        for (line, fields) in [
            ("a 0 5", &["a", "0", "5"][..]),
            ("a\t0\u{b}\u{c}5  ", &["a", "0", "5"]),
            (" a 0", &["", "a", "0"]),
            ("a\u{a0}0", &["a\u{a0}0"]),
            ("", &[""]),
            // Java gives no field at all here; no caller wants none or one.
            ("  ", &[""]),
        ] {
            assert_eq!(split_white_space(line), fields, "{line:?}");
        }
    }

    proptest! {
        #[test]
        fn no_character_is_lost(text in "[ab\r\n]{0,40}") {
            let letters: String = texts(&text).concat();
            prop_assert_eq!(letters, text.replace(['\r', '\n'], ""));
        }
    }
}

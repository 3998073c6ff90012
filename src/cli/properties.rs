//! The Java properties format: keys and values of a `server.properties` or a topic's overrides.
//!
//! Follows `java.util.Properties.load`: comments start with `#` or `!`, a key ends at `=`, `:` or white space, a backslash
//! at the end of a line continues it, `\uXXXX` and the usual escapes are resolved, a later value replaces an earlier one.

use std::collections::BTreeMap;

/// A value and the line, from 1, on which it starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Property {
    /// Number of the line.
    pub(super) line: u32,
    /// The value with escapes resolved and white space around it removed, as Kafka does.
    pub(super) value: String,
}

/// Parses properties. Bytes that are not UTF-8 are taken as ISO 8859-1, which is what Java takes them for.
///
/// There is no malformed file: every line means something, as in Java, where only a broken `\u` escape fails. That is
/// kept here as its letters.
pub(super) fn parse_properties(bytes: &[u8]) -> BTreeMap<String, Property> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    };
    let mut properties = BTreeMap::new();
    let mut lines = (1_u32..).zip(text.lines());
    while let Some((line, first)) = lines.next() {
        let mut logical = first.trim_start().to_owned();
        if logical.is_empty() || logical.starts_with(['#', '!']) {
            continue;
        }
        while ends_with_odd_backslashes(&logical) {
            logical.pop();
            let Some((_, next)) = lines.next() else { break };
            logical.push_str(next.trim_start());
        }
        let (key, value) = split_entry(&logical);
        properties.insert(unescape(key), Property { line, value: unescape(value).trim().to_owned() });
    }
    properties
}

fn ends_with_odd_backslashes(line: &str) -> bool {
    line.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1
}

fn split_entry(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.find(|c: char| {
        let ends = !escaped && (c.is_ascii_whitespace() || matches!(c, '=' | ':'));
        escaped = !escaped && c == '\\';
        ends
    });
    let Some((key, rest)) = end.and_then(|end| line.split_at_checked(end)) else { return (line, "") };
    let rest = rest.trim_start();
    (key, rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start())
}

fn unescape(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            result.push(c);
            continue;
        }
        match chars.next() {
            Some('t') => result.push('\t'),
            Some('n') => result.push('\n'),
            Some('r') => result.push('\r'),
            Some('f') => result.push('\u{c}'),
            Some('u') => match unicode_escape(chars.as_str()) {
                Some((unicode, rest)) => {
                    result.push(unicode);
                    chars = rest.chars();
                }
                None => result.push('u'),
            },
            Some(other) => result.push(other),
            None => {}
        }
    }
    result
}

fn unicode_escape(text: &str) -> Option<(char, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    let unicode = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)?;
    Some((unicode, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_java_reads_them() {
        let text = b"# comment\n! too\n\n  retention.ms = 7\r\nsegment.bytes:1024\nlog.dirs /a,/b\nempty\n\
            cleanup.policy=compact,\\\n    delete\npath=C:\\\\x\nname=\\u0041\\t|\nbad=\\u00\nretention.ms=8 \n";
        let properties = parse_properties(text);
        let value = |key: &str| properties.get(key).map(|property| (property.line, property.value.as_str()));
        assert_eq!(value("retention.ms"), Some((13, "8")));
        assert_eq!(value("segment.bytes"), Some((5, "1024")));
        assert_eq!(value("log.dirs"), Some((6, "/a,/b")));
        assert_eq!(value("empty"), Some((7, "")));
        assert_eq!(value("cleanup.policy"), Some((8, "compact,delete")));
        assert_eq!(value("path"), Some((10, "C:\\x")));
        assert_eq!(value("name"), Some((11, "A\t|")));
        assert_eq!(value("bad"), Some((12, "u00")));
        assert_eq!(properties.len(), 8);
    }

    #[test]
    fn bytes_outside_utf_8_are_latin_1() {
        assert_eq!(parse_properties(b"caf\xe9=1").keys().next().map(String::as_str), Some("café"));
    }
}

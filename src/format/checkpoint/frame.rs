//! The frame that offset checkpoints and leader epochs share: a version, a count, a line an entry (`CheckpointFile`).

use std::borrow::Cow;

use super::lines::{Line, java_lines, split_white_space};
use crate::format::java_number::parse_java_int;
use crate::format::{FormatError, FormatErrorKind, Lenient, Position, Shape, len_u64};

/// What Kafka's reader of a text file throws, which decides what becomes of a start.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReaderException {
    /// An `IOException`: the log dir is given up.
    Io,
    /// Another one, such as `NumberFormatException`: what becomes of it depends on who reads.
    Other,
}

/// What Kafka's reader throws at a fault of an offset checkpoint, a leader epoch checkpoint or `partition.metadata`.
pub fn reader_exception(fault: &FormatError) -> ReaderException {
    match fault.kind {
        FormatErrorKind::NotANumber { .. }
        | FormatErrorKind::NotAnId { .. }
        | FormatErrorKind::LengthOutOfRange { .. }
        | FormatErrorKind::UnexpectedEnd { .. } => ReaderException::Other,
        _ => ReaderException::Io,
    }
}

/// Text of a file, with what is no UTF-8 replaced; and where that begins.
pub(super) fn decode(data: &[u8]) -> (Cow<'_, str>, Option<FormatError>) {
    match std::str::from_utf8(data) {
        Ok(text) => (Cow::Borrowed(text), None),
        Err(error) => {
            let before = data.get(..error.valid_up_to()).unwrap_or_default();
            let lines = std::str::from_utf8(before).map_or(0, |text| java_lines(text).count());
            let line = u32::try_from(lines.max(1)).unwrap_or(u32::MAX);
            let kind = FormatErrorKind::MalformedLine { line, expected: "UTF-8" };
            let fault = FormatError::new(Position(len_u64(error.valid_up_to())), kind);
            (String::from_utf8_lossy(data), Some(fault))
        }
    }
}

/// Reads the entries of a file with this frame. A file without lines, or with the version alone, has none.
pub(super) fn parse_entries<T>(
    data: &[u8],
    parse: impl Fn(Line<'_>, &[&str]) -> Result<T, FormatError>,
) -> Lenient<Vec<T>> {
    let (text, mut fault) = decode(data);
    let mut note = |found: FormatError| fault = fault.take().or(Some(found));
    let mut lines = java_lines(&text);
    if let Some(version) = lines.next()
        && let Err(found) = check_version(version)
    {
        note(found);
    }
    let mut entries = Vec::new();
    let count = lines.next().map(|line| (line, parse_count(line)));
    if let Some((_, Err(found))) = &count {
        note(found.clone());
    }
    let mut is_whole = true;
    for line in lines {
        match parse(line, &split_white_space(line.text)) {
            Ok(entry) => entries.push(entry),
            Err(found) => {
                is_whole = false;
                note(found);
            }
        }
    }
    if let Some((line, Ok(expected))) = count
        && is_whole
        && let Err(found) = check_count(line, expected, entries.len())
    {
        note(found);
    }
    Lenient { content: entries, fault }
}

fn check_version(line: Line<'_>) -> Result<(), FormatError> {
    match parse_java_int(line.text) {
        Some(0) => Ok(()),
        Some(found) => {
            let found = i64::from(found);
            let kind = FormatErrorKind::UnknownValue { shape: Shape::TextFile, field: "version", found };
            Err(FormatError::new(line.position, kind))
        }
        None => Err(line.malformed("a version")),
    }
}

fn parse_count(line: Line<'_>) -> Result<i32, FormatError> {
    let count = parse_java_int(line.text).ok_or(line.malformed("the number of entries"))?;
    if count >= 0 {
        return Ok(count);
    }
    let (found, most) = (i64::from(count), i64::from(i32::MAX));
    let kind = FormatErrorKind::LengthOutOfRange { shape: Shape::TextFile, found, least: 0, most };
    Err(FormatError::new(line.position, kind))
}

fn check_count(line: Line<'_>, expected: i32, found: usize) -> Result<(), FormatError> {
    let (expected, found) = (i64::from(expected), i64::try_from(found).unwrap_or(i64::MAX));
    if expected == found {
        return Ok(());
    }
    let kind = FormatErrorKind::Mismatch { shape: Shape::TextFile, field: "count", expected, found };
    Err(FormatError::new(line.position, kind))
}

/// The bytes of a file with this frame.
pub(super) fn encode_entries(entries: impl ExactSizeIterator<Item = String>) -> Vec<u8> {
    let mut text = format!("0\n{}\n", entries.len());
    for entry in entries {
        text.push_str(&entry);
        text.push('\n');
    }
    text.into_bytes()
}

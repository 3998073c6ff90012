//! The flexible encoding of Kafka's messages (KIP-482), as far as control records need it.

use crate::format::varint::write_unsigned_varlong;
use crate::format::{Cursor, FormatError, FormatErrorKind, Shape, len_u64};

/// A field that a later version has added, by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaggedField<'a> {
    /// The field's number.
    pub tag: u32,
    /// Its bytes.
    pub data: &'a [u8],
}

pub(super) type Tags<'a> = Vec<TaggedField<'a>>;

/// A length or count that is stored plus one; 0 would be null, which nothing here may be.
fn read_length(cursor: &mut Cursor<'_>) -> Result<u32, FormatError> {
    let shape = Shape::ControlRecord;
    let start = *cursor;
    let stored = cursor.read_unsigned_varint(shape)?;
    stored.checked_sub(1).ok_or_else(|| {
        let most = i64::from(i32::MAX);
        start.error(FormatErrorKind::LengthOutOfRange { shape, found: -1, least: 0, most })
    })
}

/// Every element takes bytes, so that a count beyond the data ends at the data's end.
pub(super) fn read_array<'a, T>(
    cursor: &mut Cursor<'a>,
    mut read: impl FnMut(&mut Cursor<'a>) -> Result<T, FormatError>,
) -> Result<Vec<T>, FormatError> {
    (0..read_length(cursor)?).map(|_| read(cursor)).collect()
}

pub(super) fn read_bytes<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], FormatError> {
    let len = read_length(cursor)?;
    cursor.read_bytes(Shape::ControlRecord, usize::try_from(len).unwrap_or(usize::MAX))
}

pub(super) fn read_tags<'a>(cursor: &mut Cursor<'a>) -> Result<Tags<'a>, FormatError> {
    let shape = Shape::ControlRecord;
    let count = cursor.read_unsigned_varint(shape)?;
    let read = |_| {
        let tag = cursor.read_unsigned_varint(shape)?;
        let len = cursor.read_unsigned_varint(shape)?;
        let data = cursor.read_bytes(shape, usize::try_from(len).unwrap_or(usize::MAX))?;
        Ok(TaggedField { tag, data })
    };
    (0..count).map(read).collect()
}

pub(super) fn write_array<T>(out: &mut Vec<u8>, elements: &[T], mut write: impl FnMut(&mut Vec<u8>, &T)) {
    write_unsigned_varlong(out, len_u64(elements.len()).saturating_add(1));
    for element in elements {
        write(out, element);
    }
}

pub(super) fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    write_unsigned_varlong(out, len_u64(bytes.len()).saturating_add(1));
    out.extend_from_slice(bytes);
}

pub(super) fn write_tags(out: &mut Vec<u8>, tags: &[TaggedField<'_>]) {
    write_unsigned_varlong(out, len_u64(tags.len()));
    for field in tags {
        write_unsigned_varlong(out, u64::from(field.tag));
        write_unsigned_varlong(out, len_u64(field.data.len()));
        out.extend_from_slice(field.data);
    }
}

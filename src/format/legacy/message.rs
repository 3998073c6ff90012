//! One message of magic 0 or 1 as it stands.

use super::super::{
    Attributes, Cursor, FormatError, FormatErrorKind, LEAST_SIZE, LOG_OVERHEAD, Offset, Position, Shape, TimestampMs,
    TimestampType, crc, len_u64,
};

/// Attribute bits 0 to 2.
const CODEC: i16 = 0x07;

/// A message of magic 0 or 1: a record of its own, a wrapper, or a message inside a wrapper. Its checksum is not yet trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LegacyMessage<'a> {
    /// Where it starts: in its file, or in the decompressed content of its wrapper.
    pub position: Position,
    /// Bytes of the whole message, offset and size fields included.
    pub size_bytes: u64,
    /// The offset as stored; inside a wrapper of magic 1 it is relative.
    pub offset: Offset,
    /// The stored checksum.
    pub crc: u32,
    /// 0 or 1. Any other value is laid out as 1.
    pub magic: i8,
    /// The attribute bits.
    pub attributes: Attributes,
    /// The timestamp as stored, `None` for magic 0 and for -1. Wrappers overrule those of their messages.
    pub timestamp: Option<TimestampMs>,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value; that of a wrapper is compressed.
    pub value: Option<&'a [u8]>,
    /// Where the value's first byte stands, counted like `position`.
    pub value_position: Position,
    /// Bytes between the value and the end of the message. Readers ignore them, the checksum covers them.
    pub ignored_count: u64,
    covered: &'a [u8],
}

impl<'a> LegacyMessage<'a> {
    /// Reads the message at the start of `data`, which stands at `position`; more may follow it. `shape` names it in errors. Errors
    /// are a size field below 14, data that ends before the message does, and key or value that exceed it.
    pub fn parse(data: &'a [u8], position: Position, shape: Shape) -> Result<Self, FormatError> {
        let mut cursor = Cursor::at(data, position);
        let offset = Offset(cursor.read_i64(shape)?);
        let size_position = cursor.position();
        let size = cursor.read_i32(shape)?;
        let size = message_size(size).ok_or_else(|| size_error(size_position, size, shape))?;
        let body_position = cursor.position();
        let body = cursor.read_bytes(shape, size)?;
        let mut cursor = Cursor::at(body, body_position);
        let crc = cursor.read_u32(shape)?;
        let covered = cursor.rest();
        let magic = cursor.read_i8(shape)?;
        let attributes = Attributes(i16::from(cursor.read_u8(shape)?));
        let timestamp = match magic {
            0 => None,
            _ => Some(cursor.read_i64(shape)?).filter(|&raw| raw != -1).map(TimestampMs),
        };
        let key = read_nullable(&mut cursor, shape)?;
        let value = read_nullable(&mut cursor, shape)?;
        let value_len = len_u64(value.unwrap_or_default().len());
        Ok(Self {
            position,
            size_bytes: len_u64(LOG_OVERHEAD + size),
            offset,
            crc,
            magic,
            attributes,
            timestamp,
            key,
            value,
            value_position: Position(cursor.position().0.saturating_sub(value_len)),
            ignored_count: len_u64(cursor.remaining()),
            covered,
        })
    }

    /// The checksum that the bytes have.
    pub fn computed_crc(&self) -> u32 {
        crc::crc32(self.covered)
    }

    /// Whether the stored checksum is that of the bytes.
    pub fn crc_matches(&self) -> bool {
        self.computed_crc() == self.crc
    }

    /// Whether the value holds compressed messages (or claims a codec that does not exist).
    pub fn is_wrapper(&self) -> bool {
        self.attributes.0 & CODEC != 0
    }

    /// What the message's own timestamp means.
    pub fn timestamp_type(&self) -> TimestampType {
        match (self.magic, self.attributes.is_log_append_time()) {
            (0, _) => TimestampType::None,
            (_, true) => TimestampType::LogAppendTime,
            (_, false) => TimestampType::CreateTime,
        }
    }
}

/// A size field as a length, where readers take it for one.
pub(super) fn message_size(size: i32) -> Option<usize> {
    usize::try_from(size).ok().filter(|_| size >= LEAST_SIZE)
}

#[cold]
pub(super) fn size_error(position: Position, size: i32, shape: Shape) -> FormatError {
    let kind = FormatErrorKind::LengthOutOfRange {
        shape,
        found: i64::from(size),
        least: i64::from(LEAST_SIZE),
        most: i64::from(i32::MAX),
    };
    FormatError::new(position, kind)
}

/// Bytes behind a length, of which every negative one means null.
fn read_nullable<'a>(cursor: &mut Cursor<'a>, shape: Shape) -> Result<Option<&'a [u8]>, FormatError> {
    match usize::try_from(cursor.read_i32(shape)?) {
        Ok(len) => cursor.read_bytes(shape, len).map(Some),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    fn parse(bytes: &[u8]) -> Result<LegacyMessage<'_>, FormatError> {
        LegacyMessage::parse(bytes, Position(100), Shape::LegacyMessage)
    }

    #[test]
    fn both_layouts_are_read_and_a_null_key_is_not_an_empty_one() {
        let v0 = from_hex("0000000000000005 00000011 6eebece4 00 00 00000001 61 00000002 6263");
        let v1 = from_hex("0000000000000006 00000018 c83ffaf3 01 08 0000018bcfe56800 ffffffff 00000002 6263");
        let (v0, v1) = (parse(&v0).unwrap(), parse(&v1).unwrap());
        assert!(v0.crc_matches() && v1.crc_matches());
        assert_eq!((v0.offset, v0.magic, v0.timestamp), (Offset(5), 0, None));
        assert_eq!((v0.key, v0.value, v0.timestamp_type()), (Some(&b"a"[..]), Some(&b"bc"[..]), TimestampType::None));
        assert_eq!((v1.offset, v1.magic, v1.timestamp), (Offset(6), 1, Some(TimestampMs(1_700_000_000_000))));
        assert_eq!((v1.key, v1.value, v1.timestamp_type()), (None, Some(&b"bc"[..]), TimestampType::LogAppendTime));
        assert_eq!((v0.size_bytes, v0.value_position), (29, Position(127)));
        assert_eq!((v1.size_bytes, v1.value_position, v1.ignored_count), (36, Position(134), 0));
    }

    #[test]
    fn bytes_after_the_value_are_counted_and_lengths_never_believed() {
        let trailing = from_hex("0000000000000005 00000013 00000000 00 00 00000001 61 00000002 6263 dead");
        assert_eq!(parse(&trailing).map(|m| (m.value, m.ignored_count)), Ok((Some(&b"bc"[..]), 2)));
        let value_too_long = from_hex("0000000000000005 00000011 00000000 00 00 00000001 61 7fffffff 6263");
        assert_eq!(
            parse(&value_too_long),
            Err(FormatError::new(
                Position(127),
                FormatErrorKind::UnexpectedEnd { shape: Shape::LegacyMessage, needed: 0x7fff_ffff, available: 2 }
            ))
        );
        let too_small = from_hex("0000000000000005 0000000d 00000000 00 00 00000001 61 00000002 6263");
        assert_eq!(
            parse(&too_small),
            Err(FormatError::new(
                Position(108),
                FormatErrorKind::LengthOutOfRange {
                    shape: Shape::LegacyMessage,
                    found: 13,
                    least: 14,
                    most: i64::from(i32::MAX)
                }
            ))
        );
    }

    #[test]
    fn every_cut_is_an_error_and_none_a_panic() {
        let whole = from_hex("0000000000000006 00000018 c83ffaf3 01 08 0000018bcfe56800 ffffffff 00000002 6263");
        for len in 0..whole.len() {
            let error = parse(&whole[..len]).unwrap_err();
            assert!(matches!(error.kind, FormatErrorKind::UnexpectedEnd { .. }), "{len}: {error}");
        }
    }
}

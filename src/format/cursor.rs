//! The one door through which bytes enter. No method of [`Cursor`] can panic, and none reads beyond the data.

use super::varint::{self, VarintError};
use super::{FormatError, FormatErrorKind, Position, Shape, len_u64};

/// A reading place in borrowed bytes. Each read names the [`Shape`] being read, which an error carries on; a failed read leaves
/// the cursor where it was.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
    position: u64,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `data`, whose positions count from 0.
    pub fn new(data: &'a [u8]) -> Self {
        Self { rest: data, position: 0 }
    }

    /// A cursor over `data` that stands at `position` of some larger whole.
    pub fn at(data: &'a [u8], position: Position) -> Self {
        Self { rest: data, position: position.0 }
    }

    /// Where the next read starts.
    pub fn position(&self) -> Position {
        Position(self.position)
    }

    /// Bytes that are left.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// What is left, without moving.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// An error of this kind at this place.
    pub fn error(&self, kind: FormatErrorKind) -> FormatError {
        FormatError::new(self.position(), kind)
    }

    fn short(&self, shape: Shape, needed: usize) -> FormatError {
        self.error(FormatErrorKind::UnexpectedEnd {
            shape,
            needed: len_u64(needed),
            available: len_u64(self.rest.len()),
        })
    }

    /// The next `N` bytes.
    #[inline]
    pub fn read_array<const N: usize>(&mut self, shape: Shape) -> Result<&'a [u8; N], FormatError> {
        match self.rest.split_first_chunk::<N>() {
            Some((head, rest)) => {
                self.rest = rest;
                self.position += len_u64(N);
                Ok(head)
            }
            None => Err(self.short(shape, N)),
        }
    }

    /// The next `len` bytes.
    #[inline]
    pub fn read_bytes(&mut self, shape: Shape, len: usize) -> Result<&'a [u8], FormatError> {
        match self.rest.split_at_checked(len) {
            Some((head, rest)) => {
                self.rest = rest;
                self.position += len_u64(len);
                Ok(head)
            }
            None => Err(self.short(shape, len)),
        }
    }

    /// A signed byte.
    #[inline]
    pub fn read_i8(&mut self, shape: Shape) -> Result<i8, FormatError> {
        self.read_array::<1>(shape).map(|b| i8::from_be_bytes(*b))
    }

    /// An unsigned byte.
    #[inline]
    pub fn read_u8(&mut self, shape: Shape) -> Result<u8, FormatError> {
        self.read_array::<1>(shape).map(|b| u8::from_be_bytes(*b))
    }

    /// A big-endian i16.
    #[inline]
    pub fn read_i16(&mut self, shape: Shape) -> Result<i16, FormatError> {
        self.read_array(shape).map(|b| i16::from_be_bytes(*b))
    }

    /// A big-endian u16.
    #[inline]
    pub fn read_u16(&mut self, shape: Shape) -> Result<u16, FormatError> {
        self.read_array(shape).map(|b| u16::from_be_bytes(*b))
    }

    /// A big-endian i32.
    #[inline]
    pub fn read_i32(&mut self, shape: Shape) -> Result<i32, FormatError> {
        self.read_array(shape).map(|b| i32::from_be_bytes(*b))
    }

    /// A big-endian u32.
    #[inline]
    pub fn read_u32(&mut self, shape: Shape) -> Result<u32, FormatError> {
        self.read_array(shape).map(|b| u32::from_be_bytes(*b))
    }

    /// A big-endian i64.
    #[inline]
    pub fn read_i64(&mut self, shape: Shape) -> Result<i64, FormatError> {
        self.read_array(shape).map(|b| i64::from_be_bytes(*b))
    }

    /// An unsigned LEB128 integer of at most 5 bytes (`ByteUtils.readUnsignedVarint`).
    #[inline]
    pub fn read_unsigned_varint(&mut self, shape: Shape) -> Result<u32, FormatError> {
        let (value, used) = varint::read_unsigned_varint(self.rest).map_err(|e| self.varint_error(shape, e))?;
        self.skip(used);
        Ok(value)
    }

    /// A zigzag LEB128 integer of at most 5 bytes (`ByteUtils.readVarint`).
    #[inline]
    pub fn read_varint(&mut self, shape: Shape) -> Result<i32, FormatError> {
        self.read_unsigned_varint(shape).map(varint::zigzag_decode_32)
    }

    /// A zigzag LEB128 integer of at most 10 bytes (`ByteUtils.readVarlong`).
    #[inline]
    pub fn read_varlong(&mut self, shape: Shape) -> Result<i64, FormatError> {
        let (value, used) = varint::read_unsigned_varlong(self.rest).map_err(|e| self.varint_error(shape, e))?;
        self.skip(used);
        Ok(varint::zigzag_decode_64(value))
    }

    /// An unsigned LEB128 integer of at most 10 bytes (`ByteUtils.readUnsignedVarlong`).
    #[inline]
    pub fn read_unsigned_varlong(&mut self, shape: Shape) -> Result<u64, FormatError> {
        let (value, used) = varint::read_unsigned_varlong(self.rest).map_err(|e| self.varint_error(shape, e))?;
        self.skip(used);
        Ok(value)
    }

    fn skip(&mut self, used: usize) {
        self.rest = self.rest.get(used..).unwrap_or_default();
        self.position += len_u64(used);
    }

    #[cold]
    fn varint_error(&self, shape: Shape, error: VarintError) -> FormatError {
        match error {
            VarintError::End => self.short(shape, self.rest.len().saturating_add(1)),
            VarintError::TooLong { limit } => self.error(FormatErrorKind::VarintTooLong { limit }),
        }
    }

    /// Succeeds where nothing is left; what is left otherwise is an error, never silence.
    pub fn expect_end(&self, shape: Shape) -> Result<(), FormatError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(self.error(FormatErrorKind::TrailingBytes { shape, count: len_u64(self.rest.len()) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_read_leaves_the_cursor_where_it_was() {
        let mut cursor = Cursor::at(&[1, 2, 3], Position(100));
        assert_eq!(cursor.read_u8(Shape::Record), Ok(1));
        let error = cursor.read_i32(Shape::Record);
        assert_eq!(
            error,
            Err(FormatError::new(
                Position(101),
                FormatErrorKind::UnexpectedEnd { shape: Shape::Record, needed: 4, available: 2 }
            ))
        );
        assert_eq!(cursor.read_u16(Shape::Record), Ok(0x0203));
        assert_eq!(cursor.expect_end(Shape::Record), Ok(()));
    }
}

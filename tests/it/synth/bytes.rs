//! Big-endian numbers and varints, appended one after the other.

/// A growing byte string; every method returns it, so that a layout reads as one expression.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Bytes {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn i8(self, value: i8) -> Self {
        self.raw(&value.to_be_bytes())
    }

    pub(crate) fn i16(self, value: i16) -> Self {
        self.raw(&value.to_be_bytes())
    }

    pub(crate) fn i32(self, value: i32) -> Self {
        self.raw(&value.to_be_bytes())
    }

    pub(crate) fn u32(self, value: u32) -> Self {
        self.raw(&value.to_be_bytes())
    }

    pub(crate) fn i64(self, value: i64) -> Self {
        self.raw(&value.to_be_bytes())
    }

    /// LEB128.
    pub(crate) fn uvarint(mut self, mut value: u64) -> Self {
        while value >= 0x80 {
            self.0.push(value.to_be_bytes()[7] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_be_bytes()[7]);
        self
    }

    /// Zigzag and LEB128, 32 bits.
    pub(crate) fn varint(self, value: i32) -> Self {
        self.uvarint(u64::from(((value << 1) ^ (value >> 31)) as u32))
    }

    /// Zigzag and LEB128, 64 bits.
    pub(crate) fn varlong(self, value: i64) -> Self {
        self.uvarint(((value << 1) ^ (value >> 63)) as u64)
    }

    /// A varint length and the bytes; -1 for null.
    pub(crate) fn varint_bytes(self, value: Option<&[u8]>) -> Self {
        match value {
            None => self.varint(-1),
            Some(bytes) => self.varint(len_i32(bytes)).raw(bytes),
        }
    }

    /// A 32-bit length and the bytes; -1 for null.
    pub(crate) fn i32_bytes(self, value: Option<&[u8]>) -> Self {
        match value {
            None => self.i32(-1),
            Some(bytes) => self.i32(len_i32(bytes)).raw(bytes),
        }
    }

    /// A string of the flexible message encoding: length plus one, then UTF-8.
    pub(crate) fn compact_string(self, text: &str) -> Self {
        self.uvarint(text.len() as u64 + 1).raw(text.as_bytes())
    }
}

pub(crate) fn len_i32(bytes: &[u8]) -> i32 {
    i32::try_from(bytes.len()).unwrap()
}

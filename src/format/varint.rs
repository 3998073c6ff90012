//! Variable-length integers: LEB128, and zigzag for the signed ones (`org.apache.kafka.common.utils.ByteUtils`).
//!
//! Kafka accepts encodings that are longer than need be, and drops the bits of a last byte that exceed the type; so does this.

/// Why a varint could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VarintError {
    /// The data ends inside it.
    End,
    /// Its last allowed byte still asks for another.
    TooLong {
        /// Bytes that the type allows.
        limit: u8,
    },
}

/// An unsigned 32-bit LEB128 value and the bytes it takes, 1 to 5.
#[inline]
pub fn read_unsigned_varint(data: &[u8]) -> Result<(u32, usize), VarintError> {
    // Most varints of a log are lengths and deltas of one byte.
    match data.first() {
        Some(&byte) if byte < 0x80 => return Ok((u32::from(byte), 1)),
        _ => {}
    }
    let mut value = 0u32;
    for (index, &byte) in data.iter().take(5).enumerate() {
        // The shift of the fifth byte drops its bits 4 to 6, as Java's int does.
        value |= u32::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Ok((value, index + 1));
        }
    }
    Err(if data.len() < 5 { VarintError::End } else { VarintError::TooLong { limit: 5 } })
}

/// An unsigned 64-bit LEB128 value and the bytes it takes, 1 to 10.
#[inline]
pub fn read_unsigned_varlong(data: &[u8]) -> Result<(u64, usize), VarintError> {
    match data.first() {
        Some(&byte) if byte < 0x80 => return Ok((u64::from(byte), 1)),
        _ => {}
    }
    let mut value = 0u64;
    for (index, &byte) in data.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Ok((value, index + 1));
        }
    }
    Err(if data.len() < 10 { VarintError::End } else { VarintError::TooLong { limit: 10 } })
}

/// The signed value that zigzag maps to `value`.
#[inline]
pub fn zigzag_decode_32(value: u32) -> i32 {
    ((value >> 1) as i32) ^ -((value & 1) as i32)
}

/// The signed value that zigzag maps to `value`.
#[inline]
pub fn zigzag_decode_64(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

/// Appends an unsigned LEB128 value in its shortest form.
pub fn write_unsigned_varlong(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(u8::try_from(value & 0x7f).unwrap_or(0) | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap_or(0));
}

/// Appends a signed 32-bit value, zigzag and LEB128.
pub fn write_varint(out: &mut Vec<u8>, value: i32) {
    let zigzag = ((value << 1) ^ (value >> 31)) as u32;
    write_unsigned_varlong(out, u64::from(zigzag));
}

/// Appends a signed 64-bit value, zigzag and LEB128.
pub fn write_varlong(out: &mut Vec<u8>, value: i64) {
    write_unsigned_varlong(out, ((value << 1) ^ (value >> 63)) as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: i32) -> Vec<u8> {
        let mut out = Vec::new();
        write_varint(&mut out, value);
        out
    }

    fn written_long(value: i64) -> Vec<u8> {
        let mut out = Vec::new();
        write_varlong(&mut out, value);
        out
    }

    #[test]
    fn the_published_vectors_hold_both_ways() {
        for (value, bytes) in [
            (0, &[0x00][..]),
            (-1, &[0x01]),
            (1, &[0x02]),
            (63, &[0x7e]),
            (-64, &[0x7f]),
            (64, &[0x80, 0x01]),
            (300, &[0xd8, 0x04]),
            (i32::MAX, &[0xfe, 0xff, 0xff, 0xff, 0x0f]),
            (i32::MIN, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
        ] {
            assert_eq!(written(value), bytes);
            assert_eq!(read_unsigned_varint(bytes).map(|(v, n)| (zigzag_decode_32(v), n)), Ok((value, bytes.len())));
        }
        for (value, bytes) in [
            (-86_399_970i64, &[0xc3, 0xef, 0xb2, 0x52][..]),
            (1_099_511_627_776, &[0x80, 0x80, 0x80, 0x80, 0x80, 0x40]),
            (i64::MAX, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
            (i64::MIN, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
        ] {
            assert_eq!(written_long(value), bytes);
            assert_eq!(read_unsigned_varlong(bytes).map(|(v, n)| (zigzag_decode_64(v), n)), Ok((value, bytes.len())));
        }
    }

    #[test]
    fn bits_beyond_the_type_are_dropped_and_a_sixth_byte_is_refused() {
        assert_eq!(read_unsigned_varint(&[0x80, 0x80, 0x80, 0x80, 0x7e]), Ok((0xe000_0000, 5)));
        assert_eq!(read_unsigned_varint(&[0x80; 5]), Err(VarintError::TooLong { limit: 5 }));
        assert_eq!(read_unsigned_varint(&[0x80; 4]), Err(VarintError::End));
        assert_eq!(read_unsigned_varint(&[]), Err(VarintError::End));
        assert_eq!(read_unsigned_varlong(&[0x80; 10]), Err(VarintError::TooLong { limit: 10 }));
        assert_eq!(read_unsigned_varint(&[0x9a, 0x00]), Ok((0x1a, 2)));
    }
}

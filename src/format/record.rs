//! The records of a magic 2 batch (`DefaultRecord`), after decompression.
//!
//! ```text
//! length | attributes | timestampDelta | offsetDelta | keyLength key | valueLength value | count, each: keyLength key valueLength value
//! varint | i8         | varlong        | varint      | varint        | varint            | varint
//! ```
//!
//! A negative key or value length is null, which is not the same as empty. Header keys may repeat and may be empty; their
//! order counts. All of it survives.

use std::io::Read;

use super::batch::BatchHeader;
use super::{
    Cursor, FormatError, FormatErrorKind, Offset, Position, Sequence, Shape, TimestampMs, TimestampType, len_u64,
    len_usize,
};

/// What a record needs to know of its batch.
#[derive(Clone, Copy, Debug)]
pub struct RecordContext {
    base_offset: Offset,
    base_timestamp: i64,
    log_append_time: Option<TimestampMs>,
    timestamp_type: TimestampType,
    base_sequence: Option<Sequence>,
}

impl RecordContext {
    /// The context that a batch's header gives.
    pub fn of(header: &BatchHeader) -> Self {
        let timestamp_type = header.timestamp_type();
        Self {
            base_offset: header.base_offset,
            base_timestamp: header.base_timestamp.map_or(-1, |t| t.0),
            log_append_time: if timestamp_type == TimestampType::LogAppendTime { header.max_timestamp } else { None },
            timestamp_type,
            base_sequence: header.base_sequence.filter(|s| s.0 >= 0),
        }
    }
}

/// One record, of any magic.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Where the record starts in the decompressed records of its batch.
    pub position: Position,
    /// Its bytes there, length field included.
    pub size_bytes: u64,
    /// The record's attribute byte, which no version uses.
    pub attributes: i8,
    /// Offset minus the batch's base offset, as stored.
    pub offset_delta: i32,
    /// The offset.
    pub offset: Offset,
    /// The time, or `None` for none.
    pub timestamp: Option<TimestampMs>,
    /// What the time means.
    pub timestamp_type: TimestampType,
    /// The producer's sequence number.
    pub sequence: Option<Sequence>,
    /// The key; `None` is null.
    pub key: Option<&'a [u8]>,
    /// The value; `None` is null.
    pub value: Option<&'a [u8]>,
    /// The headers.
    pub headers: Headers<'a>,
}

impl<'a> Record<'a> {
    /// Whether the record deletes its key: a key and no value.
    pub fn is_tombstone(&self) -> bool {
        self.key.is_some() && self.value.is_none()
    }

    /// Reads one record, which must fill exactly the length it states.
    #[inline]
    pub fn parse(cursor: &mut Cursor<'a>, context: &RecordContext) -> Result<Self, FormatError> {
        let position = cursor.position();
        let length = cursor.read_varint(Shape::Record)?;
        let remaining = cursor.remaining();
        let body = match usize::try_from(length) {
            Ok(length) if length <= remaining => cursor.read_bytes(Shape::Record, length)?,
            _ => return Err(length_error(position, i64::from(length), remaining)),
        };
        let body_position = Position(cursor.position().0.saturating_sub(len_u64(body.len())));
        let mut record = Self::parse_body(body, body_position, context)?;
        record.position = position;
        record.size_bytes = cursor.position().since(position);
        Ok(record)
    }

    /// Reads the part of a record that its length field counts. `position` is the place of `body`.
    #[inline]
    pub fn parse_body(body: &'a [u8], position: Position, context: &RecordContext) -> Result<Self, FormatError> {
        let mut cursor = Cursor::at(body, position);
        let attributes = cursor.read_i8(Shape::Record)?;
        let timestamp_delta = cursor.read_varlong(Shape::Record)?;
        let offset_delta = cursor.read_varint(Shape::Record)?;
        let key = read_nullable(&mut cursor, Shape::Record)?;
        let value = read_nullable(&mut cursor, Shape::Record)?;
        let headers = Headers::read(&mut cursor)?;
        cursor.expect_end(Shape::Record)?;
        let create_time = context.base_timestamp.wrapping_add(timestamp_delta);
        Ok(Self {
            position,
            size_bytes: len_u64(body.len()),
            attributes,
            offset_delta,
            offset: context.base_offset.saturating_add(i64::from(offset_delta)),
            timestamp: match context.timestamp_type {
                TimestampType::LogAppendTime => context.log_append_time,
                _ => Some(TimestampMs(create_time)).filter(|t| t.0 != -1),
            },
            timestamp_type: context.timestamp_type,
            sequence: context.base_sequence.map(|base| base.increment(offset_delta)),
            key,
            value,
            headers,
        })
    }
}

fn length_error(position: Position, found: i64, remaining: usize) -> FormatError {
    FormatError::new(
        position,
        FormatErrorKind::LengthOutOfRange { shape: Shape::Record, found, least: 0, most: remaining as i64 },
    )
}

#[inline]
fn read_nullable<'a>(cursor: &mut Cursor<'a>, shape: Shape) -> Result<Option<&'a [u8]>, FormatError> {
    match usize::try_from(cursor.read_varint(shape)?) {
        Ok(length) => cursor.read_bytes(shape, length).map(Some),
        Err(_) => Ok(None),
    }
}

/// The headers of a record, found sound when the record was read.
#[derive(Clone, Copy, Default, Debug)]
pub struct Headers<'a> {
    count: u32,
    bytes: &'a [u8],
}

/// One header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header<'a> {
    /// The key: UTF-8 by convention, any bytes in fact.
    pub key: &'a [u8],
    /// The value; `None` is null.
    pub value: Option<&'a [u8]>,
}

impl<'a> Headers<'a> {
    #[inline]
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, FormatError> {
        let position = cursor.position();
        let count = cursor.read_varint(Shape::RecordHeader)?;
        let bytes = cursor.rest();
        // Kafka bounds the count by the bytes that are left before it trusts it.
        let count = match u32::try_from(count) {
            Ok(count) if u64::from(count) <= len_u64(bytes.len()) => count,
            _ => {
                return Err(FormatError::new(
                    position,
                    FormatErrorKind::LengthOutOfRange {
                        shape: Shape::RecordHeader,
                        found: i64::from(count),
                        least: 0,
                        most: bytes.len() as i64,
                    },
                ));
            }
        };
        for _ in 0..count {
            read_header(cursor)?;
        }
        Ok(Self { count, bytes: bytes.get(..bytes.len() - cursor.remaining()).unwrap_or_default() })
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The headers in their order.
    pub fn iter(&self) -> impl Iterator<Item = Header<'a>> + use<'a> {
        let mut cursor = Cursor::new(self.bytes);
        (0..self.count).map_while(move |_| read_header(&mut cursor).ok())
    }
}

fn read_header<'a>(cursor: &mut Cursor<'a>) -> Result<Header<'a>, FormatError> {
    let position = cursor.position();
    let length = cursor.read_varint(Shape::RecordHeader)?;
    let Ok(length) = usize::try_from(length) else {
        return Err(FormatError::new(
            position,
            FormatErrorKind::LengthOutOfRange {
                shape: Shape::RecordHeader,
                found: i64::from(length),
                least: 0,
                most: cursor.remaining() as i64,
            },
        ));
    };
    Ok(Header {
        key: cursor.read_bytes(Shape::RecordHeader, length)?,
        value: read_nullable(cursor, Shape::RecordHeader)?,
    })
}

/// The records of one batch, from its decompressed bytes. Ends after an error; where the header counts at least one record, bytes
/// after the last are an error too (`DefaultRecordBatch.RecordIterator`).
#[derive(Clone, Debug)]
pub struct Records<'a> {
    cursor: Cursor<'a>,
    context: RecordContext,
    left: u32,
    check_end: bool,
}

impl<'a> Records<'a> {
    /// The records of the batch with this header. A negative count is an error here already.
    pub fn new(header: &BatchHeader, decompressed: &'a [u8]) -> Result<Self, FormatError> {
        let left = records_expected(header)?;
        Ok(Self { cursor: Cursor::new(decompressed), context: RecordContext::of(header), left, check_end: left > 0 })
    }
}

fn records_expected(header: &BatchHeader) -> Result<u32, FormatError> {
    let count = header.records_count.unwrap_or(0);
    u32::try_from(count).map_err(|_| {
        FormatError::new(
            Position(0),
            FormatErrorKind::LengthOutOfRange {
                shape: Shape::BatchHeader,
                found: i64::from(count),
                least: 0,
                most: i64::from(i32::MAX),
            },
        )
    })
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, FormatError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            if !std::mem::take(&mut self.check_end) {
                return None;
            }
            return self.cursor.expect_end(Shape::Record).err().map(Err);
        }
        self.left -= 1;
        let record = Record::parse(&mut self.cursor, &self.context);
        if record.is_err() {
            self.left = 0;
            self.check_end = false;
        }
        Some(record)
    }
}

/// The records of a batch too large to hold, read one at a time from its decompressed stream. Holds one record, never larger than
/// the limit it was given.
#[derive(Debug)]
pub struct RecordStream<R> {
    source: R,
    context: RecordContext,
    left: u32,
    check_end: bool,
    body: Vec<u8>,
    position: u64,
    limit: u64,
}

/// Why a [`RecordStream`] ended early.
#[derive(Debug, thiserror::Error)]
pub enum RecordStreamError {
    /// A record is malformed, or larger than the limit.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The source failed: reading, or decompression.
    #[error(transparent)]
    Source(#[from] std::io::Error),
}

impl<R: Read> RecordStream<R> {
    /// The records of the batch with this header, from a buffered `source`. No record may take more than `limit` bytes.
    pub fn new(header: &BatchHeader, source: R, limit: u64) -> Result<Self, FormatError> {
        let left = records_expected(header)?;
        Ok(Self {
            source,
            context: RecordContext::of(header),
            left,
            check_end: left > 0,
            body: Vec::new(),
            position: 0,
            limit,
        })
    }

    /// What the records were read from.
    pub fn into_source(self) -> R {
        self.source
    }

    /// The next record, or `None` after the last. After an error there are no more.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, RecordStreamError> {
        if self.left == 0 {
            if std::mem::take(&mut self.check_end) {
                self.expect_end()?;
            }
            return Ok(None);
        }
        self.left -= 1;
        let check_end = std::mem::take(&mut self.check_end);
        let left = std::mem::take(&mut self.left);
        let start = Position(self.position);
        let body_position = self.fill_body(start)?;
        let mut record = Record::parse_body(&self.body, body_position, &self.context)?;
        record.position = start;
        record.size_bytes = Position(self.position).since(start);
        (self.left, self.check_end) = (left, check_end);
        Ok(Some(record))
    }

    fn fill_body(&mut self, start: Position) -> Result<Position, RecordStreamError> {
        let mut varint = [0u8; 5];
        let mut used = 0usize;
        loop {
            let mut byte = [0u8; 1];
            self.source.read_exact(&mut byte).map_err(|error| self.short(error, start))?;
            self.position = self.position.saturating_add(1);
            let [byte] = byte;
            if let Some(slot) = varint.get_mut(used) {
                *slot = byte;
            }
            used += 1;
            if byte < 0x80 || used >= varint.len() {
                break;
            }
        }
        let mut cursor = Cursor::at(varint.get(..used).unwrap_or_default(), start);
        let length = cursor.read_varint(Shape::Record)?;
        let length = u64::try_from(length).map_err(|_| length_error(start, i64::from(length), usize::MAX >> 1))?;
        if length > self.limit {
            return Err(FormatError::new(start, FormatErrorKind::LimitReached { limit: self.limit }).into());
        }
        let body_position = Position(self.position);
        self.body.clear();
        let read = self.source.by_ref().take(length).read_to_end(&mut self.body)?;
        self.position = self.position.saturating_add(len_u64(read));
        if read < len_usize(length) {
            return Err(length_error(start, i64::try_from(length).unwrap_or(i64::MAX), read).into());
        }
        Ok(body_position)
    }

    fn short(&self, error: std::io::Error, start: Position) -> RecordStreamError {
        if error.kind() == std::io::ErrorKind::UnexpectedEof && error.get_ref().is_none_or(|e| !e.is::<FormatError>()) {
            let kind = FormatErrorKind::UnexpectedEnd {
                shape: Shape::Record,
                needed: Position(self.position).since(start).saturating_add(1),
                available: Position(self.position).since(start),
            };
            return FormatError::new(start, kind).into();
        }
        error.into()
    }

    fn expect_end(&mut self) -> Result<(), RecordStreamError> {
        let left = std::io::copy(&mut self.source, &mut std::io::sink())?;
        if left == 0 {
            return Ok(());
        }
        let kind = FormatErrorKind::TrailingBytes { shape: Shape::Record, count: left };
        Err(FormatError::new(Position(self.position), kind).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Batch;

    /// Three records at 42: `k1` to `hello`, null to `x` with two headers, `k2` to null.
    const THREE: &str = "000000000000002a 00000057 00000007 02 fb6391af 0000 00000002 0000018bcfe56800 0000018bcfe56805 \
        ffffffffffffffff ffff ffffffff 00000003 1a000000046b310a68656c6c6f00 1c000a020102780402680276026e01 10000604046b320100";

    fn three() -> Vec<u8> {
        let digits: Vec<u8> = THREE.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    fn records_of(bytes: &[u8]) -> Result<Vec<Record<'_>>, FormatError> {
        let batch = Batch::parse(bytes, Position(0))?;
        Records::new(batch.header(), bytes.get(61..).unwrap())?.collect()
    }

    #[test]
    fn null_and_empty_and_repeated_survive() {
        let bytes = three();
        let records = records_of(&bytes).unwrap();
        let facts: Vec<_> = records.iter().map(|r| (r.offset.0, r.timestamp.map(|t| t.0), r.key, r.value)).collect();
        let t = 1_700_000_000_000;
        assert_eq!(
            facts,
            vec![
                (42, Some(t), Some(&b"k1"[..]), Some(&b"hello"[..])),
                (43, Some(t + 5), None, Some(&b"x"[..])),
                (44, Some(t + 3), Some(&b"k2"[..]), None),
            ]
        );
        assert!(records[2].is_tombstone() && !records[1].is_tombstone());
        let headers: Vec<_> = records[1].headers.iter().map(|h| (h.key, h.value)).collect();
        assert_eq!(headers, vec![(&b"h"[..], Some(&b"v"[..])), (b"n", None)]);
        let places: Vec<_> = records.iter().map(|r| (r.position.0, r.size_bytes)).collect();
        assert_eq!(places, vec![(0, 14), (14, 15), (29, 9)]);
    }

    #[test]
    fn a_count_that_the_bytes_contradict_is_an_error() {
        let mut bytes = three();
        for (count, sound) in [(0u8, true), (2, false), (3, true), (4, false)] {
            bytes[60] = count;
            assert_eq!(records_of(&bytes).is_ok(), sound, "count {count}");
        }
        bytes[57..61].copy_from_slice(&[0xff; 4]);
        assert!(matches!(
            records_of(&bytes).unwrap_err().kind,
            FormatErrorKind::LengthOutOfRange { found: -1, shape: Shape::BatchHeader, .. }
        ));
        bytes[57..61].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff]);
        assert!(records_of(&bytes).is_err());
    }

    #[test]
    fn a_stream_reads_what_the_slice_reads_and_fails_where_it_fails() {
        let bytes = three();
        for len in 61..=bytes.len() {
            let cut = &bytes[61..len];
            let header = BatchHeader::parse(&bytes, Position(0)).unwrap();
            let sliced: Vec<_> =
                Records::new(&header, cut).unwrap().map(|r| r.ok().map(|r| (r.offset, r.position))).collect();
            let mut stream = RecordStream::new(&header, cut, 1 << 20).unwrap();
            let mut streamed = Vec::new();
            loop {
                match stream.next_record() {
                    Ok(Some(record)) => streamed.push(Some((record.offset, record.position))),
                    Ok(None) => break,
                    Err(_) => {
                        streamed.push(None);
                        break;
                    }
                }
            }
            assert_eq!(streamed, sliced, "cut to {len}");
        }
    }

    #[test]
    fn any_flipped_bit_is_read_or_refused_and_never_reads_outside() {
        let bytes = three();
        for bit in 61 * 8..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            for record in records_of(&flipped).unwrap_or_default() {
                assert!(record.position.0 + record.size_bytes <= 38);
                assert_eq!(record.headers.iter().count(), record.headers.count() as usize);
            }
        }
    }
}

//! One batch of a log file: its header, its checksum and the bytes of its records. Never decompresses.
//!
//! ```text
//!  magic 2 (DefaultRecordBatch), 61 bytes, big-endian
//!  0        8     12    16 17   21 23   27       35       43       51 53   57   61
//!  |baseOff |size |epoch|m |crc |at|lastD|baseTs  |maxTs   |prodId  |pe|seq |count| records ...
//!                               '------------- covered by CRC-32C ----------------------->
//!
//!  magic 0 and 1 (LegacyRecord), 26 and 34 bytes with two empty lengths
//!  0        8     12   16 17 18       26
//!  |offset  |size |crc |m |at|time (1) | keyLength, key, valueLength, value
//!                      '------------------- covered by CRC-32 ------------------------->
//! ```
//!
//! Base offset, size, leader epoch and magic of magic 2 are outside its checksum; other files must vouch for them.
//!
//! ```
//! use segtool::format::{Batch, Offset, Position};
//! // An end-of-transaction marker: COMMIT of producer 4000 at offset 45.
//! let bytes: Vec<u8> = (0..78).map(|i| u8::from_str_radix(&concat!(
//!     "000000000000002d00000042000000070257b0b753003000000000000001", "8bcfe5680a0000018bcfe5680a0000000000000fa0",
//!     "0003ffffffff00000001", "200000000800000001", "0c00000000000c00")[2 * i..2 * i + 2], 16).unwrap()).collect();
//! let batch = Batch::parse(&bytes, Position(0)).unwrap();
//! assert_eq!(batch.header().base_offset, Offset(45));
//! assert!(batch.crc_matches() && batch.header().attributes.is_control());
//! ```

use super::{
    Cursor, FormatError, FormatErrorKind, LeaderEpoch, Offset, Position, ProducerEpoch, ProducerId, Sequence, Shape,
    TimestampMs, TimestampType, crc, len_u64,
};

/// Bytes of offset and size before what the size counts (`Records.LOG_OVERHEAD`).
pub const LOG_OVERHEAD: usize = 8 + 4;
/// Bytes up to and including the magic, at the same place in every version.
pub const HEADER_UP_TO_MAGIC: usize = LOG_OVERHEAD + 4 + 1;
/// The least that a size field may say in any version (`LegacyRecord.RECORD_OVERHEAD_V0`).
pub const LEAST_SIZE: i32 = 14;
/// Bytes of a magic 2 header.
pub const BATCH_HEADER: usize = HEADER_UP_TO_MAGIC + 4 + 2 + 4 + 8 + 8 + 8 + 2 + 4 + 4;
/// Where the checksum of magic 2 begins to cover.
const CRC_START: usize = HEADER_UP_TO_MAGIC + 4;
const _: () = assert!(BATCH_HEADER == 61 && CRC_START == 21);

/// The attribute bits of a batch, unknown ones included (`DefaultRecordBatch`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Attributes(pub i16);

impl Attributes {
    const CODEC: i16 = 0x07;
    const LOG_APPEND_TIME: i16 = 0x08;
    const TRANSACTIONAL: i16 = 0x10;
    const CONTROL: i16 = 0x20;
    const DELETE_HORIZON: i16 = 0x40;

    /// The codec id, 0 to 7; 5 to 7 are undefined.
    pub fn codec_id(self) -> u8 {
        u8::try_from(self.0 & Self::CODEC).unwrap_or(0)
    }

    /// Whether the batch's time is the broker's.
    pub fn is_log_append_time(self) -> bool {
        self.0 & Self::LOG_APPEND_TIME != 0
    }

    /// Whether the batch belongs to a transaction. Meaningful for magic 2.
    pub fn is_transactional(self) -> bool {
        self.0 & Self::TRANSACTIONAL != 0
    }

    /// Whether the batch holds control records. Meaningful for magic 2.
    pub fn is_control(self) -> bool {
        self.0 & Self::CONTROL != 0
    }

    /// Whether the base timestamp is a delete horizon (KIP-534). Meaningful for magic 2.
    pub fn has_delete_horizon(self) -> bool {
        self.0 & Self::DELETE_HORIZON != 0
    }

    /// The bits that no version defines.
    pub fn unknown_bits(self) -> i16 {
        self.0 & !(Self::CODEC | Self::LOG_APPEND_TIME | Self::TRANSACTIONAL | Self::CONTROL | Self::DELETE_HORIZON)
    }
}

/// The facts of a batch's header, any magic. `None` stands where the format says -1 or has no such field; any other value,
/// sound or not, is as stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchHeader {
    /// Where the batch starts in its file.
    pub position: Position,
    /// Bytes of the whole batch, offset and size fields included.
    pub size_bytes: u64,
    /// 0 and 1 are legacy messages; 2 and everything above is laid out as 2; negative ones as legacy.
    pub magic: i8,
    /// Offset of the first record as first written. Of a legacy wrapper it is the wrapper's own offset, the last one:
    /// the first needs decompression ([`super::legacy`]).
    pub base_offset: Offset,
    /// Offset of the last record as first written, inclusive.
    pub last_offset: Offset,
    /// The stored checksum.
    pub crc: u32,
    /// The attribute bits; a legacy message has only the low byte.
    pub attributes: Attributes,
    /// Epoch of the leader that wrote the batch.
    pub leader_epoch: Option<LeaderEpoch>,
    /// Last offset minus base offset; 0 for legacy.
    pub last_offset_delta: i32,
    /// What the records' timestamp deltas refer to, or the delete horizon.
    pub base_timestamp: Option<TimestampMs>,
    /// The largest timestamp of the batch; a legacy message's own.
    pub max_timestamp: Option<TimestampMs>,
    /// The idempotent producer.
    pub producer_id: Option<ProducerId>,
    /// Its epoch.
    pub producer_epoch: Option<ProducerEpoch>,
    /// Sequence of the first record.
    pub base_sequence: Option<Sequence>,
    /// Records that the header says are present; `None` for legacy.
    pub records_count: Option<i32>,
}

pub(super) fn present<T: From<N>, N: PartialEq + From<i8>>(raw: N) -> Option<T> {
    (raw != N::from(-1)).then(|| T::from(raw))
}

impl BatchHeader {
    /// Reads a header from the first bytes of a batch: 61 for magic 2, 18 (magic 0) or 26 (magic 1) for legacy messages. More may
    /// follow. Errors are shortness and a size field below what the magic needs.
    #[inline]
    pub fn parse(bytes: &[u8], position: Position) -> Result<Self, FormatError> {
        let mut cursor = Cursor::at(bytes, position);
        let base_offset = Offset(cursor.read_i64(Shape::BatchHeader)?);
        let size = cursor.read_i32(Shape::BatchHeader)?;
        let word = cursor.read_i32(Shape::BatchHeader)?;
        let magic = cursor.read_i8(Shape::BatchHeader)?;
        let least = if magic >= 2 { BATCH_HEADER - LOG_OVERHEAD } else { LEAST_SIZE as usize };
        let size_bytes = match u64::try_from(size) {
            Ok(size) if size >= len_u64(least) => size + len_u64(LOG_OVERHEAD),
            _ => {
                return Err(FormatError::new(
                    position,
                    FormatErrorKind::LengthOutOfRange {
                        shape: Shape::BatchHeader,
                        found: i64::from(size),
                        least: least as i64,
                        most: i64::from(i32::MAX),
                    },
                ));
            }
        };
        if magic < 2 {
            return Self::parse_legacy(cursor, (position, size_bytes, magic), base_offset, word);
        }
        let crc = cursor.read_u32(Shape::BatchHeader)?;
        let attributes = Attributes(cursor.read_i16(Shape::BatchHeader)?);
        let last_offset_delta = cursor.read_i32(Shape::BatchHeader)?;
        Ok(Self {
            position,
            size_bytes,
            magic,
            base_offset,
            last_offset: base_offset.saturating_add(i64::from(last_offset_delta)),
            crc,
            attributes,
            leader_epoch: present(word),
            last_offset_delta,
            base_timestamp: present(cursor.read_i64(Shape::BatchHeader)?),
            max_timestamp: present(cursor.read_i64(Shape::BatchHeader)?),
            producer_id: present(cursor.read_i64(Shape::BatchHeader)?),
            producer_epoch: present(cursor.read_i16(Shape::BatchHeader)?),
            base_sequence: present(cursor.read_i32(Shape::BatchHeader)?),
            records_count: Some(cursor.read_i32(Shape::BatchHeader)?),
        })
    }

    fn parse_legacy(
        mut cursor: Cursor<'_>,
        (position, size_bytes, magic): (Position, u64, i8),
        offset: Offset,
        crc: i32,
    ) -> Result<Self, FormatError> {
        let attributes = Attributes(i16::from(cursor.read_u8(Shape::LegacyMessage)?));
        // A magic 1 message may be too short for its timestamp and still pass its checksum; it then has none.
        let timestamp = match cursor.read_i64(Shape::LegacyMessage) {
            Ok(timestamp) if magic == 1 && size_bytes >= 26 => present(timestamp),
            _ => None,
        };
        Ok(Self {
            position,
            size_bytes,
            magic,
            base_offset: offset,
            last_offset: offset,
            crc: crc as u32,
            attributes,
            leader_epoch: None,
            last_offset_delta: 0,
            base_timestamp: timestamp,
            max_timestamp: timestamp,
            producer_id: None,
            producer_epoch: None,
            base_sequence: None,
            records_count: None,
        })
    }

    /// The offset after the last one.
    pub fn next_offset(&self) -> Offset {
        self.last_offset.next()
    }

    /// The position after the last byte.
    pub fn end(&self) -> Position {
        self.position.advance(self.size_bytes)
    }

    /// Whether this is a message of magic 0 or 1 (or of a negative magic, which readers lay out alike).
    pub fn is_legacy(&self) -> bool {
        self.magic < 2
    }

    /// Whether this is a legacy message whose value holds compressed messages.
    pub fn is_legacy_wrapper(&self) -> bool {
        self.is_legacy() && self.attributes.codec_id() != 0
    }

    /// Whether the batch belongs to a transaction.
    pub fn is_transactional(&self) -> bool {
        !self.is_legacy() && self.attributes.is_transactional()
    }

    /// Whether the batch holds control records.
    pub fn is_control(&self) -> bool {
        !self.is_legacy() && self.attributes.is_control()
    }

    /// The time (KIP-534) from which tombstones or the marker of this batch may go.
    pub fn delete_horizon(&self) -> Option<TimestampMs> {
        if !self.is_legacy() && self.attributes.has_delete_horizon() { self.base_timestamp } else { None }
    }

    /// What the timestamps mean.
    pub fn timestamp_type(&self) -> TimestampType {
        match (self.magic, self.attributes.is_log_append_time()) {
            (i8::MIN..=0, _) => TimestampType::None,
            (_, true) => TimestampType::LogAppendTime,
            (_, false) => TimestampType::CreateTime,
        }
    }

    /// Sequence of the last record as first written: base plus last offset delta, wrapping.
    pub fn last_sequence(&self) -> Option<Sequence> {
        self.base_sequence.map(|base| base.increment(self.last_offset_delta))
    }

    /// What the stored checksum should be, given the whole batch.
    fn computed_crc(&self, bytes: &[u8]) -> u32 {
        if self.is_legacy() {
            crc::crc32(bytes.get(LOG_OVERHEAD + 4..).unwrap_or_default())
        } else {
            crc::crc32c(bytes.get(CRC_START..).unwrap_or_default())
        }
    }
}

/// A whole batch: parsed, its checksum not yet trusted.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    header: BatchHeader,
    bytes: &'a [u8],
}

impl<'a> Batch<'a> {
    /// The batch at the start of `data`, which lies at `position` of its file. Errors: what [`BatchHeader::parse`] says, and
    /// `UnexpectedEnd` where `data` does not hold the whole batch.
    #[inline]
    pub fn parse(data: &'a [u8], position: Position) -> Result<Self, FormatError> {
        let header = BatchHeader::parse(data, position)?;
        match data.get(..super::len_usize(header.size_bytes)) {
            Some(bytes) => Ok(Self { header, bytes }),
            None => Err(FormatError::new(
                position,
                FormatErrorKind::UnexpectedEnd {
                    shape: if header.is_legacy() { Shape::LegacyMessage } else { Shape::BatchHeader },
                    needed: header.size_bytes,
                    available: len_u64(data.len()),
                },
            )),
        }
    }

    /// The header's facts.
    #[inline]
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// All bytes of the batch.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The records of a magic 2 batch as stored, compressed or not; empty for legacy messages.
    pub fn records_bytes(&self) -> &'a [u8] {
        if self.header.is_legacy() { &[] } else { self.bytes.get(BATCH_HEADER..).unwrap_or_default() }
    }

    /// The checksum that the bytes have.
    #[inline]
    pub fn computed_crc(&self) -> u32 {
        self.header.computed_crc(self.bytes)
    }

    /// Whether the stored checksum is that of the bytes.
    #[inline]
    pub fn crc_matches(&self) -> bool {
        self.computed_crc() == self.header.crc
    }
}

/// The checksum of a batch that arrives in pieces, for one too large to hold.
#[derive(Clone, Debug)]
pub struct CrcStream {
    skip: usize,
    sum: Sum,
}

#[derive(Clone, Debug)]
enum Sum {
    Castagnoli(crc::Crc32cStream),
    Ieee(crc::Crc32Stream),
}

impl CrcStream {
    /// A stream for the batch with this header, fed from the batch's first byte.
    pub fn of(header: &BatchHeader) -> Self {
        if header.is_legacy() {
            Self { skip: LOG_OVERHEAD + 4, sum: Sum::Ieee(crc::Crc32Stream::default()) }
        } else {
            Self { skip: CRC_START, sum: Sum::Castagnoli(crc::Crc32cStream::default()) }
        }
    }

    /// Adds the next piece.
    pub fn update(&mut self, piece: &[u8]) {
        let passed = piece.len().min(self.skip);
        self.skip -= passed;
        let covered = piece.get(passed..).unwrap_or_default();
        match &mut self.sum {
            Sum::Castagnoli(sum) => sum.update(covered),
            Sum::Ieee(sum) => sum.update(covered),
        }
    }

    /// The checksum of all pieces so far.
    pub fn value(&self) -> u32 {
        match &self.sum {
            Sum::Castagnoli(sum) => sum.value(),
            Sum::Ieee(sum) => sum.clone().value(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    /// What the cleaner leaves of five records: offsets 100 to 104, no record.
    const EMPTY: &str = "0000000000000064 00000031 00000009 02 a433e865 0010 00000004 ffffffffffffffff 0000018bcfe56814 \
                         0000000000000fa0 0003 00000011 00000000";

    #[test]
    fn an_empty_batch_keeps_its_offsets_and_sequences() {
        let bytes = from_hex(EMPTY);
        let batch = Batch::parse(&bytes, Position(7)).unwrap();
        let header = batch.header();
        assert!(batch.crc_matches());
        assert_eq!(
            (header.base_offset, header.last_offset, header.next_offset()),
            (Offset(100), Offset(104), Offset(105))
        );
        assert_eq!(header.base_timestamp, None);
        assert_eq!(header.max_timestamp, Some(TimestampMs(1_700_000_000_020)));
        assert_eq!((header.base_sequence, header.last_sequence()), (Some(Sequence(17)), Some(Sequence(21))));
        assert_eq!((header.records_count, header.end()), (Some(0), Position(7 + 61)));
        assert!(header.is_transactional() && !header.is_control());
    }

    #[test]
    fn legacy_messages_have_their_own_layout_and_checksum() {
        let v0 = from_hex("0000000000000005 00000011 6eebece4 00 00 00000001 61 00000002 6263");
        let v1 = from_hex("0000000000000006 00000018 c83ffaf3 01 08 0000018bcfe56800 ffffffff 00000002 6263");
        let (v0, v1) = (Batch::parse(&v0, Position(0)).unwrap(), Batch::parse(&v1, Position(29)).unwrap());
        assert!(v0.crc_matches() && v1.crc_matches());
        assert_eq!(v0.header().max_timestamp, None);
        assert_eq!(v0.header().timestamp_type(), TimestampType::None);
        assert_eq!(v1.header().max_timestamp, Some(TimestampMs(1_700_000_000_000)));
        assert_eq!(v1.header().timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!((v1.header().last_offset, v1.header().size_bytes), (Offset(6), 36));
    }

    #[test]
    fn every_cut_is_an_error_and_every_covered_bit_is_noticed() {
        let bytes = from_hex(EMPTY);
        for len in 0..bytes.len() {
            assert!(Batch::parse(&bytes[..len], Position(0)).is_err(), "cut to {len}");
        }
        for bit in 21 * 8..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!Batch::parse(&flipped, Position(0)).unwrap().crc_matches(), "bit {bit}");
        }
    }

    #[test]
    fn a_stream_of_pieces_has_the_checksum_of_the_whole() {
        for bytes in [from_hex(EMPTY), from_hex("0000000000000005 00000011 6eebece4 00 00 00000001 61 00000002 6263")] {
            let batch = Batch::parse(&bytes, Position(0)).unwrap();
            for piece in 1..bytes.len() {
                let mut stream = CrcStream::of(batch.header());
                bytes.chunks(piece).for_each(|piece| stream.update(piece));
                assert_eq!(stream.value(), batch.header().crc, "pieces of {piece}");
            }
        }
    }

    #[test]
    fn a_size_below_what_the_magic_needs_is_refused_with_its_bounds() {
        let mut bytes = from_hex(EMPTY);
        bytes[11] = 48;
        let error = Batch::parse(&bytes, Position(9)).unwrap_err();
        assert_eq!(error.position, Position(9));
        assert!(matches!(error.kind, FormatErrorKind::LengthOutOfRange { found: 48, least: 49, .. }), "{error}");
    }
}

//! Batches and records as Kafka's own writers lay them out, byte for byte (`DefaultRecordBatch.writeHeader`, `DefaultRecord.writeTo`,
//! `LegacyRecord.write`, `AbstractLegacyRecordBatch.writeHeader`).
//!
//! What is written here reads back through the views of this layer. Compression is the caller's: records come in as the bytes that
//! stand behind the header.
//!
//! One thing is kept that a broker's rewriting spoils: header keys that are no UTF-8 stay the bytes that they are.

use super::batch::{BATCH_HEADER, HEADER_UP_TO_MAGIC, LOG_OVERHEAD};
use super::record::Headers;
use super::varint::{write_varint, write_varlong};
use super::{Attributes, BatchHeader, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs, crc};

/// The magic of a v2 batch.
pub const CURRENT_MAGIC: i8 = 2;
/// Where the checksum of magic 2 stands; what it covers begins behind it.
const CRC_AT: usize = HEADER_UP_TO_MAGIC;
const CRC_END: usize = CRC_AT + 4;
/// Where the checksum of a legacy message stands.
const LEGACY_CRC_AT: usize = LOG_OVERHEAD;
const LEGACY_CRC_END: usize = LEGACY_CRC_AT + 4;
const _: () = assert!(CRC_END == 21 && LEGACY_CRC_END == 16);

/// A batch or record that is larger than its length field can say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{size_bytes} bytes are more than a batch can hold")]
pub struct TooLarge {
    /// What it would take.
    pub size_bytes: u64,
}

/// The fields of a v2 header that the records do not give. `None` is written as -1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchFields {
    /// Offset of the first record as first written.
    pub base_offset: Offset,
    /// Last offset minus base offset, as first written.
    pub last_offset_delta: i32,
    /// Epoch of the leader that wrote the batch.
    pub leader_epoch: Option<LeaderEpoch>,
    /// All attribute bits.
    pub attributes: Attributes,
    /// What timestamp deltas refer to, or the delete horizon.
    pub base_timestamp: Option<TimestampMs>,
    /// The largest timestamp.
    pub max_timestamp: Option<TimestampMs>,
    /// The producer.
    pub producer_id: Option<ProducerId>,
    /// Its epoch.
    pub producer_epoch: Option<ProducerEpoch>,
    /// Sequence of the first record as first written.
    pub base_sequence: Option<Sequence>,
    /// Records that follow.
    pub records_count: i32,
}

impl BatchFields {
    /// The fields of a batch that is there already.
    pub fn of(header: &BatchHeader) -> Self {
        Self {
            base_offset: header.base_offset,
            last_offset_delta: header.last_offset_delta,
            leader_epoch: header.leader_epoch,
            attributes: header.attributes,
            base_timestamp: header.base_timestamp,
            max_timestamp: header.max_timestamp,
            producer_id: header.producer_id,
            producer_epoch: header.producer_epoch,
            base_sequence: header.base_sequence,
            records_count: header.records_count.unwrap_or(0),
        }
    }
}

/// Appends a v2 batch whose records, compressed as the attributes say, are `records`.
pub fn encode_batch(fields: &BatchFields, records: &[u8], out: &mut Vec<u8>) -> Result<(), TooLarge> {
    let length = length_field(BATCH_HEADER - LOG_OVERHEAD, records.len())?;
    let start = out.len();
    out.reserve(BATCH_HEADER + records.len());
    out.extend_from_slice(&fields.base_offset.0.to_be_bytes());
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&fields.leader_epoch.map_or(-1, |epoch| epoch.0).to_be_bytes());
    out.push(CURRENT_MAGIC as u8);
    out.extend_from_slice(&[0; CRC_END - CRC_AT]);
    out.extend_from_slice(&fields.attributes.0.to_be_bytes());
    out.extend_from_slice(&fields.last_offset_delta.to_be_bytes());
    out.extend_from_slice(&raw_timestamp(fields.base_timestamp).to_be_bytes());
    out.extend_from_slice(&raw_timestamp(fields.max_timestamp).to_be_bytes());
    out.extend_from_slice(&fields.producer_id.map_or(-1, |id| id.0).to_be_bytes());
    out.extend_from_slice(&fields.producer_epoch.map_or(-1, |epoch| epoch.0).to_be_bytes());
    out.extend_from_slice(&fields.base_sequence.map_or(-1, |sequence| sequence.0).to_be_bytes());
    out.extend_from_slice(&fields.records_count.to_be_bytes());
    out.extend_from_slice(records);
    let sum = crc::crc32c(out.get(start + CRC_END..).unwrap_or_default());
    put_checksum(out, start + CRC_AT, sum);
    Ok(())
}

/// What a record's timestamp and offset are counted from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deltas {
    /// Timestamp minus the batch's base timestamp.
    pub timestamp: i64,
    /// Offset minus the batch's base offset.
    pub offset: i32,
}

/// Appends a v2 record.
pub fn encode_record(
    deltas: Deltas,
    (key, value): (Option<&[u8]>, Option<&[u8]>),
    headers: &Headers<'_>,
    out: &mut Vec<u8>,
) -> Result<(), TooLarge> {
    let body = 1
        + varlong_len(deltas.timestamp)
        + varint_len(deltas.offset)
        + nullable_len(key)?
        + nullable_len(value)?
        + headers_len(headers)?;
    write_varint(out, length_field(0, body)?);
    out.push(0);
    write_varlong(out, deltas.timestamp);
    write_varint(out, deltas.offset);
    write_nullable(out, key);
    write_nullable(out, value);
    write_varint(out, i32::try_from(headers.count()).unwrap_or(0));
    for header in headers.iter() {
        write_nullable(out, Some(header.key));
        write_nullable(out, header.value);
    }
    Ok(())
}

/// Appends a message of magic 0 or 1. Magic 0 has no timestamp.
pub fn encode_legacy_message(
    (offset, magic, attributes): (Offset, i8, u8),
    timestamp: Option<TimestampMs>,
    (key, value): (Option<&[u8]>, Option<&[u8]>),
    out: &mut Vec<u8>,
) -> Result<(), TooLarge> {
    let fixed = 4 + 1 + 1 + if magic == 0 { 0 } else { 8 } + 4 + 4;
    let size = length_field(fixed, key.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len))?;
    let start = out.len();
    out.extend_from_slice(&offset.0.to_be_bytes());
    out.extend_from_slice(&size.to_be_bytes());
    out.extend_from_slice(&[0; LEGACY_CRC_END - LEGACY_CRC_AT]);
    out.push(magic as u8);
    out.push(attributes);
    if magic != 0 {
        out.extend_from_slice(&raw_timestamp(timestamp).to_be_bytes());
    }
    for bytes in [key, value] {
        // The sum of both fits, so each does.
        let len = bytes.map_or(-1, |bytes| i32::try_from(bytes.len()).unwrap_or(i32::MAX));
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(bytes.unwrap_or_default());
    }
    let sum = crc::crc32(out.get(start + LEGACY_CRC_END..).unwrap_or_default());
    put_checksum(out, start + LEGACY_CRC_AT, sum);
    Ok(())
}

fn length_field(fixed: usize, rest: usize) -> Result<i32, TooLarge> {
    let size = fixed.saturating_add(rest);
    i32::try_from(size).map_err(|_| TooLarge { size_bytes: size as u64 })
}

fn raw_timestamp(timestamp: Option<TimestampMs>) -> i64 {
    timestamp.map_or(-1, |timestamp| timestamp.0)
}

fn put_checksum(out: &mut [u8], at: usize, sum: u32) {
    if let Some(slot) = out.get_mut(at..at + 4) {
        slot.copy_from_slice(&sum.to_be_bytes());
    }
}

fn nullable_len(bytes: Option<&[u8]>) -> Result<usize, TooLarge> {
    match bytes {
        None => Ok(1),
        Some(bytes) => Ok(varint_len(length_field(0, bytes.len())?) + bytes.len()),
    }
}

fn headers_len(headers: &Headers<'_>) -> Result<usize, TooLarge> {
    if headers.is_empty() {
        return Ok(1);
    }
    let mut len = varint_len(i32::try_from(headers.count()).unwrap_or(0));
    for header in headers.iter() {
        len += nullable_len(Some(header.key))? + nullable_len(header.value)?;
    }
    Ok(len)
}

fn write_nullable(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    let len = bytes.map_or(-1, |bytes| i32::try_from(bytes.len()).unwrap_or(i32::MAX));
    write_varint(out, len);
    out.extend_from_slice(bytes.unwrap_or_default());
}

/// Bytes that a signed value takes, zigzag and LEB128.
fn varlong_len(value: i64) -> usize {
    let zigzag = ((value << 1) ^ (value >> 63)) as u64;
    let bits = u64::BITS - zigzag.leading_zeros();
    bits.max(1).div_ceil(7) as usize
}

fn varint_len(value: i32) -> usize {
    varlong_len(i64::from(value))
}

#[cfg(test)]
mod tests {
    use super::super::record::Records;
    use super::super::{Batch, Position, Shape, legacy};
    use super::*;
    use proptest::prelude::*;

    fn from_hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    /// Written by Kafka's builders: three records with null key, null value, headers; a tombstone with a delete horizon; what is
    /// left of a batch without records.
    const BATCHES: [&str; 3] = [
        "000000000000002a 00000057 00000007 02 fb6391af 0000 00000002 0000018bcfe56800 0000018bcfe56805 ffffffffffffffff ffff \
         ffffffff 00000003 1a000000046b310a68656c6c6f00 1c000a020102780402680276026e01 10000604046b320100",
        "00000000000000c8 0000003d 00000009 02 532f46f7 0040 00000003 0000018bd50bc400 0000018bcfe5681e ffffffffffffffff ffff \
         ffffffff 00000001 16 00 c3efb252 06 04 6b39 01 00",
        "0000000000000064 00000031 00000009 02 a433e865 0010 00000004 ffffffffffffffff 0000018bcfe56814 0000000000000fa0 0003 \
         00000011 00000000",
    ];

    #[test]
    fn batches_of_kafkas_builders_come_out_byte_for_byte() {
        for text in BATCHES {
            let bytes = from_hex(text);
            let batch = Batch::parse(&bytes, Position(0)).unwrap();
            let header = batch.header();
            let base = header.base_timestamp.map_or(-1, |t| t.0);
            let mut records = Vec::new();
            for record in Records::new(header, batch.records_bytes()).unwrap() {
                let record = record.unwrap();
                let deltas = Deltas { timestamp: record.timestamp.unwrap().0 - base, offset: record.offset_delta };
                encode_record(deltas, (record.key, record.value), &record.headers, &mut records).unwrap();
            }
            let mut out = vec![9];
            encode_batch(&BatchFields::of(header), &records, &mut out).unwrap();
            assert_eq!(out[1..], bytes);
        }
    }

    #[test]
    fn legacy_messages_come_out_byte_for_byte() {
        let mut out = Vec::new();
        encode_legacy_message((Offset(5), 0, 0), None, (Some(b"a"), Some(b"bc")), &mut out).unwrap();
        assert_eq!(out, from_hex("0000000000000005 00000011 6eebece4 00 00 00000001 61 00000002 6263"));
        out.clear();
        let time = Some(TimestampMs(1_700_000_000_000));
        encode_legacy_message((Offset(6), 1, 8), time, (None, Some(b"bc")), &mut out).unwrap();
        assert_eq!(out, from_hex("0000000000000006 00000018 c83ffaf3 01 08 0000018bcfe56800 ffffffff 00000002 6263"));
    }

    #[test]
    fn lengths_of_varints_are_those_of_the_writer() {
        let shifts = (0..64).flat_map(|shift| [1i64 << shift, -(1i64 << (shift % 63)), (1i64 << (shift % 63)) - 1]);
        for value in shifts.chain([0, i64::MIN, i64::MAX]) {
            let mut out = Vec::new();
            write_varlong(&mut out, value);
            assert_eq!(varlong_len(value), out.len(), "{value}");
        }
    }

    fn nullable() -> impl Strategy<Value = Option<Vec<u8>>> {
        proptest::option::of(proptest::collection::vec(any::<u8>(), 0..200))
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            entries in proptest::collection::vec((any::<i64>(), 0..i32::MAX, nullable(), nullable()), 1..20),
            attributes in 0i16..0x80,
            base in 0i64..1 << 40,
        ) {
            let mut records = Vec::new();
            for (timestamp, offset, key, value) in &entries {
                let deltas = Deltas { timestamp: *timestamp, offset: *offset };
                encode_record(deltas, (key.as_deref(), value.as_deref()), &Headers::default(), &mut records).unwrap();
            }
            let fields = BatchFields {
                base_offset: Offset(base),
                last_offset_delta: i32::MAX,
                leader_epoch: None,
                attributes: Attributes(attributes & !0x0f),
                base_timestamp: Some(TimestampMs(0)),
                max_timestamp: Some(TimestampMs(base)),
                producer_id: Some(ProducerId(7)),
                producer_epoch: Some(ProducerEpoch(1)),
                base_sequence: Some(Sequence(0)),
                records_count: i32::try_from(entries.len()).unwrap(),
            };
            let mut out = Vec::new();
            encode_batch(&fields, &records, &mut out).unwrap();
            let batch = Batch::parse(&out, Position(0)).unwrap();
            prop_assert!(batch.crc_matches());
            prop_assert_eq!(BatchFields::of(batch.header()), fields);
            let read: Result<Vec<_>, _> = Records::new(batch.header(), batch.records_bytes()).unwrap().collect();
            for (record, (timestamp, offset, key, value)) in read.unwrap().iter().zip(&entries) {
                prop_assert_eq!(record.timestamp.map_or(-1, |t| t.0), *timestamp);
                prop_assert_eq!(record.offset_delta, *offset);
                prop_assert_eq!((record.key, record.value), (key.as_deref(), value.as_deref()));
            }
        }

        #[test]
        fn a_legacy_message_reads_back(magic in 0i8..2, time in any::<i64>(), key in nullable(), value in nullable()) {
            let mut out = Vec::new();
            let time = Some(TimestampMs(time)).filter(|t| t.0 != -1);
            encode_legacy_message((Offset(3), magic, 0), time, (key.as_deref(), value.as_deref()), &mut out).unwrap();
            let message = legacy::LegacyMessage::parse(&out, Position(0), Shape::LegacyMessage).unwrap();
            prop_assert!(message.crc_matches());
            prop_assert_eq!((message.key, message.value), (key.as_deref(), value.as_deref()));
            prop_assert_eq!(message.timestamp, time.filter(|_| magic == 1));
            prop_assert_eq!(message.size_bytes, out.len() as u64);
        }
    }
}

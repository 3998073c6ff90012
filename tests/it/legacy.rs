//! Magic 0 and 1: the published wrappers, the rules of Kafka's deep iterator, and what it overlooks.

use segtool::format::compression::{Codec, CodecOddity, Decompressor};
use segtool::format::legacy::{
    InnerRecordStream, LegacyMessage, LegacyOddity, LegacyRecord, SetFacts, Wrapper, read_facts,
};
use segtool::format::{FormatError, FormatErrorKind, Offset, Position, Shape, TimestampMs, TimestampType, crc};

const LIMIT: u64 = 4 * 1024 * 1024;
const T: i64 = 1_700_000_000_000;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// Offset, timestamp, its type, key and value.
type Facts = (i64, Option<i64>, TimestampType, Option<Vec<u8>>, Option<Vec<u8>>);

fn facts_of(record: &LegacyRecord<'_>) -> Facts {
    (
        record.offset.0,
        record.timestamp.map(|t| t.0),
        record.timestamp_type,
        record.key.map(<[u8]>::to_vec),
        record.value.map(<[u8]>::to_vec),
    )
}

#[derive(PartialEq, Debug)]
struct Read {
    records: Vec<Facts>,
    set: SetFacts,
    oddities: Vec<LegacyOddity>,
    codec_oddities: Vec<CodecOddity>,
}

fn message(bytes: &[u8]) -> LegacyMessage<'_> {
    LegacyMessage::parse(bytes, Position(0), Shape::LegacyMessage).unwrap()
}

fn read_whole(bytes: &[u8]) -> Result<Read, FormatError> {
    let mut decompressor = Decompressor::new();
    let wrapper = Wrapper::of(&message(bytes))?.expect("a wrapper");
    let set = wrapper.decode(&mut decompressor, LIMIT)?;
    let records = set.records().collect::<Result<Vec<_>, _>>()?;
    Ok(Read {
        records: records.iter().map(facts_of).collect(),
        set: set.facts().clone(),
        oddities: records.iter().flat_map(LegacyRecord::oddities).collect(),
        codec_oddities: set.codec_oddities().to_vec(),
    })
}

fn read_streamed(bytes: &[u8]) -> Result<Read, FormatError> {
    let message = message(bytes);
    let wrapper = Wrapper::of(&message)?.expect("a wrapper");
    let mut decompressor = Decompressor::new();
    let format = |error: segtool::format::record::RecordStreamError| match error {
        segtool::format::record::RecordStreamError::Format(error) => error,
        segtool::format::record::RecordStreamError::Source(error) => {
            error.downcast::<FormatError>().expect("a fault of the format").offset_by(message.value_position)
        }
    };
    let (codec, lz4, compressed) = (wrapper.codec(), wrapper.lz4_checksum(), wrapper.compressed());
    let set = read_facts(&message, decompressor.stream(codec, lz4, compressed, LIMIT)).map_err(format)?;
    let mut content = decompressor.stream(codec, lz4, compressed, LIMIT);
    let (mut records, mut oddities) = (Vec::new(), Vec::new());
    let mut stream = InnerRecordStream::new(&message, &set, &mut content, LIMIT);
    while let Some(record) = stream.next_record().map_err(format)? {
        records.push(facts_of(&record));
        oddities.extend(record.oddities());
    }
    Ok(Read { records, set, oddities, codec_oddities: content.oddities().to_vec() })
}

/// What both ways of reading say, which must be the same.
fn read(bytes: &[u8]) -> Result<Read, FormatError> {
    let whole = read_whole(bytes);
    assert_eq!(read_streamed(bytes), whole, "streamed and whole differ");
    whole
}

fn p_q_and_r(first: i64, times: [Option<i64>; 2], kind: TimestampType) -> Vec<Facts> {
    vec![
        (first, times[0], kind, Some(b"p".to_vec()), Some(b"q".to_vec())),
        (first + 1, times[1], kind, None, Some(b"r".to_vec())),
    ]
}

/// A message of magic 0 or 1 with a right checksum.
fn encode(magic: u8, attributes: u8, offset: i64, timestamp: i64, key: Option<&[u8]>, value: Option<&[u8]>) -> Vec<u8> {
    let mut body = vec![magic, attributes];
    if magic > 0 {
        body.extend_from_slice(&timestamp.to_be_bytes());
    }
    for field in [key, value] {
        body.extend_from_slice(&field.map_or(-1, |f| i32::try_from(f.len()).unwrap()).to_be_bytes());
        body.extend_from_slice(field.unwrap_or_default());
    }
    let mut out = offset.to_be_bytes().to_vec();
    out.extend_from_slice(&u32::try_from(body.len() + 4).unwrap().to_be_bytes());
    out.extend_from_slice(&crc::crc32(&body).to_be_bytes());
    out.extend_from_slice(&body);
    out
}

/// Plain inner messages with these offsets; times T, T+1, ...
fn inner(magic: u8, offsets: &[i64]) -> Vec<Vec<u8>> {
    (0..).zip(offsets).map(|(i, &offset)| encode(magic, 0, offset, T + i, Some(b"k"), Some(b"value"))).collect()
}

fn snappy_wrapper(magic: u8, attributes: u8, offset: i64, content: &[u8]) -> Vec<u8> {
    let compressed = snap::raw::Encoder::new().compress_vec(content).unwrap();
    encode(magic, 2 | attributes, offset, T + 77, None, Some(&compressed))
}

fn offsets(read: &Read) -> Vec<i64> {
    read.records.iter().map(|record| record.0).collect()
}

#[test]
fn the_published_snappy_wrapper_of_magic_1_has_relative_offsets_and_its_own_times() {
    let framed = hex(
        "000000000000000b 00000074 82e53974 01 02 0000018bcfe56802 ffffffff 0000005e 82534e4150505900 0000000100000001
         0000004a 47 f046 0000000000000000 00000018 0fdd3408 0100 0000018bcfe56801 00000001700000000171
         0000000000000001 00000017 c2ff3ee1 0100 0000018bcfe56802 ffffffff0000000172",
    );
    let raw = hex(
        "000000000000000b000000602f95e51f01020000018bcfe56802ffffffff0000004a47f0460000000000000000000000180fdd3408
         01000000018bcfe5680100000001700000000171000000000000000100000017c2ff3ee101000000018bcfe56802ffffffff0000000172",
    );
    let expected = p_q_and_r(10, [Some(T + 1), Some(T + 2)], TimestampType::CreateTime);
    for (bytes, codec_oddities) in [(framed, vec![]), (raw, vec![CodecOddity::SnappyWithoutHeader])] {
        assert!(message(&bytes).crc_matches());
        let read = read(&bytes).unwrap();
        assert_eq!((&read.records, &read.codec_oddities), (&expected, &codec_oddities));
        assert_eq!((read.set.base_offset, read.set.last_offset, read.set.messages_count), (Offset(10), Offset(11), 2));
        assert_eq!((read.set.oddities, read.oddities), (vec![], vec![]));
    }
}

#[test]
fn the_published_lz4_wrapper_of_magic_0_is_read_with_any_header_checksum() {
    let mut bytes = hex(
        "0000000000000015 00000054 7d93e03d 00 03 ffffffff 00000046 04224d18 60 40 1a 37000080 0000000000000014 00000010
         e899b0f1000000000001700000000171 0000000000000015 0000000f d5617bec0000ffffffff0000000172 00000000",
    );
    let expected = p_q_and_r(20, [None, None], TimestampType::None);
    let old = read(&bytes).unwrap();
    assert_eq!(old.records, expected);
    assert_eq!(old.codec_oddities, vec![CodecOddity::OldLz4HeaderChecksum { stored: 0x1a, computed: 0x82 }]);
    bytes[32] = 0x82;
    let right = read(&bytes).unwrap();
    assert_eq!((right.records, right.codec_oddities), (expected, vec![]));
}

#[test]
fn log_append_time_of_a_wrapper_overrules_the_times_inside() {
    let bytes =
        hex("000000000000001f 0000006c 8dba43bc 01 0b 0000018bcfe56863 ffffffff 00000056 04224d18604082 47000080
         0000000000000000 00000018 0fdd3408 0100 0000018bcfe56801 00000001700000000171
         0000000000000001 00000017 c2ff3ee1 0100 0000018bcfe56802 ffffffff0000000172 00000000");
    assert!(message(&bytes).crc_matches());
    let read = read(&bytes).unwrap();
    assert_eq!(read.records, p_q_and_r(30, [Some(T + 99), Some(T + 99)], TimestampType::LogAppendTime));
}

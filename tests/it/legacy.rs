//! Magic 0 and 1: the published wrappers, the rules of Kafka's deep iterator, and what it overlooks.

use segtool::format::compression::{Codec, CodecOddity, Decompressor};
use segtool::format::legacy::{
    InnerRecordStream, LegacyMessage, LegacyOddity, LegacyRecord, SetFacts, Wrapper, read_facts,
};
use segtool::format::{FormatError, FormatErrorKind, Offset, Position, Shape, TimestampType, crc};

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

#[test]
fn a_plain_message_is_its_own_record() {
    let bytes = encode(1, 8, 6, T, None, Some(b"bc"));
    let message = message(&bytes);
    assert_eq!(Wrapper::of(&message), Ok(None));
    let record = LegacyRecord::alone(message);
    assert_eq!(facts_of(&record), (6, Some(T), TimestampType::LogAppendTime, None, Some(b"bc".to_vec())));
    assert_eq!((record.inner_position, record.oddities().count()), (None, 0));
}

#[test]
fn offsets_left_by_compaction_are_resolved_in_both_magics() {
    let relative = snappy_wrapper(1, 0, 9, &inner(1, &[0, 3, 7]).concat());
    let absolute = snappy_wrapper(0, 0, 9, &inner(0, &[2, 5, 9]).concat());
    let absolute_in_1 = snappy_wrapper(1, 0, 4, &inner(1, &[2, 3, 4]).concat());
    for (bytes, expected) in [(relative, [2, 5, 9]), (absolute, [2, 5, 9]), (absolute_in_1, [2, 3, 4])] {
        let read = read(&bytes).unwrap();
        assert_eq!(offsets(&read), expected);
        assert_eq!((read.set.base_offset.0, read.set.last_offset.0), (expected[0], expected[2]));
        assert_eq!((read.set.oddities, read.oddities), (vec![], vec![]));
    }
}

#[test]
fn a_wrapper_of_offset_zero_counts_from_zero() {
    let read = read(&snappy_wrapper(1, 0, 0, &inner(1, &[0, 1, 2, 3]).concat())).unwrap();
    assert_eq!(offsets(&read), [0, 1, 2, 3]);
    assert_eq!(read.set.oddities, vec![LegacyOddity::WrapperOffsetZero { last_inner_offset: Offset(3) }]);
}

#[test]
fn a_wrapper_offset_below_the_last_inner_one_is_refused_in_magic_1_and_odd_in_magic_0() {
    let error = read(&snappy_wrapper(1, 0, 3, &inner(1, &[0, 1, 4]).concat())).unwrap_err();
    let kind = FormatErrorKind::Mismatch { shape: Shape::LegacyMessage, field: "offset", expected: 4, found: 3 };
    assert_eq!(error, FormatError::new(Position(0), kind));
    let read = read(&snappy_wrapper(0, 0, 3, &inner(0, &[0, 1, 4]).concat())).unwrap();
    assert_eq!(offsets(&read), [0, 1, 4]);
    let oddity = LegacyOddity::WrapperOffsetDiffers { wrapper_offset: Offset(3), last_inner_offset: Offset(4) };
    assert_eq!(read.set.oddities, vec![oddity]);
}

#[test]
fn a_cut_last_message_disappears_and_shifts_the_others_in_magic_1() {
    for (magic, expected) in [(1, [3, 4, 5]), (0, [2, 3, 4])] {
        let stored = if magic == 0 { [2, 3, 4, 5] } else { [0, 1, 2, 3] };
        let mut content = inner(magic, &stored).concat();
        let size = content.len() / 4;
        content.truncate(content.len() - 5);
        let read = read(&snappy_wrapper(magic, 0, 5, &content)).unwrap();
        assert_eq!(offsets(&read), expected);
        let position = Position(3 * size as u64);
        let cut = LegacyOddity::CutMessage { position, count: size as u64 - 5 };
        assert_eq!(read.set.oddities.first(), Some(&cut));
    }
    // Fewer bytes than offset and size take are a cut message too.
    let content = [inner(1, &[0]).concat(), vec![0; 11]].concat();
    let position = Position(content.len() as u64 - 11);
    let read = read(&snappy_wrapper(1, 0, 5, &content)).unwrap();
    assert_eq!(read.set.oddities, vec![LegacyOddity::CutMessage { position, count: 11 }]);
}

#[test]
fn an_inner_message_of_another_magic_is_read_by_its_own_and_named() {
    let v0_in_v1 = read(&snappy_wrapper(1, 0, 9, &inner(0, &[0, 1]).concat())).unwrap();
    assert_eq!(v0_in_v1.records[0], (8, None, TimestampType::None, Some(b"k".to_vec()), Some(b"value".to_vec())));
    let odd = |at, wrapper_magic, magic| LegacyOddity::MagicDiffers { position: Position(at), wrapper_magic, magic };
    assert_eq!(v0_in_v1.oddities, vec![odd(0, 1, 0), odd(32, 1, 0)]);
    let v1_in_v0 = read(&snappy_wrapper(0, 0, 9, &inner(1, &[8, 9]).concat())).unwrap();
    assert_eq!(
        v1_in_v0.records[1],
        (9, Some(T + 1), TimestampType::None, Some(b"k".to_vec()), Some(b"value".to_vec()))
    );
    assert_eq!(v1_in_v0.oddities, vec![odd(0, 0, 1), odd(40, 0, 1)]);
}

#[test]
fn inner_checksums_order_and_stray_bytes_are_named_not_refused() {
    let mut messages = inner(1, &[0, 2, 2]);
    messages[1][12] ^= 1;
    let mut long = encode(1, 0, 3, T, None, Some(b"v"));
    long.extend_from_slice(b"zz");
    long[11] += 2;
    let sum = crc::crc32(&long[16..]).to_be_bytes();
    long[12..16].copy_from_slice(&sum);
    messages.push(long);
    let stored = u32::from_be_bytes(messages[1][12..16].try_into().unwrap());
    let read = read(&snappy_wrapper(1, 0, 13, &messages.concat())).unwrap();
    assert_eq!(offsets(&read), [10, 12, 12, 13]);
    assert_eq!(
        read.oddities,
        vec![
            LegacyOddity::CrcMismatch { position: Position(40), stored, computed: stored ^ 0x0100_0000 },
            LegacyOddity::OffsetNotIncreasing { position: Position(80), previous: Offset(12), offset: Offset(12) },
            LegacyOddity::BytesAfterValue { position: Position(120), count: 2 },
        ]
    );
}

#[test]
fn a_wrapper_inside_a_wrapper_ends_the_reading_there() {
    let nested = snappy_wrapper(1, 0, 1, &inner(1, &[0, 1]).concat());
    let content = [inner(1, &[0]).concat(), nested].concat();
    let bytes = snappy_wrapper(1, 0, 8, &content);
    let kind =
        FormatErrorKind::Mismatch { shape: Shape::InnerMessage, field: "compression type", expected: 0, found: 2 };
    assert_eq!(read(&bytes), Err(FormatError::new(Position(40), kind.clone())));
    let mut decompressor = Decompressor::new();
    let set = Wrapper::of(&message(&bytes)).unwrap().unwrap().decode(&mut decompressor, LIMIT).unwrap();
    let outcomes: Vec<_> = set.records().map(|record| record.map(|r| r.offset.0).map_err(|e| e.kind)).collect();
    assert_eq!(outcomes, vec![Ok(7), Err(kind)]);
    assert_eq!(set.facts().last_offset, Offset(8));
}

#[test]
fn wrappers_that_kafka_does_not_open_are_refused() {
    let of = |bytes: &[u8]| Wrapper::of(&message(bytes)).map(|w| w.map(|w| w.codec())).map_err(|e| e.kind);
    let unknown = |field, found| Err(FormatErrorKind::UnknownValue { shape: Shape::LegacyMessage, field, found });
    assert_eq!(of(&encode(1, 4, 9, T, None, Some(b"x"))), unknown("compression type", 4));
    assert_eq!(of(&encode(0, 5, 9, T, None, Some(b"x"))), unknown("compression type", 5));
    assert_eq!(of(&encode(3, 2, 9, T, None, Some(b"x"))), unknown("magic", 3));
    let null = FormatErrorKind::LengthOutOfRange {
        shape: Shape::LegacyMessage,
        found: -1,
        least: 0,
        most: i64::from(i32::MAX),
    };
    assert_eq!(of(&encode(0, 2, 9, T, None, None)), Err(null));
    assert_eq!(of(&encode(0, 2, 9, T, None, Some(b"x"))), Ok(Some(Codec::Snappy)));
    let empty = read(&snappy_wrapper(1, 0, 9, &[])).unwrap_err();
    assert!(matches!(empty.kind, FormatErrorKind::LengthOutOfRange { shape: Shape::InnerMessage, found: 0, .. }));
    let mut small = inner(1, &[0]).concat();
    small[11] = 13;
    let small = read(&snappy_wrapper(1, 0, 9, &small)).unwrap_err();
    assert!(matches!(small.kind, FormatErrorKind::LengthOutOfRange { found: 13, least: 14, .. }));
}

#[test]
fn a_fault_of_the_codec_has_its_place_in_the_file() {
    let bytes = encode(1, 1, 9, T, None, Some(&hex("1f8b08")));
    let message = LegacyMessage::parse(&bytes, Position(1000), Shape::LegacyMessage).unwrap();
    let error = Wrapper::of(&message).unwrap().unwrap().decode(&mut Decompressor::new(), LIMIT).unwrap_err();
    assert_eq!(error.position, Position(1000 + 34 + 3));
}

#[test]
fn every_damaged_byte_of_a_wrapper_reads_the_same_whole_and_streamed() {
    for magic in [0, 1] {
        let content = inner(magic, &[4, 5, 6]).concat();
        for at in 0..content.len() {
            for bit in 0..8 {
                let mut flipped = content.clone();
                flipped[at] ^= 1 << bit;
                let _ = read(&snappy_wrapper(magic, 0, 6, &flipped));
            }
            let _ = read(&snappy_wrapper(magic, 0, 6, &content[..at]));
        }
    }
}

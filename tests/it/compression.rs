//! Decompression: the published vectors, hand-made framings, limits, and damage.

use std::io::Write as _;

use segtool::format::compression::{
    Codec, CodecFault, CodecOddity, Decompressor, Lz4Checksum, StreamError, StreamPart, Unsupported,
};
use segtool::format::{FormatError, FormatErrorKind, Position};

pub(crate) const LIMIT: u64 = 4 * 1024 * 1024;

pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

pub(crate) type Outcome = Result<(Vec<u8>, Vec<CodecOddity>), FormatError>;

pub(crate) fn whole_within(codec: Codec, lz4: Lz4Checksum, input: &[u8], limit: u64) -> Outcome {
    let mut decompressor = Decompressor::new();
    let done = decompressor.decompress(codec, lz4, input, limit)?;
    Ok((done.bytes.to_vec(), done.oddities.to_vec()))
}

/// Gives out at most three bytes at a time, so that every unit of a format is met half-read.
struct Trickle<'a>(&'a [u8]);

impl std::io::Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = buffer.len().min(3).min(self.0.len());
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

pub(crate) fn streamed_within(codec: Codec, lz4: Lz4Checksum, input: &[u8], limit: u64) -> Outcome {
    let mut decompressor = Decompressor::new();
    let mut stream = decompressor.stream(codec, lz4, Trickle(input), limit);
    let mut bytes = Vec::new();
    loop {
        match stream.next_piece() {
            Ok(Some(piece)) => bytes.extend_from_slice(piece),
            Ok(None) => return Ok((bytes, stream.oddities().to_vec())),
            Err(StreamError::Format(error)) => return Err(error),
            Err(StreamError::Io(error)) => panic!("{error}"),
        }
    }
}

/// What both ways of reading say, which must be the same.
pub(crate) fn read_with(codec: Codec, lz4: Lz4Checksum, input: &[u8]) -> Outcome {
    let whole = whole_within(codec, lz4, input, LIMIT);
    assert_eq!(streamed_within(codec, lz4, input, LIMIT), whole, "streamed and whole differ for {codec}");
    whole
}

pub(crate) fn read(codec: Codec, input: &[u8]) -> Outcome {
    read_with(codec, Lz4Checksum::Verified, input)
}

fn content(codec: Codec, input: &[u8]) -> Vec<u8> {
    read(codec, input).unwrap().0
}

fn fault(codec: Codec, input: &[u8]) -> (u64, CodecFault) {
    match read(codec, input) {
        Err(FormatError { position, kind: FormatErrorKind::Decompression { codec: named, fault } }) => {
            assert_eq!(named, codec);
            (position.0, fault)
        }
        other => panic!("expected a fault of {codec}, got {other:?}"),
    }
}

pub(crate) fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn raw_snappy(data: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(data).unwrap()
}

pub(crate) fn xerial(data: &[u8], block_size: usize) -> Vec<u8> {
    let mut out = hex("82534e4150505900 00000001 00000001");
    for block in data.chunks(block_size) {
        let block = raw_snappy(block);
        out.extend_from_slice(&u32::try_from(block.len()).unwrap().to_be_bytes());
        out.extend_from_slice(&block);
    }
    out
}

pub(crate) fn zstd_frame(data: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(data, 3).unwrap()
}

/// A frame of stored blocks with the parts that `flags` asks for.
pub(crate) fn lz4_frame(flags: u8, blocks: &[&[u8]]) -> Vec<u8> {
    let mut out = hex("04224d18");
    out.extend_from_slice(&[flags, 0x40]);
    let content: Vec<u8> = blocks.concat();
    if flags & 0x08 != 0 {
        out.extend_from_slice(&(content.len() as u64).swap_bytes().to_be_bytes());
    }
    out.push(second_byte(xxh32(&out[4..])));
    for block in blocks {
        out.extend_from_slice(&(u32::try_from(block.len()).unwrap() | 0x8000_0000).swap_bytes().to_be_bytes());
        out.extend_from_slice(block);
        if flags & 0x10 != 0 {
            out.extend_from_slice(&xxh32(block).swap_bytes().to_be_bytes());
        }
    }
    out.extend_from_slice(&[0; 4]);
    if flags & 0x04 != 0 {
        out.extend_from_slice(&xxh32(&content).swap_bytes().to_be_bytes());
    }
    out
}

fn second_byte(hash: u32) -> u8 {
    hash.to_be_bytes()[2]
}

fn xxh32(data: &[u8]) -> u32 {
    twox_hash::XxHash32::oneshot(0, data)
}

pub(crate) fn words(count: usize) -> Vec<u8> {
    const WORDS: [&str; 5] = ["alpha ", "beta ", "gamma ", "delta ", "omega "];
    (0..count).flat_map(|i| WORDS[(i * i + i / 7) % 5].bytes()).collect()
}

#[test]
fn snappy_of_both_framings_gives_the_inner_messages_of_the_published_wrapper() {
    let inner = hex("0000000000000000 00000018 0fdd3408 0100 0000018bcfe56801 00000001700000000171
         0000000000000001 00000017 c2ff3ee1 0100 0000018bcfe56802 ffffffff0000000172");
    let block = [hex("47f046"), inner.clone()].concat();
    let framed = [hex("82534e4150505900 0000000100000001 0000004a"), block.clone()].concat();
    assert_eq!(read(Codec::Snappy, &framed), Ok((inner.clone(), vec![])));
    assert_eq!(read(Codec::Snappy, &block), Ok((inner, vec![CodecOddity::SnappyWithoutHeader])));
}

#[test]
fn the_old_lz4_header_checksum_is_read_in_magic_0_only() {
    let rest = "05000080 68656c6c6f 00000000";
    let old = hex(&format!("04224d18 60 40 1a {rest}"));
    let right = hex(&format!("04224d18 60 40 82 {rest}"));
    let wrong = hex(&format!("04224d18 60 40 55 {rest}"));
    let magic_0 = |input: &[u8]| read_with(Codec::Lz4, Lz4Checksum::IgnoredInMagic0, input);
    assert_eq!(
        magic_0(&old),
        Ok((b"hello".to_vec(), vec![CodecOddity::OldLz4HeaderChecksum { stored: 0x1a, computed: 0x82 }]))
    );
    assert_eq!(
        magic_0(&wrong),
        Ok((b"hello".to_vec(), vec![CodecOddity::WrongLz4HeaderChecksum { stored: 0x55, computed: 0x82 }]))
    );
    assert_eq!(magic_0(&right), Ok((b"hello".to_vec(), vec![])));
    assert_eq!(content(Codec::Lz4, &right), b"hello");
    assert_eq!(fault(Codec::Lz4, &old), (6, CodecFault::OldHeaderChecksum { stored: 0x1a, computed: 0x82 }));
    assert_eq!(
        fault(Codec::Lz4, &wrong),
        (6, CodecFault::ChecksumMismatch { part: StreamPart::Header, stored: 0x55, computed: 0x82 })
    );
}

#[test]
fn zstd_frames_join_and_need_no_content_size() {
    let frames = hex("28b52ffd 00 58 490000 1000000001047a7a00 28b52ffd 00 58 490000 100002020104797900");
    assert_eq!(content(Codec::Zstd, &frames), hex("1000000001047a7a00 100002020104797900"));
}

#[test]
fn every_unit_of_a_sound_stream_may_come_in_pieces() {
    let text = words(2000);
    for (codec, stream) in [
        (Codec::Gzip, gzip(&text)),
        (Codec::Snappy, xerial(&text, 700)),
        (Codec::Snappy, raw_snappy(&text)),
        (Codec::Lz4, lz4_frame(0x7c, &[&text[..5000], &text[5000..]])),
        (Codec::Zstd, zstd_frame(&text)),
        (Codec::None, text.clone()),
    ] {
        assert_eq!(content(codec, &stream), text, "{codec}");
    }
}

#[test]
fn empty_input_is_an_error_except_for_zstd_which_reads_no_frames() {
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4] {
        assert_eq!(fault(codec, &[]), (0, CodecFault::Empty));
    }
    assert_eq!(read(Codec::Zstd, &[]), Ok((vec![], vec![])));
    assert_eq!(read(Codec::None, &[]), Ok((vec![], vec![])));
}

// gzip

#[test]
fn gzip_members_join_wherever_they_are_cut() {
    let text = words(40);
    let joined = [gzip(&text[..33]), gzip(&[]), gzip(&text[33..])].concat();
    assert_eq!(read(Codec::Gzip, &joined), Ok((text, vec![])));
}

#[test]
fn bytes_after_a_gzip_member_are_ignored_unless_they_begin_another() {
    let member = gzip(b"records");
    let end = member.len() as u64;
    let ignored = |count| vec![CodecOddity::BytesIgnored { position: Position(end), count }];
    let with = |tail: &[u8]| read(Codec::Gzip, &[&member, tail].concat());
    assert_eq!(with(&hex("deadbeef")), Ok((b"records".to_vec(), ignored(4))));
    assert_eq!(with(&[0; 300]), Ok((b"records".to_vec(), ignored(300))));
    // Up to 18 bytes are not even looked at, so that the start of a member there is no member.
    let next = gzip(b"more");
    assert_eq!(with(&next[..18]), Ok((b"records".to_vec(), ignored(18))));
    let cut = [&member[..], &next[..19]].concat();
    assert_eq!(fault(Codec::Gzip, &cut), (end + 16, CodecFault::CutOff(StreamPart::Trailer)));
    // A header that does not hold is ignored like anything else.
    let mut broken = next.clone();
    broken[2] = 7;
    assert_eq!(with(&broken), Ok((b"records".to_vec(), ignored(broken.len() as u64))));
}

#[test]
fn a_full_gzip_header_is_passed_and_its_checksum_checked() {
    let header = hex("1f8b 08 1e 00000000 00 03 0300 aabbcc 6e616d6500 636f6d6d656e7400");
    let body = &gzip(b"records")[10..];
    let sum = crc32fast::hash(&header).swap_bytes().to_be_bytes();
    let good = [&header, &sum[..2], body].concat();
    assert_eq!(content(Codec::Gzip, &good), b"records");
    let bad = [&header[..], &[sum[0] ^ 1, sum[1]], body].concat();
    let (stored, computed) =
        (u32::from(sum[0] ^ 1) | u32::from(sum[1]) << 8, u32::from(sum[0]) | u32::from(sum[1]) << 8);
    assert_eq!(
        fault(Codec::Gzip, &bad),
        (header.len() as u64, CodecFault::ChecksumMismatch { part: StreamPart::Header, stored, computed })
    );
}

#[test]
fn gzip_magic_method_trailer_and_length_are_checked() {
    let good = gzip(b"records");
    let len = good.len();
    let changed = |at: usize, to: u8| {
        let mut bytes = good.clone();
        bytes[at] = to;
        bytes
    };
    assert_eq!(fault(Codec::Gzip, &changed(0, 0x1e)), (0, CodecFault::WrongMagic(StreamPart::Header)));
    assert_eq!(fault(Codec::Gzip, &changed(2, 7)), (2, Unsupported::Method(7).into()));
    let stored = u32::from_be_bytes(good[len - 8..len - 4].try_into().unwrap()).swap_bytes();
    let (at, wrong) = (len - 8, good[len - 8] ^ 0xff);
    assert_eq!(
        fault(Codec::Gzip, &changed(at, wrong)),
        (
            at as u64,
            CodecFault::ChecksumMismatch { part: StreamPart::Trailer, stored: stored ^ 0xff, computed: stored }
        )
    );
    assert_eq!(
        fault(Codec::Gzip, &changed(len - 4, 8)),
        (len as u64 - 4, CodecFault::SizeMismatch { stored: 8, computed: 7 })
    );
    assert_eq!(fault(Codec::Gzip, &good[..len - 8]), (len as u64 - 8, CodecFault::CutOff(StreamPart::Trailer)));
    assert_eq!(fault(Codec::Gzip, &good[..len - 9]).1, CodecFault::CutOff(StreamPart::Block));
    assert_eq!(fault(Codec::Gzip, &good[..9]).1, CodecFault::CutOff(StreamPart::Header));
}

// snappy

#[test]
fn xerial_streams_have_any_block_size_and_may_be_joined() {
    let text = words(40);
    assert_eq!(read(Codec::Snappy, &xerial(&text, 40)), Ok((text.clone(), vec![])));
    let joined = [xerial(&text[..50], 40), xerial(&text[50..], 4000)].concat();
    assert_eq!(read(Codec::Snappy, &joined), Ok((text, vec![])));
    assert_eq!(read(Codec::Snappy, &xerial(&[], 1)), Ok((vec![], vec![])));
}

#[test]
fn xerial_versions_are_named_in_the_first_header_and_checked_in_the_next() {
    let mut stream = xerial(b"records", 40);
    stream[8..16].copy_from_slice(&hex("01000000 01000000"));
    let little = |position| CodecOddity::SnappyVersion {
        position: Position(position),
        version: 0x0100_0000,
        compatible_version: 0x0100_0000,
    };
    assert_eq!(read(Codec::Snappy, &stream), Ok((b"records".to_vec(), vec![little(0)])));
    let first = xerial(b"first ", 40);
    let at = first.len() as u64;
    assert_eq!(
        read(Codec::Snappy, &[first.clone(), stream].concat()),
        Ok((b"first records".to_vec(), vec![little(at)]))
    );
    let mut zero = xerial(b"records", 40);
    zero[8..12].copy_from_slice(&[0; 4]);
    assert_eq!(read(Codec::Snappy, &zero).map(|r| r.0), Ok(b"records".to_vec()));
    assert_eq!(fault(Codec::Snappy, &[first, zero].concat()), (at + 8, Unsupported::Version(0).into()));
}

#[test]
fn up_to_three_bytes_after_a_xerial_stream_are_ignored() {
    let stream = xerial(b"records", 40);
    let position = Position(stream.len() as u64);
    for count in 1..4u64 {
        let with = [&stream[..], &[0xff; 3][..usize::try_from(count).unwrap()]].concat();
        let oddities = vec![CodecOddity::BytesIgnored { position, count }];
        assert_eq!(read(Codec::Snappy, &with), Ok((b"records".to_vec(), oddities)));
    }
}

#[test]
fn xerial_block_lengths_must_be_possible_and_blocks_whole() {
    let stream = xerial(b"records", 40);
    let end = stream.len() as u64;
    let with = |tail: &str| fault(Codec::Snappy, &[stream.clone(), hex(tail)].concat());
    let length = |found| CodecFault::BlockLength { found, most: 512 * 1024 * 1024 };
    assert_eq!(with("00000000"), (end, length(0)));
    assert_eq!(with("ffffffff"), (end, length(-1)));
    assert_eq!(with("20000001"), (end, length(0x2000_0001)));
    assert_eq!(with("00000005 0000"), (end + 4, CodecFault::CutOff(StreamPart::Block)));
    assert_eq!(with("82534e41 5050").1, CodecFault::CutOff(StreamPart::Header));
    let cut = xerial(&words(40), 4000);
    assert_eq!(fault(Codec::Snappy, &cut[..cut.len() - 6]), (20, CodecFault::CutOff(StreamPart::Block)));
}

#[test]
fn a_wrong_repeated_xerial_header_is_passed_over() {
    let mut second = xerial(b"second", 40);
    second[7] = 1;
    let first = xerial(b"first ", 40);
    let position = Position(first.len() as u64);
    assert_eq!(
        read(Codec::Snappy, &[first, second].concat()),
        Ok((b"first second".to_vec(), vec![CodecOddity::WrongSnappyHeader { position }]))
    );
}

#[test]
fn a_snappy_block_cannot_promise_more_than_its_bytes_hold() {
    // 4 GiB - 1 in six bytes: refused without a byte of memory for it.
    let liar = hex("ffffffff0f 00");
    let reason = "declares more than its bytes can hold";
    assert_eq!(fault(Codec::Snappy, &liar), (0, CodecFault::Corrupt { part: StreamPart::Block, reason }));
}

// lz4

#[test]
fn lz4_options_that_kafka_reads_past_are_read_and_verified() {
    let text = words(40);
    let blocks: [&[u8]; 2] = [&text[..50], &text[50..]];
    for flags in [0x60, 0x64, 0x68, 0x6c, 0x70, 0x74, 0x78, 0x7c] {
        assert_eq!(read(Codec::Lz4, &lz4_frame(flags, &blocks)), Ok((text.clone(), vec![])), "{flags:x}");
    }
    let mut wrong_sum = lz4_frame(0x64, &blocks);
    let at = wrong_sum.len() - 4;
    wrong_sum[at] ^= 1;
    let computed = xxh32(&text);
    let stored = u32::from_be_bytes(wrong_sum[at..].try_into().unwrap()).swap_bytes();
    let oddity = CodecOddity::WrongLz4ContentChecksum { position: Position(at as u64), stored, computed };
    assert_eq!(read(Codec::Lz4, &wrong_sum), Ok((text.clone(), vec![oddity])));

    let mut wrong_size = lz4_frame(0x68, &blocks);
    wrong_size[6] += 7;
    wrong_size[14] = second_byte(xxh32(&wrong_size[4..14]));
    let (stored, computed) = (text.len() as u64 + 7, text.len() as u64);
    let oddity = CodecOddity::WrongLz4ContentSize { stored, computed };
    assert_eq!(read(Codec::Lz4, &wrong_size), Ok((text, vec![oddity])));
}

#[test]
fn only_the_first_lz4_frame_counts() {
    let first = lz4_frame(0x60, &[b"first"]);
    let position = Position(first.len() as u64);
    let stray = [first.clone(), hex("0102030405")].concat();
    assert_eq!(
        read(Codec::Lz4, &stray),
        Ok((b"first".to_vec(), vec![CodecOddity::BytesIgnored { position, count: 5 }]))
    );
    let second = lz4_frame(0x60, &[b"second"]);
    let count = second.len() as u64;
    assert_eq!(
        read(Codec::Lz4, &[first, second].concat()),
        Ok((b"first".to_vec(), vec![CodecOddity::FrameIgnored { position, count }]))
    );
}

#[test]
fn lz4_frames_that_kafka_refuses_are_refused_with_the_reason() {
    let with = |flags: u8, descriptor: u8| {
        let mut frame = hex("04224d18");
        frame.extend_from_slice(&[flags, descriptor]);
        frame.push(second_byte(xxh32(&[flags, descriptor])));
        frame.extend_from_slice(&[0; 4]);
        fault(Codec::Lz4, &frame)
    };
    assert_eq!(with(0x40, 0x40), (4, Unsupported::DependentBlocks.into()));
    assert_eq!(with(0x61, 0x40), (4, Unsupported::Dictionary.into()));
    assert_eq!(with(0x62, 0x40), (4, Unsupported::ReservedBits(2).into()));
    assert_eq!(with(0xa0, 0x40), (4, Unsupported::Version(2).into()));
    assert_eq!(with(0x60, 0x30), (5, Unsupported::BlockSizeCode(3).into()));
    assert_eq!(with(0x60, 0xc0), (5, Unsupported::ReservedBits(0x80).into()));
    assert_eq!(with(0x60, 0x41), (5, Unsupported::ReservedBits(1).into()));
    assert_eq!(fault(Codec::Lz4, &hex("184d2204 6040 82")), (0, CodecFault::WrongMagic(StreamPart::Header)));
}

#[test]
fn lz4_frames_must_be_whole_to_the_end_mark_and_content_checksum() {
    let frame = lz4_frame(0x74, &[b"records"]);
    let len = frame.len();
    let at = |cut: usize| fault(Codec::Lz4, &frame[..cut]);
    assert_eq!(at(len - 1), (len as u64 - 4, CodecFault::CutOff(StreamPart::Trailer)));
    assert_eq!(at(len - 5), (len as u64 - 8, CodecFault::CutOff(StreamPart::EndMark)));
    assert_eq!(at(len - 8), (len as u64 - 8, CodecFault::CutOff(StreamPart::EndMark)));
    assert_eq!(at(15).1, CodecFault::CutOff(StreamPart::Block));
    let mut flipped = frame.clone();
    flipped[12] ^= 0x20;
    assert!(matches!(fault(Codec::Lz4, &flipped), (18, CodecFault::ChecksumMismatch { part: StreamPart::Block, .. })));
    let mut long = frame;
    long[7..11].copy_from_slice(&0x8001_0001u32.swap_bytes().to_be_bytes());
    assert_eq!(fault(Codec::Lz4, &long), (7, CodecFault::BlockLength { found: 0x1_0001, most: 0x1_0000 }));
}

// zstd

#[test]
fn zstd_frames_skippable_frames_and_checksums_are_read() {
    let text = words(40);
    let skippable = hex("502a4d18 04000000 01020304");
    let joined = [&skippable[..], &zstd_frame(&text[..33]), &skippable, &zstd_frame(&text[33..])].concat();
    assert_eq!(read(Codec::Zstd, &joined), Ok((text.clone(), vec![])));
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(&text).unwrap();
    let mut frame = encoder.finish().unwrap();
    assert_eq!(content(Codec::Zstd, &frame), text);
    *frame.last_mut().unwrap() ^= 1;
    let reason = "Restored data doesn't match checksum";
    assert_eq!(fault(Codec::Zstd, &frame), (0, CodecFault::Corrupt { part: StreamPart::Frame, reason }));
}

#[test]
fn zstd_windows_above_128_mib_and_dictionaries_are_refused() {
    let frame = |window: &str| hex(&format!("28b52ffd 00 {window} 490000 1000000001047a7a00"));
    for sound in ["58", "70", "88"] {
        assert_eq!(content(Codec::Zstd, &frame(sound)), hex("1000000001047a7a00"));
    }
    // 128 MiB and an eighth; 256 MiB.
    for large in ["89", "90"] {
        assert_eq!(fault(Codec::Zstd, &frame(large)), (0, Unsupported::Window.into()));
    }
    let dictionary = hex("28b52ffd 01 58 07 490000 1000000001047a7a00");
    assert_eq!(fault(Codec::Zstd, &dictionary), (0, Unsupported::Dictionary.into()));
}

#[test]
fn zstd_allows_nothing_after_a_frame_but_the_start_of_another() {
    let frame = zstd_frame(b"records");
    let end = frame.len() as u64;
    let with = |tail: &[u8]| [&frame[..], tail].concat();
    let magic = CodecFault::WrongMagic(StreamPart::Frame);
    assert_eq!(fault(Codec::Zstd, &with(&[1, 2, 3, 4, 5])), (end, magic));
    assert_eq!(fault(Codec::Zstd, &with(&[1, 2, 3])), (end, magic));
    assert_eq!(fault(Codec::Zstd, &frame[..frame.len() - 1]).1, CodecFault::CutOff(StreamPart::Frame));
    // The reader forgets that the later frame is unfinished, unless it had to fetch more input in between.
    let oddity = CodecOddity::CutFrame { position: Position(end), count: 6 };
    assert_eq!(read(Codec::Zstd, &with(&frame[..6])), Ok((b"records".to_vec(), vec![oddity])));
    let noise: Vec<u8> = (0..40_000u32).flat_map(|i| xxh32(&i.swap_bytes().to_be_bytes()).to_be_bytes()).collect();
    let large = zstd_frame(&noise);
    assert_eq!(fault(Codec::Zstd, &with(&large[..large.len() - 1])).1, CodecFault::CutOff(StreamPart::Frame));
}

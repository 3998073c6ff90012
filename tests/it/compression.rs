//! Decompression: the published vectors, hand-made framings, limits, and damage.

use std::io::Write as _;

use proptest::prelude::*;
use segtool::format::compression::{
    Codec, CodecFault, CodecOddity, Decompressor, Lz4Checksum, StreamError, StreamPart, Unsupported,
};
use segtool::format::{FormatError, FormatErrorKind, Position};

const LIMIT: u64 = 4 * 1024 * 1024;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

type Outcome = Result<(Vec<u8>, Vec<CodecOddity>), FormatError>;

fn whole_within(codec: Codec, lz4: Lz4Checksum, input: &[u8], limit: u64) -> Outcome {
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

fn streamed_within(codec: Codec, lz4: Lz4Checksum, input: &[u8], limit: u64) -> Outcome {
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
fn read_with(codec: Codec, lz4: Lz4Checksum, input: &[u8]) -> Outcome {
    let whole = whole_within(codec, lz4, input, LIMIT);
    assert_eq!(streamed_within(codec, lz4, input, LIMIT), whole, "streamed and whole differ for {codec}");
    whole
}

fn read(codec: Codec, input: &[u8]) -> Outcome {
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

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn raw_snappy(data: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(data).unwrap()
}

fn xerial(data: &[u8], block_size: usize) -> Vec<u8> {
    let mut out = hex("82534e4150505900 00000001 00000001");
    for block in data.chunks(block_size) {
        let block = raw_snappy(block);
        out.extend_from_slice(&u32::try_from(block.len()).unwrap().to_be_bytes());
        out.extend_from_slice(&block);
    }
    out
}

fn zstd_frame(data: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(data, 3).unwrap()
}

/// A frame of stored blocks with the parts that `flags` asks for.
fn lz4_frame(flags: u8, blocks: &[&[u8]]) -> Vec<u8> {
    let mut out = hex("04224d18");
    out.extend_from_slice(&[flags, 0x40]);
    let content: Vec<u8> = blocks.concat();
    if flags & 0x08 != 0 {
        out.extend_from_slice(&(content.len() as u64).to_le_bytes());
    }
    out.push((xxh32(&out[4..]) >> 8) as u8);
    for block in blocks {
        out.extend_from_slice(&(u32::try_from(block.len()).unwrap() | 0x8000_0000).to_le_bytes());
        out.extend_from_slice(block);
        if flags & 0x10 != 0 {
            out.extend_from_slice(&xxh32(block).to_le_bytes());
        }
    }
    out.extend_from_slice(&[0; 4]);
    if flags & 0x04 != 0 {
        out.extend_from_slice(&xxh32(&content).to_le_bytes());
    }
    out
}

fn xxh32(data: &[u8]) -> u32 {
    twox_hash::XxHash32::oneshot(0, data)
}

fn words(count: usize) -> Vec<u8> {
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

//! Decompression: limits, bombs, reuse and damage.

use std::io::Write as _;

use proptest::prelude::*;
use segtool::format::compression::{Codec, Decompressor, Lz4Checksum, StreamError};
use segtool::format::{FormatError, FormatErrorKind, Position};

use crate::compression::{
    LIMIT, gzip, hex, lz4_frame, raw_snappy, read, read_with, streamed_within, whole_within, words, xerial, zstd_frame,
};

#[test]
fn the_limit_is_the_most_that_comes_out_whatever_the_codec() {
    let text = words(3000);
    let size = text.len() as u64;
    for (codec, stream) in [
        (Codec::Gzip, gzip(&text)),
        (Codec::Snappy, xerial(&text, 700)),
        (Codec::Snappy, raw_snappy(&text)),
        (Codec::Lz4, lz4_frame(0x60, &[&text])),
        (Codec::Zstd, zstd_frame(&text)),
    ] {
        for reader in [whole_within, streamed_within] {
            let at_limit = reader(codec, Lz4Checksum::Verified, &stream, size);
            assert_eq!(at_limit.map(|read| read.0), Ok(text.clone()), "{codec}");
            for limit in [size - 1, size / 2, 0] {
                let beyond = reader(codec, Lz4Checksum::Verified, &stream, limit);
                assert_eq!(beyond.map_err(|e| e.kind), Err(FormatErrorKind::LimitReached { limit }), "{codec}");
            }
        }
    }
}

/// Zeros of this many MiB in little space.
fn bomb(codec: Codec, mebibytes: usize) -> Vec<u8> {
    let block = vec![0u8; 1 << 20];
    match codec {
        Codec::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            (0..mebibytes).for_each(|_| encoder.write_all(&block).unwrap());
            encoder.finish().unwrap()
        }
        Codec::Zstd => {
            let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
            (0..mebibytes).for_each(|_| encoder.write_all(&block).unwrap());
            encoder.finish().unwrap()
        }
        Codec::Lz4 => {
            let compressed = lz4_flex::block::compress(&block);
            let mut out = hex("04224d18 60 60 51");
            for _ in 0..mebibytes {
                out.extend_from_slice(&u32::try_from(compressed.len()).unwrap().swap_bytes().to_be_bytes());
                out.extend_from_slice(&compressed);
            }
            out.extend_from_slice(&[0; 4]);
            out
        }
        _ => xerial(&vec![0u8; mebibytes << 20], 1 << 20),
    }
}

#[test]
fn bombs_stop_at_the_limit_and_stream_in_constant_memory() {
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let bomb = bomb(codec, 48);
        let mut decompressor = Decompressor::new();
        let error = decompressor.decompress(codec, Lz4Checksum::Verified, &bomb, LIMIT).unwrap_err();
        assert_eq!(error.kind, FormatErrorKind::LimitReached { limit: LIMIT }, "{codec}");
        assert!(decompressor.partial_output().len() as u64 <= LIMIT + 1);
        let mut decompressor = Decompressor::new();
        let mut stream = decompressor.stream(codec, Lz4Checksum::Verified, &bomb[..], 48 << 20);
        let (mut total, mut longest) = (0, 0);
        while let Some(piece) = stream.next_piece().unwrap() {
            assert!(piece.iter().all(|&byte| byte == 0));
            total += piece.len();
            longest = longest.max(piece.len());
        }
        assert_eq!(total, 48 << 20, "{codec}");
        assert!(longest <= (1 << 20) + (128 << 10), "{codec} gave {longest} bytes at once");
    }
}

#[test]
fn a_stream_that_fails_gives_what_came_before_and_then_ends() {
    let text = words(20_000);
    let mut stream = gzip(&text);
    let at = stream.len() - 8;
    stream[at] ^= 1;
    let mut decompressor = Decompressor::new();
    let mut reader = decompressor.stream(Codec::Gzip, Lz4Checksum::Verified, &stream[..], LIMIT);
    let mut seen = Vec::new();
    let error = loop {
        match reader.next_piece() {
            Ok(Some(piece)) => seen.extend_from_slice(piece),
            Ok(None) => panic!("the fault was lost"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StreamError::Format(FormatError { position, .. }) if position == Position(at as u64)));
    assert_eq!(seen, text);
    assert!(matches!(reader.next_piece(), Ok(None)));
}

#[test]
fn a_decompressor_forgets_everything_between_batches() {
    let text = words(300);
    let mut decompressor = Decompressor::new();
    let sound = [
        (Codec::Gzip, gzip(&text)),
        (Codec::Snappy, xerial(&text, 100)),
        (Codec::Lz4, lz4_frame(0x7c, &[&text])),
        (Codec::Zstd, zstd_frame(&text)),
    ];
    for (codec, stream) in &sound {
        for cut in [1, 5, stream.len() / 2, stream.len() - 1] {
            assert!(decompressor.decompress(*codec, Lz4Checksum::Verified, &stream[..cut], LIMIT).is_err());
            assert_eq!(
                decompressor.decompress(*codec, Lz4Checksum::Verified, stream, LIMIT).map(|d| d.bytes.to_vec()),
                Ok(text.clone())
            );
        }
    }
}

// Damage

#[test]
fn every_flip_cut_and_extension_of_a_small_stream_is_read_the_same_both_ways() {
    let text = words(12);
    for (codec, stream) in [
        (Codec::Gzip, gzip(&text)),
        (Codec::Snappy, xerial(&text, 40)),
        (Codec::Snappy, raw_snappy(&text)),
        (Codec::Lz4, lz4_frame(0x7c, &[&text])),
        (Codec::Lz4, lz4_frame(0x60, &[&text[..20], &text[20..]])),
        (Codec::Zstd, zstd_frame(&text)),
    ] {
        // `read` compares the two readers; neither may panic, and nothing may exceed the limit.
        for at in 0..stream.len() {
            for bit in 0..8 {
                let mut flipped = stream.clone();
                flipped[at] ^= 1 << bit;
                let _ = read(codec, &flipped);
            }
            let cut = read(codec, &stream[..at]);
            assert!(
                cut.is_err() || (codec == Codec::Zstd && at == 0) || is_xerial_boundary(&stream, at),
                "{codec} {at}"
            );
            for byte in [0, 0x82, 0xff] {
                let mut longer = stream.clone();
                longer.insert(at, byte);
                let _ = read(codec, &longer);
            }
        }
    }
}

/// Whether a xerial stream may end here without anybody noticing: after a block, and up to three bytes further.
fn is_xerial_boundary(stream: &[u8], cut: usize) -> bool {
    if !stream.starts_with(&[0x82, b'S']) {
        return false;
    }
    let mut at = 16;
    while at < stream.len() {
        if (at..at + 4).contains(&cut) {
            return true;
        }
        at += 4 + usize::try_from(u32::from_be_bytes(stream[at..at + 4].try_into().unwrap())).unwrap();
    }
    false
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bytes_are_read_the_same_both_ways(data in proptest::collection::vec(any::<u8>(), 0..300), head in 0usize..6) {
        let heads = ["", "1f8b0800000000000003", "82534e41505059000000000100000001", "04224d18604082", "28b52ffd0058", "28b52ffd20"];
        let input = [hex(heads[head]), data].concat();
        for codec in Codec::ALL {
            for lz4 in [Lz4Checksum::Verified, Lz4Checksum::IgnoredInMagic0] {
                let _ = read_with(codec, lz4, &input);
            }
        }
    }
}

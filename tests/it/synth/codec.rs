//! Compressed forms as clients write them, and stored forms whose bytes are known in advance.

use std::io::Write as _;

/// A codec of Kafka in one particular framing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Codec {
    /// As in the attributes.
    pub(crate) id: u8,
    pub(crate) compress: fn(&[u8]) -> Vec<u8>,
}

impl Codec {
    pub(crate) const NONE: Self = Self { id: 0, compress: <[u8]>::to_vec };
    pub(crate) const GZIP: Self = Self { id: 1, compress: gzip };
    /// As the Java client: snappy-java's stream with blocks of 32 KiB.
    pub(crate) const SNAPPY: Self = Self { id: 2, compress: |plain| xerial(plain, 32 << 10, snappy_block) };
    /// As librdkafka and the classic sarama: one block without framing.
    pub(crate) const SNAPPY_RAW: Self = Self { id: 2, compress: snappy_block };
    /// As the Java client: independent blocks of 64 KiB, no checksums, no sizes.
    pub(crate) const LZ4: Self = Self { id: 3, compress: |plain| lz4(plain, LZ4_CHECKSUM, lz4_block) };
    /// With the header checksum of message format v0, which covers the magic bytes too.
    pub(crate) const LZ4_V0: Self = Self { id: 3, compress: |plain| lz4(plain, LZ4_CHECKSUM_V0, lz4_block) };
    /// Without content size or checksum, as the Java client.
    pub(crate) const ZSTD: Self = Self { id: 4, compress: zstd };

    pub(crate) const SNAPPY_STORED: Self = Self { id: 2, compress: |plain| xerial(plain, 32 << 10, snappy_literal) };
    pub(crate) const SNAPPY_RAW_STORED: Self = Self { id: 2, compress: snappy_literal };
    pub(crate) const LZ4_STORED: Self = Self { id: 3, compress: |plain| lz4(plain, LZ4_CHECKSUM, lz4_stored) };
    pub(crate) const LZ4_V0_STORED: Self = Self { id: 3, compress: |plain| lz4(plain, LZ4_CHECKSUM_V0, lz4_stored) };
    pub(crate) const ZSTD_STORED: Self = Self { id: 4, compress: zstd_stored };

    /// One framing of every codec, as the Java client writes them.
    pub(crate) const ALL: [Self; 5] = [Self::NONE, Self::GZIP, Self::SNAPPY, Self::LZ4, Self::ZSTD];
}

/// Header checksum of an LZ4 frame with FLG 0x60 and BD 0x40.
const LZ4_CHECKSUM: u8 = 0x82;
/// The same over the frame's magic bytes as well.
const LZ4_CHECKSUM_V0: u8 = 0x1a;
const LZ4_BLOCK: usize = 64 << 10;

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn zstd(plain: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

/// One frame of one raw block: no content size, window 2 MiB.
fn zstd_stored(plain: &[u8]) -> Vec<u8> {
    let header = u32::try_from(plain.len()).unwrap() << 3 | 1;
    [&[0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58], &little_endian(header)[..3], plain].concat()
}

fn snappy_block(plain: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(plain).unwrap()
}

/// A snappy block of one literal (up to 256 bytes).
fn snappy_literal(plain: &[u8]) -> Vec<u8> {
    let mut block = super::Bytes::new().uvarint(plain.len() as u64).0;
    match plain.len() {
        0 => {}
        n @ 1..=60 => block.push(u8::try_from(n - 1).unwrap() << 2),
        n => block.extend([60 << 2, u8::try_from(n - 1).unwrap()]),
    }
    [block, plain.to_vec()].concat()
}

/// snappy-java's stream: magic, version, compatible version, then blocks with their lengths.
fn xerial(plain: &[u8], block_size: usize, block: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let header = super::Bytes::new().raw(b"\x82SNAPPY\0").i32(1).i32(1);
    plain.chunks(block_size).fold(header, |stream, chunk| stream.i32_bytes(Some(&block(chunk)))).0
}

fn lz4(plain: &[u8], checksum: u8, block: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut frame = vec![0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, checksum];
    plain.chunks(LZ4_BLOCK).for_each(|chunk| frame.extend(block(chunk)));
    frame.extend([0; 4]);
    frame
}

fn lz4_block(plain: &[u8]) -> Vec<u8> {
    let packed = lz4_flex::block::compress(plain);
    if packed.len() >= plain.len() {
        return lz4_stored(plain);
    }
    [&little_endian(u32::try_from(packed.len()).unwrap()), &packed[..]].concat()
}

fn lz4_stored(plain: &[u8]) -> Vec<u8> {
    [&little_endian(u32::try_from(plain.len()).unwrap() | 1 << 31), plain].concat()
}

#[allow(clippy::little_endian_bytes, reason = "LZ4 and zstd frames are little-endian")]
fn little_endian(value: u32) -> [u8; 4] {
    value.to_le_bytes()
}

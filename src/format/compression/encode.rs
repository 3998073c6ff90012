//! Compression as Kafka's Java clients and cleaner write it: the same framings and block sizes. The compressed bytes are those
//! of other libraries and may differ from Java's; what they hold does not.

use std::fmt;

use flate2::{Compress, Compression, FlushCompress, Status};
use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};
use twox_hash::XxHash32;
use zstd::zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, ResetDirective, compress_bound, get_error_name};

use super::{Codec, Lz4Checksum, lz4, snappy};

/// xerial's default block (`SnappyOutputStream.DEFAULT_BLOCK_SIZE`).
const SNAPPY_BLOCK: usize = 32 * 1024;
/// `Lz4BlockOutputStream.BLOCKSIZE_64KB`.
const LZ4_BLOCK: usize = 64 * 1024;
/// Version 1, independent blocks, no checksums, no content size; blocks of 64 KiB.
const LZ4_DESCRIPTOR: [u8; 2] = [0x60, 0x40];
/// Magic, deflate, no flags, no time, no extra flags, unknown system, as `GZIPOutputStream` writes it.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// `GzipCompression` and `ZstdCompression` take their libraries' defaults.
const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;
/// Cannot be while `ZSTD_compressBound` holds.
const OUTPUT_TOO_SMALL: &str = "output exceeds its bound";

/// How hard to try. Only gzip and zstd know levels here.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Level {
    /// The codec's default, as the cleaner uses.
    #[default]
    Default,
    /// gzip 0 to 9, zstd -131072 to 22; beyond is held at the ends.
    Of(i32),
}

/// A compressor library failed, which it does for want of memory only.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{codec} compressor: {reason}")]
pub struct EncodeError {
    /// The codec.
    pub codec: Codec,
    /// What the library says.
    pub reason: &'static str,
}

/// Compresses batch after batch; one for each thread. Contexts and the buffer are kept between calls.
#[derive(Default)]
pub struct Compressor {
    gzip: Option<(u32, Compress)>,
    snappy: Option<snap::raw::Encoder>,
    lz4: Option<CompressTable>,
    zstd: Option<CCtx<'static>>,
    output: Vec<u8>,
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor").field("output_len", &self.output.len()).finish_non_exhaustive()
    }
}

impl Compressor {
    /// A compressor that has allocated nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Compresses `content` as a whole. For magic 0 Kafka writes the LZ4 header checksum of its version 0.8 to this day
    /// ([`Lz4Checksum::IgnoredInMagic0`]).
    pub fn compress<'b>(
        &'b mut self,
        codec: Codec,
        lz4: Lz4Checksum,
        level: Level,
        content: &'b [u8],
    ) -> Result<&'b [u8], EncodeError> {
        self.output.clear();
        match codec {
            Codec::None => return Ok(content),
            Codec::Gzip => self.gzip(level, content),
            Codec::Snappy => self.snappy(content),
            Codec::Lz4 => self.lz4(lz4, content),
            Codec::Zstd => self.zstd(level, content),
        }
        .map_err(|reason| EncodeError { codec, reason })?;
        Ok(&self.output)
    }

    fn gzip(&mut self, level: Level, content: &[u8]) -> Result<(), &'static str> {
        let level = match level {
            Level::Default => GZIP_LEVEL,
            Level::Of(level) => u32::try_from(level).unwrap_or(0).min(9),
        };
        let output = &mut self.output;
        output.extend_from_slice(&GZIP_HEADER);
        let context = match &mut self.gzip {
            Some((made_for, context)) if *made_for == level => {
                context.reset();
                context
            }
            slot => &mut slot.insert((level, Compress::new(Compression::new(level), false))).1,
        };
        loop {
            let taken = usize::try_from(context.total_in()).unwrap_or(usize::MAX);
            let rest = content.get(taken..).unwrap_or_default();
            output.reserve(rest.len() / 2 + 1024);
            let status = context.compress_vec(rest, output, FlushCompress::Finish).map_err(|_| "deflate failed")?;
            if status == Status::StreamEnd {
                break;
            }
        }
        // Both are little-endian, the size modulo 2^32.
        output.extend_from_slice(&crc32fast::hash(content).swap_bytes().to_be_bytes());
        let size = (content.len() & 0xffff_ffff) as u64;
        output.extend_from_slice(&u32::try_from(size).unwrap_or(0).swap_bytes().to_be_bytes());
        Ok(())
    }

    fn snappy(&mut self, content: &[u8]) -> Result<(), &'static str> {
        let output = &mut self.output;
        let encoder = self.snappy.get_or_insert_with(snap::raw::Encoder::new);
        output.extend_from_slice(&snappy::MAGIC);
        output.extend_from_slice(&1i32.to_be_bytes());
        output.extend_from_slice(&1i32.to_be_bytes());
        for block in content.chunks(SNAPPY_BLOCK) {
            let length_at = output.len();
            let start = length_at + 4;
            output.resize(start + snap::raw::max_compress_len(block.len()), 0);
            let room = output.get_mut(start..).unwrap_or_default();
            let written = encoder.compress(block, room).map_err(|_| "block too large")?;
            output.truncate(start + written);
            let length = u32::try_from(written).map_err(|_| "block too large")?.to_be_bytes();
            if let Some(slot) = output.get_mut(length_at..start) {
                slot.copy_from_slice(&length);
            }
        }
        Ok(())
    }

    fn lz4(&mut self, checksum: Lz4Checksum, content: &[u8]) -> Result<(), &'static str> {
        let output = &mut self.output;
        let table = self.lz4.get_or_insert_with(CompressTable::large);
        output.extend_from_slice(&lz4::MAGIC);
        output.extend_from_slice(&LZ4_DESCRIPTOR);
        let hashed = match checksum {
            Lz4Checksum::Verified => XxHash32::oneshot(0, &LZ4_DESCRIPTOR),
            Lz4Checksum::IgnoredInMagic0 => XxHash32::oneshot(0, output),
        };
        output.push(lz4::second_byte(hashed));
        for block in content.chunks(LZ4_BLOCK) {
            let length_at = output.len();
            let start = length_at + 4;
            output.resize(start + get_maximum_output_size(block.len()), 0);
            let room = output.get_mut(start..).unwrap_or_default();
            let written = compress_into_with_table(block, room, table).map_err(|_| "block too large")?;
            output.truncate(start + written.min(block.len()));
            let mut length = u32::try_from(written).map_err(|_| "block too large")?;
            if written >= block.len() {
                // Not smaller: stored as it is.
                length = u32::try_from(block.len()).map_err(|_| "block too large")? | lz4::STORED;
                if let Some(slot) = output.get_mut(start..) {
                    slot.copy_from_slice(block);
                }
            }
            if let Some(slot) = output.get_mut(length_at..start) {
                slot.copy_from_slice(&length.swap_bytes().to_be_bytes());
            }
        }
        output.extend_from_slice(&[0; 4]);
        Ok(())
    }

    /// Without content size and checksum, as zstd-jni's stream writes.
    fn zstd(&mut self, level: Level, content: &[u8]) -> Result<(), &'static str> {
        let level = match level {
            Level::Default => ZSTD_LEVEL,
            Level::Of(level) => level,
        };
        let context = self.zstd.get_or_insert_with(CCtx::create);
        context.reset(ResetDirective::SessionOnly).map_err(get_error_name)?;
        for parameter in
            [CParameter::CompressionLevel(level), CParameter::ContentSizeFlag(false), CParameter::ChecksumFlag(false)]
        {
            context.set_parameter(parameter).map_err(get_error_name)?;
        }
        // Streamed, flushed and ended, as Java's buffered streams do at their close: told all at once, the library would choose
        // another window and save the empty last block, and no batch would have the bytes that a broker gives it.
        self.output.resize(compress_bound(content.len()).saturating_add(64), 0);
        let mut out = OutBuffer::around(self.output.as_mut_slice());
        let mut input = InBuffer::around(content);
        while input.pos() < content.len() {
            let before = (input.pos(), out.pos());
            context.compress_stream(&mut out, &mut input).map_err(get_error_name)?;
            if before == (input.pos(), out.pos()) {
                return Err(OUTPUT_TOO_SMALL);
            }
        }
        let unflushed = context.flush_stream(&mut out).map_err(get_error_name)?;
        let unended = context.end_stream(&mut out).map_err(get_error_name)?;
        if unflushed > 0 || unended > 0 {
            return Err(OUTPUT_TOO_SMALL);
        }
        let written = out.pos();
        self.output.truncate(written);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Decompressor;
    use super::*;
    use proptest::prelude::*;

    fn compressed(codec: Codec, lz4: Lz4Checksum, level: Level, content: &[u8]) -> Vec<u8> {
        Compressor::new().compress(codec, lz4, level, content).unwrap().to_vec()
    }

    #[test]
    fn framings_are_those_of_the_java_client() {
        let content = vec![7u8; 70_000];
        let java = |codec| compressed(codec, Lz4Checksum::Verified, Level::Default, &content);
        assert!(java(Codec::Gzip).starts_with(&GZIP_HEADER));
        assert!(java(Codec::Snappy).starts_with(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"));
        assert!(java(Codec::Lz4).starts_with(&[0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82]));
        let magic_0 = compressed(Codec::Lz4, Lz4Checksum::IgnoredInMagic0, Level::Default, &content);
        assert!(magic_0.starts_with(&[0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x1a]));
        // Neither content size nor checksum nor dictionary in the frame header's descriptor.
        let zstd = java(Codec::Zstd);
        assert!(zstd.starts_with(&[0x28, 0xb5, 0x2f, 0xfd, 0x00]), "{:x?}", &zstd[..8]);
    }

    #[test]
    fn an_incompressible_lz4_block_is_stored() {
        let content: Vec<u8> = (0..1000u32).flat_map(|i| XxHash32::oneshot(i, b"").to_be_bytes()).collect();
        let frame = compressed(Codec::Lz4, Lz4Checksum::Verified, Level::Default, &content);
        assert_eq!(frame.len(), 7 + 4 + content.len() + 4);
        assert_eq!(&frame[7..11], &[0xa0, 0x0f, 0x00, 0x80]);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_with_every_codec_and_level(
            pieces in proptest::collection::vec((any::<u8>(), 1usize..3000), 0..60),
            noise in proptest::collection::vec(any::<u8>(), 0..70_000),
            level in -7i32..12,
        ) {
            let mut content: Vec<u8> = pieces.iter().flat_map(|&(byte, len)| std::iter::repeat_n(byte, len)).collect();
            content.extend_from_slice(&noise);
            let mut compressor = Compressor::new();
            let mut decompressor = Decompressor::new();
            for codec in Codec::ALL {
                for lz4 in [Lz4Checksum::Verified, Lz4Checksum::IgnoredInMagic0] {
                    for level in [Level::Default, Level::Of(level)] {
                        let stream = compressor.compress(codec, lz4, level, &content).unwrap();
                        let done = decompressor.decompress(codec, lz4, stream, 1 << 20).unwrap();
                        prop_assert!(done.bytes == content, "{} differs", codec);
                    }
                }
            }
        }
    }
}

//! The LZ4 frame as Kafka's `Lz4BlockInputStream` reads it: one frame of independent blocks, and nothing after it.
//!
//! ```text
//! 04 22 4d 18 | FLG | BD | [content size 8] | HC | { length | block | [block checksum 4] }* | 0 | [content checksum 4]
//! ```
//!
//! HC is the second byte of the xxHash32 of FLG to content size. Kafka 0.8.2 to 0.9 hashed from the magic on.

use std::fmt;
use std::hash::Hasher as _;

use lz4_flex::block::{DecompressError, decompress_into};
use twox_hash::XxHash32;

use super::super::Position;
use super::output::Output;
use super::source::{Pause, Source, Step};
use super::{CodecFault, CodecOddity, Lz4Checksum, StreamPart, Unsupported};

pub(super) const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
const VERSION: u8 = 1;
const FLG_RESERVED: u8 = 0x02;
const FLG_DICTIONARY: u8 = 0x01;
const FLG_INDEPENDENT: u8 = 0x20;
const FLG_BLOCK_CHECKSUM: u8 = 0x10;
const FLG_CONTENT_SIZE: u8 = 0x08;
const FLG_CONTENT_CHECKSUM: u8 = 0x04;
/// A block length with this bit is that of a block stored as it is.
pub(super) const STORED: u32 = 0x8000_0000;
/// A byte of an LZ4 block cannot stand for more than 255 bytes.
const DENSEST: usize = 255;

/// What the frame's header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Frame {
    flags: u8,
    most_block: usize,
    content_size: Option<u64>,
}

impl Frame {
    fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The place in one frame.
pub(super) struct Lz4Decoder {
    checksum: Lz4Checksum,
    frame: Option<Frame>,
    content: XxHash32,
}

impl fmt::Debug for Lz4Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lz4Decoder").field("frame", &self.frame).finish_non_exhaustive()
    }
}

impl Default for Lz4Decoder {
    fn default() -> Self {
        Self { checksum: Lz4Checksum::Verified, frame: None, content: XxHash32::with_seed(0) }
    }
}

impl Lz4Decoder {
    pub(super) fn start(&mut self, checksum: Lz4Checksum) {
        self.checksum = checksum;
        self.frame = None;
        self.content = XxHash32::with_seed(0);
    }

    pub(super) fn step(
        &mut self,
        source: &mut Source<'_>,
        output: &mut Output,
        oddities: &mut Vec<CodecOddity>,
    ) -> Result<Step, Pause> {
        match self.frame {
            None => {
                self.frame = Some(read_header(source, self.checksum, oddities)?);
                Ok(Step::Continue)
            }
            Some(frame) => self.next_block(frame, source, output, oddities),
        }
    }

    fn next_block(
        &mut self,
        frame: Frame,
        source: &mut Source<'_>,
        output: &mut Output,
        oddities: &mut Vec<CodecOddity>,
    ) -> Result<Step, Pause> {
        let start = source.position();
        source.demand(4, StreamPart::EndMark)?;
        let word = source.u32_le(StreamPart::Block)?;
        let length = word & !STORED;
        // Kafka masks the bit before it looks for the end mark.
        if length == 0 {
            return self.end(frame, source, output, oddities);
        }
        let len = usize::try_from(length).unwrap_or(usize::MAX);
        if len > frame.most_block {
            let most = i64::try_from(frame.most_block).unwrap_or(i64::MAX);
            return Err(source.fault_at(start, CodecFault::BlockLength { found: i64::from(length), most }));
        }
        let block_position = source.position();
        let block = source.bytes(len, StreamPart::Block)?;
        if frame.has(FLG_BLOCK_CHECKSUM) {
            let checksum_position = source.position();
            let stored = source.u32_le(StreamPart::Block)?;
            let computed = XxHash32::oneshot(0, block);
            if stored != computed {
                let fault = CodecFault::ChecksumMismatch { part: StreamPart::Block, stored, computed };
                return Err(source.fault_at(checksum_position, fault));
            }
        }
        if word & STORED != 0 {
            let room = output.room(len);
            let fitting = block.get(..room.len()).unwrap_or(block);
            room.copy_from_slice(fitting);
            self.take(frame, fitting.len(), output, block_position)?;
        } else {
            self.decode(frame, block, block_position, source, output)?;
        }
        Ok(Step::Continue)
    }

    fn decode(
        &mut self,
        frame: Frame,
        block: &[u8],
        position: Position,
        source: &Source<'_>,
        output: &mut Output,
    ) -> Result<(), Pause> {
        let wanted = frame.most_block.min(block.len().saturating_mul(DENSEST));
        let room = output.room(wanted);
        let room_is_capped = room.len() < wanted;
        match decompress_into(block, room) {
            Ok(written) => self.take(frame, written, output, position),
            Err(DecompressError::OutputTooSmall { .. }) if room_is_capped => Err(output.limit_reached(position).into()),
            Err(error) => {
                let fault = CodecFault::Corrupt { part: StreamPart::Block, reason: reason_of(&error) };
                Err(source.fault_at(position, fault))
            }
        }
    }

    /// Takes `count` fresh bytes of the output as part of the content.
    fn take(&mut self, frame: Frame, count: usize, output: &mut Output, position: Position) -> Result<(), Pause> {
        if frame.has(FLG_CONTENT_CHECKSUM) {
            // They stand where the next room starts, until they are taken.
            self.content.write(output.room(count));
        }
        Ok(output.advance(count, position)?)
    }

    /// The end mark has been read. Kafka wants the content checksum to be there and looks neither at it nor at the size.
    fn end(
        &mut self,
        frame: Frame,
        source: &mut Source<'_>,
        output: &Output,
        oddities: &mut Vec<CodecOddity>,
    ) -> Result<Step, Pause> {
        if frame.has(FLG_CONTENT_CHECKSUM) {
            let position = source.position();
            let stored = source.u32_le(StreamPart::Trailer)?;
            let computed = self.content.finish_32();
            if stored != computed {
                oddities.push(CodecOddity::WrongLz4ContentChecksum { position, stored, computed });
            }
        }
        if let Some(stored) = frame.content_size.filter(|&size| size != output.total()) {
            oddities.push(CodecOddity::WrongLz4ContentSize { stored, computed: output.total() });
        }
        Ok(Step::Finished)
    }
}

fn read_header(
    source: &mut Source<'_>,
    checksum: Lz4Checksum,
    oddities: &mut Vec<CodecOddity>,
) -> Result<Frame, Pause> {
    const PART: StreamPart = StreamPart::Header;
    let start = source.position();
    let whole = source.rest();
    if source.is_exhausted() {
        return Err(source.fault(CodecFault::Empty));
    }
    source.demand(6, PART)?;
    if *source.array::<4>(PART)? != MAGIC {
        return Err(source.fault_at(start, CodecFault::WrongMagic(PART)));
    }
    let position = source.position();
    let flags = source.u8(PART)?;
    check_flags(flags).map_err(|unsupported| source.fault_at(position, unsupported))?;
    let position = source.position();
    let descriptor = source.u8(PART)?;
    let most_block = block_size(descriptor).map_err(|unsupported| source.fault_at(position, unsupported))?;
    let content_size = if flags & FLG_CONTENT_SIZE != 0 { Some(source.u64_le(PART)?) } else { None };
    let position = source.position();
    let len = usize::try_from(position.since(start)).unwrap_or(usize::MAX);
    let hashed = whole.get(..len).unwrap_or_default();
    let stored = source.u8(PART)?;
    let computed = second_byte(XxHash32::oneshot(0, hashed.get(MAGIC.len()..).unwrap_or_default()));
    if stored != computed {
        let is_old = stored == second_byte(XxHash32::oneshot(0, hashed));
        match (checksum, is_old) {
            (Lz4Checksum::IgnoredInMagic0, true) => {
                oddities.push(CodecOddity::OldLz4HeaderChecksum { stored, computed });
            }
            (Lz4Checksum::IgnoredInMagic0, false) => {
                oddities.push(CodecOddity::WrongLz4HeaderChecksum { stored, computed });
            }
            (Lz4Checksum::Verified, true) => {
                return Err(source.fault_at(position, CodecFault::OldHeaderChecksum { stored, computed }));
            }
            (Lz4Checksum::Verified, false) => {
                let (stored, computed) = (u32::from(stored), u32::from(computed));
                return Err(source.fault_at(position, CodecFault::ChecksumMismatch { part: PART, stored, computed }));
            }
        }
    }
    Ok(Frame { flags, most_block, content_size })
}

/// `Lz4BlockOutputStream.FLG.validate`.
fn check_flags(flags: u8) -> Result<(), Unsupported> {
    if flags & FLG_DICTIONARY != 0 {
        return Err(Unsupported::Dictionary);
    }
    if flags & FLG_RESERVED != 0 {
        return Err(Unsupported::ReservedBits(flags & FLG_RESERVED));
    }
    if flags & FLG_INDEPENDENT == 0 {
        return Err(Unsupported::DependentBlocks);
    }
    match flags >> 6 {
        VERSION => Ok(()),
        version => Err(Unsupported::Version(i32::from(version))),
    }
}

/// The largest block that a BD byte allows (`Lz4BlockOutputStream.BD.validate`).
fn block_size(descriptor: u8) -> Result<usize, Unsupported> {
    if descriptor & 0x8f != 0 {
        return Err(Unsupported::ReservedBits(descriptor & 0x8f));
    }
    match descriptor >> 4 {
        4 => Ok(64 * 1024),
        5 => Ok(256 * 1024),
        6 => Ok(1024 * 1024),
        7 => Ok(4 * 1024 * 1024),
        code => Err(Unsupported::BlockSizeCode(code)),
    }
}

pub(super) fn second_byte(hash: u32) -> u8 {
    let [_, _, second, _] = hash.to_be_bytes();
    second
}

fn reason_of(error: &DecompressError) -> &'static str {
    match error {
        DecompressError::OutputTooSmall { .. } => "holds more than the frame's block size",
        DecompressError::LiteralOutOfBounds => "a literal exceeds the block",
        DecompressError::ExpectedAnotherByte => "cut off",
        DecompressError::OffsetOutOfBounds => "a copy reaches before the start",
        _ => "invalid data",
    }
}

/// Whether these bytes begin another frame.
pub(super) fn is_frame(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Longest thing a frame asks for at once: the largest block with its length and checksum.
pub(super) const MOST_UNIT: u64 = 4 * 1024 * 1024 + 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_checksums_of_both_kinds_have_the_published_values() {
        for (flags, descriptor, right, old) in [
            (0x60, 0x40, 0x82, 0x1a),
            (0x60, 0x50, 0xfb, 0x77),
            (0x60, 0x60, 0x51, 0xd6),
            (0x60, 0x70, 0x73, 0x10),
            (0x64, 0x40, 0xa7, 0x0c),
            (0x70, 0x40, 0xad, 0xec),
        ] {
            let whole = [0x04, 0x22, 0x4d, 0x18, flags, descriptor];
            assert_eq!(second_byte(XxHash32::oneshot(0, &whole[4..])), right);
            assert_eq!(second_byte(XxHash32::oneshot(0, &whole)), old);
        }
    }
}

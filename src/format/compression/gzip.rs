//! gzip (RFC 1952) as the JDK's `GZIPInputStream` reads it: several members, stray bytes after one ignored, checksums checked.
//!
//! ```text
//! 1f 8b | method 8 | flags | mtime 4 | xfl | os | [extra] [name 0] [comment 0] [header crc 2] | deflate | crc-32 | size mod 2^32
//! ```

use std::fmt;

use flate2::{Decompress, FlushDecompress, Status};

use super::super::Position;
use super::output::Output;
use super::source::{Pause, Source, Step, Supply};
use super::{CodecFault, StreamPart, Unsupported};

const MAGIC: [u8; 2] = [0x1f, 0x8b];
const METHOD_DEFLATE: u8 = 8;
const FLAG_HEADER_CRC: u8 = 0x02;
const FLAG_EXTRA: u8 = 0x04;
const FLAG_NAME: u8 = 0x08;
const FLAG_COMMENT: u8 = 0x10;

/// `GZIPInputStream.readTrailer` looks for another member only where more than its least size, 10 + 8, follows.
const LEAST_NEXT_MEMBER: usize = 19;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    FirstHeader,
    NextHeader,
    Deflate,
    Trailer,
}

/// One inflater for all streams of a thread.
pub(super) struct GzipDecoder {
    inflate: Decompress,
    state: State,
    crc: crc32fast::Hasher,
    size: u32,
}

impl fmt::Debug for GzipDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GzipDecoder").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Default for GzipDecoder {
    fn default() -> Self {
        Self { inflate: Decompress::new(false), state: State::FirstHeader, crc: crc32fast::Hasher::new(), size: 0 }
    }
}

impl GzipDecoder {
    pub(super) fn start(&mut self) {
        self.state = State::FirstHeader;
    }

    pub(super) fn step(&mut self, source: &mut Source<'_>, output: &mut Output) -> Result<Step, Pause> {
        match self.state {
            State::FirstHeader => {
                read_header(source)?;
                self.begin_member();
            }
            State::NextHeader => return self.next_member(source),
            State::Deflate => self.inflate(source, output)?,
            State::Trailer => {
                self.check_trailer(source)?;
                self.state = State::NextHeader;
            }
        }
        Ok(Step::Continue)
    }

    fn begin_member(&mut self) {
        self.inflate.reset(false);
        self.crc.reset();
        self.size = 0;
        self.state = State::Deflate;
    }

    /// What follows a member is another member or is ignored; a broken header is no error there.
    fn next_member(&mut self, source: &mut Source<'_>) -> Result<Step, Pause> {
        if source.look_ahead(LEAST_NEXT_MEMBER)?.len() < LEAST_NEXT_MEMBER {
            return Ok(Step::Finished);
        }
        let mut ahead = *source;
        match read_header(&mut ahead) {
            Ok(()) => {
                *source = ahead;
                self.begin_member();
                Ok(Step::Continue)
            }
            Err(Pause::Starved(needed)) => Err(Pause::Starved(needed)),
            Err(Pause::Fault(_)) => Ok(Step::Finished),
        }
    }

    fn inflate(&mut self, source: &mut Source<'_>, output: &mut Output) -> Result<(), Pause> {
        let (taken_before, given_before) = (self.inflate.total_in(), self.inflate.total_out());
        let room = output.more_room();
        // Where no input can follow, inflate need not keep a copy of its window at the end.
        let flush = match source.supply() {
            Supply::Ended => FlushDecompress::Finish,
            Supply::More => FlushDecompress::None,
        };
        let status = self.inflate.decompress(source.rest(), room, flush).map_err(|_| {
            source.fault(CodecFault::Corrupt { part: StreamPart::Block, reason: "invalid deflate data" })
        })?;
        let taken = usize::try_from(self.inflate.total_in().saturating_sub(taken_before)).unwrap_or(usize::MAX);
        let given = usize::try_from(self.inflate.total_out().saturating_sub(given_before)).unwrap_or(usize::MAX);
        let fresh = room.get(..given).unwrap_or_default();
        self.crc.update(fresh);
        // ISIZE is the size modulo 2^32.
        self.size = self.size.wrapping_add(u32::try_from(given).unwrap_or(u32::MAX));
        source.skip(taken);
        output.advance(given, source.position())?;
        match status {
            Status::StreamEnd => self.state = State::Trailer,
            Status::Ok | Status::BufError => {
                if taken == 0 && given == 0 {
                    source.demand(source.rest().len().saturating_add(1), StreamPart::Block)?;
                }
            }
        }
        Ok(())
    }

    fn check_trailer(&self, source: &mut Source<'_>) -> Result<(), Pause> {
        let start = source.position();
        source.demand(8, StreamPart::Trailer)?;
        let stored = source.u32_le(StreamPart::Trailer)?;
        let computed = self.crc.clone().finalize();
        if stored != computed {
            let fault = CodecFault::ChecksumMismatch { part: StreamPart::Trailer, stored, computed };
            return Err(source.fault_at(start, fault));
        }
        let size_position = source.position();
        let stored = source.u32_le(StreamPart::Trailer)?;
        if stored != self.size {
            let fault = CodecFault::SizeMismatch { stored: u64::from(stored), computed: u64::from(self.size) };
            return Err(source.fault_at(size_position, fault));
        }
        Ok(())
    }
}

/// Reads a member's header (`GZIPInputStream.readHeader`). Reserved flags are ignored there and here.
fn read_header(source: &mut Source<'_>) -> Result<(), Pause> {
    const PART: StreamPart = StreamPart::Header;
    let start = source.position();
    let whole = source.rest();
    if source.is_exhausted() {
        return Err(source.fault(CodecFault::Empty));
    }
    if *source.array::<2>(PART)? != MAGIC {
        return Err(source.fault_at(start, CodecFault::WrongMagic(PART)));
    }
    let method_position = source.position();
    let method = source.u8(PART)?;
    if method != METHOD_DEFLATE {
        return Err(source.fault_at(method_position, Unsupported::Method(method)));
    }
    let flags = source.u8(PART)?;
    source.bytes(6, PART)?;
    if flags & FLAG_EXTRA != 0 {
        let len = source.u16_le(PART)?;
        source.bytes(usize::from(len), PART)?;
    }
    if flags & FLAG_NAME != 0 {
        skip_text(source)?;
    }
    if flags & FLAG_COMMENT != 0 {
        skip_text(source)?;
    }
    if flags & FLAG_HEADER_CRC != 0 {
        check_header_crc(source, start, whole)?;
    }
    Ok(())
}

fn check_header_crc(source: &mut Source<'_>, start: Position, whole: &[u8]) -> Result<(), Pause> {
    let position = source.position();
    let len = usize::try_from(position.since(start)).unwrap_or(usize::MAX);
    let computed = crc32fast::hash(whole.get(..len).unwrap_or_default()) & 0xffff;
    let stored = u32::from(source.u16_le(StreamPart::Header)?);
    if stored != computed {
        let fault = CodecFault::ChecksumMismatch { part: StreamPart::Header, stored, computed };
        return Err(source.fault_at(position, fault));
    }
    Ok(())
}

/// Passes a text that ends with a zero byte.
fn skip_text(source: &mut Source<'_>) -> Result<(), Pause> {
    let rest = source.rest();
    match rest.iter().position(|&byte| byte == 0) {
        Some(end) => source.skip(end.saturating_add(1)),
        None => source.demand(rest.len().saturating_add(1), StreamPart::Header)?,
    }
    Ok(())
}

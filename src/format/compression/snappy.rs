//! Snappy: raw blocks in the framing of xerial's snappy-java, or one raw block for everything.
//!
//! ```text
//! 82 'SNAPPY' 00 | version i32 BE | compatible version i32 BE | { length i32 BE | raw block }*
//! ```
//!
//! Anything that does not start with those eight bytes is one raw block (`SnappyInputStream.readHeader`). A length that equals
//! the first four bytes of the magic starts another header: streams may be joined. Fewer than four bytes at the end are ignored.

use std::fmt;

use snap::raw::{Decoder, decompress_len};

use super::super::{Position, len_u64, len_usize};
use super::output::Output;
use super::source::{Pause, Source, Step, Supply};
use super::{CodecFault, CodecOddity, StreamPart, Unsupported};

pub(super) const MAGIC: [u8; 8] = *b"\x82SNAPPY\x00";
const HEADER_SIZE: usize = 16;
/// The first four bytes of the magic, as a length would be read.
const MAGIC_AS_LENGTH: i32 = i32::from_be_bytes([0x82, b'S', b'N', b'A']);
/// The longest block that snappy-java reads (`SnappyInputStream.maxChunkSize`).
const MOST_BLOCK: i32 = 512 * 1024 * 1024;
/// A block of n bytes cannot hold more than 64/3 n: the densest element copies 64 bytes and takes 3.
const DENSEST: u64 = 22;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Start,
    Blocks,
}

/// One decoder for all streams of a thread.
pub(super) struct SnappyDecoder {
    decoder: Decoder,
    state: State,
}

impl fmt::Debug for SnappyDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnappyDecoder").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Default for SnappyDecoder {
    fn default() -> Self {
        Self { decoder: Decoder::new(), state: State::Start }
    }
}

impl SnappyDecoder {
    pub(super) fn start(&mut self) {
        self.state = State::Start;
    }

    pub(super) fn step(
        &mut self,
        source: &mut Source<'_>,
        output: &mut Output,
        oddities: &mut Vec<CodecOddity>,
    ) -> Result<Step, Pause> {
        match self.state {
            State::Start => self.begin(source, output, oddities),
            State::Blocks => self.next_block(source, output, oddities),
        }
    }

    fn begin(
        &mut self,
        source: &mut Source<'_>,
        output: &mut Output,
        oddities: &mut Vec<CodecOddity>,
    ) -> Result<Step, Pause> {
        let head = source.look_ahead(HEADER_SIZE)?;
        if head.is_empty() {
            return Err(source.fault(CodecFault::Empty));
        }
        if head.len() == HEADER_SIZE && head.starts_with(&MAGIC) {
            let position = source.position();
            source.bytes(MAGIC.len(), StreamPart::Header)?;
            // The versions of the first header are never checked; one writer is known to write them little-endian.
            let versions = read_versions(source)?;
            note_versions(position, versions, oddities);
            self.state = State::Blocks;
            return Ok(Step::Continue);
        }
        if source.supply() == Supply::More {
            return Err(Pause::Starved(usize::MAX));
        }
        let block = source.rest();
        self.decode(block, source, output)?;
        source.skip(block.len());
        oddities.push(CodecOddity::SnappyWithoutHeader);
        Ok(Step::Finished)
    }

    fn next_block(
        &mut self,
        source: &mut Source<'_>,
        output: &mut Output,
        oddities: &mut Vec<CodecOddity>,
    ) -> Result<Step, Pause> {
        if source.look_ahead(4)?.len() < 4 {
            return Ok(Step::Finished);
        }
        let mut ahead = *source;
        let length = ahead.i32_be(StreamPart::Block)?;
        if length == MAGIC_AS_LENGTH {
            return next_stream(source, oddities);
        }
        let Some(len) = usize::try_from(length).ok().filter(|_| (1..=MOST_BLOCK).contains(&length)) else {
            let fault = CodecFault::BlockLength { found: i64::from(length), most: i64::from(MOST_BLOCK) };
            return Err(source.fault(fault));
        };
        let block_start = ahead;
        let block = ahead.bytes(len, StreamPart::Block)?;
        self.decode(block, &block_start, output)?;
        *source = ahead;
        Ok(Step::Continue)
    }

    /// Decodes a raw block that starts where `source` stands.
    fn decode(&mut self, block: &[u8], source: &Source<'_>, output: &mut Output) -> Result<(), Pause> {
        let corrupt = |reason| source.fault(CodecFault::Corrupt { part: StreamPart::Block, reason });
        let declared = decompress_len(block).map(len_u64).map_err(|error| corrupt(reason_of(&error)))?;
        if declared > len_u64(block.len()).saturating_mul(DENSEST) {
            return Err(corrupt("declares more than its bytes can hold"));
        }
        if declared > output.allowance() {
            return Err(output.limit_reached(source.position()).into());
        }
        let room = output.room(len_usize(declared));
        let written = self.decoder.decompress(block, room).map_err(|error| corrupt(reason_of(&error)))?;
        Ok(output.advance(written, source.position())?)
    }
}

/// A repeated header. Where its first four bytes are right and the rest of its magic is not, snappy-java says that the stream has
/// ended, but goes on behind the header when asked again, as Kafka's readers do.
fn next_stream(source: &mut Source<'_>, oddities: &mut Vec<CodecOddity>) -> Result<Step, Pause> {
    let position = source.position();
    source.demand(HEADER_SIZE, StreamPart::Header)?;
    let mut ahead = *source;
    if *ahead.array::<8>(StreamPart::Header)? != MAGIC {
        source.skip(HEADER_SIZE);
        oddities.push(CodecOddity::WrongSnappyHeader { position });
        return Ok(Step::Continue);
    }
    let version_position = ahead.position();
    let versions = read_versions(&mut ahead)?;
    if versions.0 < 1 {
        return Err(ahead.fault_at(version_position, Unsupported::Version(versions.0)));
    }
    note_versions(position, versions, oddities);
    *source = ahead;
    Ok(Step::Continue)
}

fn read_versions(source: &mut Source<'_>) -> Result<(i32, i32), Pause> {
    Ok((source.i32_be(StreamPart::Header)?, source.i32_be(StreamPart::Header)?))
}

fn note_versions(position: Position, versions: (i32, i32), oddities: &mut Vec<CodecOddity>) {
    let (version, compatible_version) = versions;
    if versions != (1, 1) {
        oddities.push(CodecOddity::SnappyVersion { position, version, compatible_version });
    }
}

fn reason_of(error: &snap::Error) -> &'static str {
    match error {
        snap::Error::TooBig { .. } => "declares more than 4 GiB",
        snap::Error::BufferTooSmall { .. } => "holds more than it declares",
        snap::Error::Empty => "no bytes",
        snap::Error::Header => "invalid length",
        snap::Error::HeaderMismatch { .. } => "holds fewer bytes than it declares",
        snap::Error::Literal { .. } => "a literal exceeds the block",
        snap::Error::CopyRead { .. } => "a copy is cut off",
        snap::Error::Offset { .. } => "a copy reaches before the start",
        snap::Error::CopyWrite { .. } => "a copy exceeds the declared length",
        _ => "invalid data",
    }
}

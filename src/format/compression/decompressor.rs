//! Whole batches in one piece, with contexts and a buffer that last as long as their thread.

use std::io::Read;

use super::super::{FormatError, FormatErrorKind, Position};
use super::gzip::GzipDecoder;
use super::lz4::{self, Lz4Decoder};
use super::output::Output;
use super::snappy::SnappyDecoder;
use super::source::{Pause, Source, Step, Supply};
use super::stream::Stream;
use super::zstd::ZstdDecoder;
use super::{Codec, CodecFault, CodecOddity, Lz4Checksum, StreamPart};

/// The decoders' contexts, made when first needed.
#[derive(Debug, Default)]
pub(super) struct Decoders {
    gzip: Option<GzipDecoder>,
    snappy: Option<SnappyDecoder>,
    lz4: Lz4Decoder,
    zstd: Option<ZstdDecoder>,
}

impl Decoders {
    pub(super) fn start(&mut self, codec: Codec, lz4: Lz4Checksum) {
        match codec {
            Codec::None => {}
            Codec::Gzip => self.gzip.get_or_insert_default().start(),
            Codec::Snappy => self.snappy.get_or_insert_default().start(),
            Codec::Lz4 => self.lz4.start(lz4),
            Codec::Zstd => self.zstd.get_or_insert_default().start(),
        }
    }

    pub(super) fn step(
        &mut self,
        codec: Codec,
        source: &mut Source<'_>,
        output: &mut Output,
        oddities: &mut Vec<CodecOddity>,
    ) -> Result<Step, Pause> {
        match codec {
            Codec::None => copy(source, output),
            Codec::Gzip => self.gzip.get_or_insert_default().step(source, output),
            Codec::Snappy => self.snappy.get_or_insert_default().step(source, output, oddities),
            Codec::Lz4 => self.lz4.step(source, output, oddities),
            Codec::Zstd => self.zstd.get_or_insert_default().step(source, output, oddities),
        }
    }
}

/// Data that is not compressed passes as it is.
fn copy(source: &mut Source<'_>, output: &mut Output) -> Result<Step, Pause> {
    if source.is_exhausted() {
        return Ok(Step::Finished);
    }
    source.demand(1, StreamPart::Block)?;
    let room = output.more_room();
    let count = room.len().min(source.rest().len());
    if let (Some(to), Some(from)) = (room.get_mut(..count), source.rest().get(..count)) {
        to.copy_from_slice(from);
    }
    source.skip(count);
    output.advance(count, source.position())?;
    Ok(Step::Continue)
}

fn cut_off(codec: Codec, position: Position) -> FormatError {
    let fault = CodecFault::CutOff(StreamPart::Block);
    FormatError::new(position, FormatErrorKind::Decompression { codec, fault })
}

/// Names what is left after the end of a stream.
pub(super) fn note_ignored(codec: Codec, position: Position, rest: &[u8], count: u64, oddities: &mut Vec<CodecOddity>) {
    if count == 0 {
        return;
    }
    oddities.push(if codec == Codec::Lz4 && lz4::is_frame(rest) {
        CodecOddity::FrameIgnored { position, count }
    } else {
        CodecOddity::BytesIgnored { position, count }
    });
}

/// Decompresses batch after batch; one for each thread. Contexts and buffers are kept between calls.
#[derive(Debug, Default)]
pub struct Decompressor {
    pub(super) decoders: Decoders,
    pub(super) output: Output,
    pub(super) oddities: Vec<CodecOddity>,
    pub(super) window: Vec<u8>,
}

/// A decompressed batch body or wrapper value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decompressed<'b> {
    /// The content.
    pub bytes: &'b [u8],
    /// What Kafka read past without looking; positions count from the start of the compressed data.
    pub oddities: &'b [CodecOddity],
}

impl Decompressor {
    /// A decompressor that has allocated nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decompresses `input` as a whole. The result lives in this decompressor's buffer, except that data which is not
    /// compressed is given back as it is.
    ///
    /// More than `limit` bytes of output are [`LimitReached`](super::super::FormatErrorKind::LimitReached); such a batch can
    /// still be read with [`Self::stream`]. Every other error is a stream that Kafka does not read either. Positions in errors
    /// count from the start of `input`.
    pub fn decompress<'b>(
        &'b mut self,
        codec: Codec,
        lz4: Lz4Checksum,
        input: &'b [u8],
        limit: u64,
    ) -> Result<Decompressed<'b>, FormatError> {
        self.oddities.clear();
        if codec == Codec::None {
            self.output.start(0);
            return Ok(Decompressed { bytes: input, oddities: &self.oddities });
        }
        self.output.start(limit);
        self.decoders.start(codec, lz4);
        let mut source = Source::new(input, Position(0), Supply::Ended, codec);
        loop {
            match self.decoders.step(codec, &mut source, &mut self.output, &mut self.oddities) {
                Ok(Step::Continue) => {}
                Ok(Step::Finished) => break,
                Err(Pause::Fault(error)) => return Err(error),
                // A source that has ended does not starve; the type does not say so.
                Err(Pause::Starved(_)) => return Err(cut_off(codec, source.position())),
            }
        }
        note_ignored(codec, source.position(), source.rest(), source.remaining(), &mut self.oddities);
        Ok(Decompressed { bytes: self.output.bytes(), oddities: &self.oddities })
    }

    /// What the last [`Self::decompress`] had decoded when it failed: bytes that Kafka would not give to anybody, for those
    /// who salvage. Empty after data that was not compressed.
    pub fn partial_output(&self) -> &[u8] {
        self.output.bytes()
    }

    /// Decompresses what `input` yields, piece by piece and in constant memory: buffers of the codec's block size, 4 MiB at
    /// most, except that snappy blocks have to be whole and are bounded by `limit` alone.
    pub fn stream<R: Read>(&mut self, codec: Codec, lz4: Lz4Checksum, input: R, limit: u64) -> Stream<'_, R> {
        Stream::new(self, codec, lz4, input, limit)
    }
}

//! Batches that are too large to be decompressed as a whole: piece by piece, in constant memory.

use std::io::{self, BufRead, Read};

use super::super::{FormatError, FormatErrorKind, Position, len_u64, len_usize};
use super::decompressor::{Decompressor, note_ignored};
use super::output::shed;
use super::source::{Pause, Source, Step, Supply};
use super::{Codec, CodecOddity, Lz4Checksum};

/// Compressed bytes read at once.
const READ_SIZE: usize = 64 * 1024;
/// A piece is given out when at least this much of it is there.
const PIECE_SIZE: usize = 64 * 1024;

/// Why a stream could not go on.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The compressed bytes could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// They are not what Kafka reads, or hold more than the limit.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// A decompression under way; see [`Decompressor::stream`].
#[derive(Debug)]
pub struct Stream<'d, R> {
    decompressor: &'d mut Decompressor,
    codec: Codec,
    input: R,
    limit: u64,
    /// The window's unread part starts here.
    start: usize,
    /// Where that part stands in the compressed data.
    position: Position,
    supply: Supply,
    /// The stream has ended or failed.
    is_over: bool,
    /// Why it failed, while what came before is still being given out.
    pending: Option<StreamError>,
    /// Bytes of the present piece that were read through [`BufRead`].
    consumed: usize,
}

impl<'d, R: Read> Stream<'d, R> {
    pub(super) fn new(
        decompressor: &'d mut Decompressor,
        codec: Codec,
        lz4: Lz4Checksum,
        input: R,
        limit: u64,
    ) -> Self {
        decompressor.oddities.clear();
        decompressor.window.clear();
        shed(&mut decompressor.window);
        decompressor.output.start(limit);
        decompressor.decoders.start(codec, lz4);
        Self {
            decompressor,
            codec,
            input,
            limit,
            start: 0,
            position: Position(0),
            supply: Supply::More,
            is_over: false,
            pending: None,
            consumed: 0,
        }
    }

    /// The next piece of the content, never empty; `None` at the end, and after an error. A piece is at most as long as the
    /// largest block of the codec and 128 KiB.
    pub fn next_piece(&mut self) -> Result<Option<&[u8]>, StreamError> {
        self.decompressor.output.clear();
        self.consumed = 0;
        if let Some(error) = self.pending.take() {
            return Err(error);
        }
        while !self.is_over && self.decompressor.output.bytes().len() < PIECE_SIZE {
            if let Err(error) = self.advance() {
                self.is_over = true;
                if self.decompressor.output.bytes().is_empty() {
                    return Err(error);
                }
                self.pending = Some(error);
            }
        }
        let piece = self.decompressor.output.bytes();
        Ok(if piece.is_empty() { None } else { Some(piece) })
    }

    /// What has been met so far; complete once [`Self::next_piece`] has returned `None`.
    pub fn oddities(&self) -> &[CodecOddity] {
        &self.decompressor.oddities
    }

    /// Bytes of content so far.
    pub fn total_out(&self) -> u64 {
        self.decompressor.output.total()
    }

    fn advance(&mut self) -> Result<(), StreamError> {
        let Decompressor { decoders, output, oddities, window } = &mut *self.decompressor;
        let rest = window.get(self.start..).unwrap_or_default();
        let mut source = Source::new(rest, self.position, self.supply, self.codec);
        match decoders.step(self.codec, &mut source, output, oddities) {
            Ok(step) => {
                self.start = self.start.saturating_add(source.used());
                self.position = source.position();
                if step == Step::Finished {
                    self.finish()?;
                }
                Ok(())
            }
            Err(Pause::Starved(needed)) => self.refill(needed),
            Err(Pause::Fault(error)) => Err(error.into()),
        }
    }

    /// Reads on until the window holds `needed` bytes or the input ends.
    fn refill(&mut self, needed: usize) -> Result<(), StreamError> {
        // Incompressible data grows by a sixth in snappy, the only codec whose blocks are as long as a writer likes.
        let most = self.limit.saturating_add(self.limit / 6).saturating_add(super::lz4::MOST_UNIT);
        let window = &mut self.decompressor.window;
        window.drain(..self.start.min(window.len()));
        self.start = 0;
        while window.len() < needed {
            if len_u64(window.len()) > most {
                let kind = FormatErrorKind::LimitReached { limit: self.limit };
                return Err(FormatError::new(self.position, kind).into());
            }
            let wanted = len_u64(needed.saturating_sub(window.len()).clamp(READ_SIZE, len_usize(most).max(READ_SIZE)));
            // Grows with what is really there, whatever was asked for.
            if self.input.by_ref().take(wanted).read_to_end(window)? == 0 {
                self.supply = Supply::Ended;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Counts what follows the end of the stream.
    fn finish(&mut self) -> Result<(), StreamError> {
        self.is_over = true;
        self.refill(super::lz4::MAGIC.len())?;
        let behind = if self.supply == Supply::More { io::copy(&mut self.input, &mut io::sink())? } else { 0 };
        let Decompressor { oddities, window, .. } = &mut *self.decompressor;
        note_ignored(self.codec, self.position, window, len_u64(window.len()).saturating_add(behind), oddities);
        Ok(())
    }
}

/// Decompressed bytes for readers that want them so. A [`FormatError`] comes wrapped in an [`io::Error`] of kind `InvalidData`.
impl<R: Read> BufRead for Stream<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.consumed >= self.decompressor.output.bytes().len() {
            self.next_piece().map_err(|error| match error {
                StreamError::Io(error) => error,
                StreamError::Format(error) => io::Error::new(io::ErrorKind::InvalidData, error),
            })?;
        }
        Ok(self.decompressor.output.bytes().get(self.consumed..).unwrap_or_default())
    }

    fn consume(&mut self, count: usize) {
        self.consumed = self.consumed.saturating_add(count);
    }
}

impl<R: Read> Read for Stream<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

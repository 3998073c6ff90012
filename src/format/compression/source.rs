//! The compressed bytes as a decoder sees them: a window that may grow, and a way to say that it has to.

use super::super::{Cursor, FormatError, FormatErrorKind, Position, Shape, len_u64};
use super::{Codec, CodecFault, StreamPart};

/// Whether more bytes can follow those in the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Supply {
    /// Perhaps; the decoder may ask.
    More,
    /// The window holds the last byte there is.
    Ended,
}

/// What a step of a decoder came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// One unit is done, there may be more.
    Continue,
    /// The stream has ended; bytes that are left are not part of it.
    Finished,
}

/// Why a step of a decoder could not be done.
#[derive(Debug)]
pub(super) enum Pause {
    /// The window must hold this many bytes from the start of the step. The decoder has changed nothing.
    Starved(usize),
    /// The stream is not one that Kafka reads, or breaks the caller's limit.
    Fault(FormatError),
}

impl From<FormatError> for Pause {
    fn from(error: FormatError) -> Self {
        Self::Fault(error)
    }
}

/// The window and the place in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    cursor: Cursor<'a>,
    start: Position,
    supply: Supply,
    codec: Codec,
}

impl<'a> Source<'a> {
    /// A window whose first byte stands at `position` of the compressed data.
    pub(super) fn new(window: &'a [u8], position: Position, supply: Supply, codec: Codec) -> Self {
        Self { cursor: Cursor::at(window, position), start: position, supply, codec }
    }

    pub(super) fn position(&self) -> Position {
        self.cursor.position()
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.cursor.rest()
    }

    pub(super) fn supply(&self) -> Supply {
        self.supply
    }

    /// Whether nothing is left, now and for ever.
    pub(super) fn is_exhausted(&self) -> bool {
        self.cursor.is_empty() && self.supply == Supply::Ended
    }

    /// A fault at the present place.
    #[cold]
    pub(super) fn fault(&self, fault: impl Into<CodecFault>) -> Pause {
        self.fault_at(self.position(), fault)
    }

    /// A fault at an earlier place.
    #[cold]
    pub(super) fn fault_at(&self, position: Position, fault: impl Into<CodecFault>) -> Pause {
        let kind = FormatErrorKind::Decompression { codec: self.codec, fault: fault.into() };
        Pause::Fault(FormatError::new(position, kind))
    }

    /// Succeeds where at least `len` bytes are left; a shortage is starvation while more can come.
    pub(super) fn demand(&self, len: usize, part: StreamPart) -> Result<(), Pause> {
        if self.cursor.remaining() >= len {
            return Ok(());
        }
        match self.supply {
            Supply::Ended => Err(self.fault(CodecFault::CutOff(part))),
            Supply::More => {
                let used = self.cursor.position().since(self.start);
                Err(Pause::Starved(usize::try_from(used).unwrap_or(usize::MAX).saturating_add(len)))
            }
        }
    }

    /// Tries to have `len` bytes in the window; at the end of the data there may be fewer.
    pub(super) fn look_ahead(&self, len: usize) -> Result<&'a [u8], Pause> {
        if self.supply == Supply::More {
            self.demand(len, StreamPart::Header)?;
        }
        let rest = self.cursor.rest();
        Ok(rest.get(..len).unwrap_or(rest))
    }

    pub(super) fn bytes(&mut self, len: usize, part: StreamPart) -> Result<&'a [u8], Pause> {
        self.demand(len, part)?;
        Ok(self.cursor.read_bytes(Shape::CompressedStream, len)?)
    }

    pub(super) fn array<const N: usize>(&mut self, part: StreamPart) -> Result<&'a [u8; N], Pause> {
        self.demand(N, part)?;
        Ok(self.cursor.read_array(Shape::CompressedStream)?)
    }

    pub(super) fn u8(&mut self, part: StreamPart) -> Result<u8, Pause> {
        self.array::<1>(part).map(|b| u8::from_be_bytes(*b))
    }

    pub(super) fn i32_be(&mut self, part: StreamPart) -> Result<i32, Pause> {
        self.array(part).map(|b| i32::from_be_bytes(*b))
    }

    /// The formats inside are little-endian by their own specifications, unlike everything of Kafka's.
    pub(super) fn u16_le(&mut self, part: StreamPart) -> Result<u16, Pause> {
        self.array(part).map(|b| u16::from_be_bytes(*b).swap_bytes())
    }

    pub(super) fn u32_le(&mut self, part: StreamPart) -> Result<u32, Pause> {
        self.array(part).map(|b| u32::from_be_bytes(*b).swap_bytes())
    }

    pub(super) fn u64_le(&mut self, part: StreamPart) -> Result<u64, Pause> {
        self.array(part).map(|b| u64::from_be_bytes(*b).swap_bytes())
    }

    /// Passes over `len` bytes that a library has taken from [`Self::rest`].
    pub(super) fn skip(&mut self, len: usize) {
        let len = len.min(self.cursor.remaining());
        // Within what remains this cannot fail.
        let _ = self.cursor.read_bytes(Shape::CompressedStream, len);
    }

    /// Bytes taken since the window's start.
    pub(super) fn used(&self) -> usize {
        usize::try_from(self.position().since(self.start)).unwrap_or(usize::MAX)
    }

    /// Bytes left in the window.
    pub(super) fn remaining(&self) -> u64 {
        len_u64(self.cursor.remaining())
    }
}

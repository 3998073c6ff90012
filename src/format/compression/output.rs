//! The buffer that decoders fill: it grows with what really comes out, up to the caller's limit.

use super::super::{FormatError, FormatErrorKind, Position, len_u64, len_usize};

/// The least that the buffer grows to.
const LEAST_ROOM: usize = 64 * 1024;

/// What a buffer may keep between streams, so that one monster does not cost its memory for ever.
const MOST_KEPT: usize = 8 * 1024 * 1024;

/// Gives back the memory that a buffer has beyond the usual.
pub(super) fn shed(buffer: &mut Vec<u8>) {
    if buffer.capacity() > MOST_KEPT {
        buffer.truncate(MOST_KEPT);
        buffer.shrink_to(MOST_KEPT);
    }
}

/// A reusable buffer. Its bytes stay initialised between uses, so that a batch costs no clearing.
#[derive(Debug, Default)]
pub(super) struct Output {
    buffer: Vec<u8>,
    filled: usize,
    /// Bytes given away by [`Self::clear`] since [`Self::start`].
    given: u64,
    limit: u64,
}

impl Output {
    /// Begins a new stream that may come to `limit` bytes.
    pub(super) fn start(&mut self, limit: u64) {
        shed(&mut self.buffer);
        self.filled = 0;
        self.given = 0;
        self.limit = limit;
    }

    /// What has been written since the last [`Self::clear`].
    pub(super) fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.filled).unwrap_or_default()
    }

    /// Makes room by forgetting what has been written, without forgetting that it counts against the limit.
    pub(super) fn clear(&mut self) {
        self.given = self.given.saturating_add(len_u64(self.filled));
        self.filled = 0;
    }

    /// Bytes written since [`Self::start`].
    pub(super) fn total(&self) -> u64 {
        self.given.saturating_add(len_u64(self.filled))
    }

    /// Bytes that may still be written.
    pub(super) fn allowance(&self) -> u64 {
        self.limit.saturating_sub(self.total())
    }

    /// Room for up to `wanted` bytes, at most one more than the limit allows: writing that one is how a decoder learns that
    /// there is too much.
    pub(super) fn room(&mut self, wanted: usize) -> &mut [u8] {
        let allowed = len_usize(self.allowance().saturating_add(1));
        let end = self.filled.saturating_add(wanted.min(allowed));
        if end > self.buffer.len() {
            self.buffer.resize(end.max(LEAST_ROOM), 0);
        }
        self.buffer.get_mut(self.filled..end).unwrap_or_default()
    }

    /// Room that is there already, or as much again as has been written: for decoders that fill what they get.
    pub(super) fn more_room(&mut self) -> &mut [u8] {
        let spare = self.buffer.len().saturating_sub(self.filled);
        self.room(if spare > 0 { spare } else { self.filled.max(LEAST_ROOM) })
    }

    /// Takes `count` bytes of the room as written. `position` is where the decoder stands in its input.
    pub(super) fn advance(&mut self, count: usize, position: Position) -> Result<(), FormatError> {
        self.filled = self.filled.saturating_add(count).min(self.buffer.len());
        if self.total() > self.limit { Err(self.limit_reached(position)) } else { Ok(()) }
    }

    /// The error of a stream that does not fit the limit.
    #[cold]
    pub(super) fn limit_reached(&self, position: Position) -> FormatError {
        FormatError::new(position, FormatErrorKind::LimitReached { limit: self.limit })
    }
}

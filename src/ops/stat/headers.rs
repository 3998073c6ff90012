//! A walk from batch header to batch header that reads nothing else: for `--quick`.

use crate::format::{BATCH_HEADER, BatchHeader, HEADER_UP_TO_MAGIC, Position, len_u64, len_usize};
use crate::logdir::{ReadError, SegmentFile};

/// Bytes that one read asks for: small batches share a read, large ones are skipped.
const WINDOW: usize = 4096;

/// Walks the headers of a log file. Checksums are not looked at.
#[derive(Debug)]
pub(super) struct HeaderWalk<'f> {
    file: &'f SegmentFile,
    next: Position,
    window: Vec<u8>,
    window_start: Position,
}

/// Where a walk ended before the end of the file.
#[derive(Debug)]
pub(super) enum WalkEnd {
    /// No header stands here.
    NoHeader(Position),
    /// The batch that starts here reaches beyond the end of the file.
    PastEnd(Position),
    /// The disk refused.
    Unreadable(Position),
}

impl<'f> HeaderWalk<'f> {
    /// A walk over the whole file.
    pub(super) fn new(file: &'f SegmentFile) -> Self {
        Self { file, next: Position(0), window: Vec::new(), window_start: Position(0) }
    }

    /// The next header; `None` at the end of the file.
    pub(super) fn next_header(&mut self) -> Option<Result<BatchHeader, WalkEnd>> {
        let position = self.next;
        let left = self.file.end().since(position);
        if left == 0 {
            return None;
        }
        self.next = self.file.end();
        if left <= len_u64(HEADER_UP_TO_MAGIC) {
            return Some(Err(WalkEnd::NoHeader(position)));
        }
        if self.hold(position, len_usize(left).min(BATCH_HEADER)).is_err() {
            return Some(Err(WalkEnd::Unreadable(position)));
        }
        let from = len_usize(position.since(self.window_start));
        let bytes = self.window.get(from..).unwrap_or_default();
        let Ok(header) = BatchHeader::parse(bytes, position) else { return Some(Err(WalkEnd::NoHeader(position))) };
        if header.end() > self.file.end() {
            return Some(Err(WalkEnd::PastEnd(position)));
        }
        self.next = header.end();
        Some(Ok(header))
    }

    fn hold(&mut self, position: Position, len: usize) -> Result<(), ReadError> {
        let end = self.window_start.advance(len_u64(self.window.len()));
        if position >= self.window_start && position.advance(len_u64(len)) <= end {
            return Ok(());
        }
        let wanted = len_usize(self.file.end().since(position)).min(WINDOW).max(len);
        self.window.resize(wanted, 0);
        self.window_start = position;
        if self.file.read_exact_at(&mut self.window, position).is_err() {
            // A bad sector behind the header must not hide it.
            self.window.truncate(len);
            self.file.read_exact_at(&mut self.window, position)?;
        }
        Ok(())
    }
}

//! The bulk scan of log files: one buffer, batch after batch, damage reported and never passed over.

use std::ops::Range;

use super::error::ReadError;
use super::segment_file::{RangeReader, SegmentFile};
use crate::format::resync::{self, ResyncBounds};
use crate::format::{Batch, BatchHeader, CrcStream, HEADER_UP_TO_MAGIC, Position, len_u64, len_usize};

/// Bytes that one read of a scan asks for: beyond this nothing is gained, and it fits a core's cache.
const READ_BYTES: usize = 512 * 1024;
/// The largest batch that is held whole; a larger one is streamed.
pub const MOST_HELD: u64 = 4 * 1024 * 1024;
/// Bytes needed to read a header of any magic.
const HEADER_BYTES: usize = crate::format::BATCH_HEADER;

/// A batch met by a scan.
#[derive(Clone, Copy, Debug)]
pub enum Scanned<'a> {
    /// A batch held whole.
    Whole(Batch<'a>),
    /// A batch of more than [`MOST_HELD`] bytes: its header, and the file to stream it from.
    Large(LargeBatch<'a>),
}

/// A batch too large to hold.
#[derive(Clone, Copy, Debug)]
pub struct LargeBatch<'a> {
    header: BatchHeader,
    file: &'a SegmentFile,
}

impl<'a> LargeBatch<'a> {
    /// The header's facts.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// All bytes of the batch, in order.
    pub fn reader(&self) -> RangeReader<'a> {
        self.file.range_reader(self.header.position, self.header.end())
    }

    /// The bytes after the first `skip` of the batch.
    pub fn reader_from(&self, skip: usize) -> RangeReader<'a> {
        self.file.range_reader(self.header.position.advance(len_u64(skip)), self.header.end())
    }

    /// The checksum that the bytes have.
    pub fn computed_crc(&self) -> Result<u32, ReadError> {
        let mut stream = CrcStream::of(&self.header);
        let mut piece = vec![0; READ_BYTES];
        let mut position = self.header.position;
        while position < self.header.end() {
            let count = len_usize(self.header.end().since(position)).min(piece.len());
            let part = piece.get_mut(..count).unwrap_or_default();
            self.file.read_exact_at(part, position)?;
            stream.update(part);
            position = position.advance(len_u64(count));
        }
        Ok(stream.value())
    }
}

impl Scanned<'_> {
    /// The header's facts.
    #[inline]
    pub fn header(&self) -> &BatchHeader {
        match self {
            Self::Whole(batch) => batch.header(),
            Self::Large(batch) => batch.header(),
        }
    }

    /// The checksum that the bytes have.
    #[inline]
    pub fn computed_crc(&self) -> Result<u32, ReadError> {
        match self {
            Self::Whole(batch) => Ok(batch.computed_crc()),
            Self::Large(batch) => batch.computed_crc(),
        }
    }

    /// Whether the stored checksum is that of the bytes.
    pub fn crc_matches(&self) -> Result<bool, ReadError> {
        Ok(self.computed_crc()? == self.header().crc)
    }
}

/// Why a scan cannot go on from where it stands.
#[derive(Debug)]
pub enum ScanStop {
    /// The size field says less than any batch of that magic takes.
    SizeTooSmall {
        /// Where the batch would start.
        position: Position,
        /// What the size field says.
        found: i32,
        /// What it must say at least.
        least: i64,
    },
    /// The batch would reach beyond the end of the file (or of the range).
    PastEnd {
        /// Where the batch starts.
        position: Position,
        /// The bytes it would take.
        size_bytes: u64,
        /// The bytes that are there.
        available: u64,
    },
    /// The bytes cannot be read.
    Unreadable(ReadError),
}

/// Walks the batches of a log file or of a range of it. Holds one buffer of 512 KiB, up to 4 MiB where a batch needs it.
#[derive(Debug)]
pub struct LogScanner<'f> {
    file: &'f SegmentFile,
    end: Position,
    next: Position,
    buffer: Vec<u8>,
    buffer_start: Position,
    filled: usize,
    read_bytes: usize,
    /// Zeros that were passed over last.
    zeros: Range<Position>,
    done: bool,
}

impl<'f> LogScanner<'f> {
    /// A scan of the whole file.
    pub fn new(file: &'f SegmentFile) -> Self {
        Self::over(file, Position(0), file.end())
    }

    /// A scan of `[start, end)`; `start` must be a batch's.
    pub fn over(file: &'f SegmentFile, start: Position, end: Position) -> Self {
        Self {
            file,
            end: end.min(file.end()),
            next: start,
            buffer: Vec::new(),
            buffer_start: start,
            filled: 0,
            read_bytes: READ_BYTES,
            zeros: start..start,
            done: false,
        }
    }

    /// The same scan with smaller reads, for one that will stop soon. A batch is still read whole.
    #[must_use]
    pub fn reading(mut self, bytes: usize) -> Self {
        self.read_bytes = bytes.clamp(HEADER_BYTES, READ_BYTES);
        self
    }

    /// The same scan in a buffer that another has left.
    #[must_use]
    pub fn with_buffer(mut self, buffer: Vec<u8>) -> Self {
        self.buffer = buffer;
        self
    }

    /// The buffer, for another scan.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// Where the next batch starts; after the end, where the bytes too few for a batch do.
    pub fn position(&self) -> Position {
        self.next
    }

    /// Where the scan ends.
    pub fn end(&self) -> Position {
        self.end
    }

    /// Goes on at another place, also after a stop.
    pub fn jump(&mut self, to: Position) {
        self.next = to;
        self.done = false;
    }

    /// The next batch; `None` where 17 bytes or fewer are left, as Kafka's reader ends (`FileLogInputStream.nextBatch`).
    /// After a [`ScanStop`] there is nothing more until [`Self::jump`].
    #[inline]
    pub fn next_batch(&mut self) -> Result<Option<Scanned<'_>>, ScanStop> {
        let Some(header) = self.next_header()? else { return Ok(None) };
        let position = header.position;
        if header.size_bytes > MOST_HELD && self.file.mapped().is_none() {
            return Ok(Some(Scanned::Large(LargeBatch { header, file: self.file })));
        }
        if let Err(error) = self.ensure(position, len_usize(header.size_bytes)) {
            self.done = true;
            self.next = position;
            return Err(ScanStop::Unreadable(error));
        }
        let bytes = self.held(position, len_usize(header.size_bytes));
        // The header was parsed from these very bytes.
        Ok(Batch::parse(bytes, position).ok().map(Scanned::Whole))
    }

    /// The next batch's header alone: the rest of the batch is passed over and need not be readable.
    #[inline]
    pub fn next_header(&mut self) -> Result<Option<BatchHeader>, ScanStop> {
        let left = self.end.since(self.next);
        if self.done || left <= len_u64(HEADER_UP_TO_MAGIC) {
            return Ok(None);
        }
        match self.read_header(self.next, left) {
            Ok(header) => {
                self.next = header.end();
                Ok(Some(header))
            }
            Err(stop) => {
                self.done = true;
                Err(stop)
            }
        }
    }

    /// The batch with this header, which must be the one that [`Self::next_batch`] gave last.
    pub fn latest(&self, header: &BatchHeader) -> Option<Scanned<'_>> {
        if header.size_bytes > MOST_HELD && self.file.mapped().is_none() {
            return Some(Scanned::Large(LargeBatch { header: *header, file: self.file }));
        }
        Batch::parse(self.held(header.position, len_usize(header.size_bytes)), header.position).ok().map(Scanned::Whole)
    }

    /// The position of the first byte at or after `from` that is not zero; the end of the scan where there is none. Asked again
    /// within the same zeros, it does not read them again.
    pub fn skip_zeros(&mut self, from: Position) -> Result<Position, ReadError> {
        if self.zeros.contains(&from) {
            return Ok(self.zeros.end);
        }
        let mut at = from;
        while at < self.end {
            self.ensure(at, 1)?;
            let held = self.held_from(at);
            let zeros = resync::leading_zeros(held);
            let is_over = zeros < held.len();
            at = at.advance(len_u64(if is_over { zeros } else { zeros.max(1) }));
            if is_over {
                break;
            }
            at = self.file.skip_hole(at);
        }
        self.zeros = from..at.min(self.end);
        Ok(self.zeros.end)
    }

    /// Reads up to `len` bytes from `position` on, fewer at the end of the scan.
    pub fn peek(&mut self, position: Position, len: u64) -> Result<&[u8], ReadError> {
        let len = len_usize(self.end.since(position).min(len));
        self.ensure(position, len)?;
        Ok(self.held(position, len))
    }

    fn read_header(&mut self, position: Position, left: u64) -> Result<BatchHeader, ScanStop> {
        let mut wanted = len_usize(left).min(HEADER_BYTES);
        if self.ensure(position, wanted).is_err() {
            // The last legacy message before an unreadable range is shorter than a header of magic 2.
            wanted = wanted.min(HEADER_UP_TO_MAGIC + 1);
            self.ensure(position, wanted).map_err(ScanStop::Unreadable)?;
        }
        let bytes = self.held(position, wanted);
        // The size decides before the rest of the header is looked at: a torn batch may lack even that.
        let size = bytes.get(8..12).and_then(|b| b.first_chunk::<4>()).map_or(0, |b| i32::from_be_bytes(*b));
        let magic = bytes.get(HEADER_UP_TO_MAGIC - 1).copied().unwrap_or(0) as i8;
        let least = if magic >= 2 { 49 } else { i64::from(crate::format::LEAST_SIZE) };
        if i64::from(size) < least {
            return Err(ScanStop::SizeTooSmall { position, found: size, least });
        }
        let size_bytes = u64::from(size as u32).saturating_add(len_u64(crate::format::LOG_OVERHEAD));
        if size_bytes > left {
            return Err(ScanStop::PastEnd { position, size_bytes, available: left });
        }
        BatchHeader::parse(bytes, position).map_err(|_| ScanStop::PastEnd { position, size_bytes, available: left })
    }

    /// Sees to it that `len` bytes from `position` on are held.
    #[inline]
    fn ensure(&mut self, position: Position, len: usize) -> Result<(), ReadError> {
        if self.file.mapped().is_some() {
            return Ok(());
        }
        let held_end = self.buffer_start.advance(len_u64(self.filled));
        if position >= self.buffer_start && position.advance(len_u64(len)) <= held_end {
            return Ok(());
        }
        self.refill(position, len, held_end)
    }

    #[cold]
    fn refill(&mut self, position: Position, len: usize, held_end: Position) -> Result<(), ReadError> {
        // Nothing behind the range: whoever divides a file would read much of it twice.
        let available = len_usize(self.end.since(position));
        let wanted = len.max(self.read_bytes).min(available).max(len);
        let kept = if position >= self.buffer_start && position < held_end {
            let from = len_usize(position.since(self.buffer_start));
            self.buffer.copy_within(from..self.filled, 0);
            self.filled - from
        } else {
            0
        };
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        self.buffer_start = position;
        self.filled = kept;
        let read_from = position.advance(len_u64(kept));
        let target = self.buffer.get_mut(kept..wanted).unwrap_or_default();
        match self.file.read_exact_at(target, read_from) {
            Ok(()) => self.filled = wanted.max(kept),
            // A bad sector further on must not hide the bytes before it: ask for no more than is needed.
            Err(_) if len < wanted => {
                let target = self.buffer.get_mut(kept..len).unwrap_or_default();
                self.file.read_exact_at(target, read_from)?;
                self.filled = len.max(kept);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn held(&self, position: Position, len: usize) -> &[u8] {
        let (bytes, start) = match self.file.mapped() {
            Some(map) => (map, Position(0)),
            None => (self.buffer.get(..self.filled).unwrap_or_default(), self.buffer_start),
        };
        let from = len_usize(position.since(start));
        bytes.get(from..from.saturating_add(len)).unwrap_or_default()
    }

    /// What is held from `position` to the end of the buffer or of the scan, 512 KiB at most.
    fn held_from(&self, position: Position) -> &[u8] {
        let left = len_usize(self.end.since(position)).min(READ_BYTES);
        if self.file.mapped().is_some() {
            return self.held(position, left);
        }
        let held = len_usize(self.buffer_start.advance(len_u64(self.filled)).since(position));
        self.held(position, held.min(left))
    }

    /// The first place at or after `from` where a sound batch stands: header within `bounds`, checksum right. Reads no more than
    /// about `16` times the bytes that are left, however hostile they are; then [`Resync::GaveUp`] says how far the search came.
    pub fn find_batch(&mut self, from: Position, bounds: &ResyncBounds) -> Result<Resync, ReadError> {
        let mut budget = self.end.since(from).saturating_mul(16).saturating_add(64 * 1024 * 1024);
        let mut at = from;
        while self.end.since(at) > len_u64(HEADER_UP_TO_MAGIC) {
            let header_bytes = len_usize(self.end.since(at)).min(HEADER_BYTES);
            self.ensure(at, header_bytes)?;
            // What happens to be held is searched, so that no byte is read again for a candidate that came to nothing.
            let window = self.held_from(at);
            let Some(found) = resync::next_candidate(window, 0) else {
                let is_zero = resync::leading_zeros(window) == window.len();
                at = at.advance(len_u64(window.len().saturating_sub(HEADER_UP_TO_MAGIC - 1).max(1)));
                if is_zero {
                    // A batch may begin with zeros.
                    at = at.max(Position(self.skip_zeros(at)?.0.saturating_sub(len_u64(HEADER_UP_TO_MAGIC))));
                }
                continue;
            };
            at = at.advance(len_u64(found));
            let header_bytes = len_usize(self.end.since(at)).min(HEADER_BYTES);
            self.ensure(at, header_bytes)?;
            let plausible = BatchHeader::parse(self.held(at, header_bytes), at)
                .ok()
                .filter(|h| bounds.allow(h) && h.end() <= self.end);
            if let Some(header) = plausible {
                if header.size_bytes > budget {
                    return Ok(Resync::GaveUp(at));
                }
                budget -= header.size_bytes;
                if self.is_sound(&header)? {
                    return Ok(Resync::Found(at));
                }
            }
            at = at.advance(1);
        }
        Ok(Resync::Nothing)
    }

    fn is_sound(&mut self, header: &BatchHeader) -> Result<bool, ReadError> {
        if header.size_bytes > MOST_HELD && self.file.mapped().is_none() {
            return Ok(LargeBatch { header: *header, file: self.file }.computed_crc()? == header.crc);
        }
        let len = len_usize(header.size_bytes);
        self.ensure(header.position, len)?;
        Ok(Batch::parse(self.held(header.position, len), header.position).is_ok_and(|batch| batch.crc_matches()))
    }
}

/// What a search for the next batch came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resync {
    /// A sound batch starts here.
    Found(Position),
    /// No sound batch follows.
    Nothing,
    /// The work bound was reached here.
    GaveUp(Position),
}

#[cfg(test)]
mod tests {
    use super::super::error::ReadErrorKind;
    use super::super::segment_file::IoMode;
    use super::*;
    use crate::format::Offset;

    const V0: [u8; 29] =
        [0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0x11, 0x6e, 0xeb, 0xec, 0xe4, 0, 0, 0, 0, 0, 1, 0x61, 0, 0, 0, 2, 0x62, 0x63];

    fn file_of(bytes: &[u8], mode: IoMode) -> (tempfile::NamedTempFile, SegmentFile) {
        let temporary = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(temporary.path(), bytes).unwrap();
        let file = SegmentFile::open(temporary.path(), mode).unwrap();
        (temporary, file)
    }

    fn positions(scanner: &mut LogScanner<'_>) -> (Vec<u64>, Option<ScanStop>) {
        let mut seen = Vec::new();
        loop {
            match scanner.next_batch() {
                Ok(Some(batch)) => {
                    assert!(batch.crc_matches().unwrap());
                    seen.push(batch.header().position.0);
                }
                Ok(None) => return (seen, None),
                Err(stop) => return (seen, Some(stop)),
            }
        }
    }

    #[test]
    fn batches_across_the_buffers_edge_are_read_whole_either_way() {
        let count = 3 * READ_BYTES / V0.len();
        let bytes = V0.repeat(count);
        for mode in [IoMode::Pread, IoMode::Mmap] {
            let (_keep, file) = file_of(&bytes, mode);
            let (seen, stop) = positions(&mut LogScanner::new(&file));
            assert_eq!(seen.len(), count);
            assert!(seen.iter().zip(0..).all(|(&at, i)| at == i * 29) && stop.is_none());
        }
    }

    #[test]
    fn a_stop_says_where_and_the_search_finds_what_lies_behind() {
        let mut bytes = V0.repeat(2);
        bytes.extend(vec![0; 700_000]);
        bytes.extend(V0);
        bytes.extend(&V0[..20]);
        for mode in [IoMode::Pread, IoMode::Mmap] {
            let (_keep, file) = file_of(&bytes, mode);
            let mut scanner = LogScanner::new(&file);
            let (seen, stop) = positions(&mut scanner);
            assert_eq!(seen, vec![0, 29]);
            assert!(matches!(stop, Some(ScanStop::SizeTooSmall { position: Position(58), found: 0, least: 14 })));
            let bounds = ResyncBounds::of_segment(Offset(0), file.end());
            let found = scanner.find_batch(Position(58), &bounds).unwrap();
            assert_eq!(found, Resync::Found(Position(700_058)));
            scanner.jump(Position(700_058));
            let (seen, stop) = positions(&mut scanner);
            assert_eq!(seen, vec![700_058]);
            assert!(matches!(
                stop,
                Some(ScanStop::PastEnd { position: Position(700_087), size_bytes: 29, available: 20 })
            ));
            assert_eq!(scanner.find_batch(Position(700_087), &bounds).unwrap(), Resync::Nothing);
        }
    }

    #[test]
    fn a_file_that_shrinks_is_an_error_at_its_new_end() {
        let (keep, file) = file_of(&V0.repeat(3), IoMode::Pread);
        std::fs::write(keep.path(), &V0[..]).unwrap();
        let (seen, stop) = positions(&mut LogScanner::new(&file));
        assert_eq!(seen, vec![0]);
        let Some(ScanStop::Unreadable(error)) = stop else { unreachable!("{stop:?}") };
        assert!(matches!(error.kind, ReadErrorKind::Shrank { expected: 87, .. }), "{error}");
    }

    #[test]
    fn what_is_no_regular_file_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let error = SegmentFile::open(directory.path(), IoMode::Pread).unwrap_err();
        assert!(matches!(error.kind, ReadErrorKind::NotAFile { found: "a directory" }));
    }
}

//! A log file as a broker reads it: batch by batch, believing what the headers say (`FileLogInputStream`, `FileRecords`,
//! `LogSegment.readNextOffset`). Nothing is checked here that a broker does not check, so damage leads where it leads a broker.

use std::ffi::OsStr;

use super::failure::LoadStop;
use super::rules::{OffsetSearch, Rules};
use crate::format::offset_index::OffsetIndex;
use crate::format::{
    BATCH_HEADER, BatchHeader, Cursor, HEADER_UP_TO_MAGIC, LEAST_SIZE, LOG_OVERHEAD, Offset, Position, Shape,
    TimestampMs, len_u64, len_usize,
};
use crate::logdir::{LogScanner, ReadError, SegmentFile};
use crate::ops::{FindingId, RecordReader};

/// Bytes that one read asks for: several hundred headers of small batches, and little beside a large one.
const READ_BYTES: usize = 64 * 1024;
/// Where a header's size field starts.
const SIZE_AT: usize = 8;
/// Bytes of a message of magic 1 up to its timestamp.
const LEGACY_WITH_TIMESTAMP: usize = HEADER_UP_TO_MAGIC + 1 + 8;
/// The attributes of a legacy message follow its magic.
const LEGACY_CODEC: u8 = 0x07;

/// The first 17 bytes of a batch, as a broker takes them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RawBatch {
    pub(super) position: Position,
    pub(super) base_offset: Offset,
    /// Of the whole batch.
    pub(super) size_bytes: u64,
    pub(super) magic: i8,
}

impl RawBatch {
    pub(super) fn end(&self) -> Position {
        self.position.advance(self.size_bytes)
    }
}

/// Why a broker's reader throws.
#[derive(Debug)]
pub(super) enum WalkStop {
    /// The size field says less than any batch takes (`CorruptRecordException`).
    SizeTooSmall(Position),
    /// The file ends inside the header of a batch that is said to be shorter than that (`KafkaException`).
    HeaderCut(Position),
    /// A legacy wrapper that cannot be decoded.
    Undecodable(Position),
    /// The bytes cannot be read.
    Unreadable(ReadError),
}

impl WalkStop {
    /// The failure that this is where nobody catches it. `file` is the log's name.
    pub(super) fn into_failure(self, file: &OsStr) -> LoadStop {
        match self {
            Self::SizeTooSmall(position) => LoadStop::fails(FindingId::BatchLengthInvalid, file, position),
            Self::HeaderCut(position) => LoadStop::fails(FindingId::BatchTornTail, file, position),
            Self::Undecodable(position) => LoadStop::fails(FindingId::BatchPayloadUndecodable, file, position),
            Self::Unreadable(error) => match error.kind {
                crate::logdir::ReadErrorKind::IoAt { position, .. } => {
                    LoadStop::fails(FindingId::LogUnreadableRange, file, position)
                }
                _ => LoadStop::Unreadable(error),
            },
        }
    }
}

/// Walks from header to header over a range of a log file.
#[derive(Debug)]
pub(super) struct HeaderWalk<'f> {
    file: &'f SegmentFile,
    next: Position,
    end: Position,
    window: Vec<u8>,
    window_start: Position,
}

impl<'f> HeaderWalk<'f> {
    pub(super) fn over(file: &'f SegmentFile, start: Position, end: Position) -> Self {
        Self { file, next: start, end: end.min(file.end()), window: Vec::new(), window_start: start }
    }

    /// `FileLogInputStream.nextBatch`: the end where 17 bytes or fewer are left or a batch reaches beyond the range.
    pub(super) fn next_batch(&mut self) -> Result<Option<RawBatch>, WalkStop> {
        let position = self.next;
        let left = self.end.since(position);
        if left <= len_u64(HEADER_UP_TO_MAGIC) {
            return Ok(None);
        }
        let bytes = self.bytes(position, HEADER_UP_TO_MAGIC).map_err(WalkStop::Unreadable)?;
        let Some((base_offset, size, magic)) = parse_start(bytes, position) else { return Ok(None) };
        if size < LEAST_SIZE {
            return Err(WalkStop::SizeTooSmall(position));
        }
        let size_bytes = u64::from(size.unsigned_abs()).saturating_add(len_u64(LOG_OVERHEAD));
        if size_bytes > left {
            return Ok(None);
        }
        self.next = position.advance(size_bytes);
        Ok(Some(RawBatch { position, base_offset, size_bytes, magic }))
    }

    /// The last batch up to the end of the range.
    fn last_batch(mut self) -> Result<(Self, Option<RawBatch>), WalkStop> {
        let mut last = None;
        while let Some(batch) = self.next_batch()? {
            last = Some(batch);
        }
        Ok((self, last))
    }

    /// The header of a batch of magic 2 and above, which may reach beyond the batch where its size is wrong.
    pub(super) fn header(&mut self, batch: &RawBatch) -> Result<BatchHeader, WalkStop> {
        let position = batch.position;
        if self.file.end().since(position) < len_u64(BATCH_HEADER) {
            return Err(WalkStop::HeaderCut(position));
        }
        let mut bytes = self.bytes(position, BATCH_HEADER).map_err(WalkStop::Unreadable)?.to_vec();
        // A broker reads the fields whatever the size says; the parser wants one that fits.
        let least = (BATCH_HEADER - LOG_OVERHEAD) as u64;
        let stated = batch.size_bytes.saturating_sub(len_u64(LOG_OVERHEAD)).max(least);
        let size = i32::try_from(stated).unwrap_or(i32::MAX).to_be_bytes();
        bytes.iter_mut().skip(SIZE_AT).zip(size).for_each(|(to, from)| *to = from);
        BatchHeader::parse(&bytes, position).map_err(|_| WalkStop::HeaderCut(position))
    }

    pub(super) fn last_offset(&mut self, batch: &RawBatch) -> Result<Offset, WalkStop> {
        if batch.magic < 2 { Ok(batch.base_offset) } else { Ok(self.header(batch)?.last_offset) }
    }

    /// The largest timestamp; -1 where there is none.
    pub(super) fn max_timestamp(&mut self, batch: &RawBatch) -> Result<TimestampMs, WalkStop> {
        let none = TimestampMs(-1);
        match batch.magic {
            2.. => Ok(self.header(batch)?.max_timestamp.unwrap_or(none)),
            1 if batch.size_bytes >= len_u64(LEGACY_WITH_TIMESTAMP) => {
                let bytes = self.bytes(batch.position, LEGACY_WITH_TIMESTAMP).map_err(WalkStop::Unreadable)?;
                Ok(bytes.last_chunk().map_or(none, |bytes| TimestampMs(i64::from_be_bytes(*bytes))))
            }
            _ => Ok(none),
        }
    }

    /// The first offset: of a legacy wrapper that of the first message inside.
    pub(super) fn first_offset(&mut self, batch: &RawBatch, records: &mut RecordReader) -> Result<Offset, WalkStop> {
        if batch.magic >= 2 {
            return Ok(batch.base_offset);
        }
        let attributes = self.bytes(batch.position, HEADER_UP_TO_MAGIC + 1).map_err(WalkStop::Unreadable)?;
        if attributes.last().is_none_or(|attributes| attributes & LEGACY_CODEC == 0) {
            return Ok(batch.base_offset);
        }
        let undecodable = WalkStop::Undecodable(batch.position);
        let mut scanner = LogScanner::over(self.file, batch.position, batch.end());
        let Ok(Some(scanned)) = scanner.next_batch() else { return Err(undecodable) };
        let content =
            records.read(&scanned, &mut |_: &crate::format::record::Record<'_>| std::ops::ControlFlow::Continue(()));
        content.ok().and_then(|content| content.wrapper).map(|wrapper| wrapper.base_offset).ok_or(undecodable)
    }

    /// `len` bytes from `position` on, which lie inside the file.
    fn bytes(&mut self, position: Position, len: usize) -> Result<&[u8], ReadError> {
        let held_end = self.window_start.advance(len_u64(self.window.len()));
        if position < self.window_start || position.advance(len_u64(len)) > held_end {
            let count = len_usize(self.file.end().since(position)).min(READ_BYTES);
            self.window.resize(count, 0);
            self.window_start = position;
            if self.file.read_exact_at(&mut self.window, position).is_err() {
                // A bad sector further on must not hide the header.
                self.window.resize(len, 0);
                self.file.read_exact_at(&mut self.window, position)?;
            }
        }
        let from = len_usize(position.since(self.window_start));
        Ok(self.window.get(from..from.saturating_add(len)).unwrap_or_default())
    }
}

fn parse_start(bytes: &[u8], position: Position) -> Option<(Offset, i32, i8)> {
    let mut cursor = Cursor::at(bytes, position);
    let base_offset = Offset(cursor.read_i64(Shape::BatchHeader).ok()?);
    let size = cursor.read_i32(Shape::BatchHeader).ok()?;
    cursor.read_i32(Shape::BatchHeader).ok()?;
    Some((base_offset, size, cursor.read_i8(Shape::BatchHeader).ok()?))
}

/// A log file with its offset index, as a broker looks things up in it (`LogSegment`).
#[derive(Debug)]
pub(super) struct SegmentReader<'a> {
    pub(super) base: Offset,
    pub(super) log: &'a SegmentFile,
    pub(super) index: &'a [u8],
    pub(super) search: OffsetSearch,
}

impl<'a> SegmentReader<'a> {
    pub(super) fn new(base: Offset, log: &'a SegmentFile, index: &'a [u8], rules: &Rules) -> Self {
        Self { base, log, index, search: rules.offset_search }
    }

    /// `LogSegment.translateOffset`: the batch at which a read of `target` begins.
    pub(super) fn translate(&self, target: Offset, records: &mut RecordReader) -> Result<Option<RawBatch>, WalkStop> {
        let start = match OffsetIndex::new(self.base, self.index).lookup(target) {
            // A broker never starts before the file: `Math.max(mapping.position, 0)`.
            Some((_, entry)) if entry.stored_position() >= 0 => entry.position,
            Some(_) | None => Position(0),
        };
        let mut walk = HeaderWalk::over(self.log, start, self.log.end());
        match self.search {
            OffsetSearch::FirstReaching => first_reaching(&mut walk, target),
            OffsetSearch::LookAhead => look_ahead(&mut walk, target, records),
        }
    }

    /// `LogSegment.readNextOffset`: the offset after the last batch, found from the last index entry on; the base offset where
    /// that leads nowhere.
    pub(super) fn next_offset(&self, records: &mut RecordReader) -> Result<Offset, WalkStop> {
        let last_indexed =
            OffsetIndex::new(self.base, self.index).iter().next_back().map_or(self.base, |entry| entry.offset);
        let Some(start) = self.translate(last_indexed, records)? else { return Ok(self.base) };
        let walk = HeaderWalk::over(self.log, start.position, self.log.end());
        match walk.last_batch()? {
            (mut walk, Some(last)) => Ok(walk.last_offset(&last)?.next()),
            (_, None) => Ok(self.base),
        }
    }
}

fn first_reaching(walk: &mut HeaderWalk<'_>, target: Offset) -> Result<Option<RawBatch>, WalkStop> {
    while let Some(batch) = walk.next_batch()? {
        if walk.last_offset(&batch)? >= target {
            return Ok(Some(batch));
        }
    }
    Ok(None)
}

fn look_ahead(
    walk: &mut HeaderWalk<'_>,
    target: Offset,
    records: &mut RecordReader,
) -> Result<Option<RawBatch>, WalkStop> {
    let mut previous: Option<RawBatch> = None;
    while let Some(batch) = walk.next_batch()? {
        let first_offset = walk.first_offset(&batch, records)?;
        if first_offset == target {
            return Ok(Some(batch));
        }
        if first_offset > target {
            return match reaching(walk, previous, target)? {
                Some(previous) => Ok(Some(previous)),
                None => Ok(Some(batch)),
            };
        }
        previous = Some(batch);
    }
    reaching(walk, previous, target)
}

fn reaching(walk: &mut HeaderWalk<'_>, batch: Option<RawBatch>, target: Offset) -> Result<Option<RawBatch>, WalkStop> {
    match batch {
        Some(batch) if walk.last_offset(&batch)? >= target => Ok(Some(batch)),
        _ => Ok(None),
    }
}

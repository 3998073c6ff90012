//! The split of a segment whose offsets do not fit its base offset (`LocalLog.splitOverflowedSegment`, KAFKA-6264).

use std::collections::BTreeSet;

use super::environment::LoadEnvironment;
use super::failure::LoadStop;
use super::index_rules::{IndexSettings, fits};
use super::log_reading::{HeaderWalk, SegmentReader};
use super::rules::AppendIndexing;
use super::segment_files;
use crate::format::offset_index::{OFFSET_INDEX_ENTRY, OffsetIndexEntry};
use crate::format::time_index::TimeIndexEntry;
use crate::format::{Offset, Position, TimestampMs};
use crate::logdir::SegmentFile;
use crate::logdir::names::FileKind;
use crate::ops::{FindingId, ImageFile, PartitionImage};

/// A split copies pieces of this size at most, or a single larger batch.
const CHUNK_BYTES: u64 = 1024 * 1024;

/// Splits a segment of `segments`, which then holds the new ones. Fails where a broker's start does: where the segment's last
/// offset fits after all, since a broker looks at nothing else, or where bytes are left that are no batch.
pub(super) fn split_segment(
    image: &mut PartitionImage,
    environment: &mut LoadEnvironment<'_>,
    segments: &mut BTreeSet<Offset>,
    base: Offset,
) -> Result<Vec<Offset>, LoadStop> {
    let (log_name, log, index) = segment_files::open(image, environment, base)?;
    let reader = SegmentReader::new(base, &log, &index, environment.rules);
    let next = reader.next_offset(&mut environment.records).map_err(|stop| stop.into_failure(&log_name))?;
    if next <= base || fits(Offset(next.0.saturating_sub(1)), base) {
        return Err(LoadStop::fails(FindingId::BatchOffsetOverflow, &log_name, None));
    }
    let mut pieces = Vec::new();
    let mut position = Position(0);
    while position < log.end() {
        let piece = Piece::copy(&log, position, environment).map_err(|stop| stop.into_failure(&log_name))?;
        let Some(piece) = piece else {
            return Err(LoadStop::fails(FindingId::LogTrailingBytes, &log_name, position));
        };
        position = piece.end;
        pieces.push(piece);
    }
    let bases: BTreeSet<Offset> = pieces.iter().map(|piece| piece.base).collect();
    if bases.len() < pieces.len() || bases.iter().any(|new| *new != base && segments.contains(new)) {
        // Two pieces would share a file, and the sizes would no longer add up.
        return Err(LoadStop::fails(FindingId::BatchOffsetRegression, &log_name, None));
    }
    let Some(source) = image.file(&log_name).cloned() else { return Ok(Vec::new()) };
    for kind in segment_files::SEGMENT_KINDS {
        image.remove(&segment_files::live_name(base, kind));
    }
    segments.remove(&base);
    let mut new = Vec::new();
    for piece in pieces {
        let log_file = ImageFile { content: source.content.slice(piece.start, piece.end), modified: source.modified };
        image.put(&segment_files::live_name(piece.base, FileKind::Log), log_file);
        let (offsets, times) = piece.indexes.finish();
        image.put_bytes(&segment_files::live_name(piece.base, FileKind::OffsetIndex), offsets, source.modified);
        image.put_bytes(&segment_files::live_name(piece.base, FileKind::TimeIndex), times, source.modified);
        segments.insert(piece.base);
        new.push(piece.base);
    }
    Ok(new)
}

/// One of the segments that a split makes.
struct Piece {
    base: Offset,
    start: Position,
    end: Position,
    indexes: AppendedIndexes,
}

impl Piece {
    /// Copies batches from `start` on as long as they fit the first one's base offset. `None` where there is no batch.
    fn copy(
        log: &SegmentFile,
        start: Position,
        environment: &mut LoadEnvironment<'_>,
    ) -> Result<Option<Self>, super::log_reading::WalkStop> {
        let mut walk = HeaderWalk::over(log, start, log.end());
        let Some(first) = walk.next_batch()? else { return Ok(None) };
        let base = walk.first_offset(&first, &mut environment.records)?;
        let mut piece = Self { base, start, end: start, indexes: AppendedIndexes::new(base, environment) };
        let mut chunk = Chunk::default();
        let mut next = Some(first);
        while let Some(batch) = next {
            let last_offset = walk.last_offset(&batch)?;
            if !fits(last_offset, base) {
                break;
            }
            if chunk.size_bytes > 0 && chunk.size_bytes.saturating_add(batch.size_bytes) >= CHUNK_BYTES {
                piece.indexes.append(&chunk);
                chunk = Chunk::default();
            }
            let timestamp = walk.max_timestamp(&batch)?;
            let appended = Appended {
                position: Position(batch.position.since(start)),
                last_offset,
                timestamp,
                size_bytes: batch.size_bytes,
            };
            chunk.push(appended);
            piece.end = batch.end();
            next = walk.next_batch()?;
        }
        piece.indexes.append(&chunk);
        Ok((piece.end > start).then_some(piece))
    }
}

#[derive(Clone, Copy)]
struct Appended {
    position: Position,
    last_offset: Offset,
    timestamp: TimestampMs,
    size_bytes: u64,
}

/// The batches of one append.
#[derive(Default)]
struct Chunk {
    batches: Vec<Appended>,
    size_bytes: u64,
}

impl Chunk {
    fn push(&mut self, batch: Appended) {
        self.size_bytes = self.size_bytes.saturating_add(batch.size_bytes);
        self.batches.push(batch);
    }

    /// The whole append as one: its first position, its last offset, the first batch with the largest timestamp.
    fn as_one(&self) -> Option<(Appended, TimeIndexEntry)> {
        let (first, last) = (self.batches.first()?, self.batches.last()?);
        let largest = self.batches.iter().rev().max_by_key(|batch| batch.timestamp)?;
        let time = TimeIndexEntry { timestamp: largest.timestamp, offset: largest.last_offset };
        Some((Appended { last_offset: last.last_offset, size_bytes: self.size_bytes, ..*first }, time))
    }
}

/// The indexes that appends write (`LogSegment.append`).
struct AppendedIndexes {
    base: Offset,
    settings: IndexSettings,
    indexing: AppendIndexing,
    since_entry: u64,
    largest: TimeIndexEntry,
    last_time: TimestampMs,
    offsets: Vec<u8>,
    times: Vec<u8>,
}

impl AppendedIndexes {
    fn new(base: Offset, environment: &LoadEnvironment<'_>) -> Self {
        Self {
            base,
            settings: environment.index,
            indexing: environment.rules.append_indexing,
            since_entry: 0,
            largest: TimeIndexEntry { timestamp: TimestampMs(-1), offset: Offset(-1) },
            last_time: TimestampMs(-1),
            offsets: Vec::new(),
            times: Vec::new(),
        }
    }

    fn append(&mut self, chunk: &Chunk) {
        match self.indexing {
            AppendIndexing::PerBatch => {
                for batch in &chunk.batches {
                    self.add(batch, TimeIndexEntry { timestamp: batch.timestamp, offset: batch.last_offset });
                }
            }
            AppendIndexing::PerAppend => {
                if let Some((whole, time)) = chunk.as_one() {
                    self.add(&whole, time);
                }
            }
        }
    }

    fn add(&mut self, appended: &Appended, time: TimeIndexEntry) {
        if time.timestamp > self.largest.timestamp {
            self.largest = time;
        }
        let has_room = self.offsets.len() / OFFSET_INDEX_ENTRY < self.settings.offset_index_capacity();
        if self.since_entry > u64::from(self.settings.interval_bytes) && has_room {
            let entry = OffsetIndexEntry { offset: appended.last_offset, position: appended.position };
            // The offset fits, or the batch would not be here; a log file has less than 2^31 bytes.
            let _ = entry.encode(self.base, &mut self.offsets);
            self.append_time();
            self.since_entry = 0;
        }
        self.since_entry = self.since_entry.saturating_add(appended.size_bytes);
    }

    fn append_time(&mut self) {
        if self.largest.timestamp > self.last_time && self.largest.encode(self.base, &mut self.times).is_ok() {
            self.last_time = self.largest.timestamp;
        }
    }

    fn finish(mut self) -> (Vec<u8>, Vec<u8>) {
        self.append_time();
        (self.offsets, self.times)
    }
}

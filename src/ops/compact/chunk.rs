//! The indexes of a cleaned segment, and for brokers that write one entry an append at most: where the cleaner's appends begin and
//! end (`Cleaner.cleanInto`, `growBuffersOrFail`, `LogSegment.append` before KAFKA-806).

use super::failure::{CleanFailure, UncleanableKind};
use super::options::CleanerSettings;
use super::view::OutputBatch;
use crate::format::offset_index::{OFFSET_INDEX_ENTRY, OffsetIndexEntry};
use crate::format::time_index::{TIME_INDEX_ENTRY, TimeIndexEntry};
use crate::format::{Attributes, BatchHeader, Offset, Position, TimestampMs};
use crate::ops::broker::AppendIndexing;
use crate::ops::broker::index_rules::{BuiltIndexes, IndexBuilder, IndexRefusal, IndexSettings, fits};

/// Builds the indexes of one cleaned segment.
#[derive(Debug)]
pub(super) enum Indexer {
    /// Entry by batch, as recovery does.
    PerBatch(Box<IndexBuilder>),
    /// Entry by append.
    PerAppend(Box<AppendIndexer>),
}

impl Indexer {
    pub(super) fn new(base: Offset, settings: &CleanerSettings, indexing: AppendIndexing) -> Self {
        match indexing {
            AppendIndexing::PerBatch => Self::PerBatch(Box::new(IndexBuilder::new(base, settings.index))),
            AppendIndexing::PerAppend => Self::PerAppend(Box::new(AppendIndexer::new(base, settings))),
        }
    }

    /// A source segment begins.
    pub(super) fn begin_source(&mut self, size_bytes: u64) {
        if let Self::PerAppend(indexer) = self {
            indexer.chunks.begin_source(size_bytes);
        }
    }

    /// A batch of so many bytes is read, and this comes out of it.
    pub(super) fn add(&mut self, read_bytes: u64, output: Option<&OutputBatch>) -> Result<(), CleanFailure> {
        match (self, output) {
            (Self::PerBatch(builder), Some(output)) => Ok(builder.add(&as_header(output)).map_err(refusal)?),
            (Self::PerBatch(_), None) => Ok(()),
            (Self::PerAppend(indexer), output) => indexer.add(read_bytes, output),
        }
    }

    /// A source segment ends.
    pub(super) fn end_source(&mut self) -> Result<(), CleanFailure> {
        match self {
            Self::PerBatch(_) => Ok(()),
            Self::PerAppend(indexer) => indexer.flush(),
        }
    }

    /// The files.
    pub(super) fn finish(self) -> Result<BuiltIndexes, CleanFailure> {
        match self {
            Self::PerBatch(builder) => Ok(builder.finish().map_err(refusal)?),
            Self::PerAppend(mut indexer) => {
                indexer.append_time()?;
                Ok(indexer.built)
            }
        }
    }
}

fn refusal(refusal: IndexRefusal) -> UncleanableKind {
    UncleanableKind::Index(refusal)
}

/// The part of a header that indexes are made of.
fn as_header(output: &OutputBatch) -> BatchHeader {
    BatchHeader {
        position: Position(0),
        size_bytes: output.size_bytes,
        magic: 2,
        base_offset: output.last_offset,
        last_offset: output.last_offset,
        crc: 0,
        attributes: Attributes(0),
        leader_epoch: None,
        last_offset_delta: 0,
        base_timestamp: None,
        max_timestamp: output.max_timestamp,
        producer_id: None,
        producer_epoch: None,
        base_sequence: None,
        records_count: None,
    }
}

/// What one append brings.
#[derive(Clone, Copy, Debug)]
struct Append {
    bytes: u64,
    largest_offset: Offset,
    max_timestamp: i64,
    offset_of_max: Offset,
}

impl Append {
    const EMPTY: Self = Self { bytes: 0, largest_offset: Offset(-1), max_timestamp: -1, offset_of_max: Offset(-1) };

    fn add(&mut self, output: &OutputBatch) {
        self.bytes = self.bytes.saturating_add(output.size_bytes);
        self.largest_offset = self.largest_offset.max(output.last_record_offset);
        let timestamp = output.max_timestamp.map_or(-1, |timestamp| timestamp.0);
        if timestamp > self.max_timestamp {
            (self.max_timestamp, self.offset_of_max) = (timestamp, output.last_offset);
        }
    }
}

/// Indexes with an entry by append.
#[derive(Debug)]
pub(super) struct AppendIndexer {
    base: Offset,
    settings: IndexSettings,
    chunks: Chunks,
    append: Append,
    size: u64,
    since_entry: u64,
    largest: (i64, Offset),
    last_time: Option<(i64, Offset)>,
    last_offset: Option<Offset>,
    built: BuiltIndexes,
}

impl AppendIndexer {
    fn new(base: Offset, settings: &CleanerSettings) -> Self {
        Self {
            base,
            settings: settings.index,
            chunks: Chunks::new(settings),
            append: Append::EMPTY,
            size: 0,
            since_entry: 0,
            largest: (-1, Offset(-1)),
            last_time: None,
            last_offset: None,
            built: BuiltIndexes::default(),
        }
    }

    fn add(&mut self, read_bytes: u64, output: Option<&OutputBatch>) -> Result<(), CleanFailure> {
        if !self.chunks.takes(read_bytes) {
            self.flush()?;
            self.chunks.begin_with(read_bytes);
        }
        if let Some(output) = output {
            self.append.add(output);
        }
        // An output that outgrew its buffer is written before more is read.
        if self.chunks.is_outgrown_by(self.append.bytes) {
            self.flush()?;
            self.chunks.end();
        }
        Ok(())
    }

    /// `LogSegment.append` of what has gathered.
    fn flush(&mut self) -> Result<(), CleanFailure> {
        let append = std::mem::replace(&mut self.append, Append::EMPTY);
        if append.bytes == 0 {
            return Ok(());
        }
        if !fits(append.largest_offset, self.base) {
            return Err(UncleanableKind::OffsetOverflow(append.largest_offset).into());
        }
        if append.max_timestamp > self.largest.0 {
            self.largest = (append.max_timestamp, append.offset_of_max);
        }
        if self.since_entry > u64::from(self.settings.interval_bytes) {
            self.append_offset(append.largest_offset)?;
            let entries = self.built.time_index.len() / TIME_INDEX_ENTRY;
            if entries >= self.settings.time_index_capacity().saturating_sub(1) {
                return Err(refusal(IndexRefusal::Full { entries }).into());
            }
            self.append_time()?;
            self.since_entry = 0;
        }
        self.since_entry = self.since_entry.saturating_add(append.bytes);
        self.size = self.size.saturating_add(append.bytes);
        Ok(())
    }

    fn append_offset(&mut self, offset: Offset) -> Result<(), CleanFailure> {
        let entries = self.built.offset_index.len() / OFFSET_INDEX_ENTRY;
        if entries >= self.settings.offset_index_capacity() {
            return Err(refusal(IndexRefusal::Full { entries }).into());
        }
        if let Some(last) = self.last_offset.filter(|last| offset <= *last) {
            return Err(refusal(IndexRefusal::InvalidOffset { offset, last }).into());
        }
        let entry = OffsetIndexEntry { offset, position: Position(self.size) };
        if entry.encode(self.base, &mut self.built.offset_index).is_ok() {
            self.last_offset = Some(offset);
        }
        Ok(())
    }

    /// `TimeIndex.maybeAppend`.
    fn append_time(&mut self) -> Result<(), CleanFailure> {
        let (timestamp, offset) = self.largest;
        if let Some((_, last)) = self.last_time.filter(|(_, last)| offset < *last) {
            return Err(refusal(IndexRefusal::InvalidOffset { offset, last }).into());
        }
        if timestamp > self.last_time.map_or(-1, |(timestamp, _)| timestamp) {
            let entry = TimeIndexEntry { timestamp: TimestampMs(timestamp), offset };
            if entry.encode(self.base, &mut self.built.time_index).is_ok() {
                self.last_time = Some(self.largest);
            }
        }
        Ok(())
    }
}

/// Where the cleaner's reads begin and end. A read takes what fits the buffer of the rest of the file; batches that are whole in it
/// are filtered and what stays is appended at once. Buffers that hold no whole batch grow, and shrink after the segment.
#[derive(Debug)]
struct Chunks {
    first_capacity: u64,
    max_message: u64,
    max_buffer: u64,
    capacity: u64,
    left_in_file: u64,
    /// Bytes that the running chunk can still take.
    left_in_chunk: u64,
}

impl Chunks {
    fn new(settings: &CleanerSettings) -> Self {
        let capacity = settings.io_buffer_bytes.max(1);
        Self {
            first_capacity: capacity,
            max_message: settings.max_message_bytes,
            max_buffer: settings.max_io_buffer_bytes,
            capacity,
            left_in_file: 0,
            left_in_chunk: 0,
        }
    }

    fn begin_source(&mut self, size_bytes: u64) {
        (self.capacity, self.left_in_file, self.left_in_chunk) = (self.first_capacity, size_bytes, 0);
    }

    /// Whether the running chunk holds a batch of so many bytes whole; if so, it is taken.
    fn takes(&mut self, bytes: u64) -> bool {
        let fits = bytes <= self.left_in_chunk;
        if fits {
            self.take(bytes);
        }
        fits
    }

    /// Begins a chunk with this batch, in buffers that hold it.
    fn begin_with(&mut self, bytes: u64) {
        while self.capacity.min(self.left_in_file) < bytes && self.capacity < self.left_in_file {
            let wanted = if self.capacity >= self.max_message { bytes } else { self.max_message };
            let limit = wanted.max(self.max_buffer);
            self.capacity = self.capacity.saturating_mul(2).min(limit).max(self.capacity.saturating_add(1));
        }
        self.left_in_chunk = self.capacity.min(self.left_in_file);
        self.take(bytes);
    }

    fn take(&mut self, bytes: u64) {
        self.left_in_chunk = self.left_in_chunk.saturating_sub(bytes);
        self.left_in_file = self.left_in_file.saturating_sub(bytes);
    }

    fn is_outgrown_by(&self, written: u64) -> bool {
        written > self.capacity
    }

    fn end(&mut self) {
        self.left_in_chunk = 0;
    }
}

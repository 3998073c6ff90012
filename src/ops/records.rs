//! The records of any batch, the same way for every magic, codec and size: one reader for each worker thread.
//!
//! A batch that inflates to at most 4 MiB is decompressed whole into a buffer that is kept; a larger one is streamed, one record in
//! memory at a time. Nothing is believed: the most that a batch may inflate to is the caller's limit.

use std::io::{BufReader, Read};
use std::ops::ControlFlow;

use crate::format::compression::{Codec, CodecOddity, Decompressor, Lz4Checksum};
use crate::format::legacy::{
    InnerRecordStream, LegacyMessage, LegacyOddity, LegacyRecord, SetFacts, Wrapper, read_facts,
};
use crate::format::record::{Headers, Record, RecordStream, RecordStreamError, Records};
use crate::format::{BATCH_HEADER, Batch, BatchHeader, FormatError, FormatErrorKind, Offset, Position, Shape, len_u64};
use crate::logdir::{LargeBatch, MOST_HELD, ReadError, Scanned};

/// Bounds for what a batch may inflate to, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordLimits {
    /// Up to this a batch is held decompressed as a whole.
    pub most_held: u64,
    /// Beyond this it is not read at all.
    pub most: u64,
}

impl Default for RecordLimits {
    fn default() -> Self {
        Self { most_held: MOST_HELD, most: 256 * 1024 * 1024 }
    }
}

/// What reading a batch's records came to.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct BatchContent {
    /// Records given to the visitor.
    pub records_count: u64,
    /// Bytes of the records after decompression, as far as they were read.
    pub uncompressed_bytes: u64,
    /// Of a legacy wrapper: the first and last offset inside, and how many messages.
    pub wrapper: Option<WrapperOffsets>,
    /// What Kafka's decompressors read past without looking.
    pub codec_oddities: Vec<CodecOddity>,
    /// What Kafka's reader of legacy messages accepts without complaint.
    pub legacy_oddities: Vec<LegacyOddity>,
}

/// What the offsets inside a legacy wrapper come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WrapperOffsets {
    /// Offset of the first message.
    pub base_offset: Offset,
    /// Offset of the last complete message.
    pub last_offset: Offset,
    /// Complete messages.
    pub messages_count: u64,
}

impl From<&SetFacts> for WrapperOffsets {
    fn from(facts: &SetFacts) -> Self {
        Self { base_offset: facts.base_offset, last_offset: facts.last_offset, messages_count: facts.messages_count }
    }
}

/// Why the records of a batch could not be read to their end.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    /// The bytes are not what Kafka reads. Positions count in the decompressed records, those of decompression faults in the
    /// compressed ones.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The disk refused.
    #[error(transparent)]
    Read(#[from] std::io::Error),
}

impl From<RecordStreamError> for RecordsError {
    fn from(error: RecordStreamError) -> Self {
        match error {
            RecordStreamError::Format(error) => Self::Format(error),
            // Faults of a decompressor travel inside I/O errors.
            RecordStreamError::Source(error) => match error.downcast::<FormatError>() {
                Ok(error) => Self::Format(error),
                Err(error) => Self::Read(error),
            },
        }
    }
}

/// Is called with each record in turn; `Break` ends the reading without an error.
pub trait Visit: FnMut(&Record<'_>) -> ControlFlow<()> {}
impl<F: FnMut(&Record<'_>) -> ControlFlow<()>> Visit for F {}

/// A visitor that is also given the message that a record of magic 0 or 1 is stored as. Only batches that are held whole are worth
/// code of their own for each visitor.
type VisitStored<'v> = dyn FnMut(&Record<'_>, Option<&LegacyMessage<'_>>) -> ControlFlow<()> + 'v;

/// Reads the records of batch after batch. Keeps its buffers and the decompressors' contexts: one for each thread.
#[derive(Debug, Default)]
pub struct RecordReader {
    decompressor: Decompressor,
    limits: RecordLimits,
}

impl RecordReader {
    /// A reader with these bounds.
    pub fn new(limits: RecordLimits) -> Self {
        Self { decompressor: Decompressor::new(), limits }
    }

    /// Reads all records of a batch of any magic. On an error the visitor has seen the records before the faulty one.
    pub fn read(&mut self, batch: &Scanned<'_>, visit: &mut impl Visit) -> Result<BatchContent, RecordsError> {
        self.read_stored(batch, |record, _| visit(record))
    }

    /// [`Self::read`], where the visitor is also given the message as which a record of magic 0 or 1 is stored.
    pub fn read_stored(
        &mut self,
        batch: &Scanned<'_>,
        mut visit: impl FnMut(&Record<'_>, Option<&LegacyMessage<'_>>) -> ControlFlow<()>,
    ) -> Result<BatchContent, RecordsError> {
        let visit = &mut visit;
        match batch {
            Scanned::Whole(batch) => self.read_held(batch, visit),
            Scanned::Large(batch) if batch.header().is_legacy() => self.read_large_legacy(batch, visit),
            Scanned::Large(batch) => {
                let source = BufReader::with_capacity(64 * 1024, batch.reader_from(BATCH_HEADER));
                self.stream(batch.header(), source, visit)
            }
        }
    }

    /// Reads all records of a batch that is held whole.
    pub fn read_whole(&mut self, batch: &Batch<'_>, visit: &mut impl Visit) -> Result<BatchContent, RecordsError> {
        self.read_held(batch, &mut |record: &Record<'_>, _: Option<&LegacyMessage<'_>>| visit(record))
    }

    fn read_held(
        &mut self,
        batch: &Batch<'_>,
        visit: &mut impl FnMut(&Record<'_>, Option<&LegacyMessage<'_>>) -> ControlFlow<()>,
    ) -> Result<BatchContent, RecordsError> {
        let header = batch.header();
        if header.is_legacy() {
            return self.read_legacy(batch.bytes(), header.position, visit);
        }
        let codec = codec_of(header)?;
        if header.records_count == Some(0) {
            // Kafka does not look at what follows a header that counts no record.
            return Ok(BatchContent::default());
        }
        let whole =
            self.decompressor.decompress(codec, Lz4Checksum::Verified, batch.records_bytes(), self.limits.most_held);
        let decompressed = match whole {
            Ok(decompressed) => decompressed,
            Err(error) if is_limit(&error) => return self.stream(header, batch.records_bytes(), visit),
            Err(error) => return Err(error.into()),
        };
        let mut content = BatchContent {
            uncompressed_bytes: len_u64(decompressed.bytes.len()),
            codec_oddities: decompressed.oddities.to_vec(),
            ..BatchContent::default()
        };
        for record in Records::new(header, decompressed.bytes)? {
            let record = record?;
            content.records_count += 1;
            if visit(&record, None).is_break() {
                break;
            }
        }
        Ok(content)
    }

    fn stream(
        &mut self,
        header: &BatchHeader,
        source: impl Read,
        visit: &mut VisitStored<'_>,
    ) -> Result<BatchContent, RecordsError> {
        let codec = codec_of(header)?;
        if header.records_count == Some(0) {
            return Ok(BatchContent::default());
        }
        let most = self.limits.most;
        let mut content = BatchContent::default();
        let mut records =
            RecordStream::new(header, self.decompressor.stream(codec, Lz4Checksum::Verified, source, most), most)?;
        while let Some(record) = records.next_record()? {
            content.records_count += 1;
            content.uncompressed_bytes = record.position.0.saturating_add(record.size_bytes);
            if visit(&record, None).is_break() {
                return Ok(content);
            }
        }
        content.codec_oddities = records.into_source().oddities().to_vec();
        Ok(content)
    }

    /// A legacy message has no size of its own to stream by: it is read whole, up to the limit.
    fn read_large_legacy(
        &mut self,
        batch: &LargeBatch<'_>,
        visit: &mut VisitStored<'_>,
    ) -> Result<BatchContent, RecordsError> {
        let header = batch.header();
        if header.size_bytes > self.limits.most {
            return Err(
                FormatError::new(header.position, FormatErrorKind::LimitReached { limit: self.limits.most }).into()
            );
        }
        let mut bytes = Vec::new();
        batch.reader().read_to_end(&mut bytes)?;
        self.read_legacy(&bytes, header.position, visit)
    }

    fn read_legacy(
        &mut self,
        bytes: &[u8],
        position: Position,
        visit: &mut VisitStored<'_>,
    ) -> Result<BatchContent, RecordsError> {
        let message = LegacyMessage::parse(bytes, position, Shape::LegacyMessage)?;
        let Some(wrapper) = Wrapper::of(&message)? else {
            let record = LegacyRecord::alone(message);
            let mut content = BatchContent {
                records_count: 1,
                uncompressed_bytes: message.size_bytes,
                legacy_oddities: record.oddities().collect(),
                ..BatchContent::default()
            };
            content.legacy_oddities.shrink_to_fit();
            let _ = visit(&as_record(&record, position), Some(&record.message));
            return Ok(content);
        };
        let set = match wrapper.decode(&mut self.decompressor, self.limits.most_held) {
            Ok(set) => set,
            Err(error) if is_limit(&error) => return self.stream_wrapper(&wrapper, visit),
            Err(error) => return Err(error.into()),
        };
        let mut content = BatchContent {
            uncompressed_bytes: set.content_bytes(),
            wrapper: Some(set.facts().into()),
            codec_oddities: set.codec_oddities().to_vec(),
            legacy_oddities: set.facts().oddities.clone(),
            ..BatchContent::default()
        };
        for record in set.records() {
            let record = record?;
            content.records_count += 1;
            content.legacy_oddities.extend(record.oddities());
            if visit(&as_record(&record, position), Some(&record.message)).is_break() {
                break;
            }
        }
        Ok(content)
    }

    fn stream_wrapper(
        &mut self,
        wrapper: &Wrapper<'_>,
        visit: &mut VisitStored<'_>,
    ) -> Result<BatchContent, RecordsError> {
        let (codec, lz4, most) = (wrapper.codec(), wrapper.lz4_checksum(), self.limits.most);
        // The last offset, which all others hang on, is known only at the end: two passes.
        let first_pass = self.decompressor.stream(codec, lz4, wrapper.compressed(), most);
        let facts = read_facts(wrapper.message(), first_pass)?;
        let mut content = BatchContent {
            wrapper: Some((&facts).into()),
            legacy_oddities: facts.oddities.clone(),
            ..BatchContent::default()
        };
        let second_pass = self.decompressor.stream(codec, lz4, wrapper.compressed(), most);
        let mut records = InnerRecordStream::new(wrapper.message(), &facts, second_pass, most);
        while let Some(record) = records.next_record()? {
            content.records_count += 1;
            let end = record.message.position.advance(record.message.size_bytes);
            content.uncompressed_bytes = end.0;
            content.legacy_oddities.extend(record.oddities());
            if visit(&as_record(&record, wrapper.message().position), Some(&record.message)).is_break() {
                break;
            }
        }
        Ok(content)
    }
}

/// The limit that a batch exceeded, if that is what the error says.
fn is_limit(error: &FormatError) -> bool {
    matches!(error.kind, FormatErrorKind::LimitReached { .. })
}

fn codec_of(header: &BatchHeader) -> Result<Codec, FormatError> {
    let id = header.attributes.codec_id();
    Codec::from_id(id).ok_or_else(|| {
        FormatError::new(
            header.position,
            FormatErrorKind::UnknownValue {
                shape: Shape::BatchHeader,
                field: "compression type",
                found: i64::from(id),
            },
        )
    })
}

fn as_record<'a>(record: &LegacyRecord<'a>, batch_position: Position) -> Record<'a> {
    Record {
        position: record.inner_position.unwrap_or(batch_position),
        size_bytes: record.message.size_bytes,
        attributes: 0,
        offset_delta: 0,
        offset: record.offset,
        timestamp: record.timestamp,
        timestamp_type: record.timestamp_type,
        sequence: None,
        key: record.key,
        value: record.value,
        headers: Headers::default(),
    }
}

/// The reason behind a read error, for those who only have the records' error.
impl From<ReadError> for RecordsError {
    fn from(error: ReadError) -> Self {
        Self::Read(std::io::Error::other(error))
    }
}

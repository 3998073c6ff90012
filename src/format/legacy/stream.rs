//! Wrappers too large to be decompressed as a whole: two passes over their stream, one message in memory at a time.

use std::io::{self, Read};

use super::super::record::RecordStreamError;
use super::super::{Cursor, FormatError, FormatErrorKind, LOG_OVERHEAD, Offset, Position, Shape, len_u64};
use super::message::{LegacyMessage, message_size, size_error};
use super::wrapper::{Context, FactsBuilder, LegacyOddity, LegacyRecord, SetFacts};

/// The first pass over a wrapper's decompressed content: what its offsets come to. Errors are those of
/// [`Wrapper::decode`](super::Wrapper::decode), and those of `content`.
pub fn read_facts(wrapper: &LegacyMessage<'_>, content: impl Read) -> Result<SetFacts, RecordStreamError> {
    let mut entries = EntryStream::new(content);
    let mut facts = FactsBuilder::default();
    while let Some(head) = entries.next_head()? {
        let skipped = io::copy(&mut entries.content.by_ref().take(head.len), &mut io::sink())?;
        if skipped < head.len {
            entries.cut = Some(len_u64(LOG_OVERHEAD).saturating_add(skipped));
            break;
        }
        entries.position = entries.position.advance(len_u64(LOG_OVERHEAD).saturating_add(head.len));
        facts.observe(head.offset);
    }
    Ok(facts.finish(wrapper, entries.cut())?)
}

/// The second pass: the records, one at a time.
#[derive(Debug)]
pub struct InnerRecordStream<R> {
    entries: EntryStream<R>,
    context: Context,
    previous: Option<Offset>,
    entry: Vec<u8>,
    limit: u64,
    left: u64,
}

impl<R: Read> InnerRecordStream<R> {
    /// The records of this wrapper, from its decompressed `content` and the facts of the first pass. No message may take more than
    /// `limit` bytes.
    pub fn new(wrapper: &LegacyMessage<'_>, facts: &SetFacts, content: R, limit: u64) -> Self {
        Self {
            entries: EntryStream::new(content),
            context: Context::of(wrapper, facts),
            previous: None,
            entry: Vec::new(),
            limit,
            left: facts.messages_count,
        }
    }

    /// The next record, or `None` after the last whole one. After an error there are no more.
    pub fn next_record(&mut self) -> Result<Option<LegacyRecord<'_>>, RecordStreamError> {
        // Only what the first pass has seen whole: a cut message may claim any size.
        let left = std::mem::take(&mut self.left);
        if left == 0 {
            return Ok(None);
        }
        let Some(head) = self.entries.next_head()? else { return Ok(None) };
        let position = self.entries.position;
        if head.len > self.limit {
            return Err(FormatError::new(position, FormatErrorKind::LimitReached { limit: self.limit }).into());
        }
        self.entry.clear();
        self.entry.extend_from_slice(&head.bytes);
        let read = self.entries.content.by_ref().take(head.len).read_to_end(&mut self.entry)?;
        if len_u64(read) < head.len {
            return Ok(None);
        }
        self.entries.position = position.advance(len_u64(self.entry.len()));
        let record = self.context.resolve(&self.entry, position, &mut self.previous)?;
        self.left = left.saturating_sub(1);
        Ok(Some(record))
    }
}

/// Offset and size of a message.
#[derive(Clone, Copy, Debug)]
struct Head {
    bytes: [u8; LOG_OVERHEAD],
    offset: Offset,
    /// What the size field says: bytes behind it.
    len: u64,
}

/// Walks a decompressed content by its size fields (`DataLogInputStream`).
#[derive(Debug)]
struct EntryStream<R> {
    content: R,
    position: Position,
    /// Bytes of a cut message at the end.
    cut: Option<u64>,
}

impl<R: Read> EntryStream<R> {
    fn new(content: R) -> Self {
        Self { content, position: Position(0), cut: None }
    }

    fn next_head(&mut self) -> Result<Option<Head>, RecordStreamError> {
        let mut bytes = [0; LOG_OVERHEAD];
        let read = read_up_to(&mut self.content, &mut bytes)?;
        if read < LOG_OVERHEAD {
            self.cut = Some(len_u64(read)).filter(|&count| count > 0);
            return Ok(None);
        }
        let mut cursor = Cursor::at(&bytes, self.position);
        let offset = Offset(cursor.read_i64(Shape::InnerMessage)?);
        let size_position = cursor.position();
        let size = cursor.read_i32(Shape::InnerMessage)?;
        let len = message_size(size).ok_or_else(|| size_error(size_position, size, Shape::InnerMessage))?;
        Ok(Some(Head { bytes, offset, len: len_u64(len) }))
    }

    fn cut(&self) -> Option<LegacyOddity> {
        self.cut.map(|count| LegacyOddity::CutMessage { position: self.position, count })
    }
}

/// Fills `buffer` as far as the data goes.
fn read_up_to(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) {
        match source.read(room) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

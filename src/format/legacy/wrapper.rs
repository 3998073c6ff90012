//! What is inside a wrapper: offsets, times and order as Kafka resolves them, and what it overlooks.

use super::super::compression::{Codec, CodecOddity, Decompressor, Lz4Checksum};
use super::super::{
    Cursor, FormatError, FormatErrorKind, Offset, Position, Shape, TimestampMs, TimestampType, len_u64, len_usize,
};
use super::message::{LegacyMessage, message_size, size_error};

/// Something about a wrapper or a message in it that Kafka reads without complaint. Positions count from the start of the
/// wrapper's decompressed content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LegacyOddity {
    /// The content ends inside a message. Readers drop it, and with magic 1 shift the offsets of all others, because the last
    /// complete message now stands for the wrapper's offset.
    CutMessage {
        /// Where the message starts.
        position: Position,
        /// Bytes of it that are there.
        count: u64,
    },
    /// The wrapper's offset is 0 although its last message's is larger: certain versions of librdkafka. Offsets count from 0.
    WrapperOffsetZero {
        /// The last message's relative offset.
        last_inner_offset: Offset,
    },
    /// A wrapper of magic 0 whose offset is not that of its last message.
    WrapperOffsetDiffers {
        /// The wrapper's offset.
        wrapper_offset: Offset,
        /// The last message's offset.
        last_inner_offset: Offset,
    },
    /// A message whose offset is not larger than that of the one before.
    OffsetNotIncreasing {
        /// Where the message starts.
        position: Position,
        /// The offset of the message before it.
        previous: Offset,
        /// Its own.
        offset: Offset,
    },
    /// A message of another magic than its wrapper (KAFKA-4298). It is read by its own.
    MagicDiffers {
        /// Where the message starts.
        position: Position,
        /// The wrapper's magic.
        wrapper_magic: i8,
        /// The message's.
        magic: i8,
    },
    /// A message whose checksum is wrong; readers look at the wrapper's only.
    CrcMismatch {
        /// Where the message starts.
        position: Position,
        /// The checksum in the message.
        stored: u32,
        /// The checksum of its bytes.
        computed: u32,
    },
    /// Bytes between a message's value and its end.
    BytesAfterValue {
        /// Where the message starts.
        position: Position,
        /// How many.
        count: u64,
    },
}

/// A record of magic 0 or 1, with its offset and time as Kafka gives them to consumers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LegacyRecord<'a> {
    /// The absolute offset.
    pub offset: Offset,
    /// The record's time: its own, or that of its LogAppendTime wrapper.
    pub timestamp: Option<TimestampMs>,
    /// What the time means.
    pub timestamp_type: TimestampType,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value.
    pub value: Option<&'a [u8]>,
    /// Where the message starts in its wrapper's decompressed content; `None` for one that stands alone.
    pub inner_position: Option<Position>,
    /// The message as stored.
    pub message: LegacyMessage<'a>,
    wrapper_magic: Option<i8>,
    previous: Option<Offset>,
}

impl<'a> LegacyRecord<'a> {
    /// The record that a message outside any wrapper is.
    pub fn alone(message: LegacyMessage<'a>) -> Self {
        Self {
            offset: message.offset,
            timestamp: message.timestamp,
            timestamp_type: message.timestamp_type(),
            key: message.key,
            value: message.value,
            inner_position: None,
            message,
            wrapper_magic: None,
            previous: None,
        }
    }

    /// Whether the record deletes its key: a key without a value.
    pub fn is_tombstone(&self) -> bool {
        self.key.is_some() && self.value.is_none()
    }

    /// What is odd about this record. The checksum of a message that stands alone is its batch's and not looked at here.
    pub fn oddities(&self) -> impl Iterator<Item = LegacyOddity> + use<> {
        let (message, position) = (&self.message, self.message.position);
        let after_value = (message.ignored_count > 0)
            .then_some(LegacyOddity::BytesAfterValue { position, count: message.ignored_count });
        let magic = self
            .wrapper_magic
            .filter(|&magic| magic != message.magic)
            .map(|wrapper_magic| LegacyOddity::MagicDiffers { position, wrapper_magic, magic: message.magic });
        let order = self
            .previous
            .filter(|&previous| previous >= self.offset)
            .map(|previous| LegacyOddity::OffsetNotIncreasing { position, previous, offset: self.offset });
        let crc = (self.wrapper_magic.is_some() && !message.crc_matches()).then(|| LegacyOddity::CrcMismatch {
            position,
            stored: message.crc,
            computed: message.computed_crc(),
        });
        [order, magic, crc, after_value].into_iter().flatten()
    }
}

/// A wrapper that Kafka would begin to read: of magic 0 or 1, with a codec that legacy messages know and a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wrapper<'a> {
    message: LegacyMessage<'a>,
    codec: Codec,
    value: &'a [u8],
}

impl<'a> Wrapper<'a> {
    /// The wrapper that this message is, or `None` for a plain one. Errors are what `DeepRecordsIterator` refuses before it
    /// decompresses: another magic, zstd, an unknown codec, a null value.
    pub fn of(message: &LegacyMessage<'a>) -> Result<Option<Self>, FormatError> {
        const SHAPE: Shape = Shape::LegacyMessage;
        if !message.is_wrapper() {
            return Ok(None);
        }
        let unknown = |field, found| {
            FormatError::new(message.position, FormatErrorKind::UnknownValue { shape: SHAPE, field, found })
        };
        if !(0..=1).contains(&message.magic) {
            return Err(unknown("magic", i64::from(message.magic)));
        }
        let id = message.attributes.codec_id();
        let codec = Codec::from_id(id).filter(|&codec| codec != Codec::Zstd);
        let codec = codec.ok_or_else(|| unknown("compression type", i64::from(id)))?;
        let Some(value) = message.value else {
            let kind =
                FormatErrorKind::LengthOutOfRange { shape: SHAPE, found: -1, least: 0, most: i64::from(i32::MAX) };
            return Err(FormatError::new(message.value_position, kind));
        };
        Ok(Some(Self { message: *message, codec, value }))
    }

    /// The message itself.
    pub fn message(&self) -> &LegacyMessage<'a> {
        &self.message
    }

    /// Its codec.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// What to make of an LZ4 header checksum in it.
    pub fn lz4_checksum(&self) -> Lz4Checksum {
        if self.message.magic == 0 { Lz4Checksum::IgnoredInMagic0 } else { Lz4Checksum::Verified }
    }

    /// The compressed content.
    pub fn compressed(&self) -> &'a [u8] {
        self.value
    }

    /// Decompresses the whole content and resolves its offsets. More than `limit` bytes are `LimitReached`: such a wrapper can be
    /// streamed, see [`super::InnerRecordStream`]. Errors in the compressed data carry the position that `message` counts in,
    /// errors in the content count from its start and name [`Shape::InnerMessage`].
    pub fn decode<'b>(&self, decompressor: &'b mut Decompressor, limit: u64) -> Result<InnerSet<'b>, FormatError>
    where
        'a: 'b,
    {
        let done = decompressor
            .decompress(self.codec, self.lz4_checksum(), self.value, limit)
            .map_err(|error| error.offset_by(self.message.value_position))?;
        let mut facts = FactsBuilder::default();
        let mut entries = Entries::new(done.bytes);
        while let Some(entry) = entries.next_entry()? {
            facts.observe(entry.offset);
        }
        let facts = facts.finish(&self.message, entries.cut())?;
        let context = Context::of(&self.message, &facts);
        Ok(InnerSet { facts, context, content: done.bytes, codec_oddities: done.oddities })
    }
}

/// What the inner offsets of a wrapper come to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetFacts {
    /// The absolute offset of the first message, the base offset of the batch that the wrapper is.
    pub base_offset: Offset,
    /// The absolute offset of the last complete message.
    pub last_offset: Offset,
    /// Complete messages inside.
    pub messages_count: u64,
    /// What is odd about the set as a whole.
    pub oddities: Vec<LegacyOddity>,
    /// What is added to every stored offset.
    pub(super) shift: i64,
}

/// Gathers offsets on the first pass over a wrapper's content.
#[derive(Debug, Default)]
pub(super) struct FactsBuilder {
    first: Option<Offset>,
    last: Offset,
    count: u64,
}

impl FactsBuilder {
    pub(super) fn observe(&mut self, offset: Offset) {
        self.first.get_or_insert(offset);
        self.last = offset;
        self.count = self.count.saturating_add(1);
    }

    /// The rules of `DeepRecordsIterator`'s constructor, in its order.
    pub(super) fn finish(
        self,
        wrapper: &LegacyMessage<'_>,
        cut: Option<LegacyOddity>,
    ) -> Result<SetFacts, FormatError> {
        let Some(first) = self.first else {
            let kind =
                FormatErrorKind::LengthOutOfRange { shape: Shape::InnerMessage, found: 0, least: 1, most: i64::MAX };
            return Err(FormatError::new(wrapper.value_position, kind));
        };
        let (wrapper_offset, last_inner_offset) = (wrapper.offset, self.last);
        let mut oddities: Vec<LegacyOddity> = cut.into_iter().collect();
        let shift = match wrapper.magic {
            0 => {
                if wrapper_offset != last_inner_offset {
                    oddities.push(LegacyOddity::WrapperOffsetDiffers { wrapper_offset, last_inner_offset });
                }
                0
            }
            _ if wrapper_offset == Offset(0) => {
                if last_inner_offset > wrapper_offset {
                    oddities.push(LegacyOddity::WrapperOffsetZero { last_inner_offset });
                }
                0
            }
            _ if wrapper_offset < last_inner_offset => {
                let kind = FormatErrorKind::Mismatch {
                    shape: Shape::LegacyMessage,
                    field: "offset",
                    expected: last_inner_offset.0,
                    found: wrapper_offset.0,
                };
                return Err(FormatError::new(wrapper.position, kind));
            }
            // Java's arithmetic wraps; offsets that far apart are nonsense in any case.
            _ => wrapper_offset.0.wrapping_sub(last_inner_offset.0),
        };
        Ok(SetFacts {
            base_offset: Offset(first.0.wrapping_add(shift)),
            last_offset: Offset(last_inner_offset.0.wrapping_add(shift)),
            messages_count: self.count,
            oddities,
            shift,
        })
    }
}

/// How a wrapper bears on the messages in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Context {
    magic: i8,
    timestamp: Option<TimestampMs>,
    timestamp_type: TimestampType,
    shift: i64,
}

impl Context {
    pub(super) fn of(wrapper: &LegacyMessage<'_>, facts: &SetFacts) -> Self {
        Self {
            magic: wrapper.magic,
            timestamp: wrapper.timestamp,
            timestamp_type: wrapper.timestamp_type(),
            shift: facts.shift,
        }
    }

    /// The record that the inner message at the start of `entry` is. Wrappers inside wrappers are an error.
    pub(super) fn resolve<'b>(
        &self,
        entry: &'b [u8],
        position: Position,
        previous: &mut Option<Offset>,
    ) -> Result<LegacyRecord<'b>, FormatError> {
        let message = LegacyMessage::parse(entry, position, Shape::InnerMessage)?;
        if message.is_wrapper() {
            let kind = FormatErrorKind::Mismatch {
                shape: Shape::InnerMessage,
                field: "compression type",
                expected: 0,
                found: i64::from(message.attributes.codec_id()),
            };
            return Err(FormatError::new(position, kind));
        }
        let (timestamp, timestamp_type) = match (message.magic, self.timestamp_type) {
            (0, _) => (None, TimestampType::None),
            (1, TimestampType::LogAppendTime) => (self.timestamp, TimestampType::LogAppendTime),
            (1, wrapper_type) => (message.timestamp, wrapper_type),
            _ => (message.timestamp, message.timestamp_type()),
        };
        let offset = Offset(message.offset.0.wrapping_add(self.shift));
        Ok(LegacyRecord {
            offset,
            timestamp,
            timestamp_type,
            key: message.key,
            value: message.value,
            inner_position: Some(position),
            message,
            wrapper_magic: Some(self.magic),
            previous: previous.replace(offset),
        })
    }
}

/// The decompressed content of a wrapper.
#[derive(Clone, Debug)]
pub struct InnerSet<'b> {
    facts: SetFacts,
    context: Context,
    content: &'b [u8],
    codec_oddities: &'b [CodecOddity],
}

impl<'b> InnerSet<'b> {
    /// Offsets, count and oddities of the set.
    pub fn facts(&self) -> &SetFacts {
        &self.facts
    }

    /// What is odd about the compressed stream; positions count from the start of the wrapper's value.
    pub fn codec_oddities(&self) -> &'b [CodecOddity] {
        self.codec_oddities
    }

    /// Bytes of the decompressed content.
    pub fn content_bytes(&self) -> u64 {
        len_u64(self.content.len())
    }

    /// The records, in order.
    pub fn records(&self) -> InnerRecords<'b> {
        InnerRecords { entries: Entries::new(self.content), context: self.context, previous: None, is_over: false }
    }
}

/// The records of an [`InnerSet`]; ends after an error.
#[derive(Clone, Debug)]
pub struct InnerRecords<'b> {
    entries: Entries<'b>,
    context: Context,
    previous: Option<Offset>,
    is_over: bool,
}

impl<'b> Iterator for InnerRecords<'b> {
    type Item = Result<LegacyRecord<'b>, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let outcome = match self.entries.next_entry() {
            Ok(None) => return None,
            Ok(Some(entry)) => self.context.resolve(entry.bytes, entry.position, &mut self.previous),
            Err(error) => Err(error),
        };
        self.is_over = outcome.is_err();
        Some(outcome)
    }
}

/// One message of a decompressed content, not yet parsed.
#[derive(Clone, Copy, Debug)]
struct Entry<'b> {
    position: Position,
    offset: Offset,
    bytes: &'b [u8],
}

/// Walks a decompressed content by its size fields (`DataLogInputStream`).
#[derive(Clone, Debug)]
struct Entries<'b> {
    cursor: Cursor<'b>,
}

impl<'b> Entries<'b> {
    fn new(content: &'b [u8]) -> Self {
        Self { cursor: Cursor::new(content) }
    }

    /// The next whole message. A cut one ends the set in silence; a size below 14 is an error.
    fn next_entry(&mut self) -> Result<Option<Entry<'b>>, FormatError> {
        const SHAPE: Shape = Shape::InnerMessage;
        let mut ahead = self.cursor;
        let position = ahead.position();
        let Ok(offset) = ahead.read_i64(SHAPE) else { return Ok(None) };
        let size_position = ahead.position();
        let Ok(size) = ahead.read_i32(SHAPE) else { return Ok(None) };
        let len = message_size(size).ok_or_else(|| size_error(size_position, size, SHAPE))?;
        let overhead = len_usize(ahead.position().since(position));
        let Ok(bytes) = self.cursor.read_bytes(SHAPE, overhead.saturating_add(len)) else { return Ok(None) };
        Ok(Some(Entry { position, offset: Offset(offset), bytes }))
    }

    /// After the last whole message: what is left of a cut one.
    fn cut(&self) -> Option<LegacyOddity> {
        let count = len_u64(self.cursor.remaining());
        (count > 0).then(|| LegacyOddity::CutMessage { position: self.cursor.position(), count })
    }
}

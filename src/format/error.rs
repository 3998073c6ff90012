//! What can be wrong with bytes: a position and typed facts. The path is added by `logdir`, the sentence by `render`.

use super::compression::{Codec, CodecFault};
use super::{Offset, Position, TimestampMs};

/// The structure that was being read when bytes turned out wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Shape {
    /// A batch header of magic 2.
    BatchHeader,
    /// A message of magic 0 or 1.
    LegacyMessage,
    /// A message inside a compressed wrapper of magic 0 or 1.
    InnerMessage,
    /// A record of a magic 2 batch.
    Record,
    /// A header of a record.
    RecordHeader,
    /// Key or value of a control record.
    ControlRecord,
    /// A variable-length integer.
    Varint,
    /// A compressed stream or one of its frames.
    CompressedStream,
    /// An entry of an offset index.
    OffsetIndexEntry,
    /// An entry of a time index.
    TimeIndexEntry,
    /// An entry of a transaction index.
    TxnIndexEntry,
    /// A producer snapshot.
    ProducerSnapshot,
    /// A checkpoint or another text file.
    TextFile,
    /// Key or value of an internal topic.
    Message,
}

/// The kind of fault, with what was expected and what was found.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatErrorKind {
    /// The data ends inside a structure.
    #[error("{shape:?} needs {needed} bytes, {available} are left")]
    UnexpectedEnd {
        /// What was being read.
        shape: Shape,
        /// Bytes the structure needs from here.
        needed: u64,
        /// Bytes that are left.
        available: u64,
    },
    /// A length or count that cannot be.
    #[error("{shape:?} has length {found}, possible are {least} to {most}")]
    LengthOutOfRange {
        /// What was being read.
        shape: Shape,
        /// The length or count found.
        found: i64,
        /// The least that is possible here.
        least: i64,
        /// The most that is possible here.
        most: i64,
    },
    /// A varint longer than its type allows.
    #[error("varint does not end within {limit} bytes")]
    VarintTooLong {
        /// Bytes that the type allows.
        limit: u8,
    },
    /// Bytes are left where the structure ends.
    #[error("{count} bytes are left after {shape:?}")]
    TrailingBytes {
        /// What had been read.
        shape: Shape,
        /// How many bytes are left.
        count: u64,
    },
    /// A value outside the known ones.
    #[error("{shape:?} has unknown {field} {found}")]
    UnknownValue {
        /// What was being read.
        shape: Shape,
        /// Kafka's name of the field.
        field: &'static str,
        /// The value found.
        found: i64,
    },
    /// Two fields that must agree do not.
    #[error("{shape:?}: {field} is {found}, expected {expected}")]
    Mismatch {
        /// What was being read.
        shape: Shape,
        /// Kafka's name of the field.
        field: &'static str,
        /// What it should be.
        expected: i64,
        /// What it is.
        found: i64,
    },
    /// A checksum is wrong.
    #[error("{shape:?}: crc {stored:#010x}, computed {computed:#010x}")]
    ChecksumMismatch {
        /// What was being read.
        shape: Shape,
        /// The checksum in the data.
        stored: u32,
        /// The checksum of the data.
        computed: u32,
    },
    /// A compressed stream is not one that Kafka reads.
    #[error("{codec} stream: {fault}")]
    Decompression {
        /// Its codec.
        codec: Codec,
        /// What is wrong with it.
        fault: CodecFault,
    },
    /// Decompression or a structure would exceed the bound that the caller gave.
    #[error("more than {limit} bytes")]
    LimitReached {
        /// The bound in bytes.
        limit: u64,
    },
    /// Text that does not have the form it must have.
    #[error("line {line}: expected {expected}")]
    MalformedLine {
        /// Line number, from 1.
        line: u32,
        /// What should stand there.
        expected: &'static str,
    },
    /// A field of a line that is no number where Kafka calls for one and does not look at it before.
    #[error("line {line}: {field} is no number")]
    NotANumber {
        /// Line number, from 1.
        line: u32,
        /// Kafka's name of the field.
        field: &'static str,
    },
    /// A field that is no id of 16 bytes in base64url.
    #[error("line {line}: {field} is no id")]
    NotAnId {
        /// Line number, from 1.
        line: u32,
        /// Kafka's name of the field.
        field: &'static str,
    },
    /// A field that has to be there.
    #[error("{shape:?} has no {field}")]
    MissingField {
        /// What was being read.
        shape: Shape,
        /// Kafka's name of the field.
        field: &'static str,
    },
    /// An offset that an index of this base cannot hold: below it, or more than 2^31 - 1 above.
    #[error("{shape:?}: offset {offset} cannot be stored relative to {base}")]
    RelativeOffsetOverflow {
        /// What was being written.
        shape: Shape,
        /// The offset.
        offset: Offset,
        /// What it is relative to.
        base: Offset,
    },
    /// A position that 31 bits do not hold.
    #[error("{shape:?}: position {found} does not fit 31 bits")]
    PositionOverflow {
        /// What was being written.
        shape: Shape,
        /// The position.
        found: Position,
    },
    /// A time that cannot be.
    #[error("timestamp {0} is not possible here")]
    TimestampOutOfRange(TimestampMs),
}

/// A fault and its place. The position is relative to the start of the data that was given; callers that know more add to it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("position {position}: {kind}")]
pub struct FormatError {
    /// Where the faulty structure or field starts.
    pub position: Position,
    /// What is wrong there.
    pub kind: FormatErrorKind,
}

impl FormatError {
    /// A fault at a place.
    pub fn new(position: Position, kind: FormatErrorKind) -> Self {
        Self { position, kind }
    }

    /// The same fault, seen from data that starts `base` bytes earlier.
    #[must_use]
    pub fn offset_by(mut self, base: Position) -> Self {
        self.position = base.advance(self.position.0);
        self
    }
}

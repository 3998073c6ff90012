//! What can be wrong inside a message. The texts are those of Kafka's generated readers, since tools show them.

use std::fmt;

use crate::format::{Position, Shape};

/// Whether a fault concerns a field or one of the elements of an array field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The field itself.
    Field,
    /// An element of the array in that field.
    Element,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Field => "",
            Self::Element => " element",
        })
    }
}

/// The kind of fault. Each text is the one that the exception of Kafka's generated reader carries; an exception without a text
/// reads `null`, as Java prints it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MessageErrorKind {
    /// Null where the schema has no null.
    #[error("non-nullable field {field}{part} was serialized as null")]
    Null {
        /// The field's name.
        field: &'static str,
        /// The field or an element of it.
        part: Part,
    },
    /// A string longer than 32767 bytes.
    #[error("string field {field}{part} had invalid length {length}")]
    StringTooLong {
        /// The field's name.
        field: &'static str,
        /// The field or an element of it.
        part: Part,
        /// The length found, in bytes.
        length: i32,
    },
    /// A string or byte array that goes beyond the end.
    #[error("Error reading byte array of {length} byte(s): only {available} byte(s) available")]
    BytesBeyondEnd {
        /// The length found, in bytes.
        length: i32,
        /// Bytes that are left.
        available: usize,
    },
    /// More array elements than bytes that are left.
    #[error("Tried to allocate a collection of size {count}, but there are only {available} bytes remaining.")]
    CountBeyondEnd {
        /// The count found.
        count: i32,
        /// Bytes that are left.
        available: usize,
    },
    /// More array elements than Kafka reads.
    #[error("Tried to read a collection of size {count}, which exceeds the maximum allowed size of 1000000.")]
    CountAboveLimit {
        /// The count found.
        count: i32,
    },
    /// A count of tagged fields below zero.
    #[error("Invalid negative number of tagged fields {count}")]
    NegativeTagCount {
        /// The count found.
        count: i32,
    },
    /// More tagged fields than bytes that are left.
    #[error("Tried to read {count} tagged fields, but there are only {available} bytes remaining.")]
    TagCountBeyondEnd {
        /// The count found.
        count: i32,
        /// Bytes that are left.
        available: usize,
    },
    /// More tagged fields than Kafka reads.
    #[error("Tried to read {count} tagged fields, which exceeds the maximum allowed count of 10000.")]
    TagCountAboveLimit {
        /// The count found.
        count: i32,
    },
    /// A negative size of an unknown tagged field; Java's text for an array of that size.
    #[error("{size}")]
    NegativeTagSize {
        /// The size found.
        size: i32,
    },
    /// A tag that the schema has, but not in this version.
    #[error("Tag {tag} is not valid for version {version}")]
    TagOfOtherVersion {
        /// The tag.
        tag: u32,
        /// The version as stored.
        version: i16,
    },
    /// A structure that refuses versions beyond its message's.
    #[error("Can't read version {version} of {structure}")]
    UnreadableVersion {
        /// The version as stored.
        version: i16,
        /// The structure's name.
        structure: &'static str,
    },
    /// A fifth varint byte that says there are more.
    #[error("Varint is too long, the most significant bit in the 5th byte is set, converted value: {converted:x}")]
    VarintTooLong {
        /// The number that its five bytes make.
        converted: u32,
    },
    /// The data ends inside a number.
    #[error("null")]
    End,
}

/// A fault and the byte of the key or value at which it was met.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{kind}")]
pub struct MessageError {
    /// Where reading stood, from the start of the key or value.
    pub position: Position,
    /// What is wrong there.
    pub kind: MessageErrorKind,
}

/// The shape that readers here name to the cursor.
pub(super) const SHAPE: Shape = Shape::Message;

//! The interpreter: bytes and a schema to a tree, by the rules of Kafka's generated readers (`MessageDataGenerator`).
//!
//! Numbers are big-endian. In classic versions a string has an int16 length, bytes and arrays an int32 one, and a negative length
//! is null. In flexible versions lengths are unsigned varints of length + 1, with 0 for null, and every structure ends in a
//! section of tagged fields: count, then tag, size and payload of each. A version that the schema does not list is read as the
//! nearest that it does.

use std::borrow::Cow;

use super::error::{MessageError, MessageErrorKind, Part, SHAPE};
use super::schema::{Default, Field, Schema, Type};
use super::value::{Struct, UnknownTag, Value};
use crate::format::{Cursor, FormatErrorKind};

/// The longest string, in bytes.
const STRING_LIMIT: i32 = 0x7fff;
/// The most elements of an array (since Kafka 4.4).
const COUNT_LIMIT: i32 = 1_000_000;
/// The most tagged fields of a structure (since Kafka 4.4).
const TAG_COUNT_LIMIT: i32 = 10_000;

/// What reading a body found.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Body<'a> {
    pub(super) fields: Struct<'a>,
    pub(super) trailing_bytes: usize,
    pub(super) tag_size_mismatches: u32,
}

/// Reads a message's body from the cursor to where its schema ends.
pub(super) fn read_body<'a>(
    schema: &'static Schema,
    cursor: Cursor<'a>,
    stored: i16,
) -> Result<Body<'a>, MessageError> {
    let version = schema.nearest(stored);
    let is_flexible = schema.is_flexible(version);
    let mut reader =
        Reader { cursor, version, stored, highest: schema.versions.highest, is_flexible, tag_size_mismatches: 0 };
    let fields = reader.read_fields(&schema.fields)?;
    Ok(Body { fields, trailing_bytes: reader.cursor.remaining(), tag_size_mismatches: reader.tag_size_mismatches })
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    version: i16,
    stored: i16,
    highest: i16,
    is_flexible: bool,
    tag_size_mismatches: u32,
}

impl<'a> Reader<'a> {
    fn error(&self, kind: MessageErrorKind) -> MessageError {
        MessageError { position: self.cursor.position(), kind }
    }

    fn end<T, E>(&self, read: Result<T, E>) -> Result<T, MessageError> {
        read.map_err(|_| self.error(MessageErrorKind::End))
    }

    fn read_fields(&mut self, schema: &'static [Field]) -> Result<Struct<'a>, MessageError> {
        let mut values: Vec<Option<Value<'a>>> = Vec::new();
        for field in schema {
            let is_tagged =
                self.is_flexible && field.tagged.is_some_and(|(_, versions)| versions.contains(self.version));
            let is_here = field.versions.contains(self.version) && !is_tagged;
            values.push(if is_here { Some(self.read_untagged(field)?) } else { None });
        }
        let mut unknown_tags = Vec::new();
        if self.is_flexible {
            for _ in 0..self.read_tag_count()? {
                self.read_tagged(schema, &mut values, &mut unknown_tags)?;
            }
        }
        let fields = schema.iter().zip(values).filter_map(|(field, value)| Some((field.name, value?))).collect();
        Ok(Struct { fields, unknown_tags })
    }

    fn read_tag_count(&mut self) -> Result<i32, MessageError> {
        let count = self.read_unsigned_varint()? as i32;
        let available = self.cursor.remaining();
        let kind = if count < 0 {
            MessageErrorKind::NegativeTagCount { count }
        } else if is_beyond(count, available) {
            MessageErrorKind::TagCountBeyondEnd { count, available }
        } else if count > TAG_COUNT_LIMIT {
            MessageErrorKind::TagCountAboveLimit { count }
        } else {
            return Ok(count);
        };
        Err(self.error(kind))
    }

    fn read_tagged(
        &mut self,
        schema: &'static [Field],
        values: &mut [Option<Value<'a>>],
        unknown_tags: &mut Vec<UnknownTag<'a>>,
    ) -> Result<(), MessageError> {
        let tag = self.read_unsigned_varint()?;
        let size = self.read_unsigned_varint()?;
        let known = schema.iter().zip(values).find(|(field, _)| field.tagged.is_some_and(|(known, _)| known == tag));
        let Some((field, slot)) = known else {
            let size = size as i32;
            if size < 0 {
                return Err(self.error(MessageErrorKind::NegativeTagSize { size }));
            }
            let payload = self.read_bytes(size)?;
            unknown_tags.push(UnknownTag { tag, payload });
            return Ok(());
        };
        if !field.tagged.is_some_and(|(_, versions)| versions.contains(self.version)) {
            return Err(self.error(MessageErrorKind::TagOfOtherVersion { tag, version: self.stored }));
        }
        let before = self.cursor.position();
        let value = self.read_tagged_payload(field)?;
        if self.cursor.position().since(before) != u64::from(size) {
            self.tag_size_mismatches = self.tag_size_mismatches.saturating_add(1);
        }
        *slot = if is_default(field, &value) { None } else { Some(value) };
        Ok(())
    }

    fn read_untagged(&mut self, field: &'static Field) -> Result<Value<'a>, MessageError> {
        if matches!(field.kind, Type::Struct { .. }) && self.is_nullable(field) {
            let marker = self.cursor.read_i8(SHAPE);
            if self.end(marker)? < 0 {
                return Ok(Value::Null);
            }
        }
        self.read_value(field, &field.kind, Part::Field)
    }

    fn read_tagged_payload(&mut self, field: &'static Field) -> Result<Value<'a>, MessageError> {
        if matches!(field.kind, Type::Struct { .. })
            && self.is_nullable(field)
            && (self.read_unsigned_varint()? as i32) <= 0
        {
            return Ok(Value::Null);
        }
        self.read_value(field, &field.kind, Part::Field)
    }

    fn is_nullable(&self, field: &Field) -> bool {
        field.nullable.is_some_and(|versions| versions.contains(self.version))
    }

    fn read_value(
        &mut self,
        field: &'static Field,
        kind: &'static Type,
        part: Part,
    ) -> Result<Value<'a>, MessageError> {
        let cursor = &mut self.cursor;
        let read = match kind {
            Type::Bool => cursor.read_i8(SHAPE).map(|byte| Value::Bool(byte != 0)),
            Type::Int8 => cursor.read_i8(SHAPE).map(|number| Value::Int(number.into())),
            Type::Int16 => cursor.read_i16(SHAPE).map(|number| Value::Int(number.into())),
            Type::Uint16 => cursor.read_u16(SHAPE).map(|number| Value::Int(number.into())),
            Type::Int32 => cursor.read_i32(SHAPE).map(|number| Value::Int(number.into())),
            Type::Uint32 => cursor.read_u32(SHAPE).map(|number| Value::Int(number.into())),
            Type::Int64 => cursor.read_i64(SHAPE).map(Value::Int),
            Type::Float64 => cursor.read_array(SHAPE).map(|bytes| Value::Float(f64::from_be_bytes(*bytes))),
            Type::Uuid => cursor.read_array(SHAPE).map(|bytes| Value::Uuid(*bytes)),
            Type::Text => return self.read_text(field, part),
            Type::Bytes => {
                let length = self.read_length()?;
                return if length < 0 {
                    self.read_null(field, part)
                } else {
                    Ok(Value::Bytes(self.read_bytes(length)?))
                };
            }
            Type::Struct { name, fields, checks_version } => {
                if *checks_version && self.stored > self.highest {
                    let fault = MessageErrorKind::UnreadableVersion { version: self.stored, structure: name };
                    return Err(self.error(fault));
                }
                return self.read_fields(fields).map(Value::Struct);
            }
            Type::Array(element) => return self.read_array(field, element),
        };
        self.end(read)
    }

    fn read_array(&mut self, field: &'static Field, element: &'static Type) -> Result<Value<'a>, MessageError> {
        let count = self.read_length()?;
        if count < 0 {
            return self.read_null(field, Part::Field);
        }
        let available = self.cursor.remaining();
        if is_beyond(count, available) {
            return Err(self.error(MessageErrorKind::CountBeyondEnd { count, available }));
        }
        if count > COUNT_LIMIT {
            return Err(self.error(MessageErrorKind::CountAboveLimit { count }));
        }
        let mut elements = Vec::new();
        for _ in 0..count {
            elements.push(self.read_value(field, element, Part::Element)?);
        }
        Ok(Value::Array(elements))
    }

    fn read_text(&mut self, field: &'static Field, part: Part) -> Result<Value<'a>, MessageError> {
        let length = if self.is_flexible {
            self.read_length()?
        } else {
            let length = self.cursor.read_i16(SHAPE);
            i32::from(self.end(length)?)
        };
        if length < 0 {
            return self.read_null(field, part);
        }
        if length > STRING_LIMIT {
            return Err(self.error(MessageErrorKind::StringTooLong { field: field.name, part, length }));
        }
        Ok(Value::Text(Cow::Borrowed(self.read_bytes(length)?)))
    }

    fn read_null(&self, field: &'static Field, part: Part) -> Result<Value<'a>, MessageError> {
        if part == Part::Field && self.is_nullable(field) {
            return Ok(Value::Null);
        }
        Err(self.error(MessageErrorKind::Null { field: field.name, part }))
    }

    /// The length of bytes or the count of an array; negative is null.
    fn read_length(&mut self) -> Result<i32, MessageError> {
        if self.is_flexible {
            return Ok((self.read_unsigned_varint()? as i32).wrapping_sub(1));
        }
        let length = self.cursor.read_i32(SHAPE);
        self.end(length)
    }

    fn read_bytes(&mut self, length: i32) -> Result<&'a [u8], MessageError> {
        let wanted = usize::try_from(length).unwrap_or(usize::MAX);
        self.cursor
            .read_bytes(SHAPE, wanted)
            .map_err(|_| self.error(MessageErrorKind::BytesBeyondEnd { length, available: self.cursor.remaining() }))
    }

    fn read_unsigned_varint(&mut self) -> Result<u32, MessageError> {
        let start = self.cursor;
        self.cursor.read_unsigned_varint(SHAPE).map_err(|error| {
            let kind = match error.kind {
                FormatErrorKind::VarintTooLong { .. } => {
                    MessageErrorKind::VarintTooLong { converted: five_byte_number(start.rest()) }
                }
                _ => MessageErrorKind::End,
            };
            self.error(kind)
        })
    }
}

fn is_beyond(count: i32, available: usize) -> bool {
    usize::try_from(count).is_ok_and(|count| count > available)
}

/// The number that Kafka shows of a varint of more than five bytes: the last byte's sign bit is shifted out or set with it.
fn five_byte_number(bytes: &[u8]) -> u32 {
    bytes.iter().take(5).enumerate().fold(0, |number, (place, byte)| {
        let group = if place == 4 { i32::from(*byte as i8) as u32 } else { u32::from(byte & 0x7f) };
        number | group.wrapping_shl(7 * u32::try_from(place).unwrap_or(0))
    })
}

fn is_default(field: &Field, value: &Value<'_>) -> bool {
    match field.default {
        Default::Null => *value == Value::Null,
        Default::Int(number) => *value == Value::Int(number),
        Default::Empty => is_empty(&field.kind, value),
    }
}

fn is_empty(kind: &Type, value: &Value<'_>) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => !truth,
        Value::Int(number) => *number == 0,
        Value::Float(number) => number.to_bits() == 0,
        Value::Text(bytes) => bytes.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::Uuid(id) => *id == [0; 16],
        Value::Array(elements) => elements.is_empty(),
        Value::Struct(structure) => {
            let Type::Struct { fields, .. } = kind else { return false };
            structure.unknown_tags.is_empty()
                && structure.fields.iter().all(|(name, value)| {
                    fields.iter().find(|field| field.name == *name).is_some_and(|field| is_default(field, value))
                })
        }
    }
}

//! The ordered tree that a message is read into.

use std::borrow::Cow;

/// A value of a field. Text keeps its bytes as stored: what is not UTF-8 stays so until it is printed.
#[derive(Clone, PartialEq, Debug)]
pub enum Value<'a> {
    /// Null.
    Null,
    /// A truth value.
    Bool(bool),
    /// Any integer; all of Kafka's types fit.
    Int(i64),
    /// An IEEE 754 double.
    Float(f64),
    /// A string's bytes.
    Text(Cow<'a, [u8]>),
    /// A byte array.
    Bytes(&'a [u8]),
    /// A UUID, most significant byte first.
    Uuid([u8; 16]),
    /// An array.
    Array(Vec<Value<'a>>),
    /// A structure.
    Struct(Struct<'a>),
}

/// A structure's fields in the order in which the schema declares them, tagged ones at their declared place. A field that the
/// version lacks, and a tagged field that has its default, is not here.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Struct<'a> {
    /// Names and values.
    pub fields: Vec<(&'static str, Value<'a>)>,
    /// Tagged fields that the schema does not know, in stored order.
    pub unknown_tags: Vec<UnknownTag<'a>>,
}

/// A tagged field of a later schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownTag<'a> {
    /// Its tag.
    pub tag: u32,
    /// Its bytes, undecoded.
    pub payload: &'a [u8],
}

impl<'a> Struct<'a> {
    /// The value of a field, if it is here.
    pub fn field(&self, name: &str) -> Option<&Value<'a>> {
        self.fields.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// The same, to change it in place.
    pub(super) fn field_mut(&mut self, name: &str) -> Option<&mut Value<'a>> {
        self.fields.iter_mut().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

impl Value<'_> {
    /// The integer, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The text's bytes, if it is text.
    pub fn as_text(&self) -> Option<&[u8]> {
        match self {
            Self::Text(bytes) => Some(bytes),
            _ => None,
        }
    }
}

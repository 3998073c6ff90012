//! Keys and values of Kafka's internal topics: one table of schemas, one interpreter, an ordered tree of values.
//!
//! The table is Kafka 4.4.0's, with the layouts of older releases that its schemas cannot read. The interpreter follows Kafka's
//! generated readers to the text of their errors, so that a dump can say what Kafka's tool says. Unknown types and versions are
//! returned as facts and never guessed.

mod decode;
mod error;
mod group;
mod read;
mod schema;
mod value;

pub use decode::{
    DecodeError, FrameField, InternalTopic, Layouts, Message, Side, decode_control, decode_framed, decode_key,
    decode_value,
};
pub use error::{MessageError, MessageErrorKind, Part};
pub use value::{Struct, UnknownTag, Value};

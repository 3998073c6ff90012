//! Records of Kafka's internal topics: which schemas they have, what is in them, and how a key is named on a command line.

use super::event::Source;
use crate::format::message::{
    DecodeError, InternalTopic, Layouts, Message, Value, decode_framed, decode_key, decode_value,
};
use crate::format::record::Record;

/// By which internal topic's schemas records are decoded.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Decode {
    /// By the name of the topic they lie in; other topics' are left as they are.
    #[default]
    ByTopic,
    /// None are.
    Never,
    /// All as if they lay in this topic.
    As(InternalTopic),
}

impl Decode {
    /// The internal topic whose schemas a file's records have.
    pub fn topic_of(self, source: &Source) -> Option<InternalTopic> {
        match self {
            Self::Never => None,
            Self::As(topic) => Some(topic),
            Self::ByTopic => match &source.topic_partition {
                Some(topic_partition) => InternalTopic::by_name(topic_partition.topic_str()?),
                // Snapshots of the metadata log also lie outside its directory.
                None => (source.path.extension()? == "checkpoint").then_some(InternalTopic::ClusterMetadata),
            },
        }
    }
}

/// Key and value of a record as their schemas read them; `None` is null.
#[derive(Clone, PartialEq, Debug)]
pub struct DecodedRecord<'a> {
    /// The key. Metadata topics have none, whatever is stored.
    pub key: Option<Result<Message<'a>, DecodeError>>,
    /// The value. Without a decoded key a coordinator's value has no schema.
    pub value: Option<Result<Message<'a>, DecodeError>>,
}

impl<'a> DecodedRecord<'a> {
    /// Decodes a record, also by the layouts that older releases wrote.
    pub fn of(topic: InternalTopic, record: &Record<'a>) -> Self {
        let layouts = Layouts::WithOlder;
        if topic.is_framed() {
            return Self { key: None, value: record.value.map(|value| decode_framed(topic, value, layouts)) };
        }
        let key = record.key.map(|key| decode_key(topic, key, layouts));
        let value = match (&key, record.value) {
            (Some(Ok(key)), Some(value)) => Some(decode_value(topic, key.type_id, value, layouts)),
            (Some(Err(error)), Some(_)) => Some(Err(error.clone())),
            _ => None,
        };
        Self { key, value }
    }

    /// Whether both sides that are there could be decoded.
    pub fn is_whole(&self) -> bool {
        let fits = |side: &Option<Result<Message<'_>, DecodeError>>| side.as_ref().is_none_or(Result::is_ok);
        fits(&self.key) && fits(&self.value)
    }
}

/// Whether `text` names a coordinator's key: the values of its fields from the first on, with commas between them, so that `g`
/// names everything of the group g and `g,orders,0` its commits for one partition.
pub(super) fn names_key(topic: InternalTopic, key: &[u8], text: &[u8]) -> bool {
    let Ok(message) = decode_key(topic, key, Layouts::WithOlder) else { return false };
    let mut name = Vec::new();
    for (place, (_, value)) in message.fields.fields.iter().enumerate() {
        if place > 0 {
            name.push(b',');
        }
        match value {
            Value::Text(bytes) => name.extend_from_slice(bytes),
            Value::Int(number) => name.extend_from_slice(number.to_string().as_bytes()),
            _ => return false,
        }
        if name == text {
            return true;
        }
    }
    false
}

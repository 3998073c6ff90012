//! The events of a dump as lines: for people, and as JSON Lines.

mod human;
mod json;
mod payload;

pub use human::HumanLines;
pub use json::JsonLines;
pub use payload::Payload;

use crate::format::compression::Codec;
use crate::format::{BatchHeader, TimestampType};

/// Kafka's name of a batch's codec, or that of an id that no codec has.
fn codec_name(header: &BatchHeader) -> &'static str {
    match header.attributes.codec_id() {
        5 => "unknown-5",
        6 => "unknown-6",
        7 => "unknown-7",
        id => Codec::from_id(id).map_or("unknown", Codec::name),
    }
}

fn timestamp_type_name(timestamp_type: TimestampType) -> &'static str {
    match timestamp_type {
        TimestampType::None => "none",
        TimestampType::CreateTime => "create_time",
        TimestampType::LogAppendTime => "log_append_time",
    }
}

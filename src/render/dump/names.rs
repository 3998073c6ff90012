//! Words for what a header says in bits.

use crate::format::compression::Codec;
use crate::format::{BatchHeader, TimestampType};

/// Kafka's name of a batch's codec, or that of an id that no codec has.
pub(super) fn codec_name(header: &BatchHeader) -> &'static str {
    match header.attributes.codec_id() {
        5 => "unknown-5",
        6 => "unknown-6",
        7 => "unknown-7",
        id => Codec::from_id(id).map_or("unknown", Codec::name),
    }
}

pub(super) fn timestamp_type_name(timestamp_type: TimestampType) -> &'static str {
    match timestamp_type {
        TimestampType::None => "none",
        TimestampType::CreateTime => "create_time",
        TimestampType::LogAppendTime => "log_append_time",
    }
}

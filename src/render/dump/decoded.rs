//! Records of internal topics and control records with Kafka's names for their fields, in lines for people and as JSON.

use std::io::Write;

use crate::format::message::{DecodeError, Message, decode_control};
use crate::format::record::Record;
use crate::format::{Cursor, Shape};
use crate::ops::dump::{Decode, DecodedRecord, RecordEvent};
use crate::render::json_text::{push_flag, push_name, push_number, push_string};
use crate::render::message::{MessageStyle, push_struct};

/// Appends `,"decoded":{"key":{...},"value":{...}}` where the record can be decoded.
pub(super) fn push_json(out: &mut Vec<u8>, event: &RecordEvent<'_>, decode: Decode) {
    if event.header.is_control() {
        if decode != Decode::Never {
            push_json_control(out, event.record);
        }
        return;
    }
    let Some(topic) = decode.topic_of(event.source) else { return };
    let decoded = DecodedRecord::of(topic, event.record);
    out.extend_from_slice(b",\"decoded\":{");
    let sides = [("key", decoded.key), ("value", decoded.value)];
    let mut comma = "";
    for (name, side) in sides {
        let Some(side) = side else { continue };
        out.extend_from_slice(comma.as_bytes());
        comma = ",";
        push_name(out, name, "");
        match side {
            Ok(message) => push_json_message(out, &message, name == "value"),
            Err(error) => {
                out.extend_from_slice(b"{\"error\":");
                push_string(out, &sentence(&error));
                out.push(b'}');
            }
        }
    }
    out.push(b'}');
}

fn push_json_message(out: &mut Vec<u8>, message: &Message<'_>, has_version: bool) {
    out.extend_from_slice(b"{\"type\":");
    push_string(out, message.record);
    if has_version {
        out.extend_from_slice(b",\"version\":");
        push_number(out, message.version);
    }
    if !message.version_is_known {
        out.extend_from_slice(b",\"version_known\":");
        push_flag(out, false);
    }
    if let Some(releases) = message.older_layout {
        out.extend_from_slice(b",\"layout_of\":");
        push_string(out, releases);
    }
    if message.trailing_bytes > 0 {
        out.extend_from_slice(b",\"trailing_bytes\":");
        push_number(out, message.trailing_bytes);
    }
    out.extend_from_slice(b",\"data\":");
    push_struct(out, &message.fields, MessageStyle::Safe);
    out.push(b'}');
}

fn push_json_control(out: &mut Vec<u8>, record: &Record<'_>) {
    let Some(control) = Control::of(record) else { return };
    out.extend_from_slice(b",\"decoded\":{\"value\":{\"type\":");
    match control {
        Control::Marker { coordinator_epoch } => {
            out.extend_from_slice(b"\"EndTxnMarker\",\"data\":{\"coordinatorEpoch\":");
            push_number(out, coordinator_epoch);
            out.push(b'}');
        }
        Control::Message(message) => {
            push_string(out, message.record);
            out.extend_from_slice(b",\"data\":");
            push_struct(out, &message.fields, MessageStyle::Safe);
        }
    }
    out.extend_from_slice(b"}}");
}

/// Appends ` key=OffsetCommitKey{...} value=OffsetCommitValue/3{...}`; what cannot be decoded is left to `raw`, with the reason
/// behind it. `None` where the record is no internal topic's.
pub(super) fn push_human(
    out: &mut Vec<u8>,
    event: &RecordEvent<'_>,
    decode: Decode,
    raw: impl Fn(&mut Vec<u8>, Option<&[u8]>),
) -> Option<()> {
    let topic = decode.topic_of(event.source)?;
    let decoded = DecodedRecord::of(topic, event.record);
    let sides = [(" key=", decoded.key, event.record.key), (" value=", decoded.value, event.record.value)];
    for (place, (label, side, bytes)) in sides.into_iter().enumerate() {
        out.extend_from_slice(label.as_bytes());
        match side {
            Some(Ok(message)) => push_human_message(out, &message, place == 1),
            Some(Err(error)) => {
                raw(out, bytes);
                out.extend_from_slice(format!(" ({})", sentence(&error)).as_bytes());
            }
            None => raw(out, bytes),
        }
    }
    Some(())
}

fn push_human_message(out: &mut Vec<u8>, message: &Message<'_>, has_version: bool) {
    out.extend_from_slice(message.record.as_bytes());
    if has_version {
        out.extend_from_slice(format!("/{}", message.version).as_bytes());
    }
    push_struct(out, &message.fields, MessageStyle::Safe);
    if !message.version_is_known {
        out.extend_from_slice(b" (unknown version)");
    }
    if let Some(releases) = message.older_layout {
        out.extend_from_slice(format!(" (layout of {releases})").as_bytes());
    }
    if message.trailing_bytes > 0 {
        out.extend_from_slice(format!(" ({} bytes left over)", message.trailing_bytes).as_bytes());
    }
}

/// Appends the fields of a control record behind its name.
pub(super) fn push_human_control(out: &mut Vec<u8>, record: &Record<'_>) {
    match Control::of(record) {
        Some(Control::Marker { coordinator_epoch }) => {
            let _ = write!(out, " coordinator-epoch={coordinator_epoch}");
        }
        Some(Control::Message(message)) => push_struct(out, &message.fields, MessageStyle::Safe),
        None => {}
    }
}

/// The content of a control record.
enum Control<'a> {
    Marker { coordinator_epoch: i32 },
    Message(Message<'a>),
}

impl<'a> Control<'a> {
    fn of(record: &Record<'a>) -> Option<Self> {
        let mut key = Cursor::new(record.key?);
        key.read_i16(Shape::ControlRecord).ok()?;
        let type_id = key.read_i16(Shape::ControlRecord).ok()?;
        let value = record.value?;
        if !(0..=1).contains(&type_id) {
            return decode_control(type_id, value).ok().map(Self::Message);
        }
        let mut value = Cursor::new(value);
        value.read_i16(Shape::ControlRecord).ok()?;
        let coordinator_epoch = value.read_i32(Shape::ControlRecord).ok()?;
        Some(Self::Marker { coordinator_epoch })
    }
}

/// Why something could not be decoded.
fn sentence(error: &DecodeError) -> String {
    match error {
        DecodeError::UnknownType(type_id) => format!("unknown type {type_id}"),
        DecodeError::UnknownVersion { type_id, version } => format!("unknown version {version} of type {type_id}"),
        DecodeError::NoVersion(_) => "too short for a version".to_owned(),
        DecodeError::Body { version, error, .. } => {
            format!("version {version} does not fit at byte {}: {error}", error.position)
        }
        DecodeError::FramedBody { type_id, error } => {
            format!("type {type_id} does not fit at byte {}: {error}", error.position)
        }
        DecodeError::FrameUnreadable(_) => "too short for a frame".to_owned(),
        DecodeError::FrameTooLarge(_) => "a number of the frame is too large".to_owned(),
        DecodeError::FrameVersion(version) => format!("unknown frame version {version}"),
        DecodeError::TrailingBytes { type_id, count } => format!("{count} bytes left over after type {type_id}"),
    }
}

//! What stands after `key: ` and `payload: `, for each decoder of the tool.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::remote::push_remote;
use crate::format::message::{
    DecodeError, FrameField, InternalTopic, Layouts, Message, Side, decode_framed, decode_key, decode_value,
};
use crate::format::{Cursor, Offset, Shape};
use crate::render::base64::push_uuid;
use crate::render::java::{as_text, push_double, push_float};
use crate::render::message::{MessageStyle, push_int, push_struct};

/// A decoder for keys or values without structure. The first three are Kafka's own (`org.apache.kafka.tools.api`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScalarDecoder {
    /// UTF-8 text, `StringDecoder`.
    Text,
    /// A big-endian i64, `LongDecoder`.
    Long,
    /// A big-endian i32, `IntegerDecoder`.
    Integer,
    /// A big-endian i16.
    Short,
    /// A big-endian IEEE 754 single.
    Float,
    /// A big-endian IEEE 754 double.
    Double,
    /// 16 bytes, shown as Kafka shows ids.
    Uuid,
    /// Any bytes, in hexadecimal. Kafka's `DefaultDecoder` prints the identity of a Java array here, which says nothing.
    Bytes,
}

/// How records are decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decoder {
    /// Key and value each by a scalar decoder.
    Scalars {
        /// For keys.
        key: ScalarDecoder,
        /// For values.
        value: ScalarDecoder,
    },
    /// By the schemas of an internal topic.
    Topic(InternalTopic),
}

/// The texts of a record. `None` prints nothing, an empty text prints its label.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Content<'a> {
    /// After `key: `.
    pub key: Option<Cow<'a, [u8]>>,
    /// After `payload: `.
    pub payload: Option<Cow<'a, [u8]>>,
}

/// An exception that ends Kafka's tool.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{class}{}{}", if message.is_some() { ": " } else { "" }, message.as_deref().unwrap_or_default())]
pub struct Crash {
    /// The exception's class.
    pub class: &'static str,
    /// Its message, if it has one.
    pub message: Option<String>,
}

/// Decodes a record's key and value.
pub fn content<'a>(
    decoder: Decoder,
    offset: Offset,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
) -> Result<Content<'a>, Crash> {
    match decoder {
        Decoder::Scalars { key: key_decoder, value: value_decoder } => Ok(Content {
            key: key.map(|bytes| scalar(key_decoder, bytes)).transpose()?,
            payload: value.map(|bytes| scalar(value_decoder, bytes)).transpose()?,
        }),
        Decoder::Topic(InternalTopic::ClusterMetadata) => Ok(metadata(offset, value)),
        Decoder::Topic(InternalTopic::RemoteLogMetadata) => Ok(remote(offset, value)),
        Decoder::Topic(topic) => coordinator(topic, offset, key, value),
    }
}

/// What the tool prints of a record whose value cannot be had, for the reason that Java gives.
pub(super) fn unreadable_content(decoder: Decoder, offset: Offset, reason: &str) -> Result<Content<'static>, Crash> {
    match decoder {
        Decoder::Scalars { .. } => {
            Err(Crash { class: "java.lang.IllegalArgumentException", message: Some(reason.to_owned()) })
        }
        Decoder::Topic(InternalTopic::ClusterMetadata) => {
            let text = format!("Error at {offset}, skipping. {reason}").into_bytes();
            Ok(Content { key: None, payload: Some(text.into()) })
        }
        Decoder::Topic(topic) => {
            let text = Some(format!("Error at offset {offset}, skipping. {reason}").into_bytes().into());
            let (key, payload) = if topic.is_framed() { (None, text) } else { (text, None) };
            Ok(Content { key, payload })
        }
    }
}

fn scalar(decoder: ScalarDecoder, bytes: &[u8]) -> Result<Cow<'_, [u8]>, Crash> {
    let underflow = |_| Crash { class: "java.nio.BufferUnderflowException", message: None };
    let mut cursor = Cursor::new(bytes);
    let shape = Shape::Message;
    let mut out = Vec::new();
    match decoder {
        ScalarDecoder::Text => return Ok(as_text(bytes)),
        ScalarDecoder::Long => push_int(&mut out, cursor.read_i64(shape).map_err(underflow)?),
        ScalarDecoder::Integer => push_int(&mut out, cursor.read_i32(shape).map_err(underflow)?.into()),
        ScalarDecoder::Short => push_int(&mut out, cursor.read_i16(shape).map_err(underflow)?.into()),
        ScalarDecoder::Float => {
            push_float(&mut out, f32::from_be_bytes(*cursor.read_array(shape).map_err(underflow)?));
        }
        ScalarDecoder::Double => {
            push_double(&mut out, f64::from_be_bytes(*cursor.read_array(shape).map_err(underflow)?));
        }
        ScalarDecoder::Uuid => push_uuid(&mut out, cursor.read_array(shape).map_err(underflow)?),
        ScalarDecoder::Bytes => {
            for byte in bytes {
                out.extend_from_slice(format!("{byte:02x}").as_bytes());
            }
        }
    }
    Ok(out.into())
}

fn coordinator(
    topic: InternalTopic,
    offset: Offset,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
) -> Result<Content<'static>, Crash> {
    let Some(key) = key else {
        return Err(Crash {
            class: "java.lang.RuntimeException",
            message: Some(format!(
                "Failed to decode message at offset {offset} using the specified decoder (message had a missing key)"
            )),
        });
    };
    let decoded = decode_key(topic, key, Layouts::Current).and_then(|key| {
        let value = value.map(|value| decode_value(topic, key.type_id, value, Layouts::Current)).transpose()?;
        Ok((key, value))
    });
    Ok(match decoded {
        Ok((key, value)) => {
            Content {
                key: Some(coordinator_text("type", key.type_id, &key).into()),
                payload: Some(value.map_or(Cow::Borrowed(b"<DELETE>"), |value| {
                    coordinator_text("version", value.version, &value).into()
                })),
            }
        }
        Err(DecodeError::UnknownType(type_id)) => Content {
            key: Some(format!("Unknown record type {type_id} at offset {offset}, skipping.").into_bytes().into()),
            payload: None,
        },
        Err(error) => Content {
            key: Some(format!("Error at offset {offset}, skipping. {}", reason(&error)).into_bytes().into()),
            payload: None,
        },
    })
}

fn coordinator_text(label: &str, number: i16, message: &Message<'_>) -> Vec<u8> {
    let mut out = format!("{{\"{label}\":\"{number}\",\"data\":").into_bytes();
    push_struct(&mut out, &message.fields, MessageStyle::Kafka);
    out.push(b'}');
    out
}

fn metadata(offset: Offset, value: Option<&[u8]>) -> Content<'static> {
    let payload = match decode_framed(InternalTopic::ClusterMetadata, value.unwrap_or_default(), Layouts::Current) {
        Ok(message) => metadata_text(&message),
        Err(error) => format!("Error at {offset}, skipping. {}", reason(&error)).into_bytes(),
    };
    Content { key: None, payload: Some(payload.into()) }
}

fn metadata_text(message: &Message<'_>) -> Vec<u8> {
    let mut out = format!("{{\"type\":\"{}\",\"version\":{},\"data\":", upper_snake(message.record), message.version)
        .into_bytes();
    push_struct(&mut out, &message.fields, MessageStyle::Kafka);
    out.push(b'}');
    out
}

/// A record's name as a constant: `RegisterBrokerRecord` is `REGISTER_BROKER_RECORD`.
fn upper_snake(name: &str) -> String {
    let mut constant = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !constant.is_empty() {
            constant.push('_');
        }
        constant.push(letter.to_ascii_uppercase());
    }
    constant
}

fn remote(offset: Offset, value: Option<&[u8]>) -> Content<'static> {
    let text = match value {
        // The JVM's own text for the null reference that the tool runs into.
        None => Err("Cannot invoke \"java.nio.ByteBuffer.remaining()\" because the return value of \
             \"org.apache.kafka.common.record.internal.Record.value()\" is null"
            .to_owned()),
        Some(value) => decode_framed(InternalTopic::RemoteLogMetadata, value, Layouts::Current)
            .map_err(|error| reason(&error))
            .and_then(|message| push_remote(&message)),
    };
    let payload = text.unwrap_or_else(|reason| format!("Error at offset {offset}, skipping. {reason}").into_bytes());
    Content { key: None, payload: Some(payload.into()) }
}

/// The message of the exception that Kafka throws for this.
pub(super) fn reason(error: &DecodeError) -> String {
    let mut text = String::new();
    let _ = match error {
        DecodeError::UnknownType(type_id) => {
            write!(text, "org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {type_id}")
        }
        DecodeError::UnknownVersion { type_id, version } => {
            write!(text, "Found an unknown record version {version} for {type_id} type")
        }
        DecodeError::NoVersion(side) => write!(text, "Could not read version from {}'s buffer.", side_name(*side)),
        DecodeError::Body { side, version, error } => write!(
            text,
            "Could not read record with version {version} from {}'s buffer due to: {error}.",
            side_name(*side)
        ),
        DecodeError::FramedBody { type_id, .. } => {
            write!(text, "Failed to deserialize record with type {type_id}")
        }
        DecodeError::FrameUnreadable(field) => write!(text, "Error while reading {}", frame_field(*field)),
        DecodeError::FrameTooLarge(field) => write!(text, "Value for {} was too large.", frame_field(*field)),
        DecodeError::FrameVersion(0) => write!(
            text,
            "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview release of \
             KRaft in 2.8 to newer versions are not supported."
        ),
        DecodeError::FrameVersion(frame) => write!(
            text,
            "Could not deserialize metadata record due to unknown frame version {frame}(only frame version 1 is supported)"
        ),
        DecodeError::TrailingBytes { type_id, count } => {
            write!(text, "Found {count} byte(s) of garbage after {type_id}")
        }
    };
    text
}

fn side_name(side: Side) -> &'static str {
    match side {
        Side::Key => "key",
        Side::Value => "value",
    }
}

fn frame_field(field: FrameField) -> &'static str {
    match field {
        FrameField::FrameVersion => "frame version",
        FrameField::Type => "type",
        FrameField::Version => "version",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Option<Vec<u8>> {
        let digit = |byte: &u8| u8::try_from(char::from(*byte).to_digit(16).unwrap()).unwrap();
        let pair = |pair: &[u8]| digit(&pair[0]) << 4 | digit(&pair[1]);
        (hex != "-").then(|| hex.as_bytes().chunks(2).map(pair).collect())
    }

    fn text(text: Option<Cow<'_, [u8]>>) -> String {
        text.map_or_else(|| "-".to_owned(), |text| String::from_utf8(text.into_owned()).unwrap())
            .replace('\n', "\\n")
            .replace('\r', "\\r")
    }

    /// Rows of topic, origin, offset, key and value in hexadecimal, and the tool's texts.
    fn check(table: &str) -> usize {
        let mut wrong = Vec::new();
        let mut count = 0;
        for row in table.lines().skip(1) {
            let columns: Vec<&str> = row.split('\t').collect();
            let [topic, origin, offset, key, value, expected_key, expected_payload] = columns[..] else {
                panic!("{} columns: {row}", columns.len());
            };
            let topic = InternalTopic::by_name(topic).unwrap();
            let (key, value) = (bytes(key), bytes(value));
            let offset = Offset(offset.parse().unwrap());
            let found = content(Decoder::Topic(topic), offset, key.as_deref(), value.as_deref()).unwrap();
            let found = (text(found.key), text(found.payload));
            count += 1;
            if (found.0.as_str(), found.1.as_str()) != (expected_key, expected_payload) {
                wrong.push(format!(
                    "{topic:?} {origin} {row}\n want {expected_key} {expected_payload}\n got  {} {}",
                    found.0, found.1
                ));
            }
        }
        assert!(
            wrong.is_empty(),
            "{} of {count} wrong, first:\n{}",
            wrong.len(),
            wrong[..wrong.len().min(8)].join("\n")
        );
        count
    }

    #[test]
    fn records_that_brokers_wrote_read_as_kafkas_tool_prints_them() {
        assert!(check(include_str!("../../../testdata/messages/real.tsv")) > 200);
    }

    #[test]
    fn records_of_every_type_and_version_made_with_kafkas_classes_and_damaged_ones() {
        assert!(check(include_str!("../../../testdata/messages/kafka-classes.tsv")) > 200);
    }

    #[test]
    fn scalars_read_their_first_bytes_and_too_few_end_kafkas_tool() {
        let decode = |value, bytes: &[u8]| {
            content(Decoder::Scalars { key: ScalarDecoder::Text, value }, Offset(0), None, Some(bytes))
                .map(|found| text(found.payload))
        };
        assert_eq!(decode(ScalarDecoder::Integer, &[0, 0, 1, 0, 9]).unwrap(), "256");
        assert_eq!(decode(ScalarDecoder::Long, &[0xff; 8]).unwrap(), "-1");
        assert_eq!(decode(ScalarDecoder::Short, &[0x7f, 0xff]).unwrap(), "32767");
        assert_eq!(decode(ScalarDecoder::Double, &1e7f64.to_be_bytes()).unwrap(), "1.0E7");
        assert_eq!(decode(ScalarDecoder::Float, &0.1f32.to_be_bytes()).unwrap(), "0.1");
        assert_eq!(decode(ScalarDecoder::Uuid, &[0; 16]).unwrap(), "AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!(decode(ScalarDecoder::Bytes, &[0, 0xff]).unwrap(), "00ff");
        let crash = decode(ScalarDecoder::Long, &[0; 7]).unwrap_err();
        assert_eq!(crash.to_string(), "java.nio.BufferUnderflowException");
    }

    #[test]
    #[ignore = "needs a table made with Kafka's classes; SEGTOOL_MESSAGES names it"]
    fn a_table_from_outside() {
        let Ok(path) = std::env::var("SEGTOOL_MESSAGES") else { return };
        check(&std::fs::read_to_string(path).unwrap());
    }
}

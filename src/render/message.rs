//! Decoded messages as JSON, as Kafka's generated `JsonConverter`s and Jackson print them: compact, members in the order of the
//! schema, bytes as standard base64, UUIDs as URL-safe base64. Unknown tagged fields are not shown.

use super::base64::{push_base64, push_uuid};
use super::java::{push_double, push_text};
use crate::format::message::{Struct, Value};

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// For whom the text is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageStyle {
    /// As Kafka's tool prints it.
    Kafka,
    /// Nothing that could drive a terminal, and unknown tagged fields as `_tagged`.
    Safe,
}

/// Appends a value.
pub fn push_value(out: &mut Vec<u8>, value: &Value<'_>, style: MessageStyle) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(truth) => out.extend_from_slice(if *truth { b"true" } else { b"false" }),
        Value::Int(number) => push_int(out, *number),
        Value::Float(number) if number.is_finite() => push_double(out, *number),
        Value::Float(number) => push_quoted(out, |out| push_double(out, *number)),
        Value::Text(bytes) => match style {
            MessageStyle::Kafka => push_string(out, bytes),
            MessageStyle::Safe => push_safe_string(out, bytes),
        },
        Value::Bytes(bytes) => push_quoted(out, |out| push_base64(out, bytes)),
        Value::Uuid(id) => push_quoted(out, |out| push_uuid(out, id)),
        Value::Array(elements) => {
            out.push(b'[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                push_value(out, element, style);
            }
            out.push(b']');
        }
        Value::Struct(structure) => push_struct(out, structure, style),
    }
}

/// Appends a structure as an object.
pub fn push_struct(out: &mut Vec<u8>, structure: &Struct<'_>, style: MessageStyle) {
    out.push(b'{');
    for (index, (name, value)) in structure.fields.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_string(out, name.as_bytes());
        out.push(b':');
        push_value(out, value, style);
    }
    if style == MessageStyle::Safe && !structure.unknown_tags.is_empty() {
        push_unknown_tags(out, structure);
    }
    out.push(b'}');
}

/// Appends `"_tagged":[{"tag":7,"base64":"BQU="}]`.
fn push_unknown_tags(out: &mut Vec<u8>, structure: &Struct<'_>) {
    if !structure.fields.is_empty() {
        out.push(b',');
    }
    out.extend_from_slice(b"\"_tagged\":[");
    for (index, field) in structure.unknown_tags.iter().enumerate() {
        out.extend_from_slice(if index > 0 { b",{\"tag\":" } else { b"{\"tag\":" });
        push_int(out, field.tag.into());
        out.extend_from_slice(b",\"base64\":");
        push_quoted(out, |out| push_base64(out, field.payload));
        out.push(b'}');
    }
    out.push(b']');
}

/// Appends a string in which whatever could drive a terminal is escaped.
fn push_safe_string(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut text = Vec::with_capacity(bytes.len());
    push_text(&mut text, bytes);
    super::json_text::push_string(out, std::str::from_utf8(&text).unwrap_or_default());
}

/// Appends an integer.
pub fn push_int(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends a JSON string with Jackson's escapes; bytes that are not UTF-8 are replaced as Java does.
pub fn push_string(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len() + 1;
    push_quoted(out, |out| push_text(out, bytes));
    let end = out.len().saturating_sub(1);
    let is_plain = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
    if out.get(start..end).is_some_and(|text| text.iter().all(is_plain)) {
        return;
    }
    let text = out.get(start..end).unwrap_or_default().to_vec();
    out.truncate(start);
    for byte in text {
        push_escaped(out, byte);
    }
    out.push(b'"');
}

fn push_escaped(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        0..0x20 => {
            out.extend_from_slice(b"\\u00");
            out.extend(HEX.get(usize::from(byte >> 4)));
            out.extend(HEX.get(usize::from(byte & 0xf)));
            return;
        }
        _ => {
            out.push(byte);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

fn push_quoted(out: &mut Vec<u8>, push: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    push(out);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::format::message::{InternalTopic, Layouts, decode_framed, decode_key, decode_value};

    #[test]
    fn strings_are_escaped_as_jackson_does() {
        let mut out = Vec::new();
        push_string(&mut out, "a\"\\/\u{8}\t\n\u{c}\r\u{1f}\u{0}\u{7f}\u{2028}ü😀".as_bytes());
        assert_eq!(String::from_utf8(out).unwrap(), "\"a\\\"\\\\/\\b\\t\\n\\f\\r\\u001F\\u0000\u{7f}\u{2028}ü😀\"");
    }

    #[test]
    fn numbers_that_json_lacks_are_quoted() {
        let mut out = Vec::new();
        push_value(
            &mut out,
            &Value::Array(vec![Value::Float(f64::NAN), Value::Float(1e7), Value::Null]),
            MessageStyle::Kafka,
        );
        push_value(&mut out, &Value::Text(Cow::Borrowed(b"\xff")), MessageStyle::Kafka);
        assert_eq!(String::from_utf8(out).unwrap(), "[\"NaN\",1.0E7,null]\"\u{fffd}\"");
    }

    fn bytes(hex: &str) -> Vec<u8> {
        let digit = |byte: &u8| u8::try_from(char::from(*byte).to_digit(16).unwrap()).unwrap();
        hex.as_bytes().chunks(2).map(|pair| digit(&pair[0]) << 4 | digit(&pair[1])).collect()
    }

    #[test]
    fn records_of_older_releases_are_read_by_their_own_layouts() {
        let mut wrong = Vec::new();
        for row in include_str!("../../testdata/messages/older-releases.tsv").lines() {
            let columns: Vec<&str> = row.split('\t').collect();
            let [release, topic, role, type_id, record, hex, expected] = columns[..] else { panic!("{row}") };
            let topic = InternalTopic::by_name(topic).unwrap();
            let (bytes, layouts) = (bytes(hex), Layouts::WithOlder);
            let message = match role {
                "key" => decode_key(topic, &bytes, layouts),
                "value" => decode_value(topic, type_id.parse().unwrap(), &bytes, layouts),
                _ => decode_framed(topic, &bytes, layouts),
            };
            let found = message.map(|message| {
                let mut out = Vec::new();
                push_struct(&mut out, &message.fields, MessageStyle::Kafka);
                (message.older_layout, String::from_utf8(out).unwrap())
            });
            // Some values are the same in the layouts of two older releases.
            let is_right = matches!(&found, Ok((Some(_), text)) if text == expected);
            if !is_right {
                wrong.push(format!("{release} {record} {hex}\n want {expected}\n got  {found:?}"));
            }
        }
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    }
}

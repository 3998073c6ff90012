//! What classic groups of protocol type `consumer` embed in their members: `ConsumerProtocolSubscription` and
//! `ConsumerProtocolAssignment`, each an int16 version and a body (`ConsumerProtocol`).

use super::error::SHAPE;
use super::read::read_body;
use super::schema::schema_named;
use super::value::{Struct, Value};
use crate::format::Cursor;

/// Puts the decoded structures in place of the bytes where they parse; other bytes stay as they are.
pub(super) fn open_embedded(group: &mut Struct<'_>) {
    if group.field("protocolType").and_then(Value::as_text) != Some(b"consumer") {
        return;
    }
    let Some(Value::Array(members)) = group.field_mut("members") else { return };
    for member in members {
        let Value::Struct(member) = member else { continue };
        for (field, record) in
            [("subscription", "ConsumerProtocolSubscription"), ("assignment", "ConsumerProtocolAssignment")]
        {
            let Some(value) = member.field_mut(field) else { continue };
            let Value::Bytes(bytes) = *value else { continue };
            if let Some(decoded) = decode(record, bytes) {
                *value = Value::Struct(decoded);
            }
        }
    }
}

fn decode<'a>(record: &str, bytes: &'a [u8]) -> Option<Struct<'a>> {
    let mut cursor = Cursor::new(bytes);
    let version = cursor.read_i16(SHAPE).ok()?;
    Some(read_body(schema_named(record)?, cursor, version).ok()?.fields)
}

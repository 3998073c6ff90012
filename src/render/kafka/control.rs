//! What follows the facts of a control record: a marker, or the JSON of a KRaft record (`printControlRecord`).

use super::content::Crash;
use super::lines::push;
use crate::format::message::decode_control;
use crate::format::record::Record;
use crate::format::{Cursor, Shape};
use crate::render::message::{MessageStyle, push_struct};

const INVALID_RECORD: &str = "org.apache.kafka.common.InvalidRecordException";

pub(super) fn push_control(out: &mut Vec<u8>, record: &Record<'_>) -> Result<(), Crash> {
    let type_id = type_of(record.key.unwrap_or_default())?;
    let value = record.value.unwrap_or_default();
    let label = match type_id {
        0 | 1 => {
            let name = if type_id == 0 { "ABORT" } else { "COMMIT" };
            let epoch = coordinator_epoch(value)?;
            push(out, format_args!(" endTxnMarker: {name} coordinatorEpoch: {epoch}"));
            return Ok(());
        }
        // The only label with a colon.
        2 => "LeaderChange:",
        3 => "SnapshotHeader",
        4 => "SnapshotFooter",
        5 => "KRaftVersion",
        6 => "KRaftVoters",
        _ => {
            push(out, format_args!(" controlType: UNKNOWN({type_id})"));
            return Ok(());
        }
    };
    let message = decode_control(type_id, value).map_err(|error| Crash {
        class: "java.lang.RuntimeException",
        message: Some(super::content::reason(&error)),
    })?;
    push(out, format_args!(" {label} "));
    push_struct(out, &message.fields, MessageStyle::Kafka);
    Ok(())
}

fn type_of(key: &[u8]) -> Result<i16, Crash> {
    let mut cursor = Cursor::new(key);
    let numbers = cursor.read_i16(Shape::ControlRecord).and_then(|version| {
        let type_id = cursor.read_i16(Shape::ControlRecord)?;
        Ok((version, type_id))
    });
    match numbers {
        Ok((0.., type_id)) => Ok(type_id),
        Ok((version, _)) => Err(Crash {
            class: INVALID_RECORD,
            message: Some(format!("Invalid version found for control record: {version}. May indicate data corruption")),
        }),
        Err(_) => Err(Crash {
            class: INVALID_RECORD,
            message: Some(format!(
                "Invalid value size found for control record key. Must have at least 4 bytes, but found only {}",
                key.len()
            )),
        }),
    }
}

fn coordinator_epoch(value: &[u8]) -> Result<i32, Crash> {
    let mut cursor = Cursor::new(value);
    cursor
        .read_i16(Shape::ControlRecord)
        .and_then(|_| cursor.read_i32(Shape::ControlRecord))
        .map_err(|_| Crash { class: "java.nio.BufferUnderflowException", message: None })
}

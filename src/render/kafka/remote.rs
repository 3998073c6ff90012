//! Records of `__remote_log_metadata` as the `toString` of Kafka's classes, after the checks that their constructors make
//! (`org.apache.kafka.server.log.remote.storage`).

use std::collections::BTreeMap;

use crate::format::message::{Message, Struct, Value};
use crate::render::base64::push_uuid;
use crate::render::java::push_text;
use crate::render::message::push_int;

/// The text of a record, or the message of the exception that its constructor throws.
pub(super) fn push_remote(message: &Message<'_>) -> Result<Vec<u8>, String> {
    let fields = &message.fields;
    let mut out = Vec::new();
    match message.record {
        "RemoteLogSegmentMetadataRecord" => {
            check_offsets(fields)?;
            check_epochs(fields)?;
            let state = segment_state(fields)?;
            out.extend_from_slice(b"RemoteLogSegmentMetadata{remoteLogSegmentId=");
            push_segment_id(&mut out, fields);
            push_int_field(&mut out, ", startOffset=", fields, "startOffset");
            push_int_field(&mut out, ", endOffset=", fields, "endOffset");
            push_int_field(&mut out, ", brokerId=", fields, "brokerId");
            push_int_field(&mut out, ", maxTimestampMs=", fields, "maxTimestampMs");
            push_int_field(&mut out, ", eventTimestampMs=", fields, "eventTimestampMs");
            push_segment_tail(&mut out, fields, state);
        }
        "RemoteLogSegmentMetadataUpdateRecord" => {
            let state = segment_state(fields)?;
            out.extend_from_slice(b"RemoteLogSegmentMetadataUpdate{remoteLogSegmentId=");
            push_segment_id(&mut out, fields);
            push_custom(&mut out, fields);
            out.extend_from_slice(format!(", state={state}").as_bytes());
            push_int_field(&mut out, ", eventTimestampMs=", fields, "eventTimestampMs");
            push_int_field(&mut out, ", brokerId=", fields, "brokerId");
            out.push(b'}');
        }
        "RemotePartitionDeleteMetadataRecord" => {
            let state = delete_state(fields).ok_or("null")?;
            out.extend_from_slice(b"RemotePartitionDeleteMetadata{topicPartition=");
            push_partition(&mut out, fields.field("topicIdPartition"));
            out.extend_from_slice(format!(", state={state}").as_bytes());
            push_int_field(&mut out, ", eventTimestampMs=", fields, "eventTimestampMs");
            push_int_field(&mut out, ", brokerId=", fields, "brokerId");
            out.push(b'}');
        }
        _ => {
            // Unlike the metadata itself, its snapshot takes any offsets.
            let state = segment_state(fields)?;
            check_epochs(fields)?;
            out.extend_from_slice(b"RemoteLogSegmentMetadataSnapshot{segmentId=");
            push_id(&mut out, fields.field("segmentId"));
            push_int_field(&mut out, ", startOffset=", fields, "startOffset");
            push_int_field(&mut out, ", endOffset=", fields, "endOffset");
            push_int_field(&mut out, ", maxTimestampMs=", fields, "maxTimestampMs");
            push_segment_tail(&mut out, fields, state);
        }
    }
    Ok(out)
}

fn int(fields: &Struct<'_>, name: &str) -> i64 {
    fields.field(name).and_then(Value::as_int).unwrap_or(0)
}

fn check_offsets(fields: &Struct<'_>) -> Result<(), String> {
    let (start, end) = (int(fields, "startOffset"), int(fields, "endOffset"));
    if start < 0 {
        return Err(format!("Unexpected start offset = {start}. StartOffset for a remote segment cannot be negative"));
    }
    if end < start {
        return Err(format!(
            "Unexpected end offset = {end}. EndOffset for a remote segment cannot be less than startOffset = {start}"
        ));
    }
    Ok(())
}

fn check_epochs(fields: &Struct<'_>) -> Result<(), String> {
    match fields.field("segmentLeaderEpochs") {
        Some(Value::Array(epochs)) if !epochs.is_empty() => Ok(()),
        _ => Err("segmentLeaderEpochs can not be null or empty".to_owned()),
    }
}

fn segment_state(fields: &Struct<'_>) -> Result<&'static str, String> {
    match int(fields, "remoteLogSegmentState") {
        0 => Ok("COPY_SEGMENT_STARTED"),
        1 => Ok("COPY_SEGMENT_FINISHED"),
        2 => Ok("DELETE_SEGMENT_STARTED"),
        3 => Ok("DELETE_SEGMENT_FINISHED"),
        _ => Err("state can not be null".to_owned()),
    }
}

fn delete_state(fields: &Struct<'_>) -> Option<&'static str> {
    match int(fields, "remotePartitionDeleteState") {
        0 => Some("DELETE_PARTITION_MARKED"),
        1 => Some("DELETE_PARTITION_STARTED"),
        2 => Some("DELETE_PARTITION_FINISHED"),
        _ => None,
    }
}

fn push_int_field(out: &mut Vec<u8>, label: &str, fields: &Struct<'_>, name: &str) {
    out.extend_from_slice(label.as_bytes());
    push_int(out, int(fields, name));
}

fn push_id(out: &mut Vec<u8>, id: Option<&Value<'_>>) {
    if let Some(Value::Uuid(id)) = id {
        push_uuid(out, id);
    }
}

fn push_partition(out: &mut Vec<u8>, partition: Option<&Value<'_>>) {
    let Some(Value::Struct(partition)) = partition else { return };
    push_id(out, partition.field("id"));
    out.push(b':');
    push_text(out, partition.field("name").and_then(Value::as_text).unwrap_or_default());
    out.push(b'-');
    push_int(out, int(partition, "partition"));
}

fn push_segment_id(out: &mut Vec<u8>, fields: &Struct<'_>) {
    let Some(Value::Struct(id)) = fields.field("remoteLogSegmentId") else { return };
    out.extend_from_slice(b"RemoteLogSegmentId{topicIdPartition=");
    push_partition(out, id.field("topicIdPartition"));
    out.extend_from_slice(b", id=");
    push_id(out, id.field("id"));
    out.push(b'}');
}

fn push_custom(out: &mut Vec<u8>, fields: &Struct<'_>) {
    out.extend_from_slice(b", customMetadata=");
    match fields.field("customMetadata") {
        Some(Value::Bytes(bytes)) => {
            out.extend_from_slice(format!("Optional[CustomMetadata{{{} bytes}}]", bytes.len()).as_bytes());
        }
        _ => out.extend_from_slice(b"Optional.empty"),
    }
}

/// From the epochs on, which is the same for a segment and its snapshot. The epochs are a sorted map: a repeated one keeps its
/// last offset.
fn push_segment_tail(out: &mut Vec<u8>, fields: &Struct<'_>, state: &str) {
    let mut epochs = BTreeMap::new();
    if let Some(Value::Array(entries)) = fields.field("segmentLeaderEpochs") {
        for entry in entries {
            if let Value::Struct(entry) = entry {
                epochs.insert(int(entry, "leaderEpoch"), int(entry, "offset"));
            }
        }
    }
    out.extend_from_slice(b", segmentLeaderEpochs={");
    for (index, (epoch, offset)) in epochs.iter().enumerate() {
        let comma = if index > 0 { ", " } else { "" };
        out.extend_from_slice(format!("{comma}{epoch}={offset}").as_bytes());
    }
    out.push(b'}');
    push_int_field(out, ", segmentSizeInBytes=", fields, "segmentSizeInBytes");
    push_custom(out, fields);
    let is_txn_index_empty = fields.field("txnIndexEmpty") == Some(&Value::Bool(true));
    out.extend_from_slice(format!(", state={state}, txnIdxEmpty={is_txn_index_empty}}}").as_bytes());
}

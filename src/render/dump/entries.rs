//! Entries of the files beside the logs, as JSON members and for people.

use crate::ops::dump::FileEntry;
use crate::render::json_text::{push_name, push_number, push_optional, push_string};
use crate::render::units;
use crate::render::untrusted::untrusted;

/// The name of an entry's type.
pub(super) fn type_name(entry: &FileEntry) -> &'static str {
    match entry {
        FileEntry::OffsetIndex(_) => "offset_index_entry",
        FileEntry::TimeIndex(_) => "time_index_entry",
        FileEntry::AbortedTransaction(_) => "aborted_transaction",
        FileEntry::Producer(_) => "producer_state",
        FileEntry::Checkpoint { .. } => "checkpoint_entry",
        FileEntry::LeaderEpoch { .. } => "leader_epoch",
        FileEntry::Property { .. } => "property",
    }
}

/// Appends the members of an entry, each behind a comma.
pub(super) fn push_json(entry: &FileEntry, out: &mut Vec<u8>) {
    let number = |out: &mut Vec<u8>, name: &str, number: Option<i64>| {
        out.push(b',');
        push_name(out, name, "");
        push_optional(out, number);
    };
    match entry {
        FileEntry::OffsetIndex(entry) => {
            number(out, "offset", Some(entry.offset.0));
            out.push(b',');
            push_name(out, "position", "");
            push_number(out, entry.position.0);
        }
        FileEntry::TimeIndex(entry) => {
            number(out, "timestamp_ms", Some(entry.timestamp.0));
            number(out, "offset", Some(entry.offset.0));
        }
        FileEntry::AbortedTransaction(entry) => {
            number(out, "version", Some(i64::from(entry.version)));
            number(out, "producer_id", Some(entry.producer_id.0));
            number(out, "first_offset", Some(entry.first_offset.0));
            number(out, "last_offset", Some(entry.last_offset.0));
            number(out, "last_stable_offset", Some(entry.last_stable_offset.0));
        }
        FileEntry::Producer(entry) => {
            number(out, "producer_id", Some(entry.producer_id.0));
            number(out, "producer_epoch", Some(i64::from(entry.producer_epoch.0)));
            number(out, "last_sequence", entry.last_sequence.map(|sequence| i64::from(sequence.0)));
            number(out, "last_offset", entry.last_offset.map(|offset| offset.0));
            number(out, "offset_delta", Some(i64::from(entry.offset_delta)));
            number(out, "timestamp_ms", entry.timestamp.map(|time| time.0));
            number(out, "coordinator_epoch", entry.coordinator_epoch.map(i64::from));
            number(out, "current_txn_first_offset", entry.current_txn_first_offset.map(|offset| offset.0));
        }
        FileEntry::Checkpoint { topic, partition, offset } => {
            out.push(b',');
            push_name(out, "topic", "");
            push_string(out, topic);
            number(out, "partition", Some(i64::from(*partition)));
            number(out, "offset", Some(offset.0));
        }
        FileEntry::LeaderEpoch { epoch, start_offset } => {
            number(out, "leader_epoch", Some(i64::from(epoch.0)));
            number(out, "start_offset", Some(start_offset.0));
        }
        FileEntry::Property { key, value } => {
            out.push(b',');
            push_name(out, "key", "");
            push_string(out, key);
            out.push(b',');
            push_name(out, "value", "");
            match value {
                Some(value) => push_string(out, value),
                None => out.extend_from_slice(b"null"),
            }
        }
    }
}

/// An entry for people.
pub(super) fn sentence(entry: &FileEntry) -> String {
    let optional = |number: Option<i64>| number.map_or_else(|| "none".to_owned(), |number| number.to_string());
    match entry {
        FileEntry::OffsetIndex(entry) => format!("offset {} at position {}", entry.offset, entry.position),
        FileEntry::TimeIndex(entry) => {
            format!("up to offset {} the largest timestamp is {}", entry.offset, units::instant_utc(entry.timestamp))
        }
        FileEntry::AbortedTransaction(entry) => format!(
            "aborted: producer {}, offsets {} to {}, last stable offset {}",
            entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset
        ),
        FileEntry::Producer(entry) => format!(
            "producer {}/{}: last sequence {}, last offset {}, coordinator epoch {}, open transaction since {}",
            entry.producer_id,
            entry.producer_epoch,
            optional(entry.last_sequence.map(|sequence| i64::from(sequence.0))),
            optional(entry.last_offset.map(|offset| offset.0)),
            optional(entry.coordinator_epoch.map(i64::from)),
            optional(entry.current_txn_first_offset.map(|offset| offset.0)),
        ),
        FileEntry::Checkpoint { topic, partition, offset } => {
            format!("{}-{partition} {offset}", untrusted(topic.as_bytes()))
        }
        FileEntry::LeaderEpoch { epoch, start_offset } => format!("epoch {epoch} from offset {start_offset} on"),
        FileEntry::Property { key, value } => {
            let value = value.as_ref().map_or_else(|| "none".to_owned(), |value| untrusted(value.as_bytes()));
            format!("{} = {value}", untrusted(key.as_bytes()))
        }
    }
}

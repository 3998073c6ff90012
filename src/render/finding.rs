//! A finding as a sentence, and as the members of a JSON object. The same everywhere a finding is printed.

use std::fmt::Write as _;

use super::json_text::{push_member_bytes, push_name, push_number, push_optional, push_string};
use super::units;
use super::untrusted::untrusted;
use crate::format::{FormatErrorKind, TimestampMs};
use crate::logdir::TopicPartition;
use crate::ops::{Fact, Finding, FindingId};

/// What a finding says, without its place: what is wrong, and the facts.
pub fn sentence(finding: &Finding) -> String {
    let mut text = finding.id.meaning().to_owned();
    push_facts(finding, &mut text);
    if let Some(cause) = &finding.cause {
        let _ = write!(text, "; {}", cause_text(cause));
    }
    text
}

fn push_facts(finding: &Finding, text: &mut String) {
    if let Some(facts) = facts_text(finding) {
        text.push_str(": ");
        text.push_str(&facts);
    }
}

/// What was expected and what was found, in words that fit the finding.
fn facts_text(finding: &Finding) -> Option<String> {
    use FindingId as Id;
    let id = finding.id;
    let word = |fact: &Fact| fact_text(id, fact);
    Some(match (id, finding.expected.as_ref(), finding.found.as_ref()) {
        (Id::BatchCrcMismatch | Id::SnapshotCrcMismatch, Some(stored), Some(computed)) => {
            format!("crc {}, computed {}", word(stored), word(computed))
        }
        (Id::BatchTornTail, Some(declared), Some(there)) => {
            format!("{} bytes declared, {} there", word(declared), word(there))
        }
        (Id::BatchLengthInvalid, None, Some(length)) => format!("it says {}", word(length)),
        (Id::BatchLengthInvalid, Some(right), Some(length)) => {
            format!("it says {}, right is {}", word(length), word(right))
        }
        (Id::BatchOffsetRegression | Id::BatchOffsetOverlap | Id::BatchDuplicate, Some(next), Some(found))
            if found < next =>
        {
            format!("{} or more should come next, here is {}", word(next), word(found))
        }
        (Id::BatchBelowSegmentBase | Id::BatchOffsetOverflow, Some(base), Some(found)) => {
            format!("the name says {}, the batch {}", word(base), word(found))
        }
        (Id::TransactionOpen | Id::TransactionHanging | Id::TransactionForeignBatch, _, Some(producer)) => {
            format!("producer {}", word(producer))
        }
        (Id::SegmentGap, Some(end), Some(start)) => {
            format!("the last one ends before {}, this one begins at {}", word(end), word(start))
        }
        (Id::SegmentOverlap, Some(base), Some(last)) => {
            format!("the next one begins at {}, here is {}", word(base), word(last))
        }
        (Id::LeftoverSwap, Some(old), Some(new)) => {
            format!("it replaces {} records by {} when it is finished", word(old), word(new))
        }
        (Id::OffsetIndexZeroPadded | Id::TimeIndexZeroPadded, _, Some(entries)) => {
            counted(entries, "zero entry", "zero entries")
        }
        (Id::OffsetIndexNeverWritten | Id::TimeIndexNeverWritten, _, Some(entries)) => {
            counted(entries, "entry", "entries")
        }
        (Id::OffsetIndexMisaligned | Id::TimeIndexMisaligned | Id::TxnIndexMisaligned, _, Some(bytes)) => {
            counted(bytes, "byte is left over", "bytes are left over")
        }
        (Id::TxnIndexMissing, Some(count), _) => counted(count, "entry is gone", "entries are gone"),
        (Id::CheckpointBeyondLogEnd | Id::LogStartBeyondLogEnd, Some(end), Some(offset)) => {
            format!("it says {}, the log ends before {}", word(offset), word(end))
        }
        (Id::SnapshotStateMismatch, Some(last @ Fact::Offset(_)), Some(producer @ Fact::Text(_))) => {
            format!("{}, whose last offset is {}", word(producer), word(last))
        }
        (Id::SnapshotStateMismatch, Some(end @ Fact::Offset(_)), Some(offset @ Fact::Offset(_))) => {
            format!("it is taken at {}, the log ends before {}", word(offset), word(end))
        }
        (Id::TopicIdConflict, Some(there), Some(here)) => format!("{} here, {} there", word(here), word(there)),
        (Id::PartitionTwice, Some(other), _) => format!("the other is {}", word(other)),
        (Id::KraftSnapshotIncomplete, Some(part), _) => format!("no {}", word(part)),
        (Id::KraftSnapshotMissing, Some(start), _) => format!("it starts at {}", word(start)),
        (Id::LegacyLz4Checksum, Some(right), Some(stored)) => {
            format!("{} stored, right is {}", word(stored), word(right))
        }
        // The cause says what is wrong.
        (_, Some(expected), Some(found)) if expected == found => return None,
        (_, Some(expected), Some(found)) => format!("expected {}, found {}", word(expected), word(found)),
        (_, Some(expected), None) => format!("expected {}", word(expected)),
        (_, None, Some(found)) => word(found),
        (_, None, None) => return None,
    })
}

/// A fault of the bytes, its text made safe.
fn cause_text(cause: &FormatErrorKind) -> String {
    untrusted(cause.to_string().as_bytes())
}

fn counted(count: &Fact, one: &str, many: &str) -> String {
    match count {
        Fact::Number(1) => format!("1 {one}"),
        Fact::Number(count) => format!("{count} {many}"),
        _ => many.to_owned(),
    }
}

fn fact_text(id: FindingId, fact: &Fact) -> String {
    match fact {
        Fact::Checksum(checksum) => format!("{checksum:#010x}"),
        Fact::Number(number) => number.to_string(),
        Fact::Offset(offset) => offset.to_string(),
        Fact::Position(position) => position.to_string(),
        Fact::Timestamp(timestamp) => units::instant_utc(*timestamp),
        Fact::Text(text) => untrusted(text.as_bytes()),
        Fact::Pair(first, second) => pair_text(id, *first, *second),
    }
}

/// Two numbers that belong together, as what they are in the file of this finding.
fn pair_text(id: FindingId, first: i64, second: i64) -> String {
    use FindingId as Id;
    match id {
        Id::OffsetIndexEntryOrder | Id::OffsetIndexEntryPastEnd | Id::OffsetIndexEntryWrong => {
            format!("offset {first} at position {second}")
        }
        Id::TimeIndexEntryOrder | Id::TimeIndexEntryWrong => {
            format!("{} at offset {second}", units::instant_utc(TimestampMs(first)))
        }
        Id::TxnIndexEntryWrong | Id::TxnIndexEntryMissing => format!("offsets {first} to {second}"),
        Id::LeaderEpochMismatch | Id::LeaderEpochOrder => format!("epoch {first} from offset {second}"),
        Id::BatchPayloadOdd => format!("version {first}, readable by version {second}"),
        _ => format!("({first}, {second})"),
    }
}

/// Appends a finding as a JSON object.
pub fn push_finding(out: &mut Vec<u8>, finding: &Finding) {
    out.extend_from_slice(b"{\"id\":");
    push_string(out, finding.id.as_str());
    push_next(out, "severity");
    push_string(out, finding.severity.name());
    out.push(b',');
    push_place_and_facts(out, finding);
    push_next(out, "repair");
    push_string(out, finding.repair.name());
    out.push(b'}');
}

/// Appends where a finding is, its facts and its sentence, without braces.
pub fn push_place_and_facts(out: &mut Vec<u8>, finding: &Finding) {
    let location = &finding.location;
    let topic_partition = location.topic_partition.as_ref();
    push_member_bytes(out, "log_dir", Some(location.log_dir.as_os_str().as_encoded_bytes()));
    out.push(b',');
    push_member_bytes(out, "topic", topic_partition.map(TopicPartition::topic_bytes));
    push_next(out, "partition");
    push_optional(out, topic_partition.map(TopicPartition::partition));
    out.push(b',');
    push_member_bytes(out, "path", Some(location.path.as_os_str().as_encoded_bytes()));
    push_next(out, "position");
    push_optional(out, location.position.map(|position| position.0));
    push_next(out, "size_bytes");
    push_optional(out, location.size_bytes);
    push_next(out, "first_offset");
    push_optional(out, location.first_offset.map(|offset| offset.0));
    push_next(out, "last_offset");
    push_optional(out, location.last_offset.map(|offset| offset.0));
    push_next(out, "expected");
    push_fact(out, finding.expected.as_ref());
    push_next(out, "found");
    push_fact(out, finding.found.as_ref());
    push_next(out, "message");
    push_string(out, &sentence(finding));
}

fn push_next(out: &mut Vec<u8>, name: &str) {
    out.push(b',');
    push_name(out, name, "");
}

fn push_fact(out: &mut Vec<u8>, fact: Option<&Fact>) {
    match fact {
        None => out.extend_from_slice(b"null"),
        Some(Fact::Checksum(checksum)) => push_string(out, &format!("{checksum:#010x}")),
        Some(Fact::Number(number)) => push_number(out, *number),
        Some(Fact::Offset(offset)) => push_number(out, offset.0),
        Some(Fact::Position(position)) => push_number(out, position.0),
        Some(Fact::Timestamp(time)) => push_number(out, time.0),
        Some(Fact::Text(text)) => push_string(out, text),
        Some(Fact::Pair(first, second)) => {
            out.push(b'[');
            push_number(out, *first);
            out.push(b',');
            push_number(out, *second);
            out.push(b']');
        }
    }
}

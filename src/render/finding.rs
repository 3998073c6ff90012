//! A finding as a sentence, and as the members of a JSON object. The same everywhere a finding is printed.

use std::fmt::Write as _;

use super::json_text::{push_member_bytes, push_name, push_number, push_optional, push_string};
use super::units;
use super::untrusted::untrusted;
use crate::format::FormatErrorKind;
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
    let (expected, found) = (finding.expected.as_ref(), finding.found.as_ref());
    let _ = match (finding.id, expected, found) {
        (FindingId::BatchCrcMismatch | FindingId::SnapshotCrcMismatch, Some(stored), Some(computed)) => {
            write!(text, ": crc {}, computed {}", fact_text(stored), fact_text(computed))
        }
        (FindingId::BatchTornTail, Some(declared), Some(there)) => {
            write!(text, ": {} bytes declared, {} there", fact_text(declared), fact_text(there))
        }
        (FindingId::BatchLengthInvalid, None, Some(length)) => write!(text, ": it says {}", fact_text(length)),
        (FindingId::BatchLengthInvalid, Some(right), Some(length)) => {
            write!(text, ": it says {}, right is {}", fact_text(length), fact_text(right))
        }
        (FindingId::TransactionOpen | FindingId::TransactionHanging | FindingId::TransactionForeignBatch, ..) => {
            found.map_or(Ok(()), |producer| write!(text, ": producer {}", fact_text(producer)))
        }
        (FindingId::SegmentGap, Some(end), Some(start)) => {
            write!(text, ": the last one ends before {}, this one begins at {}", fact_text(end), fact_text(start))
        }
        (FindingId::LeftoverSwap, Some(old), Some(new)) => {
            write!(text, ": it replaces {} records by {} when it is finished", fact_text(old), fact_text(new))
        }
        (_, Some(expected), Some(found)) => {
            write!(text, ": expected {}, found {}", fact_text(expected), fact_text(found))
        }
        (_, Some(expected), None) => write!(text, ": expected {}", fact_text(expected)),
        (_, None, Some(found)) => write!(text, ": {}", fact_text(found)),
        (_, None, None) => Ok(()),
    };
}

/// A fault of the bytes, its text made safe.
fn cause_text(cause: &FormatErrorKind) -> String {
    untrusted(cause.to_string().as_bytes())
}

fn fact_text(fact: &Fact) -> String {
    match fact {
        Fact::Checksum(checksum) => format!("{checksum:#010x}"),
        Fact::Number(number) => number.to_string(),
        Fact::Offset(offset) => offset.to_string(),
        Fact::Position(position) => position.to_string(),
        Fact::Timestamp(timestamp) => units::instant_utc(*timestamp),
        Fact::Text(text) => untrusted(text.as_bytes()),
        Fact::Pair(first, second) => format!("({first}, {second})"),
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

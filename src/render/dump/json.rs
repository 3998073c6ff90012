//! JSON Lines. Every field is described in segtool-json(5).

use super::decoded;
use super::entries;
use super::names::{codec_name, timestamp_type_name};
use super::payload::Payload;
use crate::format::{BatchHeader, Cursor, Shape};
use crate::logdir::TopicPartition;
use crate::ops::Finding;
use crate::ops::dump::{BatchEvent, Decode, DumpSummary, Event, FileEntry, RecordEvent, Source};
use crate::render::finding::push_place_and_facts;
use crate::render::json_text::{push_flag, push_member_bytes, push_name, push_number, push_optional};
use crate::render::untrusted::push_hex_byte;

/// Renders events as JSON objects, one a line.
#[derive(Clone, Copy, Default, Debug)]
pub struct JsonLines {
    /// How payload bytes are shown.
    pub payload: Payload,
    /// Which records are decoded.
    pub decode: Decode,
}

impl JsonLines {
    /// Appends the line of an event.
    pub fn push_event(&self, event: &Event<'_>, out: &mut Vec<u8>) {
        match event {
            Event::Record(event) => self.push_record(event, out),
            Event::Batch(event) => push_batch(event, out),
            Event::Entry(source, entry) => push_entry(source, entry, out),
            Event::Damage(finding) => push_damage(finding, out),
        }
        out.extend_from_slice(b"}\n");
    }

    /// The last line of a dump.
    pub fn push_summary(summary: &DumpSummary, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"summary\"");
        for (name, number) in [
            ("batches", summary.batches),
            ("records", summary.records),
            ("bytes", summary.bytes),
            ("damage", summary.damage),
        ] {
            push_next(out, name);
            push_number(out, number);
        }
        push_next(out, "complete");
        push_flag(out, !summary.is_incomplete);
        out.extend_from_slice(b"}\n");
    }

    /// The names stand as they are written: there may be millions of these lines.
    fn push_record(&self, event: &RecordEvent<'_>, out: &mut Vec<u8>) {
        let (header, record) = (event.header, event.record);
        push_start(out, "record", event.source);
        out.extend_from_slice(b",\"position\":");
        push_number(out, header.position.0);
        out.extend_from_slice(b",\"offset\":");
        push_number(out, record.offset.0);
        out.extend_from_slice(b",\"timestamp_ms\":");
        push_optional(out, record.timestamp.map(|time| time.0));
        out.extend_from_slice(b",\"timestamp_type\":");
        push_word(out, timestamp_type_name(record.timestamp_type));
        out.extend_from_slice(b",\"leader_epoch\":");
        push_optional(out, header.leader_epoch.map(|epoch| epoch.0));
        push_producer(out, header);
        out.extend_from_slice(b",\"sequence\":");
        push_optional(out, record.sequence.map(|sequence| sequence.0));
        out.extend_from_slice(b",\"transactional\":");
        push_flag(out, header.is_transactional());
        out.extend_from_slice(b",\"control\":");
        push_control(out, event);
        out.extend_from_slice(b",\"compression\":");
        push_word(out, codec_name(header));
        out.push(b',');
        self.payload.push_json(out, "key", record.key);
        out.push(b',');
        self.payload.push_json(out, "value", record.value);
        out.extend_from_slice(b",\"headers\":[");
        for (index, header) in record.headers.iter().enumerate() {
            out.extend_from_slice(if index > 0 { b",{" } else { b"{" });
            push_member_bytes(out, "key", Some(header.key));
            out.push(b',');
            self.payload.push_json(out, "value", header.value);
            out.push(b'}');
        }
        out.push(b']');
        decoded::push_json(out, event, self.decode);
    }
}

fn push_next(out: &mut Vec<u8>, name: &str) {
    out.push(b',');
    push_name(out, name, "");
}

fn push_word(out: &mut Vec<u8>, word: &str) {
    out.push(b'"');
    out.extend_from_slice(word.as_bytes());
    out.push(b'"');
}

fn push_start(out: &mut Vec<u8>, kind: &str, source: &Source) {
    out.extend_from_slice(b"{\"type\":");
    push_word(out, kind);
    out.push(b',');
    let topic_partition = source.topic_partition.as_ref();
    push_member_bytes(out, "topic", topic_partition.map(TopicPartition::topic_bytes));
    push_next(out, "partition");
    push_optional(out, topic_partition.map(TopicPartition::partition));
    push_next(out, "segment_base_offset");
    push_number(out, source.base_offset.0);
}

fn push_producer(out: &mut Vec<u8>, header: &BatchHeader) {
    out.extend_from_slice(b",\"producer_id\":");
    push_optional(out, header.producer_id.map(|id| id.0));
    out.extend_from_slice(b",\"producer_epoch\":");
    push_optional(out, header.producer_epoch.map(|epoch| epoch.0));
}

/// The name of a control record's type and, for an end marker, the coordinator's epoch behind it.
fn push_control(out: &mut Vec<u8>, event: &RecordEvent<'_>) {
    if !event.header.is_control() {
        out.extend_from_slice(b"null");
        return;
    }
    let mut key = Cursor::new(event.record.key.unwrap_or_default());
    let kind = key.read_i16(Shape::ControlRecord).and_then(|_| key.read_i16(Shape::ControlRecord));
    push_word(
        out,
        match kind {
            Ok(0) => "abort",
            Ok(1) => "commit",
            Ok(2) => "leader_change",
            Ok(3) => "snapshot_header",
            Ok(4) => "snapshot_footer",
            Ok(5) => "kraft_version",
            Ok(6) => "kraft_voters",
            _ => "unknown",
        },
    );
}

fn push_batch(event: &BatchEvent<'_>, out: &mut Vec<u8>) {
    let header = event.header;
    push_start(out, "batch", event.source);
    push_next(out, "position");
    push_number(out, header.position.0);
    push_next(out, "size_bytes");
    push_number(out, header.size_bytes);
    push_next(out, "magic");
    push_number(out, header.magic);
    push_next(out, "base_offset");
    push_number(out, event.base_offset.0);
    push_next(out, "last_offset");
    push_number(out, header.last_offset.0);
    push_next(out, "last_offset_delta");
    push_optional(out, Some(header.last_offset_delta).filter(|_| !header.is_legacy()));
    push_next(out, "records_count");
    push_optional(out, event.records_count);
    push_next(out, "crc");
    push_checksum(out, header.crc);
    // Only sound batches come as batches; others are damage.
    push_next(out, "crc_valid");
    push_flag(out, true);
    push_next(out, "attributes");
    push_number(out, header.attributes.0);
    push_next(out, "compression");
    push_word(out, codec_name(header));
    push_next(out, "timestamp_type");
    push_word(out, timestamp_type_name(header.timestamp_type()));
    push_next(out, "base_timestamp_ms");
    push_optional(out, header.base_timestamp.map(|time| time.0));
    push_next(out, "max_timestamp_ms");
    push_optional(out, header.max_timestamp.map(|time| time.0));
    push_next(out, "delete_horizon_ms");
    push_optional(out, header.delete_horizon().map(|time| time.0));
    push_next(out, "leader_epoch");
    push_optional(out, header.leader_epoch.map(|epoch| epoch.0));
    push_producer(out, header);
    push_next(out, "base_sequence");
    push_optional(out, header.base_sequence.map(|sequence| sequence.0));
    push_next(out, "last_sequence");
    push_optional(out, header.last_sequence().map(|sequence| sequence.0));
    push_next(out, "transactional");
    push_flag(out, header.is_transactional());
    push_next(out, "control");
    push_flag(out, header.is_control());
}

fn push_entry(source: &Source, entry: &FileEntry, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":");
    push_word(out, entries::type_name(entry));
    out.push(b',');
    push_member_bytes(out, "path", Some(source.path.as_os_str().as_encoded_bytes()));
    // A checkpoint speaks of partitions of its own.
    if let (Some(topic_partition), false) = (&source.topic_partition, matches!(entry, FileEntry::Checkpoint { .. })) {
        out.push(b',');
        push_member_bytes(out, "topic", Some(topic_partition.topic_bytes()));
        push_next(out, "partition");
        push_number(out, topic_partition.partition());
    }
    entries::push_json(entry, out);
}

fn push_checksum(out: &mut Vec<u8>, checksum: u32) {
    out.extend_from_slice(b"\"0x");
    for byte in checksum.to_be_bytes() {
        push_hex_byte(out, byte);
    }
    out.push(b'"');
}

fn push_damage(finding: &Finding, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"damage\",\"id\":");
    push_word(out, finding.id.as_str());
    out.push(b',');
    push_place_and_facts(out, finding);
}

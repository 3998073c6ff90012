//! One line a record, for people.

use std::io::Write;

use super::decoded;
use super::names::codec_name;
use super::payload::Payload;
use crate::format::{Cursor, Shape, TimestampMs};
use crate::ops::Finding;
use crate::ops::dump::{BatchEvent, Decode, DumpSummary, Event, RecordEvent, Source};
use crate::render::finding::sentence;
use crate::render::units;
use crate::render::untrusted::{push_untrusted, untrusted_path};

const DIM: &str = "\x1b[2m";
const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[31m";
const RESET: &str = "\x1b[0m";

/// Renders events as lines for people.
#[derive(Clone, Copy, Default, Debug)]
pub struct HumanLines {
    /// How payload bytes are shown.
    pub payload: Payload,
    /// Which records are decoded.
    pub decode: Decode,
    /// Whether colours are added.
    pub coloured: bool,
}

impl HumanLines {
    /// Appends the line of an event.
    pub fn push_event(&self, event: &Event<'_>, out: &mut Vec<u8>) {
        match event {
            Event::Record(event) => self.push_record(event, out),
            Event::Batch(event) => self.push_batch(event, out),
            Event::Entry(source, entry) => {
                let path = untrusted_path(&source.path);
                push(out, format_args!("{path} {}", super::entries::sentence(entry)));
            }
            Event::Damage(finding) => self.push_damage(finding, out),
        }
        out.push(b'\n');
    }

    /// What a dump came to, in a sentence.
    pub fn summary(summary: &DumpSummary) -> String {
        let mut text = format!(
            "{} records shown, {} batches and {} read",
            units::count(summary.records),
            units::count(summary.batches),
            units::bytes_binary(summary.bytes)
        );
        match summary.damage {
            0 => {}
            1 => text.push_str("; 1 damaged place was passed over"),
            more => text.push_str(&format!("; {} damaged places were passed over", units::count(more))),
        }
        if summary.is_incomplete {
            text.push_str("; NOT COMPLETE: something could not be read");
        }
        text
    }

    fn paint(&self, out: &mut Vec<u8>, code: &str) {
        if self.coloured {
            out.extend_from_slice(code.as_bytes());
        }
    }

    fn push_place(&self, source: &Source, position: u64, out: &mut Vec<u8>) {
        self.paint(out, DIM);
        match &source.topic_partition {
            Some(topic_partition) => push_untrusted(out, topic_partition.dir_name().as_encoded_bytes()),
            None => push_untrusted(out, source.path.as_os_str().as_encoded_bytes()),
        }
        push(out, format_args!(" @{position} "));
        self.paint(out, RESET);
    }

    fn push_record(&self, event: &RecordEvent<'_>, out: &mut Vec<u8>) {
        let (header, record) = (event.header, event.record);
        self.push_place(event.source, header.position.0, out);
        self.paint(out, BOLD);
        push(out, format_args!("off={}", record.offset));
        self.paint(out, RESET);
        push_time(record.timestamp, out);
        if header.is_control() {
            out.push(b' ');
            push_marker(event, out);
            if self.decode != Decode::Never {
                decoded::push_human_control(out, record);
            }
        } else {
            let raw = |out: &mut Vec<u8>, bytes: Option<&[u8]>| self.payload.push_human(out, bytes);
            if decoded::push_human(out, event, self.decode, raw).is_none() {
                out.extend_from_slice(b" key=");
                raw(out, record.key);
                out.extend_from_slice(b" value=");
                raw(out, record.value);
            }
            if let Some(value) = record.value {
                push(out, format_args!(" ({} B)", value.len()));
            }
            for (index, header) in record.headers.iter().enumerate() {
                out.extend_from_slice(if index == 0 { b" headers=[" } else { b", " });
                push_untrusted(out, header.key);
                out.push(b'=');
                self.payload.push_human(out, header.value);
            }
            if !record.headers.is_empty() {
                out.push(b']');
            }
        }
        if let Some(id) = header.producer_id {
            push(out, format_args!(" producer={id}/{}", header.producer_epoch.map_or(-1, |epoch| epoch.0)));
            if let Some(sequence) = record.sequence {
                push(out, format_args!(" seq={sequence}"));
            }
        }
        if header.is_transactional() && !header.is_control() {
            out.extend_from_slice(b" txn");
        }
        if header.attributes.codec_id() != 0 {
            push(out, format_args!(" {}", codec_name(header)));
        }
    }

    fn push_batch(&self, event: &BatchEvent<'_>, out: &mut Vec<u8>) {
        let header = event.header;
        self.push_place(event.source, header.position.0, out);
        self.paint(out, BOLD);
        push(out, format_args!("batch {}..{}", event.base_offset, header.last_offset));
        self.paint(out, RESET);
        match event.records_count {
            Some(1) => out.extend_from_slice(b" 1 record"),
            Some(count) => push(out, format_args!(" {count} records")),
            None => out.extend_from_slice(b" records unreadable"),
        }
        push(out, format_args!(" {} B magic={} {}", header.size_bytes, header.magic, codec_name(header)));
        push_time(header.max_timestamp, out);
        if let Some(epoch) = header.leader_epoch {
            push(out, format_args!(" epoch={epoch}"));
        }
        if let Some(id) = header.producer_id {
            push(out, format_args!(" producer={id}/{}", header.producer_epoch.map_or(-1, |epoch| epoch.0)));
        }
        if let (Some(first), Some(last)) = (header.base_sequence, header.last_sequence()) {
            push(out, format_args!(" seq={first}..{last}"));
        }
        if header.is_transactional() {
            out.extend_from_slice(b" txn");
        }
        if header.is_control() {
            out.extend_from_slice(b" control");
        }
        if let Some(horizon) = header.delete_horizon() {
            push(out, format_args!(" delete-horizon={}", units::instant_utc(horizon)));
        }
        push(out, format_args!(" crc={:#010x}", header.crc));
    }

    fn push_damage(&self, finding: &Finding, out: &mut Vec<u8>) {
        self.paint(out, RED);
        push(out, format_args!("-- {} {}", untrusted_path(&finding.location.path), finding.id.as_str()));
        self.paint(out, RESET);
        push(out, format_args!(": {} --", damage_text(finding)));
    }
}

fn push(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = out.write_fmt(text);
}

fn push_time(time: Option<TimestampMs>, out: &mut Vec<u8>) {
    match time {
        Some(time) => push(out, format_args!(" {}", units::instant_utc(time))),
        None => out.extend_from_slice(b" no-timestamp"),
    }
}

fn push_marker(event: &RecordEvent<'_>, out: &mut Vec<u8>) {
    let mut key = Cursor::new(event.record.key.unwrap_or_default());
    let kind = key.read_i16(Shape::ControlRecord).and_then(|_| key.read_i16(Shape::ControlRecord));
    out.extend_from_slice(match kind {
        Ok(0) => b"ABORT",
        Ok(1) => b"COMMIT",
        Ok(2) => b"LEADER_CHANGE",
        Ok(3) => b"SNAPSHOT_HEADER",
        Ok(4) => b"SNAPSHOT_FOOTER",
        Ok(5) => b"KRAFT_VERSION",
        Ok(6) => b"KRAFT_VOTERS",
        _ => b"CONTROL",
    });
}

/// What a damage is, where, and what is gone with it.
fn damage_text(finding: &Finding) -> String {
    let location = &finding.location;
    let mut text = sentence(finding);
    if let (Some(position), Some(size)) = (location.position, location.size_bytes) {
        text.push_str(&format!("; {size} bytes at position {position} passed over"));
    }
    if let (Some(first), Some(last)) = (location.first_offset, location.last_offset) {
        text.push_str(&format!(", offsets {first} to {last}"));
    }
    text
}

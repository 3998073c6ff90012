//! The tool's lines on standard output, from the events of a walk.

use super::content::{Content, Crash, Decoder, content, unreadable_content};
use super::control::push_control;
use crate::format::legacy::LegacyMessage;
use crate::format::producer_snapshot::ProducerEntry;
use crate::format::record::Record;
use crate::format::{BatchHeader, Offset, TimestampMs, TimestampType};
use crate::ops::kafka_dump::{Event, Heading, StoredSizes};
use crate::render::java::push_text;
use crate::render::message::push_int;

/// Whether the facts about a record stand in front of its content.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum RecordMetadata {
    /// They do.
    #[default]
    Shown,
    /// `--skip-record-metadata`.
    Skipped,
}

/// How records are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Style {
    /// What decodes keys and values; `None` prints neither.
    pub decoder: Option<Decoder>,
    /// Whether the facts about a record are printed.
    pub metadata: RecordMetadata,
}

/// Appends the lines of an event: the ones of the original, complete even where an exception would cut them. What the tool
/// would die of is returned.
pub fn push_event(out: &mut Vec<u8>, path: &[u8], style: Style, event: &Event<'_>) -> Result<(), Crash> {
    let mut crash = Ok(());
    match event {
        Event::Heading(heading) => push_heading(out, *heading),
        Event::Batch { header, crc_matches } => push_batch(out, header, *crc_matches),
        Event::Record { header, record, message } => {
            crash = push_record(out, style, header, record, *message);
        }
        Event::CutMessage { header, sizes } => crash = push_cut_message(out, style, header, *sizes),
        Event::TrailingBytes(count) => {
            let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
            push(out, format_args!("Found {count} invalid bytes at the end of "));
            push_text(out, name);
        }
        Event::OffsetEntry(entry) => {
            push(out, format_args!("offset: {} position: {}", entry.offset, entry.stored_position()));
        }
        Event::TimeEntry(entry) => {
            push(out, format_args!("timestamp: {} offset: {}", entry.timestamp, entry.offset));
        }
        Event::IndexEmpty => {
            push_text(out, path);
            out.extend_from_slice(b" is empty.");
        }
        Event::IndexSound => {
            push_text(out, path);
            out.extend_from_slice(b" passed sanity check.");
        }
        Event::AbortedTransaction(entry) => push(
            out,
            format_args!(
                "version: {} producerId: {} firstOffset: {} lastOffset: {} lastStableOffset: {}",
                entry.version, entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset
            ),
        ),
        Event::Producer(entry) => push_producer(out, entry),
        Event::Trouble(_) => return Ok(()),
    }
    out.push(b'\n');
    crash
}

/// Appends the line in front of each file.
pub fn push_dumping(out: &mut Vec<u8>, path: &[u8]) {
    out.extend_from_slice(b"Dumping ");
    push_text(out, path);
    out.push(b'\n');
}

/// A path as `java.io.File` keeps it: runs of slashes are one, and none is at the end.
pub fn java_path(path: &[u8]) -> Vec<u8> {
    let mut kept = path.to_vec();
    kept.dedup_by(|next, previous| *next == b'/' && *previous == b'/');
    if kept.len() > 1 && kept.last() == Some(&b'/') {
        kept.pop();
    }
    kept
}

pub(super) fn push(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    use std::io::Write as _;
    // Writing to a vector cannot fail.
    let _ = out.write_fmt(text);
}

fn push_heading(out: &mut Vec<u8>, heading: Heading) {
    match heading {
        Heading::Log(offset) => push(out, format_args!("Log starting offset: {offset}")),
        Heading::Bootstrap => out.extend_from_slice(b"KRaft bootstrap snapshot"),
        Heading::Snapshot { end_offset, epoch } => {
            push(out, format_args!("Snapshot end offset: {end_offset}, epoch: {epoch}"));
        }
    }
}

fn push_batch(out: &mut Vec<u8>, header: &BatchHeader, is_valid: bool) {
    if header.is_legacy() {
        push(out, format_args!("offset: {}", header.last_offset));
    } else {
        let attributes = header.attributes;
        push(
            out,
            format_args!(
                "baseOffset: {} lastOffset: {} count: {} baseSequence: {} lastSequence: {} producerId: {} \
                 producerEpoch: {} partitionLeaderEpoch: {} isTransactional: {} isControl: {} deleteHorizonMs: ",
                header.base_offset,
                header.base_offset.0.wrapping_add(header.last_offset_delta.into()),
                header.records_count.unwrap_or(-1),
                header.base_sequence.map_or(-1, |sequence| sequence.0),
                header.last_sequence().map_or(-1, |sequence| sequence.0),
                header.producer_id.map_or(-1, |id| id.0),
                header.producer_epoch.map_or(-1, |epoch| epoch.0),
                header.leader_epoch.map_or(-1, |epoch| epoch.0),
                attributes.is_transactional(),
                attributes.is_control(),
            ),
        );
        let horizon = attributes.has_delete_horizon().then(|| header.base_timestamp.map_or(-1, |time| time.0));
        push_optional(out, horizon);
    }
    push(
        out,
        format_args!(
            " position: {} {}: {} size: {} magic: {} compresscodec: {} crc: {} isvalid: {is_valid}",
            header.position,
            timestamp_type(header.timestamp_type()),
            header.max_timestamp.map_or(-1, |time| time.0),
            header.size_bytes,
            header.magic,
            codec_name(header.attributes.codec_id()),
            header.crc,
        ),
    );
}

fn codec_name(id: u8) -> &'static str {
    match id {
        0 => "none",
        1 => "gzip",
        2 => "snappy",
        3 => "lz4",
        4 => "zstd",
        // The tool's line ends in an exception here.
        5 => "unknown(5)",
        6 => "unknown(6)",
        _ => "unknown(7)",
    }
}

fn timestamp_type(kind: TimestampType) -> &'static str {
    match kind {
        TimestampType::None => "NoTimestampType",
        TimestampType::CreateTime => "CreateTime",
        TimestampType::LogAppendTime => "LogAppendTime",
    }
}

/// `OptionalLong.toString`.
fn push_optional(out: &mut Vec<u8>, number: Option<i64>) {
    match number {
        Some(number) => push(out, format_args!("OptionalLong[{number}]")),
        None => out.extend_from_slice(b"OptionalLong.empty"),
    }
}

fn push_record(
    out: &mut Vec<u8>,
    style: Style,
    header: &BatchHeader,
    record: &Record<'_>,
    message: Option<&LegacyMessage<'_>>,
) -> Result<(), Crash> {
    if style.metadata == RecordMetadata::Shown {
        let sizes = [nullable_size(record.key), nullable_size(record.value)];
        push_metadata(out, header, record.offset, record.timestamp, sizes);
        if !header.is_legacy() {
            push_current_part(out, record);
        }
        if let Some(message) = message {
            push(out, format_args!(" isValid: {} crc: {}", message.crc_matches(), message.crc));
        }
        if header.is_control() {
            return push_control(out, record);
        }
    }
    match style.decoder.filter(|_| !header.is_control()) {
        Some(decoder) => {
            push_content(out, style, content(decoder, record.offset, record.key, record.value)?);
            Ok(())
        }
        None => Ok(()),
    }
}

fn push_content(out: &mut Vec<u8>, style: Style, content: Content<'_>) {
    let mut prefix = if style.metadata == RecordMetadata::Shown { " " } else { "| " };
    for (label, text) in [("key: ", content.key), ("payload: ", content.payload)] {
        if let Some(text) = text {
            out.extend_from_slice(prefix.as_bytes());
            out.extend_from_slice(label.as_bytes());
            out.extend_from_slice(&text);
            prefix = " ";
        }
    }
}

/// A message that is too short for its value: the tool prints its facts and fails at its content.
fn push_cut_message(out: &mut Vec<u8>, style: Style, header: &BatchHeader, sizes: StoredSizes) -> Result<(), Crash> {
    if style.metadata == RecordMetadata::Shown {
        let (key, value) = (i64::from(sizes.key.max(-1)), i64::from(sizes.value.max(-1)));
        push_metadata(out, header, header.last_offset, header.max_timestamp, [key, value]);
        push(out, format_args!(" isValid: false crc: {}", header.crc));
    }
    let Some(decoder) = style.decoder else { return Ok(()) };
    let reason = format!("newLimit > capacity: ({} > {})", sizes.value, sizes.value_available);
    let content = unreadable_content(decoder, header.last_offset, &reason)?;
    push_content(out, style, content);
    Ok(())
}

/// Written piece by piece, since there may be millions.
fn push_metadata(
    out: &mut Vec<u8>,
    header: &BatchHeader,
    offset: Offset,
    timestamp: Option<TimestampMs>,
    [key_size, value_size]: [i64; 2],
) {
    out.extend_from_slice(b"| offset: ");
    push_int(out, offset.0);
    out.push(b' ');
    out.extend_from_slice(timestamp_type(header.timestamp_type()).as_bytes());
    out.extend_from_slice(b": ");
    push_int(out, timestamp.map_or(-1, |time| time.0));
    out.extend_from_slice(b" keySize: ");
    push_int(out, key_size);
    out.extend_from_slice(b" valueSize: ");
    push_int(out, value_size);
}

fn push_current_part(out: &mut Vec<u8>, record: &Record<'_>) {
    out.extend_from_slice(b" sequence: ");
    push_int(out, record.sequence.map_or(-1, |sequence| sequence.0.into()));
    out.extend_from_slice(b" headerKeys: [");
    for (place, header) in record.headers.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        push_text(out, header.key);
    }
    out.push(b']');
}

fn nullable_size(bytes: Option<&[u8]>) -> i64 {
    bytes.map_or(-1, |bytes| i64::try_from(bytes.len()).unwrap_or(i64::MAX))
}

fn push_producer(out: &mut Vec<u8>, entry: &ProducerEntry) {
    push(
        out,
        format_args!(
            "producerId: {} producerEpoch: {} coordinatorEpoch: {} currentTxnFirstOffset: ",
            entry.producer_id,
            entry.producer_epoch,
            entry.coordinator_epoch.unwrap_or(-1),
        ),
    );
    push_optional(out, entry.current_txn_first_offset.map(|offset| offset.0).filter(|offset| *offset >= 0));
    let timestamp = entry.timestamp.map_or(-1, |time| time.0);
    push(out, format_args!(" lastTimestamp: {timestamp}"));
    if let Some(last_offset) = entry.last_offset.filter(|offset| offset.0 >= 0) {
        let last_sequence = entry.last_sequence.unwrap_or(crate::format::Sequence(-1));
        push(
            out,
            format_args!(
                " firstSequence: {} lastSequence: {last_sequence} lastOffset: {last_offset} offsetDelta: {} timestamp: \
                 {timestamp}",
                last_sequence.decrement(entry.offset_delta),
                entry.offset_delta,
            ),
        );
    }
}

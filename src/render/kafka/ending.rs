//! What the tool writes to standard error: what it found at the end of a run, and what it stumbled over on the way.

use std::path::{Path, PathBuf};

use super::content::Crash;
use super::lines::push;
use crate::ops::kafka_dump::{IndexFault, IndexFile, Report, SnapshotFault, Trouble};
use crate::render::java::{java_hash_order, push_text};

/// Appends the blocks at the end of a run. `absolute` makes a path absolute as Java does: by the working directory in front.
pub fn push_report(out: &mut Vec<u8>, report: &Report, absolute: &dyn Fn(&Path) -> Vec<u8>) {
    for (path, pairs) in in_java_order(&report.offset_mismatches, absolute) {
        push_title(out, "Mismatches in :", &path);
        for (indexed, found) in pairs.iter().rev() {
            push(out, format_args!("  Index offset: {indexed}, log offset: {found}\n"));
        }
    }
    for (path, pairs) in in_java_order(&report.time_mismatches, absolute) {
        push_title(out, "Found timestamp mismatch in :", &path);
        for (indexed, found) in pairs {
            push(out, format_args!("  Index timestamp: {indexed}, log timestamp: {found}\n"));
        }
    }
    for (path, pairs) in in_java_order(&report.time_disorder, absolute) {
        push_title(out, "Found out of order timestamp in :", &path);
        for (indexed, previous) in pairs {
            push(out, format_args!("  Index timestamp: {indexed}, Previously indexed timestamp: {previous}\n"));
        }
    }
    for (path, pairs) in in_java_order(&report.offsets_not_found, absolute) {
        push_title(out, "The following indexed offsets are not found in :", &path);
        for (indexed, found) in pairs {
            push(out, format_args!("Indexed offset: {indexed}, found log offset: {found}\n"));
        }
    }
    for (path, pairs) in in_java_order(&report.offset_steps, absolute) {
        push_title(out, "Non-consecutive offsets in ", &path);
        for (offset, following) in pairs {
            push(out, format_args!("  {offset} is followed by {following}\n"));
        }
    }
    if report.steps_left_out > 0 {
        push(out, format_args!("  and {} more, which are not listed\n", report.steps_left_out));
    }
}

fn push_title(out: &mut Vec<u8>, title: &str, path: &[u8]) {
    out.extend_from_slice(title.as_bytes());
    push_text(out, path);
    out.push(b'\n');
}

fn in_java_order<'l, T>(
    list: &'l [(PathBuf, T)],
    absolute: &dyn Fn(&Path) -> Vec<u8>,
) -> impl Iterator<Item = (Vec<u8>, &'l T)> {
    let paths: Vec<Vec<u8>> = list.iter().map(|(path, _)| absolute(path)).collect();
    let order = java_hash_order(&paths);
    order.into_iter().filter_map(move |place| Some((paths.get(place)?.clone(), &list.get(place)?.1)))
}

/// Appends what is said of a trouble, one line. What Kafka's tool survives is said in its words.
pub fn push_trouble(out: &mut Vec<u8>, path: &[u8], trouble: &Trouble) {
    match trouble {
        Trouble::UnknownFile => {
            out.extend_from_slice(b"Ignoring unknown file ");
            push_text(out, path);
        }
        Trouble::Snapshot(fault) => push_snapshot_fault(out, *fault),
        Trouble::Unreadable(error) => push(out, format_args!("{error}")),
        _ => {
            push_text(out, path);
            out.extend_from_slice(b": ");
            push_where(out, trouble);
        }
    }
    out.push(b'\n');
}

fn push_where(out: &mut Vec<u8>, trouble: &Trouble) {
    match trouble {
        Trouble::NameWithoutOffset { text } => {
            push(out, format_args!("the name does not begin with an offset, but with {text:?}"));
        }
        Trouble::SizeTooSmall { position, found } => {
            push(out, format_args!("position {position}: size {found} is smaller than any batch"));
        }
        Trouble::Skipped { from, to } => {
            push(out, format_args!("position {from}: passed over {} bytes to the next sound batch", to.since(*from)));
        }
        Trouble::BatchUnknown { position, magic, codec_id } => {
            push(out, format_args!("position {position}: batch of magic {magic} with codec {codec_id}"));
        }
        Trouble::Records { position, error } => {
            push(out, format_args!("batch at position {position}: {error}"));
        }
        Trouble::NoBatch { offset, position } => {
            push(out, format_args!("offset {offset}: no batch at position {position} of the log"));
        }
        Trouble::IndexUnsound { index, fault } => push_index_fault(out, *index, *fault),
        Trouble::TransactionVersion { version } => {
            push(out, format_args!("entry of version {version}, brokers read version 0"));
        }
        Trouble::UnknownFile | Trouble::Snapshot(_) | Trouble::Unreadable(_) => {}
    }
}

fn push_index_fault(out: &mut Vec<u8>, index: IndexFile, fault: IndexFault) {
    let entry_size = match index {
        IndexFile::Offset => 8,
        IndexFile::Time => 12,
    };
    match fault {
        IndexFault::LastOffset { last, base } => {
            push(out, format_args!("the last offset is {last}, which is less than the base offset {base}"));
        }
        IndexFault::LastTimestamp { last, first } => {
            push(out, format_args!("the last timestamp is {last}, which is less than the first timestamp {first}"));
        }
        IndexFault::Length { size_bytes } => {
            push(out, format_args!("{size_bytes} bytes are not a multiple of {entry_size}"));
        }
    }
}

fn push_snapshot_fault(out: &mut Vec<u8>, fault: SnapshotFault) {
    if let SnapshotFault::Checksum { stored, computed } = fault {
        push(
            out,
            format_args!(
                "Snapshot is corrupt (CRC is no longer valid). Stored crc: {stored}. Computed crc: {computed}"
            ),
        );
        return;
    }
    out.extend_from_slice(b"Snapshot failed schema validation: ");
    match fault {
        SnapshotFault::Version(version) => {
            push(out, format_args!("Snapshot contained an unknown file version {version}"));
        }
        SnapshotFault::NegativeCount => {
            out.extend_from_slice(b"non-nullable field producerEntries was serialized as null");
        }
        SnapshotFault::CountBeyondEnd { count, available } => push(
            out,
            format_args!(
                "Tried to allocate a collection of size {count}, but there are only {available} bytes remaining."
            ),
        ),
        SnapshotFault::Short | SnapshotFault::Checksum { .. } => out.extend_from_slice(b"null"),
    }
}

/// Appends the line about an exception that would have ended Kafka's tool at this place.
pub fn push_crash(out: &mut Vec<u8>, path: &[u8], crash: &Crash) {
    push_text(out, path);
    push(out, format_args!(": Kafka's tool ends here: {crash}\n"));
}

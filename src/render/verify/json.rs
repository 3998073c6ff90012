//! The report as JSON. Every field is described in segtool-json(5).

use crate::logdir::TopicPartition;
use crate::ops::Severity;
use crate::ops::verify::{FileReport, Report, Sound};
use crate::render::finding::push_finding;
use crate::render::json_text::{push_flag, push_member_bytes, push_name, push_number, push_optional, push_string};

/// The document, with a line feed at its end.
pub fn render_json(report: &Report) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(b"{\"schema_version\":1,\"type\":\"verify\"");
    push_next(&mut out, "complete");
    push_flag(&mut out, report.is_complete);
    push_next(&mut out, "live");
    push_flag(&mut out, report.is_live);
    push_next(&mut out, "files");
    push_array(&mut out, &report.files, push_file);
    push_next(&mut out, "findings");
    push_array(&mut out, &report.findings, push_finding);
    push_next(&mut out, "summary");
    push_summary(&mut out, report);
    out.extend_from_slice(b"}\n");
    out
}

fn push_next(out: &mut Vec<u8>, name: &str) {
    out.push(b',');
    push_name(out, name, "");
}

/// One element a line, so that the document can be looked at with the tools of every day.
fn push_array<T>(out: &mut Vec<u8>, elements: &[T], push: impl Fn(&mut Vec<u8>, &T)) {
    out.push(b'[');
    for (index, element) in elements.iter().enumerate() {
        out.extend_from_slice(if index > 0 { b",\n" } else { b"\n" });
        push(out, element);
    }
    out.push(b']');
}

fn push_file(out: &mut Vec<u8>, file: &FileReport) {
    out.push(b'{');
    let topic_partition = file.topic_partition.as_ref();
    push_member_bytes(out, "log_dir", Some(file.log_dir.as_os_str().as_encoded_bytes()));
    out.push(b',');
    push_member_bytes(out, "topic", topic_partition.map(TopicPartition::topic_bytes));
    push_next(out, "partition");
    push_optional(out, topic_partition.map(TopicPartition::partition));
    out.push(b',');
    push_member_bytes(out, "path", Some(file.path.as_os_str().as_encoded_bytes()));
    push_next(out, "kind");
    push_string(out, file.role.name());
    for (name, number) in [
        ("size_bytes", file.size_bytes),
        ("checked_bytes", file.coverage.checked_bytes),
        ("skipped_bytes", file.coverage.skipped_bytes),
        ("unreadable_bytes", file.coverage.unreadable_bytes),
    ] {
        push_next(out, name);
        push_number(out, number);
    }
    out.push(b',');
    push_sound(out, &file.sound);
    push_next(out, "behind_damage");
    match &file.behind_damage {
        None => out.extend_from_slice(b"null"),
        Some(behind) => {
            out.push(b'{');
            push_sound(out, behind);
            push_next(out, "size_bytes");
            push_number(out, behind.bytes);
            out.push(b'}');
        }
    }
    out.push(b'}');
}

fn push_sound(out: &mut Vec<u8>, sound: &Sound) {
    push_name(out, "batches", "");
    push_number(out, sound.batches);
    push_next(out, "records");
    push_number(out, sound.records);
    push_next(out, "first_offset");
    push_optional(out, sound.offsets.map(|(first, _)| first.0));
    push_next(out, "last_offset");
    push_optional(out, sound.offsets.map(|(_, last)| last.0));
}

fn push_summary(out: &mut Vec<u8>, report: &Report) {
    let summary = &report.summary;
    out.push(b'{');
    push_name(out, "partitions", "");
    push_number(out, summary.partitions);
    for (name, number) in [
        ("segments", summary.segments),
        ("files", summary.files),
        ("batches", summary.batches),
        ("records", summary.records),
        ("bytes", summary.bytes),
    ] {
        push_next(out, name);
        push_number(out, number);
    }
    push_next(out, "findings");
    out.push(b'{');
    for (index, severity) in Severity::ALL.iter().rev().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_name(out, severity.name(), "");
        push_number(out, summary.count_of(*severity));
    }
    out.extend_from_slice(b"}}");
}

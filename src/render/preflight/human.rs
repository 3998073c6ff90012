//! The prediction for people: what fails the start, one line a partition that matters, worst first, and one sentence.

use super::json::rule_name;
use crate::ops::broker::FailureKind;
use crate::ops::preflight::{Fatal, Outcome, PartitionReport, Report};
use crate::render::units::{bytes_binary, count};
use crate::render::untrusted::{untrusted, untrusted_path};

const RED: &str = "\u{1b}[31m";
const PLAIN: &str = "\u{1b}[0m";

/// The prediction as text.
pub fn render_human(report: &Report, coloured: impl Into<bool>) -> Vec<u8> {
    let coloured = coloured.into();
    let mut out = String::new();
    let how = if report.clean_shutdown { "after a clean stop" } else { "after a crash" };
    let recorded = if report.is_recorded { "" } else { ", by the rules of its neighbours" };
    out.push_str(&format!("Kafka {} starts {how}{recorded}\n", report.version));
    if report.is_live {
        out.push_str("a broker is running on these files; they may have changed while they were read\n");
    }
    if let Some(fatal) = &report.fatal {
        out.push_str(&highlight(&fatal_sentence(fatal), coloured));
        out.push('\n');
    }
    let mut partitions: Vec<&PartitionReport> = report.partitions.iter().filter(|p| matters(p)).collect();
    partitions.sort_by_key(|p| (std::cmp::Reverse(damage(p)), p.topic_partition.clone()));
    for partition in &partitions {
        let line = partition_line(partition);
        out.push_str(&if damage(partition).0 > 0 { highlight(&line, coloured) } else { line });
        out.push('\n');
    }
    out.push_str(&sentence(report));
    out.push('\n');
    out.into_bytes()
}

fn highlight(text: &str, coloured: bool) -> String {
    if coloured { format!("{RED}{text}{PLAIN}") } else { text.to_owned() }
}

fn matters(partition: &PartitionReport) -> bool {
    !matches!(partition.outcome, Outcome::Unchanged | Outcome::Recovered)
        || partition.records_lost > 0
        || !partition.retention_deletes.is_empty()
        || partition.findings.iter().any(|finding| finding.severity > crate::ops::Severity::Info)
}

/// How bad it is: records first, then what it is.
fn damage(partition: &PartitionReport) -> (u64, Outcome, u64) {
    let records = partition.records_lost.saturating_add(partition.records_misled());
    let fatal = u64::from(partition.outcome == Outcome::Fatal);
    (records.max(fatal), partition.outcome, partition.bytes_lost)
}

fn fatal_sentence(fatal: &Fatal) -> String {
    let what = match fatal.kind {
        FailureKind::StartFails => "the start fails",
        FailureKind::LogDirOffline => "the log dir goes offline, and a broker with no other halts",
    };
    let when = if fatal.every_start { "every time" } else { "once; the next start counts as one after a crash" };
    let path = if fatal.path.as_os_str().is_empty() { &fatal.log_dir } else { &fatal.path };
    format!("{what}, {when}: {}: {}", untrusted_path(path), fatal.reason.meaning())
}

fn partition_line(partition: &PartitionReport) -> String {
    let mut parts = vec![partition.outcome.name().to_owned()];
    if partition.records_lost > 0 {
        parts.push(format!("{} lost", counted(partition.records_lost, "record")));
    }
    if let Some(place) = &partition.truncated_at {
        let name = place.path.file_name().map(|name| untrusted(name.as_encoded_bytes())).unwrap_or_default();
        parts.push(format!("{name} cut at {}, {} gone", place.position, bytes_binary(partition.truncated_bytes)));
    }
    if !partition.deleted_segments.is_empty() {
        parts.push(format!("{} deleted", counted(partition.deleted_segments.len() as u64, "segment")));
    }
    if partition.log_end_offset_before != partition.log_end_offset_after {
        let (before, after) = (partition.log_end_offset_before, partition.log_end_offset_after);
        parts.push(format!("log end {before} becomes {after}"));
    }
    if let Some(first) = partition.retention_deletes.first() {
        let segments = counted(partition.retention_deletes.len() as u64, "segment");
        let misled = partition.records_misled();
        let wrongly = if misled > 0 { format!(", {} wrongly", counted(misled, "record")) } else { String::new() };
        parts.push(format!("retention deletes {segments} by {}{wrongly}", rule_name(first.because)));
    }
    let reasons: Vec<&str> = partition.reasons.iter().map(|id| id.as_str()).collect();
    let why = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
    format!("{}: {}{why}", untrusted(partition.dir_name.as_encoded_bytes()), parts.join(", "))
}

/// `1 record`, `2 records`.
fn counted(value: u64, noun: &str) -> String {
    let plural = if value == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(value))
}

fn sentence(report: &Report) -> String {
    let summary = &report.summary;
    let losing = report.partitions.iter().filter(|partition| partition.records_lost > 0).count();
    let mut text = match (summary.records_lost, &report.fatal) {
        (0, None) => {
            format!("Starting this broker now would destroy nothing in {}", counted(summary.partitions, "partition"))
        }
        (0, Some(_)) => "Starting this broker now would fail and destroy no record".to_owned(),
        (records, _) => format!(
            "Starting this broker now would destroy {} in {}",
            counted(records, "record"),
            counted(losing as u64, "partition")
        ),
    };
    if summary.records_misled > 0 {
        let misled = counted(summary.records_misled, "record");
        text.push_str(&format!("; its first retention pass would delete {misled} because of wrong time indexes"));
    }
    text.push('.');
    text
}

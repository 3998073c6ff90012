//! The prediction as JSON. Field names are a contract: see segtool-json(5).

use serde::Serialize;

use super::super::json_document::{FindingDto, Named, document, path_text as text};
use crate::ops::broker::FailureKind;
use crate::ops::broker::retention::RetentionRule;
use crate::ops::preflight::{Fatal, PartitionReport, Report, RetentionDelete};

#[derive(Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a JSON document are read by name")]
struct Document {
    schema_version: u32,
    r#type: &'static str,
    kafka_version: String,
    recorded: bool,
    complete: bool,
    clean_shutdown: bool,
    live: bool,
    fatal: Option<FatalDto>,
    partitions: Vec<PartitionDto>,
    findings: Vec<FindingDto>,
    summary: SummaryDto,
}

#[derive(Serialize)]
struct FatalDto {
    kind: &'static str,
    #[serde(flatten)]
    log_dir: Named,
    #[serde(flatten)]
    path: Named,
    reason: &'static str,
    every_start: bool,
}

#[derive(Serialize)]
struct PartitionDto {
    #[serde(flatten)]
    log_dir: Named,
    #[serde(flatten)]
    topic: Named,
    partition: i32,
    #[serde(flatten)]
    directory: Named,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    future: bool,
    outcome: &'static str,
    log_start_offset: i64,
    log_end_offset_before: i64,
    log_end_offset_after: i64,
    truncated_bytes: u64,
    truncated_at: Option<PlaceDto>,
    deleted_segments: Vec<i64>,
    deleted_files: Vec<String>,
    rebuilt_files: Vec<String>,
    renamed_files: Vec<(String, String)>,
    records_lost: u64,
    bytes_lost: u64,
    lost_offsets: Vec<(i64, i64)>,
    retention_deletes: Vec<RetentionDto>,
    reasons: Vec<&'static str>,
}

#[derive(Serialize)]
struct PlaceDto {
    #[serde(flatten)]
    path: Named,
    position: u64,
}

#[derive(Serialize)]
struct RetentionDto {
    segment_base_offset: i64,
    because: &'static str,
    largest_timestamp_ms: i64,
    misled_by: Option<&'static str>,
    records: u64,
}

#[derive(Serialize)]
struct SummaryDto {
    partitions: u64,
    truncated: u64,
    records_lost: u64,
    bytes_lost: u64,
    records_lost_to_retention: u64,
}

/// The prediction as one JSON document and a newline.
pub fn render_json(report: &Report) -> Result<Vec<u8>, serde_json::Error> {
    let summary = &report.summary;
    let prediction = Document {
        schema_version: 1,
        r#type: "preflight",
        kafka_version: report.version.to_string(),
        recorded: report.is_recorded,
        complete: report.unreadable.is_empty(),
        clean_shutdown: report.clean_shutdown,
        live: report.is_live,
        fatal: report.fatal.as_ref().map(fatal),
        partitions: report.partitions.iter().map(partition).collect(),
        findings: report.all_findings().map(FindingDto::from).collect(),
        summary: SummaryDto {
            partitions: summary.partitions,
            truncated: summary.truncated,
            records_lost: summary.records_lost,
            bytes_lost: summary.bytes_lost,
            records_lost_to_retention: summary.records_misled,
        },
    };
    document(&prediction)
}

/// Kafka's setting that a rule of retention goes by.
pub fn rule_name(rule: RetentionRule) -> &'static str {
    match rule {
        RetentionRule::LogStartOffset => "log_start_offset",
        RetentionRule::RetentionBytes => "retention_bytes",
        RetentionRule::RetentionMs => "retention_ms",
    }
}

fn fatal(fatal: &Fatal) -> FatalDto {
    FatalDto {
        kind: match fatal.kind {
            FailureKind::StartFails => "startup_fails",
            FailureKind::LogDirOffline => "log_dir_offline",
        },
        log_dir: Named::log_dir(&fatal.log_dir),
        path: Named::path(&fatal.path),
        reason: fatal.reason.as_str(),
        every_start: fatal.every_start,
    }
}

fn partition(report: &PartitionReport) -> PartitionDto {
    let texts = |paths: &[std::path::PathBuf]| paths.iter().map(|path| text(path)).collect();
    PartitionDto {
        log_dir: Named::log_dir(&report.log_dir),
        topic: Named::topic(&report.topic_partition),
        partition: report.topic_partition.partition(),
        directory: Named::new("directory", &report.dir_name),
        future: report.is_future,
        outcome: report.outcome.name(),
        log_start_offset: report.log_start_offset.0,
        log_end_offset_before: report.log_end_offset_before.0,
        log_end_offset_after: report.log_end_offset_after.0,
        truncated_bytes: report.truncated_bytes,
        truncated_at: report
            .truncated_at
            .as_ref()
            .map(|place| PlaceDto { path: Named::path(&place.path), position: place.position.0 }),
        deleted_segments: report.deleted_segments.iter().map(|base| base.0).collect(),
        deleted_files: texts(&report.deleted_files),
        rebuilt_files: texts(&report.rebuilt_files),
        renamed_files: report.renamed_files.iter().map(|(from, to)| (text(from), text(to))).collect(),
        records_lost: report.records_lost,
        bytes_lost: report.bytes_lost,
        lost_offsets: report.lost_offsets.iter().map(|range| (range.first.0, range.last.0)).collect(),
        retention_deletes: report.retention_deletes.iter().map(retention_delete).collect(),
        reasons: report.reasons.iter().map(|id| id.as_str()).collect(),
    }
}

fn retention_delete(delete: &RetentionDelete) -> RetentionDto {
    RetentionDto {
        segment_base_offset: delete.segment_base_offset.0,
        because: rule_name(delete.because),
        largest_timestamp_ms: delete.largest_timestamp.0,
        misled_by: delete.misled_by.map(crate::ops::FindingId::as_str),
        records: delete.records,
    }
}

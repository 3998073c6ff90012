//! The measurements as JSON. Field names are a contract: see segtool-json(5).

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use serde::Serialize;

use crate::format::TimestampMs;
use crate::ops::Finding;
use crate::ops::stat::{
    ContentSummary, Depth, FileFigures, FileSystemConcern, LogDirStat, LogSummary, PartitionStat, Quantiles,
    StatReport, TopicStat,
};
use crate::render::base64::push_base64;
use crate::render::json_text::to_document;

/// A name that is text where it is UTF-8: `name` or `name_base64`, never both.
type Text<'a> = (Option<&'a str>, Option<String>);

#[derive(Serialize)]
struct ReportDto<'a> {
    schema_version: u32,
    r#type: &'static str,
    quick: bool,
    complete: bool,
    live: bool,
    /// What a disk cannot tell.
    unknown: [&'static str; 1],
    totals: TotalsDto,
    log_dirs: Vec<LogDirDto<'a>>,
    topics: Vec<TopicDto<'a>>,
    partitions: Vec<PartitionDto<'a>>,
    findings: Vec<FindingDto<'a>>,
}

#[derive(Serialize)]
struct TotalsDto {
    topics: u64,
    partitions: u64,
    #[serde(flatten)]
    files: FilesDto,
    #[serde(flatten)]
    log: LogDto,
    dirty_bytes: u64,
    clean_bytes: u64,
    dirty_ratio: f64,
    open_transactions: u64,
    bytes_per_second: f64,
    records_per_second: f64,
}

#[derive(Serialize)]
struct FilesDto {
    size_bytes: u64,
    segments: u64,
    index_bytes: u64,
    index_preallocated_bytes: u64,
    files: u64,
    apparent_bytes: u64,
    allocated_bytes: u64,
    file_descriptors: u64,
}

#[derive(Serialize)]
struct LogDto {
    records: Option<u64>,
    batches: u64,
    control_records: u64,
    transactional_batches: u64,
    idempotent_batches: u64,
    batches_by_magic: [u64; 3],
    first_timestamp_ms: Option<i64>,
    last_timestamp_ms: Option<i64>,
    batch_bytes: u64,
    uncompressed_bytes: Option<u64>,
    compression_ratio: Option<f64>,
    codecs: BTreeMap<&'static str, CodecDto>,
    batch_size_bytes: Option<QuantilesDto>,
    records_per_batch: Option<QuantilesDto>,
    record_size_bytes: Option<QuantilesDto>,
    key_bytes: Option<u64>,
    value_bytes: Option<u64>,
    header_bytes: Option<u64>,
    keys: Option<KeysDto>,
    tombstones: Option<u64>,
    unreadable_batches: Option<u64>,
    damaged_bytes: u64,
}

#[derive(Serialize)]
struct CodecDto {
    batches: u64,
    bytes: u64,
    uncompressed_bytes: Option<u64>,
}

#[derive(Serialize)]
struct QuantilesDto {
    p50: u64,
    p95: u64,
    p99: u64,
    max: u64,
    mean: f64,
}

#[derive(Serialize)]
struct KeysDto {
    distinct: u64,
    exact: bool,
    null: u64,
}

#[derive(Serialize)]
struct LogDirDto<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    log_dir: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_dir_base64: Option<String>,
    file_system: Option<FileSystemDto<'a>>,
}

#[derive(Serialize)]
struct FileSystemDto<'a> {
    kind: Option<&'a str>,
    mount_point: Option<String>,
    source: Option<&'a str>,
    options: &'a [String],
    total_bytes: u64,
    free_bytes: u64,
    available_bytes: u64,
    free_inodes: Option<u64>,
    concerns: Vec<&'static str>,
}

#[derive(Serialize)]
struct TopicDto<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic_base64: Option<String>,
    partitions: u64,
    size_bytes: u64,
    records: Option<u64>,
    bytes_per_second: f64,
    distinct_keys: Option<u64>,
}

#[derive(Serialize)]
struct PartitionDto<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    log_dir: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_dir_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic_base64: Option<String>,
    partition: i32,
    #[serde(flatten)]
    files: FilesDto,
    first_offset: Option<i64>,
    last_offset: Option<i64>,
    log_start_offset: i64,
    log_end_offset: i64,
    high_watermark: Option<i64>,
    #[serde(flatten)]
    log: LogDto,
    bytes_per_second: Option<f64>,
    records_per_second: Option<f64>,
    dirty_bytes: u64,
    clean_bytes: u64,
    uncleanable_bytes: u64,
    dirty_ratio: f64,
    first_dirty_offset: i64,
    cleaner_checkpoint: bool,
    open_transactions: u64,
    open: Vec<OpenDto>,
}

#[derive(Serialize)]
struct OpenDto {
    producer_id: i64,
    first_offset: i64,
}

#[derive(Serialize)]
struct FindingDto<'a> {
    id: &'static str,
    severity: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_dir: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_dir_base64: Option<String>,
    topic: Option<&'a str>,
    partition: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_base64: Option<String>,
    position: Option<u64>,
    size_bytes: Option<u64>,
    first_offset: Option<i64>,
    last_offset: Option<i64>,
    message: &'static str,
}

/// One JSON document with a line end.
pub fn render_json(report: &StatReport) -> Result<Vec<u8>, serde_json::Error> {
    let totals = &report.totals;
    let considered = totals.dirty_bytes.saturating_add(totals.clean_bytes);
    let document = ReportDto {
        schema_version: 1,
        r#type: "stat",
        quick: report.depth == Depth::Headers,
        complete: report.is_complete,
        live: report.is_live,
        unknown: ["flush_time"],
        totals: TotalsDto {
            topics: totals.topics,
            partitions: totals.partitions,
            files: files_dto(&totals.files),
            log: log_dto(&totals.log),
            dirty_bytes: totals.dirty_bytes,
            clean_bytes: totals.clean_bytes,
            dirty_ratio: if considered > 0 { totals.dirty_bytes as f64 / considered as f64 } else { 0.0 },
            open_transactions: totals.open_transactions,
            bytes_per_second: totals.bytes_per_second,
            records_per_second: totals.records_per_second,
        },
        log_dirs: report.log_dirs.iter().map(log_dir_dto).collect(),
        topics: report.topics.iter().map(topic_dto).collect(),
        partitions: report.partitions.iter().map(partition_dto).collect(),
        findings: report.findings.iter().map(finding_dto).collect(),
    };
    to_document(&document)
}

fn text(name: &OsStr) -> Text<'_> {
    if let Some(text) = name.to_str() {
        return (Some(text), None);
    }
    let mut base64 = Vec::new();
    push_base64(&mut base64, name.as_encoded_bytes());
    (None, String::from_utf8(base64).ok())
}

fn path_text(path: &Path) -> Text<'_> {
    text(path.as_os_str())
}

fn files_dto(files: &FileFigures) -> FilesDto {
    FilesDto {
        size_bytes: files.log_bytes,
        segments: files.segments,
        index_bytes: files.index_bytes,
        index_preallocated_bytes: files.preallocated_index_bytes,
        files: files.files,
        apparent_bytes: files.apparent_bytes,
        allocated_bytes: files.allocated_bytes,
        file_descriptors: files.file_descriptors(),
    }
}

fn log_dto(log: &LogSummary) -> LogDto {
    let content = log.content.as_ref();
    let time = |timestamp: Option<TimestampMs>| timestamp.map(|timestamp| timestamp.0);
    let codecs = log.codecs.iter().map(|(codec, used)| {
        let dto = CodecDto { batches: used.batches, bytes: used.bytes, uncompressed_bytes: used.uncompressed_bytes };
        (codec.name(), dto)
    });
    LogDto {
        records: log.records,
        batches: log.batches,
        control_records: log.control_records,
        transactional_batches: log.transactional_batches,
        idempotent_batches: log.idempotent_batches,
        batches_by_magic: log.batches_by_magic,
        first_timestamp_ms: time(log.first_timestamp),
        last_timestamp_ms: time(log.last_timestamp),
        batch_bytes: log.batch_bytes,
        uncompressed_bytes: log.uncompressed_bytes,
        compression_ratio: log.compression_ratio(),
        codecs: codecs.collect(),
        batch_size_bytes: log.batch_sizes.map(quantiles_dto),
        records_per_batch: log.batch_records.map(quantiles_dto),
        record_size_bytes: content.and_then(|content| content.record_sizes).map(quantiles_dto),
        key_bytes: content.map(|content| content.payload.keys),
        value_bytes: content.map(|content| content.payload.values),
        header_bytes: content.map(|content| content.payload.headers),
        keys: content.map(keys_dto),
        tombstones: content.map(|content| content.tombstones),
        unreadable_batches: content.map(|content| content.unreadable_batches),
        damaged_bytes: log.damaged_bytes,
    }
}

fn keys_dto(content: &ContentSummary) -> KeysDto {
    KeysDto { distinct: content.distinct_keys, exact: content.distinct_is_exact, null: content.unkeyed }
}

fn quantiles_dto(quantiles: Quantiles) -> QuantilesDto {
    QuantilesDto {
        p50: quantiles.p50,
        p95: quantiles.p95,
        p99: quantiles.p99,
        max: quantiles.max,
        mean: quantiles.mean,
    }
}

fn log_dir_dto(log_dir: &LogDirStat) -> LogDirDto<'_> {
    let (path, path_base64) = path_text(&log_dir.path);
    let concerns: Vec<&'static str> = log_dir.concerns.iter().map(|concern| concern_id(*concern)).collect();
    let file_system = log_dir.file_system.as_ref().map(|file_system| {
        let mount = file_system.mount.as_ref();
        FileSystemDto {
            kind: mount.map(|mount| mount.kind.as_str()),
            mount_point: mount.map(|mount| mount.mount_point.to_string_lossy().into_owned()),
            source: mount.map(|mount| mount.source.as_str()),
            options: mount.map_or(&[], |mount| &mount.options),
            total_bytes: file_system.total_bytes,
            free_bytes: file_system.free_bytes,
            available_bytes: file_system.available_bytes,
            free_inodes: file_system.free_inodes,
            concerns,
        }
    });
    LogDirDto { log_dir: path, log_dir_base64: path_base64, file_system }
}

fn concern_id(concern: FileSystemConcern) -> &'static str {
    match concern {
        FileSystemConcern::Network => "network",
        FileSystemConcern::Memory => "memory",
        FileSystemConcern::ReadOnly => "read-only",
        FileSystemConcern::AccessTimes => "access-times",
        FileSystemConcern::NoBarriers => "no-barriers",
        FileSystemConcern::WriteBackJournal => "write-back-journal",
        FileSystemConcern::NearlyFull => "nearly-full",
        FileSystemConcern::FewInodes => "few-inodes",
    }
}

fn topic_dto(topic: &TopicStat) -> TopicDto<'_> {
    let (name, name_base64) = text(&topic.topic);
    TopicDto {
        topic: name,
        topic_base64: name_base64,
        partitions: topic.partitions,
        size_bytes: topic.log_bytes,
        records: topic.records,
        bytes_per_second: topic.bytes_per_second,
        distinct_keys: topic.distinct_keys,
    }
}

fn partition_dto(partition: &PartitionStat) -> PartitionDto<'_> {
    let (log_dir, log_dir_base64) = path_text(&partition.log_dir);
    let (topic, topic_base64) = text(partition.topic_partition.topic());
    let cleaning = &partition.cleaning;
    PartitionDto {
        log_dir,
        log_dir_base64,
        topic,
        topic_base64,
        partition: partition.topic_partition.partition(),
        files: files_dto(&partition.files),
        first_offset: partition.log.first_offset.map(|offset| offset.0),
        last_offset: partition.log.last_offset.map(|offset| offset.0),
        log_start_offset: partition.log_start_offset.0,
        log_end_offset: partition.log_end_offset.0,
        high_watermark: partition.high_watermark.map(|offset| offset.0),
        log: log_dto(&partition.log),
        bytes_per_second: partition.log.bytes_per_second(),
        records_per_second: partition.log.records_per_second(),
        dirty_bytes: cleaning.dirty_bytes,
        clean_bytes: cleaning.clean_bytes,
        uncleanable_bytes: cleaning.uncleanable_bytes,
        dirty_ratio: cleaning.dirty_ratio,
        first_dirty_offset: cleaning.first_dirty_offset.0,
        cleaner_checkpoint: cleaning.has_checkpoint,
        open_transactions: partition.open_transactions.len() as u64,
        open: partition
            .open_transactions
            .iter()
            .map(|open| OpenDto { producer_id: open.producer_id.0, first_offset: open.first_offset.0 })
            .collect(),
    }
}

fn finding_dto(finding: &Finding) -> FindingDto<'_> {
    let location = &finding.location;
    let (log_dir, log_dir_base64) = path_text(&location.log_dir);
    let (path, path_base64) = path_text(&location.path);
    let topic_partition = location.topic_partition.as_ref();
    FindingDto {
        id: finding.id.as_str(),
        severity: finding.severity.name(),
        log_dir,
        log_dir_base64,
        topic: topic_partition.and_then(|topic_partition| topic_partition.topic_str()),
        partition: topic_partition.map(crate::logdir::TopicPartition::partition),
        path,
        path_base64,
        position: location.position.map(|position| position.0),
        size_bytes: location.size_bytes,
        first_offset: location.first_offset.map(|offset| offset.0),
        last_offset: location.last_offset.map(|offset| offset.0),
        message: finding.id.meaning(),
    }
}

//! The measurements for people: totals, the file system, the largest topics, a row for each partition.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};

use crate::format::compression::Codec;
use crate::ops::stat::{
    Depth, FileSystemConcern, LogDirStat, LogSummary, PartitionStat, Quantiles, StatReport, TopicStat,
};
use crate::render::units;
use crate::render::untrusted::{untrusted, untrusted_path};

const MOST_TOPICS: usize = 10;
const UNKNOWN: &str = "-";

/// The report as text.
pub fn render_human(report: &StatReport) -> String {
    let mut out = String::new();
    write_totals(&mut out, report);
    for log_dir in &report.log_dirs {
        write_file_system(&mut out, log_dir);
    }
    if report.topics.len() > 1 {
        let rows = report.topics.iter().take(MOST_TOPICS).map(topic_row);
        let headers = ["topic", "partitions", "size", "records", "growth a day", "distinct keys"];
        let _ = writeln!(out, "\nLargest topics\n{}", table(&headers, rows));
    }
    if !report.partitions.is_empty() {
        let headers = [
            "partition",
            "size",
            "on disk",
            "segments",
            "indexes",
            "records",
            "batches",
            "offsets",
            "last record",
            "rate",
        ];
        let _ = writeln!(out, "\nPartitions\n{}", table(&headers, report.partitions.iter().map(size_row)));
        let headers = [
            "partition",
            "codecs",
            "ratio",
            "batch p50/p95/p99/max",
            "records a batch",
            "record p50/p95/p99/max",
            "keys",
            "tombstones",
            "dirty",
            "dirty ratio",
            "open txns",
        ];
        let _ = writeln!(out, "\n{}", table(&headers, report.partitions.iter().map(content_row)));
    }
    let _ = writeln!(out, "\nFlush times are not on disk: unknown.");
    out
}

fn table(headers: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(headers.iter().copied()).add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

fn write_totals(out: &mut String, report: &StatReport) {
    let totals = &report.totals;
    let _ = writeln!(
        out,
        "{} in {} segments of {} partitions of {} topics: {} records in {} batches, {}{}",
        units::bytes_binary(totals.files.log_bytes),
        units::count(totals.files.segments),
        units::count(totals.partitions),
        units::count(totals.topics),
        optional_count(totals.log.records),
        units::count(totals.log.batches),
        time_span(&totals.log),
        if report.is_live { " (a broker is running: the numbers move)" } else { "" },
    );
    let _ = writeln!(
        out,
        "indexes {} ({} preallocated), all files {} apparent, {} on disk; a broker holds {} file descriptors",
        units::bytes_binary(totals.files.index_bytes),
        units::bytes_binary(totals.files.preallocated_index_bytes),
        units::bytes_binary(totals.files.apparent_bytes),
        units::bytes_binary(totals.files.allocated_bytes),
        units::count(totals.files.file_descriptors()),
    );
    let _ = writeln!(
        out,
        "codecs {}; ratio {}; growth {} a day, {} records",
        codec_mix(&totals.log),
        optional_ratio(totals.log.compression_ratio()),
        units::bytes_binary(units::saturating_u64(totals.bytes_per_second * 86_400.0)),
        units::rate_count(totals.records_per_second),
    );
    write_content_totals(out, report);
    if totals.log.damaged_bytes > 0 {
        let damaged = units::bytes_binary(totals.log.damaged_bytes);
        let _ = writeln!(out, "{damaged} are no sound batch ({} findings); see segtool verify", report.findings.len());
    }
    if !report.is_complete {
        let _ = writeln!(out, "incomplete: not everything could be read");
    }
    if report.depth == Depth::Headers {
        let _ = writeln!(out, "headers only: no checksums, no keys, no decompressed sizes");
    }
}

fn write_content_totals(out: &mut String, report: &StatReport) {
    let totals = &report.totals;
    let (clean, dirty) = (totals.clean_bytes, totals.dirty_bytes);
    let _ = write!(
        out,
        "batches {}; open transactions {}; dirty {} of {}",
        quantiles(totals.log.batch_sizes, units::bytes_binary),
        units::count(totals.open_transactions),
        units::bytes_binary(dirty),
        units::bytes_binary(clean.saturating_add(dirty)),
    );
    match totals.log.content {
        Some(content) => {
            let _ = writeln!(
                out,
                "; records {}; {}{} distinct keys, {} tombstones",
                quantiles(content.record_sizes, units::bytes_binary),
                if content.distinct_is_exact { "" } else { "about " },
                units::count(content.distinct_keys),
                units::count(content.tombstones)
            );
        }
        None => out.push('\n'),
    }
}

fn write_file_system(out: &mut String, log_dir: &LogDirStat) {
    let _ = write!(out, "\n{}: ", untrusted_path(&log_dir.path));
    let Some(file_system) = &log_dir.file_system else {
        let _ = writeln!(out, "the file system is unknown");
        return;
    };
    if let Some(mount) = &file_system.mount {
        let _ = write!(
            out,
            "{} on {} ({}), ",
            untrusted(mount.kind.as_bytes()),
            untrusted_path(&mount.mount_point),
            untrusted(mount.options.join(",").as_bytes())
        );
    }
    let _ = writeln!(
        out,
        "{} of {} available{}",
        units::bytes_binary(file_system.available_bytes),
        units::bytes_binary(file_system.total_bytes),
        file_system.free_inodes.map_or_else(String::new, |inodes| format!(", {} inodes free", units::count(inodes)))
    );
    for concern in &log_dir.concerns {
        let _ = writeln!(out, "  ! {}", concern_text(*concern));
    }
}

fn concern_text(concern: FileSystemConcern) -> &'static str {
    match concern {
        FileSystemConcern::Network => {
            "a network file system: locks, fsync and deleting open files are not to be relied on"
        }
        FileSystemConcern::Memory => "in memory: everything is gone with the machine",
        FileSystemConcern::ReadOnly => "mounted read-only: a broker takes this log dir offline",
        FileSystemConcern::AccessTimes => "every read writes an access time: mount with noatime",
        FileSystemConcern::NoBarriers => "write barriers are off: a power failure can lose what was synced",
        FileSystemConcern::WriteBackJournal => "data=writeback: after a crash files may hold zeros",
        FileSystemConcern::NearlyFull => "less than a tenth is available",
        FileSystemConcern::FewInodes => "few inodes are free; a segment takes up to five",
    }
}

fn topic_row(topic: &TopicStat) -> Vec<String> {
    vec![
        untrusted(topic.topic.as_encoded_bytes()),
        units::count(topic.partitions),
        units::bytes_binary(topic.log_bytes),
        optional_count(topic.records),
        units::bytes_binary(units::saturating_u64(topic.bytes_per_second * 86_400.0)),
        optional_count(topic.distinct_keys),
    ]
}

fn partition_name(partition: &PartitionStat) -> String {
    untrusted(partition.topic_partition.dir_name().as_encoded_bytes())
}

fn size_row(partition: &PartitionStat) -> Vec<String> {
    let log = &partition.log;
    vec![
        partition_name(partition),
        units::bytes_binary(partition.files.log_bytes),
        units::bytes_binary(partition.files.allocated_bytes),
        units::count(partition.files.segments),
        units::bytes_binary(partition.files.index_bytes),
        optional_count(log.records),
        units::count(log.batches),
        log.first_offset
            .zip(log.last_offset)
            .map_or_else(|| UNKNOWN.to_owned(), |(first, last)| format!("{first}..{last}")),
        log.last_timestamp.map_or_else(|| UNKNOWN.to_owned(), units::instant_utc),
        log.bytes_per_second().map_or_else(|| UNKNOWN.to_owned(), units::rate),
    ]
}

fn content_row(partition: &PartitionStat) -> Vec<String> {
    let log = &partition.log;
    let content = log.content;
    vec![
        partition_name(partition),
        codec_mix(log),
        optional_ratio(log.compression_ratio()),
        quantiles(log.batch_sizes, units::bytes_binary),
        log.batch_records.map_or_else(|| UNKNOWN.to_owned(), |records| units::ratio(records.mean)),
        content.map_or_else(|| UNKNOWN.to_owned(), |c| quantiles(c.record_sizes, units::bytes_binary)),
        optional_count(content.map(|content| content.distinct_keys)),
        optional_count(content.map(|content| content.tombstones)),
        units::bytes_binary(partition.cleaning.dirty_bytes),
        units::ratio(partition.cleaning.dirty_ratio),
        partition.open_transactions.len().to_string(),
    ]
}

fn optional_count(count: Option<u64>) -> String {
    count.map_or_else(|| UNKNOWN.to_owned(), units::count)
}

fn optional_ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| UNKNOWN.to_owned(), units::ratio)
}

fn quantiles(quantiles: Option<Quantiles>, unit: fn(u64) -> String) -> String {
    let text = |q: Quantiles| [q.p50, q.p95, q.p99, q.max].map(unit).join(" / ");
    quantiles.map_or_else(|| UNKNOWN.to_owned(), text)
}

/// The codecs by their share of the bytes, largest first: `zstd 90%, none 10%`.
fn codec_mix(log: &LogSummary) -> String {
    let all: u64 = log.codecs.iter().map(|(_, used)| used.bytes).sum();
    let mut shares: Vec<(u64, Codec)> = log.codecs.iter().map(|(codec, used)| (used.bytes, *codec)).collect();
    shares.sort_by(|a, b| b.cmp(a));
    match shares.as_slice() {
        [] => UNKNOWN.to_owned(),
        [(_, only)] => only.name().to_owned(),
        _ => shares
            .iter()
            .map(|(bytes, codec)| format!("{codec} {:.0}%", *bytes as f64 * 100.0 / all.max(1) as f64))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

fn time_span(log: &LogSummary) -> String {
    match log.first_timestamp.zip(log.last_timestamp) {
        Some((first, last)) => format!("{} to {}", units::instant_utc(first), units::instant_utc(last)),
        None => "without timestamps".to_owned(),
    }
}

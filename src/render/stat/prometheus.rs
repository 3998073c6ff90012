//! Prometheus text format 0.0.4, for a textfile collector. Metric names follow the broker's own (`kafka.log:type=Log`).

use std::fmt::Write as _;
use std::path::Path;

use crate::ops::stat::{PartitionStat, StatReport};
use crate::render::units;

/// A metric: name, help, type, and its value of a partition, if it has one there.
struct Metric {
    name: &'static str,
    help: &'static str,
    value: fn(&PartitionStat) -> Option<f64>,
}

const METRICS: &[Metric] = &[
    Metric {
        name: "kafka_log_size_bytes",
        help: "Bytes of the log files of all segments.",
        value: |p| Some(p.files.log_bytes as f64),
    },
    Metric {
        name: "kafka_log_segments",
        help: "Segments, the active one included.",
        value: |p| Some(p.files.segments as f64),
    },
    Metric {
        name: "kafka_log_index_bytes",
        help: "Bytes of the index files of all segments, preallocated ones included.",
        value: |p| Some(p.files.index_bytes as f64),
    },
    Metric {
        name: "kafka_log_index_preallocated_bytes",
        help: "Zeros at the end of the active segment's index files.",
        value: |p| Some(p.files.preallocated_index_bytes as f64),
    },
    Metric {
        name: "kafka_log_apparent_bytes",
        help: "Apparent sizes of all files of the partition directory.",
        value: |p| Some(p.files.apparent_bytes as f64),
    },
    Metric {
        name: "kafka_log_allocated_bytes",
        help: "Disk space that the files of the partition directory take.",
        value: |p| Some(p.files.allocated_bytes as f64),
    },
    Metric {
        name: "kafka_log_file_descriptors",
        help: "File descriptors that a broker holds for the segments.",
        value: |p| Some(p.files.file_descriptors() as f64),
    },
    Metric {
        name: "kafka_log_start_offset",
        help: "First offset of the log.",
        value: |p| Some(p.log_start_offset.0 as f64),
    },
    Metric {
        name: "kafka_log_end_offset",
        help: "Offset after the last record.",
        value: |p| Some(p.log_end_offset.0 as f64),
    },
    Metric {
        name: "kafka_log_high_watermark",
        help: "High watermark of the last checkpoint.",
        value: |p| p.high_watermark.map(|offset| offset.0 as f64),
    },
    Metric {
        name: "kafka_log_records",
        help: "Records in the log, control records included.",
        value: |p| p.log.records.map(|records| records as f64),
    },
    Metric { name: "kafka_log_batches", help: "Batches in the log.", value: |p| Some(p.log.batches as f64) },
    Metric {
        name: "kafka_log_uncompressed_bytes",
        help: "Bytes that the batches would take without compression.",
        value: |p| p.log.uncompressed_bytes.map(|bytes| bytes as f64),
    },
    Metric {
        name: "kafka_log_damaged_bytes",
        help: "Bytes of the log files that are no sound batch.",
        value: |p| Some(p.log.damaged_bytes as f64),
    },
    Metric {
        name: "kafka_log_first_timestamp_seconds",
        help: "Smallest record timestamp.",
        value: |p| p.log.first_timestamp.map(|timestamp| timestamp.0 as f64 / 1000.0),
    },
    Metric {
        name: "kafka_log_last_timestamp_seconds",
        help: "Largest record timestamp.",
        value: |p| p.log.last_timestamp.map(|timestamp| timestamp.0 as f64 / 1000.0),
    },
    Metric {
        name: "kafka_log_distinct_keys",
        help: "Different keys, an estimate from 2049 on.",
        value: |p| p.log.content.map(|content| content.distinct_keys as f64),
    },
    Metric {
        name: "kafka_log_tombstones",
        help: "Records with a key and without a value.",
        value: |p| p.log.content.map(|content| content.tombstones as f64),
    },
    Metric {
        name: "kafka_log_open_transactions",
        help: "Transactions without an end marker.",
        value: |p| Some(p.open_transactions.len() as f64),
    },
    Metric {
        name: "kafka_log_cleaner_lag_bytes",
        help: "Bytes that the log cleaner could go over now, as if the topic were compacted.",
        value: |p| Some(p.cleaning.dirty_bytes as f64),
    },
    Metric {
        name: "kafka_log_cleaner_dirty_ratio",
        help: "Dirty bytes as a share of clean and dirty ones.",
        value: |p| Some(p.cleaning.dirty_ratio),
    },
    Metric {
        name: "kafka_log_cleaner_first_dirty_offset",
        help: "Where the log cleaner would go on.",
        value: |p| Some(p.cleaning.first_dirty_offset.0 as f64),
    },
];

/// The report as Prometheus text. With several log dirs each sample also carries its log dir.
pub fn render_prometheus(report: &StatReport) -> String {
    let mut out = String::new();
    let label_dirs = report.log_dirs.len() > 1;
    for metric in METRICS {
        let samples = report.partitions.iter().filter_map(|p| (metric.value)(p).map(|value| (p, value)));
        write_family(&mut out, metric.name, metric.help, samples.map(|(p, value)| (labels(p, label_dirs), value)));
    }
    for (name, help, bytes) in [
        ("kafka_log_codec_bytes", "Bytes of the batches of a codec on disk.", true),
        ("kafka_log_codec_batches", "Batches of a codec.", false),
    ] {
        let samples = report.partitions.iter().flat_map(|p| {
            p.log.codecs.iter().map(move |(codec, used)| {
                let value = if bytes { used.bytes } else { used.batches };
                (format!("{},codec=\"{codec}\"", labels(p, label_dirs)), value as f64)
            })
        });
        write_family(&mut out, name, help, samples);
    }
    write_file_systems(&mut out, report);
    let complete = [(String::new(), if report.is_complete { 1.0 } else { 0.0 })];
    write_family(&mut out, "segtool_stat_complete", "1 if everything was read.", complete.into_iter());
    out.push_str("# Flush times are not on disk: unknown.\n");
    out
}

fn write_file_systems(out: &mut String, report: &StatReport) {
    for (name, help, free) in [
        ("kafka_log_dir_size_bytes", "Size of the file system under a log dir.", false),
        ("kafka_log_dir_available_bytes", "Bytes of it that a broker may still take.", true),
    ] {
        let samples = report.log_dirs.iter().filter_map(|log_dir| {
            let file_system = log_dir.file_system.as_ref()?;
            let value = if free { file_system.available_bytes } else { file_system.total_bytes };
            Some((format!("log_dir=\"{}\"", path_label(&log_dir.path)), value as f64))
        });
        write_family(out, name, help, samples);
    }
}

/// A family without samples is left out.
fn write_family(out: &mut String, name: &str, help: &str, samples: impl Iterator<Item = (String, f64)>) {
    let mut samples = samples.peekable();
    if samples.peek().is_none() {
        return;
    }
    let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n");
    for (labels, value) in samples {
        let braces = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let _ = writeln!(out, "{name}{braces} {}", number(value));
    }
}

/// Whole numbers without an exponent, others as short as they read back exactly.
fn number(value: f64) -> String {
    if (0.0..9e15).contains(&value) && value.fract() == 0.0 {
        return units::saturating_u64(value).to_string();
    }
    value.to_string()
}

fn labels(partition: &PartitionStat, label_dirs: bool) -> String {
    let mut text = format!(
        "topic=\"{}\",partition=\"{}\"",
        label_value(&partition.topic_partition.topic().to_string_lossy()),
        partition.topic_partition.partition()
    );
    if label_dirs {
        let _ = write!(text, ",log_dir=\"{}\"", path_label(&partition.log_dir));
    }
    text
}

fn path_label(path: &Path) -> String {
    label_value(&path.to_string_lossy())
}

/// Backslash, quote and line end are what the format escapes; other control characters have no place in a label.
fn label_value(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => value.push_str("\\\\"),
            '"' => value.push_str("\\\""),
            '\n' => value.push_str("\\n"),
            c if c.is_control() => value.push(char::REPLACEMENT_CHARACTER),
            c => value.push(c),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_escape_what_the_format_asks_for() {
        assert_eq!(label_value("a\"b\\c\nd\u{1b}"), "a\\\"b\\\\c\\nd\u{fffd}");
    }

    #[test]
    fn numbers_are_plain_where_they_are_whole() {
        assert_eq!(number(1_700_000_000.0), "1700000000");
        assert_eq!(number(1_700_000_000.5), "1700000000.5");
        assert_eq!(number(-1.0), "-1");
    }
}

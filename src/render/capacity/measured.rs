//! What was measured from real segments, and what other codecs would make of them.

use std::fmt::Write as _;

use super::human::table;
use super::inputs::size;
use crate::ops::capacity::{Calibration, CodecTrial, CodecTrials, Plan};
use crate::render::units;

/// Writes the section about the segments measured.
pub(super) fn write_calibration(out: &mut String, calibration: &Calibration) {
    let rows = [
        ("partitions, each taken to be there once", units::count(calibration.partitions)),
        ("data records", units::count(calibration.records)),
        ("different keys", units::count(calibration.distinct_keys)),
        ("on disk", units::bytes_decimal(calibration.stored_bytes)),
        ("keys, values and headers before compression", units::bytes_decimal(calibration.payload_bytes)),
        ("a message", format!("{:.1} B", calibration.message_size_bytes)),
        ("on disk / before compression, with all overhead", format!("{:.4}", calibration.compression_ratio)),
        ("a batch on disk", format!("{:.1} B", calibration.batch_size_bytes)),
        ("time span of the records", calibration.span_days.map_or_else(|| "none".to_owned(), days)),
        ("retention seen", calibration.retention_days.map_or_else(|| "none: little has been removed".to_owned(), days)),
        (
            "busiest hour over the mean",
            calibration
                .profile
                .map_or_else(|| "less than a day of records".to_owned(), |p| units::ratio(p.peak_factor())),
        ),
    ];
    let rows = rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]);
    let _ = writeln!(out, "## Measured from segments\n\n{}\n", table(&["measured", "value"], rows));
}

fn days(days: f64) -> String {
    format!("{} d", units::ratio(days))
}

/// Writes the section about codecs.
pub(super) fn write_codecs(out: &mut String, sample: &CodecTrials, plan: &Plan) {
    let row = |trial: &CodecTrial| {
        vec![
            codec_name(trial),
            units::bytes_decimal(trial.bytes),
            format!("{:.3}", trial.bytes as f64 / sample.uncompressed_bytes.max(1) as f64),
            format!("{:.3}", trial.compression_ratio(sample)),
            format!("{:.2} s", trial.compress_seconds_per_gb(sample)),
            format!("{:.2} s", trial.decompress_seconds_per_gb(sample)),
            size(cluster_bytes(trial, sample, plan)),
        ]
    };
    let headers =
        ["codec", "sample", "of uncompressed", "compression ratio", "compress a GB", "decompress a GB", "cluster"];
    let _ = writeln!(
        out,
        "## Other codecs\n\nA sample of {} batches with {} records, {} on disk, {} uncompressed, recompressed batch by \
         batch; {} batches were left out.\n\n{}\n\n\
         CPU time of one core of this machine for 10^9 bytes of uncompressed batches; Java's libraries differ.\n",
        units::count(sample.batches),
        units::count(sample.records),
        units::bytes_decimal(sample.stored_bytes),
        units::bytes_decimal(sample.uncompressed_bytes),
        units::count(sample.skipped_batches),
        table(&headers, sample.trials.iter().map(row))
    );
}

/// The codec with its level.
pub(super) fn codec_name(trial: &CodecTrial) -> String {
    trial.level.map_or_else(|| trial.codec.to_string(), |level| format!("{} {level}", trial.codec))
}

/// The plan's cluster, with this codec's ratio.
pub(super) fn cluster_bytes(trial: &CodecTrial, sample: &CodecTrials, plan: &Plan) -> f64 {
    if plan.inputs.compression_ratio.value > 0.0 && !plan.storage.limited_by_size {
        plan.storage.cluster_bytes / plan.inputs.compression_ratio.value * trial.compression_ratio(sample)
    } else {
        plan.storage.cluster_bytes
    }
}

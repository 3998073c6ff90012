//! Every input of a plan by name: the same list for people and for JSON.

use crate::ops::capacity::{Input, Inputs, Origin};
use crate::render::units;

/// One input.
pub(super) struct InputRow {
    /// Its JSON name.
    pub(super) name: &'static str,
    /// Its value as JSON has it.
    pub(super) value: InputValue,
    /// Its value as people read it.
    pub(super) text: String,
    /// Where it came from.
    pub(super) origin: Origin,
}

/// A value in JSON.
#[derive(serde::Serialize)]
#[serde(untagged)]
pub(super) enum InputValue {
    Number(f64),
    Text(&'static str),
}

/// How JSON spells an origin.
pub(super) fn origin_name(origin: Origin) -> &'static str {
    match origin {
        Origin::Given => "given",
        Origin::Config => "config",
        Origin::Measured => "measured",
        Origin::Derived => "derived",
        Origin::Default => "default",
    }
}

/// How people read an origin.
pub(super) fn origin_text(origin: Origin) -> &'static str {
    match origin {
        Origin::Given => "flag",
        Origin::Config => "config file",
        Origin::Measured => "measured",
        Origin::Derived => "derived",
        Origin::Default => "assumed",
    }
}

fn row(name: &'static str, input: Input<f64>, text: impl Fn(f64) -> String) -> InputRow {
    InputRow { name, value: InputValue::Number(input.value), text: text(input.value), origin: input.origin }
}

fn number<T: Into<f64> + Copy>(input: Input<T>) -> Input<f64> {
    Input { value: input.value.into(), origin: input.origin }
}

fn whole(input: Input<u64>) -> Input<f64> {
    Input { value: input.value as f64, origin: input.origin }
}

fn millis(input: Input<i64>) -> Input<f64> {
    Input { value: input.value as f64, origin: input.origin }
}

fn count(value: f64) -> String {
    units::count(units::saturating_u64(value.round()))
}

pub(super) fn size(value: f64) -> String {
    units::bytes_decimal(units::saturating_u64(value.round()))
}

fn binary(value: f64) -> String {
    units::bytes_binary(units::saturating_u64(value.round()))
}

fn days(value: f64) -> String {
    format!("{} d", units::ratio(value))
}

fn duration(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "a float cast saturates")]
    let duration_ms = value as i64;
    units::duration_ms(duration_ms)
}

/// All inputs, in the order in which the formula uses them.
pub(super) fn input_rows(inputs: &Inputs) -> Vec<InputRow> {
    let mut rows = vec![
        row("messages_per_day", inputs.messages_per_day, count),
        row("message_size_bytes", inputs.message_size_bytes, |value| format!("{} B", units::ratio(value))),
        row("bytes_per_day", inputs.bytes_per_day, size),
        row("compression_ratio", inputs.compression_ratio, units::ratio),
        row("retention_days", inputs.retention_days, days),
    ];
    rows.extend(inputs.retention_bytes.map(|input| row("retention_bytes", input, size)));
    rows.extend([
        row("replication_factor", number(inputs.replication_factor), count),
        row("headroom", inputs.headroom, units::ratio),
        row("brokers", number(inputs.brokers), count),
        row("peak_factor", inputs.peak_factor, units::ratio),
        row("target_throughput", inputs.target_throughput, units::rate),
        row("partition_throughput", inputs.partition_throughput, units::rate),
        row("consumers", number(inputs.consumers), count),
    ]);
    rows.extend(inputs.partitions.map(|input| row("partitions", number(input), count)));
    rows.extend(inputs.segment_bytes.map(|input| row("segment_bytes", whole(input), binary)));
    rows.extend([
        row("segment_ms", millis(inputs.segment_ms), duration),
        row("segment_index_bytes", whole(inputs.segment_index_bytes), binary),
        row("index_interval_bytes", whole(inputs.index_interval_bytes), binary),
        row("batch_size_bytes", inputs.batch_size_bytes, binary),
        row("retention_check_interval_ms", millis(inputs.retention_check_interval_ms), duration),
        row("file_delete_delay_ms", millis(inputs.file_delete_delay_ms), duration),
    ]);
    rows.extend(inputs.disk.map(|input| InputRow {
        name: "disk",
        value: InputValue::Text(input.value.name()),
        text: format!("{} ({})", input.value.name(), units::rate(input.value.bytes_per_second())),
        origin: input.origin,
    }));
    rows.extend(inputs.disk_size_bytes.map(|input| row("disk_size_bytes", input, size)));
    rows.extend([
        row("catch_up_readers", inputs.catch_up_readers, units::ratio),
        row("growth_per_year", inputs.growth_per_year, units::percent),
        row("years", number(inputs.years), count),
        row("fd_buffer", whole(inputs.fd_buffer), count),
    ]);
    rows
}

//! Topic settings that fit a plan.

use super::inputs::{Inputs, Origin};

const MEBIBYTE: u64 = 1 << 20;
const HOUR_MS: i64 = 3_600_000;
const DAY_MS: f64 = 86_400_000.0;
/// Retention removes whole segments, so a partition should consist of enough of them.
const SEGMENTS_PER_RETENTION: f64 = 10.0;

/// Settings of the topic, under Kafka's names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopicSettings {
    /// `retention.ms`.
    pub retention_ms: i64,
    /// `retention.bytes`; -1 is no limit.
    pub retention_bytes: i64,
    /// A `retention.bytes` above the plan, for those who rather lose old records than fill the disk when more is
    /// written than planned.
    pub guard_retention_bytes: i64,
    /// `segment.bytes`.
    pub segment_bytes: u64,
    /// `segment.ms`.
    pub segment_ms: i64,
    /// `segment.index.bytes`.
    pub segment_index_bytes: u64,
    /// `index.interval.bytes`.
    pub index_interval_bytes: u64,
    /// `log.retention.check.interval.ms`, of the broker.
    pub retention_check_interval_ms: i64,
    /// `file.delete.delay.ms`.
    pub file_delete_delay_ms: i64,
}

/// `segment.bytes` for a partition of `partition_bytes`: what was decided, or a tenth of the partition between 64 MiB
/// and Kafka's default of 1 GiB, in whole MiB.
pub(super) fn fitting_segment_bytes(inputs: &Inputs, partition_bytes: f64) -> u64 {
    if let Some(decided) = inputs.segment_bytes {
        return decided.value.max(1);
    }
    let tenth = floor_u64(partition_bytes / SEGMENTS_PER_RETENTION) / MEBIBYTE * MEBIBYTE;
    tenth.clamp(64 * MEBIBYTE, 1024 * MEBIBYTE)
}

/// Settings for partitions that hold `partition_bytes` each, in segments of `segment_bytes`.
pub(super) fn fitting_settings(inputs: &Inputs, partition_bytes: f64, segment_bytes: u64) -> TopicSettings {
    let retention_ms = floor_i64(inputs.retention_days.value * DAY_MS);
    let bound = (partition_bytes * inputs.headroom.value.max(1.0)).ceil() + segment_bytes as f64;
    let guard = floor_u64(bound).div_ceil(MEBIBYTE).saturating_mul(MEBIBYTE);
    TopicSettings {
        retention_ms,
        retention_bytes: inputs.retention_bytes.map_or(-1, |decided| floor_i64(decided.value)),
        guard_retention_bytes: i64::try_from(guard).unwrap_or(i64::MAX),
        segment_bytes,
        segment_ms: fitting_segment_ms(inputs, retention_ms),
        segment_index_bytes: fitting_index_bytes(inputs, segment_bytes),
        index_interval_bytes: inputs.index_interval_bytes.value,
        retention_check_interval_ms: inputs.retention_check_interval_ms.value,
        file_delete_delay_ms: inputs.file_delete_delay_ms.value,
    }
}

/// `segment.ms`: a slow partition must roll within its retention, or it keeps everything for twice as long.
fn fitting_segment_ms(inputs: &Inputs, retention_ms: i64) -> i64 {
    if !matches!(inputs.segment_ms.origin, Origin::Default) {
        return inputs.segment_ms.value;
    }
    (retention_ms / 4).max(HOUR_MS).min(inputs.segment_ms.value)
}

/// `segment.index.bytes`: room for a quarter more time index entries than a full segment has, since a full index rolls.
fn fitting_index_bytes(inputs: &Inputs, segment_bytes: u64) -> u64 {
    if !matches!(inputs.segment_index_bytes.origin, Origin::Default) {
        return inputs.segment_index_bytes.value;
    }
    let interval = (inputs.index_interval_bytes.value as f64).max(inputs.batch_size_bytes.value).max(1.0);
    let entries = (segment_bytes as f64 / interval).ceil() * 1.25;
    floor_u64(entries * 12.0).div_ceil(MEBIBYTE).saturating_mul(MEBIBYTE).clamp(MEBIBYTE, 10 * MEBIBYTE)
}

/// A float cut to a whole number, held at the ends of the range; not a number is 0.
pub(super) fn floor_u64(value: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "a float cast saturates, which is what is asked for")]
    let whole = value as u64;
    whole
}

/// A float cut to a whole number, held at the ends of the range; not a number is 0.
pub(super) fn floor_i64(value: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "a float cast saturates, which is what is asked for")]
    let whole = value as i64;
    whole
}

#[cfg(test)]
mod tests {
    use super::super::inputs::Input;
    use super::*;

    #[test]
    fn segments_are_a_tenth_of_the_partition_between_64_mib_and_1_gib() {
        let inputs = Inputs::default();
        assert_eq!(fitting_segment_bytes(&inputs, 0.0), 64 << 20);
        assert_eq!(fitting_segment_bytes(&inputs, 5e9), 476 << 20);
        assert_eq!(fitting_segment_bytes(&inputs, 1e15), 1 << 30);
        let decided = Inputs { segment_bytes: Some(Input::given(1_000_000)), ..inputs };
        assert_eq!(fitting_segment_bytes(&decided, 5e9), 1_000_000);
    }

    #[test]
    fn the_guard_never_undercuts_the_planned_partition() {
        let settings = fitting_settings(&Inputs::default(), 5e9, 476 << 20);
        assert!(settings.guard_retention_bytes as f64 >= 5e9 * 1.2);
        assert_eq!(settings.retention_ms, 604_800_000);
        assert_eq!(settings.segment_ms, 151_200_000);
        assert_eq!(settings.segment_index_bytes, 1 << 20);
    }
}

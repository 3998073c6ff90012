//! Inputs measured from real segments.

use super::SECONDS_PER_DAY;
use super::inputs::{Input, Inputs, Origin};
use super::simulate::DailyProfile;
use crate::ops::stat::{Depth, StatReport};

const MS_PER_DAY: f64 = 86_400_000.0;

/// What real segments say of the traffic. Each partition is taken to be there once.
#[derive(Clone, PartialEq, Debug)]
pub struct Calibration {
    /// Partitions measured.
    pub partitions: u64,
    /// Data records in them.
    pub records: u64,
    /// Their batches' bytes on disk.
    pub stored_bytes: u64,
    /// Keys, values and headers of the records before compression.
    pub payload_bytes: u64,
    /// Days between the smallest and the largest timestamp; `None` where that says nothing of a rate.
    pub span_days: Option<f64>,
    /// Mean of key, value and headers of a record.
    pub message_size_bytes: f64,
    /// Bytes on disk as a share of the payload: overhead of batches and records is in it.
    pub compression_ratio: f64,
    /// Mean size of a batch on disk.
    pub batch_size_bytes: f64,
    /// Days that the logs reach back, where old segments have been removed from most of them.
    pub retention_days: Option<f64>,
    /// Traffic by hour, where there is more than a day of it.
    pub profile: Option<DailyProfile>,
    /// Different keys.
    pub distinct_keys: u64,
}

/// Why segments say nothing about traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoCalibration {
    /// There is no record with a payload.
    #[error("there are no records to measure")]
    NoRecords,
    /// Only headers were read.
    #[error("the records were not read")]
    NotRead,
}

/// Draws the calibration from a report whose records were read.
pub fn calibrate(report: &StatReport) -> Result<Calibration, NoCalibration> {
    let log = &report.totals.log;
    let content = log.content.as_ref().filter(|_| report.depth == Depth::Records).ok_or(NoCalibration::NotRead)?;
    let payload_bytes = content.payload.total();
    if content.records == 0 || payload_bytes == 0 {
        return Err(NoCalibration::NoRecords);
    }
    let span_days = log.span_seconds().map(|seconds| seconds / SECONDS_PER_DAY);
    let trimmed: Vec<f64> = report
        .partitions
        .iter()
        .filter(|partition| partition.log_start_offset.0 > 0)
        .filter_map(|partition| partition.log.span_seconds())
        .collect();
    let retains = trimmed.len() * 2 > report.partitions.len();
    let longest = trimmed.iter().copied().fold(0.0, f64::max) / SECONDS_PER_DAY;
    let profile = DailyProfile::new(&log.bytes_by_hour.map(|bytes| bytes as f64));
    Ok(Calibration {
        partitions: report.totals.partitions,
        records: content.records,
        stored_bytes: log.batch_bytes,
        payload_bytes,
        span_days,
        message_size_bytes: payload_bytes as f64 / content.records as f64,
        compression_ratio: log.batch_bytes as f64 / payload_bytes as f64,
        batch_size_bytes: log.batch_bytes as f64 / log.batches.max(1) as f64,
        retention_days: Some(longest).filter(|days| retains && *days > 0.0),
        profile: profile.filter(|_| span_days.is_some_and(|days| days >= 1.0)),
        distinct_keys: content.distinct_keys,
    })
}

impl Calibration {
    /// Records a day over the span.
    pub fn messages_per_day(&self) -> Option<f64> {
        self.span_days.map(|days| self.records as f64 / days)
    }

    /// Puts what was measured in the place of what was only assumed. Flags and files keep their word.
    pub fn fill(&self, mut inputs: Inputs) -> Inputs {
        fill(&mut inputs.message_size_bytes, Some(self.message_size_bytes));
        fill(&mut inputs.compression_ratio, Some(self.compression_ratio));
        fill(&mut inputs.batch_size_bytes, Some(self.batch_size_bytes));
        fill(&mut inputs.retention_days, self.retention_days);
        fill(&mut inputs.messages_per_day, self.messages_per_day());
        fill(&mut inputs.peak_factor, self.profile.map(|profile| profile.peak_factor()));
        inputs
    }
}

fn fill(input: &mut Input<f64>, measured: Option<f64>) {
    if let (Origin::Default, Some(value)) = (input.origin, measured) {
        *input = Input::measured(value);
    }
}

/// Milliseconds as days.
pub fn in_days(duration_ms: i64) -> f64 {
    duration_ms as f64 / MS_PER_DAY
}

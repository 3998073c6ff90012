//! The next start of a broker over a repaired partition, predicted.

use std::collections::BTreeMap;

use super::options::{RepairError, RepairOptions};
use super::report::StartAfter;
use crate::logdir::names::DirName;
use crate::ops::Progress;
use crate::ops::broker::Rules;
use crate::ops::preflight::{self, PartitionStart, predict_metadata_log, predict_partition};

/// Predicts the start.
pub(super) fn predict(
    start: &PartitionStart,
    options: &RepairOptions,
    rules: &Rules,
    progress: &dyn Progress,
) -> Result<StartAfter, RepairError> {
    // Every topic whose id is known has it by now, and of the others the cluster may know as well.
    let settings = preflight::Options { topic_ids: BTreeMap::new(), ..options.start.clone() };
    let (report, _) = match start.name {
        DirName::ClusterMetadata(_) => predict_metadata_log(start, &settings, rules, progress)?,
        _ => predict_partition(start, &settings, rules, progress)?,
    };
    Ok(StartAfter {
        outcome: report.outcome,
        truncated_bytes: report.truncated_bytes,
        deleted_segments: u64::try_from(report.deleted_segments.len()).unwrap_or(u64::MAX),
        records_lost: report.records_lost,
        reasons: report.reasons,
    })
}

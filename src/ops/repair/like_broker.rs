//! The directory that a broker's recovery leaves, after an orderly stop that follows at once.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use super::checkpoints::{LogBounds, key_of, of_orderly_stop};
use super::options::{RepairError, RepairOptions};
use super::report::{PartitionRepair, RepairPlan, SetAside, StartAfter};
use crate::format::{Offset, Position};
use crate::logdir::LogScanner;
use crate::logdir::names::{FileKind, FileName, FileSuffix};
use crate::ops::broker::Rules;
use crate::ops::plan::{Accounting, PartitionPlan, Plan, PlanInput, PlanReason};
use crate::ops::preflight::{self, Outcome, PartitionReport, Scope, StartInput};
use crate::ops::{FindingId, PartitionImage, Progress};

/// Plans what a broker's recovery would leave.
pub(super) fn plan_like_broker(
    inputs: &[PlanInput],
    options: &RepairOptions,
    pool: &rayon::ThreadPool,
    progress: &dyn Progress,
) -> Result<RepairPlan, RepairError> {
    let rules = Rules::of(options.start.version);
    let starts: Vec<StartInput> = inputs
        .iter()
        .map(|input| StartInput { log_dir: input.log_dir.clone(), scope: Scope::Selected(input.partitions.clone()) })
        .collect();
    let report = preflight::inspect(&starts, &[], &options.start, pool, progress).ok_or(RepairError::Cancelled)?;
    if let Some(fatal) = &report.fatal {
        return Err(RepairError::StartFails { path: fatal.log_dir.join(&fatal.path), reason: fatal.reason });
    }
    let findings = report.all_findings().cloned().collect();
    let is_complete = report.unreadable.is_empty();
    let mut planned = RepairPlan {
        plan: Plan {
            version: options.start.version,
            is_recorded: rules.is_recorded,
            partitions: Vec::new(),
            checkpoints: Vec::new(),
            findings,
            is_complete,
        },
        repairs: Vec::new(),
        remaining: Vec::new(),
    };
    for input in inputs {
        let mut logs = BTreeMap::new();
        for partition in report.partitions.iter().filter(|partition| partition.log_dir == input.log_dir.path()) {
            let before = PartitionImage::of(&input.log_dir.open_partition(&partition.dir_name)?);
            let after = partition.image.clone().unwrap_or_else(|| before.clone());
            let bounds = LogBounds {
                first_base: first_base(&after).unwrap_or(partition.log_start_offset),
                log_start: partition.log_start_offset,
                log_end: partition.log_end_offset_after,
            };
            if partition.image.is_some() {
                logs.insert(key_of(before.topic_partition()), bounds);
            }
            let plan = partition_plan(before, after, partition, options)?;
            planned.repairs.push(repair_of(partition, &plan, &bounds));
            planned.plan.partitions.push(plan);
        }
        planned.plan.checkpoints.extend(of_orderly_stop(&input.log_dir, &logs)?);
    }
    Ok(planned)
}

/// The base offset of the first segment of an image.
pub(super) fn first_base(image: &PartitionImage) -> Option<Offset> {
    let mut bases = image.files().filter_map(|(name, _)| base_of_log(name));
    bases.next()
}

fn base_of_log(name: &OsStr) -> Option<Offset> {
    match FileName::parse(name) {
        FileName::Segment { base, kind: FileKind::Log, suffix: FileSuffix::None } => Some(base),
        _ => None,
    }
}

fn partition_plan(
    before: PartitionImage,
    after: PartitionImage,
    report: &PartitionReport,
    options: &RepairOptions,
) -> Result<PartitionPlan, RepairError> {
    let mut plan = PartitionPlan { after, ..PartitionPlan::unchanged(before) };
    for finding in &report.findings {
        if let Some(name) = finding.location.path.file_name() {
            plan.note(name, PlanReason::Finding(finding.id));
        }
    }
    plan.gaps = report.lost_offsets.iter().map(|lost| (lost.first, lost.last)).collect();
    plan.accounting = account(&plan, options)?;
    Ok(plan)
}

/// Bytes and records of log files before and after. Records are counted as the headers of framed batches state them.
fn account(plan: &PartitionPlan, options: &RepairOptions) -> Result<Accounting, RepairError> {
    let count = |image: &PartitionImage| -> Result<(u64, u64), RepairError> {
        let (mut bytes, mut records) = (0u64, 0u64);
        for (name, file) in image.files().filter(|(name, _)| base_of_log(name).is_some()) {
            bytes = bytes.saturating_add(file.size_bytes());
            let log = image.open(name, options.start.io)?;
            let mut scanner = LogScanner::new(&log);
            while let Ok(Some(header)) = scanner.next_header() {
                let count = header.records_count.map_or(1, |count| u64::try_from(count).unwrap_or(0));
                records = records.saturating_add(count);
            }
        }
        Ok((bytes, records))
    };
    let (bytes_in, records_in) = count(&plan.before)?;
    let (bytes_kept, records_kept) = count(&plan.after)?;
    Ok(Accounting { bytes_in, bytes_kept, records_in, records_kept, ..Accounting::default() })
}

fn repair_of(report: &PartitionReport, plan: &PartitionPlan, bounds: &LogBounds) -> PartitionRepair {
    let is_lossy = report.truncated_bytes > 0 || !report.deleted_segments.is_empty();
    let reason = report.reasons.first().copied().unwrap_or(FindingId::LogDamageInterior);
    let first_cut = report.truncated_at.as_ref();
    let cut = SetAside {
        file: first_cut.and_then(|cut| cut.path.file_name()).unwrap_or_default().to_os_string(),
        position: first_cut.map_or(Position(0), |cut| cut.position),
        size_bytes: plan.accounting.bytes_in.saturating_sub(plan.accounting.bytes_kept),
        reason,
        offsets: report.lost_offsets.first().zip(report.lost_offsets.last()).map(|(a, b)| (a.first, b.last)),
        records: report.records_lost,
        is_spare: report.records_lost == 0 && reason == FindingId::LogZeroTail,
    };
    PartitionRepair {
        log_start: bounds.log_start,
        log_end: bounds.log_end,
        records_lost: report.records_lost,
        set_aside: if is_lossy { vec![cut] } else { Vec::new() },
        start: StartAfter {
            outcome: Outcome::Unchanged,
            truncated_bytes: 0,
            deleted_segments: 0,
            records_lost: 0,
            reasons: Vec::new(),
        },
    }
}

//! The directory that a broker's recovery leaves, after an orderly stop that follows at once.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use super::checkpoints::{LogBounds, Stored, key_of, of_orderly_stop};
use super::options::{Mode, RepairError, RepairOptions};
use super::report::{PartitionRepair, RepairPlan, SetAside, StartAfter};
use super::source::{Origin, Source, count_records, list, piece_of};
use super::start::{Checks, Surroundings, shutdown_of};
use crate::format::{Offset, Position};
use crate::logdir::names::{CheckpointKind, FileKind, FileName, FileSuffix};
use crate::ops::broker::Rules;
use crate::ops::plan::{Accounting, PartitionPlan, Plan, PlanInput, PlanReason};
use crate::ops::preflight::{self, PartitionReport, Scope, StartInput};
use crate::ops::{Content, DiskRange, FindingId, PartitionImage, Progress, RecordReader, SoundBatches, SoundItem};

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
        mode: Mode::LikeBroker,
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
    let checks = Checks { options, pool, progress };
    for input in inputs {
        let cleaned = Stored::read(&input.log_dir, CheckpointKind::CleanerOffset)?;
        let mut logs = BTreeMap::new();
        for report in report.partitions.iter().filter(|partition| partition.log_dir == input.log_dir.path()) {
            let partition = input.log_dir.open_partition(&report.dir_name)?;
            let before = PartitionImage::of(&partition);
            let Some(after) = report.image.clone() else {
                planned.repairs.push(untouched(report));
                planned.plan.partitions.push(PartitionPlan::unchanged(before));
                continue;
            };
            let key = key_of(before.topic_partition());
            let bounds = LogBounds {
                first_base: first_base(&after).unwrap_or(report.log_start_offset),
                log_start: report.log_start_offset,
                log_end: report.log_end_offset_after,
            };
            let around = Surroundings {
                name: partition.kind().clone(),
                shutdown: shutdown_of(&input.log_dir, options),
                log_start: Some(bounds.log_start),
                recovery_point: Some(bounds.log_end),
                cleaned: cleaned.entries.get(&key).copied(),
            }
            .fitted(&bounds);
            logs.insert(key, bounds);
            planned.remaining.extend(checks.unsound(&after, &around)?);
            let start = checks.predict(&after, &around)?;
            let (plan, set_aside) = partition_plan(before, after, report, &checks)?;
            planned.plan.partitions.push(plan);
            planned.repairs.push(PartitionRepair {
                log_start: bounds.log_start,
                log_end: bounds.log_end,
                records_lost: report.records_lost,
                set_aside,
                start,
                around: Some(around),
            });
        }
        planned.plan.checkpoints.extend(of_orderly_stop(&input.log_dir, &logs)?);
    }
    Ok(planned)
}

/// A directory that a start leaves alone, or whose name alone it changes.
fn untouched(report: &PartitionReport) -> PartitionRepair {
    PartitionRepair {
        log_start: report.log_start_offset,
        log_end: report.log_end_offset_after,
        records_lost: 0,
        set_aside: Vec::new(),
        start: StartAfter {
            outcome: report.outcome,
            truncated_bytes: 0,
            deleted_segments: 0,
            records_lost: 0,
            reasons: Vec::new(),
        },
        around: None,
    }
}

/// The base offset of the first segment of an image.
pub(super) fn first_base(image: &PartitionImage) -> Option<Offset> {
    image.files().find_map(|(name, _)| match FileName::parse(name) {
        FileName::Segment { base, kind: FileKind::Log, suffix: FileSuffix::None } => Some(base),
        _ => None,
    })
}

fn partition_plan(
    before: PartitionImage,
    after: PartitionImage,
    report: &PartitionReport,
    checks: &Checks<'_>,
) -> Result<(PartitionPlan, Vec<SetAside>), RepairError> {
    let mut plan = PartitionPlan { after, ..PartitionPlan::unchanged(before) };
    for finding in &report.findings {
        if let Some(name) = finding.location.path.file_name() {
            plan.note(name, PlanReason::Finding(finding.id));
        }
    }
    plan.gaps = report.lost_offsets.iter().map(|lost| (lost.first, lost.last)).collect();
    let kept = count_records(&plan.after, checks.options.start.io, checks.progress)?;
    let set_aside = set_aside(&plan, report, checks)?;
    let total = |of: fn(&SetAside) -> u64| set_aside.iter().map(of).fold(0, u64::saturating_add);
    plan.accounting = Accounting {
        bytes_in: kept.bytes.saturating_add(total(|range| range.size_bytes)),
        bytes_kept: kept.bytes,
        records_in: kept.records.saturating_add(total(|range| range.records)),
        records_kept: kept.records,
        ..Accounting::default()
    };
    Ok((plan, set_aside))
}

/// What the broker leaves nothing of: ranges of files in use, and of leftovers that it takes something from.
fn set_aside(
    plan: &PartitionPlan,
    report: &PartitionReport,
    checks: &Checks<'_>,
) -> Result<Vec<SetAside>, RepairError> {
    let sources = list(&plan.before);
    let mut kept: BTreeMap<&OsStr, Vec<DiskRange>> = BTreeMap::new();
    for (_, file) in plan.after.files() {
        if let Content::OnDisk { file, ranges, .. } = &file.content {
            kept.entry(file).or_default().extend(ranges);
        }
    }
    let mut set_aside = Vec::new();
    let is_swapped = sources.iter().any(|source| source.origin == Origin::Swap && kept.contains_key(&*source.name));
    for source in &sources {
        let ranges = kept.remove(&*source.name).unwrap_or_default();
        if source.origin != Origin::Live && ranges.is_empty() {
            continue;
        }
        for gone in complement(ranges, source.size_bytes) {
            let mut aside = aside_of(plan, source, gone, checks)?;
            let own = report.findings.iter().find(|finding| finding.location.path.ends_with(&source.name));
            let replaced = is_swapped && gone.len() == source.size_bytes && report.records_lost == 0;
            aside.reason = match (replaced, own) {
                (true, _) => FindingId::LeftoverSwap,
                (false, Some(finding)) => finding.id,
                (false, None) => report.reasons.first().copied().unwrap_or(aside.reason),
            };
            aside.is_spare = replaced || aside.reason == FindingId::LogZeroTail && aside.records == 0;
            set_aside.push(aside);
        }
    }
    Ok(set_aside)
}

/// The ranges of a file that none of these covers.
fn complement(mut ranges: Vec<DiskRange>, size_bytes: u64) -> Vec<DiskRange> {
    ranges.sort_unstable_by_key(|range| range.start);
    let (mut at, end) = (Position(0), Position(size_bytes));
    let mut gone = Vec::new();
    for range in ranges.into_iter().chain([DiskRange { start: end, end }]) {
        if at < range.start {
            gone.push(DiskRange { start: at, end: range.start });
        }
        at = at.max(range.end);
    }
    gone
}

/// A range with the records of the sound batches that begin in it.
fn aside_of(
    plan: &PartitionPlan,
    source: &Source,
    range: DiskRange,
    checks: &Checks<'_>,
) -> Result<SetAside, RepairError> {
    let log = plan.before.open(&source.name, checks.options.start.io)?;
    let mut batches = SoundBatches::from(&log, source.base.unwrap_or(Offset(0)), range.start);
    let mut records = RecordReader::default();
    let mut aside = SetAside {
        file: source.name.clone(),
        position: range.start,
        size_bytes: range.len(),
        reason: FindingId::LogDamageInterior,
        offsets: None,
        records: 0,
        is_spare: false,
    };
    while batches.position() < range.end {
        let piece = match batches.next_item() {
            Some(SoundItem::Batch(batch)) => piece_of(0, &batch, &mut records),
            Some(SoundItem::Damage(_)) => continue,
            None => break,
        };
        let (first, last) = aside.offsets.unwrap_or((piece.first, piece.last));
        aside.offsets = Some((first.min(piece.first), last.max(piece.last)));
        aside.records = aside.records.saturating_add(piece.records);
    }
    Ok(aside)
}

//! Retention offline: which segments of a log go by time, size and log start, and when the others will.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use rayon::prelude::*;

use super::broker::load::{DirectoryRole, LoadInput, LoadedLog, Shutdown, load_log};
use super::broker::retention::{
    Fate, KeptBecause, RetentionOffsets, RetentionOutcome, RetentionRule, RetentionSegment, apply_retention,
};
use super::broker::{LoadStop, Rules, StartFailure};
use super::plan::{Blocker, BlockerKind, CheckpointPlan, PartitionPlan, Plan, PlanInput, PlanReason};
use super::preflight::{Options, retention_segments};
use super::{Finding, FindingId, Location, PartitionImage, Progress};
use crate::format::checkpoint::{LeaderEpochCheckpoint, OffsetCheckpoint};
use crate::format::producer_snapshot::ProducerSnapshot;
use crate::format::{Offset, TimestampMs};
use crate::logdir::names::{CheckpointKind, FileKind, FileName, FileSuffix};
use crate::logdir::{LogDir, LogScanner, ReadError, TopicPartition};

/// Beyond this a timestamp counts as one of the future.
const FUTURE_MS: i64 = 86_400_000;
/// 2000-01-01: records are not older than that.
const OLDEST_PLAUSIBLE_MS: i64 = 946_684_800_000;

/// What retention is told besides the broker's settings.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RetainOptions {
    /// Where logs start; `None`: as the checkpoint says.
    pub log_start: Option<Offset>,
    /// What all replicas have; `None`: as the checkpoint says, else the log end.
    pub high_watermark: Option<Offset>,
}

/// A segment, what one pass does to it, and when it could go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentFate {
    /// The segment.
    pub segment: RetentionSegment,
    /// What this pass does to it.
    pub fate: Fate,
    /// The first instant at which time lets it go, older segments considered; `None`: never.
    pub removable_at: Option<TimestampMs>,
    /// What the log may still grow by before size lets it go, older segments considered; `None`: never.
    pub bytes_until_removable: Option<u64>,
}

/// What retention does to a partition, segment by segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionRetention {
    /// Its segments, oldest first.
    pub segments: Vec<SegmentFate>,
    /// Where the log starts afterwards.
    pub log_start: Offset,
    /// The new, empty segment, where all others go.
    pub rolled: Option<Offset>,
}

/// Why a partition is not touched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Files of an interrupted swap or cleaning are there.
    Leftovers {
        /// The partition.
        topic_partition: TopicPartition,
        /// One of them.
        file: OsString,
    },
    /// A broker could not load the log.
    Unloadable {
        /// The partition.
        topic_partition: TopicPartition,
        /// What a broker stumbles over.
        failure: StartFailure,
    },
}

/// Why there is no plan.
#[derive(Debug)]
pub enum RetainError {
    /// Something could not be read.
    Read(ReadError),
    /// A partition is not in a state to be touched.
    Refused(Refusal),
    /// The user asked to stop.
    Cancelled,
}

impl From<ReadError> for RetainError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// What retention would do, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RetainPlan {
    /// What changes.
    pub plan: Plan,
    /// The reasons, in the order of the plan's partitions.
    pub retention: Vec<PartitionRetention>,
}

/// Plans one pass of retention.
pub fn plan(
    inputs: &[PlanInput],
    options: &Options,
    retain: &RetainOptions,
    pool: &rayon::ThreadPool,
    progress: &dyn Progress,
) -> Result<RetainPlan, RetainError> {
    let rules = Rules::of(options.version);
    let mut plan = Plan {
        version: options.version,
        is_recorded: rules.is_recorded,
        partitions: Vec::new(),
        checkpoints: Vec::new(),
        findings: Vec::new(),
        is_complete: true,
    };
    let mut retention = Vec::new();
    for input in inputs {
        let log_starts = read_offsets(&input.log_dir, CheckpointKind::LogStartOffset)?;
        let high_watermarks = read_offsets(&input.log_dir, CheckpointKind::HighWatermark)?;
        let planned: Vec<Result<Planned, RetainError>> = pool.install(|| {
            let of_partition = |name: &OsString| {
                let partition = input.log_dir.open_partition(name)?;
                let key = key_of(partition.topic_partition());
                let start = PartitionInput {
                    image: PartitionImage::of(&partition),
                    log_start: retain.log_start.or(log_starts.get(&key).copied()).unwrap_or(Offset(0)),
                    high_watermark: retain.high_watermark.or(high_watermarks.get(&key).copied()),
                };
                plan_partition(start, options, &rules, progress)
            };
            input.partitions.par_iter().map(of_partition).collect()
        });
        let mut new_starts = BTreeMap::new();
        for planned in planned {
            let planned = planned?;
            new_starts.insert(key_of(planned.plan.before.topic_partition()), planned.offsets());
            plan.findings.extend(planned.findings);
            plan.partitions.push(planned.plan);
            retention.push(planned.retention);
        }
        plan.checkpoints.extend(plan_checkpoints(&input.log_dir, &new_starts)?);
    }
    Ok(RetainPlan { plan, retention })
}

type Key = (String, i32);

fn key_of(topic_partition: &TopicPartition) -> Key {
    (String::from_utf8_lossy(topic_partition.topic_bytes()).into_owned(), topic_partition.partition())
}

fn read_offsets(log_dir: &LogDir, kind: CheckpointKind) -> Result<BTreeMap<Key, Offset>, ReadError> {
    let bytes = log_dir.read_checkpoint(kind)?.unwrap_or_default();
    let checkpoint = OffsetCheckpoint::parse(&bytes).content;
    let effective = checkpoint.effective();
    Ok(effective.into_iter().map(|((topic, partition), offset)| ((topic.to_owned(), partition), offset)).collect())
}

struct PartitionInput {
    image: PartitionImage,
    log_start: Offset,
    high_watermark: Option<Offset>,
}

struct Planned {
    plan: PartitionPlan,
    retention: PartitionRetention,
    first_base: Offset,
    findings: Vec<Finding>,
}

impl Planned {
    /// The new log start and the base offset of the first segment.
    fn offsets(&self) -> (Offset, Offset) {
        (self.retention.log_start, self.first_base)
    }
}

fn plan_partition(
    start: PartitionInput,
    options: &Options,
    rules: &Rules,
    progress: &dyn Progress,
) -> Result<Planned, RetainError> {
    let leftover = start
        .image
        .files()
        .find(|(name, _)| matches!(FileName::parse(name).suffix(), FileSuffix::Swap | FileSuffix::Cleaned));
    if let Some((name, _)) = leftover {
        let topic_partition = start.image.topic_partition().clone();
        return Err(RetainError::Refused(Refusal::Leftovers { topic_partition, file: name.to_os_string() }));
    }
    let log = load(&start, options, rules, progress)?;
    let segments = retention_segments(&log)?;
    let offsets = RetentionOffsets {
        log_start: log.log_start_offset,
        high_watermark: start.high_watermark.unwrap_or(log.log_end_offset),
        log_end: log.log_end_offset,
    };
    let settings = &options.settings.retention;
    let outcome = apply_retention(&segments, offsets, settings, rules, options.now);
    let mut plan = PartitionPlan::unchanged(start.image);
    delete_segments(&mut plan, &outcome, &log, options.now);
    account(&mut plan, options)?;
    let (blockers, findings) = find_blockers(&plan.before, &outcome, options.now);
    plan.blockers = blockers;
    let kept = outcome.segments.iter().find(|(_, fate)| matches!(fate, Fate::Kept(_)));
    let first_base = kept.map(|(segment, _)| segment.base_offset).or(outcome.rolled).unwrap_or(log.log_end_offset);
    let retention = PartitionRetention {
        segments: explain(&outcome, options),
        log_start: outcome.log_start,
        rolled: outcome.rolled,
    };
    Ok(Planned { plan, retention, first_base, findings })
}

/// The log as a broker has it that was stopped in order: nothing is recovered for the sake of retention.
fn load(
    start: &PartitionInput,
    options: &Options,
    rules: &Rules,
    progress: &dyn Progress,
) -> Result<LoadedLog, RetainError> {
    let input = LoadInput {
        shutdown: Shutdown::Clean,
        recovery_point: Offset(i64::MAX),
        log_start: start.log_start,
        role: DirectoryRole::Log,
    };
    load_log(start.image.clone(), &mut options.environment(rules, progress), input).map_err(|stop| match stop {
        LoadStop::Unreadable(error) => RetainError::Read(error),
        LoadStop::Cancelled => RetainError::Cancelled,
        LoadStop::Failure(failure) => {
            let topic_partition = start.image.topic_partition().clone();
            RetainError::Refused(Refusal::Unloadable { topic_partition, failure })
        }
    })
}

fn delete_segments(plan: &mut PartitionPlan, outcome: &RetentionOutcome, log: &LoadedLog, now: TimestampMs) {
    let mut deleted = false;
    for (segment, rule) in outcome.deleted() {
        deleted = true;
        for kind in FileKind::ALL {
            let name = match kind {
                FileKind::Snapshot => FileName::Snapshot { offset: segment.base_offset, suffix: FileSuffix::None },
                kind => FileName::Segment { base: segment.base_offset, kind, suffix: FileSuffix::None },
            };
            if let Some(name) = name.to_name().filter(|name| plan.after.remove(name).is_some()) {
                plan.note(&name, PlanReason::Retention(rule));
            }
        }
    }
    if let Some(base) = outcome.rolled {
        roll(plan, base, log, now);
    }
    if deleted {
        truncate_epochs(plan, outcome.log_start, log, now);
    }
}

/// The new segment, and the snapshot that is taken with it.
fn roll(plan: &mut PartitionPlan, base: Offset, log: &LoadedLog, now: TimestampMs) {
    for kind in [FileKind::Log, FileKind::OffsetIndex, FileKind::TimeIndex] {
        if let Some(name) = (FileName::Segment { base, kind, suffix: FileSuffix::None }).to_name() {
            plan.after.put_bytes(&name, Vec::new(), now);
            plan.note(&name, PlanReason::Rolled);
        }
    }
    let snapshot = FileName::Snapshot { offset: base, suffix: FileSuffix::None }.to_name();
    if let Some(name) = snapshot.filter(|name| !plan.after.has(name)) {
        let entries: Vec<_> = log.producers.entries().map(super::broker::producers::ProducerEntry::to_stored).collect();
        plan.after.put_bytes(&name, ProducerSnapshot::encode(&entries), now);
        plan.note(&name, PlanReason::Rolled);
    }
}

fn truncate_epochs(plan: &mut PartitionPlan, log_start: Offset, log: &LoadedLog, now: TimestampMs) {
    let name = OsStr::new("leader-epoch-checkpoint");
    if !plan.after.has(name) {
        return;
    }
    let mut epochs = log.epochs.clone();
    epochs.truncate_from_start(log_start);
    if epochs != log.epochs {
        plan.after.put_bytes(name, LeaderEpochCheckpoint::encode(epochs.entries()), now);
        plan.note(name, PlanReason::Follows);
    }
}

/// Counts bytes and records of log files, kept and not.
fn account(plan: &mut PartitionPlan, options: &Options) -> Result<(), ReadError> {
    let mut accounting = plan.accounting;
    for (name, file) in plan.before.files() {
        if !matches!(FileName::parse(name), FileName::Segment { kind: FileKind::Log, suffix: FileSuffix::None, .. }) {
            continue;
        }
        let log = plan.before.open(name, options.io)?;
        let mut scanner = LogScanner::new(&log);
        let mut records = 0u64;
        while let Ok(Some(batch)) = scanner.next_batch() {
            let count = batch.header().records_count.map_or(1, |count| u64::try_from(count).unwrap_or(0));
            records = records.saturating_add(count);
        }
        accounting.bytes_in += file.size_bytes();
        accounting.records_in += records;
        if plan.after.has(name) {
            accounting.bytes_kept += file.size_bytes();
            accounting.records_kept += records;
        } else {
            accounting.dropped.retention += records;
        }
    }
    plan.accounting = accounting;
    Ok(())
}

/// Timestamps that keep segments, though they cannot be true.
fn find_blockers(image: &PartitionImage, outcome: &RetentionOutcome, now: TimestampMs) -> (Vec<Blocker>, Vec<Finding>) {
    let (mut blockers, mut findings) = (Vec::new(), Vec::new());
    for (segment, fate) in &outcome.segments {
        let because = match fate {
            Fate::Kept(KeptBecause::HighWatermark) => Some(BlockerKind::HighWatermark),
            _ => implausible(segment.largest_timestamp, now),
        };
        let Some(because) = because else { continue };
        let offset = segment.base_offset;
        blockers.push(Blocker { because, offset });
        if because == BlockerKind::HighWatermark {
            continue;
        }
        let name = FileName::Segment { base: offset, kind: FileKind::TimeIndex, suffix: FileSuffix::None }.to_name();
        let path = image.relative(&name.unwrap_or_default());
        let location = Location::of_path(image.log_dir(), Some(image.topic_partition().clone()), path);
        findings.push(Finding::new(FindingId::BatchTimestampImplausible, location));
    }
    (blockers, findings)
}

/// What a timestamp is that cannot be one in milliseconds. Zero and what is close to it is left out: index padding says more
/// there, and tests write such.
fn implausible(timestamp: TimestampMs, now: TimestampMs) -> Option<BlockerKind> {
    let latest = now.0.saturating_add(FUTURE_MS);
    let is_plausible = |value: i64| (OLDEST_PLAUSIBLE_MS..=latest).contains(&value);
    let value = timestamp.0;
    match () {
        () if value > latest && (is_plausible(value / 1000) || is_plausible(value / 1_000_000)) => {
            Some(BlockerKind::TimestampTooFine)
        }
        () if value > latest => Some(BlockerKind::FutureTimestamp),
        () if value < OLDEST_PLAUSIBLE_MS && is_plausible(value.saturating_mul(1000)) => {
            Some(BlockerKind::TimestampTooCoarse)
        }
        () => None,
    }
}

/// For each segment when it could go, given that all older ones have to go first.
fn explain(outcome: &RetentionOutcome, options: &Options) -> Vec<SegmentFate> {
    let settings = &options.settings.retention;
    let by_time = settings.deletion == super::broker::retention::Deletion::ByAllRules;
    let total = |kept: &[(RetentionSegment, Fate)]| {
        kept.iter().map(|(segment, _)| segment.size_bytes).fold(0, u64::saturating_add)
    };
    let left: Vec<_> = outcome.segments.iter().filter(|(_, fate)| matches!(fate, Fate::Kept(_))).copied().collect();
    let left_bytes = total(&left);
    let mut fates = Vec::with_capacity(outcome.segments.len());
    let mut not_before = Some(TimestampMs(i64::MIN));
    let mut before_bytes = 0u64;
    for (segment, fate) in &outcome.segments {
        let of_time = settings.retention_ms.filter(|_| by_time).map(|limit| {
            // Strictly older than the limit.
            TimestampMs(segment.largest_timestamp.0.saturating_add(limit).saturating_add(1))
        });
        not_before = match (not_before, of_time) {
            (Some(older), Some(own)) => Some(older.max(own)),
            _ => None,
        };
        let is_kept = matches!(fate, Fate::Kept(_));
        if is_kept {
            before_bytes = before_bytes.saturating_add(segment.size_bytes);
        }
        let bytes_until_removable = settings
            .retention_bytes
            .filter(|_| by_time && is_kept)
            .map(|limit| limit.saturating_add(before_bytes).saturating_sub(left_bytes));
        fates.push(SegmentFate { segment: *segment, fate: *fate, removable_at: not_before, bytes_until_removable });
    }
    fates
}

/// Log start and recovery point of the log dir's checkpoints, where they have to follow.
fn plan_checkpoints(
    log_dir: &LogDir,
    starts: &BTreeMap<Key, (Offset, Offset)>,
) -> Result<Vec<CheckpointPlan>, ReadError> {
    let mut plans = Vec::new();
    for kind in [CheckpointKind::LogStartOffset, CheckpointKind::RecoveryPoint] {
        let before = log_dir.read_checkpoint(kind)?;
        let mut entries = read_offsets(log_dir, kind)?;
        let old = entries.clone();
        for (key, (log_start, first_base)) in starts {
            match (kind, entries.get(key).copied()) {
                // A broker lists a log only where its start lies inside the first segment.
                (CheckpointKind::LogStartOffset, _) if log_start > first_base => {
                    entries.insert(key.clone(), *log_start);
                }
                (CheckpointKind::LogStartOffset, Some(listed)) if listed < *first_base => {
                    entries.remove(key);
                }
                (CheckpointKind::RecoveryPoint, Some(point)) if point < *log_start => {
                    entries.insert(key.clone(), *log_start);
                }
                _ => {}
            }
        }
        if entries != old {
            let rows: Vec<_> = entries.iter().map(|((topic, id), offset)| (topic.as_str(), *id, *offset)).collect();
            plans.push(CheckpointPlan {
                log_dir: log_dir.path().to_path_buf(),
                kind,
                before,
                after: OffsetCheckpoint::encode(rows.into_iter()),
                reasons: vec![PlanReason::Follows],
            });
        }
    }
    Ok(plans)
}

/// The rule that an explanation names for a segment that goes.
pub fn rule_of(fate: Fate) -> Option<RetentionRule> {
    match fate {
        Fate::Deleted(rule) => Some(rule),
        Fate::Kept(_) => None,
    }
}

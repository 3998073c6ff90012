//! The plan of a compaction: partition by partition, and the log dir's checkpoint.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::failure::Uncleanable;
use super::options::{CompactOptions, UnkeyedRecords};
use super::partition::{CleanStop, CleanedPartition, IfCleaned, PartitionInput, clean_partition};
use super::round::RoundReport;
use super::segments::segment_file;
use super::select::{Bound, Selection};
use super::tally::{Accounting, SegmentTally};
use crate::format::checkpoint::OffsetCheckpoint;
use crate::format::{Offset, Position};
use crate::logdir::names::{CheckpointKind, DirName, FileKind};
use crate::logdir::{LogDir, ReadError, TopicPartition};
use crate::ops::broker::load::Shutdown;
use crate::ops::plan::{self, Blocker, BlockerKind, CheckpointPlan, PartitionPlan, Plan, PlanReason};
use crate::ops::{Change, Fact, Finding, FindingId, Location, PartitionImage, Progress, Severity};

/// A log dir and those of its partition directories that are meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompactInput {
    /// The log dir.
    pub log_dir: LogDir,
    /// The directories.
    pub partitions: Vec<OsString>,
}

/// What cleaning does to a partition, and why no more.
#[derive(Clone, PartialEq, Debug)]
pub struct PartitionCleaning {
    /// The rounds that are made.
    pub rounds: Vec<RoundReport>,
    /// What could be cleaned after them.
    pub left: Selection,
    /// What becomes of each log file that was read, by base offset.
    pub segments: Vec<SegmentTally>,
    /// What the cleaner's checkpoint will say, where that changes.
    pub checkpoint: Option<Offset>,
    /// What a broker's cleaner dies of here.
    pub uncleanable: Option<Uncleanable>,
    /// What a round would do that is not made; only if it was asked for.
    pub if_cleaned: Option<IfCleaned>,
}

impl PartitionCleaning {
    /// What could be cleaned before the first round.
    pub fn selection(&self) -> &Selection {
        self.rounds.first().map_or(&self.left, |round| &round.selection)
    }

    /// What becomes of each log file, or would if it were cleaned.
    pub fn explained_segments(&self) -> &[SegmentTally] {
        self.if_cleaned.as_ref().map_or(&self.segments, |round| &round.segments)
    }
}

/// Why a partition must not be touched.
#[derive(Debug)]
pub struct Refusal {
    /// The partition.
    pub topic_partition: TopicPartition,
    /// Why.
    pub reason: RefusalReason,
}

/// Why a partition must not be touched.
#[derive(Debug)]
pub enum RefusalReason {
    /// It is not in a state to be cleaned.
    Stopped(CleanStop),
    /// A broker's cleaner dies of it.
    Uncleanable(Uncleanable),
    /// Records without a key would go, and nobody said that they may.
    Unkeyed {
        /// How many.
        records: u64,
    },
}

/// What a compaction would do, and why.
#[derive(Debug)]
pub struct CompactPlan {
    /// What changes.
    pub plan: Plan,
    /// The reasons, in the order of the plan's partitions.
    pub cleaning: Vec<PartitionCleaning>,
    /// Partitions because of which nothing may be changed.
    pub refusals: Vec<Refusal>,
}

/// Why there is no plan.
#[derive(Debug)]
pub enum CompactError {
    /// Something could not be read.
    Read(ReadError),
    /// The user asked to stop.
    Cancelled,
}

impl From<ReadError> for CompactError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// Plans the rounds of all partitions, one after the other: each takes the whole of the memory that is allowed, but for the batches
/// that are kept until all are written.
pub fn plan(
    inputs: &[CompactInput],
    options: &CompactOptions,
    progress: &dyn Progress,
) -> Result<CompactPlan, CompactError> {
    let mut planned = CompactPlan {
        plan: Plan {
            version: options.rules.version,
            is_recorded: options.rules.is_recorded,
            partitions: Vec::new(),
            checkpoints: Vec::new(),
            findings: Vec::new(),
            is_complete: true,
        },
        cleaning: Vec::new(),
        refusals: Vec::new(),
    };
    let mut options = options.clone();
    for input in inputs {
        let checkpoints = Checkpoints::read(&input.log_dir)?;
        let mut cleaned_to = BTreeMap::new();
        for name in &input.partitions {
            let directory = input.log_dir.open_partition(name)?;
            let topic_partition = directory.topic_partition().clone();
            let start = checkpoints.input_of(&input.log_dir, PartitionImage::of(&directory));
            match clean_partition(&start, &options, progress) {
                Ok(cleaned) => {
                    if let Some(offset) = cleaned.checkpoint {
                        cleaned_to.insert(key_of(&topic_partition), offset);
                    }
                    options.most_made_bytes = options.most_made_bytes.saturating_sub(cleaned.made_bytes);
                    planned.add(cleaned, &options);
                }
                Err(CleanStop::Failed(super::CleanFailure::Cancelled)) => return Err(CompactError::Cancelled),
                Err(CleanStop::Failed(super::CleanFailure::Read(error))) => return Err(error.into()),
                Err(stop) => {
                    planned.refusals.push(Refusal { topic_partition, reason: RefusalReason::Stopped(stop) });
                }
            }
        }
        planned.plan.checkpoints.extend(checkpoints.plan(&input.log_dir, &cleaned_to));
    }
    Ok(planned)
}

impl CompactPlan {
    fn add(&mut self, cleaned: CleanedPartition, options: &CompactOptions) {
        let topic_partition = cleaned.before.topic_partition().clone();
        let refuse = |reason| Refusal { topic_partition: topic_partition.clone(), reason };
        let unkeyed = cleaned.accounting.dropped.unkeyed;
        if unkeyed > 0 && options.unkeyed == UnkeyedRecords::Refuse {
            self.refusals.push(refuse(RefusalReason::Unkeyed { records: unkeyed }));
        }
        if let Some(uncleanable) = &cleaned.uncleanable {
            self.refusals.push(refuse(RefusalReason::Uncleanable(uncleanable.clone())));
        }
        self.plan.findings.extend(findings(&cleaned));
        let mut plan = PartitionPlan::unchanged(cleaned.before);
        plan.after = cleaned.after;
        plan.accounting = accounting(&cleaned.accounting);
        let cleaning = PartitionCleaning {
            rounds: cleaned.rounds,
            left: cleaned.left,
            segments: cleaned.segments,
            checkpoint: cleaned.checkpoint,
            uncleanable: cleaned.uncleanable,
            if_cleaned: cleaned.if_cleaned,
        };
        plan.blockers = blockers(&cleaning, options);
        for change in plan.changes() {
            plan.note(change.name(), reason_of(&change));
        }
        self.plan.partitions.push(plan);
        self.cleaning.push(cleaning);
    }
}

fn reason_of(change: &Change) -> PlanReason {
    match change {
        Change::Remove { .. } => PlanReason::Merged,
        _ => PlanReason::Cleaned,
    }
}

fn accounting(cleaned: &Accounting) -> plan::Accounting {
    let dropped = &cleaned.dropped;
    plan::Accounting {
        bytes_in: cleaned.bytes_in,
        bytes_kept: cleaned.bytes_kept,
        bytes_quarantined: 0,
        records_in: cleaned.records_in,
        records_kept: cleaned.records_kept,
        dropped: plan::Dropped {
            superseded: dropped.superseded,
            tombstone: dropped.tombstone.saturating_add(dropped.marker),
            aborted: dropped.aborted,
            unkeyed: dropped.unkeyed,
            retention: 0,
        },
    }
}

/// What holds cleaning back, nearest first.
fn blockers(cleaning: &PartitionCleaning, options: &CompactOptions) -> Vec<Blocker> {
    let left = &cleaning.left;
    let mut blockers = Vec::new();
    if let Some(uncleanable) = &cleaning.uncleanable {
        blockers.push(Blocker {
            because: BlockerKind::Uncleanable,
            offset: uncleanable.segment.unwrap_or(left.first_dirty),
        });
    } else if left.cleanable_bytes > 0 && !left.is_eligible(&options.settings) {
        blockers.push(Blocker { because: BlockerKind::DirtyRatio, offset: left.first_dirty });
    }
    let active = left.bounds.iter().find(|(_, bound)| *bound == Bound::ActiveSegment).map(|(offset, _)| *offset);
    for (offset, bound) in &left.bounds {
        // What lies in the active segment is not cleaned in any case.
        if *bound == Bound::ActiveSegment || active.is_none_or(|active| *offset < active) {
            blockers.push(Blocker { because: blocker_kind(*bound), offset: *offset });
        }
    }
    let unkeyed = cleaning.segments.iter().find_map(|segment| segment.first_unkeyed);
    if let Some(offset) = unkeyed.filter(|_| options.unkeyed == UnkeyedRecords::Refuse) {
        blockers.push(Blocker { because: BlockerKind::UnkeyedRecord, offset });
    }
    blockers
}

fn blocker_kind(bound: Bound) -> BlockerKind {
    match bound {
        Bound::OpenTransaction => BlockerKind::OpenTransaction,
        Bound::HighWatermark => BlockerKind::HighWatermark,
        Bound::MinCompactionLag => BlockerKind::CompactionLag,
        Bound::ActiveSegment => BlockerKind::ActiveSegment,
    }
}

/// What is wrong with the logs that were read. A broker cleans them all the same, except for what its cleaner dies of.
fn findings(cleaned: &CleanedPartition) -> Vec<Finding> {
    let mut findings = Vec::new();
    let image = &cleaned.before;
    let location = |base: Offset, kind| {
        let path = image.relative(&segment_file(base, kind));
        Location::of_path(image.log_dir(), Some(image.topic_partition().clone()), path)
    };
    for segment in &cleaned.segments {
        for mismatch in &segment.crc_mismatches {
            let mut place = location(segment.base, FileKind::Log);
            place.position = Some(mismatch.position);
            place.size_bytes = Some(mismatch.size_bytes);
            (place.first_offset, place.last_offset) = (Some(mismatch.first_offset), Some(mismatch.last_offset));
            let facts = (Fact::Checksum(mismatch.stored), Fact::Checksum(mismatch.computed));
            let finding = Finding::new(FindingId::BatchCrcMismatch, place).with_facts(facts.0, facts.1);
            findings.push(finding.with_severity(Severity::Info));
        }
        if segment.unlisted_aborts > 0 {
            let place = location(segment.base, FileKind::TxnIndex);
            let finding = Finding::new(FindingId::TxnIndexEntryMissing, place).with_severity(Severity::Info);
            findings.push(finding);
        }
    }
    if let Some(uncleanable) = &cleaned.uncleanable {
        let mut place = location(uncleanable.segment.unwrap_or(Offset(0)), FileKind::Log);
        place.position = Some(uncleanable.position).filter(|position| *position > Position(0));
        findings.push(Finding::new(uncleanable.kind.finding(), place));
    }
    findings
}

type Key = (String, i32);

fn key_of(topic_partition: &TopicPartition) -> Key {
    (String::from_utf8_lossy(topic_partition.topic_bytes()).into_owned(), topic_partition.partition())
}

/// The checkpoints of a log dir.
struct Checkpoints {
    by_kind: BTreeMap<CheckpointKind, OffsetCheckpoint>,
    /// The bytes of the cleaner's.
    cleaner: Option<Vec<u8>>,
}

impl Checkpoints {
    fn read(log_dir: &LogDir) -> Result<Self, ReadError> {
        let mut by_kind = BTreeMap::new();
        for kind in CheckpointKind::ALL {
            let bytes = log_dir.read_checkpoint(kind)?.unwrap_or_default();
            by_kind.insert(kind, OffsetCheckpoint::parse(&bytes).content);
        }
        Ok(Self { by_kind, cleaner: log_dir.read_checkpoint(CheckpointKind::CleanerOffset)? })
    }

    fn input_of(&self, log_dir: &LogDir, image: PartitionImage) -> PartitionInput {
        let (topic, partition) = key_of(image.topic_partition());
        let offset = |kind| self.by_kind.get(&kind).and_then(|checkpoint| checkpoint.offset_of(&topic, partition));
        PartitionInput {
            shutdown: if log_dir.has_clean_marker() { Shutdown::Clean } else { Shutdown::Unclean },
            recovery_point: offset(CheckpointKind::RecoveryPoint).unwrap_or(Offset(0)),
            log_start: offset(CheckpointKind::LogStartOffset).unwrap_or(Offset(0)),
            high_watermark: offset(CheckpointKind::HighWatermark),
            first_dirty: offset(CheckpointKind::CleanerOffset),
            image,
        }
    }

    /// The cleaner's checkpoint with these offsets. A broker that has a cleaner has the file; entries of partitions that it does
    /// not know go at each rewriting (`LogCleanerManager.updateCheckpoints`).
    fn plan(&self, log_dir: &LogDir, cleaned_to: &BTreeMap<Key, Offset>) -> Option<CheckpointPlan> {
        let kind = CheckpointKind::CleanerOffset;
        let after = if cleaned_to.is_empty() {
            self.cleaner.clone().unwrap_or_default()
        } else {
            let mut rows: Vec<(Key, Offset)> = Vec::new();
            let known = self.by_kind.get(&kind).map(|checkpoint| checkpoint.entries.as_slice()).unwrap_or_default();
            for entry in known {
                let key = (entry.topic.clone(), entry.partition);
                if is_live(log_dir, &key) && !cleaned_to.contains_key(&key) {
                    rows.retain(|(row, _)| *row != key);
                    rows.push((key, entry.offset));
                }
            }
            rows.extend(cleaned_to.iter().map(|(key, offset)| (key.clone(), *offset)));
            OffsetCheckpoint::encode(
                rows.iter().map(|((topic, partition), offset)| (topic.as_str(), *partition, *offset)),
            )
        };
        (self.cleaner.as_ref() != Some(&after)).then(|| CheckpointPlan {
            log_dir: log_dir.path().to_path_buf(),
            kind,
            before: self.cleaner.clone(),
            after,
            reasons: vec![PlanReason::Cleaned],
        })
    }
}

fn is_live(log_dir: &LogDir, key: &Key) -> bool {
    log_dir.directories().iter().any(|member| match &member.name {
        DirName::Partition(topic_partition) => key_of(topic_partition) == *key,
        _ => false,
    })
}

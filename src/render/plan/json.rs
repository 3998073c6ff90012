//! The plan as JSON. Field names are a contract: see segtool-json(5).

use serde::Serialize;

use super::super::json_document::{FindingDto, Named, path_text};
use super::super::preflight::rule_name;
use crate::ops::Change;
use crate::ops::plan::{CheckpointPlan, PartitionPlan, Plan, PlanReason};

/// The plan of a command. `P` is what stands beside the common fields of a partition.
#[derive(Serialize)]
pub struct PlanDto<P: Serialize> {
    schema_version: u32,
    r#type: &'static str,
    mode: &'static str,
    kafka_version: String,
    recorded: bool,
    digest: Option<String>,
    undo_id: Option<String>,
    complete: bool,
    partitions: Vec<PartitionDto<P>>,
    findings: Vec<FindingDto>,
    summary: SummaryDto,
}

/// What a document says about the run.
#[derive(Clone, Copy, Debug)]
pub struct PlanHead<'a> {
    /// The command.
    pub command: &'static str,
    /// `plan`, `output` or `apply`.
    pub mode: &'static str,
    /// The plan's digest.
    pub digest: Option<&'a str>,
    /// The id to undo it by.
    pub undo_id: Option<&'a str>,
}

/// A partition of a plan.
#[derive(Serialize)]
pub struct PartitionDto<P: Serialize> {
    #[serde(flatten)]
    log_dir: Named,
    #[serde(flatten)]
    topic: Named,
    partition: i32,
    steps: Vec<StepDto>,
    accounting: AccountingDto,
    gaps: Vec<(i64, i64)>,
    blockers: Vec<BlockerDto>,
    #[serde(flatten)]
    more: P,
}

#[derive(Serialize)]
struct StepDto {
    action: &'static str,
    #[serde(flatten)]
    path: Named,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    size_before: Option<u64>,
    size_after: Option<u64>,
    reasons: Vec<&'static str>,
}

#[derive(Serialize)]
struct AccountingDto {
    bytes_in: u64,
    bytes_kept: u64,
    bytes_quarantined: u64,
    records_in: u64,
    records_kept: u64,
    dropped: DroppedDto,
}

#[derive(Serialize)]
struct DroppedDto {
    superseded: u64,
    tombstone: u64,
    aborted: u64,
    unkeyed: u64,
    retention: u64,
}

#[derive(Serialize)]
struct BlockerDto {
    because: &'static str,
    offset: i64,
}

#[derive(Serialize, Default)]
struct SummaryDto {
    files_written: u64,
    files_removed: u64,
    bytes_written: u64,
    records_lost: u64,
}

impl<P: Serialize> std::fmt::Debug for PlanDto<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlanDto").field("type", &self.r#type).finish_non_exhaustive()
    }
}

impl<P: Serialize> std::fmt::Debug for PartitionDto<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartitionDto").field("partition", &self.partition).finish_non_exhaustive()
    }
}

impl<P: Serialize> PlanDto<P> {
    /// The document of a plan; `more` gives each partition, by its place in the plan, the fields that only this command has.
    pub fn new(plan: &Plan, head: &PlanHead<'_>, mut more: impl FnMut(usize) -> P) -> Self {
        let mut summary = SummaryDto::default();
        let partitions = plan.partitions.iter().enumerate();
        let partitions = partitions
            .map(|(index, partition)| {
                summary.add(partition);
                let checkpoints = plan.checkpoints.iter().filter(|checkpoint| {
                    let is_first = plan.partitions.iter().position(|p| p.before.log_dir() == checkpoint.log_dir);
                    is_first == Some(index)
                });
                PartitionDto::new(partition, checkpoints, more(index))
            })
            .collect();
        Self {
            schema_version: 1,
            r#type: head.command,
            mode: head.mode,
            kafka_version: plan.version.to_string(),
            recorded: plan.is_recorded,
            digest: head.digest.map(str::to_owned),
            undo_id: head.undo_id.map(str::to_owned),
            complete: plan.is_complete,
            partitions,
            findings: plan.findings.iter().map(FindingDto::from).collect(),
            summary,
        }
    }

    /// The same document, where so many records are lost.
    #[must_use]
    pub fn losing(mut self, records: u64) -> Self {
        self.summary.records_lost = records;
        self
    }
}

impl<P: Serialize> PartitionDto<P> {
    fn new<'a>(plan: &PartitionPlan, checkpoints: impl Iterator<Item = &'a CheckpointPlan>, more: P) -> Self {
        let topic_partition = plan.before.topic_partition();
        let accounting = &plan.accounting;
        let mut steps: Vec<StepDto> = plan.changes().iter().map(|change| step(plan, change)).collect();
        steps.extend(plan.quarantined.iter().map(|quarantined| StepDto {
            action: "quarantine",
            path: Named::path(&plan.before.relative(&quarantined.name)),
            from: None,
            size_before: None,
            size_after: Some(quarantined.content.size_bytes()),
            reasons: quarantined.reasons.iter().map(|reason| reason_name(*reason)).collect(),
        }));
        // Checkpoints belong to the log dir; they stand with its first partition.
        steps.extend(checkpoints.map(checkpoint_step));
        Self {
            log_dir: Named::log_dir(plan.before.log_dir()),
            topic: Named::topic(topic_partition),
            partition: topic_partition.partition(),
            steps,
            accounting: AccountingDto {
                bytes_in: accounting.bytes_in,
                bytes_kept: accounting.bytes_kept,
                bytes_quarantined: accounting.bytes_quarantined,
                records_in: accounting.records_in,
                records_kept: accounting.records_kept,
                dropped: DroppedDto {
                    superseded: accounting.dropped.superseded,
                    tombstone: accounting.dropped.tombstone,
                    aborted: accounting.dropped.aborted,
                    unkeyed: accounting.dropped.unkeyed,
                    retention: accounting.dropped.retention,
                },
            },
            gaps: plan.gaps.iter().map(|(first, last)| (first.0, last.0)).collect(),
            blockers: plan
                .blockers
                .iter()
                .map(|blocker| BlockerDto { because: blocker.because.name(), offset: blocker.offset.0 })
                .collect(),
            more,
        }
    }
}

impl SummaryDto {
    fn add(&mut self, plan: &PartitionPlan) {
        for change in plan.changes() {
            match change {
                Change::Create { size_after, .. }
                | Change::Replace { size_after, .. }
                | Change::Truncate { size_after, .. } => {
                    self.files_written += 1;
                    self.bytes_written = self.bytes_written.saturating_add(size_after);
                }
                Change::Remove { .. } => self.files_removed += 1,
                Change::Rename { .. } => {}
            }
        }
    }
}

fn step(plan: &PartitionPlan, change: &Change) -> StepDto {
    let (action, size_before, size_after) = match change {
        Change::Create { size_after, .. } => ("create", None, Some(*size_after)),
        Change::Replace { size_before, size_after, .. } => ("replace", Some(*size_before), Some(*size_after)),
        Change::Truncate { size_before, size_after, .. } => ("truncate", Some(*size_before), Some(*size_after)),
        Change::Remove { size_before, .. } => ("remove", Some(*size_before), None),
        Change::Rename { size_bytes, .. } => ("rename", Some(*size_bytes), Some(*size_bytes)),
    };
    let from = match change {
        Change::Rename { from, .. } => Some(path_text(&plan.before.relative(from))),
        _ => None,
    };
    StepDto {
        action,
        path: Named::path(&plan.before.relative(change.name())),
        from,
        size_before,
        size_after,
        reasons: plan.reasons_of(change.name()).iter().map(|reason| reason_name(*reason)).collect(),
    }
}

fn checkpoint_step(checkpoint: &CheckpointPlan) -> StepDto {
    StepDto {
        action: "checkpoint",
        path: Named::new("path", checkpoint.kind.file_name()),
        from: None,
        size_before: checkpoint.before.as_ref().map(|bytes| bytes.len() as u64),
        size_after: Some(checkpoint.after.len() as u64),
        reasons: checkpoint.reasons.iter().map(|reason| reason_name(*reason)).collect(),
    }
}

/// The stable name of a reason.
pub fn reason_name(reason: PlanReason) -> &'static str {
    match reason {
        PlanReason::Finding(id) => id.as_str(),
        PlanReason::Retention(rule) => rule_name(rule),
        PlanReason::Rolled => "rolled",
        PlanReason::Cleaned => "cleaned",
        PlanReason::Merged => "merged",
        PlanReason::Rebuilt => "rebuilt",
        PlanReason::Follows => "follows",
    }
}

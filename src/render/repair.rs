//! What a repair would do or has done, for people and as JSON.

use serde::Serialize;

use super::json_document::{FindingDto, Named, document};
use super::plan::{PlanDto, PlanHead, push_checkpoint, push_steps};
use super::units::{bytes_binary, count};
use super::untrusted::untrusted;
use crate::ops::plan::PartitionPlan;
use crate::ops::repair::{Mode, PartitionRepair, RepairPlan, SetAside};

#[derive(Serialize)]
struct RepairDto {
    log_start_offset: i64,
    log_end_offset: i64,
    records_lost: u64,
    set_aside: Vec<SetAsideDto>,
    start: StartDto,
    remaining: Vec<FindingDto>,
}

#[derive(Serialize)]
struct SetAsideDto {
    #[serde(flatten)]
    path: Named,
    position: u64,
    size_bytes: u64,
    reason: &'static str,
    first_offset: Option<i64>,
    last_offset: Option<i64>,
    records: u64,
    spare: bool,
}

#[derive(Serialize)]
struct StartDto {
    outcome: &'static str,
    truncated_bytes: u64,
    deleted_segments: u64,
    records_lost: u64,
    reasons: Vec<&'static str>,
}

/// The plan as one JSON document and a newline.
pub fn render_json(planned: &RepairPlan, head: &PlanHead<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let more = |index: usize| {
        let pair = planned.plan.partitions.get(index).zip(planned.repairs.get(index));
        pair.map(|(plan, repair)| repair_dto(planned, plan, repair))
    };
    document(&PlanDto::new(&planned.plan, head, more).losing(planned.records_lost()))
}

fn repair_dto(planned: &RepairPlan, plan: &PartitionPlan, repair: &PartitionRepair) -> RepairDto {
    let here = planned.remaining.iter().filter(|finding| {
        finding.location.log_dir == plan.before.log_dir() && finding.location.path.starts_with(plan.before.dir_name())
    });
    let start = &repair.start;
    RepairDto {
        log_start_offset: repair.log_start.0,
        log_end_offset: repair.log_end.0,
        records_lost: repair.records_lost,
        set_aside: repair.set_aside.iter().map(|range| set_aside(plan, range)).collect(),
        start: StartDto {
            outcome: start.outcome.name(),
            truncated_bytes: start.truncated_bytes,
            deleted_segments: start.deleted_segments,
            records_lost: start.records_lost,
            reasons: start.reasons.iter().map(|id| id.as_str()).collect(),
        },
        remaining: here.map(FindingDto::from).collect(),
    }
}

fn set_aside(plan: &PartitionPlan, range: &SetAside) -> SetAsideDto {
    SetAsideDto {
        path: Named::path(&plan.before.relative(&range.file)),
        position: range.position.0,
        size_bytes: range.size_bytes,
        reason: range.reason.as_str(),
        first_offset: range.offsets.map(|(first, _)| first.0),
        last_offset: range.offsets.map(|(_, last)| last.0),
        records: range.records,
        spare: range.is_spare,
    }
}

/// The plan as text.
pub fn render_human(planned: &RepairPlan, head: &PlanHead<'_>) -> Vec<u8> {
    let mut out = String::new();
    let mut touched = 0u64;
    for (plan, repair) in planned.plan.partitions.iter().zip(&planned.repairs) {
        if !plan.changes().is_empty() || !repair.start.is_good() {
            touched += 1;
            push_partition(&mut out, planned.mode, plan, repair);
        }
    }
    for checkpoint in &planned.plan.checkpoints {
        push_checkpoint(&mut out, checkpoint);
    }
    push_remaining(&mut out, planned);
    push_end(&mut out, planned, touched, head);
    out.into_bytes()
}

fn push_partition(out: &mut String, mode: Mode, plan: &PartitionPlan, repair: &PartitionRepair) {
    let name = untrusted(plan.before.dir_name().as_encoded_bytes());
    let accounting = &plan.accounting;
    out.push_str(&format!("{name}: offsets {} to {} afterwards\n", repair.log_start, repair.log_end));
    push_steps(out, plan);
    for range in &repair.set_aside {
        push_set_aside(out, range);
    }
    let gone = if mode == Mode::Salvage { "put aside" } else { "dropped" };
    out.push_str(&format!(
        "  bytes {} in = {} kept + {} {gone}; records {} in = {} kept + {} {gone}\n",
        count(accounting.bytes_in),
        count(accounting.bytes_kept),
        count(accounting.bytes_in.saturating_sub(accounting.bytes_kept)),
        count(accounting.records_in),
        count(accounting.records_kept),
        count(accounting.records_in.saturating_sub(accounting.records_kept)),
    ));
    for (first, last) in &plan.gaps {
        out.push_str(&format!("  offsets {first} to {last} are missing: consumers and followers skip them\n"));
    }
    let start = &repair.start;
    let because: Vec<&str> = start.reasons.iter().map(|id| id.as_str()).collect();
    if start.is_good() {
        out.push_str("  the next start of a broker keeps all of it\n");
    } else {
        let (outcome, because) = (start.outcome.name(), because.join(", "));
        out.push_str(&format!("  the next start of a broker: {outcome} ({because})\n"));
    }
}

fn push_set_aside(out: &mut String, range: &SetAside) {
    let offsets = match range.offsets {
        Some((first, last)) if first == last => format!(", offset {first}"),
        Some((first, last)) => format!(", offsets {first} to {last}"),
        None => String::new(),
    };
    let spare = if range.is_spare { "; nothing is lost by it" } else { "" };
    out.push_str(&format!(
        "  not kept: {} @{}, {}{offsets}: {}{spare}\n",
        untrusted(range.file.as_encoded_bytes()),
        range.position,
        bytes_binary(range.size_bytes),
        range.reason.as_str(),
    ));
}

fn push_remaining(out: &mut String, planned: &RepairPlan) {
    for finding in &planned.remaining {
        let path = untrusted(finding.location.path.as_os_str().as_encoded_bytes());
        out.push_str(&format!("remains: {path}: {}: {}\n", finding.id.as_str(), finding.id.meaning()));
    }
}

fn push_end(out: &mut String, planned: &RepairPlan, touched: u64, head: &PlanHead<'_>) {
    if !planned.changes_anything() {
        out.push_str("Nothing to repair.\n");
        return;
    }
    let verb = if head.mode == "plan" { "would change" } else { "changed" };
    out.push_str(&format!("Repair {verb} {} partitions", count(touched)));
    match (planned.is_lossy(), planned.records_lost()) {
        (false, _) => out.push_str("; nothing is lost.\n"),
        (true, 0) => out.push_str("; what is put aside may have held records.\n"),
        (true, records) => out.push_str(&format!("; {} records are lost with certainty.\n", count(records))),
    }
    if planned.is_lossy() {
        out.push_str(
            "Another replica of these partitions may still hold what is missing: compare its offsets before this copy becomes leader.\n",
        );
    }
    if head.mode == "plan" {
        let consent = if planned.is_lossy() { " --accept-loss" } else { "" };
        out.push_str(&format!(
            "Next: --output DIR writes the result beside the source, --apply{consent} changes it in place.\n"
        ));
    }
}

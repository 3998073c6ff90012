//! What a repair would do or has done, for people and as JSON.

use serde::Serialize;

use super::json_document::{FindingDto, Named, document};
use super::plan::{PlanDto, PlanHead, push_checkpoint, push_steps};
use super::units::{bytes_binary, count};
use super::untrusted::untrusted;
use crate::format::Offset;
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

/// The plan as text: what was found, what is kept, what is lost and where else it may be, what to do next.
pub fn render_human(planned: &RepairPlan, head: &PlanHead<'_>) -> Vec<u8> {
    let mut out = String::new();
    let mut touched = 0u64;
    for (plan, repair) in planned.plan.partitions.iter().zip(&planned.repairs) {
        if !plan.changes().is_empty() || !repair.start.is_good() {
            touched += 1;
            push_partition(&mut out, planned.mode, plan, repair);
        }
    }
    if !planned.plan.checkpoints.is_empty() {
        out.push_str("checkpoints of the log dir\n");
    }
    for checkpoint in &planned.plan.checkpoints {
        push_checkpoint(&mut out, checkpoint);
    }
    push_remaining(&mut out, planned);
    push_end(&mut out, planned, touched, head);
    out.into_bytes()
}

fn push_partition(out: &mut String, mode: Mode, plan: &PartitionPlan, repair: &PartitionRepair) {
    out.push_str(&format!("{}\n", untrusted(plan.before.dir_name().as_encoded_bytes())));
    for range in &repair.set_aside {
        push_found(out, range);
    }
    let accounting = &plan.accounting;
    let gone = if mode == Mode::Salvage { "put aside" } else { "dropped" };
    out.push_str(&format!(
        "  kept      bytes {} in = {} kept + {} {gone}; records {} in = {} kept + {} {gone}\n",
        count(accounting.bytes_in),
        count(accounting.bytes_kept),
        count(accounting.bytes_in.saturating_sub(accounting.bytes_kept)),
        count(accounting.records_in),
        count(accounting.records_kept),
        count(accounting.records_in.saturating_sub(accounting.records_kept)),
    ));
    push_lost(out, plan, repair);
    let start = &repair.start;
    if start.is_good() {
        let (from, to) = (repair.log_start, repair.log_end);
        out.push_str(&format!(
            "  start     the next start of a broker keeps all of it; the log starts at {from} and ends before {to}\n"
        ));
    } else {
        let because: Vec<&str> = start.reasons.iter().map(|id| id.as_str()).collect();
        let (outcome, because) = (start.outcome.name(), because.join(", "));
        out.push_str(&format!("  start     the next start of a broker still does harm: {outcome} ({because})\n"));
    }
    push_steps(out, plan);
}

fn push_found(out: &mut String, range: &SetAside) {
    let offsets = range.offsets.map(|(first, last)| format!(", {}", offsets_text(first, last))).unwrap_or_default();
    let spare = if range.is_spare { "; nothing is lost by it" } else { "" };
    out.push_str(&format!(
        "  found     {} @{}, {}{offsets}: {} ({}){spare}\n",
        untrusted(range.file.as_encoded_bytes()),
        range.position,
        bytes_binary(range.size_bytes),
        range.reason.meaning(),
        range.reason.as_str(),
    ));
}

fn push_lost(out: &mut String, plan: &PartitionPlan, repair: &PartitionRepair) {
    for (first, last) in &plan.gaps {
        out.push_str(&format!(
            "  lost      {} in this copy: consumers and followers skip what is missing\n",
            offsets_text(*first, *last)
        ));
    }
    if plan.gaps.is_empty() {
        let lost = if repair.is_lossy() { "perhaps records, in bytes whose offsets are not known" } else { "nothing" };
        out.push_str(&format!("  lost      {lost}\n"));
    }
}

fn offsets_text(first: Offset, last: Offset) -> String {
    if first == last { format!("offset {first}") } else { format!("offsets {first} to {last}") }
}

fn push_remaining(out: &mut String, planned: &RepairPlan) {
    for finding in &planned.remaining {
        let path = untrusted(finding.location.path.as_os_str().as_encoded_bytes());
        out.push_str(&format!("remains: {path}: {} ({})\n", finding.id.meaning(), finding.id.as_str()));
    }
}

fn push_end(out: &mut String, planned: &RepairPlan, touched: u64, head: &PlanHead<'_>) {
    if !planned.changes_anything() {
        let nothing_left = planned.remaining.is_empty();
        out.push_str(if nothing_left { "Nothing to repair.\n" } else { "Nothing that repair could change.\n" });
        return;
    }
    let verb = match (head.mode, touched) {
        ("plan", _) => "would change",
        (_, 1) => "has changed",
        _ => "have changed",
    };
    match touched {
        0 => out.push_str(&format!("\nOnly checkpoints {verb}")),
        1 => out.push_str(&format!("\n1 partition {verb}")),
        _ => out.push_str(&format!("\n{} partitions {verb}", count(touched))),
    }
    match (planned.is_lossy(), planned.records_lost()) {
        (false, _) => out.push_str("; nothing is lost.\n"),
        (true, 0) => out.push_str("; what cannot be kept may have held records.\n"),
        (true, 1) => out.push_str("; 1 sound record cannot be kept.\n"),
        (true, records) => out.push_str(&format!("; {} sound records cannot be kept.\n", count(records))),
    }
    if planned.is_lossy() {
        out.push_str(ELSEWHERE);
    }
    out.push_str(&next_step(planned, head));
}

/// Where what is lost may be.
const ELSEWHERE: &str = "\
Another replica may still have what is lost. If one is in sync, keep this copy from becoming leader: with the broker stopped, move the
partition's directory out of the log dir, and the broker copies it from the leader. Else this copy is the best there is.
";

fn next_step(planned: &RepairPlan, head: &PlanHead<'_>) -> String {
    let aside = planned.plan.partitions.iter().any(|partition| !partition.quarantined.is_empty());
    match (head.mode, head.undo_id) {
        ("plan", _) => {
            let consent = if planned.is_lossy() { " --accept-loss" } else { "" };
            format!(
                "Nothing was changed. Next, with the broker stopped: --output DIR writes the result beside the source,\n\
                 --apply{consent} changes it in place and keeps every original for `segtool undo`.\n"
            )
        }
        ("apply", Some(id)) => {
            let aside = if aside { " What was put aside is in its journal, under quarantine." } else { "" };
            format!("Applied. `segtool undo {id} LOGDIR` takes it back.{aside} The broker may be started.\n")
        }
        ("output", _) => {
            let aside = if aside { " What was put aside is beside it, in DIR.quarantine." } else { "" };
            format!("The result was written to the output; the source is as it was.{aside}\n")
        }
        _ => String::new(),
    }
}

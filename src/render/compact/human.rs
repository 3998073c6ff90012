//! The plan of a compaction for people.

use crate::ops::compact::{
    CleanFailure, CleanStop, CompactPlan, Coverage, Dropped, PartitionCleaning, Refusal, RefusalReason, RoundReport,
    SegmentTally, Waiting,
};
use crate::ops::plan::PartitionPlan;
use crate::render::plan::{push_checkpoint, push_steps};
use crate::render::units::{bytes_binary, count, duration_ms, instant_utc, percent};
use crate::render::untrusted::untrusted;

/// How much is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detail {
    /// What changes.
    Steps,
    /// And why, segment by segment.
    Explained,
}

/// The plan as text.
pub fn render_human(plan: &CompactPlan, detail: Detail) -> Vec<u8> {
    let mut out = String::new();
    let mut freed = 0u64;
    for (partition, cleaning) in plan.plan.partitions.iter().zip(&plan.cleaning) {
        freed = freed.saturating_add(partition.accounting.bytes_in.saturating_sub(partition.accounting.bytes_kept));
        if detail == Detail::Explained || !cleaning.rounds.is_empty() || cleaning.uncleanable.is_some() {
            push_partition(&mut out, partition, cleaning, detail);
        }
    }
    for checkpoint in &plan.plan.checkpoints {
        push_checkpoint(&mut out, checkpoint);
    }
    let cleaned = plan.cleaning.iter().filter(|cleaning| !cleaning.rounds.is_empty()).count();
    out.push_str(&format!(
        "Cleaning {} of {} partitions gives back {}.\n",
        count(cleaned as u64),
        count(plan.plan.partitions.len() as u64),
        bytes_binary(freed)
    ));
    out.into_bytes()
}

fn push_partition(out: &mut String, plan: &PartitionPlan, cleaning: &PartitionCleaning, detail: Detail) {
    let name = untrusted(plan.before.dir_name().as_encoded_bytes());
    let selection = cleaning.selection();
    let ratio = selection.dirty_ratio().map_or_else(|| "empty".to_owned(), percent);
    out.push_str(&format!(
        "{name}: dirty from offset {} to {}, {} of {} ({ratio})\n",
        selection.first_dirty,
        selection.first_uncleanable,
        bytes_binary(selection.cleanable_bytes),
        bytes_binary(selection.clean_bytes.saturating_add(selection.cleanable_bytes)),
    ));
    if selection.overdue_ms > 0 {
        out.push_str(&format!("  max.compaction.lag.ms is exceeded by {}\n", duration_ms(selection.overdue_ms)));
    }
    for (number, round) in cleaning.rounds.iter().zip(1u32..).map(|(round, number)| (number, round)) {
        push_round(out, &format!("round {number}"), round);
    }
    push_steps(out, plan);
    if let Some(if_cleaned) = &cleaning.if_cleaned {
        push_round(out, "a round, were it made,", &if_cleaned.round);
    }
    if detail == Detail::Explained {
        for segment in cleaning.explained_segments() {
            push_segment(out, segment);
        }
    }
    if let Some(uncleanable) = &cleaning.uncleanable {
        let segment = uncleanable.segment.map_or_else(String::new, |base| format!(" segment {base}"));
        out.push_str(&format!(
            "  a broker's cleaner dies in{segment} at position {}: {}\n",
            uncleanable.position, uncleanable.kind
        ));
    }
    for blocker in &plan.blockers {
        out.push_str(&format!("  held back by {} at offset {}\n", blocker.because.name(), blocker.offset));
    }
}

fn push_round(out: &mut String, what: &str, round: &RoundReport) {
    let keys = match round.coverage {
        Coverage::Complete => format!("{} keys", count(round.mapped_keys)),
        Coverage::Partial => format!("{} keys, a full map", count(round.mapped_keys)),
    };
    out.push_str(&format!(
        "  {what} cleans up to offset {} with {keys}: {} become {}\n",
        round.end,
        bytes_binary(round.bytes_before),
        bytes_binary(round.bytes_after)
    ));
}

fn push_segment(out: &mut String, segment: &SegmentTally) {
    let accounting = &segment.accounting;
    out.push_str(&format!(
        "  segment {} into {}: {} to {}, {} of {} records stay{}\n",
        segment.base,
        segment.into,
        bytes_binary(accounting.bytes_in),
        bytes_binary(accounting.bytes_kept),
        count(accounting.records_kept),
        count(accounting.records_in),
        reasons(&accounting.dropped),
    ));
    out.push_str(&format!(
        "    {} batches: {} copied, {} rewritten, {} emptied\n",
        count(segment.batches_in),
        count(segment.batches_copied),
        count(segment.batches_rewritten),
        count(segment.batches_emptied)
    ));
    push_waiting(out, "tombstones", &segment.tombstones);
    push_waiting(out, "markers", &segment.markers);
    if segment.crc_mismatch_count > 0 {
        let batches = count(segment.crc_mismatch_count);
        out.push_str(&format!("    {batches} batches have a wrong checksum; a rewritten one gets a right one\n"));
    }
    if segment.unlisted_aborts > 0 {
        let aborts = count(segment.unlisted_aborts);
        out.push_str(&format!(
            "    {aborts} aborted transactions are in no transaction index: their data stays as if it were committed\n"
        ));
    }
}

fn reasons(dropped: &Dropped) -> String {
    let reasons = [
        (dropped.superseded, "superseded"),
        (dropped.tombstone, "tombstones"),
        (dropped.aborted, "aborted"),
        (dropped.unkeyed, "without key"),
        (dropped.marker, "markers"),
    ];
    let told: Vec<String> =
        reasons.iter().filter(|(n, _)| *n > 0).map(|(n, reason)| format!("{} {reason}", count(*n))).collect();
    if told.is_empty() { String::new() } else { format!("; go: {}", told.join(", ")) }
}

fn push_waiting(out: &mut String, what: &str, waiting: &Waiting) {
    if waiting.total() == 0 {
        return;
    }
    let mut told: Vec<String> = Vec::new();
    for (instant, records) in waiting.removable_at.iter().take(4) {
        told.push(format!("{} from {} on", count(*records), instant_utc(*instant)));
    }
    let more = waiting.removable_at.values().skip(4).copied().fold(waiting.later, u64::saturating_add);
    if more > 0 {
        told.push(format!("{} later", count(more)));
    }
    if waiting.unstamped > 0 {
        told.push(format!("{} without a time yet", count(waiting.unstamped)));
    }
    out.push_str(&format!("    {} {what} stay; removable: {}\n", count(waiting.total()), told.join(", ")));
}

/// Why a partition must not be touched, as a sentence fragment, and what to do.
pub fn refusal_text(refusal: &Refusal) -> (String, &'static str) {
    const REPAIR: &str = "run `segtool repair` to see what a broker would do here";
    let (why, hint) = match &refusal.reason {
        RefusalReason::Stopped(CleanStop::Leftovers { file }) => {
            let file = untrusted(file.as_encoded_bytes());
            (format!("{file} is left of an interrupted swap or cleaning"), REPAIR)
        }
        RefusalReason::Stopped(CleanStop::Unloadable(failure)) => {
            let file = untrusted(failure.file.as_encoded_bytes());
            (format!("a broker cannot load the log: {file}: {}", failure.reason.meaning()), REPAIR)
        }
        RefusalReason::Stopped(CleanStop::RecoveryPending { base }) => {
            (format!("a broker mends segment {base} first when it starts"), REPAIR)
        }
        RefusalReason::Stopped(CleanStop::Failed(CleanFailure::NoMap(error))) => {
            (error.to_string(), "raise --log-cleaner-dedupe-buffer-size or --max-memory")
        }
        RefusalReason::Stopped(CleanStop::Failed(CleanFailure::Limit { bytes })) => {
            (format!("more than {} of memory would be needed", bytes_binary(*bytes)), "raise --max-memory")
        }
        RefusalReason::Stopped(CleanStop::Failed(_)) => ("the log cannot be cleaned".to_owned(), REPAIR),
        RefusalReason::Uncleanable(uncleanable) => {
            let segment = uncleanable.segment.map_or_else(String::new, |base| format!("segment {base}, "));
            let place = format!("{segment}position {}", uncleanable.position);
            (format!("a broker's cleaner dies here: {place}: {}", uncleanable.kind), REPAIR)
        }
        RefusalReason::Unkeyed { records } => (
            format!("{} records without a key would go, as with a broker", count(*records)),
            "say so with --drop-unkeyed",
        ),
    };
    (format!("{}: {why}", refusal.topic_partition), hint)
}

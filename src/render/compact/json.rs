//! The plan of a compaction as JSON. Field names are a contract: see segtool-json(5).

use serde::Serialize;

use crate::format::Offset;
use crate::ops::compact::{
    CompactPlan, Coverage, Dropped, IfCleaned, PartitionCleaning, RoundReport, SegmentTally, Waiting,
};
use crate::render::json_document::document;
use crate::render::plan::{PlanDto, PlanHead};

#[derive(Serialize)]
struct CleaningDto {
    first_dirty_offset: i64,
    first_uncleanable_offset: i64,
    clean_bytes: u64,
    cleanable_bytes: u64,
    dirty_ratio: Option<f64>,
    overdue_ms: i64,
    checkpoint_offset: Option<i64>,
    rounds: Vec<RoundDto>,
    if_cleaned: Option<RoundDto>,
    segments: Vec<SegmentDto>,
    uncleanable: Option<UncleanableDto>,
}

#[derive(Serialize)]
struct RoundDto {
    first_dirty_offset: i64,
    first_uncleanable_offset: i64,
    end_offset: i64,
    map_keys: u64,
    map_capacity: u64,
    map_complete: bool,
    bytes_before: u64,
    bytes_after: u64,
    groups: Vec<GroupDto>,
}

#[derive(Serialize)]
struct GroupDto {
    base_offset: i64,
    segments: Vec<i64>,
}

#[derive(Serialize)]
struct SegmentDto {
    base_offset: i64,
    into: i64,
    bytes_in: u64,
    bytes_kept: u64,
    records_in: u64,
    records_kept: u64,
    dropped: DroppedDto,
    batches_in: u64,
    batches_copied: u64,
    batches_rewritten: u64,
    batches_emptied: u64,
    crc_mismatches: u64,
    unlisted_aborts: u64,
    tombstones: WaitingDto,
    markers: WaitingDto,
}

#[derive(Serialize)]
struct DroppedDto {
    superseded: u64,
    tombstone: u64,
    aborted: u64,
    unkeyed: u64,
    marker: u64,
}

#[derive(Serialize)]
struct WaitingDto {
    kept: u64,
    stamped_now: u64,
    unstamped: u64,
    removable: Vec<RemovableDto>,
    removable_later: u64,
}

#[derive(Serialize)]
struct RemovableDto {
    at_ms: i64,
    records: u64,
}

#[derive(Serialize)]
struct UncleanableDto {
    segment_base_offset: Option<i64>,
    position: u64,
    reason: String,
}

/// The plan as one JSON document and a newline.
pub fn render_json(plan: &CompactPlan, head: &PlanHead<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let more = |index: usize| plan.cleaning.get(index).map(cleaning);
    document(&PlanDto::new(&plan.plan, head, more))
}

fn cleaning(cleaning: &PartitionCleaning) -> CleaningDto {
    let selection = cleaning.selection();
    CleaningDto {
        first_dirty_offset: selection.first_dirty.0,
        first_uncleanable_offset: selection.first_uncleanable.0,
        clean_bytes: selection.clean_bytes,
        cleanable_bytes: selection.cleanable_bytes,
        dirty_ratio: selection.dirty_ratio(),
        overdue_ms: selection.overdue_ms,
        checkpoint_offset: cleaning.checkpoint.map(|offset| offset.0),
        rounds: cleaning.rounds.iter().map(round).collect(),
        if_cleaned: cleaning.if_cleaned.as_ref().map(|IfCleaned { round: report, .. }| round(report)),
        segments: cleaning.explained_segments().iter().map(segment).collect(),
        uncleanable: cleaning.uncleanable.as_ref().map(|uncleanable| UncleanableDto {
            segment_base_offset: uncleanable.segment.map(|base| base.0),
            position: uncleanable.position.0,
            reason: uncleanable.kind.to_string(),
        }),
    }
}

fn round(round: &RoundReport) -> RoundDto {
    let group = |(base, members): &(Offset, Vec<Offset>)| GroupDto {
        base_offset: base.0,
        segments: members.iter().map(|base| base.0).collect(),
    };
    RoundDto {
        first_dirty_offset: round.selection.first_dirty.0,
        first_uncleanable_offset: round.selection.first_uncleanable.0,
        end_offset: round.end.0,
        map_keys: round.mapped_keys,
        map_capacity: round.most_keys,
        map_complete: round.coverage == Coverage::Complete,
        bytes_before: round.bytes_before,
        bytes_after: round.bytes_after,
        groups: round.groups.iter().map(group).collect(),
    }
}

fn segment(tally: &SegmentTally) -> SegmentDto {
    let accounting = &tally.accounting;
    SegmentDto {
        base_offset: tally.base.0,
        into: tally.into.0,
        bytes_in: accounting.bytes_in,
        bytes_kept: accounting.bytes_kept,
        records_in: accounting.records_in,
        records_kept: accounting.records_kept,
        dropped: dropped(&accounting.dropped),
        batches_in: tally.batches_in,
        batches_copied: tally.batches_copied,
        batches_rewritten: tally.batches_rewritten,
        batches_emptied: tally.batches_emptied,
        crc_mismatches: tally.crc_mismatch_count,
        unlisted_aborts: tally.unlisted_aborts,
        tombstones: waiting(&tally.tombstones),
        markers: waiting(&tally.markers),
    }
}

fn dropped(dropped: &Dropped) -> DroppedDto {
    DroppedDto {
        superseded: dropped.superseded,
        tombstone: dropped.tombstone,
        aborted: dropped.aborted,
        unkeyed: dropped.unkeyed,
        marker: dropped.marker,
    }
}

fn waiting(waiting: &Waiting) -> WaitingDto {
    let removable =
        waiting.removable_at.iter().map(|(instant, records)| RemovableDto { at_ms: instant.0, records: *records });
    WaitingDto {
        kept: waiting.total(),
        stamped_now: waiting.stamped_now,
        unstamped: waiting.unstamped,
        removable: removable.collect(),
        removable_later: waiting.later,
    }
}

//! What retention would do, for people and as JSON.

use serde::Serialize;

use super::json_document::document;
use super::plan::{PlanDto, PlanHead, push_checkpoint, push_steps};
use super::preflight::rule_name;
use super::units::{bytes_binary, count, instant_utc};
use super::untrusted::untrusted;
use crate::ops::broker::retention::{Fate, KeptBecause, TimestampSource};
use crate::ops::plan::PartitionPlan;
use crate::ops::retain::{PartitionRetention, RetainPlan, SegmentFate};

#[derive(Serialize)]
struct RetentionDto {
    log_start_offset: i64,
    rolled_segment: Option<i64>,
    segments: Vec<SegmentDto>,
}

#[derive(Serialize)]
struct SegmentDto {
    base_offset: i64,
    size_bytes: u64,
    largest_timestamp_ms: i64,
    timestamp_source: &'static str,
    deleted: bool,
    because: &'static str,
    removable_at_ms: Option<i64>,
    bytes_until_removable: Option<u64>,
}

/// The plan as one JSON document and a newline.
pub fn render_json(plan: &RetainPlan, head: &PlanHead<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let more = |index: usize| plan.retention.get(index).map(retention);
    document(&PlanDto::new(&plan.plan, head, more))
}

fn retention(retention: &PartitionRetention) -> RetentionDto {
    RetentionDto {
        log_start_offset: retention.log_start.0,
        rolled_segment: retention.rolled.map(|base| base.0),
        segments: retention.segments.iter().map(segment).collect(),
    }
}

fn segment(fate: &SegmentFate) -> SegmentDto {
    SegmentDto {
        base_offset: fate.segment.base_offset.0,
        size_bytes: fate.segment.size_bytes,
        largest_timestamp_ms: fate.segment.largest_timestamp.0,
        timestamp_source: match fate.segment.timestamp_source {
            TimestampSource::TimeIndex => "time_index",
            TimestampSource::FileTime => "file_time",
        },
        deleted: matches!(fate.fate, Fate::Deleted(_)),
        because: because(fate.fate),
        removable_at_ms: fate.removable_at.map(|instant| instant.0),
        bytes_until_removable: fate.bytes_until_removable,
    }
}

fn because(fate: Fate) -> &'static str {
    match fate {
        Fate::Deleted(rule) => rule_name(rule),
        Fate::Kept(KeptBecause::WithinLimits) => "within_limits",
        Fate::Kept(KeptBecause::BehindKept) => "behind_kept",
        Fate::Kept(KeptBecause::EmptyActive) => "empty_active",
        Fate::Kept(KeptBecause::HighWatermark) => "high_watermark",
    }
}

/// Whether the reason of every segment is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detail {
    /// What changes.
    Steps,
    /// And why, segment by segment.
    Explained,
}

/// The plan as text.
pub fn render_human(plan: &RetainPlan, detail: Detail) -> Vec<u8> {
    let mut out = String::new();
    let mut deleted = 0usize;
    let mut freed = 0u64;
    for (partition, retention) in plan.plan.partitions.iter().zip(&plan.retention) {
        let gone = retention.segments.iter().filter(|fate| matches!(fate.fate, Fate::Deleted(_))).count();
        deleted += gone;
        freed += partition.accounting.bytes_in.saturating_sub(partition.accounting.bytes_kept);
        if gone > 0 || detail == Detail::Explained || !partition.blockers.is_empty() {
            push_partition(&mut out, partition, retention, detail);
        }
    }
    for checkpoint in &plan.plan.checkpoints {
        push_checkpoint(&mut out, checkpoint);
    }
    let partitions = plan.plan.partitions.len() as u64;
    out.push_str(&format!(
        "Retention deletes {} segments in {} partitions and frees {}.\n",
        count(deleted as u64),
        count(partitions),
        bytes_binary(freed)
    ));
    out.into_bytes()
}

fn push_partition(out: &mut String, plan: &PartitionPlan, retention: &PartitionRetention, detail: Detail) {
    let name = untrusted(plan.before.dir_name().as_encoded_bytes());
    out.push_str(&format!("{name}: log start becomes {}\n", retention.log_start));
    push_steps(out, plan);
    if detail == Detail::Explained {
        for fate in &retention.segments {
            push_segment(out, fate);
        }
    }
    for blocker in &plan.blockers {
        out.push_str(&format!("  blocked by {} from offset {}\n", blocker.because.name(), blocker.offset));
    }
}

fn push_segment(out: &mut String, fate: &SegmentFate) {
    let segment = &fate.segment;
    let source = match segment.timestamp_source {
        TimestampSource::TimeIndex => "",
        TimestampSource::FileTime => " by the file's time",
    };
    let verb = if matches!(fate.fate, Fate::Deleted(_)) { "goes" } else { "stays" };
    let when = match fate.removable_at {
        Some(instant) => format!("by time from {} on", instant_utc(instant)),
        None => "never by time".to_owned(),
    };
    let size = match fate.bytes_until_removable {
        Some(bytes) => format!(", by size once the log has grown by {}", bytes_binary(bytes)),
        None => String::new(),
    };
    out.push_str(&format!(
        "  segment {}: {}, largest timestamp {}{source}: {verb}, {}; removable {when}{size}\n",
        segment.base_offset,
        bytes_binary(segment.size_bytes),
        instant_utc(segment.largest_timestamp),
        because(fate.fate),
    ));
}

//! Which part of a log can be cleaned, and whether a broker would (`LogCleanerManager.cleanableOffsets`, `LogToClean`).

use super::options::CleanerSettings;
use super::segments::{CleanerLog, bytes_of};
use crate::format::{Offset, TimestampMs};
use crate::ops::broker::cleaner_rules::{CleanerRules, CleaningBound};

/// What a broker knows of a log beside its segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogState {
    /// Where the log starts.
    pub log_start: Offset,
    /// Where it ends.
    pub log_end: Offset,
    /// What all replicas have.
    pub high_watermark: Offset,
    /// Where the oldest open transaction begins.
    pub first_unstable: Option<Offset>,
    /// What `cleaner-offset-checkpoint` says.
    pub checkpoint: Option<Offset>,
}

/// What bounds a round.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Bound {
    /// An open transaction begins here.
    OpenTransaction,
    /// Replicas lack what follows.
    HighWatermark,
    /// The segment is younger than `min.compaction.lag.ms`.
    MinCompactionLag,
    /// The active segment is never cleaned.
    ActiveSegment,
}

/// What becomes of the checkpoint where nothing is cleaned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckpointUse {
    /// It is taken as it is.
    Valid,
    /// It lies outside the log and is set to the log start at once.
    Reset,
}

/// What can be cleaned.
#[derive(Clone, PartialEq, Debug)]
pub struct Selection {
    /// Where the log is dirty from.
    pub first_dirty: Offset,
    /// What became of the checkpoint.
    pub checkpoint_use: CheckpointUse,
    /// The base offset of the segment where cleaning must end.
    pub first_uncleanable: Offset,
    /// Everything that holds the round back, nearest first.
    pub bounds: Vec<(Offset, Bound)>,
    /// Bytes before the first dirty offset, whole segments.
    pub clean_bytes: u64,
    /// Bytes between it and the bound, whole segments.
    pub cleanable_bytes: u64,
    /// By how much `max.compaction.lag.ms` is exceeded; 0 where it is not.
    pub overdue_ms: i64,
}

impl Selection {
    /// The part that is dirty; `None` where there is nothing at all.
    pub fn dirty_ratio(&self) -> Option<f64> {
        let total = self.clean_bytes.saturating_add(self.cleanable_bytes);
        (total > 0).then(|| self.cleanable_bytes as f64 / total as f64)
    }

    /// Whether a broker would clean the log.
    pub fn is_eligible(&self, settings: &CleanerSettings) -> bool {
        let Some(ratio) = self.dirty_ratio() else { return false };
        (self.overdue_ms > 0 && self.cleanable_bytes > 0) || ratio > settings.min_cleanable_dirty_ratio
    }
}

/// Finds what can be cleaned. `first_timestamps` are the largest timestamps of the first batches of the dirty segments.
pub(super) fn select(
    log: &CleanerLog,
    state: &LogState,
    (settings, rules): (&CleanerSettings, &CleanerRules),
    first_timestamps: impl Fn(Offset) -> Vec<TimestampMs>,
    now: TimestampMs,
) -> Selection {
    let (first_dirty, checkpoint_use) = first_dirty(state);
    let bounds = bounds(log, state, (settings, rules), first_dirty, now);
    let nearest = bounds.first().map_or(state.log_start, |(offset, _)| *offset).max(first_dirty);
    let first_uncleanable =
        log.non_active_from(nearest).first().map_or_else(|| log.active_base(), |segment| segment.base);
    let earliest = first_timestamps(first_dirty).into_iter().filter(|timestamp| timestamp.0 > 0).min();
    let clean_until = now.0.saturating_sub(settings.max_compaction_lag_ms.max(0));
    Selection {
        first_dirty,
        checkpoint_use,
        first_uncleanable,
        bounds,
        clean_bytes: bytes_of(log.range(Offset(-1), first_dirty)),
        cleanable_bytes: bytes_of(log.range(first_dirty.min(first_uncleanable), first_uncleanable)),
        overdue_ms: earliest.map_or(0, |earliest| clean_until.saturating_sub(earliest.0).max(0)),
    }
}

fn first_dirty(state: &LogState) -> (Offset, CheckpointUse) {
    match state.checkpoint {
        Some(offset) if offset < state.log_start || offset > state.log_end => (state.log_start, CheckpointUse::Reset),
        checkpoint => (checkpoint.unwrap_or(state.log_start), CheckpointUse::Valid),
    }
}

fn bounds(
    log: &CleanerLog,
    state: &LogState,
    (settings, rules): (&CleanerSettings, &CleanerRules),
    first_dirty: Offset,
    now: TimestampMs,
) -> Vec<(Offset, Bound)> {
    let mut bounds = vec![(log.active_base(), Bound::ActiveSegment)];
    bounds.extend(state.first_unstable.map(|offset| (offset, Bound::OpenTransaction)));
    if rules.bound == CleaningBound::LastStable {
        bounds.push((state.high_watermark, Bound::HighWatermark));
    }
    if settings.min_compaction_lag_ms > 0 {
        let youngest_allowed = now.0.saturating_sub(settings.min_compaction_lag_ms);
        let too_young =
            log.non_active_from(first_dirty).iter().find(|segment| segment.largest_timestamp().0 > youngest_allowed);
        bounds.extend(too_young.map(|segment| (segment.base, Bound::MinCompactionLag)));
    }
    bounds.sort_unstable();
    bounds
}

//! What the log cleaner has done and has still to do (`LogCleanerManager.cleanableOffsets`, `calculateCleanableBytes`), as far as
//! files tell: settings such as `min.compaction.lag.ms` are taken for 0.

use crate::format::Offset;

/// A segment, for this purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SegmentSize {
    pub(super) base_offset: Offset,
    pub(super) log_bytes: u64,
}

/// What bounds cleaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bounds {
    /// The partition's line in `cleaner-offset-checkpoint`.
    pub(super) checkpoint: Option<Offset>,
    pub(super) log_start_offset: Offset,
    pub(super) log_end_offset: Offset,
    /// The smaller of high watermark and first offset of an open transaction.
    pub(super) last_stable_offset: Offset,
}

/// How dirty a log is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cleaning {
    /// The cleaner has a line for this partition: it has been over it, or was about to.
    pub has_checkpoint: bool,
    /// Where the cleaner would go on.
    pub first_dirty_offset: Offset,
    /// Logs of the segments below that.
    pub clean_bytes: u64,
    /// Logs of the segments that the cleaner could go over now.
    pub dirty_bytes: u64,
    /// `dirty / (clean + dirty)`; 0 where both are.
    pub dirty_ratio: f64,
    /// Logs of the segments that it may not touch yet: the active one, and those beyond the last stable offset.
    pub uncleanable_bytes: u64,
}

pub(super) fn assess(segments: &[SegmentSize], bounds: &Bounds) -> Cleaning {
    let first_dirty_offset = match bounds.checkpoint {
        Some(offset) if offset >= bounds.log_start_offset && offset <= bounds.log_end_offset => offset,
        _ => bounds.log_start_offset,
    };
    let active = segments.last().map_or(Offset(0), |segment| segment.base_offset);
    let limit = bounds.last_stable_offset.min(active).max(first_dirty_offset);
    let first_uncleanable = if limit >= active { active } else { floor(segments, limit).unwrap_or(limit) };
    let clean_bytes = sum(segments, None, first_dirty_offset);
    let from = first_dirty_offset.min(first_uncleanable);
    let dirty_bytes = sum(segments, Some(from), first_uncleanable);
    let all: u64 = segments.iter().map(|segment| segment.log_bytes).sum();
    let total = clean_bytes.saturating_add(dirty_bytes);
    Cleaning {
        has_checkpoint: bounds.checkpoint.is_some(),
        first_dirty_offset,
        clean_bytes,
        dirty_bytes,
        dirty_ratio: if total > 0 { dirty_bytes as f64 / total as f64 } else { 0.0 },
        uncleanable_bytes: all.saturating_sub(sum(segments, None, first_uncleanable)),
    }
}

/// The greatest base offset at or below `offset`.
fn floor(segments: &[SegmentSize], offset: Offset) -> Option<Offset> {
    segments.iter().map(|segment| segment.base_offset).rfind(|base| *base <= offset)
}

/// Logs of the segments from the one that holds `from` to the last that starts below `to` (`LogSegments.values`).
fn sum(segments: &[SegmentSize], from: Option<Offset>, to: Offset) -> u64 {
    if from == Some(to) {
        return 0;
    }
    let least = from.and_then(|from| floor(segments, from));
    let inside = segments
        .iter()
        .filter(|segment| segment.base_offset < to && least.is_none_or(|least| segment.base_offset >= least));
    inside.map(|segment| segment.log_bytes).sum()
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the expected ratios are exact")]
mod tests {
    use super::*;

    fn assess_at(first_dirty: Option<i64>, last_stable: i64) -> Cleaning {
        let segments = [0, 10, 20, 30].map(|base| SegmentSize { base_offset: Offset(base), log_bytes: 100 });
        let bounds = Bounds {
            checkpoint: first_dirty.map(Offset),
            log_start_offset: Offset(0),
            log_end_offset: Offset(40),
            last_stable_offset: Offset(last_stable),
        };
        assess(&segments, &bounds)
    }

    /// The scenarios C18 and C19 of Kafka's rules: the segment that holds the first dirty offset counts on both sides.
    #[test]
    fn ratios_are_those_of_the_cleaner() {
        let at = |first_dirty| {
            let cleaning = assess_at(Some(first_dirty), 40);
            (cleaning.clean_bytes, cleaning.dirty_bytes)
        };
        assert_eq!(at(10), (100, 200));
        assert_eq!(at(15), (200, 200));
        assert_eq!(at(20), (200, 100));
        assert_eq!(at(30), (300, 0));
        assert_eq!(assess_at(Some(15), 40).dirty_ratio, 0.5);
        assert_eq!(assess_at(Some(10), 25).dirty_bytes, 100);
        assert_eq!(assess_at(Some(10), 20).dirty_bytes, 100);
        assert_eq!(assess_at(Some(10), 20).uncleanable_bytes, 200);
    }

    #[test]
    fn a_log_that_was_never_cleaned_is_dirty_from_its_start() {
        let cleaning = assess_at(None, 40);
        assert!(!cleaning.has_checkpoint);
        assert_eq!((cleaning.clean_bytes, cleaning.dirty_bytes, cleaning.dirty_ratio), (0, 300, 1.0));
        assert_eq!(assess_at(Some(99), 40).first_dirty_offset, Offset(0));
    }
}

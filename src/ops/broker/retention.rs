//! Which segments a broker's retention deletes (`UnifiedLog.deleteOldSegments`).
//!
//! Three rules are applied one after the other, each to what the ones before have left. Each goes from the oldest segment on and
//! ends at the first that it keeps, so that one young segment protects all behind it.

use super::rules::{RetentionOrder, Rules};
use crate::format::{Offset, TimestampMs};

/// `retention.ms` where nothing is said: seven days.
pub const DEFAULT_RETENTION_MS: i64 = 7 * 24 * 3_600_000;

/// `cleanup.policy`, as far as retention asks for it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Deletion {
    /// Segments go by time, size and log start.
    #[default]
    ByAllRules,
    /// The policy does not name `delete`: segments go below the log start only.
    BelowLogStart,
}

/// The settings of retention.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetentionSettings {
    /// From `cleanup.policy`.
    pub deletion: Deletion,
    /// `retention.ms`; `None` for no limit.
    pub retention_ms: Option<i64>,
    /// `retention.bytes`; `None` for no limit.
    pub retention_bytes: Option<u64>,
}

impl Default for RetentionSettings {
    fn default() -> Self {
        Self { deletion: Deletion::default(), retention_ms: Some(DEFAULT_RETENTION_MS), retention_bytes: None }
    }
}

/// A rule of retention.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RetentionRule {
    /// All of the segment lies below the log start.
    LogStartOffset,
    /// The log is larger than `retention.bytes`, even without the segment.
    RetentionBytes,
    /// The segment's largest timestamp is older than `retention.ms`.
    RetentionMs,
}

/// Where a segment's largest timestamp is taken from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TimestampSource {
    /// The last entry of its time index.
    TimeIndex,
    /// The index has none: the time at which the log file was modified.
    FileTime,
}

/// A segment as retention sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetentionSegment {
    /// Its base offset.
    pub base_offset: Offset,
    /// Bytes of its log file.
    pub size_bytes: u64,
    /// Its largest timestamp, as a broker believes.
    pub largest_timestamp: TimestampMs,
    /// Where that is taken from.
    pub timestamp_source: TimestampSource,
}

/// The log as retention sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetentionOffsets {
    /// Where the log starts.
    pub log_start: Offset,
    /// What all replicas have: nothing at or beyond it goes.
    pub high_watermark: Offset,
    /// Where the log ends.
    pub log_end: Offset,
}

/// What keeps a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeptBecause {
    /// No rule asks for its deletion.
    WithinLimits,
    /// An older segment is kept, and retention goes from the oldest on.
    BehindKept,
    /// It is the last one, and empty.
    EmptyActive,
    /// It reaches beyond the high watermark.
    HighWatermark,
}

/// What one pass does to a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It goes, by this rule.
    Deleted(RetentionRule),
    /// It stays.
    Kept(KeptBecause),
}

/// What one pass of retention does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RetentionOutcome {
    /// Every segment, oldest first, and what becomes of it.
    pub segments: Vec<(RetentionSegment, Fate)>,
    /// Where the log starts afterwards.
    pub log_start: Offset,
    /// The base offset of the empty segment that is rolled because all others go.
    pub rolled: Option<Offset>,
}

impl RetentionOutcome {
    /// The segments that go and the rule, oldest first.
    pub fn deleted(&self) -> impl Iterator<Item = (&RetentionSegment, RetentionRule)> {
        self.segments.iter().filter_map(|(segment, fate)| match fate {
            Fate::Deleted(rule) => Some((segment, *rule)),
            Fate::Kept(_) => None,
        })
    }
}

/// One pass over the segments of a log, oldest first.
pub fn apply_retention(
    segments: &[RetentionSegment],
    offsets: RetentionOffsets,
    settings: &RetentionSettings,
    rules: &Rules,
    now: TimestampMs,
) -> RetentionOutcome {
    use RetentionRule::{LogStartOffset, RetentionBytes, RetentionMs};
    let order = match (settings.deletion, rules.retention_order) {
        (Deletion::BelowLogStart, _) => &[LogStartOffset][..],
        (Deletion::ByAllRules, RetentionOrder::StartSizeTime) => &[LogStartOffset, RetentionBytes, RetentionMs],
        (Deletion::ByAllRules, RetentionOrder::TimeSizeStart) => &[RetentionMs, RetentionBytes, LogStartOffset],
    };
    let mut pass = Pass { settings, now, offsets, rolled: None };
    let mut left = segments.to_vec();
    let mut fates = Vec::with_capacity(segments.len());
    for rule in order {
        let count = pass.deletable(&left, *rule);
        if count == 0 {
            continue;
        }
        if count == left.len() {
            pass.rolled = Some(offsets.log_end);
            left.push(RetentionSegment {
                base_offset: offsets.log_end,
                size_bytes: 0,
                largest_timestamp: now,
                timestamp_source: TimestampSource::FileTime,
            });
        }
        fates.extend(left.drain(..count).map(|segment| (segment, Fate::Deleted(*rule))));
        let first = left.first().map_or(offsets.log_end, |segment| segment.base_offset);
        pass.offsets.log_start = pass.offsets.log_start.max(first);
    }
    let mut is_first = true;
    for (index, segment) in left.iter().enumerate().filter(|(_, segment)| pass.rolled != Some(segment.base_offset)) {
        let next = left.get(index + 1);
        let because = match () {
            () if !is_first => KeptBecause::BehindKept,
            () if next.is_none() && segment.size_bytes == 0 => KeptBecause::EmptyActive,
            () if pass.is_beyond_high_watermark(next) => KeptBecause::HighWatermark,
            () => KeptBecause::WithinLimits,
        };
        is_first = false;
        fates.push((*segment, Fate::Kept(because)));
    }
    RetentionOutcome { segments: fates, log_start: pass.offsets.log_start, rolled: pass.rolled }
}

struct Pass<'a> {
    settings: &'a RetentionSettings,
    now: TimestampMs,
    offsets: RetentionOffsets,
    rolled: Option<Offset>,
}

impl Pass<'_> {
    /// How many of the oldest segments a rule deletes.
    fn deletable(&self, segments: &[RetentionSegment], rule: RetentionRule) -> usize {
        let total = segments.iter().map(|segment| segment.size_bytes).fold(0, u64::saturating_add);
        let mut excess = self.settings.retention_bytes.and_then(|limit| total.checked_sub(limit));
        let mut count = 0;
        for (index, segment) in segments.iter().enumerate() {
            let next = segments.get(index + 1);
            let is_empty_active = next.is_none() && segment.size_bytes == 0;
            let is_due = match rule {
                RetentionRule::LogStartOffset => next.is_some_and(|next| next.base_offset <= self.offsets.log_start),
                RetentionRule::RetentionBytes => excess.is_some_and(|excess| excess >= segment.size_bytes),
                RetentionRule::RetentionMs => self.is_expired(segment),
            };
            if !is_due || is_empty_active || self.is_beyond_high_watermark(next) {
                break;
            }
            excess = excess.map(|excess| excess.saturating_sub(segment.size_bytes));
            count += 1;
        }
        count
    }

    fn is_expired(&self, segment: &RetentionSegment) -> bool {
        let age = self.now.0.wrapping_sub(segment.largest_timestamp.0);
        self.settings.retention_ms.is_some_and(|limit| age > limit)
    }

    fn is_beyond_high_watermark(&self, next: Option<&RetentionSegment>) -> bool {
        let end = next.map_or(self.offsets.log_end, |next| next.base_offset);
        self.offsets.high_watermark < end
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::KafkaVersion;
    use super::*;

    fn segments(rows: &[(i64, u64, i64)]) -> Vec<RetentionSegment> {
        rows.iter()
            .map(|(base, size_bytes, timestamp)| RetentionSegment {
                base_offset: Offset(*base),
                size_bytes: *size_bytes,
                largest_timestamp: TimestampMs(*timestamp),
                timestamp_source: TimestampSource::TimeIndex,
            })
            .collect()
    }

    fn deleted(
        rows: &[(i64, u64, i64)],
        log_start: i64,
        settings: RetentionSettings,
        now: i64,
    ) -> (Vec<i64>, Option<i64>) {
        let log_end = Offset(100);
        let offsets = RetentionOffsets { log_start: Offset(log_start), high_watermark: log_end, log_end };
        let rules = Rules::of(KafkaVersion::NEWEST);
        let outcome = apply_retention(&segments(rows), offsets, &settings, &rules, TimestampMs(now));
        (outcome.deleted().map(|(segment, _)| segment.base_offset.0).collect(), outcome.rolled.map(|base| base.0))
    }

    const NO_LIMIT: RetentionSettings =
        RetentionSettings { deletion: Deletion::ByAllRules, retention_ms: None, retention_bytes: None };

    #[test]
    fn size_never_goes_below_the_limit_and_zero_takes_the_active_segment_too() {
        let rows = [(0, 100, 1), (10, 100, 1), (20, 100, 1)];
        for (limit, expected) in [(300, vec![]), (200, vec![0]), (150, vec![0]), (100, vec![0, 10])] {
            let settings = RetentionSettings { retention_bytes: Some(limit), ..NO_LIMIT };
            assert_eq!(deleted(&rows, 0, settings, 1), (expected, None), "{limit}");
        }
        let none = RetentionSettings { retention_bytes: Some(0), ..NO_LIMIT };
        assert_eq!(deleted(&rows, 0, none, 1), (vec![0, 10, 20], Some(100)));
        assert_eq!(deleted(&[(0, 100, 1), (20, 0, 1)], 0, none, 1), (vec![0], None));
    }

    #[test]
    fn time_is_strict_and_a_young_segment_protects_those_behind_it() {
        let settings = RetentionSettings { retention_ms: Some(1000), ..NO_LIMIT };
        let rows = [(0, 1, 9000), (50, 1, 99_999)];
        assert_eq!(deleted(&rows, 0, settings, 10_000), (vec![], None));
        assert_eq!(deleted(&rows, 0, settings, 10_001), (vec![0], None));
        let future = [(0, 1, 1000), (10, 1, i64::MAX / 2), (20, 1, 1500)];
        assert_eq!(deleted(&future, 0, settings, 10_000), (vec![0], None));
    }

    #[test]
    fn what_lies_below_the_log_start_goes_under_every_policy() {
        let rows = [(0, 9, 1), (10, 9, 1), (20, 9, 1)];
        let settings = RetentionSettings { deletion: Deletion::BelowLogStart, ..RetentionSettings::default() };
        for (log_start, expected) in [(9, vec![]), (10, vec![0]), (19, vec![0]), (20, vec![0, 10])] {
            assert_eq!(deleted(&rows, log_start, settings, i64::MAX), (expected, None), "{log_start}");
        }
    }
}

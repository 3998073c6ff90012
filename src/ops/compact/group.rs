//! Which segments are cleaned into one (`Cleaner.groupSegmentsBySize`).

use super::options::CleanerSettings;
use super::segments::LogSegment;
use crate::format::Offset;
use crate::ops::broker::cleaner_rules::EmptySegments;

/// Splits segments into runs that become one each. Sizes are those before cleaning; no offset of a run may lie more than 2^31 - 1
/// above its first.
pub(super) fn group_segments<'s>(
    segments: &'s [LogSegment],
    settings: &CleanerSettings,
    first_uncleanable: Offset,
    rule: EmptySegments,
) -> Vec<&'s [LogSegment]> {
    let mut groups = Vec::new();
    let mut rest = segments;
    while let Some((first, mut following)) = rest.split_first() {
        let mut sums = Sums::of(first);
        let mut len = 1usize;
        while let Some((next, behind)) = following.split_first() {
            let bound = behind.first().map_or(first_uncleanable, |segment| segment.base).0.saturating_sub(1);
            let spans = bound.saturating_sub(first.base.0) <= i64::from(i32::MAX);
            let is_exempt = next.size_bytes == 0 && rule == EmptySegments::Exempt;
            if !sums.fits(next, settings) || !(spans || is_exempt) {
                break;
            }
            sums.add(next);
            len += 1;
            following = behind;
        }
        let Some((group, left)) = rest.split_at_checked(len) else { break };
        groups.push(group);
        rest = left;
    }
    groups
}

struct Sums {
    log: u64,
    offset_index: u64,
    time_index: u64,
}

impl Sums {
    fn of(first: &LogSegment) -> Self {
        Self { log: first.size_bytes, offset_index: first.offset_index_bytes, time_index: first.time_index_bytes }
    }

    fn fits(&self, next: &LogSegment, settings: &CleanerSettings) -> bool {
        let most_index = u64::from(settings.index.segment_index_bytes);
        self.log.saturating_add(next.size_bytes) <= settings.segment_bytes
            && self.offset_index.saturating_add(next.offset_index_bytes) <= most_index
            && self.time_index.saturating_add(next.time_index_bytes) <= most_index
    }

    fn add(&mut self, next: &LogSegment) {
        self.log = self.log.saturating_add(next.size_bytes);
        self.offset_index = self.offset_index.saturating_add(next.offset_index_bytes);
        self.time_index = self.time_index.saturating_add(next.time_index_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::TimestampMs;

    fn segment(base: i64, size_bytes: u64) -> LogSegment {
        LogSegment {
            base: Offset(base),
            size_bytes,
            offset_index_bytes: 8,
            time_index_bytes: 12,
            modified: TimestampMs(0),
            last_indexed_timestamp: None,
            aborted: Vec::new(),
            next_offset: None,
            sources: Vec::new(),
            built: None,
        }
    }

    fn groups(segments: &[LogSegment], settings: &CleanerSettings, bound: i64, rule: EmptySegments) -> Vec<Vec<i64>> {
        let groups = group_segments(segments, settings, Offset(bound), rule);
        groups.into_iter().map(|group| group.iter().map(|segment| segment.base.0).collect()).collect()
    }

    #[test]
    fn sizes_of_logs_and_of_indexes_bound_a_group() {
        let segments: Vec<_> = (0..5).map(|i| segment(i * 10, 100)).collect();
        let mut settings = CleanerSettings { segment_bytes: 200, ..CleanerSettings::default() };
        assert_eq!(groups(&segments, &settings, 50, EmptySegments::Exempt), [vec![0, 10], vec![20, 30], vec![40]]);
        settings.segment_bytes = 1000;
        settings.index.segment_index_bytes = 36;
        assert_eq!(groups(&segments, &settings, 50, EmptySegments::Exempt), [vec![0, 10, 20], vec![30, 40]]);
    }

    #[test]
    fn offsets_bound_a_group_but_for_empty_segments() {
        let most = i64::from(i32::MAX);
        let settings = CleanerSettings::default();
        let segments = [segment(0, 100), segment(5, 0), segment(most + 1, 100)];
        for (bound, rule, expected) in [
            (most + 2, EmptySegments::Exempt, vec![vec![0, 5], vec![most + 1]]),
            (most + 2, EmptySegments::Counted, vec![vec![0, 5], vec![most + 1]]),
        ] {
            assert_eq!(groups(&segments, &settings, bound, rule), expected);
        }
        // The next segment's first offset stands for the last one of the empty segment.
        let segments = [segment(0, 100), segment(5, 0), segment(most + 2, 100)];
        assert_eq!(groups(&segments, &settings, most + 3, EmptySegments::Exempt), [vec![0, 5], vec![most + 2]]);
        assert_eq!(groups(&segments, &settings, most + 3, EmptySegments::Counted), [vec![0], vec![5, most + 2]]);
    }
}

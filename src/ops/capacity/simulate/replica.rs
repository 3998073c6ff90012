//! One replica's segments: appended to, rolled, expired.

use std::collections::VecDeque;

use super::super::settings::{TopicSettings, floor_u64};

/// A run of closed segments of the same age; more than one only where a step fills several.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct ClosedSegments {
    /// All of them.
    pub(super) bytes: f64,
    /// How many.
    pub(super) count: u64,
    /// Largest record timestamp.
    pub(super) largest_ms: i64,
    /// The cleaner has been over it.
    pub(super) clean: bool,
}

/// Removed segments that still take space.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Deleted {
    /// When the files go.
    at_ms: i64,
    /// Their size.
    bytes: f64,
}

/// A replica that stands for `weight` like it.
#[derive(Clone, Debug)]
pub(super) struct Replica {
    /// How many it stands for.
    pub(super) weight: f64,
    /// Log of the active segment.
    pub(super) active_bytes: f64,
    closed: VecDeque<ClosedSegments>,
    deleted: VecDeque<Deleted>,
    /// Sums of the two queues, kept beside them: they are asked for at every step.
    closed_sum: f64,
    deleted_sum: f64,
    /// First record of the active segment.
    first_ms: i64,
    /// Last record of the active segment.
    largest_ms: i64,
    /// Bytes and time after which the active segment rolls: less than a full segment for the first one.
    roll_share: f64,
}

impl Replica {
    /// An empty replica whose first segment rolls at `roll_share` of a segment.
    pub(super) fn new(weight: f64, roll_share: f64) -> Self {
        Self {
            weight,
            active_bytes: 0.0,
            closed: VecDeque::new(),
            deleted: VecDeque::new(),
            closed_sum: 0.0,
            deleted_sum: 0.0,
            first_ms: 0,
            largest_ms: 0,
            roll_share,
        }
    }

    /// Closed segments' bytes.
    pub(super) fn closed_bytes(&self) -> f64 {
        self.closed_sum
    }

    /// Closed segments, oldest first.
    pub(super) fn closed(&self) -> impl Iterator<Item = &ClosedSegments> {
        self.closed.iter()
    }

    /// Closed segments that the cleaner has not been over.
    pub(super) fn dirty_bytes(&self) -> f64 {
        self.closed.iter().filter(|run| !run.clean).map(|run| run.bytes).sum()
    }

    /// Puts other closed segments in the place of all there are.
    pub(super) fn replace_closed(&mut self, closed: VecDeque<ClosedSegments>) {
        self.closed_sum = closed.iter().map(|run| run.bytes).sum();
        self.closed = closed;
    }

    /// Removed but not yet deleted bytes.
    pub(super) fn deleted_bytes(&self) -> f64 {
        self.deleted_sum
    }

    /// Segments, the active one included.
    pub(super) fn segment_count(&self) -> u64 {
        self.closed.iter().map(|run| run.count).sum::<u64>().saturating_add(1)
    }

    /// Appends `bytes` of records up to `now_ms`, rolling by size and by time as `LogSegment.shouldRoll` does.
    pub(super) fn append(&mut self, bytes: f64, now_ms: i64, settings: &TopicSettings) {
        if bytes <= 0.0 {
            return;
        }
        let waited_ms = now_ms.saturating_sub(self.first_ms) as f64;
        if self.active_bytes > 0.0 && waited_ms > settings.segment_ms as f64 * self.roll_share {
            self.roll(self.active_bytes, 1, now_ms);
        }
        if self.active_bytes == 0.0 {
            self.first_ms = now_ms;
        }
        self.active_bytes += bytes;
        self.largest_ms = now_ms;
        if self.active_bytes > settings.segment_bytes as f64 * self.roll_share {
            let first = settings.segment_bytes as f64 * self.roll_share;
            self.roll(first, 1, now_ms);
            let full = (self.active_bytes / settings.segment_bytes as f64).floor();
            if full >= 1.0 {
                self.roll(full * settings.segment_bytes as f64, floor_u64(full), now_ms);
            }
        }
    }

    fn roll(&mut self, bytes: f64, count: u64, now_ms: i64) {
        self.closed.push_back(ClosedSegments { bytes, count, largest_ms: self.largest_ms, clean: false });
        self.closed_sum += bytes;
        self.active_bytes = (self.active_bytes - bytes).max(0.0);
        self.first_ms = now_ms;
        self.roll_share = 1.0;
    }

    /// Removes what retention allows, size before time, as `UnifiedLog.deleteOldSegments` does.
    pub(super) fn retain(&mut self, now_ms: i64, settings: &TopicSettings) {
        self.retain_by_size(now_ms, settings);
        let expired = |largest_ms: i64| now_ms.saturating_sub(largest_ms) > settings.retention_ms;
        while let Some(oldest) = self.closed.front().copied()
            && expired(oldest.largest_ms)
        {
            self.closed.pop_front();
            self.take_closed(oldest.bytes);
            self.delete(oldest.bytes, now_ms, settings);
        }
        if self.closed.is_empty() && self.active_bytes > 0.0 && expired(self.largest_ms) {
            let bytes = std::mem::take(&mut self.active_bytes);
            self.delete(bytes, now_ms, settings);
        }
    }

    fn retain_by_size(&mut self, now_ms: i64, settings: &TopicSettings) {
        if settings.retention_bytes < 0 {
            return;
        }
        let mut excess = self.closed_bytes() + self.active_bytes - settings.retention_bytes as f64;
        while let Some(oldest) = self.closed.front_mut()
            && oldest.count > 0
            && excess >= oldest.bytes / oldest.count as f64
        {
            let each = oldest.bytes / oldest.count as f64;
            let removable = if each > 0.0 { floor_u64(excess / each).clamp(1, oldest.count) } else { oldest.count };
            let bytes = each * removable as f64;
            oldest.bytes -= bytes;
            oldest.count -= removable;
            if oldest.count == 0 {
                self.closed.pop_front();
            }
            excess -= bytes;
            self.take_closed(bytes);
            self.delete(bytes, now_ms, settings);
        }
    }

    /// Lets `bytes` wait for the delete delay.
    pub(super) fn delete(&mut self, bytes: f64, now_ms: i64, settings: &TopicSettings) {
        let at_ms = now_ms.saturating_add(settings.file_delete_delay_ms);
        self.deleted.push_back(Deleted { at_ms, bytes });
        self.deleted_sum += bytes;
    }

    fn take_closed(&mut self, bytes: f64) {
        self.closed_sum = if self.closed.is_empty() { 0.0 } else { self.closed_sum - bytes };
    }

    /// Deletes the files whose delay has passed.
    pub(super) fn purge(&mut self, now_ms: i64) {
        while let Some(deleted) = self.deleted.front().copied()
            && deleted.at_ms <= now_ms
        {
            self.deleted.pop_front();
            self.deleted_sum = if self.deleted.is_empty() { 0.0 } else { self.deleted_sum - deleted.bytes };
        }
    }
}

#[expect(clippy::float_cmp, reason = "the expected values are exact")]
#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> TopicSettings {
        TopicSettings {
            retention_ms: 1000,
            retention_bytes: -1,
            guard_retention_bytes: -1,
            segment_bytes: 100,
            segment_ms: 500,
            segment_index_bytes: 0,
            index_interval_bytes: 4096,
            retention_check_interval_ms: 1,
            file_delete_delay_ms: 50,
        }
    }

    #[test]
    fn an_append_beyond_the_segment_size_rolls_as_often_as_it_fills() {
        let mut replica = Replica::new(1.0, 1.0);
        replica.append(60.0, 10, &settings());
        replica.append(190.0, 20, &settings());
        assert_eq!(replica.segment_count(), 3);
        assert_eq!((replica.closed_bytes(), replica.active_bytes), (200.0, 50.0));
    }

    #[test]
    fn a_slow_segment_rolls_by_time_with_the_next_append() {
        let mut replica = Replica::new(1.0, 1.0);
        replica.append(10.0, 0, &settings());
        replica.append(10.0, 500, &settings());
        assert_eq!(replica.segment_count(), 1);
        replica.append(10.0, 501, &settings());
        assert_eq!((replica.segment_count(), replica.active_bytes), (2, 10.0));
    }

    #[test]
    fn retention_is_strict_and_the_files_wait_for_the_delete_delay() {
        let mut replica = Replica::new(1.0, 1.0);
        replica.append(110.0, 100, &settings());
        replica.retain(1100, &settings());
        assert_eq!(replica.closed_bytes(), 100.0);
        replica.append(1.0, 1101, &settings());
        replica.retain(1101, &settings());
        // The append came more than segment.ms after the segment's first record, so the rest was closed and went too.
        assert_eq!((replica.closed_bytes(), replica.deleted_bytes()), (0.0, 110.0));
        replica.purge(1150);
        assert_eq!(replica.deleted_bytes(), 110.0);
        replica.purge(1151);
        assert_eq!(replica.deleted_bytes(), 0.0);
    }

    #[test]
    fn size_retention_never_goes_below_its_limit() {
        let limited = TopicSettings { retention_bytes: 250, ..settings() };
        let mut replica = Replica::new(1.0, 1.0);
        replica.append(430.0, 10, &limited);
        replica.retain(20, &limited);
        assert_eq!(replica.closed_bytes() + replica.active_bytes, 330.0);
        let exact = TopicSettings { retention_bytes: 230, ..settings() };
        replica.retain(20, &exact);
        assert_eq!(replica.closed_bytes() + replica.active_bytes, 230.0);
    }

    #[test]
    fn an_expired_active_segment_goes_too_when_nothing_is_written() {
        let mut replica = Replica::new(1.0, 1.0);
        replica.append(10.0, 0, &settings());
        replica.retain(1001, &settings());
        assert_eq!((replica.active_bytes, replica.deleted_bytes()), (0.0, 10.0));
    }
}

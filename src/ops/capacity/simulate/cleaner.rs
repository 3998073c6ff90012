//! The log cleaner: one thread that rewrites the dirtiest replica, at a given rate.

use std::collections::VecDeque;

use super::super::settings::TopicSettings;
use super::disk::Compaction;
use super::replica::{ClosedSegments, Replica};

/// A replica group under cleaning.
#[derive(Clone, Copy, Debug)]
struct Job {
    index: usize,
    remaining_bytes: f64,
}

/// The cleaner's thread.
#[derive(Clone, Debug)]
pub(super) struct Cleaner {
    compaction: Compaction,
    job: Option<Job>,
}

impl Cleaner {
    /// An idle cleaner.
    pub(super) fn new(compaction: Compaction) -> Self {
        Self { compaction, job: None }
    }

    /// Bytes of unfinished output: it is swapped in segment by segment.
    pub(super) fn output_bytes(&self, settings: &TopicSettings) -> f64 {
        self.job.map_or(0.0, |job| job.remaining_bytes.min(settings.segment_bytes as f64))
    }

    /// Works for `step_ms`, ending at `now_ms`. The replica's size changes when its cleaning ends.
    pub(super) fn advance(&mut self, replicas: &mut [Replica], now_ms: i64, step_ms: i64, settings: &TopicSettings) {
        let mut budget = self.compaction.cleaner_bytes_per_second * step_ms as f64 / 1000.0;
        // Each round ends a job or the budget; a replica that was just cleaned has nothing dirty.
        for _ in 0..replicas.len().saturating_mul(2) {
            let Some(mut job) = self.job.take().or_else(|| self.dirtiest(replicas)) else { return };
            let done = budget.min(job.remaining_bytes);
            job.remaining_bytes -= done;
            budget -= done;
            if job.remaining_bytes > 0.0 {
                self.job = Some(job);
                return;
            }
            if let Some(replica) = replicas.get_mut(job.index) {
                self.finish(replica, now_ms, settings);
            }
        }
    }

    fn dirtiest(&self, replicas: &[Replica]) -> Option<Job> {
        let mut best: Option<(f64, Job)> = None;
        for (index, replica) in replicas.iter().enumerate() {
            let all = replica.closed_bytes();
            let dirty = replica.dirty_bytes();
            let ratio = if all > 0.0 { dirty / all } else { 0.0 };
            let least = best.map_or(self.compaction.min_cleanable_dirty_ratio, |(ratio, _)| ratio);
            if ratio > least {
                best = Some((ratio, Job { index, remaining_bytes: all * replica.weight }));
            }
        }
        best.map(|(_, job)| job)
    }

    /// Replaces a replica's closed segments by their survivors. With `d` dirty bytes drawn evenly from `k` bytes of
    /// distinct keys, a clean byte survives with probability exp(-d/k), and of the dirty ones k (1 - exp(-d/k)) do.
    fn finish(&self, replica: &mut Replica, now_ms: i64, settings: &TopicSettings) {
        let replaced = replica.closed_bytes();
        let dirty = replica.dirty_bytes();
        let keys = self.compaction.key_space_bytes.max(1.0);
        let clean_share = (-dirty / keys).exp();
        let dirty_share = if dirty > 0.0 { (keys * (1.0 - clean_share) / dirty).min(1.0) } else { 1.0 };
        let mut cleaned: VecDeque<ClosedSegments> = VecDeque::new();
        for run in replica.closed() {
            let bytes = run.bytes * if run.clean { clean_share } else { dirty_share };
            match cleaned.back_mut() {
                Some(last) if last.bytes + bytes <= settings.segment_bytes as f64 => {
                    last.bytes += bytes;
                    last.largest_ms = last.largest_ms.max(run.largest_ms);
                }
                _ => cleaned.push_back(ClosedSegments { bytes, clean: true, ..*run }),
            }
        }
        replica.replace_closed(cleaned);
        // Of a group only one replica at a time is rewritten: what waits for its deletion is what the thread
        // replaces within the delay, not the whole group.
        let waiting = self.compaction.cleaner_bytes_per_second * settings.file_delete_delay_ms as f64 / 1000.0;
        replica.delete(replaced.min(waiting.max(replaced / replica.weight.max(1.0))), now_ms, settings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleaning_keeps_no_more_than_the_keys() {
        let settings = TopicSettings {
            retention_ms: -1,
            retention_bytes: -1,
            guard_retention_bytes: -1,
            segment_bytes: 1000,
            segment_ms: i64::MAX,
            segment_index_bytes: 0,
            index_interval_bytes: 4096,
            retention_check_interval_ms: 1,
            file_delete_delay_ms: 60_000,
        };
        let mut cleaner = Cleaner::new(Compaction {
            key_space_bytes: 2500.0,
            min_cleanable_dirty_ratio: 0.5,
            cleaner_bytes_per_second: 1e9,
        });
        let mut replicas = [Replica::new(1.0, 1.0)];
        for round in 0..20 {
            replicas[0].append(10_500.0, round * 1000, &settings);
            cleaner.advance(&mut replicas, round * 1000, 1000, &settings);
            assert!(replicas[0].closed_bytes() <= 2500.0, "round {round}: {}", replicas[0].closed_bytes());
            assert!(replicas[0].deleted_bytes() > 0.0);
        }
        assert!(replicas[0].closed_bytes() > 2400.0);
    }
}

//! The checkpoints of a log dir, so that they fit the repaired logs.

use std::collections::BTreeMap;

use crate::format::Offset;
use crate::format::checkpoint::OffsetCheckpoint;
use crate::logdir::names::CheckpointKind;
use crate::logdir::{LogDir, ReadError, TopicPartition};
use crate::ops::FindingId;
use crate::ops::plan::{CheckpointPlan, PlanReason};

/// Topic and partition, as checkpoints name them.
pub(super) type Key = (String, i32);

/// How checkpoints name a partition.
pub(super) fn key_of(topic_partition: &TopicPartition) -> Key {
    (String::from_utf8_lossy(topic_partition.topic_bytes()).into_owned(), topic_partition.partition())
}

/// Where a repaired log begins and ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LogBounds {
    /// The base offset of its first segment.
    pub(super) first_base: Offset,
    /// Where it starts.
    pub(super) log_start: Offset,
    /// Where it ends.
    pub(super) log_end: Offset,
}

/// A checkpoint as it is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Stored {
    before: Option<Vec<u8>>,
    is_malformed: bool,
    /// Its entries, as far as they can be read.
    pub(super) entries: BTreeMap<Key, Offset>,
}

impl Stored {
    /// Reads a checkpoint.
    pub(super) fn read(log_dir: &LogDir, kind: CheckpointKind) -> Result<Self, ReadError> {
        let before = log_dir.read_checkpoint(kind)?;
        let parsed = OffsetCheckpoint::parse(before.as_deref().unwrap_or_default());
        let effective = parsed.content.effective();
        let entries =
            effective.into_iter().map(|((topic, partition), offset)| ((topic.to_owned(), partition), offset)).collect();
        // A file of no bytes is one that brokers leave.
        let is_malformed = parsed.fault.is_some() && before.as_ref().is_some_and(|bytes| !bytes.is_empty());
        Ok(Self { before, is_malformed, entries })
    }

    /// The plan that gives it these entries; `None` where it has them.
    fn plan(self, log_dir: &LogDir, kind: CheckpointKind, entries: &BTreeMap<Key, Offset>) -> Option<CheckpointPlan> {
        if *entries == self.entries && !self.is_malformed {
            return None;
        }
        let reason = if self.is_malformed { FindingId::CheckpointMalformed } else { FindingId::CheckpointBeyondLogEnd };
        let rows: Vec<_> = entries.iter().map(|((topic, id), offset)| (topic.as_str(), *id, *offset)).collect();
        Some(CheckpointPlan {
            log_dir: log_dir.path().to_path_buf(),
            kind,
            before: self.before,
            after: OffsetCheckpoint::encode(rows.into_iter()),
            reasons: vec![PlanReason::Finding(reason)],
        })
    }
}

/// The checkpoints that an orderly stop writes: where logs start inside their first segment, and that all is flushed.
pub(super) fn of_orderly_stop(
    log_dir: &LogDir,
    logs: &BTreeMap<Key, LogBounds>,
) -> Result<Vec<CheckpointPlan>, ReadError> {
    let mut plans = Vec::new();
    for kind in [CheckpointKind::LogStartOffset, CheckpointKind::RecoveryPoint] {
        let stored = Stored::read(log_dir, kind)?;
        let mut entries = stored.entries.clone();
        for (key, bounds) in logs {
            match kind {
                CheckpointKind::LogStartOffset if bounds.log_start <= bounds.first_base => {
                    entries.remove(key);
                }
                CheckpointKind::LogStartOffset => {
                    entries.insert(key.clone(), bounds.log_start);
                }
                _ => {
                    entries.insert(key.clone(), bounds.log_end);
                }
            }
        }
        plans.extend(stored.plan(log_dir, kind, &entries));
    }
    Ok(plans)
}

/// The offset of a log in a checkpoint, made to fit the log; `None` where it is better forgotten.
pub(super) fn fit(kind: CheckpointKind, offset: Offset, bounds: &LogBounds) -> Option<Offset> {
    match kind {
        // A start beyond all data would have the broker delete everything.
        CheckpointKind::LogStartOffset if offset > bounds.log_end => None,
        CheckpointKind::LogStartOffset => Some(offset),
        _ => Some(offset.clamp(Offset(0), bounds.log_end.max(Offset(0)))),
    }
}

/// The checkpoints with what contradicts the logs taken out: malformed files written anew, entries beyond a log's end lowered to it,
/// a log start that lies beyond all data forgotten.
pub(super) fn fitted(log_dir: &LogDir, logs: &BTreeMap<Key, LogBounds>) -> Result<Vec<CheckpointPlan>, ReadError> {
    let mut plans = Vec::new();
    for kind in CheckpointKind::ALL {
        let stored = Stored::read(log_dir, kind)?;
        let fit_entry = |(key, offset): (&Key, &Offset)| {
            let fitted = logs.get(key).map_or(Some(*offset), |bounds| fit(kind, *offset, bounds));
            Some((key.clone(), fitted?))
        };
        let entries = stored.entries.iter().filter_map(fit_entry).collect();
        plans.extend(stored.plan(log_dir, kind, &entries));
    }
    Ok(plans)
}

//! Whole partition directories and log dirs whose files agree with each other.

use std::fs;
use std::path::{Path, PathBuf};

use super::producers::Producers;
use super::segment::{Segment, Unit};
use super::{Batch, files};

/// A partition that a broker closed cleanly.
#[derive(Debug, Clone)]
pub(crate) struct Partition {
    pub(crate) topic: String,
    pub(crate) number: i32,
    pub(crate) topic_id: [u8; 16],
    pub(crate) segments: Vec<Segment>,
    pub(crate) log_start_offset: i64,
}

impl Partition {
    /// With one empty segment at offset 0.
    pub(crate) fn new(topic: &str, number: i32) -> Self {
        let mut topic_id = [0x11; 16];
        topic.bytes().enumerate().for_each(|(at, byte)| topic_id[at % 16] ^= byte);
        Self { topic: topic.to_owned(), number, topic_id, segments: vec![Segment::at(0)], log_start_offset: 0 }
    }

    /// `index.interval.bytes` of the segments from the active one on.
    pub(crate) fn index_interval_bytes(mut self, bytes: u64) -> Self {
        self.active().index_interval_bytes = bytes;
        self
    }

    /// Appends to the active segment.
    pub(crate) fn append(mut self, unit: impl Into<Unit>) -> Self {
        let segment = self.active();
        *segment = segment.clone().append(unit);
        self
    }

    /// Seals the active segment and starts the next one at its end.
    pub(crate) fn roll(self) -> Self {
        let next = self.log_end_offset();
        self.roll_at(next)
    }

    /// The same at a higher offset, as after compaction.
    pub(crate) fn roll_at(mut self, base_offset: i64) -> Self {
        let interval = self.active().index_interval_bytes;
        self.segments.push(Segment::at(base_offset).index_interval_bytes(interval));
        self
    }

    /// Exclusive end.
    pub(crate) fn log_end_offset(&self) -> i64 {
        self.segments.last().unwrap().next_offset()
    }

    fn active(&mut self) -> &mut Segment {
        self.segments.last_mut().unwrap()
    }

    /// `<topic>-<partition>`.
    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.topic, self.number)
    }

    /// Epochs and their first offsets.
    pub(crate) fn leader_epochs(&self) -> Vec<(i32, i64)> {
        let mut epochs: Vec<(i32, i64)> = Vec::new();
        for batch in self.segments.iter().flat_map(|segment| &segment.units).filter_map(batch_of) {
            if batch.leader_epoch > epochs.last().map_or(-1, |entry| entry.0) {
                epochs.push((batch.leader_epoch, batch.base_offset));
            }
        }
        epochs
    }

    /// Names and contents of all files: segments with sealed indexes, a snapshot at each roll and at the end, epochs, metadata.
    pub(crate) fn files(&self) -> Vec<(String, Vec<u8>)> {
        let mut all = Vec::new();
        let mut producers = Producers::default();
        for segment in &self.segments {
            if segment.base_offset > 0 {
                all.push(snapshot(segment.base_offset, &producers));
            }
            let mut segment = segment.clone().sealed();
            let aborted = segment.units.iter().filter_map(batch_of).filter_map(|batch| producers.append(batch));
            segment.aborted = aborted.collect();
            all.extend(segment.files());
        }
        let end = self.log_end_offset();
        if end > self.segments.last().unwrap().base_offset {
            all.push(snapshot(end, &producers));
        }
        let epochs = files::leader_epoch_checkpoint(&self.leader_epochs());
        all.push(("leader-epoch-checkpoint".to_owned(), epochs.into_bytes()));
        all.push(("partition.metadata".to_owned(), files::partition_metadata(self.topic_id).into_bytes()));
        all
    }

    /// Writes `<log dir>/<topic>-<partition>/`.
    pub(crate) fn write(&self, log_dir: &Path) -> PathBuf {
        let directory = log_dir.join(self.name());
        fs::create_dir_all(&directory).unwrap();
        for (name, bytes) in self.files() {
            fs::write(directory.join(name), bytes).unwrap();
        }
        directory
    }
}

fn batch_of(unit: &Unit) -> Option<&Batch> {
    match unit {
        Unit::Batch(batch) => Some(batch),
        Unit::Legacy(_) => None,
    }
}

fn snapshot(offset: i64, producers: &Producers) -> (String, Vec<u8>) {
    (files::name(offset, "snapshot"), files::producer_snapshot(&producers.snapshot()))
}

/// A log dir that a broker closed cleanly: everything flushed, everything committed.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogDir {
    pub(crate) partitions: Vec<Partition>,
}

impl LogDir {
    pub(crate) fn new(partitions: impl IntoIterator<Item = Partition>) -> Self {
        Self { partitions: partitions.into_iter().collect() }
    }

    /// Writes partitions, checkpoints, identity, lock file and clean-shutdown marker into an existing directory.
    pub(crate) fn write(&self, log_dir: &Path) {
        let offsets = |of: fn(&Partition) -> Option<i64>| {
            let entries = self
                .partitions
                .iter()
                .filter_map(|partition| Some((partition.topic.as_str(), partition.number, of(partition)?)));
            files::offset_checkpoint(&entries.collect::<Vec<_>>())
        };
        let end = |partition: &Partition| Some(partition.log_end_offset());
        let start = |partition: &Partition| {
            (partition.log_start_offset > partition.segments[0].base_offset).then_some(partition.log_start_offset)
        };
        for partition in &self.partitions {
            partition.write(log_dir);
        }
        for (name, text) in [
            ("recovery-point-offset-checkpoint", offsets(end)),
            ("replication-offset-checkpoint", offsets(end)),
            ("log-start-offset-checkpoint", offsets(start)),
            ("cleaner-offset-checkpoint", files::offset_checkpoint(&[])),
            ("meta.properties", files::meta_properties(1, [0x22; 16], [0x33; 16])),
            (".kafka_cleanshutdown", files::clean_shutdown(7)),
            (".lock", String::new()),
        ] {
            fs::write(log_dir.join(name), text).unwrap();
        }
    }
}

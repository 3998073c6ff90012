//! The producer state of a log while it is loaded, and its snapshots in the directory (`ProducerStateManager`,
//! `UnifiedLog.rebuildProducerState`).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use super::environment::LoadEnvironment;
use super::failure::LoadStop;
use super::log_reading::{HeaderWalk, RawBatch, SegmentReader};
use super::markers::read_end_marker;
use super::producers::{ProducerEntry, ProducerState, ReplayError};
use super::segment_files;
use crate::format::producer_snapshot::ProducerSnapshot;
use crate::format::{Offset, Position};
use crate::logdir::names::{FileName, FileSuffix, LoaderView};
use crate::logdir::{LogScanner, SegmentFile};
use crate::ops::{FindingId, PartitionImage};

/// The largest snapshot that is read: eleven million producers.
const MOST_SNAPSHOT_BYTES: u64 = 512 * 1024 * 1024;

/// How much of the log is believed when the state is rebuilt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reload {
    /// Where no snapshot is left, there were no producers.
    AfterCleanShutdown,
    /// Where no snapshot is left, the log is replayed from its start.
    FromLog,
}

/// `ProducerStateManager`.
#[derive(Debug)]
pub(super) struct ProducerManager {
    pub(super) state: ProducerState,
    pub(super) map_end: Offset,
    snapshot_end: Offset,
    snapshots: BTreeMap<Offset, OsString>,
}

impl ProducerManager {
    /// Knows the snapshots that are in the directory, and nothing else.
    pub(super) fn new(image: &PartitionImage) -> Result<Self, LoadStop> {
        let snapshots = list_snapshots(image)?;
        Ok(Self { state: ProducerState::default(), map_end: Offset(0), snapshot_end: Offset(0), snapshots })
    }

    /// `UnifiedLog.rebuildProducerState`: the state at `target`, from the newest snapshot and the log behind it.
    pub(super) fn rebuild(
        &mut self,
        image: &mut PartitionImage,
        environment: &mut LoadEnvironment<'_>,
        (segments, log_start, target): (&BTreeSet<Offset>, Offset, Offset),
        reload: Reload,
    ) -> Result<(), LoadStop> {
        let mut last_two = segments.iter().rev().take(2).copied().collect::<Vec<_>>();
        last_two.reverse();
        let is_forgetful = self.snapshots.is_empty() && reload == Reload::AfterCleanShutdown;
        if environment.records_without_producers() || is_forgetful {
            for offset in last_two.into_iter().chain([target]) {
                self.map_end = offset;
                self.take_snapshot(image, environment);
            }
            return Ok(());
        }
        let was_empty = self.state.is_empty() && self.map_end >= target;
        self.truncate_and_reload(image, environment, log_start, target)?;
        if target > self.map_end && !was_empty {
            let snapshot_at: BTreeSet<Offset> = last_two.into_iter().chain([target]).collect();
            for base in segment_files::in_range(segments, self.map_end, target) {
                self.map_end = base.max(self.map_end).max(log_start);
                if snapshot_at.contains(&base) {
                    self.take_snapshot(image, environment);
                }
                let holds_target = segments.range(..=target).next_back() == Some(&base);
                self.replay_segment(image, environment, base, holds_target.then_some(target))?;
            }
        }
        self.map_end = target;
        self.take_snapshot(image, environment);
        Ok(())
    }

    fn truncate_and_reload(
        &mut self,
        image: &mut PartitionImage,
        environment: &LoadEnvironment<'_>,
        log_start: Offset,
        target: Offset,
    ) -> Result<(), LoadStop> {
        let out_of_range = |offset: &Offset| *offset > target || *offset <= log_start;
        let gone: Vec<Offset> = self.snapshots.keys().copied().filter(out_of_range).collect();
        for offset in gone {
            self.remove(image, offset);
        }
        if target == self.map_end {
            self.map_end = self.map_end.max(log_start);
            self.snapshot_end = self.snapshots.keys().next_back().copied().unwrap_or(log_start);
            return Ok(());
        }
        self.state.clear();
        while let Some((offset, name)) = self.snapshots.last_key_value().map(|(offset, name)| (*offset, name.clone())) {
            let bytes = image.read_small(&name, MOST_SNAPSHOT_BYTES)?.unwrap_or_default();
            if let Ok(snapshot) = ProducerSnapshot::parse(&bytes).strict() {
                let entries = snapshot.entries.iter().map(ProducerEntry::from_stored);
                self.state = ProducerState::from_snapshot(entries, environment.now, environment.producer_expiration_ms);
                (self.snapshot_end, self.map_end) = (offset, offset);
                return Ok(());
            }
            self.remove(image, offset);
        }
        (self.snapshot_end, self.map_end) = (log_start, log_start);
        Ok(())
    }

    /// Replays a segment from where the state stands to its end, or to the batch at which a read of `until` would begin.
    fn replay_segment(
        &mut self,
        image: &PartitionImage,
        environment: &mut LoadEnvironment<'_>,
        base: Offset,
        until: Option<Offset>,
    ) -> Result<(), LoadStop> {
        let (name, log, index) = segment_files::open(image, environment, base)?;
        let reader = SegmentReader::new(base, &log, &index, environment.rules);
        let stop = |stop: super::log_reading::WalkStop| stop.into_failure(&name);
        let end = match until {
            Some(target) => {
                reader.translate(target, &mut environment.records).map_err(stop)?.map(|batch| batch.position)
            }
            None => None,
        };
        let end = end.unwrap_or(log.end());
        let Some(start) = reader.translate(self.map_end, &mut environment.records).map_err(stop)? else {
            return Ok(());
        };
        if start.position > end {
            // The slice would have a negative length.
            return Err(LoadStop::fails(FindingId::OffsetIndexEntryWrong, &name, start.position));
        }
        let mut walk = HeaderWalk::over(&log, start.position, end);
        while let Some(batch) = walk.next_batch().map_err(stop)? {
            self.replay_batch(&mut walk, &batch, &log, environment).map_err(|stop| stop.named(&name))?;
        }
        Ok(())
    }

    fn replay_batch(
        &mut self,
        walk: &mut HeaderWalk<'_>,
        batch: &RawBatch,
        log: &SegmentFile,
        environment: &mut LoadEnvironment<'_>,
    ) -> Result<(), ReplayStop> {
        if batch.magic < 2 {
            return Ok(());
        }
        let header = walk.header(batch).map_err(ReplayStop::Walk)?;
        if header.producer_id.is_none_or(|producer_id| producer_id.0 < 0) {
            return Ok(());
        }
        let marker = if header.is_control() {
            let position = batch.position;
            let mut scanner = LogScanner::over(log, position, batch.end());
            let Ok(Some(scanned)) = scanner.next_batch() else { return Err(ReplayStop::Marker(position)) };
            read_end_marker(&scanned, &mut environment.records).map_err(|_| ReplayStop::Marker(position))?
        } else {
            None
        };
        self.state.append(&header, marker.as_ref()).map_err(|error| ReplayStop::Refused(error, batch.position))?;
        Ok(())
    }

    /// Writes a snapshot of the state, unless there is one.
    pub(super) fn take_snapshot(&mut self, image: &mut PartitionImage, environment: &LoadEnvironment<'_>) {
        if self.map_end <= self.snapshot_end {
            return;
        }
        let entries: Vec<_> = self.state.entries().map(ProducerEntry::to_stored).collect();
        let mut bytes = ProducerSnapshot::encode(&entries);
        let Some(name) = snapshot_name(self.map_end) else { return };
        // The file is not cut first, so that a longer one keeps its tail.
        if let Ok(Some(before)) = image.read_small(&name, MOST_SNAPSHOT_BYTES) {
            bytes.extend(before.get(bytes.len()..).unwrap_or_default());
        }
        image.put_bytes(&name, bytes, environment.now);
        self.snapshots.insert(self.map_end, name);
        self.snapshot_end = self.map_end;
    }

    fn remove(&mut self, image: &mut PartitionImage, offset: Offset) {
        if let Some(name) = self.snapshots.remove(&offset) {
            image.remove(&name);
        }
    }

    /// Removes the snapshot that goes with a deleted segment.
    pub(super) fn remove_of_segment(&mut self, image: &mut PartitionImage, base: Offset) {
        self.remove(image, base);
    }

    /// `removeStraySnapshots`: those that belong to no segment go, except the largest where it lies beyond all segments.
    pub(super) fn remove_strays(
        &mut self,
        image: &mut PartitionImage,
        segments: &BTreeSet<Offset>,
    ) -> Result<(), LoadStop> {
        self.snapshots = list_snapshots(image)?;
        let mut strays: Vec<Offset> =
            self.snapshots.keys().copied().filter(|offset| !segments.contains(offset)).collect();
        if strays.last().is_some_and(|largest| segments.last().is_none_or(|last| largest >= last)) {
            strays.pop();
        }
        for offset in strays {
            self.remove(image, offset);
        }
        Ok(())
    }

    /// `truncateFullyAndStartAt`.
    pub(super) fn start_over(&mut self, image: &mut PartitionImage, at: Offset) {
        let all: Vec<Offset> = self.snapshots.keys().copied().collect();
        for offset in all {
            self.remove(image, offset);
        }
        self.state.clear();
        (self.snapshot_end, self.map_end) = (Offset(0), at);
    }
}

/// Why a replay ends, before the file's name is known.
#[derive(Debug)]
pub(super) enum ReplayStop {
    Walk(super::log_reading::WalkStop),
    Marker(Position),
    Refused(ReplayError, Position),
}

impl ReplayStop {
    pub(super) fn named(self, name: &std::ffi::OsStr) -> LoadStop {
        match self {
            Self::Walk(stop) => stop.into_failure(name),
            Self::Marker(position) => LoadStop::fails(FindingId::RecordMalformed, name, position),
            Self::Refused(ReplayError::ForeignBatch { .. }, position) => {
                LoadStop::fails(FindingId::TransactionForeignBatch, name, position)
            }
            Self::Refused(ReplayError::NeverBegun { .. }, position) => {
                LoadStop::fails(FindingId::SnapshotStateMismatch, name, position)
            }
        }
    }
}

fn snapshot_name(offset: Offset) -> Option<OsString> {
    FileName::Snapshot { offset, suffix: FileSuffix::None }.to_name()
}

fn list_snapshots(image: &PartitionImage) -> Result<BTreeMap<Offset, OsString>, LoadStop> {
    let mut snapshots = BTreeMap::new();
    for (name, _) in image.files().filter(|(name, _)| name.as_encoded_bytes().ends_with(b".snapshot")) {
        match LoaderView::of(name) {
            LoaderView::Snapshot(offset) => {
                snapshots.insert(offset, name.to_os_string());
            }
            LoaderView::StartFails => return Err(LoadStop::fails(FindingId::SegmentNameInvalid, name, None)),
            _ => {}
        }
    }
    Ok(snapshots)
}

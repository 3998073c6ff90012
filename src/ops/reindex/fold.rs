//! One partition put together: indexes as its segments come in, snapshots between them.
//!
//! As a broker's recovery does it segment by segment: it takes a snapshot at the end of each, and loads it for the next, which
//! forgets producers that have been idle for too long (`LogLoader.recoverSegment`, `UnifiedLog.rebuildProducerState`). A segment
//! that begins at or below the log start begins without producers, since snapshots up to there are removed.

use std::collections::BTreeMap;

use super::extent::{Extents, segment_name, snapshot_name};
use super::large::LargeSegment;
use super::options::ReindexOptions;
use super::scan::{ProducerBatch, Refused, SegmentMessage, SegmentScan};
use crate::format::producer_snapshot::ProducerSnapshot;
use crate::format::{BatchHeader, Offset};
use crate::logdir::names::FileKind;
use crate::ops::broker::index_rules::{BuiltIndexes, IndexRefusal, TxnIndexBuilder};
use crate::ops::broker::producers::{ProducerEntry, ProducerState};
use crate::ops::plan::{PartitionPlan, PlanReason};
use crate::ops::{Fact, Finding, FindingId, Location, Progress};

/// The largest snapshot that is read: eleven million producers.
const MOST_SNAPSHOT_BYTES: u64 = 512 * 1024 * 1024;

/// A partition that is being put together.
#[derive(Debug)]
pub(super) struct PartitionFold {
    extents: Extents,
    plan: PartitionPlan,
    options: ReindexOptions,
    /// The producers, where they are known.
    state: Option<ProducerState>,
    /// Where the state has been replayed to.
    replayed_to: Offset,
    /// The segment that the state leads up to.
    due: Option<usize>,
    /// A segment that comes in parts.
    large: Option<LargeSegment>,
    aborted: TxnIndexBuilder,
    /// The snapshots there should be, as far as the log was read.
    snapshots: BTreeMap<Offset, Vec<u8>>,
    findings: Vec<Finding>,
    /// Nothing more is made: what came last is damaged.
    is_stopped: bool,
    is_complete: bool,
}

/// What a partition came to.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) plan: PartitionPlan,
    pub(super) findings: Vec<Finding>,
    pub(super) is_complete: bool,
}

impl PartitionFold {
    pub(super) fn new(extents: Extents, options: &ReindexOptions) -> Self {
        Self {
            plan: PartitionPlan::unchanged((*extents.image).clone()),
            extents,
            options: *options,
            state: None,
            replayed_to: Offset(0),
            due: None,
            large: None,
            aborted: TxnIndexBuilder::default(),
            snapshots: BTreeMap::new(),
            findings: Vec::new(),
            is_stopped: false,
            is_complete: true,
        }
    }

    /// Takes the next message of the next segment in.
    pub(super) fn take(&mut self, message: SegmentMessage, progress: &dyn Progress) {
        let index = message.index();
        if self.is_stopped {
            return;
        }
        if self.due != Some(index) {
            self.begin_at(index);
        }
        match message {
            SegmentMessage::Producers(_, batches) => self.replay_all(index, &batches),
            SegmentMessage::Done(_, scan) => self.segment(index, *scan),
            SegmentMessage::Opened(segment) => self.large = Some(LargeSegment::new(segment)),
            SegmentMessage::Part(_, part) => {
                let batches = self.large.as_mut().map(|large| large.part(part, progress));
                self.replay_all(index, &batches.unwrap_or_default());
            }
            SegmentMessage::Closed(_) => {
                if let Some(large) = self.large.take() {
                    let (batches, scan) = large.finish(progress);
                    self.replay_all(index, &batches);
                    self.segment(index, scan);
                }
            }
        }
    }

    fn replay_all(&mut self, index: usize, batches: &[ProducerBatch]) {
        for batch in batches {
            self.replay(index, batch);
        }
    }

    /// A segment whose predecessor was not read.
    fn begin_at(&mut self, index: usize) {
        let Some(base) = self.extents.bases.get(index).copied() else { return };
        self.state = if self.extents.has_seed(base) {
            self.load_seed(base)
        } else {
            (base <= self.extents.log_start).then(ProducerState::default)
        };
        (self.due, self.replayed_to) = (Some(index), base);
    }

    /// The producers as a sound snapshot has them.
    fn load_seed(&self, base: Offset) -> Option<ProducerState> {
        let bytes = self.extents.image.read_small(&snapshot_name(base)?, MOST_SNAPSHOT_BYTES).ok()??;
        let snapshot = ProducerSnapshot::parse(&bytes).strict().ok()?;
        let entries = snapshot.entries.iter().map(ProducerEntry::from_stored);
        Some(ProducerState::from_snapshot(entries, self.options.now, self.options.expiration_ms()))
    }

    fn replay(&mut self, index: usize, batch: &ProducerBatch) {
        let Some(state) = &mut self.state else { return };
        let header = &batch.header;
        let wrong = match batch.marker.map(|marker| state.append(header, marker.as_ref())) {
            Err(_) => FindingId::RecordMalformed,
            Ok(Err(_)) => FindingId::TransactionForeignBatch,
            Ok(Ok(ended)) => match ended.and_then(|ended| ended.index_entry()).map(|entry| self.aborted.add(&entry)) {
                Some(Err(_)) => FindingId::BatchOffsetRegression,
                _ => return,
            },
        };
        // From here on nobody knows what the producers were; a broker would not start over it.
        self.state = None;
        if let Some(place) = self.place_of_batch(index, header) {
            self.findings.push(Finding::new(wrong, place));
        }
    }

    fn segment(&mut self, index: usize, scan: SegmentScan) {
        let Some(base) = self.extents.bases.get(index).copied() else { return };
        let aborted = std::mem::take(&mut self.aborted);
        let is_last = index.saturating_add(1) == self.extents.bases.len();
        if self.stops(index, &scan, is_last) {
            self.is_stopped = true;
            return;
        }
        match scan.indexes {
            Ok(built) => self.put_indexes(base, built, aborted),
            Err(refused) => {
                self.refuse(index, &refused);
                self.is_stopped = true;
                return;
            }
        }
        self.replayed_to = scan.replayed_to.unwrap_or(self.replayed_to);
        self.arrive(index.saturating_add(1), scan.end);
    }

    /// Whether a segment is such that nothing can be made of it and what follows; says why.
    fn stops(&mut self, index: usize, scan: &SegmentScan, is_last: bool) -> bool {
        let is_told = self.extents.told.is_some();
        let Some(place) = self.place_of_log(index) else { return true };
        if scan.is_unopened {
            self.is_complete = false;
            if !is_told {
                self.findings.push(Finding::new(FindingId::LogUnreadableRange, place));
            }
            return true;
        }
        let Some(damage) = &scan.damage else { return false };
        let finding = damage.finding(place);
        self.is_complete &= !is_unread(finding.id);
        if !is_told {
            self.findings.push(finding);
        }
        // The end of the active segment is another matter: what a crash leaves there is cut off at the next start.
        scan.goes_on || !is_last || !self.is_complete
    }

    /// The indexes cannot hold what is in the log.
    fn refuse(&mut self, index: usize, refused: &Refused) {
        let place = match &refused.at {
            Some(header) => self.place_of_batch(index, header),
            None => self.place_of_log(index),
        };
        let Some(place) = place else { return };
        let offset = |offset: Offset| Some(Fact::Offset(offset));
        let (id, expected, found) = match refused.refusal {
            IndexRefusal::OffsetOverflow { offset: found, base } => {
                (FindingId::BatchOffsetOverflow, offset(base), offset(found))
            }
            IndexRefusal::InvalidOffset { offset: found, last } => {
                (FindingId::BatchOffsetRegression, offset(last), offset(found))
            }
            IndexRefusal::Full { entries } => {
                self.is_complete = false;
                let most = Fact::Number(i64::try_from(entries).unwrap_or(i64::MAX));
                (FindingId::LimitReached, Some(most), None)
            }
        };
        self.findings.push(Finding::new(id, place).with_facts(expected, found));
    }

    fn put_indexes(&mut self, base: Offset, built: BuiltIndexes, aborted: TxnIndexBuilder) {
        self.put_index(base, FileKind::OffsetIndex, built.offset_index);
        self.put_index(base, FileKind::TimeIndex, built.time_index);
        let txn_index = aborted.finish();
        let is_there = segment_name(base, FileKind::TxnIndex).is_some_and(|name| self.extents.image.has(&name));
        // Without an aborted transaction there is no file, but one that is there stays, empty.
        if self.state.is_some() && (is_there || !txn_index.is_empty()) {
            self.put_index(base, FileKind::TxnIndex, txn_index);
        }
    }

    fn put_index(&mut self, base: Offset, kind: FileKind, bytes: Vec<u8>) {
        if let Some(name) = segment_name(base, kind).filter(|name| self.extents.wants_index(name)) {
            self.plan.after.put_bytes(&name, bytes, self.options.now);
        }
    }

    /// The state has come to where a segment begins, or to the end of the log at `end`.
    fn arrive(&mut self, index: usize, end: Offset) {
        let next = self.extents.bases.get(index).copied();
        let at = next.unwrap_or(end);
        let log_start = self.extents.log_start;
        self.due = Some(index);
        if next.is_some_and(|base| self.extents.has_seed(base)) {
            self.state = self.load_seed(at);
        } else if at <= log_start || self.replayed_to <= log_start {
            self.state = self.state.take().map(|_| ProducerState::default());
            self.take_snapshot(at);
        } else if self.replayed_to == at {
            self.take_snapshot(at);
            self.reload();
        } else {
            // The snapshot at the end of the segment is loaded, and one taken where the next begins.
            self.reload();
            self.take_snapshot(at);
        }
        self.replayed_to = at;
    }

    /// What remains of the state when its snapshot is loaded.
    fn reload(&mut self) {
        let (now, expiration) = (self.options.now, self.options.expiration_ms());
        self.state = self.state.take().map(|state| {
            let stored = state.entries().map(|entry| ProducerEntry::from_stored(&entry.to_stored()));
            ProducerState::from_snapshot(stored, now, expiration)
        });
    }

    fn take_snapshot(&mut self, at: Offset) {
        let wanted = snapshot_name(at).is_some_and(|name| self.extents.wants_snapshot(&name));
        if let Some(state) = self.state.as_ref().filter(|_| wanted && at > self.extents.log_start) {
            // The one that is there already stays: an empty segment ends where it begins.
            self.snapshots.entry(at).or_insert_with(|| {
                let entries: Vec<_> = state.entries().map(ProducerEntry::to_stored).collect();
                ProducerSnapshot::encode(&entries)
            });
        }
    }

    fn place_of_log(&self, index: usize) -> Option<Location> {
        let image = &self.extents.image;
        let name = segment_name(*self.extents.bases.get(index)?, FileKind::Log)?;
        Some(Location::of_path(image.log_dir(), Some(image.topic_partition().clone()), image.relative(&name)))
    }

    fn place_of_batch(&self, index: usize, header: &BatchHeader) -> Option<Location> {
        let place = self.place_of_log(index)?;
        Some(place.at(header.position, header.size_bytes).offsets(header.base_offset, header.last_offset))
    }

    /// Everything is in: the snapshots, what goes, and what is still wrong.
    pub(super) fn finish(mut self) -> Outcome {
        self.put_snapshots();
        for name in std::mem::take(&mut self.extents.orphans) {
            self.plan.after.remove(&name);
            self.plan.note(&name, PlanReason::Finding(FindingId::IndexWithoutLog));
        }
        let told = self.extents.told.take().unwrap_or_default();
        self.is_complete &= !told.iter().any(|finding| is_unread(finding.id));
        self.findings.extend(told);
        let changed: Vec<_> = self.plan.changes().iter().map(|change| change.name().to_os_string()).collect();
        for name in &changed {
            match self.extents.wrong.remove(name) {
                Some(wrong) => wrong.iter().for_each(|finding| self.plan.note(name, PlanReason::Finding(finding.id))),
                None if self.plan.reasons.contains_key(name) => {}
                None => self.plan.note(name, PlanReason::Rebuilt),
            }
        }
        self.findings.extend(std::mem::take(&mut self.extents.wrong).into_values().flatten());
        Outcome { plan: self.plan, findings: self.findings, is_complete: self.is_complete }
    }

    fn put_snapshots(&mut self) {
        for (offset, bytes) in std::mem::take(&mut self.snapshots) {
            if let Some(name) = snapshot_name(offset) {
                self.plan.after.put_bytes(&name, bytes, self.options.now);
            }
        }
        // Where the log was not read to its end, what was not reached stays as it is.
        if self.is_stopped || self.extents.is_cut || self.extents.bases.is_empty() {
            return;
        }
        let is_at_end = self.due == Some(self.extents.bases.len());
        for (offset, name) in self.extents.doubtful_snapshots() {
            let is_base = self.extents.bases.binary_search(&offset).is_ok() && offset > self.extents.log_start;
            let is_end = is_at_end && offset == self.replayed_to && offset > self.extents.log_start;
            if !is_base && !is_end {
                self.plan.after.remove(&name);
            }
        }
    }
}

/// Whether bytes were not looked at.
fn is_unread(id: FindingId) -> bool {
    matches!(id, FindingId::LogUnreadableRange | FindingId::LimitReached)
}

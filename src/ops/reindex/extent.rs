//! What has to be made anew in one partition, and which segments have to be read for it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use super::options::{Extent, ReindexOptions};
use crate::format::Offset;
use crate::logdir::names::{FileKind, FileName, FileSuffix, LoaderView};
use crate::ops::{Finding, FindingId, PartitionImage, Severity};

/// The name of a segment's file.
pub(super) fn segment_name(base: Offset, kind: FileKind) -> Option<OsString> {
    FileName::Segment { base, kind, suffix: FileSuffix::None }.to_name()
}

/// The name of a producer snapshot.
pub(super) fn snapshot_name(offset: Offset) -> Option<OsString> {
    FileName::Snapshot { offset, suffix: FileSuffix::None }.to_name()
}

/// The work on one partition.
#[derive(Debug)]
pub(super) struct Extents {
    pub(super) image: Arc<PartitionImage>,
    /// The base offset of every segment that has a log, in order.
    pub(super) bases: Vec<Offset>,
    /// Where the log starts.
    pub(super) log_start: Offset,
    /// The segments to read, by their place in `bases`.
    pub(super) scans: BTreeSet<usize>,
    /// Files that are missing or wrong, and what is wrong with them.
    pub(super) wrong: BTreeMap<OsString, Vec<Finding>>,
    /// Indexes without a log, which a start removes.
    pub(super) orphans: Vec<OsString>,
    /// What is wrong and not made good here: damage of the log, names. `None`: nobody has looked yet.
    pub(super) told: Option<Vec<Finding>>,
    /// Whether segments that something depends on are left out, because they follow a damaged one.
    pub(super) is_cut: bool,
    has_wrong_txn_index: bool,
    indexes: Extent,
    snapshots: Extent,
}

impl Extents {
    /// `findings`: what `verify` says of the partition, if it was asked.
    pub(super) fn of(
        image: PartitionImage,
        checkpointed_start: Offset,
        findings: Option<Vec<Finding>>,
        options: &ReindexOptions,
    ) -> Self {
        let bases: Vec<Offset> = image.files().filter_map(|(name, _)| log_base(name)).collect();
        let mut wrong: BTreeMap<OsString, Vec<Finding>> = BTreeMap::new();
        let mut told = findings.is_some().then(Vec::new);
        for finding in findings.into_iter().flatten() {
            let Some(name) = finding.location.path.file_name() else { continue };
            if is_rebuilt_file(name) && is_wrong(&finding) {
                wrong.entry(name.to_os_string()).or_default().push(finding);
            } else if (is_damage(&finding) && log_base(name).is_some()) || is_misnamed(&finding, name) {
                told.get_or_insert_default().push(finding);
            }
        }
        let mut extents = Self {
            log_start: bases.first().copied().unwrap_or_default().max(checkpointed_start),
            orphans: orphans(&image),
            image: Arc::new(image),
            bases,
            scans: BTreeSet::new(),
            has_wrong_txn_index: wrong.keys().any(|name| is_txn_index(name)),
            wrong,
            told,
            is_cut: false,
            indexes: options.indexes,
            snapshots: options.snapshots,
        };
        extents.find_scans();
        extents.cut_at_damage();
        extents
    }

    /// Nothing is made at a damaged segment and behind it. Of the last one its scan says whether more than its end is damaged.
    fn cut_at_damage(&mut self) {
        let damaged = self.told.iter().flatten().filter_map(|finding| {
            let base = log_base(finding.location.path.file_name()?)?;
            self.bases.binary_search(&base).ok()
        });
        let last = self.bases.len().saturating_sub(1);
        if let Some(first) = damaged.filter(|index| *index < last).min() {
            self.is_cut = true;
            self.scans.retain(|index| *index < first);
        }
    }

    fn find_scans(&mut self) {
        if self.is_from_log_alone() {
            self.scans.extend(0..self.bases.len());
            return;
        }
        for (index, base) in self.bases.clone().into_iter().enumerate() {
            for kind in [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TxnIndex] {
                if segment_name(base, kind).is_some_and(|name| self.wrong.contains_key(&name)) {
                    self.scans.insert(index);
                    if kind == FileKind::TxnIndex {
                        self.require_state(index);
                    }
                }
            }
        }
        let snapshots: Vec<Offset> = self.wrong.keys().filter_map(|name| snapshot_offset(name)).collect();
        for offset in snapshots {
            match self.bases.binary_search(&offset) {
                Ok(index) => self.require_state(index),
                Err(index) if index == self.bases.len() => self.require_state(index),
                Err(_) => {}
            }
        }
    }

    /// The state of the producers is needed where the segment at `index` begins, or at the end of the log.
    fn require_state(&mut self, index: usize) {
        let mut at = index;
        while at > 0 && self.bases.get(at).is_none_or(|base| *base > self.log_start && !self.has_seed(*base)) {
            at -= 1;
            self.scans.insert(at);
        }
    }

    /// Whether everything comes from the log, as if there had been no snapshot.
    fn is_from_log_alone(&self) -> bool {
        self.indexes == Extent::All || self.snapshots == Extent::All
    }

    /// Whether a sound snapshot says what the producers were where a segment begins. Where transaction indexes contradict the log,
    /// snapshots may too: only the log itself is believed then, and the one snapshot that tells of what was before it.
    pub(super) fn has_seed(&self, base: Offset) -> bool {
        !self.is_from_log_alone()
            && (base <= self.log_start || !self.has_wrong_txn_index)
            && snapshot_name(base).is_some_and(|name| self.image.has(&name) && !self.wrong.contains_key(&name))
    }

    /// Whether an index is to be made anew.
    pub(super) fn wants_index(&self, name: &OsStr) -> bool {
        self.indexes == Extent::All || self.wrong.contains_key(name)
    }

    /// Whether a snapshot is to be made anew.
    pub(super) fn wants_snapshot(&self, name: &OsStr) -> bool {
        self.snapshots == Extent::All || self.wrong.contains_key(name)
    }

    /// The snapshots that are there and to be made anew, or to go.
    pub(super) fn doubtful_snapshots(&self) -> Vec<(Offset, OsString)> {
        let of_file = |name: &OsStr| Some((snapshot_offset(name)?, name.to_os_string()));
        let snapshots = self.image.files().filter_map(|(name, _)| of_file(name));
        snapshots.filter(|(_, name)| self.wants_snapshot(name)).collect()
    }
}

fn log_base(name: &OsStr) -> Option<Offset> {
    match FileName::parse(name) {
        FileName::Segment { base, kind: FileKind::Log, suffix: FileSuffix::None } => Some(base),
        _ => None,
    }
}

fn snapshot_offset(name: &OsStr) -> Option<Offset> {
    match FileName::parse(name) {
        FileName::Snapshot { offset, suffix: FileSuffix::None } => Some(offset),
        _ => None,
    }
}

fn is_txn_index(name: &OsStr) -> bool {
    matches!(FileName::parse(name), FileName::Segment { kind: FileKind::TxnIndex, suffix: FileSuffix::None, .. })
}

/// A file whose name promises an index or a snapshot of no offset: a start fails over it.
fn is_misnamed(finding: &Finding, name: &OsStr) -> bool {
    let derived = [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TxnIndex, FileKind::Snapshot];
    finding.id == FindingId::SegmentNameInvalid
        && derived.iter().any(|kind| name.as_encoded_bytes().ends_with(kind.extension().as_bytes()))
}

fn is_rebuilt_file(name: &OsStr) -> bool {
    match FileName::parse(name) {
        FileName::Segment { kind, suffix: FileSuffix::None, .. } => kind != FileKind::Log,
        FileName::Snapshot { suffix: FileSuffix::None, .. } => true,
        _ => false,
    }
}

/// What a crash leaves in the active segment is legal and made good at the next start: no reason to write. A file that is not
/// there at all is missing, however little that matters.
fn is_wrong(finding: &Finding) -> bool {
    let is_missing = matches!(
        finding.id,
        FindingId::OffsetIndexMissing
            | FindingId::TimeIndexMissing
            | FindingId::TxnIndexMissing
            | FindingId::SnapshotMissing
    );
    let is_ours = !matches!(finding.id, FindingId::IndexWithoutLog | FindingId::LimitReached);
    is_ours && (is_missing || finding.severity >= Severity::Warning)
}

/// Whether a finding tells of bytes of a log that are no sound batches.
fn is_damage(finding: &Finding) -> bool {
    matches!(
        finding.id,
        FindingId::BatchCrcMismatch
            | FindingId::BatchLengthInvalid
            | FindingId::BatchTornTail
            | FindingId::LogZeroTail
            | FindingId::LogTrailingBytes
            | FindingId::LogUnreadableRange
            | FindingId::LogDamageInterior
            | FindingId::LimitReached
    )
}

/// Indexes whose log is gone. A directory of the log's name is enough for a broker.
fn orphans(image: &PartitionImage) -> Vec<OsString> {
    let is_orphan = |name: &OsStr| match LoaderView::of(name) {
        LoaderView::Index(base) => segment_name(base, FileKind::Log)
            .is_some_and(|log| !image.has(&log) && image.others().iter().all(|other| other.name != log)),
        _ => false,
    };
    image.files().map(|(name, _)| name).filter(|name| is_orphan(name)).map(OsStr::to_os_string).collect()
}

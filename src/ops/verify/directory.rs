//! Everything in a partition directory that is no segment: names, leftovers, small files.

use std::ffi::OsStr;

use super::context::{DirectoryState, Place};
use super::input::PartitionInput;
use super::kraft::{self, KraftSnapshot};
use super::options::Options;
use super::report::{FileReport, FileRole};
use super::scan::unreadable_at;
use super::snapshot::{self, SnapshotFile};
use super::swap::{self, SwapLog};
use crate::format::checkpoint::{EpochEntry, LeaderEpochCheckpoint, PartitionMetadata, QuorumState};
use crate::format::{LeaderEpoch, Offset, Uuid};
use crate::logdir::names::{CheckpointState, FileKind, FileName, FileSuffix, LoaderView, Misnaming};
use crate::ops::coverage::Coverage;
use crate::ops::{Fact, Finding, FindingId, Severity};

/// The largest small file that is read: a snapshot of a million producers has 46 MB.
const MOST_SMALL_BYTES: u64 = 64 * 1024 * 1024;

/// What the small files of a partition directory came to.
#[derive(Debug, Default)]
pub(super) struct DirectoryFacts {
    pub(super) files: Vec<FileReport>,
    pub(super) findings: Vec<Finding>,
    pub(super) snapshots: Vec<SnapshotFile>,
    /// Offsets of all snapshot files, readable or not.
    pub(super) snapshot_offsets: Vec<Offset>,
    /// The epochs of `leader-epoch-checkpoint`, where a broker reads it.
    pub(super) epochs: Option<Vec<EpochEntry>>,
    pub(super) has_epoch_file: bool,
    pub(super) topic_id: Option<Uuid>,
    pub(super) has_metadata_file: bool,
    pub(super) kraft_snapshots: Vec<KraftSnapshot>,
    /// The leader epoch of `quorum-state`, where that is there and can be read.
    pub(super) quorum_epoch: Option<LeaderEpoch>,
    pub(super) has_quorum_state: bool,
    pub(super) swaps: Vec<SwapLog>,
    /// Offsets of segments of which there are files, but no log.
    pub(super) without_log: Vec<Offset>,
}

/// Looks at everything in the directory that is no segment.
pub(super) fn check(partition: &PartitionInput, options: &Options) -> DirectoryFacts {
    let mut facts = DirectoryFacts::default();
    let names = partition.image.names();
    let mut checker = Checker { partition, options, facts: &mut facts };
    for name in &names {
        checker.file(name);
    }
    checker.others();
    let swaps = swap::plan(partition, options, &mut facts.findings);
    facts.swaps = swaps;
    facts
}

struct Checker<'a> {
    partition: &'a PartitionInput,
    options: &'a Options,
    facts: &'a mut DirectoryFacts,
}

impl Checker<'_> {
    fn place(&self, name: &OsStr) -> Place {
        self.partition.place(name)
    }

    fn push(&mut self, finding: Finding) {
        self.facts.findings.push(finding);
    }

    fn skip(&mut self, name: &OsStr, role: FileRole) {
        let size = self.partition.image.size_of(name);
        self.facts.files.push(FileReport::new(&self.place(name), role, size, Coverage::skipped(size)));
    }

    fn file(&mut self, name: &OsStr) {
        match FileName::parse(name) {
            FileName::Segment { kind: FileKind::Log, suffix: FileSuffix::None, .. } => {}
            FileName::Segment { base, suffix: FileSuffix::None, .. } => self.index(name, base),
            FileName::Snapshot { offset, suffix: FileSuffix::None } => self.snapshot(name, offset),
            FileName::Segment { suffix, .. } | FileName::Snapshot { suffix, .. } => self.leftover(name, suffix),
            FileName::InvalidSegmentName { suffix: FileSuffix::None, misnaming, .. } => self.misnamed(name, misnaming),
            FileName::InvalidSegmentName { suffix, .. } => {
                if LoaderView::of(name) == LoaderView::StartFails {
                    self.misnamed(name, Misnaming::NoNumber);
                } else {
                    self.leftover(name, suffix);
                }
            }
            FileName::LeaderEpochCheckpoint => self.leader_epochs(name),
            FileName::PartitionMetadata => self.metadata(name),
            FileName::QuorumState => self.quorum_state(name),
            FileName::KraftCheckpoint { end_offset, state: CheckpointState::Complete, .. } => {
                self.kraft_snapshot(name, end_offset);
            }
            FileName::KraftCheckpoint { .. } => self.leftover(name, FileSuffix::Deleted),
            FileName::InvalidCheckpointName if self.partition.directory == DirectoryState::Metadata => {
                self.misnamed(name, Misnaming::NoNumber);
            }
            FileName::RemoteLogSnapshot => self.skip(name, FileRole::Other),
            FileName::InvalidCheckpointName | FileName::Temporary | FileName::Unknown => self.unknown(name),
        }
    }

    /// An index whose log is gone.
    fn index(&mut self, name: &OsStr, base: Offset) {
        let log = FileName::Segment { base, kind: FileKind::Log, suffix: FileSuffix::None }.to_name();
        if log.is_some_and(|log| self.partition.image.has(&log)) {
            return;
        }
        self.skip(name, FileRole::Leftover);
        self.facts.without_log.push(base);
        let finding = self.place(name).finding(FindingId::IndexWithoutLog);
        let severity = self.index_severity(finding.severity);
        self.push(finding.with_severity(severity));
    }

    fn index_severity(&self, usual: Severity) -> Severity {
        match self.partition.directory {
            DirectoryState::Doomed | DirectoryState::Aside => usual.min(Severity::Info),
            _ => usual,
        }
    }

    fn leftover(&mut self, name: &OsStr, suffix: FileSuffix) {
        // A swap's log is read, and told together with what its completion does.
        if suffix == FileSuffix::Swap {
            return;
        }
        self.skip(name, FileRole::Leftover);
        let id = if suffix == FileSuffix::Cleaned { FindingId::LeftoverCleaned } else { FindingId::LeftoverDeleted };
        let finding = self.place(name).finding(id);
        self.push(finding);
    }

    fn misnamed(&mut self, name: &OsStr, misnaming: Misnaming) {
        self.skip(name, FileRole::Other);
        let finding = match (misnaming, LoaderView::of(name)) {
            (Misnaming::NoNumber, _) => self.place(name).finding(FindingId::SegmentNameInvalid),
            // An index or a snapshot under another number is removed at the next start, or passed over.
            (_, LoaderView::Index(_)) => self.place(name).finding(FindingId::IndexWithoutLog),
            (Misnaming::OtherSpelling(offset), _) => {
                self.place(name).finding(FindingId::SegmentNameInvalid).with_facts(None, Fact::Offset(offset))
            }
            (Misnaming::OtherDigits(offset), _) => self
                .place(name)
                .finding(FindingId::SegmentNameInvalid)
                .with_severity(Severity::Warning)
                .with_facts(None, Fact::Offset(offset)),
        };
        let severity = self.index_severity(finding.severity);
        self.push(finding.with_severity(severity));
    }

    fn unknown(&mut self, name: &OsStr) {
        self.skip(name, FileRole::Other);
        let place = self.place(name);
        let finding = match LoaderView::of(name) {
            LoaderView::StartFails => place.finding(FindingId::SegmentNameInvalid),
            LoaderView::Removed => place.finding(FindingId::LeftoverDeleted),
            LoaderView::Cleaned(_) => place.finding(FindingId::LeftoverCleaned),
            _ => place.finding(FindingId::UnknownFile),
        };
        self.push(finding);
    }

    /// Directories and the like, which a broker passes over.
    fn others(&mut self) {
        for entry in self.partition.image.others() {
            let place = self.partition.place(&entry.name);
            let finding = match FileName::parse(&entry.name) {
                FileName::Segment { base, kind: FileKind::Log, suffix: FileSuffix::None } => {
                    self.facts.without_log.push(base);
                    place.finding(FindingId::SegmentMissingLog)
                }
                _ => place.finding(FindingId::UnknownFile),
            };
            let found = entry.not_a_file.map(|found| Fact::Text(found.to_owned()));
            self.facts.findings.push(finding.with_facts(None, found));
        }
    }

    /// Reads a small file; one that cannot be read is told here.
    fn read(&mut self, name: &OsStr, role: FileRole) -> Option<Vec<u8>> {
        let place = self.place(name);
        let size = self.partition.image.size_of(name);
        match self.partition.image.read_small(name, MOST_SMALL_BYTES) {
            Ok(Some(bytes)) => {
                let size = bytes.len() as u64;
                self.facts.files.push(FileReport::new(&place, role, size, Coverage::checked(size)));
                Some(bytes)
            }
            Ok(None) => None,
            Err(error) => {
                self.push(unreadable_at(&place, size, &error));
                self.facts.files.push(FileReport::new(&place, role, size, Coverage::refused(size)));
                None
            }
        }
    }

    fn snapshot(&mut self, name: &OsStr, offset: Offset) {
        self.facts.snapshot_offsets.push(offset);
        let modified = self.partition.image.file(name).map(|file| file.modified).unwrap_or_default();
        let Some(bytes) = self.read(name, FileRole::Snapshot) else { return };
        match snapshot::read(&bytes, offset, self.place(name), modified, self.partition.directory) {
            Ok(snapshot) => self.facts.snapshots.push(snapshot),
            Err(finding) => self.push(*finding),
        }
    }

    fn leader_epochs(&mut self, name: &OsStr) {
        self.facts.has_epoch_file = true;
        let Some(bytes) = self.read(name, FileRole::LeaderEpochCheckpoint) else { return };
        let checkpoint = LeaderEpochCheckpoint::parse(&bytes);
        let place = self.place(name);
        if let Some(fault) = checkpoint.fault {
            let finding = place.finding(FindingId::LeaderEpochMalformed).with_cause(fault.kind);
            return self.push(self.unless_doomed(finding));
        }
        let content = checkpoint.content;
        if let Some(oddity) = content.oddities().first() {
            use crate::format::checkpoint::EpochOddity::{Negative, NotIncreasing};
            let (Negative { index } | NotIncreasing { index }) = *oddity;
            let found = content.entries.get(index).map(|e| Fact::Pair(i64::from(e.epoch.0), e.start_offset.0));
            // A negative number is read, and then refused.
            let id = match oddity {
                Negative { .. } => FindingId::LeaderEpochMalformed,
                NotIncreasing { .. } => FindingId::LeaderEpochOrder,
            };
            let finding = place.finding(id).with_facts(None, found);
            self.push(self.unless_doomed(finding));
        } else {
            self.facts.epochs = Some(content.entries);
        }
    }

    fn unless_doomed(&self, finding: Finding) -> Finding {
        match self.partition.directory {
            DirectoryState::Doomed => {
                let severity = finding.severity.min(Severity::Warning);
                finding.with_severity(severity)
            }
            _ => finding,
        }
    }

    fn metadata(&mut self, name: &OsStr) {
        self.facts.has_metadata_file = true;
        let Some(bytes) = self.read(name, FileRole::PartitionMetadata) else { return };
        let metadata = PartitionMetadata::parse(&bytes);
        self.facts.topic_id = metadata.content.topic_id;
        let place = self.place(name);
        if let Some(fault) = metadata.fault {
            let finding = place.finding(FindingId::PartitionMetadataMalformed).with_cause(fault.kind);
            self.push(finding);
        } else if metadata.content.version > 0 {
            // Brokers up to 2.8 do not start over it, later ones take it.
            let found = Fact::Number(i64::from(metadata.content.version));
            let finding = place.finding(FindingId::PartitionMetadataMalformed).with_severity(Severity::Warning);
            self.push(finding.with_facts(Fact::Number(0), found));
        }
    }

    fn quorum_state(&mut self, name: &OsStr) {
        self.facts.has_quorum_state = true;
        let Some(bytes) = self.read(name, FileRole::QuorumState) else { return };
        let state = QuorumState::parse(&bytes);
        match state.fault {
            None => self.facts.quorum_epoch = Some(state.content.leader_epoch),
            Some(fault) => {
                let finding = self.place(name).finding(FindingId::QuorumStateMalformed).with_cause(fault.kind);
                self.push(finding);
            }
        }
    }

    fn kraft_snapshot(&mut self, name: &OsStr, end_offset: Offset) {
        let place = self.place(name);
        let opened = self.partition.image.open(name, self.options.io);
        let size = self.partition.image.size_of(name);
        let mut check = kraft::check(opened, &place, size, self.options);
        self.facts.files.push(check.file);
        self.facts.findings.append(&mut check.findings);
        self.facts.kraft_snapshots.push(KraftSnapshot { end_offset, is_complete: check.is_complete });
    }
}

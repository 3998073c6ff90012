//! The files directly in a log dir, and what its checkpoints say of the partitions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::context::Place;
use super::kraft;
use super::options::Options;
use super::partition::PartitionOutcome;
use super::remote_cache;
use super::report::{FileReport, FileRole};
use super::scan::unreadable_at;
use crate::format::Offset;
use crate::format::checkpoint::{MetaProperties, OffsetCheckpoint, OffsetOddity, ReaderException, reader_exception};
use crate::logdir::names::{CheckpointKind, DirName, RootName};
use crate::logdir::{DirEntry, LogDir, SegmentFile, TopicPartition};
use crate::ops::coverage::Coverage;
use crate::ops::{Fact, Finding, FindingId, Severity};

/// What the files of a log dir say.
#[derive(Clone, Debug, Default)]
pub(super) struct RootFacts {
    pub(super) path: PathBuf,
    pub(super) files: Vec<FileReport>,
    pub(super) findings: Vec<Finding>,
    checkpoints: BTreeMap<CheckpointKind, OffsetCheckpoint>,
    /// `meta.properties`, where it can be read.
    pub(super) meta: Option<MetaProperties>,
    /// Whether there is a `meta.properties`, readable or not.
    pub(super) has_meta: bool,
    /// Whether the metadata log lies here.
    pub(super) has_metadata_log: bool,
    /// Whether there are partitions.
    pub(super) has_partitions: bool,
}

impl RootFacts {
    /// The offset of a partition in a checkpoint.
    pub(super) fn offset_of(&self, kind: CheckpointKind, partition: &TopicPartition) -> Option<Offset> {
        self.checkpoints.get(&kind)?.offset_of(partition.topic_str()?, partition.partition())
    }

    /// Whether the node runs KRaft, where the log dir tells. `meta.properties` of version 1 without a directory id is that of the
    /// previews too, which wrote no topic ids.
    pub(super) fn is_kraft(&self) -> Option<bool> {
        match &self.meta {
            Some(meta) if meta.version == 0 => Some(false),
            Some(meta) if meta.directory_id.is_some() => Some(true),
            _ => None,
        }
    }

    /// A place of a file in the log dir, or of the log dir itself.
    pub(super) fn place(&self, name: impl Into<PathBuf>) -> Place {
        Place { log_dir: self.path.clone(), topic_partition: None, path: name.into() }
    }
}

/// Looks at everything in a log dir but its partitions.
pub(super) fn check(log_dir: &LogDir, options: &Options) -> RootFacts {
    let mut facts = RootFacts { path: log_dir.path().to_path_buf(), ..RootFacts::default() };
    for (entry, name) in log_dir.files() {
        file(log_dir, entry, *name, options, &mut facts);
    }
    for member in log_dir.directories() {
        match &member.name {
            DirName::NotAPartition => {
                let finding = facts.place(&member.entry.name).finding(FindingId::StrayDirectory);
                facts.findings.push(finding);
            }
            DirName::RemoteIndexCache => remote_cache::check(log_dir, &member.entry.name, &mut facts),
            DirName::ClusterMetadata(_) => (facts.has_metadata_log, facts.has_partitions) = (true, true),
            _ => facts.has_partitions = true,
        }
    }
    facts
}

/// Reads what a partition's checks need of the log dir around it, without a word about its files.
pub(super) fn surroundings(log_dir: &LogDir) -> RootFacts {
    let mut facts = RootFacts { path: log_dir.path().to_path_buf(), ..RootFacts::default() };
    for kind in CheckpointKind::ALL {
        if let Ok(Some(bytes)) = log_dir.read_checkpoint(kind)
            && let Ok(checkpoint) = OffsetCheckpoint::parse(&bytes).strict()
        {
            facts.checkpoints.insert(kind, checkpoint);
        }
    }
    facts
}

fn file(log_dir: &LogDir, entry: &DirEntry, name: RootName, options: &Options, facts: &mut RootFacts) {
    let place = facts.place(&entry.name);
    let size = entry.size_bytes;
    if let Some(found) = entry.not_a_file {
        let finding = place.finding(FindingId::UnknownFile).with_facts(None, Fact::Text(found.to_owned()));
        facts.findings.push(finding);
        return;
    }
    let role = match name {
        RootName::Checkpoint(_) => FileRole::Checkpoint,
        RootName::MetaProperties => FileRole::MetaProperties,
        RootName::CleanShutdownMarker => FileRole::CleanShutdownMarker,
        RootName::BootstrapCheckpoint => {
            let opened = SegmentFile::open(&log_dir.path().join(&entry.name), options.io);
            let mut check = kraft::check(opened, &place, size, options);
            facts.files.push(check.file);
            facts.findings.append(&mut check.findings);
            return;
        }
        RootName::Lock | RootName::RemoteMetadataOffsets => FileRole::Other,
        RootName::Temporary | RootName::Unknown => {
            facts.findings.push(place.finding(FindingId::UnknownFile));
            facts.files.push(FileReport::new(&place, FileRole::Other, size, Coverage::skipped(size)));
            return;
        }
    };
    match log_dir.read_file(&entry.name) {
        Ok(bytes) => {
            let bytes = bytes.unwrap_or_default();
            let size = bytes.len() as u64;
            facts.files.push(FileReport::new(&place, role, size, Coverage::checked(size)));
            content(name, &bytes, &place, facts);
        }
        Err(error) => {
            facts.files.push(FileReport::new(&place, role, size, Coverage::refused(size)));
            facts.findings.push(unreadable_at(&place, size, &error));
        }
    }
}

fn content(name: RootName, bytes: &[u8], place: &Place, facts: &mut RootFacts) {
    match name {
        RootName::Checkpoint(kind) => checkpoint(kind, bytes, place, facts),
        RootName::MetaProperties => {
            facts.has_meta = true;
            let meta = MetaProperties::parse(bytes);
            match meta.fault {
                None => facts.meta = Some(meta.content),
                Some(fault) => {
                    let finding = place.finding(FindingId::MetaPropertiesMalformed).with_cause(fault.kind);
                    facts.findings.push(finding);
                }
            }
        }
        _ => {}
    }
}

fn checkpoint(kind: CheckpointKind, bytes: &[u8], place: &Place, facts: &mut RootFacts) {
    let checkpoint = OffsetCheckpoint::parse(bytes);
    let usual = match kind {
        // The log dir goes offline.
        CheckpointKind::RecoveryPoint | CheckpointKind::LogStartOffset => Severity::Critical,
        _ => Severity::Error,
    };
    if let Some(fault) = checkpoint.fault {
        let is_number = reader_exception(&fault) == ReaderException::Other;
        // A word for a number only makes the broker begin from 0.
        let severity = if is_number { Severity::Error } else { usual };
        let finding = place.finding(FindingId::CheckpointMalformed).with_severity(severity).with_cause(fault.kind);
        facts.findings.push(finding);
        return;
    }
    if let Some(oddity) = checkpoint.content.oddities().first() {
        let (OffsetOddity::Repeated { line, .. }
        | OffsetOddity::NegativePartition { line }
        | OffsetOddity::NegativeOffset { line }) = *oddity;
        let finding = place.finding(FindingId::CheckpointMalformed).with_severity(Severity::Warning);
        facts.findings.push(finding.with_facts(None, Fact::Text(format!("line {line}"))));
    }
    facts.checkpoints.insert(kind, checkpoint.content);
}

/// Which partitions of a log dir are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Selection {
    /// All.
    #[default]
    All,
    /// Those that were asked for.
    Some,
}

/// What the checkpoints of a log dir say of its partitions. `outcomes` are those that lie in it and are loaded as logs.
pub(super) fn check_checkpoints(
    facts: &RootFacts,
    outcomes: &[&PartitionOutcome],
    selection: Selection,
) -> Vec<Finding> {
    let ends: BTreeMap<&TopicPartition, Offset> =
        outcomes.iter().map(|outcome| (outcome.input.image.topic_partition(), outcome.end_offset)).collect();
    let mut findings = Vec::new();
    for (kind, checkpoint) in &facts.checkpoints {
        for ((topic, partition), offset) in checkpoint.effective() {
            let name = TopicPartition::new(topic, partition);
            let place = Place { topic_partition: Some(name.clone()), ..facts.place(kind.file_name()) };
            match ends.get(&name) {
                None if selection == Selection::All => {
                    findings.push(place.finding(FindingId::CheckpointUnknownPartition));
                }
                Some(end) if offset > *end => findings.push(beyond(*kind, offset, *end, &place)),
                _ => {}
            }
        }
    }
    findings
}

fn beyond(kind: CheckpointKind, offset: Offset, end: Offset, place: &Place) -> Finding {
    let id = match kind {
        CheckpointKind::LogStartOffset => FindingId::LogStartBeyondLogEnd,
        _ => FindingId::CheckpointBeyondLogEnd,
    };
    let mut finding = place.finding(id).with_facts(Fact::Offset(end), Fact::Offset(offset));
    finding.location = finding.location.offsets(offset, offset);
    finding
}

//! The start of a broker over its log dirs, in the order in which it looks at them (`LogManager.loadLogs`).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::identity::{check_identities, holds_metadata_log};
use super::metadata_log::predict_metadata_log;
use super::options::{Compaction, Options, Tiering};
use super::partition::{EveryStart, PartitionStart, PredictError, Predicted, predict_partition};
use super::remote_cache::check_cache;
use super::report::{Fatal, Outcome, PartitionReport, Report, Summary};
use crate::format::Offset;
use crate::format::checkpoint::{OffsetCheckpoint, ReaderException, reader_exception};
use crate::logdir::names::{CheckpointKind, DirName};
use crate::logdir::{LockHolder, LogDir, ReadError, TopicPartition, probe_lock};
use crate::ops::broker::load::Shutdown;
use crate::ops::broker::{FailureKind, Rules};
use crate::ops::{Finding, FindingId, Location, PartitionImage, Progress, Severity};

/// What of a log dir is looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Scope {
    /// All of it.
    Whole,
    /// These partition directories, and what concerns the log dir as a whole.
    Selected(Vec<OsString>),
    /// These partition directories alone, with their entries in marker and checkpoints: what lies around them may be no log dir.
    Partitions(Vec<OsString>),
}

impl Scope {
    fn includes(&self, dir_name: &OsStr) -> bool {
        match self {
            Self::Whole => true,
            Self::Selected(names) | Self::Partitions(names) => names.iter().any(|name| name == dir_name),
        }
    }
}

/// A log dir of a start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StartInput {
    /// The log dir.
    pub log_dir: LogDir,
    /// What of it is looked at.
    pub scope: Scope,
}

/// A path that a broker is told is a log dir, and that is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BrokenLogDir {
    /// Nothing is there: a disk that is not mounted. A broker that has other log dirs does not start.
    Missing(PathBuf),
    /// A file is there: a broker that has other log dirs goes on without it.
    NotADirectory(PathBuf),
}

/// Offsets of a checkpoint by partition.
type Offsets = BTreeMap<(String, i32), Offset>;

/// The log dir's own files, as far as partitions need them.
struct Checkpoints {
    recovery_points: Offsets,
    log_starts: Offsets,
    cleaner: Offsets,
}

struct Start<'a> {
    options: &'a Options,
    rules: Rules,
    progress: &'a dyn Progress,
    fatals: Vec<Fatal>,
    findings: Vec<Finding>,
    unreadable: Vec<ReadError>,
}

/// Predicts the start of a broker over these log dirs. `None` where the user has asked to stop.
pub fn inspect(
    inputs: &[StartInput],
    broken: &[BrokenLogDir],
    options: &Options,
    pool: &rayon::ThreadPool,
    progress: &dyn Progress,
) -> Option<Report> {
    let rules = Rules::of(options.version);
    let mut start =
        Start { options, rules, progress, fatals: Vec::new(), findings: Vec::new(), unreadable: Vec::new() };
    let is_whole = |input: &&StartInput| !matches!(input.scope, Scope::Partitions(_));
    let log_dirs: Vec<LogDir> = inputs.iter().filter(is_whole).map(|input| input.log_dir.clone()).collect();
    start.check_log_dirs(&log_dirs);
    start.check_broken(broken);
    let mut partitions = Vec::new();
    let mut clean_shutdown = !inputs.is_empty();
    for input in inputs {
        let shutdown = start.shutdown_of(&input.log_dir);
        clean_shutdown &= shutdown == Shutdown::Clean;
        let checkpoints = start.read_checkpoints(&input.log_dir);
        let starts = start.partition_starts(input, shutdown, &checkpoints);
        let predicted: Vec<_> = pool.install(|| starts.par_iter().map(|partition| start.predict(partition)).collect());
        for predicted in predicted {
            match predicted {
                Ok((report, failure)) => {
                    if let Some((failure, every_start)) = failure {
                        start.fatals.push(Fatal {
                            kind: failure.kind,
                            log_dir: report.log_dir.clone(),
                            path: Path::new(&report.dir_name).join(&failure.file),
                            reason: failure.reason,
                            every_start: every_start == EveryStart::Fails,
                        });
                    }
                    partitions.push(report);
                }
                Err(PredictError::Read(error)) => start.unreadable.push(error),
                Err(PredictError::Cancelled) => return None,
            }
        }
    }
    let is_vital = |fatal: &Fatal| {
        inputs.len() > 1 && log_dirs.iter().any(|dir| dir.path() == fatal.log_dir && holds_metadata_log(dir))
    };
    for fatal in &mut start.fatals {
        if fatal.kind == FailureKind::LogDirOffline && is_vital(fatal) {
            fatal.kind = FailureKind::StartFails;
        }
    }
    // A failing start outweighs a log dir that is given up; of several the one that comes first.
    let fatal = start.fatals.iter().rev().max_by_key(|fatal| fatal.kind).cloned();
    let summary = summarise(&partitions);
    Some(Report {
        version: options.version,
        is_recorded: start.rules.is_recorded,
        clean_shutdown,
        is_live: inputs.iter().any(|input| probe_lock(input.log_dir.path()) != LockHolder::Nobody),
        fatal,
        partitions,
        findings: start.findings,
        unreadable: start.unreadable,
        summary,
    })
}

fn summarise(partitions: &[PartitionReport]) -> Summary {
    let mut summary = Summary::default();
    for partition in partitions {
        summary.partitions += 1;
        let loses = matches!(partition.outcome, Outcome::Truncated | Outcome::Emptied) || partition.records_lost > 0;
        summary.truncated += u64::from(loses);
        summary.records_lost = summary.records_lost.saturating_add(partition.records_lost);
        summary.bytes_lost = summary.bytes_lost.saturating_add(partition.bytes_lost);
        summary.records_misled = summary.records_misled.saturating_add(partition.records_misled());
    }
    summary
}

impl Start<'_> {
    fn fail(&mut self, kind: FailureKind, log_dir: &LogDir, path: PathBuf, reason: FindingId) {
        let location = Location::of_path(log_dir.path(), None, &path);
        self.findings.push(Finding::new(reason, location).with_severity(Severity::Critical));
        let log_dir = log_dir.path().to_path_buf();
        self.fatals.push(Fatal { kind, log_dir, path, reason, every_start: true });
    }

    fn shutdown_of(&self, log_dir: &LogDir) -> Shutdown {
        let of_marker = if log_dir.has_clean_marker() { Shutdown::Clean } else { Shutdown::Unclean };
        self.options.assume.unwrap_or(of_marker)
    }

    /// What concerns log dirs as a whole: identities, names of directories, partitions that are there twice.
    fn check_log_dirs(&mut self, log_dirs: &[LogDir]) {
        match check_identities(log_dirs, self.options.settings.node_id) {
            Ok(failures) => {
                for failure in failures {
                    if let Some(log_dir) = log_dirs.get(failure.index) {
                        self.fail(failure.kind, log_dir, PathBuf::from("meta.properties"), failure.reason);
                    }
                }
            }
            Err(error) => self.unreadable.push(error),
        }
        let mut seen: BTreeSet<(TopicPartition, bool)> = BTreeSet::new();
        for log_dir in log_dirs {
            for member in log_dir.directories() {
                let path = PathBuf::from(&member.entry.name);
                let key = match &member.name {
                    DirName::NotAPartition => {
                        self.fail(FailureKind::StartFails, log_dir, path, FindingId::StrayDirectory);
                        continue;
                    }
                    DirName::Partition(topic_partition) => (topic_partition.clone(), false),
                    DirName::Future { topic_partition, .. } => (topic_partition.clone(), true),
                    _ => continue,
                };
                if !seen.insert(key) {
                    self.fail(FailureKind::StartFails, log_dir, path, FindingId::StrayDirectory);
                }
            }
        }
        if self.options.settings.tiering == Tiering::On {
            for log_dir in log_dirs {
                self.check_remote_cache(log_dir);
            }
        }
    }

    fn check_broken(&mut self, broken: &[BrokenLogDir]) {
        for broken in broken {
            let (kind, log_dir) = match broken {
                BrokenLogDir::Missing(path) => (FailureKind::StartFails, path),
                BrokenLogDir::NotADirectory(path) => (FailureKind::LogDirOffline, path),
            };
            let reason = FindingId::MetaPropertiesMalformed;
            let location = Location::of_path(log_dir, None, PathBuf::new());
            self.findings.push(Finding::new(reason, location).with_severity(Severity::Critical));
            let log_dir = log_dir.clone();
            self.fatals.push(Fatal { kind, log_dir, path: PathBuf::new(), reason, every_start: true });
        }
    }

    fn check_remote_cache(&mut self, log_dir: &LogDir) {
        let caches = log_dir.directories().iter().filter(|member| member.name == DirName::RemoteIndexCache);
        for member in caches {
            match check_cache(&log_dir.path().join(&member.entry.name)) {
                Ok(None) => {}
                Ok(Some((entry, reason))) => {
                    let path = Path::new(&member.entry.name).join(entry.name);
                    self.fail(FailureKind::StartFails, log_dir, path, reason);
                }
                Err(error) => self.unreadable.push(error),
            }
        }
    }

    fn read_checkpoints(&mut self, log_dir: &LogDir) -> Checkpoints {
        let mut read = |kind| self.read_checkpoint(log_dir, kind);
        let recovery_points = read(CheckpointKind::RecoveryPoint);
        let log_starts = read(CheckpointKind::LogStartOffset);
        let cleaner = read(CheckpointKind::CleanerOffset);
        read(CheckpointKind::HighWatermark);
        Checkpoints { recovery_points, log_starts, cleaner }
    }

    /// A checkpoint's entries; none where a broker reads none.
    fn read_checkpoint(&mut self, log_dir: &LogDir, kind: CheckpointKind) -> Offsets {
        let bytes = match log_dir.read_checkpoint(kind) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Offsets::new(),
            Err(error) => {
                self.unreadable.push(error);
                return Offsets::new();
            }
        };
        let parsed = OffsetCheckpoint::parse(&bytes);
        let path = PathBuf::from(kind.file_name());
        match parsed.fault.as_ref().map(reader_exception) {
            None => {
                let effective = parsed.content.effective();
                effective
                    .into_iter()
                    .map(|((topic, partition), offset)| ((topic.to_owned(), partition), offset))
                    .collect()
            }
            Some(ReaderException::Io) => {
                self.fail(FailureKind::LogDirOffline, log_dir, path, FindingId::CheckpointMalformed);
                Offsets::new()
            }
            // Another exception is caught, and the file taken for empty.
            Some(ReaderException::Other) => {
                let location = Location::of_path(log_dir.path(), None, path);
                let finding = Finding::new(FindingId::CheckpointMalformed, location);
                self.findings.push(finding.with_severity(Severity::Error));
                Offsets::new()
            }
        }
    }

    fn partition_starts(
        &mut self,
        input: &StartInput,
        shutdown: Shutdown,
        checkpoints: &Checkpoints,
    ) -> Vec<PartitionStart> {
        let log_dir = &input.log_dir;
        let mut starts = Vec::new();
        for member in log_dir.directories() {
            let is_meant = input.scope.includes(&member.entry.name);
            // A copy of a partition directory that was named itself may be called anything.
            let has_name = member.name.topic_partition().is_some() || matches!(input.scope, Scope::Partitions(_));
            if !is_meant || !has_name {
                continue;
            }
            let image = match log_dir.open_partition(&member.entry.name) {
                Ok(partition) => PartitionImage::of(&partition),
                Err(error) => {
                    self.unreadable.push(error);
                    continue;
                }
            };
            let topic_partition = image.topic_partition();
            let topic = String::from_utf8_lossy(topic_partition.topic_bytes()).into_owned();
            let key = (topic, topic_partition.partition());
            let offset_of = |offsets: &Offsets| offsets.get(&key).copied();
            starts.push(PartitionStart {
                image,
                name: member.name.clone(),
                shutdown,
                recovery_point: offset_of(&checkpoints.recovery_points).unwrap_or(Offset(0)),
                log_start: offset_of(&checkpoints.log_starts).unwrap_or(Offset(0)),
                cleaned: match offset_of(&checkpoints.cleaner) {
                    Some(offset) if offset > Offset(0) => Compaction::On,
                    _ => Compaction::Off,
                },
            });
        }
        starts
    }

    fn predict(&self, start: &PartitionStart) -> Result<Predicted, PredictError> {
        match start.name {
            DirName::ClusterMetadata(_) => predict_metadata_log(start, self.options, &self.rules, self.progress),
            _ => predict_partition(start, self.options, &self.rules, self.progress),
        }
    }
}

//! What a start does to one partition directory.

use std::ffi::OsStr;
use std::path::PathBuf;

use super::cut::{damage_at, location_of, open_log};
use super::loss::{Accountant, Loss};
use super::metadata_log::finding_of;
use super::options::{Compaction, Options};
use super::report::{LostOffsets, Outcome, PartitionReport, TruncatedAt};
use super::retention_pass;
use crate::format::checkpoint::{PartitionMetadata, ReaderException, reader_exception};
use crate::format::{Offset, Position, Uuid};
use crate::logdir::ReadError;
use crate::logdir::names::{DirName, FileKind, FileName, FileSuffix, stray_dir_name};
use crate::ops::broker::load::{DirectoryRole, LoadEvent, LoadInput, LoadedLog, Shutdown, load_log};
use crate::ops::broker::{BadFileOutcome, FailureKind, LoadStop, Rules, StartFailure, StrayReplicas};
use crate::ops::{Change, Content, Finding, FindingId, Location, PartitionImage, Progress, Severity};

/// The largest `partition.metadata` that is read.
const MOST_TEXT_BYTES: u64 = 1024 * 1024;
/// Stands for the random id in the name of a stray directory.
const STRAY_ID: &str = "00000000000000000000000000000000";
const PARTITION_METADATA: &str = "partition.metadata";

/// What a start knows about a partition directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionStart {
    /// The directory.
    pub image: PartitionImage,
    /// What its name says.
    pub name: DirName,
    /// How the broker before stopped, as the one that starts believes.
    pub shutdown: Shutdown,
    /// From `recovery-point-offset-checkpoint`; 0 where it has no entry.
    pub recovery_point: Offset,
    /// From `log-start-offset-checkpoint`; 0 where it has no entry.
    pub log_start: Offset,
    /// Whether the partition has been cleaned before, as `cleaner-offset-checkpoint` says.
    pub cleaned: Compaction,
}

impl PartitionStart {
    /// What the loader is told.
    pub fn load_input(&self) -> LoadInput {
        let role = if matches!(self.name, DirName::Delete { .. }) { DirectoryRole::Doomed } else { DirectoryRole::Log };
        LoadInput { shutdown: self.shutdown, recovery_point: self.recovery_point, log_start: self.log_start, role }
    }
}

/// A prediction, and the failure that it ends with, if it does.
pub type Predicted = (PartitionReport, Option<(StartFailure, EveryStart)>);

/// Whether a failure meets the next start as well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EveryStart {
    /// It does.
    Fails,
    /// The next start is one after an unclean shutdown, and comes up.
    Recovers,
}

/// Why a partition could not be predicted.
#[derive(Debug)]
pub enum PredictError {
    /// Something could not be read.
    Read(ReadError),
    /// The user asked to stop.
    Cancelled,
}

impl From<ReadError> for PredictError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// Predicts what a start does to a partition directory.
pub fn predict_partition(
    start: &PartitionStart,
    options: &Options,
    rules: &Rules,
    progress: &dyn Progress,
) -> Result<Predicted, PredictError> {
    let loaded = match load(start, start.load_input(), options, rules, progress) {
        Ok(loaded) => loaded,
        Err(LoadStop::Unreadable(error)) => return Err(PredictError::Read(error)),
        Err(LoadStop::Cancelled) => return Err(PredictError::Cancelled),
        Err(LoadStop::Failure(failure)) => {
            let every_start = next_start(start, options, rules, progress)?;
            return Ok(failed(start, failure, every_start));
        }
    };
    predict_loaded(start, loaded, options, rules, None)
}

/// The prediction of a start that fails over this partition.
pub(super) fn failed(start: &PartitionStart, failure: StartFailure, every_start: EveryStart) -> Predicted {
    let mut report = empty_report(start);
    report.outcome = Outcome::Fatal;
    report.findings.push(finding_of(&start.image, &failure));
    finish_reasons(&mut report);
    (report, Some((failure, every_start)))
}

/// The prediction for a log that has been loaded. What lies below `covered` is kept elsewhere.
pub(super) fn predict_loaded(
    start: &PartitionStart,
    loaded: LoadedLog,
    options: &Options,
    rules: &Rules,
    covered: Option<Offset>,
) -> Result<Predicted, PredictError> {
    let mut report = empty_report(start);
    describe(&mut report, start, &loaded);
    if let Some(failure) = fatal_metadata(&start.image, rules)? {
        return Ok(failed(start, failure, EveryStart::Fails));
    }
    if report.outcome == Outcome::Deleted {
        return Ok((report, None));
    }
    if let Some(reason) = is_stray(start, options, rules)? {
        put_aside(&mut report, start, reason, options)?;
        return Ok((report, None));
    }
    let compaction = match (options.settings.compaction, start.cleaned) {
        (Compaction::Off, Compaction::Off) => Compaction::Off,
        _ => Compaction::On,
    };
    let account =
        |covered| Accountant::new(&start.image, compaction, options.io).covered_below(covered).of_load(&loaded);
    let mut loss = account(covered.max(Some(start.log_start)))?;
    // A log start beyond all data was never the log's: what lies below it counts after all.
    if loss.end.is_some_and(|end| end < start.log_start) {
        loss = account(covered)?;
    }
    explain_events(&mut report, start, &loaded, options)?;
    take_loss(&mut report, loss, &loaded);
    report.outcome = outcome_of(&report, &loaded, start);
    // The metadata log goes by snapshots, and stray replicas are left alone.
    if !matches!(start.name, DirName::ClusterMetadata(_) | DirName::Stray { .. }) {
        retention_pass::add(&mut report, &loaded, options, rules)?;
    }
    finish_reasons(&mut report);
    report.image = Some(loaded.image);
    Ok((report, None))
}

pub(super) fn load(
    start: &PartitionStart,
    input: LoadInput,
    options: &Options,
    rules: &Rules,
    progress: &dyn Progress,
) -> Result<LoadedLog, LoadStop> {
    load_log(start.image.clone(), &mut options.environment(rules, progress), input)
}

/// Whether the start after a failed one fails again: it finds no marker.
fn next_start(
    start: &PartitionStart,
    options: &Options,
    rules: &Rules,
    progress: &dyn Progress,
) -> Result<EveryStart, PredictError> {
    if start.shutdown == Shutdown::Unclean {
        return Ok(EveryStart::Fails);
    }
    let input = LoadInput { shutdown: Shutdown::Unclean, ..start.load_input() };
    match load(start, input, options, rules, progress) {
        Ok(_) => Ok(EveryStart::Recovers),
        Err(LoadStop::Failure(_)) => Ok(EveryStart::Fails),
        Err(LoadStop::Unreadable(error)) => Err(PredictError::Read(error)),
        Err(LoadStop::Cancelled) => Err(PredictError::Cancelled),
    }
}

fn empty_report(start: &PartitionStart) -> PartitionReport {
    PartitionReport {
        log_dir: start.image.log_dir().to_path_buf(),
        dir_name: start.image.dir_name().to_os_string(),
        topic_partition: start.image.topic_partition().clone(),
        is_future: matches!(start.name, DirName::Future { .. }),
        outcome: Outcome::Unchanged,
        log_start_offset: start.log_start,
        log_end_offset_before: start.log_start,
        log_end_offset_after: start.log_start,
        truncated_bytes: 0,
        truncated_at: None,
        deleted_segments: Vec::new(),
        deleted_files: Vec::new(),
        rebuilt_files: Vec::new(),
        renamed_files: Vec::new(),
        records_lost: 0,
        bytes_lost: 0,
        lost_offsets: Vec::<LostOffsets>::new(),
        retention_deletes: Vec::new(),
        reasons: Vec::new(),
        findings: Vec::new(),
        image: None,
    }
}

/// Offsets and files after the load.
fn describe(report: &mut PartitionReport, start: &PartitionStart, loaded: &LoadedLog) {
    report.log_start_offset = loaded.log_start_offset;
    report.log_end_offset_after = loaded.log_end_offset;
    report.log_end_offset_before = loaded.log_end_offset;
    match start.name {
        DirName::Delete { .. } => report.outcome = Outcome::Deleted,
        DirName::Stray { .. } => report.outcome = Outcome::Stray,
        _ => {}
    }
    if report.outcome == Outcome::Deleted {
        return;
    }
    for change in start.image.difference(&loaded.image) {
        let path = start.image.relative(change.name());
        match change {
            Change::Remove { .. } => report.deleted_files.push(path),
            Change::Rename { from, .. } => report.renamed_files.push((start.image.relative(&from), path)),
            Change::Create { .. } | Change::Replace { .. } | Change::Truncate { .. } => report.rebuilt_files.push(path),
        }
    }
}

fn fatal_metadata(image: &PartitionImage, rules: &Rules) -> Result<Option<StartFailure>, ReadError> {
    let name = OsStr::new(PARTITION_METADATA);
    let Some(bytes) = image.read_small(name, MOST_TEXT_BYTES)? else { return Ok(None) };
    let parsed = PartitionMetadata::parse(&bytes);
    let is_too_new = parsed.content.version > rules.newest_partition_metadata;
    let exception = match &parsed.fault {
        Some(fault) => reader_exception(fault),
        None if is_too_new => ReaderException::Io,
        None => return Ok(None),
    };
    let kind = match (exception, rules.bad_partition_metadata) {
        (ReaderException::Io, BadFileOutcome::LogDirOffline) => FailureKind::LogDirOffline,
        _ => FailureKind::StartFails,
    };
    let reason = FindingId::PartitionMetadataMalformed;
    Ok(Some(StartFailure { kind, reason, file: name.to_os_string(), position: None }))
}

/// Why the broker puts a replica aside: its topic id is not the cluster's.
fn is_stray(start: &PartitionStart, options: &Options, rules: &Rules) -> Result<Option<FindingId>, ReadError> {
    let is_candidate = matches!(start.name, DirName::Partition(_) | DirName::Future { .. });
    if !is_candidate || options.topic_ids.is_empty() || rules.stray_replicas == StrayReplicas::Served {
        return Ok(None);
    }
    let topic = start.image.topic_partition();
    let expected: Option<Uuid> =
        std::str::from_utf8(topic.topic_bytes()).ok().and_then(|topic| options.topic_ids.get(topic)).copied();
    let bytes = start.image.read_small(OsStr::new(PARTITION_METADATA), MOST_TEXT_BYTES)?;
    let found = bytes.and_then(|bytes| PartitionMetadata::parse(&bytes).content.topic_id);
    Ok(match found {
        None => Some(FindingId::PartitionMetadataMissing),
        Some(found) if Some(found) != expected => Some(FindingId::TopicIdConflict),
        Some(_) => None,
    })
}

fn put_aside(
    report: &mut PartitionReport,
    start: &PartitionStart,
    reason: FindingId,
    options: &Options,
) -> Result<(), ReadError> {
    let loss = Accountant::new(&start.image, Compaction::Off, options.io).of_all()?;
    report.outcome = Outcome::Stray;
    (report.deleted_files, report.rebuilt_files) = (Vec::new(), Vec::new());
    let stray = stray_dir_name(start.image.topic_partition(), OsStr::new(STRAY_ID));
    report.renamed_files = vec![(PathBuf::from(start.image.dir_name()), PathBuf::from(stray))];
    report.records_lost = loss.records;
    report.lost_offsets = loss.offsets;
    report.log_end_offset_before = loss.end.unwrap_or(report.log_end_offset_after);
    let location = location_of(&start.image, OsStr::new(PARTITION_METADATA));
    report.findings.push(Finding::new(reason, location).with_severity(Severity::Critical));
    finish_reasons(report);
    Ok(())
}

/// What the events of a load say is wrong.
fn explain_events(
    report: &mut PartitionReport,
    start: &PartitionStart,
    loaded: &LoadedLog,
    options: &Options,
) -> Result<(), ReadError> {
    for event in &loaded.events {
        let finding = match event {
            LoadEvent::Recovered { base, truncated_bytes } if *truncated_bytes > 0 => {
                explain_cut(report, start, loaded, (*base, *truncated_bytes), options)?
            }
            LoadEvent::Emptied { base, .. } => of_log(start, *base, FindingId::BatchOffsetRegression),
            LoadEvent::Split { base, .. } => of_log(start, *base, FindingId::BatchOffsetOverflow),
            LoadEvent::AllSegmentsDeleted { bases, .. } => {
                let base = bases.first().copied().unwrap_or(start.log_start);
                of_log(start, base, FindingId::LogStartBeyondLogEnd)
            }
            LoadEvent::IndexMissing { base, reason } => {
                let kind =
                    if *reason == FindingId::OffsetIndexMissing { FileKind::OffsetIndex } else { FileKind::TxnIndex };
                Finding::new(*reason, location_of(&start.image, &file_name(*base, kind)))
            }
            LoadEvent::Recovered { .. } | LoadEvent::LaterSegmentsDeleted { .. } | LoadEvent::Created { .. } => {
                continue;
            }
        };
        report.findings.push(finding);
    }
    for (name, _) in start.image.files() {
        let id = match FileName::parse(name).suffix() {
            FileSuffix::Cleaned => FindingId::LeftoverCleaned,
            FileSuffix::Swap => FindingId::LeftoverSwap,
            FileSuffix::Deleted => FindingId::LeftoverDeleted,
            FileSuffix::None => match FileName::parse(name) {
                FileName::Segment { base, kind, .. }
                    if kind.is_index()
                        && !start.image.has(&file_name(base, FileKind::Log))
                        && !loaded.image.has(name) =>
                {
                    FindingId::IndexWithoutLog
                }
                FileName::InvalidSegmentName { .. } => FindingId::SegmentNameInvalid,
                _ => continue,
            },
        };
        report.findings.push(Finding::new(id, location_of(&start.image, name)));
    }
    Ok(())
}

fn explain_cut(
    report: &mut PartitionReport,
    start: &PartitionStart,
    loaded: &LoadedLog,
    (base, truncated_bytes): (Offset, u64),
    options: &Options,
) -> Result<Finding, ReadError> {
    // After a swap the bytes stand under another name on the disk.
    let name = file_name(base, FileKind::Log);
    let on_disk = match loaded.image.file(&name).map(|file| &file.content) {
        Some(Content::OnDisk { file, .. }) => file.clone(),
        _ => name.clone(),
    };
    if !start.image.has(&on_disk) {
        return Ok(of_log(start, base, FindingId::LogDamageInterior));
    }
    let log = open_log(&start.image, &on_disk, options.io)?;
    let position = Position(log.size().saturating_sub(truncated_bytes));
    let location = location_of(&start.image, &on_disk);
    report.truncated_at.get_or_insert(TruncatedAt { path: location.path.clone(), position });
    Ok(damage_at(&log, base, position, location, FindingId::LogDamageInterior))
}

fn of_log(start: &PartitionStart, base: Offset, id: FindingId) -> Finding {
    Finding::new(id, location_of(&start.image, &file_name(base, FileKind::Log)))
}

fn file_name(base: Offset, kind: FileKind) -> std::ffi::OsString {
    FileName::Segment { base, kind, suffix: FileSuffix::None }.to_name().unwrap_or_default()
}

fn take_loss(report: &mut PartitionReport, loss: Loss, loaded: &LoadedLog) {
    let all_deleted = loaded.events.iter().find_map(|event| match event {
        LoadEvent::AllSegmentsDeleted { log_end, .. } => Some(*log_end),
        _ => None,
    });
    let kept_end = all_deleted.unwrap_or(loaded.log_end_offset);
    report.log_end_offset_before = loss.end.map_or(kept_end, |end| end.max(kept_end));
    report.truncated_bytes = loss.truncated_bytes;
    report.deleted_segments = loss.deleted_segments;
    report.records_lost = loss.records;
    report.bytes_lost = loss.bytes;
    report.lost_offsets = loss.offsets;
    report.findings.extend(loss.findings);
}

fn outcome_of(report: &PartitionReport, loaded: &LoadedLog, start: &PartitionStart) -> Outcome {
    let is_cut = report.truncated_bytes > 0 || !report.deleted_segments.is_empty() || report.records_lost > 0;
    let has_changes = !report.deleted_files.is_empty()
        || !report.rebuilt_files.is_empty()
        || !report.renamed_files.is_empty()
        || loaded.events.iter().any(|event| matches!(event, LoadEvent::Recovered { .. }));
    let is_empty = loaded.log_end_offset <= loaded.log_start_offset;
    match (start.name.clone(), is_cut) {
        (DirName::Stray { .. }, _) => Outcome::Stray,
        (_, true) if is_empty && report.records_lost > 0 => Outcome::Emptied,
        (_, true) if report.truncated_bytes > 0 && is_split_only(report, loaded) => Outcome::Recovered,
        (_, true) => Outcome::Truncated,
        (_, false) if has_changes => Outcome::Recovered,
        (_, false) => Outcome::Unchanged,
    }
}

/// Whether all that a log file has lost is in the pieces of its split.
fn is_split_only(report: &PartitionReport, loaded: &LoadedLog) -> bool {
    report.records_lost == 0
        && report.bytes_lost == 0
        && report.deleted_segments.is_empty()
        && loaded.events.iter().any(|event| matches!(event, LoadEvent::Split { .. }))
}

/// Names each reason once, and sees to it that a loss is a critical finding.
pub(super) fn finish_reasons(report: &mut PartitionReport) {
    if report.records_lost > 0 && !report.findings.iter().any(|finding| finding.severity == Severity::Critical) {
        if let Some(finding) = report.findings.first_mut() {
            finding.severity = Severity::Critical;
        } else {
            let partition = Some(report.topic_partition.clone());
            let location = Location::of_path(&report.log_dir, partition, &report.dir_name);
            let finding = Finding::new(FindingId::LogDamageInterior, location).with_severity(Severity::Critical);
            report.findings.push(finding);
        }
    }
    report.findings.sort_by(|a, b| (&a.location, a.id).cmp(&(&b.location, b.id)));
    report.findings.dedup();
    report.reasons = report.findings.iter().map(|finding| finding.id).collect();
    report.reasons.sort_unstable();
    report.reasons.dedup();
}

//! All partitions of a rebuilding, on all workers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use rayon::ThreadPool;

use super::extent::{Extents, segment_name};
use super::fold::{Outcome, PartitionFold};
use super::options::ReindexOptions;
use super::scan::{self, ScanJob, Segment, SegmentMessage};
use crate::format::Offset;
use crate::format::checkpoint::OffsetCheckpoint;
use crate::logdir::names::{CheckpointKind, FileKind, FileName, FileSuffix};
use crate::logdir::{LogDir, ReadError, TopicPartition};
use crate::ops::broker::Rules;
use crate::ops::parallel::in_order;
use crate::ops::plan::{Plan, PlanInput};
use crate::ops::verify::{self, VerifyError};
use crate::ops::{Finding, PartitionImage, Progress};

/// Files of an interrupted swap or cleaning: what the segments are is not settled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leftovers {
    /// The partition.
    pub topic_partition: TopicPartition,
    /// One of them.
    pub file: OsString,
}

/// Why there is no plan.
#[derive(Debug)]
pub enum ReindexError {
    /// A directory could not be listed, or a checkpoint not be read.
    Read(ReadError),
    /// A partition is not in a state to be touched.
    Refused(Leftovers),
    /// The user asked to stop.
    Cancelled,
}

impl From<ReadError> for ReindexError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl From<VerifyError> for ReindexError {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Read(error) => Self::Read(error),
            VerifyError::Cancelled => Self::Cancelled,
        }
    }
}

/// A partition, and what its log dir says of it.
struct Start {
    input: verify::PartitionInput,
    log_start: Offset,
}

/// Plans the rebuilding of what is missing or wrong, or of everything.
pub fn plan(
    inputs: &[PlanInput],
    options: &ReindexOptions,
    pool: &ThreadPool,
    progress: &dyn Progress,
) -> Result<Plan, ReindexError> {
    let mut starts = Vec::new();
    for input in inputs {
        starts.extend(read_input(input)?);
    }
    let mut findings =
        if options.rebuilds_everything() { None } else { Some(judge(&starts, options, pool, progress)?) };
    let extents = starts.into_iter().map(|start| {
        let key = (start.input.image.log_dir().to_path_buf(), start.input.image.dir_name().to_os_string());
        let found = findings.as_mut().map(|findings| findings.remove(&key).unwrap_or_default());
        Extents::of(start.input.image, start.log_start, found, options)
    });
    let outcomes = rebuild(extents.collect(), options, pool, progress)?;
    let mut plan = Plan {
        version: options.version,
        is_recorded: Rules::of(options.version).is_recorded,
        partitions: Vec::new(),
        checkpoints: Vec::new(),
        findings: Vec::new(),
        is_complete: true,
    };
    for outcome in outcomes {
        plan.is_complete &= outcome.is_complete;
        plan.findings.extend(outcome.findings);
        plan.partitions.push(outcome.plan);
    }
    plan.findings.sort_by(|a, b| (&a.location, a.id).cmp(&(&b.location, b.id)));
    Ok(plan)
}

fn read_input(input: &PlanInput) -> Result<Vec<Start>, ReindexError> {
    let log_dir = &input.log_dir;
    let log_starts = read_offsets(log_dir, CheckpointKind::LogStartOffset)?;
    let cleaned = read_offsets(log_dir, CheckpointKind::CleanerOffset)?;
    let mut starts = Vec::new();
    for name in &input.partitions {
        let partition = log_dir.open_partition(name)?;
        let image = PartitionImage::of(&partition);
        refuse_leftovers(&image)?;
        let key = key_of(image.topic_partition());
        let log_start = log_starts.get(&key).copied();
        let shutdown = if log_dir.has_clean_marker() { verify::Shutdown::Clean } else { verify::Shutdown::Unclean };
        let input = verify::PartitionInput {
            directory: verify::PartitionInput::directory_of(name),
            image,
            shutdown,
            is_cleaned: cleaned.contains_key(&key),
            log_start_offset: log_start,
            known_end_offset: None,
        };
        starts.push(Start { input, log_start: log_start.unwrap_or_default() });
    }
    Ok(starts)
}

fn refuse_leftovers(image: &PartitionImage) -> Result<(), ReindexError> {
    let is_leftover = |suffix| matches!(suffix, FileSuffix::Swap | FileSuffix::Cleaned);
    match image.files().find(|(name, _)| is_leftover(FileName::parse(name).suffix())) {
        None => Ok(()),
        Some((name, _)) => {
            let topic_partition = image.topic_partition().clone();
            Err(ReindexError::Refused(Leftovers { topic_partition, file: name.to_os_string() }))
        }
    }
}

type Key = (String, i32);

fn key_of(topic_partition: &TopicPartition) -> Key {
    (String::from_utf8_lossy(topic_partition.topic_bytes()).into_owned(), topic_partition.partition())
}

fn read_offsets(log_dir: &LogDir, kind: CheckpointKind) -> Result<BTreeMap<Key, Offset>, ReadError> {
    let bytes = log_dir.read_checkpoint(kind)?.unwrap_or_default();
    let checkpoint = OffsetCheckpoint::parse(&bytes).content;
    let effective = checkpoint.effective();
    Ok(effective.into_iter().map(|((topic, partition), offset)| ((topic.to_owned(), partition), offset)).collect())
}

/// What is wrong, by log dir and directory. Records are not looked into: no index depends on them.
fn judge(
    starts: &[Start],
    options: &ReindexOptions,
    pool: &ThreadPool,
    progress: &dyn Progress,
) -> Result<BTreeMap<(PathBuf, OsString), Vec<Finding>>, ReindexError> {
    let inputs = starts.iter().map(|start| start.input.clone()).collect();
    let level = verify::Level::Crc;
    let options = verify::Options { level, io: options.io, ..verify::Options::default() };
    let report = verify::inspect_images(inputs, &options, pool, progress)?;
    let mut by_directory: BTreeMap<_, Vec<Finding>> = BTreeMap::new();
    for finding in report.findings {
        let directory = finding.location.path.iter().next().unwrap_or_default().to_os_string();
        by_directory.entry((finding.location.log_dir.clone(), directory)).or_default().push(finding);
    }
    Ok(by_directory)
}

enum Job {
    Partition(Box<Extents>),
    Scan(ScanJob),
}

enum Message {
    Partition(Box<Extents>),
    Segment(SegmentMessage),
}

fn rebuild(
    partitions: Vec<Extents>,
    options: &ReindexOptions,
    pool: &ThreadPool,
    progress: &dyn Progress,
) -> Result<Vec<Outcome>, ReindexError> {
    let jobs = partitions.into_iter().flat_map(|extents| {
        let scans = scans_of(&extents, options, progress);
        std::iter::once(Job::Partition(Box::new(extents))).chain(scans.into_iter().map(Job::Scan))
    });
    let work = |job: Job, send: &mut dyn FnMut(Message)| match job {
        _ if progress.is_cancelled() => {}
        Job::Partition(extents) => send(Message::Partition(extents)),
        Job::Scan(job) => scan::run(job, progress, &mut |message| send(Message::Segment(message))),
    };
    let mut outcomes = Vec::new();
    let mut current: Option<PartitionFold> = None;
    in_order(pool, jobs, &work, |message| match message {
        Message::Partition(extents) => {
            outcomes.extend(current.take().map(PartitionFold::finish));
            current = Some(PartitionFold::new(*extents, options));
        }
        Message::Segment(message) => {
            if let Some(fold) = &mut current {
                fold.take(message, progress);
            }
        }
    });
    outcomes.extend(current.take().map(PartitionFold::finish));
    if progress.is_cancelled() { Err(ReindexError::Cancelled) } else { Ok(outcomes) }
}

fn scans_of(extents: &Extents, options: &ReindexOptions, progress: &dyn Progress) -> Vec<ScanJob> {
    let segment = |index: &usize| {
        let base = *extents.bases.get(*index)?;
        let log_name = segment_name(base, FileKind::Log)?;
        progress.expect(extents.image.size_of(&log_name));
        let image = Arc::clone(&extents.image);
        Some(Segment { image, index: *index, base, log_name, settings: options.index, io: options.io })
    };
    let segments = extents.scans.iter().filter_map(segment);
    segments.flat_map(|segment| scan::jobs_of(segment, options.part_bytes)).collect()
}

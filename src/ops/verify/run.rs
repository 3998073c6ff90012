//! The verification as a whole: what is asked for, in order, on all workers.

use std::path::Path;
use std::sync::Arc;

use rayon::ThreadPool;

use super::across;
use super::context::{DirectoryState, Shutdown};
use super::directory::{self, DirectoryFacts};
use super::input::PartitionInput;
use super::options::Options;
use super::partition::{PartitionFold, PartitionOutcome};
use super::report::Report;
use super::root::{self, RootFacts, Selection};
use super::scan::{self, ScanJob, SegmentMessage};
use super::single;
use crate::logdir::names::CheckpointKind;
use crate::logdir::{Input, LockHolder, LogDir, PartitionDir, ReadError, TopicPartition, probe_lock};
use crate::ops::parallel::in_order;
use crate::ops::{Finding, PartitionImage, Progress};

/// Why a verification ended without a report.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// A directory could not be listed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The user asked to stop.
    #[error("interrupted")]
    Cancelled,
}

/// Verifies what the inputs name: log dirs with those of their partitions that `is_wanted` says, partition directories, files.
/// Several log dirs count as those of one broker.
pub fn inspect(
    inputs: &[Input],
    is_wanted: &dyn Fn(&TopicPartition) -> bool,
    options: &Options,
    pool: &ThreadPool,
    progress: &dyn Progress,
) -> Result<Report, VerifyError> {
    let mut plan = Plan::default();
    for input in inputs {
        match input {
            Input::LogDir(log_dir) => plan.log_dir(log_dir, is_wanted, options),
            Input::Partition(partition) => plan.partition(partition),
            Input::File(file) => plan.single.push(file.clone()),
        }
    }
    let single: Vec<_> = plan.single.iter().map(|file| single::check(file, options, pool, progress)).collect();
    let outcomes = verify_partitions(plan.partitions, options, pool, progress)?;
    let mut files = Vec::new();
    let mut findings: Vec<Finding> = plan.findings;
    for root in &mut plan.roots {
        files.append(&mut root.files);
        findings.append(&mut root.findings);
    }
    for root in &plan.roots {
        let here: Vec<_> = outcomes.iter().filter(|outcome| is_of(root, outcome)).collect();
        findings.extend(root::check_checkpoints(root, &here, plan.selection));
    }
    findings.extend(across::check_roots(&plan.roots));
    findings.extend(across::check_partitions(&outcomes, &plan.roots));
    let partitions = outcomes.len() as u64;
    for outcome in outcomes {
        files.extend(outcome.files);
        findings.extend(outcome.findings);
    }
    for (file, found) in single {
        files.push(file);
        findings.extend(found);
    }
    Ok(Report::of(files, findings, partitions, plan.is_live))
}

fn is_of(root: &RootFacts, outcome: &PartitionOutcome) -> bool {
    let is_loaded = matches!(outcome.input.directory, DirectoryState::Live | DirectoryState::Metadata);
    is_loaded && outcome.input.image.log_dir() == root.path
}

/// Verifies partitions as they will be: what a plan would make of them. The findings are those of the directories alone.
pub fn inspect_images(
    images: Vec<PartitionInput>,
    options: &Options,
    pool: &ThreadPool,
    progress: &dyn Progress,
) -> Result<Report, VerifyError> {
    let images = images.into_iter().map(Arc::new).collect();
    let outcomes = verify_partitions(images, options, pool, progress)?;
    let partitions = outcomes.len() as u64;
    let (mut files, mut findings) = (Vec::new(), Vec::new());
    for outcome in outcomes {
        files.extend(outcome.files);
        findings.extend(outcome.findings);
    }
    Ok(Report::of(files, findings, partitions, false))
}

/// What is to be looked at.
#[derive(Default)]
struct Plan {
    partitions: Vec<Arc<PartitionInput>>,
    roots: Vec<RootFacts>,
    single: Vec<crate::logdir::SingleFile>,
    findings: Vec<Finding>,
    is_live: bool,
    selection: Selection,
}

impl Plan {
    fn log_dir(&mut self, log_dir: &LogDir, is_wanted: &dyn Fn(&TopicPartition) -> bool, options: &Options) {
        let facts = root::check(log_dir, options);
        self.is_live |= is_held(log_dir.path());
        for member in log_dir.directories() {
            let Some(partition) = member.name.topic_partition() else { continue };
            if !is_wanted(partition) {
                self.selection = Selection::Some;
                continue;
            }
            match log_dir.open_partition(&member.entry.name) {
                Ok(partition) => self.add(&partition, log_dir, &facts),
                Err(error) => {
                    let place = facts.place(&member.entry.name);
                    self.findings.push(scan::unreadable_at(&place, 0, &error));
                }
            }
        }
        self.roots.push(facts);
    }

    fn partition(&mut self, partition: &PartitionDir) {
        self.is_live |= is_held(partition.log_dir());
        match LogDir::open(partition.log_dir()) {
            Ok(log_dir) => self.add(partition, &log_dir, &root::surroundings(&log_dir)),
            Err(_) => self.partitions.push(Arc::new(input_of(partition, Shutdown::Unclean, &RootFacts::default()))),
        }
    }

    fn add(&mut self, partition: &PartitionDir, log_dir: &LogDir, facts: &RootFacts) {
        let shutdown = if log_dir.has_clean_marker() { Shutdown::Clean } else { Shutdown::Unclean };
        self.partitions.push(Arc::new(input_of(partition, shutdown, facts)));
    }
}

fn is_held(log_dir: &Path) -> bool {
    probe_lock(log_dir) != LockHolder::Nobody
}

fn input_of(partition: &PartitionDir, shutdown: Shutdown, facts: &RootFacts) -> PartitionInput {
    let name = partition.topic_partition();
    PartitionInput {
        image: PartitionImage::of(partition),
        directory: PartitionInput::directory_of(partition.dir_name()),
        shutdown,
        is_cleaned: facts.offset_of(CheckpointKind::CleanerOffset, name).is_some(),
        log_start_offset: facts.offset_of(CheckpointKind::LogStartOffset, name),
        known_end_offset: facts
            .offset_of(CheckpointKind::RecoveryPoint, name)
            .max(facts.offset_of(CheckpointKind::HighWatermark, name)),
    }
}

enum Job {
    Directory(Arc<PartitionInput>),
    Scan(Box<ScanJob>),
}

enum Message {
    Directory(Arc<PartitionInput>, Box<DirectoryFacts>),
    Segment(SegmentMessage),
}

/// Consecutive jobs that one worker does at a time: what small files cost is mostly the handing over.
struct Bundle {
    jobs: Vec<Job>,
    bytes: u64,
}

impl Bundle {
    /// The jobs in bundles, in order. A large job is one by itself.
    fn of(jobs: impl Iterator<Item = (Job, u64)>) -> impl Iterator<Item = Self> {
        let mut jobs = jobs.peekable();
        std::iter::from_fn(move || {
            let (first, bytes) = jobs.next()?;
            let mut bundle = Self { jobs: vec![first], bytes };
            while let Some((job, bytes)) = jobs.next_if(|(_, bytes)| bundle.has_room_for(*bytes)) {
                bundle.jobs.push(job);
                bundle.bytes = bundle.bytes.saturating_add(bytes);
            }
            Some(bundle)
        })
    }

    fn has_room_for(&self, bytes: u64) -> bool {
        self.jobs.len() < MOST_BUNDLED && self.bytes.saturating_add(bytes) <= MOST_BUNDLED_BYTES
    }
}

/// Jobs of a bundle.
const MOST_BUNDLED: usize = 64;
/// Bytes of the logs of a bundle with more than one job.
const MOST_BUNDLED_BYTES: u64 = 512 << 10;

fn verify_partitions(
    partitions: Vec<Arc<PartitionInput>>,
    options: &Options,
    pool: &ThreadPool,
    progress: &dyn Progress,
) -> Result<Vec<PartitionOutcome>, VerifyError> {
    for partition in &partitions {
        progress.expect(partition.log_bytes());
    }
    let jobs = partitions.into_iter().flat_map(|partition| {
        let segments = partition.segments();
        let scans = segments.into_iter().flat_map(|segment| {
            let bytes = segment.partition.image.size_of(&segment.name);
            scan::jobs_of(segment, options.stretch_bytes).into_iter().map(move |job| (Job::Scan(Box::new(job)), bytes))
        });
        std::iter::once((Job::Directory(partition), 0)).chain(scans.collect::<Vec<_>>())
    });
    let run_job = |job: Job, send: &mut dyn FnMut(Message)| match job {
        _ if progress.is_cancelled() => {}
        Job::Directory(partition) => {
            let facts = directory::check(&partition, options);
            send(Message::Directory(partition, Box::new(facts)));
        }
        Job::Scan(job) => scan::run(*job, options, progress, &mut |message| send(Message::Segment(message))),
    };
    let work = |bundle: Bundle, send: &mut dyn FnMut(Vec<Message>)| {
        if bundle.bytes > MOST_BUNDLED_BYTES {
            bundle.jobs.into_iter().for_each(|job| run_job(job, &mut |message| send(vec![message])));
            return;
        }
        let mut messages = Vec::new();
        bundle.jobs.into_iter().for_each(|job| run_job(job, &mut |message| messages.push(message)));
        send(messages);
    };
    let mut outcomes = Vec::new();
    let mut current: Option<PartitionFold> = None;
    let mut take = |message| match message {
        Message::Directory(partition, facts) => {
            outcomes.extend(current.take().map(PartitionFold::finish));
            current = Some(PartitionFold::new(partition, *facts));
        }
        Message::Segment(message) => {
            if let Some(fold) = &mut current {
                fold.take(message, options);
            }
        }
    };
    in_order(pool, Bundle::of(jobs), &work, |messages| messages.into_iter().for_each(&mut take));
    outcomes.extend(current.take().map(PartitionFold::finish));
    if progress.is_cancelled() { Err(VerifyError::Cancelled) } else { Ok(outcomes) }
}

//! One partition: its files, its log, what its log dir's checkpoints say of it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::StatOptions;
use super::cleaning::{Bounds, SegmentSize, assess};
use super::inspect::empty_content;
use super::log::LogFigures;
use super::measure::{Measured, measure_log};
use super::report::{FileFigures, LogSummary, PartitionStat};
use crate::format::checkpoint::OffsetCheckpoint;
use crate::format::producer_snapshot::ProducerSnapshot;
use crate::format::{Offset, len_u64};
use crate::logdir::names::CheckpointKind;
use crate::logdir::{DirEntry, IoMode, PartitionDir, Segment, SegmentFile, TopicPartition};
use crate::ops::{Finding, FindingId, Location, Progress, RecordReader};

/// Larger index files are not searched for their unused end.
const MOST_INDEX_BYTES: u64 = 64 * 1024 * 1024;
const MOST_CHECKPOINT_BYTES: u64 = 256 * 1024 * 1024;
const MOST_SNAPSHOT_BYTES: u64 = 64 * 1024 * 1024;

/// What is measured as one partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StatTarget {
    /// A partition directory.
    Partition(PartitionDir),
    /// One log file that was named itself.
    LogFile {
        /// The file.
        path: PathBuf,
        /// The partition that the directory around it names, if it does.
        topic_partition: Option<TopicPartition>,
        /// The offset in its name.
        base_offset: Offset,
    },
}

impl StatTarget {
    /// The log dir that it is reported under.
    pub(super) fn log_dir(&self) -> &Path {
        match self {
            Self::Partition(partition) => partition.log_dir(),
            Self::LogFile { path, .. } => path,
        }
    }

    /// The partition, where it is known.
    pub fn topic_partition(&self) -> Option<&TopicPartition> {
        match self {
            Self::Partition(partition) => Some(partition.topic_partition()),
            Self::LogFile { topic_partition, .. } => topic_partition.as_ref(),
        }
    }

    /// Whether it is a single file.
    pub fn is_file(&self) -> bool {
        matches!(self, Self::LogFile { .. })
    }

    /// Bytes of log that will be looked at.
    pub fn log_bytes(&self) -> u64 {
        match self {
            Self::Partition(partition) => {
                partition.segments().iter().filter_map(|segment| segment.log.as_ref()).map(|log| log.size_bytes).sum()
            }
            Self::LogFile { path, .. } => std::fs::metadata(path).map_or(0, |metadata| metadata.len()),
        }
    }
}

/// The checkpoints of a log dir that say something of a partition. One that is missing or malformed says nothing.
#[derive(Clone, Default, Debug)]
pub(super) struct Checkpoints {
    cleaner: Option<OffsetCheckpoint>,
    log_start: Option<OffsetCheckpoint>,
    high_watermark: Option<OffsetCheckpoint>,
}

impl Checkpoints {
    /// Those of the log dir at `path`.
    pub(super) fn read(path: &Path) -> Self {
        let read = |kind: CheckpointKind| {
            let file = SegmentFile::open(&path.join(kind.file_name()), IoMode::Pread).ok()?;
            OffsetCheckpoint::parse(&file.read_whole(MOST_CHECKPOINT_BYTES).ok()?).strict().ok()
        };
        Self {
            cleaner: read(CheckpointKind::CleanerOffset),
            log_start: read(CheckpointKind::LogStartOffset),
            high_watermark: read(CheckpointKind::HighWatermark),
        }
    }
}

fn offset_of(checkpoint: Option<&OffsetCheckpoint>, topic_partition: &TopicPartition) -> Option<Offset> {
    checkpoint?.offset_of(topic_partition.topic_str()?, topic_partition.partition())
}

/// A partition measured, its figures still open for sums.
pub(super) struct MeasuredPartition {
    pub(super) stat: PartitionStat,
    pub(super) figures: LogFigures,
    pub(super) findings: Vec<Finding>,
    pub(super) is_incomplete: bool,
}

/// Measures a target. Errors of single files become findings.
pub(super) fn measure_target(
    target: &StatTarget,
    checkpoints: &Checkpoints,
    options: StatOptions,
    progress: &dyn Progress,
) -> MeasuredPartition {
    match target {
        StatTarget::Partition(partition) => measure_partition(partition, checkpoints, options, progress),
        StatTarget::LogFile { path, topic_partition, base_offset } => {
            measure_file(path, topic_partition.clone(), *base_offset, options, progress)
        }
    }
}

fn measure_partition(
    partition: &PartitionDir,
    checkpoints: &Checkpoints,
    options: StatOptions,
    progress: &dyn Progress,
) -> MeasuredPartition {
    let segments: Vec<Segment> = partition.segments().into_iter().filter(|segment| segment.log.is_some()).collect();
    let mut sum = Measured::default();
    sum.figures.content = empty_content(options.depth);
    if let Some(first) = segments.first() {
        add_open_before(&mut sum.figures, partition, first);
    }
    // A bounded number of segments at a time: their figures wait for those before them.
    for some in segments.chunks(rayon::current_num_threads().saturating_mul(2)) {
        let measured: Vec<Measured> = some
            .par_iter()
            .map_init(RecordReader::default, |reader, segment| {
                measure_segment(partition, segment, options, reader, progress)
            })
            .collect();
        for segment in measured {
            sum.figures.append(&segment.figures);
            sum.findings.extend(segment.findings);
            sum.is_incomplete |= segment.is_incomplete;
        }
    }
    let topic_partition = partition.topic_partition().clone();
    let first_base = segments.first().map_or(Offset(0), |segment| segment.base_offset);
    let active_base = segments.last().map_or(Offset(0), |segment| segment.base_offset);
    let log_start_offset =
        offset_of(checkpoints.log_start.as_ref(), &topic_partition).map_or(first_base, |start| start.max(first_base));
    let log_end_offset = sum.figures.last_offset.map_or(active_base, |last| last.next().max(active_base));
    let high_watermark = offset_of(checkpoints.high_watermark.as_ref(), &topic_partition);
    let open_transactions = sum.figures.transactions.open();
    let first_open = open_transactions.first().map(|open| open.first_offset);
    let stable = [Some(log_end_offset), high_watermark, first_open].into_iter().flatten().min();
    let bounds = Bounds {
        checkpoint: offset_of(checkpoints.cleaner.as_ref(), &topic_partition),
        log_start_offset,
        log_end_offset,
        last_stable_offset: stable.unwrap_or(log_end_offset),
    };
    let sizes: Vec<SegmentSize> = segments
        .iter()
        .map(|segment| SegmentSize {
            base_offset: segment.base_offset,
            log_bytes: segment.log.as_ref().map_or(0, |log| log.size_bytes),
        })
        .collect();
    let stat = PartitionStat {
        log_dir: partition.log_dir().to_path_buf(),
        topic_partition,
        files: file_figures(partition, &segments),
        log: LogSummary::of(&sum.figures),
        cleaning: assess(&sizes, &bounds),
        open_transactions,
        log_start_offset,
        log_end_offset,
        high_watermark,
    };
    MeasuredPartition { stat, figures: sum.figures, findings: sum.findings, is_incomplete: sum.is_incomplete }
}

/// Transactions that were open before the first segment: its snapshot knows them.
fn add_open_before(figures: &mut LogFigures, partition: &PartitionDir, first: &Segment) {
    let Some(snapshot) = &first.snapshot else { return };
    let Ok(Some(bytes)) = partition.read_small(&snapshot.name, MOST_SNAPSHOT_BYTES) else { return };
    let Ok(snapshot) = ProducerSnapshot::parse(&bytes).strict() else { return };
    for entry in snapshot.entries {
        if let Some(first_offset) = entry.current_txn_first_offset {
            figures.transactions.open_before(entry.producer_id, first_offset);
        }
    }
}

fn measure_segment(
    partition: &PartitionDir,
    segment: &Segment,
    options: StatOptions,
    reader: &mut RecordReader,
    progress: &dyn Progress,
) -> Measured {
    let Some(log) = &segment.log else { return Measured::default() };
    let location = Location::of_path(
        partition.log_dir(),
        Some(partition.topic_partition().clone()),
        partition.relative(OsStr::new(&log.name)),
    );
    match partition.open_file(&log.name, options.io) {
        Ok(file) => measure_log(&file, segment.base_offset, &location, options.depth, reader, progress),
        Err(_) => unreadable(location, log.size_bytes),
    }
}

fn unreadable(location: Location, size_bytes: u64) -> Measured {
    let finding = Finding::new(FindingId::LogUnreadableRange, location.at(crate::format::Position(0), size_bytes));
    Measured { findings: vec![finding], is_incomplete: true, ..Measured::default() }
}

fn file_figures(partition: &PartitionDir, segments: &[Segment]) -> FileFigures {
    let mut figures = FileFigures { segments: len_u64(segments.len()), ..FileFigures::default() };
    for segment in segments {
        figures.log_bytes += segment.log.as_ref().map_or(0, |log| log.size_bytes);
        let indexes = [&segment.offset_index, &segment.time_index, &segment.txn_index];
        figures.index_bytes += indexes.into_iter().flatten().map(|index| index.size_bytes).sum::<u64>();
    }
    if let Some(active) = segments.last() {
        let unused = |entry: &Option<DirEntry>, entry_bytes| {
            entry.as_ref().map_or(0, |entry| unused_index_bytes(partition, entry, entry_bytes))
        };
        figures.preallocated_index_bytes = unused(&active.offset_index, 8) + unused(&active.time_index, 12);
    }
    for file in partition.files().iter().filter(|file| file.entry.not_a_file.is_none()) {
        figures.files += 1;
        figures.apparent_bytes += file.entry.size_bytes;
        figures.allocated_bytes += file.entry.allocated_bytes;
    }
    figures
}

/// Bytes of the entries at the end of an index that are all zero.
fn unused_index_bytes(partition: &PartitionDir, entry: &DirEntry, entry_bytes: usize) -> u64 {
    let Ok(Some(bytes)) = partition.read_small(&entry.name, MOST_INDEX_BYTES) else { return 0 };
    let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    len_u64(zeros / entry_bytes * entry_bytes)
}

fn measure_file(
    path: &Path,
    topic_partition: Option<TopicPartition>,
    base_offset: Offset,
    options: StatOptions,
    progress: &dyn Progress,
) -> MeasuredPartition {
    let location = Location::of_path(path, topic_partition.clone(), path);
    let mut size_bytes = 0;
    let measured = match SegmentFile::open(path, options.io) {
        Ok(file) => {
            size_bytes = file.size();
            measure_log(&file, base_offset, &location, options.depth, &mut RecordReader::default(), progress)
        }
        Err(_) => unreadable(location, 0),
    };
    let open_transactions = measured.figures.transactions.open();
    let log_end_offset = measured.figures.last_offset.map_or(base_offset, Offset::next);
    let sizes = [SegmentSize { base_offset, log_bytes: size_bytes }];
    let bounds = Bounds {
        checkpoint: None,
        log_start_offset: base_offset,
        log_end_offset,
        last_stable_offset: open_transactions.first().map_or(log_end_offset, |open| open.first_offset),
    };
    let stat = PartitionStat {
        log_dir: path.to_path_buf(),
        topic_partition: topic_partition
            .unwrap_or_else(|| TopicPartition::new(path.file_name().unwrap_or(path.as_os_str()), 0)),
        files: FileFigures {
            segments: 1,
            log_bytes: size_bytes,
            files: 1,
            apparent_bytes: size_bytes,
            allocated_bytes: allocated(path),
            ..FileFigures::default()
        },
        log: LogSummary::of(&measured.figures),
        cleaning: assess(&sizes, &bounds),
        open_transactions,
        log_start_offset: base_offset,
        log_end_offset,
        high_watermark: None,
    };
    MeasuredPartition {
        stat,
        figures: measured.figures,
        findings: measured.findings,
        is_incomplete: measured.is_incomplete,
    }
}

fn allocated(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).map_or(0, |metadata| metadata.blocks().saturating_mul(512))
}

//! What `stat` reports.

use std::path::PathBuf;

use super::cleaning::Cleaning;
use super::distribution::Quantiles;
use super::log::{CodecUse, LogFigures, PayloadBytes};
use super::transactions::OpenSince;
use crate::format::compression::Codec;
use crate::format::{Offset, TimestampMs};
use crate::logdir::{FileSystem, TopicPartition};
use crate::ops::Finding;

/// How much is read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Depth {
    /// Batch headers; checksums are not looked at.
    Headers,
    /// Everything, records included.
    #[default]
    Records,
}

/// The report.
#[derive(Clone, PartialEq, Debug)]
pub struct StatReport {
    /// How much was read.
    pub depth: Depth,
    /// Everything that should have been looked at was.
    pub is_complete: bool,
    /// A process holds a log dir's lock: the numbers were moving.
    pub is_live: bool,
    /// One for each log dir.
    pub log_dirs: Vec<LogDirStat>,
    /// In the order of log dir, topic, partition.
    pub partitions: Vec<PartitionStat>,
    /// Largest first.
    pub topics: Vec<TopicStat>,
    /// All partitions together.
    pub totals: Totals,
    /// What is wrong, by place.
    pub findings: Vec<Finding>,
}

/// A log dir and what lies under it.
#[derive(Clone, PartialEq, Debug)]
pub struct LogDirStat {
    /// The log dir.
    pub path: PathBuf,
    /// The file system; `None` where the system did not say.
    pub file_system: Option<FileSystem>,
    /// What about the file system deserves a look.
    pub concerns: Vec<FileSystemConcern>,
}

/// Something about a file system that brokers suffer from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileSystemConcern {
    /// A network file system: locks, deletes of open files and fsync behave differently.
    Network,
    /// Everything is lost with the machine.
    Memory,
    /// Mounted read-only: a broker takes the log dir offline.
    ReadOnly,
    /// Every read writes an access time.
    AccessTimes,
    /// Write barriers are off: a power failure can lose what was synced.
    NoBarriers,
    /// ext4 writes data after the metadata that refers to it: after a crash files may hold zeros.
    WriteBackJournal,
    /// Less than a tenth is available.
    NearlyFull,
    /// Less than a hundredth of the inodes is free; a segment takes up to five.
    FewInodes,
}

/// Sizes of the files of a partition, or of many.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FileFigures {
    /// Segments, the active one included.
    pub segments: u64,
    /// `.log` files of segments in use.
    pub log_bytes: u64,
    /// `.index`, `.timeindex` and `.txnindex` files of segments in use.
    pub index_bytes: u64,
    /// Of these, zeros at the end of the active segment's: preallocated, not yet used.
    pub preallocated_index_bytes: u64,
    /// All files of the directory, whatever they are.
    pub files: u64,
    /// Their apparent sizes.
    pub apparent_bytes: u64,
    /// The disk space that they take.
    pub allocated_bytes: u64,
}

impl FileFigures {
    /// Descriptors that a broker holds for these segments: log and two indexes each.
    pub fn file_descriptors(&self) -> u64 {
        self.segments.saturating_mul(3)
    }

    /// Adds those of another.
    pub fn add(&mut self, more: &Self) {
        self.segments += more.segments;
        self.log_bytes += more.log_bytes;
        self.index_bytes += more.index_bytes;
        self.preallocated_index_bytes += more.preallocated_index_bytes;
        self.files += more.files;
        self.apparent_bytes += more.apparent_bytes;
        self.allocated_bytes += more.allocated_bytes;
    }
}

/// One partition.
#[derive(Clone, PartialEq, Debug)]
pub struct PartitionStat {
    /// Its log dir.
    pub log_dir: PathBuf,
    /// Its name.
    pub topic_partition: TopicPartition,
    /// Its files.
    pub files: FileFigures,
    /// Its log.
    pub log: LogSummary,
    /// How dirty it is.
    pub cleaning: Cleaning,
    /// Transactions without an end, oldest first.
    pub open_transactions: Vec<OpenSince>,
    /// From the checkpoint, else the first segment's base.
    pub log_start_offset: Offset,
    /// After the last record.
    pub log_end_offset: Offset,
    /// From the checkpoint.
    pub high_watermark: Option<Offset>,
}

/// One topic, over all its partitions in the log dirs given.
#[derive(Clone, PartialEq, Debug)]
pub struct TopicStat {
    /// Its name, as the bytes of the directory names.
    pub topic: std::ffi::OsString,
    /// Partitions.
    pub partitions: u64,
    /// Logs.
    pub log_bytes: u64,
    /// Records.
    pub records: Option<u64>,
    /// Sum over the partitions of bytes by time span.
    pub bytes_per_second: f64,
    /// Different keys, where records were read.
    pub distinct_keys: Option<u64>,
}

/// All partitions together.
#[derive(Clone, PartialEq, Debug)]
pub struct Totals {
    /// Partitions.
    pub partitions: u64,
    /// Topics.
    pub topics: u64,
    /// Their files.
    pub files: FileFigures,
    /// Their logs.
    pub log: LogSummary,
    /// Sum of the partitions' dirty bytes.
    pub dirty_bytes: u64,
    /// Sum of the partitions' clean bytes.
    pub clean_bytes: u64,
    /// Open transactions.
    pub open_transactions: u64,
    /// Sum over the partitions of bytes by time span.
    pub bytes_per_second: f64,
    /// Sum over the partitions of records by time span.
    pub records_per_second: f64,
}

/// The figures of a log, closed.
#[derive(Clone, PartialEq, Debug)]
pub struct LogSummary {
    /// Sound batches.
    pub batches: u64,
    /// Their bytes on disk.
    pub batch_bytes: u64,
    /// Batches of magic 0, 1 and 2.
    pub batches_by_magic: [u64; 3],
    /// Records; `None` where they were not all counted.
    pub records: Option<u64>,
    /// Records of control batches.
    pub control_records: u64,
    /// Data batches of transactions.
    pub transactional_batches: u64,
    /// Batches with a producer id.
    pub idempotent_batches: u64,
    /// By codec.
    pub codecs: Vec<(Codec, CodecUse)>,
    /// All batches without compression, where that was looked at.
    pub uncompressed_bytes: Option<u64>,
    /// Sizes of batches.
    pub batch_sizes: Option<Quantiles>,
    /// Records of data batches.
    pub batch_records: Option<Quantiles>,
    /// First offset of the first batch.
    pub first_offset: Option<Offset>,
    /// Last offset of the last batch.
    pub last_offset: Option<Offset>,
    /// Smallest timestamp.
    pub first_timestamp: Option<TimestampMs>,
    /// Largest timestamp.
    pub last_timestamp: Option<TimestampMs>,
    /// Bytes of data batches by hour of the day, in UTC.
    pub bytes_by_hour: [u64; 24],
    /// Bytes that are no sound batch.
    pub damaged_bytes: u64,
    /// What the records say, where they were read.
    pub content: Option<ContentSummary>,
}

/// What the records of data batches say.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ContentSummary {
    /// Sizes of records: key, value and headers before compression.
    pub record_sizes: Option<Quantiles>,
    /// The same by part.
    pub payload: PayloadBytes,
    /// Records of data batches.
    pub records: u64,
    /// Different keys.
    pub distinct_keys: u64,
    /// That number is exact and no estimate.
    pub distinct_is_exact: bool,
    /// Records without a key.
    pub unkeyed: u64,
    /// Records with a key and without a value.
    pub tombstones: u64,
    /// Batches whose records could not be read.
    pub unreadable_batches: u64,
}

impl LogSummary {
    /// The figures to report.
    pub fn of(figures: &LogFigures) -> Self {
        Self {
            batches: figures.batches,
            batch_bytes: figures.batch_bytes,
            batches_by_magic: figures.batches_by_magic,
            records: figures.records(),
            control_records: figures.control_records,
            transactional_batches: figures.transactional_batches,
            idempotent_batches: figures.idempotent_batches,
            codecs: figures.codecs.iter().map(|(codec, used)| (*codec, *used)).collect(),
            uncompressed_bytes: figures.uncompressed_bytes(),
            batch_sizes: figures.batch_sizes.quantiles(),
            batch_records: figures.batch_records.quantiles(),
            first_offset: figures.first_offset,
            last_offset: figures.last_offset,
            first_timestamp: figures.first_timestamp,
            last_timestamp: figures.last_timestamp,
            bytes_by_hour: figures.bytes_by_hour,
            damaged_bytes: figures.damaged_bytes,
            content: figures.content.as_ref().map(|content| ContentSummary {
                record_sizes: content.record_sizes.quantiles(),
                payload: content.payload,
                records: content.record_sizes.count(),
                distinct_keys: content.keys.count(),
                distinct_is_exact: content.keys.is_exact(),
                unkeyed: content.unkeyed,
                tombstones: content.tombstones,
                unreadable_batches: content.unreadable_batches,
            }),
        }
    }

    /// Seconds between the smallest and the largest timestamp; `None` where there is no such span.
    pub fn span_seconds(&self) -> Option<f64> {
        let (first, last) = self.first_timestamp.zip(self.last_timestamp)?;
        last.0.checked_sub(first.0).filter(|span_ms| *span_ms > 0).map(|span_ms| span_ms as f64 / 1000.0)
    }

    /// Bytes on disk a second of that span.
    pub fn bytes_per_second(&self) -> Option<f64> {
        self.span_seconds().map(|seconds| self.batch_bytes as f64 / seconds)
    }

    /// Records a second of that span.
    pub fn records_per_second(&self) -> Option<f64> {
        Some(self.records? as f64 / self.span_seconds()?)
    }

    /// Bytes on disk as a share of those without compression.
    pub fn compression_ratio(&self) -> Option<f64> {
        self.uncompressed_bytes.filter(|bytes| *bytes > 0).map(|bytes| self.batch_bytes as f64 / bytes as f64)
    }
}

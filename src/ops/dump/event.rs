//! What a dump consists of. Events borrow; whoever wants to keep one renders it.

use std::path::PathBuf;
use std::sync::Arc;

use super::files::FileEntry;
use crate::format::record::Record;
use crate::format::{BatchHeader, Offset};
use crate::logdir::TopicPartition;
use crate::ops::Finding;

/// The file that an event comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// The log dir, as it was given; of a single file, the file.
    pub log_dir: Arc<PathBuf>,
    /// The partition, where the path names one.
    pub topic_partition: Option<TopicPartition>,
    /// The file, relative to the log dir.
    pub path: PathBuf,
    /// The offset in the file's name; 0 for a snapshot of the metadata log, whose batches count from 0.
    pub base_offset: Offset,
}

/// A batch, as its header and (for a legacy wrapper) its content tell.
#[derive(Clone, Copy, Debug)]
pub struct BatchEvent<'a> {
    /// Where it comes from.
    pub source: &'a Source,
    /// The header.
    pub header: &'a BatchHeader,
    /// Offset of the first record: of a legacy wrapper, that of the first message inside where it can be read.
    pub base_offset: Offset,
    /// Records: the header's count, or the messages of a legacy wrapper; `None` where a wrapper cannot be read.
    pub records_count: Option<i64>,
}

/// One record.
#[derive(Clone, Copy, Debug)]
pub struct RecordEvent<'a> {
    /// Where it comes from.
    pub source: &'a Source,
    /// The header of its batch.
    pub header: &'a BatchHeader,
    /// The record.
    pub record: &'a Record<'a>,
}

/// One thing to show, in the order of the log.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A batch.
    Batch(BatchEvent<'a>),
    /// A record.
    Record(RecordEvent<'a>),
    /// An entry of a file that is no log.
    Entry(&'a Source, &'a FileEntry),
    /// A range that could not be shown, or a batch whose records could not.
    Damage(&'a Finding),
}

/// What a dump came to.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DumpSummary {
    /// Sound batches read.
    pub batches: u64,
    /// Records shown.
    pub records: u64,
    /// Bytes of files read.
    pub bytes: u64,
    /// Damages met.
    pub damage: u64,
    /// Whether something could not be read, so that the dump is not whole.
    pub is_incomplete: bool,
}

impl DumpSummary {
    /// Adds what another part of the same dump came to.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        Self {
            batches: self.batches + other.batches,
            records: self.records + other.records,
            bytes: self.bytes + other.bytes,
            damage: self.damage + other.damage,
            is_incomplete: self.is_incomplete || other.is_incomplete,
        }
    }
}

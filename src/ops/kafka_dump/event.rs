//! What a walk sees.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::format::legacy::LegacyMessage;
use crate::format::offset_index::OffsetIndexEntry;
use crate::format::producer_snapshot::ProducerEntry;
use crate::format::record::Record;
use crate::format::time_index::TimeIndexEntry;
use crate::format::txn_index::AbortedTransaction;
use crate::format::{BatchHeader, Offset, Position, TimestampMs};
use crate::logdir::ReadError;
use crate::ops::RecordsError;

/// Sizes in bytes that a legacy message states, which may be more than it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredSizes {
    /// The key's; negative is null.
    pub key: i32,
    /// The value's; negative is null.
    pub value: i32,
    /// Bytes of the value that are there.
    pub value_available: usize,
}

/// What a file's name says of its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heading {
    /// A log file, with the base offset.
    Log(Offset),
    /// `bootstrap.checkpoint`, written when a KRaft node is formatted.
    Bootstrap,
    /// A KRaft snapshot.
    Snapshot {
        /// The offset after the last one that it covers.
        end_offset: i64,
        /// The leader epoch of that offset.
        epoch: i32,
    },
}

/// Which of the two indexes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexFile {
    /// `.index`.
    Offset,
    /// `.timeindex`.
    Time,
}

/// Something seen, in the order in which the tool prints.
#[derive(Debug)]
pub enum Event<'a> {
    /// The first line about a log file or a KRaft snapshot.
    Heading(Heading),
    /// A batch.
    Batch {
        /// Its header.
        header: &'a BatchHeader,
        /// Whether the stored checksum is that of the bytes.
        crc_matches: bool,
    },
    /// A record of the batch before.
    Record {
        /// The batch's header.
        header: &'a BatchHeader,
        /// The record.
        record: &'a Record<'a>,
        /// The message as which a record of magic 0 or 1 is stored.
        message: Option<&'a LegacyMessage<'a>>,
    },
    /// A legacy message whose key or value reaches beyond its end.
    CutMessage {
        /// The batch's header.
        header: &'a BatchHeader,
        /// What the message says of its key and value.
        sizes: StoredSizes,
    },
    /// Bytes after the last batch.
    TrailingBytes(u64),
    /// An entry of an offset index.
    OffsetEntry(OffsetIndexEntry),
    /// An entry of a time index.
    TimeEntry(TimeIndexEntry),
    /// An offset index without an entry.
    IndexEmpty,
    /// An index that a broker would keep at its start.
    IndexSound,
    /// An entry of a transaction index.
    AbortedTransaction(AbortedTransaction),
    /// An entry of a producer snapshot.
    Producer(&'a ProducerEntry),
    /// What Kafka's tool does not get past, or complains about.
    Trouble(Trouble),
}

/// A fault that a broker's check of an index at its start finds (`sanityCheck`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexFault {
    /// The last entry's offset lies below the base offset.
    LastOffset {
        /// The last entry's.
        last: Offset,
        /// The base offset.
        base: Offset,
    },
    /// The last entry's time lies below the first one's.
    LastTimestamp {
        /// The last entry's.
        last: TimestampMs,
        /// The first entry's.
        first: TimestampMs,
    },
    /// The file's size is no multiple of an entry's.
    Length {
        /// The file's size in bytes.
        size_bytes: u64,
    },
}

/// What Kafka's tool does not get past, or complains about.
#[derive(Debug)]
pub enum Trouble {
    /// Neither log, index, snapshot nor checkpoint by its name.
    UnknownFile,
    /// A file cannot be read, or is not there.
    Unreadable(ReadError),
    /// The name does not begin with an offset.
    NameWithoutOffset {
        /// What stands there instead.
        text: String,
    },
    /// A size field that no batch can have.
    SizeTooSmall {
        /// Where the batch would start.
        position: Position,
        /// What the field says.
        found: i32,
    },
    /// Bytes passed over after damage.
    Skipped {
        /// The first byte passed over.
        from: Position,
        /// The first byte of the next sound batch.
        to: Position,
    },
    /// A batch whose codec does not exist, or whose magic is negative.
    BatchUnknown {
        /// Where the batch starts.
        position: Position,
        /// The magic.
        magic: i8,
        /// The codec's id.
        codec_id: u8,
    },
    /// The records of a batch cannot be read to their end.
    Records {
        /// Where the batch starts.
        position: Position,
        /// What is wrong.
        error: RecordsError,
    },
    /// An index entry whose position holds no batch.
    NoBatch {
        /// The entry's offset.
        offset: Offset,
        /// Its position.
        position: i32,
    },
    /// An index that a broker would rebuild at its start.
    IndexUnsound {
        /// Which.
        index: IndexFile,
        /// Why.
        fault: IndexFault,
    },
    /// An entry of a transaction index with another version than 0.
    TransactionVersion {
        /// The version.
        version: i16,
    },
    /// A producer snapshot that Kafka does not read.
    Snapshot(SnapshotFault),
}

/// Why Kafka does not read a producer snapshot, in the order in which it looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SnapshotFault {
    /// The file ends early.
    Short,
    /// Another version than 1.
    Version(i16),
    /// A negative count of entries.
    NegativeCount,
    /// More entries than bytes that are left.
    CountBeyondEnd {
        /// The count.
        count: i32,
        /// Bytes that are left.
        available: usize,
    },
    /// The checksum is wrong.
    Checksum {
        /// The one in the file.
        stored: u32,
        /// That of the bytes.
        computed: u32,
    },
}

/// How many steps between offsets of one file are kept: a cleaned log may have one at every record.
pub const MOST_STEPS: usize = 500_000;

/// What the tool reports at the end of a run, by the file's path as given.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Report {
    /// Offset indexes: an entry's offset, and the last offset of the batch that it points to.
    pub offset_mismatches: Vec<(PathBuf, BTreeMap<i64, i64>)>,
    /// Time indexes: an entry's time, and the largest time of its batch.
    pub time_mismatches: Vec<(PathBuf, Vec<(i64, i64)>)>,
    /// Time indexes: an entry's time, and the one before that is not smaller.
    pub time_disorder: Vec<(PathBuf, Vec<(i64, i64)>)>,
    /// Time indexes: an entry's offset, and the last offset of the first batch that reaches it, or -1.
    pub offsets_not_found: Vec<(PathBuf, Vec<(i64, i64)>)>,
    /// Logs: an offset, and the one that follows it in the next record. Normal after cleaning.
    pub offset_steps: Vec<(PathBuf, BTreeMap<i64, i64>)>,
    /// Such steps beyond [`MOST_STEPS`] of a file, which are only counted.
    pub steps_left_out: u64,
}

/// The entry of `path`, made where there is none.
pub(super) fn of_path<'l, T: Default>(list: &'l mut Vec<(PathBuf, T)>, path: &std::path::Path) -> Option<&'l mut T> {
    if let Some(place) = list.iter().position(|(known, _)| known == path) {
        return list.get_mut(place).map(|(_, value)| value);
    }
    list.push((path.to_path_buf(), T::default()));
    list.last_mut().map(|(_, value)| value)
}

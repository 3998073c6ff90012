//! The catalogue of what can be wrong, and the place where it is. No sentences: `render` makes them.
//!
//! Ids are a contract: `<subject>-<defect>`, never renamed. Severities follow what real brokers did.

use std::path::PathBuf;

use crate::format::{FormatErrorKind, Offset, Position, TimestampMs};
use crate::logdir::TopicPartition;

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// Legal, but worth knowing.
    Info,
    /// Doubtful, or a crash leftover that costs nothing.
    Warning,
    /// A file is wrong.
    Error,
    /// Data is unreadable or will be lost.
    Critical,
}

impl Severity {
    /// All severities, mildest first.
    pub const ALL: [Self; 4] = [Self::Info, Self::Warning, Self::Error, Self::Critical];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
        }
    }
}

/// What mending a finding costs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Repair {
    /// Nothing is lost.
    Safe,
    /// Bytes go to quarantine.
    Lossy,
    /// segtool does not mend it.
    None,
}

impl Repair {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Lossy => "lossy",
            Self::None => "none",
        }
    }
}

macro_rules! catalogue {
    ($($variant:ident $id:literal $severity:ident $repair:ident $meaning:literal;)*) => {
        /// Every finding there is.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[non_exhaustive]
        pub enum FindingId {
            $(#[doc = $meaning] $variant,)*
        }

        impl FindingId {
            /// All ids, in the order of the catalogue.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable name.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $id,)* }
            }

            /// The severity where nothing about the place makes it milder or worse.
            pub fn usual_severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)* }
            }

            /// What mending it usually costs.
            pub fn usual_repair(self) -> Repair {
                match self { $(Self::$variant => Repair::$repair,)* }
            }

            /// What it means, as a sentence fragment.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }
    };
}

catalogue! {
    BatchCrcMismatch "batch-crc-mismatch" Critical Lossy "stored and computed checksum of a batch differ";
    BatchLengthInvalid "batch-length-invalid" Critical Lossy "a batch's length field is below the minimum, or reaches past the end of the file while valid batches follow";
    BatchTornTail "batch-torn-tail" Warning Lossy "the last batch is cut off";
    LogZeroTail "log-zero-tail" Warning Safe "zeros from the last valid batch to the end of the file";
    LogTrailingBytes "log-trailing-bytes" Warning Lossy "bytes after the last valid batch that are neither zeros nor a torn batch";
    LogUnreadableRange "log-unreadable-range" Critical Lossy "the disk refused to read these bytes";
    LogDamageInterior "log-damage-interior" Critical Lossy "a range that is no batch lies between two valid batches";
    BatchMagicUnknown "batch-magic-unknown" Error None "a batch has a magic that no known version writes";
    BatchCodecUnknown "batch-codec-unknown" Error None "a batch names a compression codec that does not exist";
    BatchAttributesUnknown "batch-attributes-unknown" Info None "a batch has attribute bits set that no known version defines";
    BatchPayloadUndecodable "batch-payload-undecodable" Critical None "the checksum is right, but decompression or record parsing fails";
    BatchPayloadOdd "batch-payload-odd" Info None "the payload of a batch has something that Kafka reads past without looking";
    BatchRecordsCountMismatch "batch-records-count-mismatch" Error None "the header counts other records than the batch holds";
    BatchLastOffsetMismatch "batch-last-offset-mismatch" Error None "the last offset of the header lies before a record of the batch";
    BatchTimestampMismatch "batch-timestamp-mismatch" Error None "the largest timestamp of the header is not that of the records";
    RecordMalformed "record-malformed" Error None "a record inside a sound batch breaks the format";
    BatchOffsetRegression "batch-offset-regression" Critical Lossy "a batch's offsets lie below those of the batch before it";
    BatchOffsetOverlap "batch-offset-overlap" Critical Lossy "a batch's offsets overlap those of the batch before it";
    BatchDuplicate "batch-duplicate" Critical Lossy "a batch is there twice";
    BatchBelowSegmentBase "batch-below-segment-base" Critical Lossy "a batch's offset lies below the base offset in the file's name";
    BatchOffsetOverflow "batch-offset-overflow" Error Safe "a batch's offset lies more than 2^31-1 above the base offset in the file's name";
    BatchLeaderEpochRegression "batch-leader-epoch-regression" Error None "a batch's leader epoch lies below that of the batch before it";
    BatchTimestampImplausible "batch-timestamp-implausible" Warning None "a timestamp lies in the future or is in the wrong unit; it blocks retention by time";
    LegacyInnerMagicMismatch "legacy-inner-magic-mismatch" Warning None "a message inside a wrapper has another magic than the wrapper";
    LegacyInnerCodec "legacy-inner-codec" Error None "a message inside a wrapper is itself compressed";
    LegacyInnerOffset "legacy-inner-offset" Error None "offsets inside a wrapper contradict the wrapper's";
    LegacyLz4Checksum "legacy-lz4-checksum" Info None "an LZ4 frame of magic 0 has the checksum that old clients computed wrongly";
    SegmentOverlap "segment-overlap" Critical Lossy "a segment holds offsets at or beyond the base offset of the next one";
    SegmentMissingLog "segment-missing-log" Error Safe "a segment's files are there without its log";
    SegmentEmptyInterior "segment-empty-interior" Info None "an empty segment lies between others";
    SegmentGap "segment-gap" Warning None "the next segment begins beyond the end of the last";
    OffsetIndexMissing "offset-index-missing" Warning Safe "a segment has no offset index";
    TimeIndexMissing "time-index-missing" Warning Safe "a segment has no time index";
    TxnIndexMissing "txn-index-missing" Error Safe "a segment with aborted transactions has no transaction index";
    OffsetIndexMisaligned "offset-index-misaligned" Error Safe "the size of an offset index is no multiple of 8";
    TimeIndexMisaligned "time-index-misaligned" Error Safe "the size of a time index is no multiple of 12";
    TxnIndexMisaligned "txn-index-misaligned" Error Safe "the size of a transaction index is no multiple of 34";
    OffsetIndexZeroPadded "offset-index-zero-padded" Error Safe "zero entries follow the real ones of an offset index";
    TimeIndexZeroPadded "time-index-zero-padded" Critical Safe "zero entries follow the real ones of a time index: a broker reads its last entry as 1970 and deletes the segment";
    OffsetIndexNeverWritten "offset-index-never-written" Error Safe "an offset index has its full size and holds nothing but zeros";
    TimeIndexNeverWritten "time-index-never-written" Critical Safe "a time index has its full size and holds nothing but zeros";
    OffsetIndexEntryOrder "offset-index-entry-order" Error Safe "entries of an offset index do not increase";
    TimeIndexEntryOrder "time-index-entry-order" Error Safe "entries of a time index do not increase";
    OffsetIndexEntryPastEnd "offset-index-entry-past-end" Error Safe "an entry of an offset index points beyond the log";
    OffsetIndexEntryWrong "offset-index-entry-wrong" Error Safe "an entry of an offset index points to no batch, or to one behind the offset";
    TimeIndexEntryWrong "time-index-entry-wrong" Error Safe "an entry of a time index is not the largest timestamp up to its offset";
    TimeIndexLastEntryLow "time-index-last-entry-low" Error Safe "the last entry of a time index misses the segment's largest timestamp";
    TxnIndexEntryWrong "txn-index-entry-wrong" Error Safe "an entry of a transaction index contradicts the log";
    TxnIndexEntryMissing "txn-index-entry-missing" Critical Safe "an aborted transaction is not in the transaction index: its data would be visible";
    TxnIndexVersionUnknown "txn-index-version-unknown" Critical Safe "a transaction index has an unknown version";
    IndexWithoutLog "index-without-log" Warning Safe "an index whose log is gone";
    SnapshotMalformed "snapshot-malformed" Error Safe "a producer snapshot does not have the form of one";
    SnapshotCrcMismatch "snapshot-crc-mismatch" Error Safe "stored and computed checksum of a producer snapshot differ";
    SnapshotStateMismatch "snapshot-state-mismatch" Error Safe "a producer snapshot contradicts the log";
    SnapshotMissing "snapshot-missing" Warning Safe "a segment has no producer snapshot although the log holds producers";
    SnapshotOpenTransactionStale "snapshot-open-transaction-stale" Warning Safe "a producer snapshot names an open transaction that the log has ended";
    LeaderEpochMalformed "leader-epoch-malformed" Critical Safe "the leader-epoch checkpoint cannot be read: the broker will not start";
    LeaderEpochOrder "leader-epoch-order" Error Safe "epochs or offsets of the leader-epoch checkpoint do not increase";
    LeaderEpochMismatch "leader-epoch-mismatch" Error Safe "the leader-epoch checkpoint contradicts the batches";
    CheckpointMalformed "checkpoint-malformed" Critical Safe "a checkpoint file cannot be read";
    CheckpointBeyondLogEnd "checkpoint-beyond-log-end" Error Safe "a checkpoint names an offset beyond the end of the log";
    CheckpointUnknownPartition "checkpoint-unknown-partition" Info Safe "a checkpoint names a partition that is not there";
    LogStartBeyondLogEnd "log-start-beyond-log-end" Critical Safe "the log start lies beyond the end of the log: the broker will delete every segment";
    PartitionMetadataMissing "partition-metadata-missing" Info None "a partition has no partition.metadata";
    PartitionMetadataMalformed "partition-metadata-malformed" Critical None "partition.metadata cannot be read";
    TopicIdConflict "topic-id-conflict" Error None "partitions of one topic have different topic ids";
    CleanMarkerContradicted "clean-marker-contradicted" Critical Safe "the clean-shutdown marker is there, but files are not in closed state";
    MetaPropertiesMalformed "meta-properties-malformed" Critical None "meta.properties cannot be read";
    MetaPropertiesConflict "meta-properties-conflict" Critical None "log dirs disagree about cluster, node or directory id";
    LeftoverCleaned "leftover-cleaned" Info Safe "a file of an interrupted cleaning";
    LeftoverSwap "leftover-swap" Warning Lossy "a file of an interrupted swap";
    LeftoverDeleted "leftover-deleted" Info Safe "a file of an interrupted deletion";
    PartitionTwice "partition-twice" Critical None "a partition is in two log dirs: the broker will not start";
    StrayDirectory "stray-directory" Critical None "a directory in a log dir that is no partition: the broker will not start";
    SegmentNameInvalid "segment-name-invalid" Critical None "a file's name promises a segment but has no sound base offset";
    UnknownFile "unknown-file" Info None "a file that a broker ignores";
    TransactionOpen "transaction-open" Info None "a transaction has no end marker";
    TransactionHanging "transaction-hanging" Warning None "a transaction has had no end marker for long: it blocks cleaning and read_committed";
    TransactionForeignBatch "transaction-foreign-batch" Critical None "a non-transactional batch of a producer inside its open transaction: the broker will not start";
    ProducerSequenceGap "producer-sequence-gap" Warning None "a producer's sequence numbers do not follow each other";
    ControlEpochRegression "control-epoch-regression" Warning None "a marker's coordinator epoch goes back";
    KraftSnapshotIncomplete "kraft-snapshot-incomplete" Critical None "a metadata snapshot lacks header or footer";
    KraftSnapshotMissing "kraft-snapshot-missing" Critical None "the metadata log starts after 0 without a snapshot that covers its start";
    QuorumStateMalformed "quorum-state-malformed" Critical None "quorum-state of the metadata log cannot be read: the node will not start";
    QuorumStateStale "quorum-state-stale" Warning None "quorum-state is missing or older than the metadata log: the node has forgotten its vote";
    LimitReached "limit-reached" Warning None "a bound of segtool's own stopped the check here";
}

impl FindingId {
    /// The id with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|id| id.as_str() == name)
    }
}

/// Where a finding is. Paths are relative to the log dir (or to the argument, for a single file).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Location {
    /// The log dir, as it was given.
    pub log_dir: PathBuf,
    /// The partition, where there is one.
    pub topic_partition: Option<TopicPartition>,
    /// The file or directory; empty for the log dir itself.
    pub path: PathBuf,
    /// The first byte concerned.
    pub position: Option<Position>,
    /// How many bytes are concerned.
    pub size_bytes: Option<u64>,
    /// The first offset concerned.
    pub first_offset: Option<Offset>,
    /// The last offset concerned, inclusive.
    pub last_offset: Option<Offset>,
}

impl Location {
    /// A whole file or directory.
    pub fn of_path(
        log_dir: impl Into<PathBuf>,
        topic_partition: Option<TopicPartition>,
        path: impl Into<PathBuf>,
    ) -> Self {
        Self {
            log_dir: log_dir.into(),
            topic_partition,
            path: path.into(),
            position: None,
            size_bytes: None,
            first_offset: None,
            last_offset: None,
        }
    }

    /// The same place, narrowed to bytes.
    #[must_use]
    pub fn at(mut self, position: Position, size_bytes: u64) -> Self {
        (self.position, self.size_bytes) = (Some(position), Some(size_bytes));
        self
    }

    /// The same place, narrowed to offsets, both inclusive.
    #[must_use]
    pub fn offsets(mut self, first: Offset, last: Offset) -> Self {
        (self.first_offset, self.last_offset) = (Some(first), Some(last));
        self
    }
}

/// A typed fact of a finding: what was expected, or what was found.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Fact {
    /// A checksum.
    Checksum(u32),
    /// A count, size or other plain number.
    Number(i64),
    /// A logical offset.
    Offset(Offset),
    /// A byte place.
    Position(Position),
    /// A time.
    Timestamp(TimestampMs),
    /// A name or value of Kafka's, as text.
    Text(String),
    /// Two numbers that belong together, such as an index entry's offset and position.
    Pair(i64, i64),
}

/// Something that is wrong, or worth knowing, and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What it is.
    pub id: FindingId,
    /// How bad it is here.
    pub severity: Severity,
    /// Where it is.
    pub location: Location,
    /// What should be there.
    pub expected: Option<Fact>,
    /// What is there.
    pub found: Option<Fact>,
    /// The fault in the bytes, where one was met.
    pub cause: Option<FormatErrorKind>,
    /// What mending it costs.
    pub repair: Repair,
}

impl Finding {
    /// A finding with the catalogue's usual severity and repair.
    pub fn new(id: FindingId, location: Location) -> Self {
        Self {
            id,
            severity: id.usual_severity(),
            location,
            expected: None,
            found: None,
            cause: None,
            repair: id.usual_repair(),
        }
    }

    /// The same finding, milder or worse.
    #[must_use]
    pub fn with_severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// The same finding, with another cost of mending.
    #[must_use]
    pub fn with_repair(mut self, repair: Repair) -> Self {
        self.repair = repair;
        self
    }

    /// The same finding, with what was expected and what was found.
    #[must_use]
    pub fn with_facts(mut self, expected: impl Into<Option<Fact>>, found: impl Into<Option<Fact>>) -> Self {
        (self.expected, self.found) = (expected.into(), found.into());
        self
    }

    /// The same finding, with the fault that was met in the bytes.
    #[must_use]
    pub fn with_cause(mut self, cause: FormatErrorKind) -> Self {
        self.cause = Some(cause);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kebab_case_unique_and_lead_back_to_the_id() {
        let mut seen = std::collections::BTreeSet::new();
        for &id in FindingId::ALL {
            let name = id.as_str();
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'), "{name}");
            assert!(seen.insert(name), "{name} twice");
            assert_eq!(FindingId::from_name(name), Some(id));
        }
        assert_eq!(FindingId::from_name("batch"), None);
    }
}

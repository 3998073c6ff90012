//! Names of the files inside a partition directory (`LogFileUtils`, `Snapshots`).

use std::ffi::{OsStr, OsString};

use crate::format::java_number::{has_foreign_digit, parse_java_int, parse_java_long};
use crate::format::{LeaderEpoch, Offset};

/// What kind of file an offset in its name belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FileKind {
    /// `.log`: the batches.
    Log,
    /// `.index`: the offset index.
    OffsetIndex,
    /// `.timeindex`: the time index.
    TimeIndex,
    /// `.txnindex`: the aborted transactions.
    TxnIndex,
    /// `.snapshot`: the producers' state; its offset is the end of what it covers, exclusive.
    Snapshot,
}

impl FileKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Log, Self::OffsetIndex, Self::TimeIndex, Self::TxnIndex, Self::Snapshot];

    /// The kind's extension with its dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Log => ".log",
            Self::OffsetIndex => ".index",
            Self::TimeIndex => ".timeindex",
            Self::TxnIndex => ".txnindex",
            Self::Snapshot => ".snapshot",
        }
    }

    /// Whether the file is one of the three indexes that need a `.log`.
    pub fn is_index(self) -> bool {
        matches!(self, Self::OffsetIndex | Self::TimeIndex | Self::TxnIndex)
    }
}

/// What an operation in progress, or one that was interrupted, has added to a name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FileSuffix {
    /// Nothing: the file is in use.
    None,
    /// `.deleted`: to be removed.
    Deleted,
    /// `.cleaned`: being written by the cleaner or by a split.
    Cleaned,
    /// `.swap`: written completely, about to replace others.
    Swap,
}

impl FileSuffix {
    /// Every suffix.
    pub const ALL: [Self; 4] = [Self::None, Self::Deleted, Self::Cleaned, Self::Swap];

    /// The suffix with its dot, or nothing.
    pub fn text(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Deleted => ".deleted",
            Self::Cleaned => ".cleaned",
            Self::Swap => ".swap",
        }
    }
}

/// How far a snapshot of the metadata log has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CheckpointState {
    /// `.checkpoint`.
    Complete,
    /// `.checkpoint.part`: being written; removed at start.
    Part,
    /// `.checkpoint.deleted`: removed at start.
    Deleted,
}

/// Why a broker does not find the file that a name seems to say.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Misnaming {
    /// What stands before the first dot is no number, as in `foo.log`: a broker that has to read the number fails to start.
    NoNumber,
    /// It is a number, but not written as brokers write it, as in `45.log`: a broker reads 45 and opens the file of that number.
    OtherSpelling(Offset),
    /// It is a number in digits of another script, as brokers under some locales write it. Only such a broker finds it again.
    OtherDigits(Offset),
}

impl Misnaming {
    /// The number a broker reads from the name.
    pub fn offset(self) -> Option<Offset> {
        match self {
            Self::NoNumber => None,
            Self::OtherSpelling(offset) | Self::OtherDigits(offset) => Some(offset),
        }
    }
}

/// What the name of a file in a partition directory says.
///
/// ```
/// use segtool::{format::Offset, logdir::names::{FileKind, FileName, FileSuffix}};
///
/// let name = FileName::parse("00000000000000000042.index.swap".as_ref());
/// assert_eq!(name, FileName::Segment { base: Offset(42), kind: FileKind::OffsetIndex, suffix: FileSuffix::Swap });
/// assert_eq!(name.to_name().unwrap(), "00000000000000000042.index.swap");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FileName {
    /// A file of the segment that starts at `base`, spelled as brokers spell it. The kind is never [`FileKind::Snapshot`].
    Segment {
        /// The base offset.
        base: Offset,
        /// Log or index.
        kind: FileKind,
        /// Whether it is in use.
        suffix: FileSuffix,
    },
    /// A producer snapshot, spelled as brokers spell it.
    Snapshot {
        /// The end of what it covers, exclusive.
        offset: Offset,
        /// Whether it is in use.
        suffix: FileSuffix,
    },
    /// A broker takes the name for one of a segment or snapshot, but would not have made it.
    InvalidSegmentName {
        /// Log, index or snapshot.
        kind: FileKind,
        /// Whether it is in use.
        suffix: FileSuffix,
        /// What is unusual.
        misnaming: Misnaming,
    },
    /// `leader-epoch-checkpoint`.
    LeaderEpochCheckpoint,
    /// `partition.metadata`.
    PartitionMetadata,
    /// `quorum-state` of the metadata log.
    QuorumState,
    /// `<end offset>-<epoch>.checkpoint`: a snapshot of the metadata log. A node looks at 20 characters, skips one, and looks at ten;
    /// where that is not the whole name it then opens the file that [`Self::to_name`] gives.
    KraftCheckpoint {
        /// The end of what it covers, exclusive.
        end_offset: Offset,
        /// The epoch of the last record it covers.
        epoch: LeaderEpoch,
        /// Whether it is complete.
        state: CheckpointState,
    },
    /// A name that ends as one of a metadata snapshot and says no offset or epoch: a node fails to start over one in the directory
    /// of its metadata log. Elsewhere nobody looks at it.
    InvalidCheckpointName,
    /// `remote_log_snapshot` of tiered storage, 3.1 to 3.7.
    RemoteLogSnapshot,
    /// A name that ends in `.tmp`: what a crash leaves between the writing of a file and its renaming.
    Temporary,
    /// Any other name. A broker passes over it, unless it ends in `.deleted`, `.cleaned` or `.swap` (see [`super::LoaderView`]).
    Unknown,
}

impl FileName {
    /// Reads the name of a file.
    pub fn parse(name: &OsStr) -> Self {
        let Some(name) = name.to_str() else { return Self::Unknown };
        match name {
            "leader-epoch-checkpoint" => return Self::LeaderEpochCheckpoint,
            "partition.metadata" => return Self::PartitionMetadata,
            "quorum-state" => return Self::QuorumState,
            "remote_log_snapshot" => return Self::RemoteLogSnapshot,
            _ => {}
        }
        if name.strip_suffix(".tmp").is_some() {
            return Self::Temporary;
        }
        parse_kraft_checkpoint(name).or_else(|| parse_of_segment(name)).unwrap_or(Self::Unknown)
    }

    /// The name as brokers write it; `None` where the variant does not know it.
    pub fn to_name(&self) -> Option<OsString> {
        let of_offset = |offset: Offset, kind: FileKind, suffix: FileSuffix| {
            OsString::from(format!("{}{}{}", offset_prefix(offset), kind.extension(), suffix.text()))
        };
        match *self {
            Self::Segment { base, kind, suffix } => Some(of_offset(base, kind, suffix)),
            Self::Snapshot { offset, suffix } => Some(of_offset(offset, FileKind::Snapshot, suffix)),
            Self::LeaderEpochCheckpoint => Some("leader-epoch-checkpoint".into()),
            Self::PartitionMetadata => Some("partition.metadata".into()),
            Self::QuorumState => Some("quorum-state".into()),
            Self::RemoteLogSnapshot => Some("remote_log_snapshot".into()),
            Self::KraftCheckpoint { end_offset, epoch, state } => {
                let end = match state {
                    CheckpointState::Complete => "",
                    CheckpointState::Deleted => ".deleted",
                    // The random part between epoch and extension is not kept.
                    CheckpointState::Part => return None,
                };
                Some(format!("{}-{:010}.checkpoint{end}", offset_prefix(end_offset), epoch.0).into())
            }
            Self::InvalidSegmentName { .. } | Self::InvalidCheckpointName | Self::Temporary | Self::Unknown => None,
        }
    }

    /// What an operation has added to the name.
    pub fn suffix(&self) -> FileSuffix {
        match *self {
            Self::Segment { suffix, .. } | Self::Snapshot { suffix, .. } | Self::InvalidSegmentName { suffix, .. } => {
                suffix
            }
            _ => FileSuffix::None,
        }
    }
}

/// An offset as brokers write it in front of an extension: at least 20 digits (`LogFileUtils.filenamePrefixFromOffset`).
pub fn offset_prefix(offset: Offset) -> String {
    let sign = if offset.0 < 0 { "-" } else { "" };
    format!("{sign}{:020}", offset.0.unsigned_abs())
}

/// The number that stands before the first dot of a name, as `LogFileUtils.offsetFromFileName` reads it. While it completes a
/// swap, a broker deletes every file without `.swap` whose number lies in the range of the swap, whatever follows the dot.
pub fn leading_offset(name: &OsStr) -> Option<Offset> {
    let (number, _) = name.to_str()?.split_once('.')?;
    parse_java_long(number).map(Offset)
}

fn parse_of_segment(name: &str) -> Option<FileName> {
    let (stem, suffix) = split_suffix(name);
    let kind = FileKind::ALL.into_iter().find(|kind| stem.ends_with(kind.extension()))?;
    let number = stem.split_once('.').map_or(stem, |(number, _)| number);
    let Some(offset) = parse_java_long(number).map(Offset) else {
        return Some(FileName::InvalidSegmentName { kind, suffix, misnaming: Misnaming::NoNumber });
    };
    if stem.strip_suffix(kind.extension()) == Some(&*offset_prefix(offset)) {
        return Some(match kind {
            FileKind::Snapshot => FileName::Snapshot { offset, suffix },
            _ => FileName::Segment { base: offset, kind, suffix },
        });
    }
    let misnaming = if has_foreign_digit(number) { Misnaming::OtherDigits } else { Misnaming::OtherSpelling };
    Some(FileName::InvalidSegmentName { kind, suffix, misnaming: misnaming(offset) })
}

fn split_suffix(name: &str) -> (&str, FileSuffix) {
    [FileSuffix::Deleted, FileSuffix::Cleaned, FileSuffix::Swap]
        .into_iter()
        .find_map(|suffix| name.strip_suffix(suffix.text()).map(|stem| (stem, suffix)))
        .unwrap_or((name, FileSuffix::None))
}

/// `Snapshots.parse`: 20 characters of offset, one of anything, 10 of epoch; between them and the extension anything may stand.
fn parse_kraft_checkpoint(name: &str) -> Option<FileName> {
    let (stem, state) = [
        (".checkpoint.part", CheckpointState::Part),
        (".checkpoint.deleted", CheckpointState::Deleted),
        (".checkpoint", CheckpointState::Complete),
    ]
    .into_iter()
    .find_map(|(end, state)| name.strip_suffix(end).map(|stem| (stem, state)))?;
    let number = |from: usize, len: usize| -> Option<String> {
        let digits: String = stem.chars().skip(from).take(len).collect();
        (digits.chars().count() == len).then_some(digits)
    };
    let end_offset = number(0, 20).and_then(|text| parse_java_long(&text)).map(Offset);
    let epoch = number(21, 10).and_then(|text| parse_java_int(&text)).map(LeaderEpoch);
    Some(match (end_offset, epoch) {
        (Some(end_offset), Some(epoch)) => FileName::KraftCheckpoint { end_offset, epoch, state },
        _ => FileName::InvalidCheckpointName,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::ffi::OsStrExt;

    fn parsed(name: &str) -> FileName {
        FileName::parse(OsStr::new(name))
    }

    fn invalid(kind: FileKind, misnaming: Misnaming) -> FileName {
        FileName::InvalidSegmentName { kind, suffix: FileSuffix::None, misnaming }
    }

    #[test]
    fn file_names_read_as_kafka_reads_them() {
        let segment = |base, kind, suffix| FileName::Segment { base: Offset(base), kind, suffix };
        let checkpoint =
            |end, epoch, state| FileName::KraftCheckpoint { end_offset: Offset(end), epoch: LeaderEpoch(epoch), state };
        let rows = [
            ("00000000000000000000.log", segment(0, FileKind::Log, FileSuffix::None)),
            ("00000000000000000045.timeindex.deleted", segment(45, FileKind::TimeIndex, FileSuffix::Deleted)),
            ("00000000000000000045.txnindex.cleaned", segment(45, FileKind::TxnIndex, FileSuffix::Cleaned)),
            ("09223372036854775807.index.swap", segment(i64::MAX, FileKind::OffsetIndex, FileSuffix::Swap)),
            ("-00000000000000000005.log", segment(-5, FileKind::Log, FileSuffix::None)),
            ("00000000000000000018.snapshot", FileName::Snapshot { offset: Offset(18), suffix: FileSuffix::None }),
            (
                "00000000000000000018.snapshot.deleted",
                FileName::Snapshot { offset: Offset(18), suffix: FileSuffix::Deleted },
            ),
            ("45.log", invalid(FileKind::Log, Misnaming::OtherSpelling(Offset(45)))),
            ("+0000000000000000045.log", invalid(FileKind::Log, Misnaming::OtherSpelling(Offset(45)))),
            ("000000000000000000045.log", invalid(FileKind::Log, Misnaming::OtherSpelling(Offset(45)))),
            ("00000000000000000045.old.log", invalid(FileKind::Log, Misnaming::OtherSpelling(Offset(45)))),
            ("٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٤٥.log", invalid(FileKind::Log, Misnaming::OtherDigits(Offset(45)))),
            ("foo.log", invalid(FileKind::Log, Misnaming::NoNumber)),
            (".log", invalid(FileKind::Log, Misnaming::NoNumber)),
            ("abc.snapshot", invalid(FileKind::Snapshot, Misnaming::NoNumber)),
            ("99999999999999999999.index", invalid(FileKind::OffsetIndex, Misnaming::NoNumber)),
            ("leader-epoch-checkpoint", FileName::LeaderEpochCheckpoint),
            ("leader-epoch-checkpoint.tmp", FileName::Temporary),
            ("partition.metadata", FileName::PartitionMetadata),
            ("quorum-state", FileName::QuorumState),
            ("remote_log_snapshot", FileName::RemoteLogSnapshot),
            ("00000000000000000013-0000000001.checkpoint", checkpoint(13, 1, CheckpointState::Complete)),
            ("00000000000000000013-0000000001.checkpoint.deleted", checkpoint(13, 1, CheckpointState::Deleted)),
            ("00000000000000000013-0000000001-1234567890.checkpoint.part", checkpoint(13, 1, CheckpointState::Part)),
            ("00000000000000000013x0000000001.checkpoint", checkpoint(13, 1, CheckpointState::Complete)),
            ("-0000000000000000013-0000000001foo.checkpoint", checkpoint(-13, 1, CheckpointState::Complete)),
            ("٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠١٣-٠٠٠٠٠٠٠٠٠١.checkpoint", checkpoint(13, 1, CheckpointState::Complete)),
            ("00000000000000000013-.checkpoint", FileName::InvalidCheckpointName),
            ("0000000000000000001-300000000001.checkpoint", FileName::InvalidCheckpointName),
            ("00000000000000000013-000000.checkpoint", FileName::InvalidCheckpointName),
            ("13-1.checkpoint", FileName::InvalidCheckpointName),
            ("bootstrap.checkpoint", FileName::InvalidCheckpointName),
            ("00000000000000000013-0000000001.checkpoint.part.part", FileName::Unknown),
            ("00000000000000000000.log.bak", FileName::Unknown),
            ("x.cleaned", FileName::Unknown),
            ("readme.txt", FileName::Unknown),
            ("", FileName::Unknown),
        ];
        for (name, expected) in rows {
            assert_eq!(parsed(name), expected, "{name:?}");
        }
        assert_eq!(FileName::parse(OsStr::from_bytes(b"\xff.log")), FileName::Unknown);
    }

    #[test]
    fn only_a_number_before_the_first_dot_counts_as_the_leading_offset() {
        for (name, expected) in [
            ("00000000000000000045.log.bak", Some(45)),
            ("45.anything", Some(45)),
            ("00000000000000000013-0000000001.checkpoint", None),
            ("45", None),
            ("leader-epoch-checkpoint", None),
        ] {
            assert_eq!(leading_offset(OsStr::new(name)), expected.map(Offset), "{name:?}");
        }
    }

    fn kind() -> impl Strategy<Value = FileKind> {
        prop::sample::select(FileKind::ALL.to_vec())
    }

    fn suffix() -> impl Strategy<Value = FileSuffix> {
        prop::sample::select(FileSuffix::ALL.to_vec())
    }

    proptest! {
        #[test]
        fn names_of_brokers_read_back(offset: i64, kind in kind(), suffix in suffix(), epoch in 0..i32::MAX, deleted: bool) {
            let offset = Offset(offset);
            let state = if deleted { CheckpointState::Deleted } else { CheckpointState::Complete };
            let of_segment = match kind {
                FileKind::Snapshot => FileName::Snapshot { offset, suffix },
                kind => FileName::Segment { base: offset, kind, suffix },
            };
            let end_offset = Offset(offset.0 & i64::MAX);
            for name in [of_segment, FileName::KraftCheckpoint { end_offset, epoch: LeaderEpoch(epoch), state }] {
                prop_assert_eq!(FileName::parse(&name.to_name().unwrap()), name);
            }
        }

        #[test]
        fn a_name_that_is_understood_is_written_back_the_same(name in "-?[0-9]{0,21}(\\.[a-z]{0,3})?\\.(log|index|snapshot)(\\.swap|\\.deleted)?") {
            let name = OsStr::new(&name);
            let parsed = FileName::parse(name);
            if let Some(written) = parsed.to_name() {
                prop_assert_eq!(&*written, name);
            } else {
                let is_invalid = matches!(parsed, FileName::InvalidSegmentName { .. });
                prop_assert!(is_invalid);
            }
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let name = OsStr::from_bytes(&bytes);
            let _ = (FileName::parse(name), leading_offset(name));
        }
    }
}

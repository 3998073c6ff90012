//! New logs read once more before they take the places of the old ones: what they hold must be what the rounds have counted.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::path::Path;

use super::plan::{CompactPlan, PartitionCleaning};
use crate::format::Offset;
use crate::format::record::Record;
use crate::logdir::names::{FileKind, FileName, FileSuffix};
use crate::logdir::{IoMode, LogScanner, ReadError, ScanStop, Scanned, SegmentFile};
use crate::ops::{RecordReader, RecordsError};

/// What is wrong with a new log.
#[derive(Debug, thiserror::Error)]
pub enum RecheckError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It is not a log.
    #[error("the new log of segment {base} is damaged")]
    Damaged {
        /// The segment.
        base: Offset,
    },
    /// Records are missing, or too many.
    #[error("the new log of segment {base} has {found} records where {expected} were kept")]
    Records {
        /// The segment.
        base: Offset,
        /// What the rounds have kept.
        expected: u64,
        /// What is there.
        found: u64,
    },
    /// A batch's offsets do not follow those before it.
    #[error("in the new log of segment {base} offset {offset} does not follow")]
    Order {
        /// The segment.
        base: Offset,
        /// The batch's first offset.
        offset: Offset,
    },
}

/// Reads the new log files of a partition directory, each given with its name to be.
pub fn recheck<'p>(
    planned: &CompactPlan,
    directory: &OsStr,
    files: impl Iterator<Item = (&'p OsStr, &'p Path)>,
) -> Result<(), RecheckError> {
    let logs: Vec<(Offset, &Path)> = files
        .filter_map(|(name, path)| match FileName::parse(name) {
            FileName::Segment { base, kind: FileKind::Log, suffix: FileSuffix::None } => Some((base, path)),
            _ => None,
        })
        .collect();
    // Two log dirs may hold directories of the same name; the files are those of one of them.
    let partitions = planned.plan.partitions.iter().zip(&planned.cleaning);
    let mut result = Ok(());
    for (_, cleaning) in partitions.filter(|(partition, _)| partition.before.dir_name() == directory) {
        result = logs.iter().try_for_each(|(base, path)| recheck_log(cleaning, *base, path));
        if result.is_ok() {
            break;
        }
    }
    result
}

fn recheck_log(cleaning: &PartitionCleaning, base: Offset, path: &Path) -> Result<(), RecheckError> {
    let sources = cleaning.segments.iter().filter(|segment| segment.into == base);
    let (mut expected, mut wrong_checksums) = (0u64, 0u64);
    for source in sources {
        expected = expected.saturating_add(source.accounting.records_kept);
        wrong_checksums = wrong_checksums.saturating_add(source.crc_mismatch_count);
    }
    let file = SegmentFile::open(path, IoMode::Pread)?;
    let mut scanner = LogScanner::new(&file);
    let mut reader = RecordReader::default();
    let mut found = 0u64;
    let mut next = base;
    while let Some(scanned) = scanner.next_batch().map_err(|stop| stopped(stop, base))? {
        let header = scanned.header();
        if !scanned.crc_matches()? {
            wrong_checksums = wrong_checksums.checked_sub(1).ok_or(RecheckError::Damaged { base })?;
        }
        if header.last_offset < next {
            return Err(RecheckError::Order { base, offset: header.base_offset });
        }
        next = header.next_offset();
        found = found.saturating_add(records_of(&scanned, &mut reader, base)?);
    }
    if scanner.position() < file.end() {
        return Err(RecheckError::Damaged { base });
    }
    if found == expected { Ok(()) } else { Err(RecheckError::Records { base, expected, found }) }
}

/// Records of a batch: of a legacy message those inside, else as many as the header says, which the checksum covers.
fn records_of(scanned: &Scanned<'_>, reader: &mut RecordReader, base: Offset) -> Result<u64, RecheckError> {
    if let Some(count) = scanned.header().records_count {
        return Ok(u64::try_from(count).unwrap_or(0));
    }
    let mut count = 0u64;
    let read = reader.read(scanned, &mut |_: &Record<'_>| {
        count += 1;
        ControlFlow::Continue(())
    });
    match read {
        Ok(_) => Ok(count),
        Err(RecordsError::Read(error)) => Err(ReadError::io(Path::new(""), error).into()),
        Err(RecordsError::Format(_)) => Err(RecheckError::Damaged { base }),
    }
}

fn stopped(stop: ScanStop, base: Offset) -> RecheckError {
    match stop {
        ScanStop::Unreadable(error) => error.into(),
        ScanStop::SizeTooSmall { .. } | ScanStop::PastEnd { .. } => RecheckError::Damaged { base },
    }
}

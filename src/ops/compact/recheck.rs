//! New logs read once more before they take the places of the old ones: what they hold must be what the rounds have counted.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::path::Path;

use rayon::prelude::*;

use super::plan::{CompactPlan, PartitionCleaning};
use crate::format::record::Record;
use crate::format::{Offset, Position, len_u64};
use crate::logdir::names::{FileKind, FileName, FileSuffix};
use crate::logdir::{IoMode, LogScanner, ReadError, ScanStop, Scanned, SegmentFile};
use crate::ops::{RecordReader, RecordsError, first_sound_within};

/// Bytes of a log that a thread reads at a time.
const PART_BYTES: u64 = 16 * 1024 * 1024;

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
    /// It is shorter or longer.
    #[error("the new log of segment {base} has {found} bytes where {expected} were counted")]
    Size {
        /// The segment.
        base: Offset,
        /// What the rounds have counted.
        expected: u64,
        /// What is there.
        found: u64,
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
    let (mut size, mut expected, mut unlisted) = (0u64, 0u64, 0u64);
    let mut known = WrongChecksums::new();
    for source in sources {
        size = size.saturating_add(source.accounting.bytes_kept);
        expected = expected.saturating_add(source.accounting.records_kept);
        known.extend(source.crc_mismatches.iter().map(|wrong| (wrong.stored, wrong.computed)));
        let listed = len_u64(source.crc_mismatches.len());
        unlisted = unlisted.saturating_add(source.crc_mismatch_count.saturating_sub(listed));
    }
    let file = SegmentFile::open(path, IoMode::Pread)?;
    if file.size() != size {
        return Err(RecheckError::Size { base, expected: size, found: file.size() });
    }
    let walked = Walk { file: &file, base, known: &known }.in_parts(PART_BYTES)?;
    if walked.end < file.end() || walked.wrong_checksums > unlisted {
        return Err(RecheckError::Damaged { base });
    }
    let found = walked.records;
    if found == expected { Ok(()) } else { Err(RecheckError::Records { base, expected, found }) }
}

/// Checksums that were wrong before, as they are stored and as they should be: a cleaner copies such batches as they are.
type WrongChecksums = HashSet<(u32, u32)>;

/// What the batches of a range come to.
#[derive(Clone, Copy, Debug)]
struct Walked {
    start: Position,
    end: Position,
    first: Option<Offset>,
    next: Offset,
    records: u64,
    /// Wrong checksums that are not known.
    wrong_checksums: u64,
}

/// A log to be read.
#[derive(Clone, Copy)]
struct Walk<'w> {
    file: &'w SegmentFile,
    base: Offset,
    known: &'w WrongChecksums,
}

impl Walk<'_> {
    /// Reads all of it with all threads: each begins at the first batch that it finds in its part. Where something is wrong, or a
    /// part does not begin at the end of the one before, it may have begun inside a record: then one thread reads all of it.
    fn in_parts(&self, part_bytes: u64) -> Result<Walked, RecheckError> {
        let (file, base, end) = (self.file, self.base, self.file.end());
        let part = |number: u64| {
            let start = Position(number.saturating_mul(part_bytes));
            let until = start.advance(part_bytes).min(end);
            let first = if number == 0 { Some(start) } else { first_sound_within(file, base, start, until) };
            first.map(|first| self.over(first, until)).transpose()
        };
        let parts = (0..end.0.div_ceil(part_bytes)).into_par_iter().map(part).collect::<Result<Vec<_>, _>>();
        let mut parts = parts.unwrap_or_default().into_iter().flatten();
        let mut all = parts.next();
        for part in parts {
            let Some(walked) = all.as_mut().filter(|walked| walked.end == part.start) else { break };
            if let Some(offset) = part.first.filter(|first| *first < walked.next) {
                return Err(RecheckError::Order { base, offset });
            }
            (walked.end, walked.next) = (part.end, part.next);
            walked.records = walked.records.saturating_add(part.records);
            walked.wrong_checksums = walked.wrong_checksums.saturating_add(part.wrong_checksums);
        }
        match all.filter(|walked| walked.end >= end) {
            Some(walked) => Ok(walked),
            None => self.over(Position(0), end),
        }
    }

    /// Reads the batches that begin in a range.
    fn over(&self, start: Position, until: Position) -> Result<Walked, RecheckError> {
        let base = self.base;
        let mut scanner = LogScanner::over(self.file, start, self.file.end());
        let mut reader = RecordReader::default();
        let mut walked = Walked { start, end: start, first: None, next: base, records: 0, wrong_checksums: 0 };
        while scanner.position() < until {
            let Some(scanned) = scanner.next_batch().map_err(|stop| stopped(stop, base))? else { break };
            let header = scanned.header();
            let computed = scanned.computed_crc()?;
            if computed != header.crc && !self.known.contains(&(header.crc, computed)) {
                walked.wrong_checksums = walked.wrong_checksums.saturating_add(1);
            }
            if header.last_offset < walked.next {
                return Err(RecheckError::Order { base, offset: header.base_offset });
            }
            walked.first.get_or_insert(header.last_offset);
            walked.next = header.next_offset();
            walked.records = walked.records.saturating_add(records_of(&scanned, &mut reader, base)?);
            walked.end = header.end();
        }
        Ok(walked)
    }
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

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::format::encode::encode_legacy_message;

    /// Messages of magic 0 from an offset on, each with this value.
    fn log(from: i64, count: i64, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for offset in from..from + count {
            encode_legacy_message((Offset(offset), 0, 0), None, (None, Some(value)), &mut bytes).unwrap();
        }
        bytes
    }

    fn walked(bytes: &[u8], part_bytes: u64) -> Result<(u64, u64, i64), String> {
        let mut temporary = tempfile::NamedTempFile::new().unwrap();
        temporary.write_all(bytes).unwrap();
        let file = SegmentFile::open(temporary.path(), IoMode::Pread).unwrap();
        let walk = Walk { file: &file, base: Offset(0), known: &WrongChecksums::new() };
        let walked = walk.in_parts(part_bytes).map_err(|error| error.to_string())?;
        Ok((walked.end.0, walked.records, walked.next.0))
    }

    #[test]
    fn parts_add_up_to_the_whole_wherever_they_begin() {
        // Its values are logs themselves: a part may begin in one of them.
        let nested = log(0, 30, &log(0, 3, b"value"));
        let size = nested.len() as u64;
        for part_bytes in [1, 50, 100, 333, size, u64::MAX] {
            assert_eq!(walked(&nested, part_bytes), Ok((size, 30, 30)), "{part_bytes}");
        }
        assert_eq!(walked(&[], 100), Ok((0, 0, 0)));
    }

    #[test]
    fn what_does_not_follow_is_seen_at_the_seam_of_two_parts_as_well() {
        let (first, second) = (log(5, 1, b"value"), log(3, 1, b"value"));
        let size = first.len() as u64;
        for part_bytes in [size, 2 * size] {
            let found = walked(&[first.as_slice(), &second].concat(), part_bytes);
            assert_eq!(found, Err("in the new log of segment 0 offset 3 does not follow".to_owned()), "{part_bytes}");
        }
    }
}

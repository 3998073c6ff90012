//! Offset and time indexes, held against their log (`dumpIndex`, `dumpTimeIndex`).

use std::ops::ControlFlow;
use std::path::Path;

use super::event::{Event, IndexFault, IndexFile, Report, Trouble, of_path};
use super::undersized::{Undersized, undersized};
use super::walk::{IndexMode, Options};
use crate::format::offset_index::{OFFSET_INDEX_ENTRY, OffsetIndex, OffsetIndexEntry};
use crate::format::record::Record;
use crate::format::time_index::{TIME_INDEX_ENTRY, TimeIndex, TimeIndexEntry};
use crate::format::{BatchHeader, Offset, Position, len_u64};
use crate::logdir::{IoMode, LogScanner, ReadError, ScanStop, Scanned, SegmentFile};
use crate::ops::{RecordLimits, RecordReader};

type Visit<'v> = dyn FnMut(Event<'_>) -> ControlFlow<()> + 'v;

pub(super) fn dump_offset_index(
    path: &Path,
    base: Offset,
    options: &Options,
    report: &mut Report,
    visit: &mut Visit<'_>,
) -> ControlFlow<()> {
    let (log, bytes) = match open_log(path, options).and_then(|log| Ok((log, read(path, options)?))) {
        Ok(opened) => opened,
        Err(error) => return visit(Event::Trouble(Trouble::Unreadable(error))),
    };
    let index = OffsetIndex::new(base, &bytes);
    if index.is_empty() {
        return visit(Event::IndexEmpty);
    }
    if options.index_mode == IndexMode::SanityCheck {
        return visit(match offset_index_fault(&index, len_u64(bytes.len())) {
            Some(fault) => Event::Trouble(Trouble::IndexUnsound { index: IndexFile::Offset, fault }),
            None => Event::IndexSound,
        });
    }
    for (slot, entry) in index.iter().enumerate() {
        if slot > 0 && entry.offset == base {
            break;
        }
        match last_offset_at(&log, &entry, options) {
            Ok(Some(last)) if last != entry.offset => {
                if let Some(mismatches) = of_path(&mut report.offset_mismatches, path) {
                    mismatches.insert(entry.offset.0, last.0);
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => {
                let (offset, position) = (entry.offset, entry.stored_position());
                visit(Event::Trouble(Trouble::NoBatch { offset, position }))?;
            }
            Err(error) => visit(Event::Trouble(Trouble::Unreadable(error)))?,
        }
        if options.index_mode == IndexMode::Show {
            visit(Event::OffsetEntry(entry))?;
        }
    }
    ControlFlow::Continue(())
}

/// The last offset of the batch at an entry's position, if a whole one lies in the window there.
fn last_offset_at(log: &SegmentFile, entry: &OffsetIndexEntry, options: &Options) -> Result<Option<Offset>, ReadError> {
    if entry.stored_position() < 0 || entry.position > log.end() {
        return Ok(None);
    }
    let window_end = entry.position.advance(options.max_message_size);
    let window_end = window_end.min(log.end());
    match LogScanner::over(log, entry.position, window_end).next_batch() {
        Ok(batch) => Ok(batch.map(|batch| batch.header().last_offset)),
        Err(ScanStop::Unreadable(error)) => Err(error),
        Err(ScanStop::PastEnd { .. }) => Ok(None),
        Err(ScanStop::SizeTooSmall { position, found, .. }) => match undersized(log, position, found, window_end) {
            Undersized::Batch(header) => Ok(Some(header.last_offset)),
            Undersized::PastEnd | Undersized::Impossible => Ok(None),
        },
    }
}

pub(super) fn dump_time_index(
    path: &Path,
    base: Offset,
    options: &Options,
    report: &mut Report,
    visit: &mut Visit<'_>,
) -> ControlFlow<()> {
    let opened = open_log(path, options).and_then(|log| {
        let offset_index = read(&path.with_extension("index"), options)?;
        Ok((log, offset_index, read(path, options)?))
    });
    let (log, offset_index, bytes) = match opened {
        Ok(opened) => opened,
        Err(error) => return visit(Event::Trouble(Trouble::Unreadable(error))),
    };
    let index = TimeIndex::new(base, &bytes);
    if options.index_mode == IndexMode::SanityCheck {
        return visit(match time_index_fault(&index, len_u64(bytes.len())) {
            Some(fault) => Event::Trouble(Trouble::IndexUnsound { index: IndexFile::Time, fault }),
            None => Event::IndexSound,
        });
    }
    let mut check = TimeCheck {
        log: &log,
        offset_index: OffsetIndex::new(base, &offset_index),
        reader: RecordReader::new(RecordLimits::default()),
        path,
        report,
        previous: -1,
    };
    for (slot, entry) in index.iter().enumerate() {
        if slot > 0 && entry.offset == base {
            break;
        }
        if let Some(trouble) = check.see(&entry) {
            visit(Event::Trouble(trouble))?;
        }
        if options.index_mode == IndexMode::Show {
            visit(Event::TimeEntry(entry))?;
        }
    }
    ControlFlow::Continue(())
}

struct TimeCheck<'c> {
    log: &'c SegmentFile,
    offset_index: OffsetIndex<'c>,
    reader: RecordReader,
    path: &'c Path,
    report: &'c mut Report,
    previous: i64,
}

/// What the log says of an offset.
enum Answer {
    /// The batch that ends there, by its largest timestamp.
    Found(i64),
    /// No batch ends there: the last offset of the first that reaches it, or -1.
    NotFound(i64),
}

impl TimeCheck<'_> {
    fn see(&mut self, entry: &TimeIndexEntry) -> Option<Trouble> {
        let timestamp = entry.timestamp.0;
        let previous = std::mem::replace(&mut self.previous, timestamp);
        let answer = match self.ask_log(entry.offset) {
            Ok(answer) => answer,
            Err(trouble) => return Some(trouble),
        };
        match answer {
            Answer::NotFound(last) => note(&mut self.report.offsets_not_found, self.path, entry.offset.0, last),
            Answer::Found(largest) => {
                if largest != timestamp {
                    note(&mut self.report.time_mismatches, self.path, timestamp, largest);
                }
                if previous >= timestamp {
                    note(&mut self.report.time_disorder, self.path, timestamp, previous);
                }
            }
        }
        None
    }

    fn ask_log(&mut self, offset: Offset) -> Result<Answer, Trouble> {
        let start = self.offset_index.lookup(offset).map(|(_, entry)| entry);
        if let Some(entry) = start
            && (entry.stored_position() < 0 || entry.position > self.log.end())
        {
            return Err(Trouble::NoBatch { offset: entry.offset, position: entry.stored_position() });
        }
        let start = start.map_or(Position(0), |entry| entry.position);
        let mut scanner = LogScanner::over(self.log, start, self.log.end());
        loop {
            let header = match scanner.next_batch() {
                Ok(Some(batch)) if batch.header().last_offset == offset => {
                    let header = *batch.header();
                    return self.largest_timestamp(&header, &batch);
                }
                Ok(Some(batch)) => *batch.header(),
                Ok(None) | Err(ScanStop::PastEnd { .. }) => return Ok(Answer::NotFound(-1)),
                Err(ScanStop::SizeTooSmall { position, found, .. }) => {
                    match undersized(self.log, position, found, self.log.end()) {
                        Undersized::Batch(header) if header.last_offset != offset => {
                            scanner.jump(header.end());
                            header
                        }
                        Undersized::PastEnd => return Ok(Answer::NotFound(-1)),
                        _ => return Err(Trouble::SizeTooSmall { position, found }),
                    }
                }
                Err(ScanStop::Unreadable(error)) => return Err(Trouble::Unreadable(error)),
            };
            if header.last_offset > offset {
                return Ok(Answer::NotFound(header.last_offset.0));
            }
        }
    }

    fn largest_timestamp(&mut self, header: &BatchHeader, batch: &Scanned<'_>) -> Result<Answer, Trouble> {
        if header.is_legacy() && !header.is_legacy_wrapper() {
            // The message need not be whole for its time to be read.
            return Ok(Answer::Found(header.max_timestamp.map_or(-1, |time| time.0.max(-1))));
        }
        let mut largest = -1;
        let read = self.reader.read(batch, &mut |record: &Record<'_>| {
            largest = largest.max(record.timestamp.map_or(-1, |timestamp| timestamp.0));
            ControlFlow::Continue(())
        });
        match read {
            Ok(_) => Ok(Answer::Found(largest)),
            Err(error) => Err(Trouble::Records { position: header.position, error }),
        }
    }
}

fn note(list: &mut Vec<(std::path::PathBuf, Vec<(i64, i64)>)>, path: &Path, indexed: i64, found: i64) {
    if let Some(pairs) = of_path(list, path) {
        pairs.push((indexed, found));
    }
}

/// `OffsetIndex.sanityCheck`. A tail of zeros passes: its last entry reads as the base offset.
fn offset_index_fault(index: &OffsetIndex<'_>, size_bytes: u64) -> Option<IndexFault> {
    let base = index.base();
    let last = index.iter().next_back().map_or(base, |entry| entry.offset);
    if last < base {
        return Some(IndexFault::LastOffset { last, base });
    }
    (!size_bytes.is_multiple_of(len_u64(OFFSET_INDEX_ENTRY))).then_some(IndexFault::Length { size_bytes })
}

/// `TimeIndex.sanityCheck`. An empty file passes, a tail of zeros does not.
fn time_index_fault(index: &TimeIndex<'_>, size_bytes: u64) -> Option<IndexFault> {
    if let Some((last, first)) = index.last().zip(index.entry(0)) {
        if last.timestamp < first.timestamp {
            return Some(IndexFault::LastTimestamp { last: last.timestamp, first: first.timestamp });
        }
        let base = index.base();
        if last.offset < base {
            return Some(IndexFault::LastOffset { last: last.offset, base });
        }
    }
    (!size_bytes.is_multiple_of(len_u64(TIME_INDEX_ENTRY))).then_some(IndexFault::Length { size_bytes })
}

/// The log beside an index: the text before the first dot of its name, and `.log`.
fn open_log(index: &Path, options: &Options) -> Result<SegmentFile, ReadError> {
    let name = index.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split('.').next().unwrap_or_default();
    SegmentFile::open(&index.with_file_name(format!("{stem}.log")), options.io)
}

fn read(path: &Path, options: &Options) -> Result<Vec<u8>, ReadError> {
    SegmentFile::open(path, IoMode::Pread)?.read_whole(options.max_held)
}

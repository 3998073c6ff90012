//! The way from paths to bytes: segments in order, pieces to workers, bytes out in order.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rayon::ThreadPool;

use super::committed::CommittedView;
use super::event::{DumpSummary, Event, Source};
use super::files::FileShape;
use super::log::{Content, LogPieces, Piece, show_piece, start_position};
use super::{Amount, DumpOptions, Isolation};
use crate::format::{Offset, Position};
use crate::logdir::{IoMode, PartitionDir, ReadError, Segment, SegmentFile, TopicPartition};
use crate::ops::parallel::{Deliver, feed_in_order};
use crate::ops::{Progress, RecordReader};

/// Index files larger than this are not read to find a place.
const MOST_INDEX_BYTES: u64 = 64 * 1024 * 1024;

/// Bytes of text that a worker gathers before it hands them over.
const BLOCK_BYTES: usize = 256 * 1024;
/// Buffers larger than this, for the sake of one large record, are not kept.
const MOST_SPARE: usize = 1024 * 1024;

/// The largest file beside a log that is shown.
const MOST_SMALL_BYTES: u64 = 256 * 1024 * 1024;

/// Turns an event into bytes at the end of a buffer. Called on any thread.
pub type Output<'o> = dyn Fn(&Event<'_>, &mut Vec<u8>) + Sync + 'o;

/// Why a dump ended early.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// A file or directory could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The bytes could not be put out.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// A dump under way: partitions and files are given to it one after the other.
pub struct Dumper<'a> {
    options: &'a DumpOptions,
    pool: &'a ThreadPool,
    output: &'a Output<'a>,
    write: &'a mut dyn FnMut(&[u8]) -> io::Result<()>,
    progress: &'a dyn Progress,
    readers: Mutex<Vec<RecordReader>>,
    summary: DumpSummary,
    shown: u64,
}

impl std::fmt::Debug for Dumper<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dumper").field("options", self.options).field("summary", &self.summary).finish_non_exhaustive()
    }
}

/// What a worker sends back: of a piece that becomes large, blocks, and what it came to with the last.
struct Shown {
    bytes: Vec<u8>,
    summary: DumpSummary,
}

impl<'a> Dumper<'a> {
    /// A dump that gives its bytes to `write`, in order.
    pub fn new(
        options: &'a DumpOptions,
        pool: &'a ThreadPool,
        output: &'a Output<'a>,
        write: &'a mut dyn FnMut(&[u8]) -> io::Result<()>,
        progress: &'a dyn Progress,
    ) -> Self {
        Self {
            options,
            pool,
            output,
            write,
            progress,
            readers: Mutex::default(),
            summary: DumpSummary::default(),
            shown: 0,
        }
    }

    /// Whether the asked-for number has been shown.
    pub fn is_satisfied(&self) -> bool {
        matches!(self.options.amount, Amount::First(limit) if self.shown >= limit)
    }

    /// What all of it came to.
    pub fn summary(&self) -> DumpSummary {
        self.summary
    }

    /// Notes that something could not be read at all.
    pub fn note_unreadable(&mut self) {
        self.summary.is_incomplete = true;
    }

    /// Shows the log of a partition. A segment that cannot be opened ends it with an error, after what comes before it.
    pub fn partition(&mut self, partition: &PartitionDir) -> Result<(), DumpError> {
        let view = match self.options.isolation {
            Isolation::ReadUncommitted => None,
            Isolation::ReadCommitted => {
                let mut reader = self.take_reader();
                let view = CommittedView::of(partition, self.options.io, &mut reader);
                self.put_reader(reader);
                Some(Arc::new(view?))
            }
        };
        let log_dir = Arc::new(partition.log_dir().to_path_buf());
        let segments = partition.segments();
        let wanted = self.wanted(&segments);
        if let Amount::Last(count) = self.options.amount {
            return self.last_of(partition, &log_dir, &wanted, view.as_ref(), count);
        }
        if let Amount::First(limit) = self.options.amount {
            return self.first_of(partition, &log_dir, &wanted, view.as_ref(), limit);
        }
        let end = self.options.filter.offsets.end;
        let (options, progress) = (self.options, self.progress);
        self.in_order(|flight| {
            for segment in wanted {
                let Some((source, file, start)) = open_segment(partition, &log_dir, segment, options)? else {
                    continue;
                };
                progress.expect(file.size());
                for piece in LogPieces::new(&source, view.as_ref(), &file, start, end) {
                    flight(piece)?;
                }
            }
            Ok(())
        })
    }

    /// Shows one log file, or a snapshot of the metadata log, that was named itself.
    pub fn log_file(
        &mut self,
        path: PathBuf,
        topic_partition: Option<TopicPartition>,
        base_offset: Offset,
    ) -> Result<(), DumpError> {
        let file = Arc::new(SegmentFile::open(&path, self.options.io)?);
        self.progress.expect(file.size());
        let source = Arc::new(Source { log_dir: Arc::new(path.clone()), topic_partition, path, base_offset });
        let end = self.options.filter.offsets.end;
        self.show(LogPieces::new(&source, None, &file, Position(0), end))
    }

    /// Shows the entries of a file that is no log and was named itself.
    pub fn other_file(
        &mut self,
        path: PathBuf,
        topic_partition: Option<TopicPartition>,
        shape: FileShape,
    ) -> Result<(), DumpError> {
        let bytes = SegmentFile::open(&path, IoMode::Pread)?.read_whole(MOST_SMALL_BYTES)?;
        let source = Source { log_dir: Arc::new(path.clone()), topic_partition, path, base_offset: Offset(0) };
        self.show([Piece { source: Arc::new(source), view: None, content: Content::File(shape, bytes) }])
    }

    fn show(&mut self, pieces: impl IntoIterator<Item = Piece>) -> Result<(), DumpError> {
        match self.options.amount {
            Amount::First(limit) => self.show_first(pieces, limit),
            Amount::Last(count) => {
                let last = self.last_lines(pieces, count);
                self.put_lines(last)
            }
            Amount::All => self.in_order(|flight| {
                for piece in pieces {
                    flight(piece)?;
                }
                Ok(())
            }),
        }
    }

    /// The segments that can hold an offset that is asked for.
    fn wanted<'s>(&self, segments: &'s [Segment]) -> Vec<&'s Segment> {
        let range = self.options.filter.offsets;
        let next_bases = segments.iter().skip(1).map(|segment| Some(segment.base_offset)).chain([None]);
        segments
            .iter()
            .zip(next_bases)
            .filter(|(segment, next)| {
                let ends_before = range.start.is_some_and(|start| next.is_some_and(|next| next <= start));
                segment.log.is_some() && !ends_before && range.end.is_none_or(|end| segment.base_offset < end)
            })
            .map(|(segment, _)| segment)
            .collect()
    }

    fn first_of(
        &mut self,
        partition: &PartitionDir,
        log_dir: &Arc<PathBuf>,
        wanted: &[&Segment],
        view: Option<&Arc<CommittedView>>,
        limit: u64,
    ) -> Result<(), DumpError> {
        let end = self.options.filter.offsets.end;
        for segment in wanted {
            if self.is_satisfied() {
                break;
            }
            let Some((source, file, start)) = open_segment(partition, log_dir, segment, self.options)? else {
                continue;
            };
            self.progress.expect(file.size());
            self.show_first(LogPieces::new(&source, view, &file, start, end), limit)?;
        }
        Ok(())
    }

    fn show_first(&mut self, pieces: impl IntoIterator<Item = Piece>, limit: u64) -> Result<(), DumpError> {
        let mut reader = self.take_reader();
        let mut bytes = Vec::new();
        for piece in pieces {
            bytes.clear();
            let (output, mut shown) = (self.output, self.shown);
            let summary = show_piece(&piece, self.options, &mut reader, &mut |event| {
                output(event, &mut bytes);
                shown += u64::from(!matches!(event, Event::Damage(_)));
                if shown >= limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            self.shown = shown;
            self.summary = self.summary.merge(summary);
            self.progress.advance(summary.bytes);
            (self.write)(&bytes)?;
            if self.is_satisfied() {
                break;
            }
        }
        self.put_reader(reader);
        Ok(())
    }

    /// Keeps every worker busy with pieces ahead of the one whose bytes are due. `feed` is given a function that takes a piece.
    fn in_order(
        &mut self,
        feed: impl FnOnce(&mut dyn FnMut(Piece) -> Result<(), DumpError>) -> Result<(), DumpError>,
    ) -> Result<(), DumpError> {
        let (options, output, readers) = (self.options, self.output, &self.readers);
        let (write, progress, total) = (&mut *self.write, self.progress, &mut self.summary);
        let spare: Mutex<Vec<Vec<u8>>> = Mutex::default();
        let work =
            |piece: Piece, send: Deliver<'_, Shown>| show_apart(&piece, options, output, (readers, &spare), send);
        feed_in_order(self.pool, feed, &work, |shown| {
            *total = total.merge(shown.summary);
            progress.advance(shown.summary.bytes);
            write(&shown.bytes)?;
            if shown.bytes.capacity() <= MOST_SPARE {
                put(&spare, shown.bytes);
            }
            Ok(())
        })
    }

    /// Shows the last so many of a partition: segments from the end until there are enough.
    fn last_of(
        &mut self,
        partition: &PartitionDir,
        log_dir: &Arc<PathBuf>,
        wanted: &[&Segment],
        view: Option<&Arc<CommittedView>>,
        count: u64,
    ) -> Result<(), DumpError> {
        let mut last: VecDeque<Vec<u8>> = VecDeque::new();
        for segment in wanted.iter().rev() {
            let missing = count.saturating_sub(last.len() as u64);
            if missing == 0 {
                break;
            }
            let Some((source, file, start)) = open_segment(partition, log_dir, segment, self.options)? else {
                continue;
            };
            self.progress.expect(file.size());
            let end = self.options.filter.offsets.end;
            let mut lines = self.last_lines(LogPieces::new(&source, view, &file, start, end), missing);
            lines.append(&mut last);
            last = lines;
        }
        self.put_lines(last)
    }

    fn last_lines(&mut self, pieces: impl IntoIterator<Item = Piece>, count: u64) -> VecDeque<Vec<u8>> {
        let mut reader = self.take_reader();
        let mut lines: VecDeque<Vec<u8>> = VecDeque::new();
        for piece in pieces {
            let output = self.output;
            let summary = show_piece(&piece, self.options, &mut reader, &mut |event| {
                let mut line =
                    if lines.len() as u64 >= count { lines.pop_front().unwrap_or_default() } else { Vec::new() };
                line.clear();
                output(event, &mut line);
                lines.push_back(line);
                ControlFlow::Continue(())
            });
            self.progress.advance(summary.bytes);
            self.summary = self.summary.merge(DumpSummary { records: 0, ..summary });
        }
        self.put_reader(reader);
        lines
    }

    fn put_lines(&mut self, lines: VecDeque<Vec<u8>>) -> Result<(), DumpError> {
        self.summary.records += lines.len() as u64;
        for line in lines {
            (self.write)(&line)?;
        }
        Ok(())
    }

    fn take_reader(&self) -> RecordReader {
        take(&self.readers).unwrap_or_else(|| RecordReader::new(self.options.limits))
    }

    fn put_reader(&self, reader: RecordReader) {
        put(&self.readers, reader);
    }
}

/// Where events of a segment say that they come from, its log file, and where to begin in it.
type Opened = (Arc<Source>, Arc<SegmentFile>, Position);

fn open_segment(
    partition: &PartitionDir,
    log_dir: &Arc<PathBuf>,
    segment: &Segment,
    options: &DumpOptions,
) -> Result<Option<Opened>, DumpError> {
    let Some(log) = &segment.log else { return Ok(None) };
    let file = partition.open_file(&log.name, options.io)?;
    let from = options.filter.offsets.start.filter(|&from| from > segment.base_offset);
    let start = match (from, &segment.offset_index) {
        (Some(from), Some(index)) => {
            // An index that cannot be read only costs time.
            let bytes = partition.read_small(&index.name, MOST_INDEX_BYTES).ok().flatten().unwrap_or_default();
            start_position(&file, &bytes, segment.base_offset, from)
        }
        _ => Position(0),
    };
    let source = Source {
        log_dir: Arc::clone(log_dir),
        topic_partition: Some(partition.topic_partition().clone()),
        path: partition.relative(OsStr::new(&log.name)),
        base_offset: segment.base_offset,
    };
    Ok(Some((Arc::new(source), Arc::new(file), start)))
}

type Kept<'k> = (&'k Mutex<Vec<RecordReader>>, &'k Mutex<Vec<Vec<u8>>>);

fn show_apart(
    piece: &Piece,
    options: &DumpOptions,
    output: &Output<'_>,
    (readers, spare): Kept<'_>,
    send: Deliver<'_, Shown>,
) {
    let mut reader = take(readers).unwrap_or_else(|| RecordReader::new(options.limits));
    let empty = || {
        let mut bytes = take(spare).unwrap_or_default();
        bytes.clear();
        bytes
    };
    let mut bytes = empty();
    let summary = show_piece(piece, options, &mut reader, &mut |event| {
        output(event, &mut bytes);
        if bytes.len() < BLOCK_BYTES {
            return ControlFlow::Continue(());
        }
        let bytes = std::mem::replace(&mut bytes, empty());
        send(Shown { bytes, summary: DumpSummary::default() })
    });
    put(readers, reader);
    // Nobody listens any more once the output has failed.
    let _ = send(Shown { bytes, summary });
}

/// Takes one of the kept things. A poisoned lock only means that none is taken.
fn take<T>(kept: &Mutex<Vec<T>>) -> Option<T> {
    kept.lock().ok()?.pop()
}

fn put<T>(kept: &Mutex<Vec<T>>, thing: T) {
    if let Ok(mut kept) = kept.lock() {
        kept.push(thing);
    }
}

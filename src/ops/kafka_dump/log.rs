//! A log file or a KRaft snapshot, batch after batch (`FileLogInputStream`, `dumpLog`).

//!
//! The frames are followed on one thread, which hands runs of batches to the others; what those make of them is taken in order.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;

use super::event::{Event, Report, Trouble};
use super::pages::Pages;
use super::steps::{FileSteps, RunSteps};
use super::undersized::{Undersized, stored_sizes, undersized};
use super::walk::{Depth, Options};
use crate::format::compression::Codec;
use crate::format::resync::ResyncBounds;
use crate::format::{BatchHeader, LOG_OVERHEAD, Offset, Position, len_u64};
use crate::logdir::{LogScanner, Resync, ScanStop, Scanned, SegmentFile};
use crate::ops::parallel::{Deliver, feed_in_order};
use crate::ops::{RecordLimits, RecordReader};

/// A run ends when it has so many bytes.
const RUN_BYTES: u64 = 1024 * 1024;

type Visit<'v> = dyn FnMut(Event<'_>) -> ControlFlow<()> + 'v;

/// What is seen apart from the rest of the file.
enum Piece {
    /// Frames that follow each other.
    Run { start: Position, end: Position },
    /// A frame too small for its header.
    Undersized(BatchHeader),
    /// Something between frames.
    Trouble(Trouble),
    /// Bytes after the last frame.
    TrailingBytes(u64),
}

/// What a worker sends back: of a run full pages, and with the last one the rest.
struct Part<P> {
    page: P,
    steps: RunSteps,
    /// Whether the walk ends here, whatever follows.
    is_last: bool,
}

/// Why nothing more is looked at.
enum Ended {
    /// The file cannot be read further.
    File,
    /// Nobody takes pages any more.
    Taker,
}

/// Walks the file; the heading has been seen.
pub(super) fn dump<P: Default + Send>(
    path: &Path,
    options: &Options,
    report: &mut Report,
    pages: &mut Pages<'_, P>,
) -> ControlFlow<()> {
    let file = match SegmentFile::open(path, options.io) {
        Ok(file) => file,
        Err(error) => return pages.gather(|visit| visit(Event::Trouble(Trouble::Unreadable(error)))),
    };
    let (pool, see, take) = (pages.pool, pages.see, &mut *pages.take);
    let walk = Walk { file: &file, depth: options.depth, readers: Mutex::default(), see };
    let mut steps = FileSteps::new(path, report);
    let work = |piece: Piece, deliver: Deliver<'_, Part<P>>| walk.piece(piece, deliver);
    let outcome = feed_in_order(
        pool,
        |run| feed(&file, options, run),
        &work,
        |part| {
            steps.follow(&part.steps);
            match take(part.page) {
                ControlFlow::Break(()) => Err(Ended::Taker),
                ControlFlow::Continue(()) if part.is_last => Err(Ended::File),
                ControlFlow::Continue(()) => Ok(()),
            }
        },
    );
    match outcome {
        Err(Ended::Taker) => ControlFlow::Break(()),
        Ok(()) | Err(Ended::File) => ControlFlow::Continue(()),
    }
}

/// Follows the frames from the start of the file as far as Kafka's tool does, and behind what it does not get past.
fn feed(file: &SegmentFile, options: &Options, run: &mut dyn FnMut(Piece) -> Result<(), Ended>) -> Result<(), Ended> {
    let end = options.log_limit().map_or(file.end(), |limit| Position(limit.min(file.size())));
    let mut scanner = LogScanner::over(file, Position(0), end);
    loop {
        let start = scanner.position();
        let passed = pass_run(&mut scanner, start);
        if scanner.position() > start {
            run(Piece::Run { start, end: scanner.position() })?;
        }
        let (position, found) = match passed {
            Ok(ControlFlow::Continue(())) => continue,
            Ok(ControlFlow::Break(())) | Err(ScanStop::PastEnd { .. }) => break,
            Err(ScanStop::Unreadable(error)) => return run(Piece::Trouble(Trouble::Unreadable(error))),
            Err(ScanStop::SizeTooSmall { position, found, .. }) => (position, found),
        };
        match undersized(file, position, found, end) {
            Undersized::Batch(header) => {
                run(Piece::Undersized(header))?;
                scanner.jump(header.end());
                continue;
            }
            Undersized::PastEnd => break,
            Undersized::Impossible => run(Piece::Trouble(Trouble::SizeTooSmall { position, found }))?,
        }
        let bounds = ResyncBounds { file_end: end, least_offset: Offset(0), most_offset: Offset(i64::MAX) };
        match scanner.find_batch(position.advance(1), &bounds) {
            Ok(Resync::Found(to)) => {
                run(Piece::Trouble(Trouble::Skipped { from: position, to }))?;
                scanner.jump(to);
            }
            Ok(Resync::Nothing | Resync::GaveUp(_)) => return Ok(()),
            Err(error) => return run(Piece::Trouble(Trouble::Unreadable(error))),
        }
    }
    let trailing = end.since(scanner.position());
    if trailing > 0 && options.log_limit().is_none() { run(Piece::TrailingBytes(trailing)) } else { Ok(()) }
}

/// Passes over the frames of a run; breaks at the end.
fn pass_run(scanner: &mut LogScanner<'_>, start: Position) -> Result<ControlFlow<()>, ScanStop> {
    while scanner.position().since(start) < RUN_BYTES {
        if scanner.next_header()?.is_none() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

struct Walk<'w, P> {
    file: &'w SegmentFile,
    depth: Depth,
    readers: Mutex<Vec<RecordReader>>,
    see: &'w (dyn Fn(&mut P, &Event<'_>) -> ControlFlow<()> + Sync),
}

impl<P: Default> Walk<'_, P> {
    fn piece(&self, piece: Piece, deliver: Deliver<'_, Part<P>>) {
        let mut page = P::default();
        let mut steps = RunSteps::default();
        let mut visit = |event: Event<'_>| match (self.see)(&mut page, &event) {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(()) => {
                let page = std::mem::take(&mut page);
                deliver(Part { page, steps: RunSteps::default(), is_last: false })
            }
        };
        let mut is_last = false;
        // A break means that nobody listens any more.
        let _ = match piece {
            Piece::Run { start, end } => self.run((start, end), &mut steps, &mut is_last, &mut visit),
            Piece::Undersized(header) => see_undersized(&header, self.depth, &mut visit),
            Piece::Trouble(trouble) => visit(Event::Trouble(trouble)),
            Piece::TrailingBytes(count) => visit(Event::TrailingBytes(count)),
        };
        let _ = deliver(Part { page, steps, is_last });
    }

    fn run(
        &self,
        (start, end): (Position, Position),
        steps: &mut RunSteps,
        is_last: &mut bool,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        let kept = self.readers.lock().ok().and_then(|mut readers| readers.pop());
        let mut reader = kept.unwrap_or_else(|| RecordReader::new(RecordLimits::default()));
        let mut scanner = LogScanner::over(self.file, start, end);
        loop {
            match scanner.next_batch() {
                Ok(Some(batch)) => self.see_batch(&batch, &mut reader, steps, visit)?,
                Err(ScanStop::Unreadable(error)) => {
                    *is_last = true;
                    visit(Event::Trouble(Trouble::Unreadable(error)))?;
                    break;
                }
                // The frames were there a moment ago; a file that is changed is shown as far as it goes.
                Ok(None) | Err(_) => break,
            }
        }
        if let Ok(mut readers) = self.readers.lock() {
            readers.push(reader);
        }
        ControlFlow::Continue(())
    }

    fn see_batch(
        &self,
        batch: &Scanned<'_>,
        reader: &mut RecordReader,
        steps: &mut RunSteps,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        let header = *batch.header();
        let crc_matches = match batch.crc_matches() {
            Ok(matches) => matches,
            Err(error) => return visit(Event::Trouble(Trouble::Unreadable(error))),
        };
        visit(Event::Batch { header: &header, crc_matches })?;
        let codec_id = header.attributes.codec_id();
        if Codec::from_id(codec_id).is_none() || header.magic < 0 {
            let trouble = Trouble::BatchUnknown { position: header.position, magic: header.magic, codec_id };
            return visit(Event::Trouble(trouble));
        }
        match self.depth {
            Depth::Batches => ControlFlow::Continue(()),
            Depth::Records => see_records(batch, &header, reader, steps, visit),
        }
    }
}

fn see_records(
    batch: &Scanned<'_>,
    header: &BatchHeader,
    reader: &mut RecordReader,
    steps: &mut RunSteps,
    visit: &mut Visit<'_>,
) -> ControlFlow<()> {
    let mut flow = ControlFlow::Continue(());
    let read = reader.read_stored(batch, |record, message| {
        steps.see(record.offset);
        flow = visit(Event::Record { header, record, message });
        flow
    });
    flow?;
    let Err(error) = read else { return ControlFlow::Continue(()) };
    if let Scanned::Whole(batch) = batch
        && header.is_legacy()
        && !header.is_legacy_wrapper()
        && let Some(sizes) = stored_sizes(batch.bytes(), header.magic)
    {
        steps.see(header.last_offset);
        visit(Event::CutMessage { header, sizes })?;
    }
    visit(Event::Trouble(Trouble::Records { position: header.position, error }))
}

fn see_undersized(header: &BatchHeader, depth: Depth, visit: &mut Visit<'_>) -> ControlFlow<()> {
    visit(Event::Batch { header, crc_matches: false })?;
    if depth == Depth::Batches {
        return ControlFlow::Continue(());
    }
    let found = i32::try_from(header.size_bytes.saturating_sub(len_u64(LOG_OVERHEAD))).unwrap_or(i32::MAX);
    visit(Event::Trouble(Trouble::SizeTooSmall { position: header.position, found }))
}

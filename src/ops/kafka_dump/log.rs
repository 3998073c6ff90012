//! A log file or a KRaft snapshot, batch after batch (`FileLogInputStream`, `dumpLog`).

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::event::{Event, MOST_STEPS, Report, Trouble, of_path};
use super::undersized::{Undersized, stored_sizes, undersized};
use super::walk::{Depth, Options};
use crate::format::compression::Codec;
use crate::format::resync::ResyncBounds;
use crate::format::{BatchHeader, LOG_OVERHEAD, Offset, Position, len_u64};
use crate::logdir::{LogScanner, Resync, ScanStop, Scanned, SegmentFile};
use crate::ops::{RecordLimits, RecordReader};

type Visit<'v> = dyn FnMut(Event<'_>) -> ControlFlow<()> + 'v;

/// Walks the file; the heading has been seen.
pub(super) fn dump(path: &Path, options: &Options, report: &mut Report, visit: &mut Visit<'_>) -> ControlFlow<()> {
    let file = match SegmentFile::open(path, options.io) {
        Ok(file) => file,
        Err(error) => return visit(Event::Trouble(Trouble::Unreadable(error))),
    };
    let end = options.log_limit().map_or(file.end(), |limit| Position(limit.min(file.size())));
    let mut scanner = LogScanner::over(&file, Position(0), end);
    let mut walk = Walk { reader: RecordReader::new(RecordLimits::default()), last_offset: -1, path, report };
    loop {
        match scanner.next_batch() {
            Ok(Some(batch)) => walk.see_batch(&batch, options.depth, visit)?,
            Ok(None) | Err(ScanStop::PastEnd { .. }) => break,
            Err(ScanStop::Unreadable(error)) => return visit(Event::Trouble(Trouble::Unreadable(error))),
            Err(ScanStop::SizeTooSmall { position, found, .. }) => {
                match undersized(&file, position, found, end) {
                    Undersized::Batch(header) => {
                        see_undersized(&header, options.depth, visit)?;
                        scanner.jump(header.end());
                        continue;
                    }
                    Undersized::PastEnd => break,
                    Undersized::Impossible => {}
                }
                visit(Event::Trouble(Trouble::SizeTooSmall { position, found }))?;
                let bounds = ResyncBounds { file_end: end, least_offset: Offset(0), most_offset: Offset(i64::MAX) };
                match scanner.find_batch(position.advance(1), &bounds) {
                    Ok(Resync::Found(to)) => {
                        visit(Event::Trouble(Trouble::Skipped { from: position, to }))?;
                        scanner.jump(to);
                    }
                    Ok(Resync::Nothing | Resync::GaveUp(_)) => return ControlFlow::Continue(()),
                    Err(error) => return visit(Event::Trouble(Trouble::Unreadable(error))),
                }
            }
        }
    }
    let trailing = end.since(scanner.position());
    if trailing > 0 && options.log_limit().is_none() {
        visit(Event::TrailingBytes(trailing))?;
    }
    ControlFlow::Continue(())
}

struct Walk<'w> {
    reader: RecordReader,
    last_offset: i64,
    path: &'w Path,
    report: &'w mut Report,
}

impl Walk<'_> {
    fn see_batch(&mut self, batch: &Scanned<'_>, depth: Depth, visit: &mut Visit<'_>) -> ControlFlow<()> {
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
        match depth {
            Depth::Batches => ControlFlow::Continue(()),
            Depth::Records => self.see_records(batch, &header, visit),
        }
    }

    fn see_records(&mut self, batch: &Scanned<'_>, header: &BatchHeader, visit: &mut Visit<'_>) -> ControlFlow<()> {
        let mut steps = Steps {
            last_offset: &mut self.last_offset,
            path: self.path,
            list: &mut self.report.offset_steps,
            left_out: &mut self.report.steps_left_out,
        };
        let mut flow = ControlFlow::Continue(());
        let read = self.reader.read_stored(batch, |record, message| {
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
}

fn see_undersized(header: &BatchHeader, depth: Depth, visit: &mut Visit<'_>) -> ControlFlow<()> {
    visit(Event::Batch { header, crc_matches: false })?;
    if depth == Depth::Batches {
        return ControlFlow::Continue(());
    }
    let found = i32::try_from(header.size_bytes.saturating_sub(len_u64(LOG_OVERHEAD))).unwrap_or(i32::MAX);
    visit(Event::Trouble(Trouble::SizeTooSmall { position: header.position, found }))
}

/// The offsets that do not follow the one before.
struct Steps<'s> {
    last_offset: &'s mut i64,
    path: &'s Path,
    list: &'s mut Vec<(PathBuf, BTreeMap<i64, i64>)>,
    left_out: &'s mut u64,
}

impl Steps<'_> {
    fn see(&mut self, offset: Offset) {
        if offset.0 != self.last_offset.wrapping_add(1)
            && let Some(steps) = of_path(self.list, self.path)
        {
            if steps.len() < MOST_STEPS {
                steps.insert(*self.last_offset, offset.0);
            } else {
                *self.left_out = self.left_out.saturating_add(1);
            }
        }
        *self.last_offset = offset.0;
    }
}

//! The batches of a log file one after the other, as the cleaner meets them: believed as they are, checksums and all, but dead of
//! whatever is no batch (`Cleaner.growBuffersOrFail`, `ByteBufferLogInputStream`).

use std::ops::ControlFlow;

use super::failure::{CleanFailure, UncleanableKind};
use super::parts::{Part, TakeIn, cut, run_parts};
use super::segments::{LogSegment, MOST_INDEX_BYTES, Source, segment_file};
use super::verdict::Verdict;
use crate::format::offset_index::OffsetIndex;
use crate::format::{Offset, Position};
use crate::logdir::names::FileKind;
use crate::logdir::{IoMode, LogScanner, ScanStop, Scanned};
use crate::ops::{PartitionImage, Progress};

/// Bytes after which progress is told.
const STEP_BYTES: u64 = 4 * 1024 * 1024;

/// Where log files are read from, and who is told.
#[derive(Clone, Copy)]
pub(super) struct Reading<'r> {
    pub(super) image: &'r PartitionImage,
    pub(super) io: IoMode,
    pub(super) progress: &'r dyn Progress,
    /// Bytes that a thread gets at a time.
    pub(super) part_bytes: u64,
}

impl std::fmt::Debug for Reading<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reading").field("io", &self.io).finish_non_exhaustive()
    }
}

impl Reading<'_> {
    /// Walks a log file from `start` on. Each batch comes with the verdict of earlier rounds, if there were any; `start` must then
    /// be 0.
    pub(super) fn walk(
        &self,
        source: &Source,
        start: Position,
        mut visit: impl FnMut(&Scanned<'_>, Option<Verdict<'_>>) -> Result<ControlFlow<()>, CleanFailure>,
    ) -> Result<ControlFlow<()>, CleanFailure> {
        let in_segment = |failure: CleanFailure| failure.in_segment(source.base);
        let file = self.image.open(&segment_file(source.base, FileKind::Log), self.io)?;
        let mut verdicts = source.verdicts.as_ref().map(|verdicts| verdicts.reader());
        let mut scanner = LogScanner::over(&file, start, file.end());
        let mut told = start;
        loop {
            let at = scanner.position();
            if at.since(told) >= STEP_BYTES {
                self.tell(at.since(told))?;
                told = at;
            }
            let Some(scanned) = scanner.next_batch().map_err(|stop| in_segment(stop_failure(stop)))? else { break };
            check_magic(&scanned, at).map_err(in_segment)?;
            let prior = verdicts.as_mut().map(|verdicts| verdicts.next().unwrap_or(Verdict::Copy));
            if visit(&scanned, prior).map_err(in_segment)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        self.tell(scanner.position().since(told))?;
        if scanner.position() < file.end() {
            return Err(in_segment(UncleanableKind::CutBatch.at(scanner.position())));
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Walks the batches of a range of a log file that no round has touched; `from` must be a batch's.
    pub(super) fn walk_range(
        &self,
        source: &Source,
        from: Position,
        until: Position,
        mut visit: impl FnMut(&Scanned<'_>) -> Result<ControlFlow<()>, CleanFailure>,
    ) -> Result<ControlFlow<()>, CleanFailure> {
        let file = self.image.open(&segment_file(source.base, FileKind::Log), self.io)?;
        let mut scanner = LogScanner::over(&file, from, file.end());
        while scanner.position() < until {
            let at = scanner.position();
            let scanned = scanner.next_batch().map_err(stop_failure)?.ok_or(UncleanableKind::CutBatch.at(at))?;
            check_magic(&scanned, at)?;
            if visit(&scanned)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Works through a log file that no round has touched, by several threads.
    pub(super) fn run<W: Send, C: TakeIn + Send>(
        &self,
        source: &Source,
        start: Position,
        new_worker: impl Fn() -> W,
        work: impl Fn(&mut W, &Scanned<'_>) -> C::Item + Sync,
        consumer: &mut C,
    ) -> Result<ControlFlow<()>, CleanFailure> {
        let file = self.image.open(&segment_file(source.base, FileKind::Log), self.io)?;
        let index = self.image.read_small(&segment_file(source.base, FileKind::OffsetIndex), MOST_INDEX_BYTES)?;
        let index = index.unwrap_or_default();
        let whole = Part { start, end: file.end() };
        let parts = cut(whole, self.part_bytes, OffsetIndex::new(source.base, &index).iter());
        let tell = |bytes| self.tell(bytes);
        run_parts(&file, &parts, new_worker, work, consumer, &tell)
    }

    fn tell(&self, bytes: u64) -> Result<(), CleanFailure> {
        self.progress.advance(bytes);
        if self.progress.is_cancelled() { Err(CleanFailure::Cancelled) } else { Ok(()) }
    }

    /// `LogSegment.readNextOffset`: the offset after the segment's last batch; its base where there is none.
    pub(super) fn next_offset(&self, segment: &LogSegment) -> Result<Offset, CleanFailure> {
        if let Some(next) = segment.next_offset {
            return Ok(next);
        }
        let file = self.image.open(&segment_file(segment.base, FileKind::Log), self.io)?;
        let start = segment.last_indexed_position(self.image)?;
        let mut scanner = LogScanner::over(&file, start, file.end());
        let mut next = segment.base;
        while let Ok(Some(scanned)) = scanner.next_batch() {
            next = scanned.header().next_offset();
        }
        Ok(next)
    }
}

/// The cleaner's reader knows no other magic.
pub(super) fn check_magic(scanned: &Scanned<'_>, at: Position) -> Result<(), CleanFailure> {
    let magic = scanned.header().magic;
    if (0..=2).contains(&magic) { Ok(()) } else { Err(UncleanableKind::MagicUnknown(magic).at(at)) }
}

pub(super) fn stop_failure(stop: ScanStop) -> CleanFailure {
    match stop {
        ScanStop::SizeTooSmall { position, .. } => UncleanableKind::SizeInvalid.at(position),
        ScanStop::PastEnd { position, .. } => UncleanableKind::CutBatch.at(position),
        ScanStop::Unreadable(error) => CleanFailure::Read(error),
    }
}

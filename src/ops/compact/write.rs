//! Cleaned logs, written out of the logs on the disk and the verdicts on their batches.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rayon::prelude::*;

use super::failure::CleanFailure;
use super::parts::Part;
use super::rewrite::{Rewriter, Shape, write_header_only};
use super::segments::{Source, segment_file};
use super::verdict::{Verdict, Verdicts};
use super::view::BatchView;
use super::walk::stop_failure;
use crate::format::{Position, len_u64};
use crate::logdir::names::FileKind;
use crate::logdir::{IoMode, LogScanner, Scanned, SegmentFile};
use crate::ops::broker::cleaner_rules::LegacyOutput;
use crate::ops::{PartitionImage, Recipe, RecordReader};

/// Parts that are in work at a time, for each thread.
const PARTS_PER_THREAD: usize = 2;

/// How a cleaned log is made.
#[derive(Debug)]
pub(super) struct CleanedFile {
    /// The directory that its sources are in.
    pub(super) image: Arc<PartitionImage>,
    /// The logs that it is made of, with verdicts on all of them.
    pub(super) sources: Vec<Source>,
    /// What becomes of legacy messages.
    pub(super) legacy: LegacyOutput,
    /// How logs are read.
    pub(super) io: IoMode,
    /// Threads to work with; `None`: rayon's own.
    pub(super) pool: Option<Arc<rayon::ThreadPool>>,
}

impl CleanedFile {
    /// The recipe for its bytes, of which the rounds have counted this many.
    pub(super) fn into_recipe(self, size_bytes: u64) -> Recipe {
        Recipe::new(size_bytes, move |out| self.write_to(out, size_bytes))
    }

    fn write_to(&self, out: &mut dyn Write, size_bytes: u64) -> io::Result<()> {
        let mut written = 0u64;
        for source in &self.sources {
            written = written.saturating_add(self.write_source(source, out)?);
        }
        // The source has changed since it was planned.
        if written == size_bytes { Ok(()) } else { Err(io::Error::from(io::ErrorKind::InvalidData)) }
    }

    fn write_source(&self, source: &Source, out: &mut dyn Write) -> io::Result<u64> {
        let name = segment_file(source.base, FileKind::Log);
        let file = self.image.open(&name, self.io).map_err(io::Error::other)?;
        let none = Verdicts::default();
        let verdicts = source.verdicts.as_deref().unwrap_or(&none);
        let threads = self.pool.as_ref().map_or_else(rayon::current_num_threads, |pool| pool.current_num_threads());
        let parts = parts_of(verdicts, file.end());
        let mut chunks = parts.chunks(threads.max(1) * PARTS_PER_THREAD);
        let making = Making { file: &file, verdicts, legacy: self.legacy };
        let mut workers: Vec<PartWriter> = Vec::new();
        let mut made = chunks.next().map(|parts| making.make(parts, &mut workers)).unwrap_or_default();
        let mut written = 0u64;
        // While one thread hands on what is made, the others make what follows.
        while !made.is_empty() {
            let (current, next) = (std::mem::take(&mut made), chunks.next());
            let (following, handed_on) = beside(
                self.pool.as_deref(),
                || next.map(|parts| making.make(parts, &mut workers)).unwrap_or_default(),
                || hand_on(&file, current, out, &mut written),
            );
            let mut spare = handed_on?.into_iter();
            for worker in &mut workers {
                worker.spare = spare.next();
            }
            made = following;
        }
        Ok(written)
    }
}

/// Lets the pool do one thing while this thread does another.
fn beside<R: Send + Default, H>(
    pool: Option<&rayon::ThreadPool>,
    there: impl FnOnce() -> R + Send,
    here: impl FnOnce() -> H,
) -> (R, H) {
    let mut result = R::default();
    let slot = &mut result;
    let done = match pool {
        Some(pool) => pool.in_place_scope(|scope| {
            scope.spawn(|_| *slot = there());
            here()
        }),
        None => rayon::in_place_scope(|scope| {
            scope.spawn(|_| *slot = there());
            here()
        }),
    };
    (result, done)
}

/// A log file in parts from which verdicts can be read.
fn parts_of(verdicts: &Verdicts, end: Position) -> Vec<Part> {
    let starts: Vec<Position> = std::iter::once(Position(0)).chain(verdicts.marks()).collect();
    let ends = starts.iter().skip(1).copied().chain([end]);
    starts.iter().zip(ends).map(|(start, end)| Part { start: *start, end }).collect()
}

/// What has been made of a part.
type Made = Result<Vec<Piece>, CleanFailure>;

/// Bytes of a cleaned log.
enum Piece {
    /// These.
    Bytes(Vec<u8>),
    /// Those of a range of the source.
    Range(Part),
}

/// Writes what is made, and gives the buffers back for what comes next: fresh memory costs as much as its filling.
fn hand_on(file: &SegmentFile, made: Vec<Made>, out: &mut dyn Write, written: &mut u64) -> io::Result<Vec<Vec<u8>>> {
    let mut spare = Vec::new();
    for pieces in made {
        for piece in pieces.map_err(as_io)? {
            *written = written.saturating_add(match piece {
                Piece::Bytes(bytes) => {
                    out.write_all(&bytes)?;
                    let written = len_u64(bytes.len());
                    spare.push(bytes);
                    written
                }
                Piece::Range(part) => io::copy(&mut file.range_reader(part.start, part.end).by_ref(), out)?,
            });
        }
    }
    Ok(spare)
}

/// What is made of one source.
#[derive(Clone, Copy)]
struct Making<'m> {
    file: &'m SegmentFile,
    verdicts: &'m Verdicts,
    legacy: LegacyOutput,
}

impl Making<'_> {
    fn make(&self, parts: &[Part], workers: &mut Vec<PartWriter>) -> Vec<Made> {
        if workers.len() < parts.len() {
            workers.resize_with(parts.len(), PartWriter::default);
        }
        workers.par_iter_mut().zip(parts).map(|(worker, part)| worker.make(self, *part)).collect()
    }
}

/// Makes part after part. Keeps buffers and contexts: one for each part that is in work.
#[derive(Default)]
struct PartWriter {
    reader: RecordReader,
    rewriter: Rewriter,
    /// What the scans read into.
    buffer: Vec<u8>,
    /// Memory for the next piece.
    spare: Option<Vec<u8>>,
}

impl PartWriter {
    fn make(&mut self, making: &Making<'_>, part: Part) -> Made {
        let buffer = std::mem::take(&mut self.buffer);
        let mut scanner = LogScanner::over(making.file, part.start, part.end).with_buffer(buffer);
        let made = self.make_from(&mut scanner, making, part);
        self.buffer = scanner.into_buffer();
        made
    }

    fn make_from(&mut self, scanner: &mut LogScanner<'_>, making: &Making<'_>, part: Part) -> Made {
        let mut verdicts = making.verdicts.reader_at(part.start);
        let mut pieces = Vec::new();
        let mut bytes = self.spare.take().unwrap_or_default();
        bytes.clear();
        while scanner.position() < part.end {
            let Some(scanned) = scanner.next_batch().map_err(stop_failure)? else { break };
            let verdict = verdicts.next().unwrap_or(Verdict::Copy);
            match (&verdict, &scanned) {
                (Verdict::Copy, Scanned::Large(batch)) => {
                    let (start, end) = (batch.header().position, batch.header().end());
                    pieces.extend([Piece::Bytes(std::mem::take(&mut bytes)), Piece::Range(Part { start, end })]);
                }
                (Verdict::Rewrite(_), _) if let Some(made) = making.verdicts.made_at(scanned.header().position) => {
                    bytes.extend_from_slice(made);
                }
                _ => self.put(&scanned, verdict, making.legacy, &mut bytes)?,
            }
        }
        pieces.push(Piece::Bytes(bytes));
        Ok(pieces)
    }

    fn put(
        &mut self,
        scanned: &Scanned<'_>,
        verdict: Verdict<'_>,
        legacy: LegacyOutput,
        bytes: &mut Vec<u8>,
    ) -> Result<(), CleanFailure> {
        match (&verdict, scanned) {
            (Verdict::Drop, _) | (Verdict::Copy, Scanned::Large(_)) => {}
            (Verdict::Copy, Scanned::Whole(batch)) => bytes.extend_from_slice(batch.bytes()),
            (Verdict::HeaderOnly { .. }, _) => {
                if let Some(view) = BatchView::of(scanned.header(), Some(verdict), legacy) {
                    write_header_only(&view.header, bytes)?;
                }
            }
            (Verdict::Rewrite(rewrite), _) => {
                let span = if legacy == LegacyOutput::BecomesCurrent { rewrite.span } else { None };
                let shape = Shape { kept: rewrite.kept, horizon: rewrite.horizon, span, legacy };
                self.rewriter.rewrite(scanned, &shape, &mut self.reader, bytes)?;
            }
        }
        Ok(())
    }
}

fn as_io(failure: CleanFailure) -> io::Error {
    match failure {
        CleanFailure::Read(error) => io::Error::other(error),
        // The rounds have read all of it without a fault.
        _ => io::Error::from(io::ErrorKind::InvalidData),
    }
}

//! Cleaned logs, written out of the logs on the disk and the verdicts on their batches.

use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::sync::Arc;

use super::failure::CleanFailure;
use super::rewrite::{Rewriter, Shape, write_header_only};
use super::segments::Source;
use super::verdict::Verdict;
use super::view::BatchView;
use super::walk::Reading;
use crate::format::{Position, len_u64};
use crate::logdir::{IoMode, Scanned};
use crate::ops::broker::cleaner_rules::LegacyOutput;
use crate::ops::{Hidden, PartitionImage, Recipe, RecordReader};

/// Bytes that are gathered before they are passed on.
const BUFFER_BYTES: usize = 256 * 1024;

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
}

impl CleanedFile {
    /// The recipe for its bytes, of which the rounds have counted this many.
    pub(super) fn into_recipe(self, size_bytes: u64) -> Recipe {
        Recipe::new(size_bytes, move |out| self.write_to(out, size_bytes))
    }

    fn write_to(&self, out: &mut dyn Write, size_bytes: u64) -> io::Result<()> {
        let reading = Reading { image: &self.image, io: self.io, progress: &Hidden };
        let mut writing = Writing {
            out,
            legacy: self.legacy,
            buffer: Vec::with_capacity(BUFFER_BYTES),
            written: 0,
            reader: RecordReader::default(),
            rewriter: Rewriter::default(),
        };
        for source in &self.sources {
            let _ = reading
                .walk(source, Position(0), |scanned, verdict| {
                    writing.write_batch(scanned, verdict.unwrap_or(Verdict::Copy))?;
                    Ok(ControlFlow::Continue(()))
                })
                .map_err(as_io)?;
        }
        writing.pass_on().map_err(as_io)?;
        // The source has changed since it was planned.
        if writing.written == size_bytes { Ok(()) } else { Err(io::Error::from(io::ErrorKind::InvalidData)) }
    }
}

struct Writing<'w> {
    out: &'w mut dyn Write,
    legacy: LegacyOutput,
    buffer: Vec<u8>,
    written: u64,
    reader: RecordReader,
    rewriter: Rewriter,
}

impl Writing<'_> {
    fn write_batch(&mut self, scanned: &Scanned<'_>, verdict: Verdict<'_>) -> Result<(), CleanFailure> {
        match (&verdict, scanned) {
            (Verdict::Drop, _) => {}
            (Verdict::Copy, Scanned::Whole(batch)) => self.buffer.extend_from_slice(batch.bytes()),
            (Verdict::Copy, Scanned::Large(batch)) => {
                let mut reader = batch.reader();
                let mut left = batch.header().size_bytes;
                while left > 0 {
                    self.pass_on()?;
                    let took =
                        reader.by_ref().take(BUFFER_BYTES as u64).read_to_end(&mut self.buffer).map_err(failure)?;
                    left = left.saturating_sub(len_u64(took));
                }
            }
            (Verdict::HeaderOnly { .. }, _) => {
                if let Some(view) = BatchView::of(scanned.header(), Some(verdict), self.legacy) {
                    write_header_only(&view.header, &mut self.buffer)?;
                }
            }
            (Verdict::Rewrite(rewrite), _) => {
                let span = if self.legacy == LegacyOutput::BecomesCurrent { rewrite.span } else { None };
                let shape = Shape { kept: rewrite.kept, horizon: rewrite.horizon, span, legacy: self.legacy };
                self.rewriter.rewrite(scanned, &shape, &mut self.reader, &mut self.buffer)?;
            }
        }
        if self.buffer.len() >= BUFFER_BYTES { self.pass_on() } else { Ok(()) }
    }

    fn pass_on(&mut self) -> Result<(), CleanFailure> {
        self.out.write_all(&self.buffer).map_err(failure)?;
        self.written = self.written.saturating_add(len_u64(self.buffer.len()));
        self.buffer.clear();
        Ok(())
    }
}

fn failure(error: io::Error) -> CleanFailure {
    CleanFailure::Write(error)
}

fn as_io(failure: CleanFailure) -> io::Error {
    match failure {
        CleanFailure::Write(error) => error,
        CleanFailure::Read(error) => io::Error::other(error),
        // The rounds have read all of it without a fault.
        _ => io::Error::from(io::ErrorKind::InvalidData),
    }
}

//! One log file: its figures, and what is wrong with it.

use super::headers::{HeaderWalk, WalkEnd};
use super::log::LogFigures;
use super::report::Depth;
use crate::format::record::Record;
use crate::format::{FormatErrorKind, Offset, Position};
use crate::logdir::{Scanned, SegmentFile};
use crate::ops::broker::transactions::EndMarker;
use crate::ops::{
    DamageKind, Finding, FindingId, Location, Progress, RecordReader, RecordsError, SoundBatches, SoundItem,
};
use std::ops::ControlFlow;

/// A measured log file.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// Its figures.
    pub(super) figures: LogFigures,
    /// What is wrong with it.
    pub(super) findings: Vec<Finding>,
    /// Something was not looked at that should have been.
    pub(super) is_incomplete: bool,
}

/// Measures the log file of the segment that starts at `base_offset`; `location` is its path.
pub(super) fn measure_log(
    file: &SegmentFile,
    base_offset: Offset,
    location: &Location,
    depth: Depth,
    reader: &mut RecordReader,
    progress: &dyn Progress,
) -> Measured {
    match depth {
        Depth::Headers => measure_headers(file, location, progress),
        Depth::Records => measure_records(file, base_offset, location, reader, progress),
    }
}

fn measure_headers(file: &SegmentFile, location: &Location, progress: &dyn Progress) -> Measured {
    let mut measured = Measured::default();
    let mut walk = HeaderWalk::new(file);
    while let Some(item) = walk.next_header() {
        match item {
            Ok(header) => {
                measured.figures.add_header(&header);
                if header.is_control()
                    && let Some(producer_id) = header.producer_id
                {
                    measured.figures.transactions.add_end(producer_id);
                }
            }
            Err(end) => note_walk_end(&mut measured, file, location, &end),
        }
    }
    progress.advance(file.size());
    measured
}

fn note_walk_end(measured: &mut Measured, file: &SegmentFile, location: &Location, end: &WalkEnd) {
    let (position, id) = match end {
        WalkEnd::NoHeader(position) => (*position, FindingId::LogTrailingBytes),
        WalkEnd::PastEnd(position) => (*position, FindingId::BatchTornTail),
        WalkEnd::Unreadable(position) => {
            measured.is_incomplete = true;
            (*position, FindingId::LogUnreadableRange)
        }
    };
    let size_bytes = file.end().since(position);
    measured.figures.damaged_bytes += size_bytes;
    measured.findings.push(Finding::new(id, location.clone().at(position, size_bytes)));
}

fn measure_records(
    file: &SegmentFile,
    base_offset: Offset,
    location: &Location,
    reader: &mut RecordReader,
    progress: &dyn Progress,
) -> Measured {
    let mut measured = Measured { figures: LogFigures::with_content(), ..Measured::default() };
    let mut batches = SoundBatches::new(file, base_offset);
    let mut done = Position(0);
    while let Some(item) = batches.next_item() {
        match item {
            SoundItem::Batch(batch) => measured.add_batch(&batch, location, reader),
            SoundItem::Damage(damage) => {
                measured.figures.damaged_bytes += damage.size_bytes;
                measured.is_incomplete |=
                    matches!(damage.kind, DamageKind::Unreadable { .. } | DamageKind::LimitReached);
                measured.findings.push(damage.finding(location.clone()));
            }
        }
        progress.advance(batches.position().since(done));
        done = batches.position();
    }
    measured
}

impl Measured {
    fn add_batch(&mut self, batch: &Scanned<'_>, location: &Location, reader: &mut RecordReader) {
        let header = *batch.header();
        self.figures.add_header(&header);
        if header.is_control() {
            self.add_control(batch, reader);
            return;
        }
        let figures = &mut self.figures;
        let mut first_offset = None;
        let read = reader.read(batch, &mut |record: &Record<'_>| {
            first_offset = first_offset.or(Some(record.offset));
            figures.add_record(record)
        });
        match read {
            Ok(content) => {
                figures.add_uncompressed(&header, content.uncompressed_bytes);
                if header.is_legacy_wrapper() {
                    figures.add_wrapped(first_offset.unwrap_or(header.base_offset), content.records_count);
                }
            }
            Err(error) => self.note_unreadable(&error, &header, location),
        }
    }

    fn add_control(&mut self, batch: &Scanned<'_>, reader: &mut RecordReader) {
        let mut marker = None;
        // A control batch whose record cannot be read ends no transaction.
        let _ = reader.read(batch, &mut |record: &Record<'_>| {
            marker = EndMarker::of_record(record);
            ControlFlow::Break(())
        });
        if let (Some(_), Some(producer_id)) = (marker, batch.header().producer_id) {
            self.figures.transactions.add_end(producer_id);
        }
    }

    fn note_unreadable(&mut self, error: &RecordsError, header: &crate::format::BatchHeader, location: &Location) {
        if let Some(content) = &mut self.figures.content {
            content.unreadable_batches += 1;
        }
        let place =
            location.clone().at(header.position, header.size_bytes).offsets(header.base_offset, header.last_offset);
        let finding = match error {
            RecordsError::Format(error) if matches!(error.kind, FormatErrorKind::LimitReached { .. }) => {
                self.is_incomplete = true;
                Finding::new(FindingId::LimitReached, place).with_cause(error.kind.clone())
            }
            RecordsError::Format(error) => {
                Finding::new(FindingId::BatchPayloadUndecodable, place).with_cause(error.kind.clone())
            }
            RecordsError::Read(_) => {
                self.is_incomplete = true;
                Finding::new(FindingId::LogUnreadableRange, place)
            }
        };
        self.findings.push(finding);
    }
}

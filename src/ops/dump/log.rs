//! A log file cut into pieces that can be shown apart from each other: runs of sound batches, and damage.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::committed::CommittedView;
use super::event::{BatchEvent, DumpSummary, Event, RecordEvent, Source};
use super::files::FileShape;
use super::{DumpOptions, Show};
use crate::format::offset_index::OffsetIndex;
use crate::format::record::Record;
use crate::format::{Offset, Position, len_u64};
use crate::logdir::{LogScanner, Scanned, SegmentFile};
use crate::ops::{BatchContent, Finding, FindingId, Location, RecordReader, RecordsError, SoundBatches, SoundItem};

/// A run ends when it has so many bytes. The first of a dump is short, so that the first line comes at once.
const RUN_BYTES: u64 = 1024 * 1024;
const FIRST_RUN_BYTES: u64 = 32 * 1024;

/// What events are made from, with all that this needs: pieces can be shown in any order on any thread.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) source: Arc<Source>,
    pub(super) view: Option<Arc<CommittedView>>,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    /// Sound batches, one after the other.
    Run { file: Arc<SegmentFile>, start: Position, end: Position },
    /// Something else between two runs.
    Damage(Box<Finding>),
    /// A whole file that is no log.
    File(FileShape, Vec<u8>),
}

/// Cuts one log file into pieces.
#[derive(Debug)]
pub(super) struct LogPieces<'f> {
    source: Arc<Source>,
    view: Option<Arc<CommittedView>>,
    file: &'f Arc<SegmentFile>,
    batches: SoundBatches<'f>,
    run_bytes: u64,
    end_offset: Option<Offset>,
    pending: Option<Finding>,
    is_over: bool,
}

impl<'f> LogPieces<'f> {
    pub(super) fn new(
        source: &Arc<Source>,
        view: Option<&Arc<CommittedView>>,
        file: &'f Arc<SegmentFile>,
        start: Position,
        end_offset: Option<Offset>,
    ) -> Self {
        Self {
            source: Arc::clone(source),
            view: view.map(Arc::clone),
            file,
            batches: SoundBatches::from(file, source.base_offset, start),
            run_bytes: FIRST_RUN_BYTES,
            end_offset,
            pending: None,
            is_over: false,
        }
    }

    fn piece(&self, content: Content) -> Piece {
        Piece { source: Arc::clone(&self.source), view: self.view.as_ref().map(Arc::clone), content }
    }
}

impl Iterator for LogPieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if let Some(finding) = self.pending.take() {
            return Some(self.piece(Content::Damage(Box::new(finding))));
        }
        if self.is_over {
            return None;
        }
        let start = self.batches.position();
        let mut end = start;
        loop {
            match self.batches.next_item() {
                None => self.is_over = true,
                Some(SoundItem::Damage(damage)) => self.pending = Some(damage.finding(location_of(&self.source))),
                Some(SoundItem::Batch(batch)) => {
                    end = batch.header().end();
                    let next_offset = batch.header().next_offset();
                    self.is_over = self.end_offset.is_some_and(|behind| next_offset >= behind);
                    if !self.is_over && end.since(start) < self.run_bytes {
                        continue;
                    }
                }
            }
            break;
        }
        self.run_bytes = RUN_BYTES;
        if end > start {
            return Some(self.piece(Content::Run { file: Arc::clone(self.file), start, end }));
        }
        self.next()
    }
}

/// The place of a whole file.
pub(super) fn location_of(source: &Source) -> Location {
    Location::of_path(source.log_dir.as_path(), source.topic_partition.clone(), &source.path)
}

/// Where to begin reading for an offset: the place that a sound offset index gives, else the start of the file.
pub(super) fn start_position(file: &SegmentFile, index: &[u8], base_offset: Offset, from: Offset) -> Position {
    let index = OffsetIndex::new(base_offset, index);
    let sound = index.truncated(index.plausible_len(file.end()));
    let Some((_, entry)) = sound.lookup(from) else { return Position(0) };
    let mut scanner = LogScanner::over(file, entry.position, file.end());
    match scanner.next_batch() {
        Ok(Some(batch)) => {
            let header = *batch.header();
            let fits =
                header.base_offset >= base_offset && header.base_offset <= entry.offset && header.base_offset <= from;
            if fits && batch.crc_matches().unwrap_or(false) { entry.position } else { Position(0) }
        }
        _ => Position(0),
    }
}

/// Turns a piece into events. The visitor may break off.
pub(super) fn show_piece(
    piece: &Piece,
    options: &DumpOptions,
    reader: &mut RecordReader,
    visit: &mut dyn FnMut(&Event<'_>) -> ControlFlow<()>,
) -> DumpSummary {
    let mut summary = DumpSummary::default();
    match &piece.content {
        Content::Damage(finding) => {
            summary.damage = 1;
            summary.bytes = finding.location.size_bytes.unwrap_or(0);
            summary.is_incomplete = matches!(finding.id, FindingId::LogUnreadableRange | FindingId::LimitReached);
            let _ = visit(&Event::Damage(finding));
        }
        Content::File(shape, bytes) => {
            summary.bytes = len_u64(bytes.len());
            let fault = shape.read(bytes, &mut |entry| visit(&Event::Entry(&piece.source, &entry)).is_continue());
            if let Some(fault) = fault {
                summary.damage = 1;
                let location = location_of(&piece.source);
                let finding = Finding::new(shape.fault_id(), location).with_cause(fault.kind);
                let _ = visit(&Event::Damage(&finding));
            }
        }
        Content::Run { file, start, end } => {
            let mut scanner = LogScanner::over(file, *start, *end);
            loop {
                match scanner.next_batch() {
                    Ok(None) => break,
                    Ok(Some(batch)) => {
                        summary.batches += 1;
                        summary.bytes += batch.header().size_bytes;
                        if show_batch(&batch, piece, options, reader, (visit, &mut summary)).is_break() {
                            break;
                        }
                    }
                    Err(_) => {
                        // The file has changed since its batches were found sound.
                        summary.is_incomplete = true;
                        break;
                    }
                }
            }
        }
    }
    summary
}

type Visitor<'v> = &'v mut dyn FnMut(&Event<'_>) -> ControlFlow<()>;

fn show_batch(
    batch: &Scanned<'_>,
    piece: &Piece,
    options: &DumpOptions,
    reader: &mut RecordReader,
    (visit, summary): (Visitor<'_>, &mut DumpSummary),
) -> ControlFlow<()> {
    let (header, source) = (batch.header(), piece.source.as_ref());
    if !options.filter.admits_batch(header, piece.view.as_deref()) {
        return ControlFlow::Continue(());
    }
    if options.show != Show::Records {
        show_header(batch, source, options, reader, visit)?;
    }
    if options.show == Show::Batches {
        return ControlFlow::Continue(());
    }
    let topic = options.decode.topic_of(source);
    let mut outcome = ControlFlow::Continue(());
    let mut each = |record: &Record<'_>| {
        if options.filter.admits_record(record, topic) {
            summary.records += 1;
            outcome = visit(&Event::Record(RecordEvent { source, header, record }));
        }
        outcome
    };
    if let Err(error) = reader.read(batch, &mut each) {
        outcome?;
        let finding = undecodable(source, batch, error);
        summary.damage += 1;
        summary.is_incomplete |= finding.id != FindingId::BatchPayloadUndecodable;
        return visit(&Event::Damage(&finding));
    }
    outcome
}

fn show_header(
    batch: &Scanned<'_>,
    source: &Source,
    options: &DumpOptions,
    reader: &mut RecordReader,
    visit: Visitor<'_>,
) -> ControlFlow<()> {
    let header = batch.header();
    let mut event = BatchEvent {
        source,
        header,
        base_offset: header.base_offset,
        records_count: if header.is_legacy() { Some(1) } else { header.records_count.map(i64::from) },
    };
    let topic = options.decode.topic_of(source);
    let mut admitted = !options.filter.looks_at_records();
    if header.is_legacy_wrapper() || !admitted {
        let mut any = |record: &Record<'_>| {
            admitted |= options.filter.admits_record(record, topic);
            ControlFlow::Continue(())
        };
        let content = reader.read(batch, &mut any);
        if header.is_legacy_wrapper() {
            let wrapper = content.as_ref().ok().and_then(|content: &BatchContent| content.wrapper);
            event.records_count = wrapper.map(|w| i64::try_from(w.messages_count).unwrap_or(i64::MAX));
            event.base_offset = wrapper.map_or(header.base_offset, |w| w.base_offset);
        }
    }
    if admitted { visit(&Event::Batch(event)) } else { ControlFlow::Continue(()) }
}

fn undecodable(source: &Source, batch: &Scanned<'_>, error: RecordsError) -> Finding {
    let header = batch.header();
    let location = location_of(source)
        .at(header.position, header.size_bytes)
        .offsets(header.base_offset.min(header.last_offset), header.last_offset);
    match error {
        RecordsError::Format(error) => {
            let id = match error.kind {
                crate::format::FormatErrorKind::LimitReached { .. } => FindingId::LimitReached,
                _ => FindingId::BatchPayloadUndecodable,
            };
            Finding::new(id, location).with_cause(error.kind)
        }
        RecordsError::Read(_) => Finding::new(FindingId::LogUnreadableRange, location),
    }
}

//! The job of a worker: one segment, or a stretch of a large one.

use std::ffi::OsString;

use super::batch::BatchInspector;
use super::context::{SegmentContext, SegmentRole};
use super::index_file::IndexFile;
use super::input::SegmentInput;
use super::offset_index::OffsetIndexCheck;
use super::options::Options;
use super::report::{FileReport, FileRole};
use super::segment::{ProducerBatch, SegmentFold, SegmentSummary};
use super::stretch::{self, Stretch};
use super::time_index::TimeIndexCheck;
use crate::format::offset_index::{OFFSET_INDEX_ENTRY, OffsetIndex};
use crate::format::time_index::TIME_INDEX_ENTRY;
use crate::format::txn_index::TXN_INDEX_ENTRY;
use crate::format::{Position, len_u64};
use crate::logdir::names::FileKind;
use crate::logdir::{IoMode, ReadError, SegmentFile};
use crate::ops::coverage::Coverage;
use crate::ops::{Finding, FindingId, Progress, SoundBatches, SoundItem};

/// Batches in one message.
const BATCHES_PER_MESSAGE: usize = 2048;

/// What a segment's companions came to.
#[derive(Debug, Default)]
pub(super) struct Companions {
    pub(super) offset_index: Option<IndexFile>,
    pub(super) time_index: Option<IndexFile>,
    pub(super) txn_index: Option<IndexFile>,
    pub(super) files: Vec<FileReport>,
    pub(super) findings: Vec<Finding>,
}

/// What a worker sends to the thread that puts a partition together.
#[derive(Debug)]
pub(super) enum SegmentMessage {
    /// Batches of producers, in order.
    Producers(Vec<ProducerBatch>),
    /// All of a segment.
    Done(Box<SegmentDone>),
    /// A large segment begins; stretches follow.
    Opened(Box<SegmentInput>, Box<Companions>),
    /// Sound batches of a stretch.
    Stretch(Stretch),
    /// The last stretch has been sent.
    Closed,
}

/// A segment that was looked at.
#[derive(Debug)]
pub(super) struct SegmentDone {
    pub(super) segment: SegmentInput,
    pub(super) summary: SegmentSummary,
    pub(super) companions: Companions,
}

/// A part of the work on one partition's segments.
#[derive(Debug)]
pub(super) enum ScanJob {
    /// A whole segment.
    Whole(SegmentInput),
    /// The companions of a large one.
    Open(SegmentInput),
    /// A stretch of a large one; the last one says so.
    Stretch(SegmentInput, Position, Position, bool),
}

/// The jobs that a segment is made of.
pub(super) fn jobs_of(segment: SegmentInput, stretch_bytes: u64) -> Vec<ScanJob> {
    let size = segment.partition.image.size_of(&segment.name);
    if size <= stretch_bytes.saturating_mul(2) {
        return vec![ScanJob::Whole(segment)];
    }
    let starts = stretch_starts(&segment, size, stretch_bytes);
    let ends = starts.iter().skip(1).copied().chain([Position(size)]);
    let mut jobs = vec![ScanJob::Open(segment.clone())];
    for (start, end) in starts.iter().zip(ends) {
        jobs.push(ScanJob::Stretch(segment.clone(), *start, end, end == Position(size)));
    }
    jobs
}

/// Places in a large log where a batch should start, by its offset index where that says so, else by looking for batches. They are
/// hints: whoever puts the stretches together checks that each ends where the next begins.
fn stretch_starts(segment: &SegmentInput, size: u64, stretch_bytes: u64) -> Vec<Position> {
    let mut starts = vec![Position(0)];
    let index = segment.name_of(FileKind::OffsetIndex).and_then(|name| {
        let file = segment.partition.image.open(&name, IoMode::Pread).ok()?;
        IndexFile::read(&file, OFFSET_INDEX_ENTRY).ok()
    });
    if let Some(index) = index {
        let entries = OffsetIndex::new(segment.context.base_offset, &index.bytes);
        let mut last = Position(0);
        for entry in entries.iter().take(entries.plausible_len(Position(size))) {
            if entry.position.since(last) >= stretch_bytes {
                starts.push(entry.position);
                last = entry.position;
            }
        }
    }
    if starts.len() > 1 {
        return starts;
    }
    let log = segment.partition.image.open(&segment.name, IoMode::Pread);
    log.map_or(starts, |log| stretch::starts_by_search(&log, segment.context.base_offset, stretch_bytes))
}

/// Does one job.
pub(super) fn run(job: ScanJob, options: &Options, progress: &dyn Progress, send: &mut dyn FnMut(SegmentMessage)) {
    match job {
        ScanJob::Whole(segment) => whole(segment, options, progress, send),
        ScanJob::Open(segment) => {
            let companions = open_companions(&segment);
            send(SegmentMessage::Opened(Box::new(segment), Box::new(companions)));
        }
        ScanJob::Stretch(segment, start, end, is_last) => {
            if let Ok(file) = open_log(&segment, options) {
                let place = segment.partition.place(&segment.name);
                let about = (&place, &segment.context, segment.partition.numbering());
                let mut send = |stretch| send(SegmentMessage::Stretch(stretch));
                stretch::look(&file, (start, end), about, (options, progress), &mut send);
            }
            if is_last {
                send(SegmentMessage::Closed);
            }
        }
    }
}

/// Opens the log of a segment. One that cannot be opened is unreadable as a whole.
pub(super) fn open_log(segment: &SegmentInput, options: &Options) -> Result<SegmentFile, ReadError> {
    segment.partition.image.open(&segment.name, options.io)
}

/// A fold over the batches of a segment, its indexes with it.
pub(super) fn fold_of(segment: &SegmentInput, companions: &mut Companions, size_bytes: u64) -> SegmentFold {
    let base = segment.context.base_offset;
    let mut fold = SegmentFold::new(segment.partition.place(&segment.name), segment.context, size_bytes);
    let place = |kind| segment.name_of(kind).map(|name: OsString| segment.partition.place(&name));
    if let (Some(place), Some(file)) = (place(FileKind::OffsetIndex), companions.offset_index.take()) {
        fold = fold.with_offset_index(place, OffsetIndexCheck::new(base, file));
    }
    if let (Some(place), Some(file)) = (place(FileKind::TimeIndex), companions.time_index.take()) {
        let modified = segment.partition.image.file(&segment.name).map(|file| file.modified).unwrap_or_default();
        fold = fold.with_time_index(place, TimeIndexCheck::new(base, file), modified);
    }
    fold
}

fn whole(segment: SegmentInput, options: &Options, progress: &dyn Progress, send: &mut dyn FnMut(SegmentMessage)) {
    let mut companions = open_companions(&segment);
    let size_bytes = segment.partition.image.size_of(&segment.name);
    let summary = match open_log(&segment, options) {
        Err(error) => unopened(&segment, size_bytes, &error),
        Ok(file) => {
            let mut fold = fold_of(&segment, &mut companions, file.size());
            let mut inspector = BatchInspector::new(options, segment.partition.numbering());
            let (place, context) = (fold.place().clone(), *fold.context());
            let mut producers = Vec::new();
            let mut batches = SoundBatches::new(&file, context.base_offset);
            while let Some(item) = batches.next_item() {
                match item {
                    SoundItem::Damage(damage) => fold.damage(&damage),
                    SoundItem::Batch(batch) => {
                        let facts = inspector.inspect(&batch, &place, &context);
                        producers.extend(fold.batch(&facts));
                        if producers.len() >= BATCHES_PER_MESSAGE {
                            send(SegmentMessage::Producers(std::mem::take(&mut producers)));
                        }
                    }
                }
                if progress.is_cancelled() {
                    return;
                }
            }
            fold.add_findings(inspector.findings);
            if !producers.is_empty() {
                send(SegmentMessage::Producers(producers));
            }
            fold.finish(&file)
        }
    };
    progress.advance(size_bytes);
    send(SegmentMessage::Done(Box::new(SegmentDone { segment, summary, companions })));
}

/// A segment whose log cannot be opened.
pub(super) fn unopened(segment: &SegmentInput, size_bytes: u64, error: &ReadError) -> SegmentSummary {
    let place = segment.partition.place(&segment.name);
    let mut fold = SegmentFold::new(place, segment.context, size_bytes);
    fold.add_findings([unreadable(segment, &segment.name, size_bytes, error)]);
    fold.unreadable()
}

/// The finding for a file that cannot be read.
pub(super) fn unreadable(segment: &SegmentInput, name: &OsString, size_bytes: u64, error: &ReadError) -> Finding {
    let place = segment.partition.place(name);
    unreadable_at(&place, size_bytes, error)
}

/// The same for any file.
pub(super) fn unreadable_at(place: &super::context::Place, size_bytes: u64, error: &ReadError) -> Finding {
    place
        .finding_at(FindingId::LogUnreadableRange, Position(0), size_bytes)
        .with_facts(None, crate::ops::Fact::Text(error.kind.to_string()))
}

/// Reads the indexes beside a log, and says which are missing that should be there.
fn open_companions(segment: &SegmentInput) -> Companions {
    let mut companions = Companions::default();
    companions.offset_index = read_index(segment, FileKind::OffsetIndex, OFFSET_INDEX_ENTRY, &mut companions);
    companions.time_index = read_index(segment, FileKind::TimeIndex, TIME_INDEX_ENTRY, &mut companions);
    companions.txn_index = read_index(segment, FileKind::TxnIndex, TXN_INDEX_ENTRY, &mut companions);
    companions
}

fn read_index(segment: &SegmentInput, kind: FileKind, entry: usize, companions: &mut Companions) -> Option<IndexFile> {
    let name = segment.name_of(kind)?;
    let image = &segment.partition.image;
    let size_bytes = image.file(&name)?.size_bytes();
    let role = match kind {
        FileKind::OffsetIndex => FileRole::OffsetIndex,
        FileKind::TimeIndex => FileRole::TimeIndex,
        _ => FileRole::TxnIndex,
    };
    let place = segment.partition.place(&name);
    match image.open(&name, IoMode::Pread).and_then(|file| IndexFile::read(&file, entry)) {
        Ok(file) => {
            let mut coverage = Coverage::checked(file.checked_bytes);
            coverage.skip(file.size_bytes.saturating_sub(file.checked_bytes));
            companions.files.push(FileReport::new(&place, role, file.size_bytes, coverage));
            Some(file)
        }
        Err(error) => {
            companions.findings.push(unreadable(segment, &name, size_bytes, &error));
            companions.files.push(FileReport::new(&place, role, size_bytes, Coverage::refused(size_bytes)));
            None
        }
    }
}

/// Whether earlier segments of a partition have time indexes: the version that wrote them kept such.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TimeIndexes {
    /// At least one has.
    Kept,
    /// None has.
    NeverSeen,
}

/// What is missing beside a log. A segment that was just begun may have only its log; up to 0.10.0 there was no time index.
pub(super) fn missing_indexes(
    segment: &SegmentInput,
    summary: &SegmentSummary,
    earlier: TimeIndexes,
    out: &mut Vec<Finding>,
) {
    let context: &SegmentContext = &segment.context;
    let image = &segment.partition.image;
    let has = |kind| segment.name_of(kind).is_some_and(|name| image.has(&name));
    let is_begun = len_u64(0) == summary.size_bytes && context.role != SegmentRole::Closed;
    let mut report = |kind: FileKind, id: FindingId| {
        let Some(name) = segment.name_of(kind) else { return };
        let finding = segment.partition.place(&name).finding(id);
        let severity = context.index_severity(finding.severity);
        let severity = if is_begun { severity.min(crate::ops::Severity::Info) } else { severity };
        out.push(finding.with_severity(severity));
    };
    if !has(FileKind::OffsetIndex) {
        report(FileKind::OffsetIndex, FindingId::OffsetIndexMissing);
    }
    if !has(FileKind::TimeIndex) && (summary.has_magic_2 || earlier == TimeIndexes::Kept) {
        report(FileKind::TimeIndex, FindingId::TimeIndexMissing);
    }
}

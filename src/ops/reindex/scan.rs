//! One segment, read once: its indexes, and what its producers wrote.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::format::{BatchHeader, Offset, Position};
use crate::logdir::{IoMode, Scanned, SegmentFile};
use crate::ops::broker::index_rules::{BuiltIndexes, IndexBuilder, IndexRefusal, IndexSettings};
use crate::ops::broker::markers::read_end_marker;
use crate::ops::broker::transactions::EndMarker;
use crate::ops::{Damage, PartitionImage, Progress, RecordReader, SoundBatches, SoundItem, first_sound_within};

/// Batches that are handed on at once.
const BATCHES_PER_MESSAGE: usize = 2048;

/// A segment to read.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) image: Arc<PartitionImage>,
    /// Its place among the segments of its log.
    pub(super) index: usize,
    pub(super) base: Offset,
    pub(super) log_name: OsString,
    pub(super) settings: IndexSettings,
    pub(super) io: IoMode,
}

impl Segment {
    /// Its log file; `None` where that cannot be opened.
    pub(super) fn open(&self) -> Option<SegmentFile> {
        self.image.open(&self.log_name, self.io).ok()
    }
}

/// A part of the work on the segments of a log.
#[derive(Debug)]
pub(super) enum ScanJob {
    /// A whole segment.
    Whole(Segment),
    /// A large segment begins; its parts follow.
    Open(Arc<Segment>),
    /// The batches of a large segment that begin within a range.
    Part(Arc<Segment>, Position, Position),
    /// All parts have been sent.
    Close(usize),
}

/// The jobs that a segment is made of. One of more than two parts is divided.
pub(super) fn jobs_of(segment: Segment, part_bytes: u64) -> Vec<ScanJob> {
    let size = segment.image.size_of(&segment.log_name);
    let part_bytes = part_bytes.max(1);
    if size <= part_bytes.saturating_mul(2) {
        return vec![ScanJob::Whole(segment)];
    }
    let segment = Arc::new(segment);
    let part = |number: u64| {
        let start = Position(number.saturating_mul(part_bytes));
        ScanJob::Part(Arc::clone(&segment), start, start.advance(part_bytes).min(Position(size)))
    };
    let parts = (0..size.div_ceil(part_bytes)).map(part);
    std::iter::once(ScanJob::Open(Arc::clone(&segment))).chain(parts).chain([ScanJob::Close(segment.index)]).collect()
}

/// A control batch of a producer that a broker cannot read as an end marker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NoMarker;

/// A batch of a producer.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProducerBatch {
    pub(super) header: BatchHeader,
    pub(super) marker: Result<Option<EndMarker>, NoMarker>,
}

/// Sound batches of a large segment, one after the other from a place on.
#[derive(Debug)]
pub(super) struct PartBatches {
    pub(super) start: Position,
    pub(super) headers: Vec<BatchHeader>,
    /// Those of them that have a producer.
    pub(super) producers: Vec<ProducerBatch>,
}

impl PartBatches {
    fn from(start: Position) -> Self {
        Self { start, headers: Vec::new(), producers: Vec::new() }
    }
}

/// What is told of a segment.
#[derive(Debug)]
pub(super) enum SegmentMessage {
    /// The next batches of its producers.
    Producers(usize, Vec<ProducerBatch>),
    /// It is read.
    Done(usize, Box<SegmentScan>),
    /// A large one begins.
    Opened(Arc<Segment>),
    /// The next batches of a large one, as far as they follow on.
    Part(usize, PartBatches),
    /// A large one ends.
    Closed(usize),
}

impl SegmentMessage {
    /// The place of the segment among those of its log.
    pub(super) fn index(&self) -> usize {
        match self {
            Self::Producers(index, _) | Self::Done(index, _) | Self::Part(index, _) | Self::Closed(index) => *index,
            Self::Opened(segment) => segment.index,
        }
    }
}

/// Why there can be no indexes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refused {
    pub(super) refusal: IndexRefusal,
    /// The batch at which it shows; `None`: at the end.
    pub(super) at: Option<BatchHeader>,
}

/// What a segment came to.
#[derive(Debug)]
pub(super) struct SegmentScan {
    pub(super) indexes: Result<BuiltIndexes, Box<Refused>>,
    /// The offset after its last sound batch before any damage.
    pub(super) end: Offset,
    /// The offset after its last batch of magic 2: up to there a broker's state of the producers reaches.
    pub(super) replayed_to: Option<Offset>,
    /// The first range that is no sound batch.
    pub(super) damage: Option<Damage>,
    /// Whether sound batches follow that.
    pub(super) goes_on: bool,
    /// Whether it could not be opened.
    pub(super) is_unopened: bool,
}

impl SegmentScan {
    fn begun_at(base: Offset) -> Self {
        Self {
            indexes: Ok(BuiltIndexes::default()),
            end: base,
            replayed_to: None,
            damage: None,
            goes_on: false,
            is_unopened: false,
        }
    }
}

/// What has been read of a segment.
#[derive(Debug)]
pub(super) struct SegmentWalk {
    scan: SegmentScan,
    indexes: Result<IndexBuilder, Box<Refused>>,
    position: Position,
}

impl SegmentWalk {
    pub(super) fn new(segment: &Segment) -> Self {
        Self {
            scan: SegmentScan::begun_at(segment.base),
            indexes: Ok(IndexBuilder::new(segment.base, segment.settings)),
            position: Position(0),
        }
    }

    /// The first byte that has not been read.
    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// The offset after the last sound batch before any damage.
    pub(super) fn end(&self) -> Offset {
        self.scan.end
    }

    /// Takes the next sound batch in. `Break` where that is one behind damage: nothing more is to be made of the segment.
    pub(super) fn batch(&mut self, header: &BatchHeader) -> ControlFlow<()> {
        if self.scan.damage.is_some() {
            self.scan.goes_on = true;
            return ControlFlow::Break(());
        }
        self.position = header.end();
        if let Ok(builder) = &mut self.indexes
            && let Err(refusal) = builder.add(header)
        {
            self.indexes = Err(Box::new(Refused { refusal, at: Some(*header) }));
        }
        self.scan.end = header.next_offset();
        if !header.is_legacy() {
            self.scan.replayed_to = Some(header.next_offset());
        }
        ControlFlow::Continue(())
    }

    /// Takes in that a range is no sound batch.
    pub(super) fn damage(&mut self, damage: Damage) {
        self.position = damage.position.advance(damage.size_bytes);
        self.scan.damage.get_or_insert(damage);
    }

    /// The log file could not be opened.
    pub(super) fn unopened(mut self) -> SegmentScan {
        self.scan.is_unopened = true;
        self.scan
    }

    /// The segment has been read to its end, or as far as it makes sense.
    pub(super) fn finish(mut self) -> SegmentScan {
        let at_the_end = |refusal| Box::new(Refused { refusal, at: None });
        self.scan.indexes = self.indexes.and_then(|builder| builder.finish().map_err(at_the_end));
        self.scan
    }
}

/// Does one job.
pub(super) fn run(job: ScanJob, progress: &dyn Progress, send: &mut dyn FnMut(SegmentMessage)) {
    match job {
        ScanJob::Whole(segment) => read_whole(&segment, progress, send),
        ScanJob::Open(segment) => send(SegmentMessage::Opened(segment)),
        ScanJob::Part(segment, start, end) => read_part(&segment, (start, end), progress, send),
        ScanJob::Close(index) => send(SegmentMessage::Closed(index)),
    }
}

/// Reads a segment up to its end or to the first damage.
fn read_whole(segment: &Segment, progress: &dyn Progress, send: &mut dyn FnMut(SegmentMessage)) {
    let mut walk = SegmentWalk::new(segment);
    let Some(file) = segment.open() else {
        return send(SegmentMessage::Done(segment.index, Box::new(walk.unopened())));
    };
    let mut records = RecordReader::default();
    let mut producers = Vec::new();
    let mut batches = SoundBatches::new(&file, segment.base);
    while let Some(item) = batches.next_item() {
        if progress.is_cancelled() {
            return;
        }
        match item {
            SoundItem::Damage(damage) => {
                progress.advance(damage.size_bytes);
                walk.damage(damage);
            }
            SoundItem::Batch(batch) => {
                if walk.batch(batch.header()).is_break() {
                    break;
                }
                progress.advance(batch.header().size_bytes);
                producers.extend(producer_batch(&batch, &mut records));
                if producers.len() >= BATCHES_PER_MESSAGE {
                    send(SegmentMessage::Producers(segment.index, std::mem::take(&mut producers)));
                }
            }
        }
    }
    if !producers.is_empty() {
        send(SegmentMessage::Producers(segment.index, producers));
    }
    send(SegmentMessage::Done(segment.index, Box::new(walk.finish())));
}

/// Sends the sound batches that begin within a range, from the first that is found on up to anything that is none.
fn read_part(
    segment: &Segment,
    (start, end): (Position, Position),
    progress: &dyn Progress,
    send: &mut dyn FnMut(SegmentMessage),
) {
    let Some(file) = segment.open() else { return };
    let Some(first) = first_sound_within(&file, segment.base, start, end) else { return };
    let mut batches = SoundBatches::from(&file, segment.base, first);
    let mut records = RecordReader::default();
    let mut part = PartBatches::from(first);
    while batches.position() < end && !progress.is_cancelled() {
        let Some(SoundItem::Batch(batch)) = batches.next_item() else { break };
        part.headers.push(*batch.header());
        part.producers.extend(producer_batch(&batch, &mut records));
        if part.headers.len() >= BATCHES_PER_MESSAGE {
            let next = PartBatches::from(batch.header().end());
            send(SegmentMessage::Part(segment.index, std::mem::replace(&mut part, next)));
        }
    }
    progress.advance(end.since(start));
    send(SegmentMessage::Part(segment.index, part));
}

/// The batch as its producer's state takes it in; `None` where it has no producer.
pub(super) fn producer_batch(batch: &Scanned<'_>, records: &mut RecordReader) -> Option<ProducerBatch> {
    let header = *batch.header();
    if header.is_legacy() {
        return None;
    }
    header.producer_id.filter(|producer_id| producer_id.0 >= 0)?;
    let marker = if header.is_control() { read_end_marker(batch, records) } else { Ok(None) };
    Some(ProducerBatch { header, marker: marker.map_err(|_| NoMarker) })
}

//! One segment, read once: its indexes, and what its producers wrote.

use std::ffi::OsString;
use std::sync::Arc;

use crate::format::{BatchHeader, Offset};
use crate::logdir::{IoMode, Scanned};
use crate::ops::broker::index_rules::{BuiltIndexes, IndexBuilder, IndexRefusal, IndexSettings};
use crate::ops::broker::markers::read_end_marker;
use crate::ops::broker::transactions::EndMarker;
use crate::ops::{Damage, PartitionImage, Progress, RecordReader, SoundBatches, SoundItem};

/// Batches of producers that are handed on at once.
const BATCHES_PER_MESSAGE: usize = 512;

/// A segment to read.
#[derive(Debug)]
pub(super) struct SegmentJob {
    pub(super) image: Arc<PartitionImage>,
    /// Its place among the segments of its log.
    pub(super) index: usize,
    pub(super) base: Offset,
    pub(super) log_name: OsString,
    pub(super) settings: IndexSettings,
    pub(super) io: IoMode,
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

/// What is told of a segment.
#[derive(Debug)]
pub(super) enum SegmentMessage {
    /// The next batches of its producers.
    Producers(usize, Vec<ProducerBatch>),
    /// It is read.
    Done(usize, Box<SegmentScan>),
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

/// Reads a segment up to its end or to the first damage.
pub(super) fn run(job: &SegmentJob, progress: &dyn Progress, send: &mut dyn FnMut(SegmentMessage)) {
    let mut scan = SegmentScan::begun_at(job.base);
    let Ok(file) = job.image.open(&job.log_name, job.io) else {
        scan.is_unopened = true;
        return send(SegmentMessage::Done(job.index, Box::new(scan)));
    };
    let mut indexes = Ok(IndexBuilder::new(job.base, job.settings));
    let mut records = RecordReader::default();
    let mut producers = Vec::new();
    let mut batches = SoundBatches::new(&file, job.base);
    while let Some(item) = batches.next_item() {
        if progress.is_cancelled() {
            return;
        }
        let batch = match item {
            SoundItem::Damage(damage) => {
                progress.advance(damage.size_bytes);
                scan.damage.get_or_insert(damage);
                continue;
            }
            SoundItem::Batch(_) if scan.damage.is_some() => {
                scan.goes_on = true;
                break;
            }
            SoundItem::Batch(batch) => batch,
        };
        let header = *batch.header();
        progress.advance(header.size_bytes);
        if let Ok(builder) = &mut indexes
            && let Err(refusal) = builder.add(&header)
        {
            indexes = Err(Box::new(Refused { refusal, at: Some(header) }));
        }
        scan.end = header.next_offset();
        if header.is_legacy() {
            continue;
        }
        scan.replayed_to = Some(header.next_offset());
        producers.extend(producer_batch(&batch, &mut records));
        if producers.len() >= BATCHES_PER_MESSAGE {
            send(SegmentMessage::Producers(job.index, std::mem::take(&mut producers)));
        }
    }
    if !producers.is_empty() {
        send(SegmentMessage::Producers(job.index, producers));
    }
    let at_the_end = |refusal| Box::new(Refused { refusal, at: None });
    scan.indexes = indexes.and_then(|builder| builder.finish().map_err(at_the_end));
    send(SegmentMessage::Done(job.index, Box::new(scan)));
}

/// The batch as its producer's state takes it in; `None` where it has no producer.
fn producer_batch(batch: &Scanned<'_>, records: &mut RecordReader) -> Option<ProducerBatch> {
    let header = *batch.header();
    header.producer_id.filter(|producer_id| producer_id.0 >= 0)?;
    let marker = if header.is_control() { read_end_marker(batch, records) } else { Ok(None) };
    Some(ProducerBatch { header, marker: marker.map_err(|_| NoMarker) })
}

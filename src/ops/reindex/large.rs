//! A large segment that several workers read at once: their parts put together in order. A part counts only where the walk so far
//! ends exactly where it begins; what lies between is walked here, damage and all.

use std::sync::Arc;

use super::scan::{PartBatches, ProducerBatch, Segment, SegmentScan, SegmentWalk, producer_batch};
use crate::format::Position;
use crate::logdir::SegmentFile;
use crate::ops::{Progress, RecordReader, SoundBatches, SoundItem};

/// A large segment that is being put together.
#[derive(Debug)]
pub(super) struct LargeSegment {
    segment: Arc<Segment>,
    file: Option<SegmentFile>,
    walk: SegmentWalk,
    /// Nothing more is to be made of it.
    is_over: bool,
}

impl LargeSegment {
    pub(super) fn new(segment: Arc<Segment>) -> Self {
        let file = segment.open();
        Self { is_over: file.is_none(), walk: SegmentWalk::new(&segment), segment, file }
    }

    /// Takes a part in, or drops it where it does not follow on. The batches of producers that are new.
    pub(super) fn part(&mut self, part: PartBatches, progress: &dyn Progress) -> Vec<ProducerBatch> {
        let mut producers = self.walk_to(part.start, progress);
        if self.is_over || self.walk.position() != part.start {
            return producers;
        }
        // Only the first batch of a part can be one behind damage.
        self.is_over = part.headers.iter().any(|header| self.walk.batch(header).is_break());
        if !self.is_over {
            producers.extend(part.producers);
        }
        producers
    }

    /// Reads up to a place, or to the first batch that ends behind it.
    fn walk_to(&mut self, until: Position, progress: &dyn Progress) -> Vec<ProducerBatch> {
        let mut producers = Vec::new();
        let Some(file) = self.file.as_ref().filter(|_| !self.is_over && self.walk.position() < until) else {
            return producers;
        };
        let mut records = RecordReader::default();
        let start = self.walk.position();
        let mut batches = SoundBatches::from(file, self.segment.base, start).expecting(self.walk.end());
        while batches.position() < until && !progress.is_cancelled() {
            match batches.next_item() {
                None => break,
                Some(SoundItem::Damage(damage)) => self.walk.damage(damage),
                Some(SoundItem::Batch(batch)) => {
                    if self.walk.batch(batch.header()).is_break() {
                        self.is_over = true;
                        break;
                    }
                    producers.extend(producer_batch(&batch, &mut records));
                }
            }
        }
        producers
    }

    /// All parts are in: what is missing is read.
    pub(super) fn finish(mut self, progress: &dyn Progress) -> (Vec<ProducerBatch>, SegmentScan) {
        let Some(end) = self.file.as_ref().map(SegmentFile::end) else { return (Vec::new(), self.walk.unopened()) };
        let producers = self.walk_to(end, progress);
        (producers, self.walk.finish())
    }
}

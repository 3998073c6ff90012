//! A segment whose log is looked at by several workers at once: their stretches are put together in order. A stretch counts only if
//! the walk so far ends exactly where it begins; what lies between is walked here, damage and all.

use super::batch::{BatchFacts, BatchInspector};
use super::context::{Place, SegmentContext};
use super::input::SegmentInput;
use super::options::Options;
use super::scan::{Companions, SegmentDone, fold_of, open_log, unopened};
use super::segment::{ProducerBatch, SegmentFold};
use crate::format::{Offset, Position};
use crate::logdir::{ReadError, SegmentFile};
use crate::ops::{Finding, SoundBatches, SoundItem};

/// A large segment that is being put together.
#[derive(Debug)]
pub(super) struct LargeSegment {
    segment: SegmentInput,
    companions: Companions,
    file: Result<SegmentFile, ReadError>,
    fold: SegmentFold,
    /// How far the walk has come.
    position: Position,
    /// The offset after the last sound batch.
    expected: Offset,
}

impl LargeSegment {
    pub(super) fn new(segment: SegmentInput, mut companions: Companions, options: &Options) -> Self {
        let file = open_log(&segment, options);
        let size_bytes = file.as_ref().map_or(0, SegmentFile::size);
        let fold = fold_of(&segment, &mut companions, size_bytes);
        let expected = segment.context.base_offset;
        Self { segment, companions, file, fold, position: Position(0), expected }
    }

    pub(super) fn place(&self) -> &Place {
        self.fold.place()
    }

    pub(super) fn context(&self) -> &SegmentContext {
        self.fold.context()
    }

    /// Takes a stretch in, or drops it where it does not follow on.
    pub(super) fn stretch(
        &mut self,
        start: Position,
        facts: &[BatchFacts],
        findings: Vec<Finding>,
        options: &Options,
    ) -> Vec<ProducerBatch> {
        let mut producers = self.walk_to(start, options);
        if self.position != start {
            return producers;
        }
        self.fold.add_findings(findings);
        for facts in facts {
            producers.extend(self.fold.batch(facts));
            self.position = facts.header.end();
            self.expected = facts.header.next_offset();
        }
        producers
    }

    /// Walks serially until a batch starts at `until` or behind it.
    fn walk_to(&mut self, until: Position, options: &Options) -> Vec<ProducerBatch> {
        let mut producers = Vec::new();
        let Ok(file) = &self.file else { return producers };
        if self.position >= until {
            return producers;
        }
        let (place, context) = (self.fold.place().clone(), *self.fold.context());
        let mut inspector = BatchInspector::new(options, self.segment.partition.numbering());
        let mut batches = SoundBatches::from(file, context.base_offset, self.position).expecting(self.expected);
        while batches.position() < until {
            match batches.next_item() {
                None => break,
                Some(SoundItem::Damage(damage)) => self.fold.damage(&damage),
                Some(SoundItem::Batch(batch)) => {
                    let facts = inspector.inspect(&batch, &place, &context);
                    producers.extend(self.fold.batch(&facts));
                    self.expected = facts.header.next_offset();
                }
            }
        }
        self.position = batches.position();
        self.fold.add_findings(inspector.findings);
        producers
    }

    /// Walks what is left.
    pub(super) fn finish(mut self, options: &Options) -> (Vec<ProducerBatch>, SegmentDone) {
        let end = self.file.as_ref().map_or(Position(0), SegmentFile::end);
        let producers = self.walk_to(end, options);
        let Self { segment, companions, file, fold, .. } = self;
        let summary = match &file {
            Ok(file) => fold.finish(file),
            Err(error) => unopened(&segment, segment.partition.image.size_of(&segment.name), error),
        };
        (producers, SegmentDone { segment, summary, companions })
    }
}

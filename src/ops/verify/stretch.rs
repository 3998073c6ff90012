//! One log that several workers look at: stretches that begin where a batch probably starts, put together in order. A stretch counts
//! only if the walk so far ends exactly where it begins; what lies between is walked by whoever puts them together, damage and all.

use super::batch::{BatchFacts, BatchInspector};
use super::context::{Place, SegmentContext};
use super::options::Options;
use super::segment::{ProducerBatch, SegmentFold};
use crate::format::control::ControlNumbering;
use crate::format::resync::ResyncBounds;
use crate::format::{Offset, Position};
use crate::logdir::{LogScanner, Resync, SegmentFile};
use crate::ops::{Finding, Progress, SoundBatches, SoundItem};

/// Batches whose facts are handed over together.
const BATCHES_TOGETHER: usize = 2048;
/// How far behind a place a batch is looked for.
const MOST_SEARCHED: u64 = 2 * 1024 * 1024;

/// Sound batches that follow each other.
#[derive(Debug)]
pub(super) struct Stretch {
    pub(super) start: Position,
    pub(super) facts: Vec<BatchFacts>,
    pub(super) findings: Vec<Finding>,
}

/// Where stretches may begin, by looking for batches: the first at the start of the file, the others about so far apart.
pub(super) fn starts_by_search(file: &SegmentFile, base: Offset, stretch_bytes: u64) -> Vec<Position> {
    let mut starts = vec![Position(0)];
    let mut at = Position(stretch_bytes);
    while stretch_bytes > 0 && file.end().since(at) > stretch_bytes {
        let end = at.advance(MOST_SEARCHED).min(file.end());
        let mut scanner = LogScanner::over(file, at, end).reading(64 * 1024);
        if let Ok(Resync::Found(start)) = scanner.find_batch(at, &ResyncBounds::of_segment(base, end)) {
            starts.push(start);
        }
        at = at.advance(stretch_bytes);
    }
    starts
}

/// Looks at the sound batches from one place up to another, and stops at the first thing that is none.
pub(super) fn look(
    file: &SegmentFile,
    (start, end): (Position, Position),
    (place, context, numbering): (&Place, &SegmentContext, ControlNumbering),
    (options, progress): (&Options, &dyn Progress),
    send: &mut dyn FnMut(Stretch),
) {
    let mut inspector = BatchInspector::new(options, numbering);
    let mut batches = SoundBatches::from(file, context.base_offset, start);
    let mut facts = Vec::new();
    let mut message_start = start;
    while batches.position() < end {
        let Some(SoundItem::Batch(batch)) = batches.next_item() else { break };
        let batch_end = batch.header().end();
        facts.push(inspector.inspect(&batch, place, context));
        if facts.len() >= BATCHES_TOGETHER {
            let findings = std::mem::take(&mut inspector.findings);
            send(Stretch { start: message_start, facts: std::mem::take(&mut facts), findings });
            message_start = batch_end;
        }
        if progress.is_cancelled() {
            return;
        }
    }
    progress.advance(end.since(start));
    if !facts.is_empty() {
        send(Stretch { start: message_start, facts, findings: inspector.findings });
    }
}

/// A log that is being put together.
#[derive(Debug)]
pub(super) struct StretchedLog {
    pub(super) fold: SegmentFold,
    numbering: ControlNumbering,
    /// How far the walk has come.
    position: Position,
    /// The offset after the last sound batch.
    expected: Offset,
}

impl StretchedLog {
    pub(super) fn new(fold: SegmentFold, numbering: ControlNumbering) -> Self {
        let expected = fold.context().base_offset;
        Self { fold, numbering, position: Position(0), expected }
    }

    /// Takes a stretch in, or drops it where it does not follow on.
    pub(super) fn take(&mut self, file: &SegmentFile, stretch: Stretch, options: &Options) -> Vec<ProducerBatch> {
        let mut producers = self.walk_to(file, stretch.start, options);
        if self.position != stretch.start {
            return producers;
        }
        self.fold.add_findings(stretch.findings);
        for facts in &stretch.facts {
            producers.extend(self.fold.batch(facts));
            self.position = facts.header.end();
            self.expected = facts.header.next_offset();
        }
        producers
    }

    /// Walks serially until a batch starts at `until` or behind it.
    pub(super) fn walk_to(&mut self, file: &SegmentFile, until: Position, options: &Options) -> Vec<ProducerBatch> {
        let mut producers = Vec::new();
        if self.position >= until {
            return producers;
        }
        let (place, context) = (self.fold.place().clone(), *self.fold.context());
        let mut inspector = BatchInspector::new(options, self.numbering);
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
}

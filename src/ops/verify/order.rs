//! What must hold between the batches of a log, one after the other: offsets, leader epochs, the bounds of the segment.

use crate::format::{BatchHeader, LeaderEpoch, Offset, Position};
use crate::ops::broker::index_rules;
use crate::ops::{Fact, Finding, FindingId};

use super::context::{Place, SegmentContext};

/// Batches of a run that are remembered to find their originals.
const MOST_REMEMBERED: usize = 64;

/// A sound batch as the checks between batches see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Passed {
    pub(super) header: BatchHeader,
    /// Its first offset: of a legacy wrapper that of its first message, where that is known.
    pub(super) first_offset: Offset,
}

/// Batches in a row whose offsets lie below where the log had come.
#[derive(Clone, Debug)]
pub(super) struct Backward {
    start: Position,
    end: Position,
    first_offset: Offset,
    last_offset: Offset,
    /// Where the log had come.
    expected: Offset,
    /// Whether the first of them begins inside the batch before it.
    overlaps: bool,
    /// The first of them, as (base offset, checksum, size): what their originals have too.
    pub(super) identities: Vec<Identity>,
    count: usize,
    /// How many have an original.
    pub(super) originals: usize,
}

/// What two copies of a batch share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Identity {
    base_offset: Offset,
    crc: u32,
    size_bytes: u64,
}

impl Identity {
    pub(super) fn of(header: &BatchHeader) -> Self {
        Self { base_offset: header.base_offset, crc: header.crc, size_bytes: header.size_bytes }
    }
}

impl Backward {
    /// Where the first of them starts.
    pub(super) fn start(&self) -> Position {
        self.start
    }

    fn finding(&self, place: &Place, context: &SegmentContext) -> Finding {
        let all_seen_before = self.count == self.identities.len() && self.originals >= self.count;
        let id = if all_seen_before {
            FindingId::BatchDuplicate
        } else if self.overlaps {
            FindingId::BatchOffsetOverlap
        } else {
            FindingId::BatchOffsetRegression
        };
        let mut finding = place
            .finding_at(id, self.start, self.end.since(self.start))
            .with_facts(Fact::Offset(self.expected), Fact::Offset(self.first_offset));
        finding.severity = context.log_severity(finding.severity);
        finding.location = finding.location.offsets(self.first_offset, self.last_offset);
        finding
    }
}

/// The checks between the batches of one segment.
#[derive(Debug)]
pub(super) struct OrderCheck {
    /// The last batch that the log was taken to have come to.
    last: Option<Passed>,
    /// Where the log had come before that batch.
    before_last: Offset,
    run: Option<Backward>,
    /// Runs that are over.
    pub(super) runs: Vec<Backward>,
    epochs: EpochOrder,
}

/// The epoch of batches that were written before there were epochs.
const NO_EPOCH: LeaderEpoch = LeaderEpoch(-1);

/// Leader epochs along a log: the largest so far, and the batch that made it so.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct EpochOrder {
    /// The largest epoch so far.
    pub(super) largest: Option<LeaderEpoch>,
    before: Option<LeaderEpoch>,
    /// The only batch of the largest epoch, if there is just one.
    raised_by: Option<BatchHeader>,
    /// The first epoch that was met.
    pub(super) first: Option<(LeaderEpoch, BatchHeader)>,
}

impl EpochOrder {
    /// Takes the next batch in. Returns the batch that is out of order, if one is: this one, or the one before where that alone had
    /// an epoch above all others.
    pub(super) fn add(&mut self, header: &BatchHeader) -> Option<(BatchHeader, LeaderEpoch)> {
        let epoch = header.leader_epoch?;
        if epoch < NO_EPOCH {
            return Some((*header, self.largest.unwrap_or(NO_EPOCH)));
        }
        if self.first.is_none() {
            self.first = Some((epoch, *header));
        }
        let Some(largest) = self.largest else {
            self.largest = Some(epoch);
            self.raised_by = Some(*header);
            return None;
        };
        if epoch > largest {
            (self.before, self.largest, self.raised_by) = (Some(largest), Some(epoch), Some(*header));
            return None;
        }
        if epoch == largest {
            self.raised_by = None;
            return None;
        }
        match (self.raised_by, self.before) {
            (Some(raiser), Some(before)) if epoch >= before && epoch.0 >= 0 => {
                // Without that one batch everything is in order.
                let raised = epoch > before;
                self.largest = Some(epoch);
                self.raised_by = raised.then_some(*header);
                Some((raiser, before))
            }
            _ => Some((*header, largest)),
        }
    }
}

impl EpochOrder {
    /// The epochs of two parts of a log, one after the other, and the batch that is out of order at the seam, if one is: whether it
    /// is the earlier part's last, and the epoch that should be there.
    pub(super) fn join(&self, later: &Self) -> (Self, Option<(bool, BatchHeader, LeaderEpoch)>) {
        let (Some(largest), Some((first, header))) = (self.largest, later.first) else {
            return (if self.largest.is_some() { *self } else { *later }, None);
        };
        let start = self.first.or(later.first);
        if first >= largest {
            let before = later.before.or(Some(largest)).filter(|_| later.largest != Some(largest));
            return (Self { first: start, before: before.or(self.before), ..*later }, None);
        }
        match (self.raised_by, self.before) {
            (Some(raiser), Some(before)) if first >= before => {
                (Self { first: start, ..*later }, Some((true, raiser, before)))
            }
            _ => {
                let joined = if later.largest > Some(largest) { *later } else { *self };
                (Self { first: start, ..joined }, Some((false, header, largest)))
            }
        }
    }
}

impl OrderCheck {
    pub(super) fn new(base_offset: Offset) -> Self {
        Self { last: None, before_last: base_offset, run: None, runs: Vec::new(), epochs: EpochOrder::default() }
    }

    /// Takes the next batch in.
    pub(super) fn add(&mut self, passed: &Passed, place: &Place, context: &SegmentContext, out: &mut Vec<Finding>) {
        check_bounds(passed, place, context, out);
        if let Some((culprit, expected)) = self.epochs.add(&passed.header) {
            out.push(epoch_finding(&culprit, expected, place, context));
        }
        self.check_offsets(passed);
    }

    fn check_offsets(&mut self, passed: &Passed) {
        let Some(last) = self.last else {
            self.last = Some(*passed);
            return;
        };
        let reached = last.header.next_offset();
        if passed.first_offset >= reached {
            self.flush();
            (self.before_last, self.last) = (reached.max(self.before_last), Some(*passed));
            return;
        }
        if self.run.is_none() && self.is_last_the_culprit(&last, passed) {
            self.runs.push(Self::start_run(&last, self.before_last, false));
            self.last = Some(*passed);
            return;
        }
        self.extend_run(passed, reached, passed.header.base_offset > last.header.base_offset);
    }

    /// Whether the batch before is the one that stands out: without it everything is in order.
    fn is_last_the_culprit(&self, last: &Passed, passed: &Passed) -> bool {
        passed.first_offset >= self.before_last
            && passed.header.base_offset < last.header.base_offset
            && last.header.base_offset > self.before_last
    }

    fn start_run(passed: &Passed, expected: Offset, overlaps: bool) -> Backward {
        Backward {
            start: passed.header.position,
            end: passed.header.end(),
            first_offset: passed.first_offset,
            last_offset: passed.header.last_offset,
            expected,
            overlaps,
            identities: vec![Identity::of(&passed.header)],
            count: 1,
            originals: 0,
        }
    }

    fn extend_run(&mut self, passed: &Passed, reached: Offset, overlaps: bool) {
        match &mut self.run {
            Some(run) if run.end == passed.header.position => {
                run.end = passed.header.end();
                run.first_offset = run.first_offset.min(passed.first_offset);
                run.last_offset = run.last_offset.max(passed.header.last_offset);
                run.count += 1;
                if run.identities.len() < MOST_REMEMBERED {
                    run.identities.push(Identity::of(&passed.header));
                }
            }
            _ => {
                self.flush();
                self.run = Some(Self::start_run(passed, reached, overlaps));
            }
        }
    }

    /// Ends the run of batches that lie backward.
    pub(super) fn flush(&mut self) {
        self.runs.extend(self.run.take());
    }

    /// The findings of the runs, and the epochs for the seams between segments.
    pub(super) fn finish(mut self, place: &Place, context: &SegmentContext, out: &mut Vec<Finding>) -> EpochOrder {
        self.flush();
        out.extend(self.runs.iter().map(|run| run.finding(place, context)));
        self.epochs
    }
}

/// A batch whose epoch lies below one before it, or the one that stands out.
pub(super) fn epoch_finding(
    culprit: &BatchHeader,
    expected: LeaderEpoch,
    place: &Place,
    context: &SegmentContext,
) -> Finding {
    let epoch = culprit.leader_epoch.map_or(-1, |epoch| epoch.0);
    let mut finding = place
        .finding_at(FindingId::BatchLeaderEpochRegression, culprit.position, culprit.size_bytes)
        .with_facts(Fact::Number(i64::from(expected.0)), Fact::Number(i64::from(epoch)));
    finding.severity = context.log_severity(finding.severity);
    finding.location = finding.location.offsets(culprit.base_offset, culprit.last_offset);
    finding
}

/// A batch must lie in the range of offsets that the segment's indexes can hold.
fn check_bounds(passed: &Passed, place: &Place, context: &SegmentContext, out: &mut Vec<Finding>) {
    let (header, base) = (&passed.header, context.base_offset);
    let id = if passed.first_offset < base || header.base_offset < base {
        FindingId::BatchBelowSegmentBase
    } else if header.last_offset_delta >= 0 && !index_rules::fits(header.last_offset, base) {
        FindingId::BatchOffsetOverflow
    } else {
        return;
    };
    let mut finding = place
        .finding_at(id, header.position, header.size_bytes)
        .with_facts(Fact::Offset(base), Fact::Offset(header.base_offset));
    finding.severity = context.log_severity(finding.severity);
    finding.location = finding.location.offsets(passed.first_offset, header.last_offset);
    out.push(finding);
}

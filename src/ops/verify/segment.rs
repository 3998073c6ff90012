//! One segment: its batches in order, and its indexes beside them, in one pass.

use super::batch::BatchFacts;
use super::context::{Place, SegmentContext, Tail};
use super::offset_index::OffsetIndexCheck;
use super::order::{EpochOrder, Identity, OrderCheck, Passed};
use super::report::Sound;
use super::time_index::{IndexedLog, TimeIndexCheck};
use crate::format::{BatchHeader, LeaderEpoch, Offset, Position, TimestampMs};
use crate::logdir::{LogScanner, SegmentFile};
use crate::ops::broker::transactions::EndMarker;
use crate::ops::coverage::Coverage;
use crate::ops::{Damage, DamageKind, Fact, Finding, FindingId, Severity};

/// Findings of one file that are kept. A log that is damaged more often than that is not looked at finding by finding.
pub(super) const MOST_FINDINGS: usize = 10_000;

/// A batch of a producer, for the checks across segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProducerBatch {
    pub(super) header: BatchHeader,
    pub(super) marker: Option<EndMarker>,
    /// Whether offsets are missing somewhere since the producer batch before.
    pub(super) follows_gap: bool,
}

/// What a segment came to.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts that are independent of each other")]
pub(super) struct SegmentSummary {
    /// The offset in its name.
    pub(super) base_offset: Offset,
    pub(super) size_bytes: u64,
    pub(super) coverage: Coverage,
    /// Its sound batches.
    pub(super) sound: Sound,
    /// Those behind the first damage, where there is one.
    pub(super) behind_damage: Option<Sound>,
    /// The offset after the last one, the largest there is.
    pub(super) end_offset: Offset,
    /// The last batch whose end is the segment's.
    pub(super) last_batch: Option<BatchHeader>,
    /// The largest timestamp of a batch that is no control batch.
    pub(super) largest_data_timestamp: Option<TimestampMs>,
    pub(super) has_magic_2: bool,
    /// Whether offsets are missing between its batches, as cleaning leaves them.
    pub(super) has_gaps: bool,
    /// Whether anything in it is no sound batch.
    pub(super) is_damaged: bool,
    /// Whether its end is damaged.
    pub(super) has_damaged_end: bool,
    pub(super) epochs: EpochOrder,
    /// Each epoch that is above all before it, and the first offset that has it.
    pub(super) epoch_starts: Vec<(LeaderEpoch, Offset)>,
    pub(super) findings: Vec<Finding>,
    pub(super) offset_index_bytes: u64,
    pub(super) time_index_bytes: u64,
}

/// Takes the batches of one segment in, in order.
#[derive(Debug)]
pub(super) struct SegmentFold {
    place: Place,
    context: SegmentContext,
    order: OrderCheck,
    offset_index: Option<(Place, OffsetIndexCheck)>,
    time_index: Option<(Place, TimeIndexCheck)>,
    summary: SegmentSummary,
    modified: TimestampMs,
    /// Whether offsets are missing since the last batch of a producer.
    gap_since: bool,
    /// The first batch that reaches into the next segment.
    overlap: Option<BatchHeader>,
}

impl SegmentFold {
    pub(super) fn new(place: Place, context: SegmentContext, size_bytes: u64) -> Self {
        let base_offset = context.base_offset;
        let summary = SegmentSummary {
            base_offset,
            size_bytes,
            coverage: Coverage::default(),
            sound: Sound::default(),
            behind_damage: None,
            end_offset: base_offset,
            last_batch: None,
            largest_data_timestamp: None,
            has_magic_2: false,
            has_gaps: false,
            is_damaged: false,
            has_damaged_end: false,
            epochs: EpochOrder::default(),
            epoch_starts: Vec::new(),
            findings: Vec::new(),
            offset_index_bytes: 0,
            time_index_bytes: 0,
        };
        let order = OrderCheck::new(base_offset);
        Self {
            place,
            context,
            order,
            offset_index: None,
            time_index: None,
            summary,
            modified: TimestampMs(0),
            gap_since: false,
            overlap: None,
        }
    }

    /// Checks an offset index along the way.
    pub(super) fn with_offset_index(mut self, place: Place, check: OffsetIndexCheck) -> Self {
        self.offset_index = Some((place, check));
        self
    }

    /// Checks a time index along the way. `modified`: when the log file was.
    pub(super) fn with_time_index(mut self, place: Place, check: TimeIndexCheck, modified: TimestampMs) -> Self {
        self.time_index = Some((place, check));
        self.modified = modified;
        self
    }

    /// Where the segment's file is.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// The segment's surroundings.
    pub(super) fn context(&self) -> &SegmentContext {
        &self.context
    }

    /// Adds findings that were made elsewhere.
    pub(super) fn add_findings(&mut self, findings: impl IntoIterator<Item = Finding>) {
        let room = MOST_FINDINGS.saturating_sub(self.summary.findings.len());
        self.summary.findings.extend(findings.into_iter().take(room));
    }

    /// The next sound batch. Returns it again where a producer wrote it, for the checks across segments.
    pub(super) fn batch(&mut self, facts: &BatchFacts) -> Option<ProducerBatch> {
        let header = &facts.header;
        let summary = &mut self.summary;
        summary.coverage.check(header.size_bytes);
        let sound = Sound {
            batches: 1,
            records: facts.records_count,
            bytes: header.size_bytes,
            offsets: Some((facts.first_offset, header.last_offset)),
        };
        summary.sound = summary.sound.and(sound);
        summary.behind_damage = summary.behind_damage.map(|behind| behind.and(sound));
        summary.has_magic_2 |= !header.is_legacy();
        if !header.is_control() {
            summary.largest_data_timestamp = summary.largest_data_timestamp.max(header.max_timestamp);
        }
        // The end of an empty segment is its base.
        let follows_gap = facts.is_first_known && facts.first_offset > summary.end_offset;
        summary.has_gaps |= follows_gap;
        self.gap_since |= follows_gap;
        summary.has_damaged_end = false;
        if header.next_offset() >= summary.end_offset {
            summary.end_offset = header.next_offset();
            summary.last_batch = Some(*header);
        }
        if let Some(epoch) = header.leader_epoch.filter(|epoch| epoch.0 >= 0)
            && summary.epoch_starts.last().is_none_or(|(last, _)| epoch > *last)
        {
            summary.epoch_starts.push((epoch, header.base_offset));
        }
        let passed = Passed { header: *header, first_offset: facts.first_offset };
        self.order.add(&passed, &self.place, &self.context, &mut summary.findings);
        if let Some((_, check)) = &mut self.offset_index {
            check.batch(facts);
        }
        if let Some((_, check)) = &mut self.time_index {
            check.batch(facts);
        }
        if self.context.next_base_offset.is_some_and(|next| header.last_offset >= next) {
            self.overlap.get_or_insert(*header);
        }
        header.producer_id?;
        let follows_gap = std::mem::take(&mut self.gap_since);
        Some(ProducerBatch { header: *header, marker: facts.marker, follows_gap })
    }

    /// The next damaged range.
    pub(super) fn damage(&mut self, damage: &Damage) {
        let summary = &mut self.summary;
        (summary.is_damaged, summary.has_damaged_end) = (true, true);
        summary.behind_damage.get_or_insert_default();
        match damage.kind {
            DamageKind::Unreadable { size_bytes, .. } => {
                summary.coverage.refuse(size_bytes);
                summary.coverage.check(damage.size_bytes.saturating_sub(size_bytes));
            }
            DamageKind::LimitReached => summary.coverage.skip(damage.size_bytes),
            _ => summary.coverage.check(damage.size_bytes),
        }
        let location = self.place.finding(FindingId::LimitReached).location;
        let finding = damage.finding(location);
        let severity = severity_of(damage, &self.context, finding.severity);
        if self.context.contradicts_marker() && matches!(damage.kind, DamageKind::ZeroTail) {
            self.summary.findings.push(self.place.finding(FindingId::CleanMarkerContradicted));
        }
        self.add_findings([finding.with_severity(severity)]);
        self.gap_since = true;
        if let Some((_, check)) = &mut self.offset_index {
            check.damage(damage.end());
        }
        if let Some((_, check)) = &mut self.time_index {
            check.damage();
        }
    }

    /// What a segment came to whose log cannot be opened.
    pub(super) fn unreadable(self) -> SegmentSummary {
        let mut summary = self.summary;
        summary.coverage.refuse(summary.size_bytes);
        (summary.is_damaged, summary.has_damaged_end) = (true, true);
        summary
    }

    /// What the segment came to. `file` is its log, to look for the originals of repeated batches.
    pub(super) fn finish(mut self, file: &SegmentFile) -> SegmentSummary {
        self.order.flush();
        mark_duplicates(file, &mut self.order);
        let has_ordered_batches = self.order.runs.is_empty();
        let mut summary = self.summary;
        if let Some(header) =
            self.overlap.filter(|header| !self.order.runs.iter().any(|r| r.start() == header.position))
        {
            let size_bytes = summary.size_bytes.saturating_sub(header.position.0);
            let mut finding = self.place.finding_at(FindingId::SegmentOverlap, header.position, size_bytes);
            finding.severity = self.context.log_severity(finding.severity);
            finding.expected = self.context.next_base_offset.map(Fact::Offset);
            finding.found = Some(Fact::Offset(header.last_offset));
            finding.location = finding.location.offsets(header.base_offset, summary.end_offset.saturating_add(-1));
            summary.findings.push(finding);
        }
        summary.epochs = self.order.finish(&self.place, &self.context, &mut summary.findings);
        let log = IndexedLog {
            end: Position(summary.size_bytes),
            is_legacy: !summary.has_magic_2,
            has_ordered_batches,
            modified: self.modified,
        };
        if let Some((place, check)) = self.offset_index {
            summary.offset_index_bytes = check.finish(log, &place, &self.context, &mut summary.findings);
        }
        if let Some((place, check)) = self.time_index {
            summary.time_index_bytes = check.finish(log, &place, &self.context, &mut summary.findings);
        }
        if summary.findings.len() >= MOST_FINDINGS {
            summary.findings.push(self.place.finding(FindingId::LimitReached));
        }
        summary
    }
}

/// How bad a damaged range is where it lies.
fn severity_of(damage: &Damage, context: &SegmentContext, usual: Severity) -> Severity {
    match damage.kind {
        DamageKind::TornTail { .. } => context.tail_severity(Tail::Torn),
        DamageKind::ZeroTail => context.tail_severity(Tail::Zeros(damage.size_bytes)),
        DamageKind::TrailingBytes => context.tail_severity(Tail::Foreign),
        DamageKind::LimitReached => usual,
        _ => context.log_severity(usual),
    }
}

/// Looks through the log for the originals of batches that lie backward.
fn mark_duplicates(file: &SegmentFile, order: &mut OrderCheck) {
    let Some(last_start) = order.runs.iter().map(super::order::Backward::start).max() else { return };
    let mut scanner = LogScanner::new(file);
    while scanner.position() < last_start {
        let Ok(Some(batch)) = scanner.next_batch() else { return };
        let (identity, position) = (Identity::of(batch.header()), batch.header().position);
        for run in order.runs.iter_mut().filter(|run| position < run.start()) {
            run.originals += usize::from(run.identities.contains(&identity));
        }
    }
}

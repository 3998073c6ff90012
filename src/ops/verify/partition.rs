//! One partition put together: segments in order, and everything that must hold between them and the files beside them.

use std::sync::Arc;

use super::context::{DirectoryState, Place, SegmentContext, SegmentRole, Shutdown};
use super::directory::DirectoryFacts;
use super::epochs;
use super::input::{PartitionInput, SegmentInput};
use super::kraft;
use super::large::LargeSegment;
use super::options::Options;
use super::order::{EpochOrder, epoch_finding};
use super::producers::ProducerFold;
use super::report::{FileReport, FileRole};
use super::scan::{SegmentDone, SegmentMessage, TimeIndexes, missing_indexes};
use super::segment::{ProducerBatch, SegmentSummary};
use super::snapshot::Knowledge;
use super::swap;
use super::txn_index::{self, MarkedLog};
use crate::format::{Offset, TimestampMs, Uuid};
use crate::logdir::names::{FileKind, FileName};
use crate::ops::broker::index_rules;
use crate::ops::{Fact, Finding, FindingId, Severity};

/// What a partition came to, for the checks across partitions.
#[derive(Debug)]
pub(super) struct PartitionOutcome {
    pub(super) input: Arc<PartitionInput>,
    /// The offset after the last one.
    pub(super) end_offset: Offset,
    pub(super) topic_id: Option<Uuid>,
    pub(super) has_metadata_file: bool,
    pub(super) files: Vec<FileReport>,
    pub(super) findings: Vec<Finding>,
}

/// A partition that is being put together.
#[derive(Debug)]
pub(super) struct PartitionFold {
    input: Arc<PartitionInput>,
    facts: DirectoryFacts,
    /// The segments that come in, in order.
    expected: Vec<SegmentInput>,
    segments: Vec<SegmentSummary>,
    places: Vec<Place>,
    producers: ProducerFold,
    epochs: EpochOrder,
    newest: Option<TimestampMs>,
    earlier: TimeIndexes,
    large: Option<LargeSegment>,
    /// The segment whose batches are coming in.
    begun: Option<Offset>,
    files: Vec<FileReport>,
    findings: Vec<Finding>,
}

impl PartitionFold {
    pub(super) fn new(input: Arc<PartitionInput>, mut facts: DirectoryFacts) -> Self {
        let expected = input.segments();
        let first_base = expected.first().map(|segment| segment.context.base_offset);
        let start = if first_base == Some(Offset(0)) { Knowledge::Whole } else { Knowledge::Partial };
        let mut snapshots = std::mem::take(&mut facts.snapshots);
        snapshots.sort_by_key(|snapshot| snapshot.offset);
        let files = std::mem::take(&mut facts.files);
        let findings = std::mem::take(&mut facts.findings);
        Self {
            producers: ProducerFold::new(snapshots, start, input.log_start_offset.unwrap_or(Offset(0))),
            input,
            facts,
            expected,
            segments: Vec::new(),
            places: Vec::new(),
            epochs: EpochOrder::default(),
            newest: None,
            earlier: TimeIndexes::NeverSeen,
            large: None,
            begun: None,
            files,
            findings,
        }
    }

    /// Takes the next message in.
    pub(super) fn take(&mut self, message: SegmentMessage, options: &Options) {
        match message {
            SegmentMessage::Producers(batches) => {
                let (place, context) = self.current(None);
                self.producers_of(&batches, &place, &context);
            }
            SegmentMessage::Done(done) => self.segment(*done),
            SegmentMessage::Opened(segment, companions) => {
                self.large = Some(LargeSegment::new(*segment, *companions, options));
            }
            SegmentMessage::Stretch(stretch) => {
                let Some(mut large) = self.large.take() else { return };
                let batches = large.stretch(stretch, options);
                self.producers_of(&batches, large.place(), large.context());
                self.large = Some(large);
            }
            SegmentMessage::Closed => {
                let Some(large) = self.large.take() else { return };
                let (place, context) = (large.place().clone(), *large.context());
                let (batches, done) = large.finish(options);
                self.producers_of(&batches, &place, &context);
                self.segment(done);
            }
        }
    }

    /// The place and the surroundings of the segment whose batches come next.
    fn current(&self, of: Option<&SegmentInput>) -> (Place, SegmentContext) {
        match of.or_else(|| self.expected.get(self.segments.len())) {
            Some(segment) => (self.input.place(&segment.name), segment.context),
            None => (self.input.directory_place(), self.context_of_directory()),
        }
    }

    fn context_of_directory(&self) -> SegmentContext {
        SegmentContext {
            base_offset: Offset(0),
            next_base_offset: None,
            role: SegmentRole::Active,
            shutdown: self.input.shutdown,
            directory: self.input.directory,
        }
    }

    fn producers_of(&mut self, batches: &[ProducerBatch], place: &Place, context: &SegmentContext) {
        self.begin(context.base_offset);
        for batch in batches {
            self.producers.batch(batch, place, context, &mut self.findings);
        }
    }

    /// A segment begins: offsets may be missing before it.
    fn begin(&mut self, base_offset: Offset) {
        if self.begun == Some(base_offset) {
            return;
        }
        self.begun = Some(base_offset);
        if self.segments.last().is_some_and(|previous| base_offset > previous.end_offset) {
            self.producers.gap();
        }
    }

    fn segment(&mut self, done: SegmentDone) {
        let SegmentDone { segment, mut summary, mut companions } = done;
        self.begin(summary.base_offset);
        if summary.has_gaps || summary.is_damaged {
            self.producers.gap();
        }
        let place = self.input.place(&segment.name);
        let log = FileReport::new(&place, FileRole::Log, summary.size_bytes, summary.coverage);
        self.files.push(log.with_sound(summary.sound, summary.behind_damage));
        self.files.append(&mut companions.files);
        self.findings.append(&mut companions.findings);
        self.findings.append(&mut summary.findings);
        missing_indexes(&segment, &summary, self.earlier, &mut self.findings);
        if segment.name_of(FileKind::TimeIndex).is_some_and(|name| self.input.image.has(&name)) {
            self.earlier = TimeIndexes::Kept;
        }
        self.seam(&summary, &place, &segment.context);
        let marked = MarkedLog {
            is_damaged: summary.is_damaged || self.segments.iter().any(|earlier| earlier.is_damaged),
            has_gaps: summary.has_gaps
                || self.producers.has_gaps()
                || self.segments.first().unwrap_or(&summary).base_offset > Offset(0),
            end: summary.end_offset.max(segment.context.next_base_offset.unwrap_or_default()),
        };
        let txn_place = segment.name_of(FileKind::TxnIndex).map(|name| self.input.place(&name));
        let index = txn_place.as_ref().zip(companions.txn_index.as_ref());
        let aborts = std::mem::take(&mut self.producers.aborts);
        txn_index::check(index, &aborts, marked, &place, &segment.context, &mut self.findings);
        self.newest = self.newest.max(summary.largest_data_timestamp);
        self.places.push(place);
        self.segments.push(summary);
    }

    /// What must hold between a segment and the one before it.
    fn seam(&mut self, summary: &SegmentSummary, place: &Place, context: &SegmentContext) {
        let (joined, wrong) = self.epochs.join(&summary.epochs);
        self.epochs = joined;
        if let Some((is_earlier, culprit, expected)) = wrong {
            let place = if is_earlier { self.places.last().unwrap_or(place) } else { place };
            self.findings.push(epoch_finding(&culprit, expected, place, context));
        }
        if summary.size_bytes == 0 && context.role == SegmentRole::Closed {
            self.findings.push(place.finding(FindingId::SegmentEmptyInterior));
        }
        let Some(previous) = self.segments.last() else { return };
        // Where the end is damaged, that is where the missing offsets were.
        if summary.base_offset > previous.end_offset && !previous.has_damaged_end {
            self.gap(previous.end_offset, summary.base_offset, place, context);
        }
    }

    fn gap(&mut self, from: Offset, to: Offset, place: &Place, context: &SegmentContext) {
        let mut finding = place.finding(FindingId::SegmentGap).with_facts(Fact::Offset(from), Fact::Offset(to));
        // A gap that one segment could not span is what made a follower of a cleaned log begin the next.
        let is_wide = self.segments.last().is_some_and(|last| !index_rules::fits(to, last.base_offset));
        let usual = if self.is_cleaned() || is_wide { Severity::Info } else { finding.severity };
        finding.severity = context.log_severity(usual);
        finding.location = finding.location.offsets(from, to.saturating_add(-1));
        self.findings.push(finding);
    }

    /// Everything is in: the checks that need the whole log.
    pub(super) fn finish(mut self) -> PartitionOutcome {
        let context = self.context_of_directory();
        let end_offset = self.segments.last().map_or(Offset(0), |last| last.end_offset);
        self.producers.finish(end_offset, self.newest, &context, &mut self.findings);
        self.check_snapshots(end_offset);
        let epoch_place = self.input.place("leader-epoch-checkpoint".as_ref());
        epochs::check(&self.input, &self.facts, &self.segments, &epoch_place, &mut self.findings);
        if self.input.directory == DirectoryState::Metadata {
            let (place, quorum) = (self.input.directory_place(), self.input.place("quorum-state".as_ref()));
            kraft::check_log(&self.facts, &self.segments, &place, &quorum, &mut self.findings);
        }
        self.findings.extend(swap::check(&self.facts.swaps, &self.segments, &self.input));
        self.files.extend(self.facts.swaps.iter().map(|swap| swap.file.clone()));
        self.files.extend(swap::index_files(&self.input));
        self.warn_of_swept_files();
        self.check_emptiness();
        self.check_missing_logs();
        self.soften_in_doomed_directory();
        PartitionOutcome {
            input: self.input,
            end_offset,
            topic_id: self.facts.topic_id,
            has_metadata_file: self.facts.has_metadata_file,
            files: self.files,
            findings: self.findings,
        }
    }

    /// A clean stop leaves a snapshot at the end of every log with producers; one is kept for each segment since 2.8.
    fn check_snapshots(&mut self, end_offset: Offset) {
        if self.producers.is_empty() || self.input.directory != DirectoryState::Live {
            return;
        }
        let offsets = &self.facts.snapshot_offsets;
        let missing = |offset: Offset, severity: Severity| {
            let name = crate::logdir::names::offset_prefix(offset) + ".snapshot";
            let mut finding = self.input.place(name.as_ref()).finding(FindingId::SnapshotMissing);
            finding.location = finding.location.offsets(offset, offset);
            finding.with_severity(severity)
        };
        let is_damaged = self.segments.last().is_some_and(|last| last.has_damaged_end);
        let mut found = Vec::new();
        if self.input.shutdown == Shutdown::Clean && !offsets.contains(&end_offset) && !is_damaged {
            found.push(missing(end_offset, Severity::Warning));
        }
        let least = offsets.iter().min().copied();
        for segment in self.segments.iter().skip(1) {
            let base = segment.base_offset;
            if least.is_some_and(|least| least < base) && !offsets.contains(&base) {
                found.push(missing(base, Severity::Info));
            }
        }
        self.findings.extend(found);
    }

    /// Files of a name that a swap's completion removes, whatever they are.
    fn warn_of_swept_files(&mut self) {
        for finding in &mut self.findings {
            let name = finding.location.path.file_name().unwrap_or_default();
            if finding.id == FindingId::UnknownFile && swap::is_swept(name, &self.facts.swaps) {
                finding.severity = Severity::Warning;
            }
        }
    }

    /// A partition has a segment from its first moment on.
    fn check_emptiness(&mut self) {
        if !self.segments.is_empty() || self.input.directory != DirectoryState::Live {
            return;
        }
        let held = self.input.known_end_offset.filter(|end| *end > Offset(0));
        let finding = self.input.directory_place().finding(FindingId::SegmentMissingLog);
        let finding = match held {
            Some(end) => {
                finding.with_severity(Severity::Critical).with_facts(Fact::Offset(end), Fact::Offset(Offset(0)))
            }
            None => finding.with_severity(Severity::Info),
        };
        self.findings.push(finding);
    }

    /// Files of a segment without its log, where the log is missing between its neighbours: its data is gone, or lies in a file that
    /// the next start removes.
    fn check_missing_logs(&mut self) {
        let mut bases = self.facts.without_log.clone();
        bases.sort_unstable();
        bases.dedup();
        bases.retain(|base| self.is_hole(*base));
        for base in bases {
            let name = crate::logdir::names::offset_prefix(base) + ".log";
            let finding = self.input.place(name.as_ref()).finding(FindingId::SegmentMissingLog);
            self.findings.push(finding.with_severity(Severity::Critical));
        }
        let mut findings = std::mem::take(&mut self.findings);
        for finding in findings.iter_mut().filter(|finding| finding.id == FindingId::LeftoverDeleted) {
            let name = finding.location.path.file_name().unwrap_or_default();
            if let FileName::Segment { base, kind: FileKind::Log, .. } = FileName::parse(name)
                && self.input.image.size_of(name) > 0
                && self.is_hole(base)
            {
                finding.severity = Severity::Critical;
            }
        }
        self.findings = findings;
    }

    /// Whether offsets may be missing because the cleaner was here.
    fn is_cleaned(&self) -> bool {
        self.input.is_cleaned || self.segments.iter().any(|segment| segment.has_gaps)
    }

    /// Whether a segment is missing between its neighbours that would begin there.
    fn is_hole(&self, base: Offset) -> bool {
        let next = self.segments.iter().position(|segment| segment.base_offset >= base);
        let before = next.and_then(|next| next.checked_sub(1)).and_then(|index| self.segments.get(index));
        let log_start = self.input.log_start_offset.unwrap_or(Offset(0));
        let is_free = next
            .and_then(|next| self.segments.get(next))
            .is_some_and(|next| next.base_offset > base && next.base_offset > log_start);
        !self.is_cleaned() && is_free && before.is_some_and(|before| before.end_offset <= base)
    }

    /// Nothing that is wrong in a directory about to be deleted does harm.
    fn soften_in_doomed_directory(&mut self) {
        if self.input.directory == DirectoryState::Doomed {
            for finding in &mut self.findings {
                finding.severity = finding.severity.min(Severity::Warning);
            }
        }
    }
}

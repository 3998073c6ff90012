//! The metadata log's snapshots, and how they and the log go together.

use super::batch::BatchInspector;
use super::context::{DirectoryState, Place, SegmentContext, SegmentRole, Shutdown};
use super::directory::DirectoryFacts;
use super::options::Options;
use super::report::{FileReport, FileRole};
use super::scan::unreadable_at;
use super::segment::{SegmentFold, SegmentSummary};
use crate::format::control::{ControlNumbering, ControlRecord, ControlType};
use crate::format::record::Record;
use crate::format::{LeaderEpoch, Offset};
use crate::logdir::{ReadError, Scanned, SegmentFile};
use crate::ops::coverage::Coverage;
use crate::ops::{Fact, Finding, FindingId, RecordReader, SoundBatches, SoundItem};

/// A snapshot of the metadata log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct KraftSnapshot {
    pub(super) end_offset: Offset,
    pub(super) is_complete: bool,
}

/// What a snapshot file came to.
#[derive(Debug)]
pub(super) struct SnapshotCheck {
    pub(super) file: FileReport,
    pub(super) findings: Vec<Finding>,
    pub(super) is_complete: bool,
}

/// Looks at a snapshot: batches that count from 0, the first begins with a header record, the last holds the footer.
pub(super) fn check(
    opened: Result<SegmentFile, ReadError>,
    place: &Place,
    size_bytes: u64,
    options: &Options,
) -> SnapshotCheck {
    let file = match opened {
        Ok(file) => file,
        Err(error) => {
            return SnapshotCheck {
                file: FileReport::new(place, FileRole::KraftSnapshot, size_bytes, Coverage::refused(size_bytes)),
                findings: vec![unreadable_at(place, size_bytes, &error)],
                is_complete: false,
            };
        }
    };
    let context = SegmentContext {
        base_offset: Offset(0),
        next_base_offset: None,
        // Nothing is ever cut from a snapshot: a damaged end makes it useless.
        role: SegmentRole::Closed,
        shutdown: Shutdown::Clean,
        directory: DirectoryState::Metadata,
    };
    let mut fold = SegmentFold::new(place.clone(), context, file.size());
    let mut inspector = BatchInspector::new(options, ControlNumbering::Current);
    let mut reader = RecordReader::new(options.limits);
    let (mut first, mut last) = (None, None);
    let mut batches = SoundBatches::new(&file, Offset(0));
    while let Some(item) = batches.next_item() {
        match item {
            SoundItem::Damage(damage) => fold.damage(&damage),
            SoundItem::Batch(batch) => {
                let facts = inspector.inspect(&batch, place, &context);
                let types = control_types(&batch, &mut reader);
                first.get_or_insert(types.first().copied());
                last = types.last().copied();
                let _ = fold.batch(&facts);
            }
        }
    }
    fold.add_findings(inspector.findings);
    let mut summary = fold.finish(&file);
    let has_header = first.flatten() == Some(ControlType::SnapshotHeader);
    let has_footer = last == Some(ControlType::SnapshotFooter);
    let is_complete = has_header && has_footer && !summary.is_damaged;
    if !(has_header && has_footer) {
        let lacks = if has_header { "footer" } else { "header" };
        let finding = place.finding(FindingId::KraftSnapshotIncomplete);
        summary.findings.push(finding.with_facts(Fact::Text(lacks.to_owned()), None));
    }
    let report = FileReport::new(place, FileRole::KraftSnapshot, file.size(), summary.coverage)
        .with_sound(summary.sound, summary.behind_damage);
    SnapshotCheck { file: report, findings: summary.findings, is_complete }
}

fn control_types(batch: &Scanned<'_>, reader: &mut RecordReader) -> Vec<ControlType> {
    let mut types = Vec::new();
    if batch.header().is_control() {
        let _ = reader.read(batch, &mut |record: &Record<'_>| {
            let control = ControlRecord::parse(record.key, record.value, ControlNumbering::Current);
            types.extend(control.ok().map(|control| control.control_type));
            std::ops::ControlFlow::Continue(())
        });
    }
    types
}

/// What must hold between the metadata log, its snapshots and `quorum-state`.
pub(super) fn check_log(
    facts: &DirectoryFacts,
    segments: &[SegmentSummary],
    place: &Place,
    quorum_place: &Place,
    out: &mut Vec<Finding>,
) {
    let Some(first) = segments.first() else { return };
    let start = first.base_offset;
    let covers = |snapshot: &KraftSnapshot| snapshot.end_offset >= start;
    if start > Offset(0) && !facts.kraft_snapshots.iter().any(covers) {
        out.push(place.finding(FindingId::KraftSnapshotMissing).with_facts(Fact::Offset(start), None));
    }
    let epoch: Option<LeaderEpoch> = segments.iter().filter_map(|segment| segment.epochs.largest).max();
    let Some(epoch) = epoch.filter(|epoch| epoch.0 > 0) else { return };
    let stale = |found: Option<Fact>| {
        let expected = Fact::Number(i64::from(epoch.0));
        quorum_place.finding(FindingId::QuorumStateStale).with_facts(expected, found)
    };
    if !facts.has_quorum_state {
        out.push(stale(None));
    } else if let Some(known) = facts.quorum_epoch.filter(|known| *known < epoch) {
        out.push(stale(Some(Fact::Number(i64::from(known.0)))));
    }
}

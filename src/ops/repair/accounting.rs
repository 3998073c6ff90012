//! Every byte of the files that a result is made of: kept, or put aside with its reason.

use super::arrange::Segment;
use super::report::SetAside;
use super::select::Selection;
use super::source::{Contents, Origin, Piece, Source};
use crate::format::{Offset, Position};
use crate::logdir::names::{FileName, FileSuffix, LoaderView};
use crate::ops::plan::{Accounting, PartitionPlan, PlanReason, Quarantined};
use crate::ops::{DiskRange, FindingId};

/// Accounts for every byte of the files that the result is made of, and puts aside what is in no segment.
pub(super) fn account(
    plan: &mut PartitionPlan,
    sources: &[Source],
    contents: &[Contents],
    selection: &Selection,
    segments: &[Segment],
) -> Vec<SetAside> {
    let mut accounting = Accounting::default();
    let mut set_aside = Vec::new();
    for (index, (source, contents)) in sources.iter().zip(contents).enumerate() {
        let ranges = segments.iter().filter(|segment| segment.source == index).flat_map(|segment| &segment.ranges);
        let kept = ranges.map(DiskRange::len).fold(0, u64::saturating_add);
        let unkept = unkept(index, source, contents, selection);
        // A leftover that nothing is taken from is no part of the log: if it has nothing of its own, or stays where it is.
        let is_apart = source.origin == Origin::Deleted || unkept.iter().all(|range| range.is_spare);
        if source.origin.is_leftover() && kept == 0 && is_apart {
            continue;
        }
        let records_in = contents.records();
        let records_out = unkept.iter().map(|range| range.records).fold(0, u64::saturating_add);
        let bytes_out = unkept.iter().map(|range| range.size_bytes).fold(0, u64::saturating_add);
        accounting.bytes_in = accounting.bytes_in.saturating_add(source.size_bytes);
        accounting.bytes_kept = accounting.bytes_kept.saturating_add(kept);
        accounting.bytes_quarantined = accounting.bytes_quarantined.saturating_add(bytes_out);
        accounting.records_in = accounting.records_in.saturating_add(records_in);
        accounting.records_kept = accounting.records_kept.saturating_add(records_in.saturating_sub(records_out));
        for range in &unkept {
            quarantine(plan, range);
        }
        set_aside.extend(unkept);
    }
    plan.gaps = gaps(&set_aside, selection);
    plan.accounting = accounting;
    set_aside
}

/// What is not kept of a file, in the order of places.
fn unkept(index: usize, source: &Source, contents: &Contents, selection: &Selection) -> Vec<SetAside> {
    let aside = |start: Position, end: Position, reason| SetAside {
        file: source.name.clone(),
        position: start,
        size_bytes: end.since(start),
        reason,
        offsets: None,
        records: 0,
        is_spare: false,
    };
    let rejected = contents.rejected.iter().map(|rejected| {
        let is_elsewhere = |(first, last)| source.origin.is_leftover() && selection.covers(first, last);
        // What a cleaning has not written in full is in the segments that it read.
        let never_held_data = rejected.reason == FindingId::LogZeroTail || source.origin == Origin::Cleaned;
        SetAside {
            offsets: rejected.offsets,
            records: rejected.records,
            is_spare: never_held_data || rejected.offsets.is_some_and(is_elsewhere),
            ..aside(rejected.start, rejected.end, rejected.reason)
        }
    });
    let mut places: Vec<&Piece> = selection.kept.iter().filter(|piece| piece.source == index).collect();
    places.sort_unstable_by_key(|piece| piece.start);
    let dropped = selection.dropped.iter().filter(|dropped| dropped.piece.source == index).map(|dropped| {
        let piece = &dropped.piece;
        let stated = (piece.first, piece.last);
        // Offsets that cannot be right say nothing of what is missing.
        let missing = (dropped.reason == FindingId::BatchOffsetRegression).then(|| hole_at(piece, &places)).flatten();
        SetAside {
            offsets: Some(missing.unwrap_or(stated)),
            records: piece.records,
            is_spare: dropped.is_spare,
            ..aside(piece.start, piece.end, dropped.reason)
        }
    });
    let mut unkept: Vec<SetAside> = rejected.chain(dropped).collect();
    unkept.sort_by_key(|range| range.position);
    unkept
}

/// The offsets that are missing between the kept neighbours of a piece in its file, first and last inclusive. `places` are the kept
/// pieces of the file in the order of places.
fn hole_at(piece: &Piece, places: &[&Piece]) -> Option<(Offset, Offset)> {
    let at = places.partition_point(|kept| kept.start < piece.start);
    let (before, behind) = (places.get(at.checked_sub(1)?)?, places.get(at)?);
    let (first, last) = (before.last.next(), behind.first.saturating_add(-1));
    (first <= last).then_some((first, last))
}

fn quarantine(plan: &mut PartitionPlan, range: &SetAside) {
    let end = range.position.advance(range.size_bytes);
    let Some(content) = plan.before.file(&range.file).map(|file| file.content.slice(range.position, end)) else {
        return;
    };
    let mut name = range.file.clone();
    name.push(format!("@{}-{end}", range.position));
    plan.quarantined.push(Quarantined { name, content, reasons: vec![PlanReason::Finding(range.reason)] });
}

/// Sound records that are not in the result, nor in another copy there.
pub(super) fn records_lost(set_aside: &[SetAside]) -> u64 {
    set_aside.iter().filter(|range| !range.is_spare).map(|range| range.records).fold(0, u64::saturating_add)
}

/// Offsets that were there, sound or not, and are in no batch of the result.
fn gaps(set_aside: &[SetAside], selection: &Selection) -> Vec<(Offset, Offset)> {
    let mut gaps: Vec<(Offset, Offset)> = Vec::new();
    let mut wanted: Vec<(Offset, Offset)> =
        set_aside.iter().filter(|range| !range.is_spare).filter_map(|range| range.offsets).collect();
    wanted.sort_unstable();
    for (first, last) in wanted {
        let mut at = first;
        // Kept pieces are in the order of offsets and share none.
        let from = selection.kept.partition_point(|piece| piece.last < first);
        for piece in selection.kept.iter().skip(from).take_while(|piece| piece.first <= last) {
            if at < piece.first {
                push_gap(&mut gaps, (at, Offset(piece.first.0.saturating_sub(1))));
            }
            at = at.max(piece.last.next());
        }
        if at <= last {
            push_gap(&mut gaps, (at, last));
        }
    }
    gaps
}

fn push_gap(gaps: &mut Vec<(Offset, Offset)>, gap: (Offset, Offset)) {
    match gaps.last_mut().filter(|last| gap.0 <= last.1.next()) {
        Some(last) => last.1 = last.1.max(gap.1),
        None => gaps.push(gap),
    }
}

/// Why each file changes: what is wrong with it, or that it is a leftover.
pub(super) fn note_reasons(plan: &mut PartitionPlan, set_aside: &[SetAside]) {
    for range in set_aside {
        plan.note(&range.file, PlanReason::Finding(range.reason));
    }
    for name in plan.before.names() {
        let reason = match FileName::parse(&name).suffix() {
            FileSuffix::Swap => FindingId::LeftoverSwap,
            FileSuffix::Cleaned => FindingId::LeftoverCleaned,
            FileSuffix::Deleted => FindingId::LeftoverDeleted,
            FileSuffix::None if matches!(FileName::parse(&name), FileName::InvalidSegmentName { .. }) => {
                FindingId::SegmentNameInvalid
            }
            FileSuffix::None if LoaderView::of(&name) == LoaderView::StartFails => FindingId::SegmentNameInvalid,
            FileSuffix::None => continue,
        };
        plan.note(&name, PlanReason::Finding(reason));
    }
}

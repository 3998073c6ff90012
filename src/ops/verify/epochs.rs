//! `leader-epoch-checkpoint` against the epochs of the batches.

use super::context::{DirectoryState, Place, Shutdown};
use super::directory::DirectoryFacts;
use super::input::PartitionInput;
use super::segment::SegmentSummary;
use crate::format::checkpoint::EpochEntry;
use crate::format::{LeaderEpoch, Offset};
use crate::ops::{Fact, Finding, FindingId, Severity};

/// What the checkpoint says that the batches disprove, or what it does not know.
///
/// It may know more: an epoch in which nothing was written, or whose batches are cleaned away. After a crash the end may be missing.
pub(super) fn check(
    input: &PartitionInput,
    facts: &DirectoryFacts,
    segments: &[SegmentSummary],
    place: &Place,
    out: &mut Vec<Finding>,
) {
    if matches!(input.directory, DirectoryState::Doomed | DirectoryState::Aside) {
        return;
    }
    let (Some(first), Some(last)) = (segments.first(), segments.last()) else { return };
    // One beyond the end is a fault of its own.
    let log_start = input.log_start_offset.filter(|start| *start <= last.end_offset);
    let log_start = log_start.unwrap_or(first.base_offset).max(first.base_offset);
    let starts = starts_of(segments, log_start);
    let Some(entries) = &facts.epochs else {
        // A file that cannot be read has been told; one that is missing has nothing to say of any epoch.
        if !facts.has_epoch_file && !starts.is_empty() {
            out.push(missing(place, input, starts.first().copied()));
        }
        return;
    };
    out.extend(beyond_end(entries, last, place));
    out.extend(before_start(entries, log_start, place));
    let wrong =
        starts.iter().find(|(epoch, offset)| epoch_at(entries, *offset).is_some_and(|known| known.epoch != *epoch));
    if let Some((epoch, offset)) = wrong {
        let known = epoch_at(entries, *offset);
        let found = known.map(|known| Fact::Pair(i64::from(known.epoch.0), known.start_offset.0));
        let finding = place.finding(FindingId::LeaderEpochMismatch);
        let is_tail = input.shutdown == Shutdown::Unclean && entries.last() == known.as_ref();
        let severity = if is_tail { Severity::Info } else { severity_in(input, finding.severity) };
        let mut finding = finding.with_severity(severity).with_facts(Fact::Pair(i64::from(epoch.0), offset.0), found);
        finding.location = finding.location.offsets(*offset, *offset);
        out.push(finding);
        return;
    }
    let unknown = starts.iter().find(|(_, offset)| epoch_at(entries, *offset).is_none());
    out.extend(unknown.map(|start| missing(place, input, Some(*start))));
}

fn severity_in(input: &PartitionInput, usual: Severity) -> Severity {
    if input.directory == DirectoryState::Metadata { usual.min(Severity::Warning) } else { usual }
}

/// The epochs that the batches show, each above all before it, with the first offset of each. Those that ended before the log's
/// start are left out; the one that holds it begins there.
fn starts_of(segments: &[SegmentSummary], log_start: Offset) -> Vec<(LeaderEpoch, Offset)> {
    let mut starts: Vec<(LeaderEpoch, Offset)> = Vec::new();
    for (epoch, offset) in segments.iter().flat_map(|segment| &segment.epoch_starts) {
        if starts.last().is_some_and(|(last, _)| epoch <= last) {
            continue;
        }
        if *offset <= log_start {
            starts.clear();
        }
        starts.push((*epoch, (*offset).max(log_start)));
    }
    starts
}

/// The entry in which an offset lies.
fn epoch_at(entries: &[EpochEntry], offset: Offset) -> Option<EpochEntry> {
    entries.iter().take_while(|entry| entry.start_offset <= offset).last().copied()
}

/// Batches of an epoch that the file does not know. A clean start leaves it so, and a follower that asks is told wrong.
fn missing(place: &Place, input: &PartitionInput, start: Option<(LeaderEpoch, Offset)>) -> Finding {
    let finding = place.finding(FindingId::LeaderEpochMismatch);
    let severity = severity_in(input, finding.severity.min(Severity::Warning));
    let expected = start.map(|(epoch, offset)| Fact::Pair(i64::from(epoch.0), offset.0));
    let mut finding = finding.with_severity(severity).with_facts(expected, None);
    if let Some((_, offset)) = start {
        finding.location = finding.location.offsets(offset, offset);
    }
    finding
}

/// An entry that begins behind the log's end is dropped at the next start.
fn beyond_end(entries: &[EpochEntry], last: &SegmentSummary, place: &Place) -> Option<Finding> {
    let entry = entries.iter().find(|entry| entry.start_offset > last.end_offset)?;
    // Where the end is damaged, what is left of it may be shorter than the log was.
    let severity = if last.has_damaged_end { Severity::Info } else { Severity::Error };
    let found = Fact::Pair(i64::from(entry.epoch.0), entry.start_offset.0);
    let finding = place.finding(FindingId::LeaderEpochMismatch).with_severity(severity);
    Some(finding.with_facts(Fact::Offset(last.end_offset), found))
}

/// Retention moves the first entry up to the log's start. Entries from before say that segments went without it.
fn before_start(entries: &[EpochEntry], log_start: Offset, place: &Place) -> Option<Finding> {
    let first = entries.first().filter(|first| first.start_offset < log_start)?;
    let found = Fact::Pair(i64::from(first.epoch.0), first.start_offset.0);
    let finding = place.finding(FindingId::LeaderEpochMismatch).with_severity(Severity::Info);
    Some(finding.with_facts(Fact::Offset(log_start), found))
}

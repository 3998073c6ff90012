//! An interrupted swap: what the next start does with its files, and whether that loses sound records.
//!
//! Brokers rename `.cleaned` to `.swap` from the highest base down, so a `.swap` at or above a `.cleaned` belongs to a swap that had
//! not begun and is dropped. What remains is completed: the files in the range of offsets of the `.log.swap` files go, and the
//! swaps take their names (`LogLoader.removeTempFilesAndCollectSwapFiles`).

use std::ffi::{OsStr, OsString};

use super::context::Place;
use super::input::PartitionInput;
use super::options::Options;
use super::report::{FileReport, FileRole};
use super::scan::unreadable_at;
use super::segment::SegmentSummary;
use crate::format::Offset;
use crate::logdir::names::{LoaderView, SwapKind, leading_offset};
use crate::ops::coverage::Coverage;
use crate::ops::{Fact, Finding, FindingId, Severity, SoundBatches, SoundItem};

/// A `.log.swap` that the next start puts in place.
#[derive(Clone, Debug)]
pub(super) struct SwapLog {
    pub(super) place: Place,
    pub(super) file: FileReport,
    base_offset: Offset,
    /// Where a broker takes its end to be: that of its last whole batch.
    end_offset: Offset,
    records: u64,
    is_damaged: bool,
}

/// The swaps that the next start completes, in order. Those that it drops, and files of indexes, are told at once.
pub(super) fn plan(partition: &PartitionInput, options: &Options, out: &mut Vec<Finding>) -> Vec<SwapLog> {
    let names = partition.image.names();
    let least_cleaned = names
        .iter()
        .filter_map(|name| match LoaderView::of(name) {
            LoaderView::Cleaned(base) => Some(base),
            _ => None,
        })
        .min();
    let mut logs = Vec::new();
    for name in &names {
        let LoaderView::Swap { base, kind } = LoaderView::of(name) else { continue };
        let place = partition.place(name);
        let is_dropped = least_cleaned.is_some_and(|cleaned| base >= cleaned);
        if kind == SwapKind::Log && !is_dropped {
            logs.push(read(partition, name, base, options, out));
        } else {
            out.push(place.finding(FindingId::LeftoverSwap));
        }
    }
    logs
}

fn read(
    partition: &PartitionInput,
    name: &OsString,
    base_offset: Offset,
    options: &Options,
    out: &mut Vec<Finding>,
) -> SwapLog {
    let place = partition.place(name);
    let size = partition.image.size_of(name);
    let mut swap = SwapLog {
        file: FileReport::new(&place, FileRole::Leftover, size, Coverage::checked(size)),
        place,
        base_offset,
        end_offset: base_offset,
        records: 0,
        is_damaged: false,
    };
    match partition.image.open(name, options.io) {
        Err(error) => {
            out.push(unreadable_at(&swap.place, size, &error));
            swap.file.coverage = Coverage::refused(size);
            swap.is_damaged = true;
        }
        Ok(file) => {
            let mut batches = SoundBatches::new(&file, base_offset);
            while let Some(item) = batches.next_item() {
                match item {
                    SoundItem::Damage(_) => swap.is_damaged = true,
                    SoundItem::Batch(batch) => {
                        let header = batch.header();
                        swap.end_offset = swap.end_offset.max(header.next_offset());
                        let records = u64::try_from(header.records_count.unwrap_or(1)).unwrap_or(0);
                        swap.records = swap.records.saturating_add(records);
                    }
                }
            }
        }
    }
    swap
}

/// Files of a swap that are no log are passed over by the coverage of the rest.
pub(super) fn index_files(partition: &PartitionInput) -> impl Iterator<Item = FileReport> + '_ {
    let names = partition.image.names();
    names.into_iter().filter_map(|name| {
        let LoaderView::Swap { kind, .. } = LoaderView::of(&name) else { return None };
        let size = partition.image.size_of(&name);
        let report = FileReport::new(&partition.place(&name), FileRole::Leftover, size, Coverage::skipped(size));
        (kind != SwapKind::Log).then_some(report)
    })
}

/// The findings for swaps that will be completed, beside the segments that they replace.
pub(super) fn check(swaps: &[SwapLog], segments: &[SegmentSummary], input: &PartitionInput) -> Vec<Finding> {
    let (Some(start), Some(end)) =
        (swaps.iter().map(|swap| swap.base_offset).min(), swaps.iter().map(|swap| swap.end_offset).max())
    else {
        return Vec::new();
    };
    let covers = |segment: &&SegmentSummary| {
        let is_replaced = swaps.iter().any(|swap| swap.base_offset == segment.base_offset);
        is_replaced || (segment.base_offset >= start && segment.base_offset < end)
    };
    let old: u64 = segments.iter().filter(covers).map(|segment| segment.sound.records).sum();
    let new: u64 = swaps.iter().map(|swap| swap.records).sum();
    let is_damaged = swaps.iter().any(|swap| swap.is_damaged);
    // In a log that is cleaned, a swap holds fewer records than what it replaces, and loses none.
    let drops = is_damaged || (new < old && !input.is_cleaned);
    let finding = |swap: &SwapLog| {
        let finding = swap.place.finding(FindingId::LeftoverSwap);
        let number = |count: u64| Fact::Number(i64::try_from(count).unwrap_or(i64::MAX));
        let finding = if drops { finding.with_severity(Severity::Critical) } else { finding };
        let mut finding = finding.with_facts(number(old), number(new));
        finding.location = finding.location.offsets(start, end.saturating_add(-1).max(start));
        finding
    };
    swaps.iter().map(finding).collect()
}

/// Whether a name would go with the files that a swap replaces, though it is none of Kafka's.
pub(super) fn is_swept(name: &OsStr, swaps: &[SwapLog]) -> bool {
    let Some(number) = leading_offset(name) else { return false };
    let start = swaps.iter().map(|swap| swap.base_offset).min();
    let end = swaps.iter().map(|swap| swap.end_offset).max();
    start.is_some_and(|start| number >= start) && end.is_some_and(|end| number < end)
}

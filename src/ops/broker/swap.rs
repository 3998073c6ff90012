//! What interrupted deletions, cleanings and swaps have left, and what a start makes of it (the first passes of
//! `LogLoader.load`; of `Log.loadSegments` up to 2.8).

use std::collections::BTreeSet;
use std::ffi::OsString;

use super::environment::LoadEnvironment;
use super::failure::LoadStop;
use super::log_reading::SegmentReader;
use super::rules::SwapCompletion;
use super::segment_files;
use crate::format::Offset;
use crate::logdir::names::{FileKind, FileSuffix, LoaderView, SwapKind, leading_offset};
use crate::ops::{Content, FindingId, ImageFile, PartitionImage};

/// Clears leftovers away. Returns the swaps that are to be finished after the segments are loaded, as up to 2.8.
pub(super) fn clear_leftovers(
    image: &mut PartitionImage,
    environment: &mut LoadEnvironment<'_>,
) -> Result<Vec<Offset>, LoadStop> {
    let mut swaps: Vec<(OsString, Offset, SwapKind)> = Vec::new();
    let mut least_cleaned: Option<Offset> = None;
    let mut cleaned = Vec::new();
    for name in image.names() {
        let bytes = name.as_encoded_bytes();
        let concerns = bytes.ends_with(b".cleaned") || bytes.ends_with(b".swap") || bytes.ends_with(b".deleted");
        match LoaderView::of(&name) {
            _ if !concerns => {}
            LoaderView::Removed => {
                image.remove(&name);
            }
            LoaderView::Cleaned(base) => {
                least_cleaned = Some(least_cleaned.map_or(base, |least| least.min(base)));
                cleaned.push(name);
            }
            LoaderView::Swap { base, kind } => swaps.push((name, base, kind)),
            LoaderView::StartFails => return Err(LoadStop::fails(FindingId::SegmentNameInvalid, &name, None)),
            _ => {}
        }
    }
    let finished = match environment.rules.swap_completion {
        SwapCompletion::RenameAll => {
            let (void, sound): (Vec<_>, Vec<_>) =
                swaps.into_iter().partition(|(_, base, _)| least_cleaned.is_some_and(|least| *base >= least));
            for (name, ..) in void {
                image.remove(&name);
            }
            for name in cleaned {
                image.remove(&name);
            }
            rename_all(image, environment, &sound)?;
            Vec::new()
        }
        SwapCompletion::RecoverAndReplace => {
            let logs = drop_swapped_indexes(image, &swaps);
            let (void, sound): (Vec<_>, Vec<_>) =
                logs.into_iter().partition(|base| least_cleaned.is_some_and(|least| *base >= least));
            for base in void {
                for kind in segment_files::SEGMENT_KINDS {
                    image.remove(&segment_files::name(base, kind, FileSuffix::Swap));
                }
            }
            for name in cleaned {
                image.remove(&name);
            }
            sound
        }
    };
    Ok(finished)
}

/// Deletes what the swaps cover and renames them as they are.
fn rename_all(
    image: &mut PartitionImage,
    environment: &mut LoadEnvironment<'_>,
    swaps: &[(OsString, Offset, SwapKind)],
) -> Result<(), LoadStop> {
    let mut covered: Option<(Offset, Offset)> = None;
    for (_, base, _) in swaps.iter().filter(|(_, _, kind)| *kind == SwapKind::Log) {
        let log_name = segment_files::name(*base, FileKind::Log, FileSuffix::Swap);
        if !image.has(&log_name) {
            // The name is spelled otherwise: a broker opens, and so makes, the file of the canonical name.
            let empty = ImageFile { content: Content::Zeros(0), modified: environment.now };
            image.put(&log_name, empty);
        }
        let (_, log, index) = segment_files::open_suffixed(image, environment, *base, FileSuffix::Swap)?;
        let index_name = segment_files::name(*base, FileKind::OffsetIndex, FileSuffix::Swap);
        if !image.has(&index_name) {
            // Asking for the next offset opens the index, which makes it at its full size.
            let capacity = environment.index.offset_index_capacity() as u64;
            let content = Content::Zeros(capacity.saturating_mul(8));
            image.put(&index_name, ImageFile { content, modified: environment.now });
        }
        let reader = SegmentReader::new(*base, &log, &index, environment.rules);
        let next = reader.next_offset(&mut environment.records).map_err(|stop| stop.into_failure(&log_name))?;
        covered = Some(covered.map_or((*base, next), |(least, most)| (least.min(*base), most.max(next))));
    }
    if let Some((least, most)) = covered {
        for name in image.names() {
            let is_swap = name.as_encoded_bytes().ends_with(b".swap");
            if !is_swap && leading_offset(&name).is_some_and(|offset| offset >= least && offset < most) {
                image.remove(&name);
            }
        }
    }
    for name in image.names() {
        if let Some(stem) = name.to_str().and_then(|name| name.strip_suffix(".swap")) {
            image.rename(&name, stem.as_ref());
        }
    }
    Ok(())
}

/// Up to 2.8 the indexes of a swap are not used, and those of the segment it replaces go with them. Returns the logs.
fn drop_swapped_indexes(image: &mut PartitionImage, swaps: &[(OsString, Offset, SwapKind)]) -> BTreeSet<Offset> {
    let mut logs = BTreeSet::new();
    for (name, base, kind) in swaps {
        let stem = name.to_str().and_then(|name| name.strip_suffix(".swap")).unwrap_or_default();
        let is_index = FileKind::ALL.iter().any(|kind| kind.is_index() && stem.ends_with(kind.extension()));
        if is_index || *kind == SwapKind::Log {
            for kind in [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TxnIndex] {
                image.remove(&segment_files::live_name(*base, kind));
            }
        }
        if *kind == SwapKind::Log {
            logs.insert(*base);
        }
    }
    logs
}

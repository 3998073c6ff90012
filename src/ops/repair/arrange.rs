//! The files of the log: which piece goes into which segment, and what the segments are called.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use super::source::{Origin, Piece, Source};
use crate::format::{Offset, Position};
use crate::logdir::names::{FileKind, FileName, FileSuffix, LoaderView};
use crate::ops::broker::index_rules::fits;
use crate::ops::{Content, DiskRange, ImageFile, PartitionImage};

/// Kafka addresses bytes of a log file with an `int`.
const MOST_LOG_BYTES: u64 = i32::MAX.unsigned_abs() as u64;
/// The files that go with a log file.
pub(super) const INDEX_KINDS: [FileKind; 3] = [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TxnIndex];

/// A segment of the result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    pub(super) base: Offset,
    pub(super) source: usize,
    pub(super) ranges: Vec<DiskRange>,
    last: Option<Offset>,
    size_bytes: u64,
}

impl Segment {
    fn takes(&self, piece: &Piece) -> bool {
        let size = self.size_bytes.saturating_add(piece.end.since(piece.start));
        self.source == piece.source && fits(piece.last, self.base) && size <= MOST_LOG_BYTES
    }

    fn push(&mut self, piece: &Piece) {
        self.last = Some(piece.last);
        self.size_bytes = self.size_bytes.saturating_add(piece.end.since(piece.start));
        match self.ranges.last_mut().filter(|range| range.end == piece.start) {
            Some(range) => range.end = piece.end,
            None => self.ranges.push(DiskRange { start: piece.start, end: piece.end }),
        }
    }

    /// Where a byte of its log comes from.
    pub(super) fn origin_of(&self, position: Position) -> Option<Position> {
        let mut at = Position(0);
        for range in &self.ranges {
            let end = at.advance(range.len());
            if position < end {
                return Some(range.start.advance(position.since(at)));
            }
            at = end;
        }
        None
    }

    /// The name of one of its files.
    pub(super) fn name(&self, kind: FileKind) -> OsString {
        name_of(self.base, kind)
    }
}

/// The name of a file in use.
pub(super) fn name_of(base: Offset, kind: FileKind) -> OsString {
    FileName::Segment { base, kind, suffix: FileSuffix::None }.to_name().unwrap_or_default()
}

/// Puts pieces, which are in the order of offsets, into segments.
pub(super) fn arrange(kept: &[Piece], sources: &[Source]) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut begun: BTreeSet<usize> = BTreeSet::new();
    let mut end = Offset(0);
    for piece in kept {
        if let Some(segment) = segments.last_mut().filter(|segment| segment.takes(piece)) {
            segment.push(piece);
        } else {
            // The first segment made of a file keeps the file's name where that can be.
            let own = sources.get(piece.source).and_then(|source| source.base);
            let own = own.filter(|base| begun.insert(piece.source) && *base >= end && fits(piece.last, *base));
            let base = own.filter(|base| *base <= piece.first).unwrap_or(piece.first);
            let mut segment = Segment { base, source: piece.source, ranges: Vec::new(), last: None, size_bytes: 0 };
            segment.push(piece);
            segments.push(segment);
        }
        end = piece.last.next();
    }
    add_empty(&mut segments, sources);
    segments
}

/// Empty segments stay: those that were empty, the last one, and one at least.
fn add_empty(segments: &mut Vec<Segment>, sources: &[Source]) {
    let live: Vec<(usize, &Source)> =
        sources.iter().enumerate().filter(|(_, source)| source.origin == Origin::Live).collect();
    let used: BTreeSet<usize> = segments.iter().map(|segment| segment.source).collect();
    let nothing_kept = segments.is_empty();
    for (place, (index, source)) in live.iter().enumerate() {
        let is_last = place + 1 == live.len();
        let is_only = nothing_kept && place == 0;
        let Some(base) = source.base.filter(|base| *base >= Offset(0) && !used.contains(index)) else { continue };
        if source.size_bytes > 0 && !is_last && !is_only {
            continue;
        }
        let at = segments.partition_point(|segment| segment.base <= base);
        let before = at.checked_sub(1).and_then(|before| segments.get(before));
        let is_free = before.is_none_or(|before| before.base < base && before.last.is_none_or(|last| last < base));
        if is_free {
            let empty = Segment { base, source: *index, ranges: Vec::new(), last: None, size_bytes: 0 };
            segments.insert(at, empty);
        }
    }
}

/// Where the log ends.
pub(super) fn log_end(segments: &[Segment]) -> Offset {
    segments.last().map_or(Offset(0), |segment| segment.last.map_or(segment.base, Offset::next))
}

/// The directory with these segments. Returns the segments whose indexes have to be made.
pub(super) fn build(
    before: &PartitionImage,
    sources: &[Source],
    segments: &[Segment],
) -> (PartitionImage, BTreeSet<Offset>) {
    let mut after = before.clone();
    let used: BTreeMap<usize, &Source> =
        segments.iter().filter_map(|segment| Some((segment.source, sources.get(segment.source)?))).collect();
    for name in before.names() {
        let goes = match FileName::parse(&name) {
            FileName::Segment { suffix: FileSuffix::Deleted, base, .. } => {
                used.values().any(|source| source.origin == Origin::Deleted && source.base == Some(base))
            }
            FileName::Segment { .. } | FileName::Snapshot { suffix: FileSuffix::Swap | FileSuffix::Cleaned, .. } => {
                true
            }
            FileName::InvalidSegmentName { suffix: FileSuffix::Deleted, .. } => false,
            FileName::InvalidSegmentName { misnaming, .. } => {
                !matches!(misnaming, crate::logdir::names::Misnaming::OtherDigits(_))
            }
            // `foo.swap`, say: nothing that is known, but a loader looks for a number in it.
            _ => LoaderView::of(&name) == LoaderView::StartFails,
        };
        if goes {
            after.remove(&name);
        }
    }
    let mut fresh = BTreeSet::new();
    for segment in segments {
        let Some(file) = sources.get(segment.source).and_then(|source| before.file(&source.name)) else { continue };
        let name = segment.name(FileKind::Log);
        let content = match &file.content {
            Content::OnDisk { file, size_bytes, .. } => {
                let ranges = if segment.ranges.is_empty() {
                    vec![DiskRange { start: Position(0), end: Position(0) }]
                } else {
                    segment.ranges.clone()
                };
                Content::OnDisk { file: file.clone(), size_bytes: *size_bytes, ranges }
            }
            other => other.clone(),
        };
        let is_as_before = content.whole_file() == Some(name.as_os_str());
        after.put(&name, ImageFile { content, modified: file.modified });
        if !is_as_before {
            fresh.insert(segment.base);
            continue;
        }
        for kind in INDEX_KINDS {
            let index = segment.name(kind);
            if let Some(file) = before.file(&index) {
                after.put(&index, file.clone());
            }
        }
    }
    (after, fresh)
}

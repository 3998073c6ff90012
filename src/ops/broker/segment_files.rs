//! The files of a segment in an image, by the names that a broker opens them under.

use std::collections::BTreeSet;
use std::ffi::OsString;

use super::environment::LoadEnvironment;
use super::failure::LoadStop;
use crate::format::Offset;
use crate::logdir::SegmentFile;
use crate::logdir::names::{FileKind, FileSuffix, offset_prefix};
use crate::ops::PartitionImage;

/// The largest index file that is read whole. A segment of 2 GiB has no more than 512 MiB of entries at any interval.
const MOST_INDEX_BYTES: u64 = 512 * 1024 * 1024;

/// The kinds of files that a segment consists of, without the snapshot.
pub(super) const SEGMENT_KINDS: [FileKind; 4] =
    [FileKind::Log, FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TxnIndex];

/// The name of a segment's file.
pub(super) fn name(base: Offset, kind: FileKind, suffix: FileSuffix) -> OsString {
    OsString::from(format!("{}{}{}", offset_prefix(base), kind.extension(), suffix.text()))
}

/// The name of a segment's file in use.
pub(super) fn live_name(base: Offset, kind: FileKind) -> OsString {
    name(base, kind, FileSuffix::None)
}

/// The log file of a segment, its name, and the bytes of the offset index: none where there is no such file.
pub(super) fn open(
    image: &PartitionImage,
    environment: &LoadEnvironment<'_>,
    base: Offset,
) -> Result<(OsString, SegmentFile, Vec<u8>), LoadStop> {
    open_suffixed(image, environment, base, FileSuffix::None)
}

/// The same of files with a suffix.
pub(super) fn open_suffixed(
    image: &PartitionImage,
    environment: &LoadEnvironment<'_>,
    base: Offset,
    suffix: FileSuffix,
) -> Result<(OsString, SegmentFile, Vec<u8>), LoadStop> {
    let log_name = name(base, FileKind::Log, suffix);
    let log = image.open(&log_name, environment.io)?;
    let index = image.read_small(&name(base, FileKind::OffsetIndex, suffix), MOST_INDEX_BYTES)?;
    Ok((log_name, log, index.unwrap_or_default()))
}

/// `LogSegments.values(from, to)`: from the segment that holds `from`, or the first one, up to those that start below `to`.
pub(super) fn in_range(segments: &BTreeSet<Offset>, from: Offset, to: Offset) -> Vec<Offset> {
    if from >= to {
        return Vec::new();
    }
    let floor = segments.range(..=from).next_back().copied();
    match floor {
        Some(floor) => segments.range(floor..to).copied().collect(),
        None => segments.range(..to).copied().collect(),
    }
}

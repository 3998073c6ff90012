//! What stands where a broker stops reading.

use std::ffi::OsStr;

use crate::format::{Offset, Position};
use crate::logdir::{IoMode, ReadError, SegmentFile};
use crate::ops::{Finding, FindingId, Location, PartitionImage, SoundBatches, SoundItem};

/// The damage at `position` of a log file, as a finding; `fallback` where a sound batch stands there.
pub(super) fn damage_at(
    log: &SegmentFile,
    base: Offset,
    position: Position,
    location: Location,
    fallback: FindingId,
) -> Finding {
    if let Some(SoundItem::Damage(damage)) = SoundBatches::from(log, base, position).next_item() {
        damage.finding(location)
    } else {
        let size = log.end().since(position);
        Finding::new(fallback, location.at(position, size))
    }
}

/// Opens the log file of a segment in an image.
pub(super) fn open_log(image: &PartitionImage, name: &OsStr, io: IoMode) -> Result<SegmentFile, ReadError> {
    image.open(name, io)
}

/// The place of a file of a partition.
pub(super) fn location_of(image: &PartitionImage, name: &OsStr) -> Location {
    Location::of_path(image.log_dir(), Some(image.topic_partition().clone()), image.relative(name))
}

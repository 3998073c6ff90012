//! Indexes, snapshots and leader epochs of a repaired log: what a broker's recovery of it would write.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use super::arrange::{INDEX_KINDS, Segment};
use super::options::{RepairError, RepairOptions};
use super::source::Piece;
use crate::format::checkpoint::{EpochEntry, LeaderEpochCheckpoint};
use crate::format::{Offset, TimestampMs};
use crate::logdir::names::{FileName, FileSuffix};
use crate::ops::broker::epochs::EpochHistory;
use crate::ops::broker::load::{DirectoryRole, LoadInput, Shutdown, load_log};
use crate::ops::broker::{LoadStop, Rules};
use crate::ops::{PartitionImage, Progress};

/// The name of the file with the leader epochs.
pub(super) const EPOCHS: &str = "leader-epoch-checkpoint";

/// The leader epochs of the batches, in the order of offsets.
pub(super) fn epochs_of(kept: &[Piece]) -> EpochHistory {
    let mut history = EpochHistory::default();
    for piece in kept {
        if let Some(epoch) = piece.epoch.filter(|epoch| epoch.0 >= 0) {
            // Neither number is negative.
            let _ = history.assign(EpochEntry { epoch, start_offset: piece.first });
        }
    }
    history
}

/// The files that go with a log, as a broker's recovery would write them.
pub(super) struct Companions {
    rebuilt: Option<PartitionImage>,
    epochs: EpochHistory,
    now: TimestampMs,
}

impl Companions {
    /// Recovers the log of an image from its beginning, as if it had neither indexes nor snapshots.
    pub(super) fn of(
        image: &PartitionImage,
        kept: &[Piece],
        log_start: Offset,
        options: &RepairOptions,
        rules: &Rules,
        progress: &dyn Progress,
    ) -> Result<Self, RepairError> {
        let epochs = epochs_of(kept);
        let mut bare = image.clone();
        for name in image.names() {
            let is_made = match FileName::parse(&name) {
                FileName::Snapshot { suffix: FileSuffix::None, .. } => true,
                FileName::Segment { kind, suffix: FileSuffix::None, .. } => kind.is_index(),
                _ => false,
            };
            if is_made {
                bare.remove(&name);
            }
        }
        let now = options.start.now;
        bare.put_bytes(OsStr::new(EPOCHS), LeaderEpochCheckpoint::encode(epochs.entries()), now);
        let input =
            LoadInput { shutdown: Shutdown::Unclean, recovery_point: Offset(0), log_start, role: DirectoryRole::Log };
        let rebuilt = match load_log(bare, &mut options.start.environment(rules, progress), input) {
            Ok(loaded) => Some(loaded.image),
            Err(LoadStop::Failure(_)) => None,
            Err(LoadStop::Unreadable(error)) => return Err(error.into()),
            Err(LoadStop::Cancelled) => return Err(RepairError::Cancelled),
        };
        Ok(Self { rebuilt, epochs, now })
    }

    /// Gives new segments their indexes.
    pub(super) fn index(&self, image: &mut PartitionImage, segments: &[Segment], fresh: &BTreeSet<Offset>) {
        for segment in segments.iter().filter(|segment| fresh.contains(&segment.base)) {
            for kind in INDEX_KINDS {
                self.replace(image, &segment.name(kind));
            }
        }
    }

    /// Gives a file the bytes that recovery would write; without any it goes. Returns whether that was a change.
    pub(super) fn replace(&self, image: &mut PartitionImage, name: &OsStr) -> bool {
        let before = image.file(name).map(|file| file.content.clone());
        if name == EPOCHS {
            image.put_bytes(name, LeaderEpochCheckpoint::encode(self.epochs.entries()), self.now);
        } else if let Some(rebuilt) = &self.rebuilt {
            match rebuilt.file(name) {
                Some(file) => image.put(name, file.clone()),
                None => {
                    image.remove(name);
                }
            }
        }
        image.file(name).map(|file| &file.content) != before.as_ref()
    }
}

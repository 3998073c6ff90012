//! What a broker does to a partition directory when it starts (`LogLoader.load`, `UnifiedLog`; up to 2.8 `Log.loadSegments`).
//!
//! The directory is an image, so nothing is written. The image that comes out is the directory as it is after an orderly stop
//! that follows at once: indexes cut to their entries, files marked for deletion gone.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use super::environment::{LoadEnvironment, RecordFormat};
use super::epochs::EpochHistory;
use super::failure::LoadStop;
use super::log_reading::SegmentReader;
use super::producers::ProducerState;
use super::recover::{Recovered, Target, recover_segment};
use super::rules::{BadFileOutcome, EpochsKept, IndexRecovery, LegacyLeaderEpochs, SwapCompletion, TxnVersionCheck};
use super::snapshots::{ProducerManager, Reload};
use super::split::split_segment;
use super::{segment_files, swap};
use crate::format::checkpoint::{LeaderEpochCheckpoint, ReaderException, reader_exception};
use crate::format::offset_index::OFFSET_INDEX_ENTRY;
use crate::format::time_index::TIME_INDEX_ENTRY;
use crate::format::txn_index::TxnIndex;
use crate::format::{Offset, len_u64};
use crate::logdir::names::{FileKind, FileSuffix, LoaderView};
use crate::ops::{Content, FindingId, ImageFile, PartitionImage};

/// The largest text file of a partition that is read.
const MOST_TEXT_BYTES: u64 = 64 * 1024 * 1024;
const EPOCHS: &str = "leader-epoch-checkpoint";

/// How the broker before stopped, as the one that starts believes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shutdown {
    /// The clean-shutdown marker is there.
    Clean,
    /// It is not.
    Unclean,
}

/// What the directory's name makes of the log.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DirectoryRole {
    /// A replica, live, future or stray.
    Log,
    /// About to be deleted: loaded without recovery.
    Doomed,
}

/// What a start knows about a log beside its directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadInput {
    /// How the broker before stopped.
    pub shutdown: Shutdown,
    /// From `recovery-point-offset-checkpoint`; 0 where it has no entry.
    pub recovery_point: Offset,
    /// From `log-start-offset-checkpoint`; 0 where it has no entry.
    pub log_start: Offset,
    /// What the directory's name makes of it.
    pub role: DirectoryRole,
}

/// Something that a load does to the log, in the order in which it happens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoadEvent {
    /// A segment was recovered: indexes rebuilt, and so many bytes cut off.
    Recovered {
        /// The segment.
        base: Offset,
        /// Bytes that the log lost.
        truncated_bytes: u64,
    },
    /// A segment was emptied, because an offset in it went back.
    Emptied {
        /// The segment.
        base: Offset,
        /// Bytes that the log lost.
        truncated_bytes: u64,
    },
    /// Segments behind one that lost bytes were deleted.
    LaterSegmentsDeleted {
        /// The segment that lost bytes.
        behind: Offset,
        /// Those deleted.
        bases: Vec<Offset>,
    },
    /// All segments were deleted, because the log ended before the checkpointed log start.
    AllSegmentsDeleted {
        /// Those deleted.
        bases: Vec<Offset>,
        /// Where the log ended.
        log_end: Offset,
    },
    /// A segment was split.
    Split {
        /// The segment.
        base: Offset,
        /// The new ones.
        into: Vec<Offset>,
    },
    /// A segment was recovered although nothing asked for it: its offset index was missing, or its transaction index was wrong.
    IndexMissing {
        /// The segment.
        base: Offset,
        /// What was wrong.
        reason: FindingId,
    },
    /// An empty segment was created, since none was left.
    Created {
        /// Its base offset.
        base: Offset,
    },
}

/// A loaded log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadedLog {
    /// The directory afterwards.
    pub image: PartitionImage,
    /// Where the log starts.
    pub log_start_offset: Offset,
    /// Where the broker believes it ends.
    pub log_end_offset: Offset,
    /// The new recovery point, before the orderly stop.
    pub recovery_point: Offset,
    /// The segments.
    pub segments: BTreeSet<Offset>,
    /// The leader epochs.
    pub epochs: EpochHistory,
    /// The producers.
    pub producers: ProducerState,
    /// What was done.
    pub events: Vec<LoadEvent>,
}

struct Loader<'a, 'e> {
    image: PartitionImage,
    environment: &'a mut LoadEnvironment<'e>,
    input: LoadInput,
    segments: BTreeSet<Offset>,
    epochs: EpochHistory,
    /// The file as it has to be written; until something changes it stays as it was read.
    epochs_changed: bool,
    producers: ProducerManager,
    events: Vec<LoadEvent>,
}

/// Loads a log as a broker does. The error is what a broker does not survive, or what could not be read.
pub fn load_log(
    image: PartitionImage,
    environment: &mut LoadEnvironment<'_>,
    input: LoadInput,
) -> Result<LoadedLog, LoadStop> {
    let producers = ProducerManager::new(&image)?;
    let mut loader = Loader {
        image,
        environment,
        input,
        segments: BTreeSet::new(),
        epochs: EpochHistory::default(),
        epochs_changed: false,
        producers,
        events: Vec::new(),
    };
    loader.read_epochs()?;
    loader.load()
}

impl Loader<'_, '_> {
    fn load(mut self) -> Result<LoadedLog, LoadStop> {
        let swaps = swap::clear_leftovers(&mut self.image, self.environment)?;
        while let Attempt::Overflow(base) = self.load_segments()? {
            self.split(base)?;
        }
        for base in swaps {
            self.finish_swap(base)?;
        }
        let (recovery_point, log_end) = match self.input.role {
            DirectoryRole::Log => self.recover()?,
            DirectoryRole::Doomed => {
                if self.segments.is_empty() {
                    self.create_segment(Offset(0));
                }
                (Offset(0), Offset(0))
            }
        };
        let first = self.segments.first().copied().unwrap_or(self.input.log_start);
        let log_start_offset = self.input.log_start.max(first);
        let epochs_from = match self.environment.rules.epochs_kept {
            EpochsKept::FromLogStart => log_start_offset,
            EpochsKept::FromCheckpoint => self.input.log_start,
        };
        self.truncate_epochs(epochs_from, log_end);
        self.producers.remove_strays(&mut self.image, &self.segments)?;
        let reload = match self.input.shutdown {
            Shutdown::Clean => Reload::AfterCleanShutdown,
            Shutdown::Unclean => Reload::FromLog,
        };
        let range = (&self.segments, log_start_offset, log_end);
        self.producers.rebuild(&mut self.image, self.environment, range, reload)?;
        self.close();
        Ok(LoadedLog {
            image: self.image,
            log_start_offset,
            log_end_offset: log_end,
            recovery_point,
            segments: self.segments,
            epochs: self.epochs,
            producers: self.producers.state,
            events: self.events,
        })
    }

    fn read_epochs(&mut self) -> Result<(), LoadStop> {
        let name = OsStr::new(EPOCHS);
        let is_legacy = self.environment.record_format == RecordFormat::Legacy;
        if is_legacy && self.environment.rules.legacy_leader_epochs == LegacyLeaderEpochs::Removed {
            self.image.remove(name);
            return Ok(());
        }
        if is_legacy && !self.image.has(name) {
            return Ok(());
        }
        let Some(bytes) = self.image.read_small(name, MOST_TEXT_BYTES)? else {
            self.image.put_bytes(name, Vec::new(), self.environment.now);
            return Ok(());
        };
        let malformed = FindingId::LeaderEpochMalformed;
        let checkpoint = LeaderEpochCheckpoint::parse(&bytes).strict().map_err(|fault| {
            let goes_offline = self.environment.rules.bad_leader_epochs == BadFileOutcome::LogDirOffline;
            match reader_exception(&fault) {
                ReaderException::Io if goes_offline => LoadStop::offline(malformed, name),
                _ => LoadStop::fails(malformed, name, None),
            }
        })?;
        let epochs = EpochHistory::from_lines(checkpoint.entries)
            .map_err(|_| LoadStop::fails(FindingId::LeaderEpochOrder, name, None))?;
        if is_legacy {
            self.image.remove(name);
        } else {
            self.epochs = epochs;
        }
        Ok(())
    }

    /// One pass over the files in the order of their names.
    fn load_segments(&mut self) -> Result<Attempt, LoadStop> {
        self.segments.clear();
        for name in self.image.names() {
            let bytes = name.as_encoded_bytes();
            let ends_with = |kind: FileKind| bytes.ends_with(kind.extension().as_bytes());
            if !segment_files::SEGMENT_KINDS.into_iter().any(ends_with) || !self.image.has(&name) {
                continue;
            }
            match LoaderView::of(&name) {
                LoaderView::Index(base) if !self.has_log(base) => {
                    self.image.remove(&name);
                }
                LoaderView::Log(base) => {
                    if let Attempt::Overflow(base) = self.load_segment(base)? {
                        return Ok(Attempt::Overflow(base));
                    }
                }
                LoaderView::StartFails => return Err(LoadStop::fails(FindingId::SegmentNameInvalid, &name, None)),
                _ => {}
            }
        }
        Ok(Attempt::Done)
    }

    /// Whether the log file of a segment exists: a directory of its name is enough for that.
    fn has_log(&self, base: Offset) -> bool {
        let name = segment_files::live_name(base, FileKind::Log);
        self.image.has(&name) || self.image.others().iter().any(|other| other.name == name)
    }

    fn load_segment(&mut self, base: Offset) -> Result<Attempt, LoadStop> {
        let file_name = |kind| segment_files::live_name(base, kind);
        let log_name = file_name(FileKind::Log);
        if !self.image.has(&log_name) {
            // Another spelling of the number leads here: the file of the canonical name is made, empty.
            let empty = ImageFile { content: Content::Zeros(0), modified: self.environment.now };
            self.image.put(&log_name, empty);
        }
        if self.image.size_of(&log_name) > u64::from(i32::MAX.unsigned_abs()) {
            return Err(LoadStop::fails(FindingId::LimitReached, &log_name, None));
        }
        let reason = if self.image.has(&file_name(FileKind::OffsetIndex)) {
            let time_index = file_name(FileKind::TimeIndex);
            if !self.image.has(&time_index) {
                self.image.put_bytes(&time_index, Vec::new(), self.environment.now);
            }
            self.check_txn_index(base)?
        } else {
            Some(FindingId::OffsetIndexMissing)
        };
        if let Some(reason) = reason {
            self.events.push(LoadEvent::IndexMissing { base, reason });
            let epoch_use = match self.environment.rules.index_recovery {
                IndexRecovery::WithEpochs => EpochUse::Assign,
                IndexRecovery::WithoutEpochs => EpochUse::Ignore,
            };
            match self.recover_target(Target { base, suffix: FileSuffix::None }, epoch_use)? {
                Recovered::Truncated(truncated_bytes) => {
                    self.events.push(LoadEvent::Recovered { base, truncated_bytes });
                }
                Recovered::Overflow => return Ok(Attempt::Overflow(base)),
                // Nobody catches it here.
                Recovered::InvalidOffset => {
                    return Err(LoadStop::fails(FindingId::BatchOffsetRegression, &log_name, None));
                }
            }
        }
        self.segments.insert(base);
        Ok(Attempt::Done)
    }

    /// `TransactionIndex.sanityCheck`.
    fn check_txn_index(&self, base: Offset) -> Result<Option<FindingId>, LoadStop> {
        let name = segment_files::live_name(base, FileKind::TxnIndex);
        let Some(bytes) = self.image.read_small(&name, MOST_TEXT_BYTES)? else { return Ok(None) };
        for entry in TxnIndex::new(&bytes).iter() {
            let is_unknown = match self.environment.rules.txn_version_check {
                TxnVersionCheck::HighByte => entry.version >> 8 > 0,
                TxnVersionCheck::Whole => entry.version != 0,
            };
            if is_unknown {
                return Err(LoadStop::fails(FindingId::TxnIndexVersionUnknown, &name, None));
            }
            if entry.last_offset < base {
                return Ok(Some(FindingId::TxnIndexEntryWrong));
            }
        }
        Ok(None)
    }

    fn recover_target(&mut self, target: Target, epoch_use: EpochUse) -> Result<Recovered, LoadStop> {
        let mut producers = ProducerManager::new(&self.image)?;
        let range = (&self.segments, self.input.log_start, target.base);
        producers.rebuild(&mut self.image, self.environment, range, Reload::FromLog)?;
        let before = self.epochs.clone();
        let epochs = match (epoch_use, self.environment.record_format) {
            (EpochUse::Assign, RecordFormat::Current) => Some(&mut self.epochs),
            _ => None,
        };
        let recovered = recover_segment(&mut self.image, self.environment, &mut producers, epochs, target)?;
        self.epochs_changed |= before != self.epochs;
        if let Recovered::Truncated(_) = recovered {
            producers.take_snapshot(&mut self.image, self.environment);
        }
        Ok(recovered)
    }

    fn split(&mut self, base: Offset) -> Result<(), LoadStop> {
        let into = split_segment(&mut self.image, self.environment, &mut self.segments, base)?;
        if !into.contains(&base) {
            let name = crate::logdir::names::FileName::Snapshot { offset: base, suffix: FileSuffix::None }.to_name();
            if let Some(name) = name {
                self.image.remove(&name);
            }
        }
        self.events.push(LoadEvent::Split { base, into });
        Ok(())
    }

    /// Up to 2.8: the swapped log is recovered, and takes the place of the segments it overlaps.
    fn finish_swap(&mut self, base: Offset) -> Result<(), LoadStop> {
        debug_assert_eq!(self.environment.rules.swap_completion, SwapCompletion::RecoverAndReplace);
        let swap_name = |kind| segment_files::name(base, kind, FileSuffix::Swap);
        let target = Target { base, suffix: FileSuffix::Swap };
        match self.recover_target(target, EpochUse::Ignore)? {
            Recovered::Truncated(_) => {}
            Recovered::Overflow => {
                return Err(LoadStop::fails(FindingId::BatchOffsetOverflow, &swap_name(FileKind::Log), None));
            }
            Recovered::InvalidOffset => {
                return Err(LoadStop::fails(FindingId::BatchOffsetRegression, &swap_name(FileKind::Log), None));
            }
        }
        let end = self.next_offset_of(base, FileSuffix::Swap)?;
        let mut replaced = Vec::new();
        for old in segment_files::in_range(&self.segments, base, end) {
            if self.next_offset_of(old, FileSuffix::None)? > base {
                replaced.push(old);
            }
        }
        for old in replaced {
            self.remove_segment(old);
            if old != base {
                self.producers.remove_of_segment(&mut self.image, old);
            }
        }
        for kind in segment_files::SEGMENT_KINDS {
            self.image.rename(&swap_name(kind), &segment_files::live_name(base, kind));
        }
        self.segments.insert(base);
        Ok(())
    }

    /// `LogSegment.readNextOffset`.
    fn next_offset_of(&mut self, base: Offset, suffix: FileSuffix) -> Result<Offset, LoadStop> {
        let (name, log, index) = segment_files::open_suffixed(&self.image, self.environment, base, suffix)?;
        let reader = SegmentReader::new(base, &log, &index, self.environment.rules);
        reader.next_offset(&mut self.environment.records).map_err(|stop| stop.into_failure(&name))
    }

    /// `recoverLog`: recovery point and log end.
    fn recover(&mut self) -> Result<(Offset, Offset), LoadStop> {
        if self.input.shutdown == Shutdown::Unclean {
            while let Attempt::Overflow(base) = self.recover_unflushed()? {
                self.split(base)?;
            }
        }
        let mut log_end = None;
        if let Some(last) = self.segments.last().copied() {
            let end = self.next_offset_of(last, FileSuffix::None)?;
            if end >= self.input.log_start {
                log_end = Some(end);
            } else {
                self.delete_all(end);
            }
        }
        if self.segments.is_empty() {
            self.create_segment(self.input.log_start);
        }
        match (self.input.shutdown, log_end) {
            (Shutdown::Clean, Some(end)) => Ok((end, end)),
            (_, Some(end)) => Ok((self.input.recovery_point.min(end), end)),
            (_, None) => {
                let last = self.segments.last().copied().unwrap_or(self.input.log_start);
                let end = self.next_offset_of(last, FileSuffix::None)?;
                Ok((self.input.recovery_point.min(end), end))
            }
        }
    }

    fn recover_unflushed(&mut self) -> Result<Attempt, LoadStop> {
        let unflushed = segment_files::in_range(&self.segments, self.input.recovery_point, Offset(i64::MAX));
        let mut left = unflushed.into_iter();
        while let Some(base) = left.next() {
            let target = Target { base, suffix: FileSuffix::None };
            let truncated_bytes = match self.recover_target(target, EpochUse::Assign)? {
                Recovered::Truncated(truncated_bytes) => {
                    self.events.push(LoadEvent::Recovered { base, truncated_bytes });
                    truncated_bytes
                }
                Recovered::Overflow => return Ok(Attempt::Overflow(base)),
                Recovered::InvalidOffset => self.empty_segment(base)?,
            };
            if truncated_bytes > 0 {
                let bases: Vec<Offset> = left.collect();
                for later in &bases {
                    self.remove_segment(*later);
                    self.producers.remove_of_segment(&mut self.image, *later);
                }
                if !bases.is_empty() {
                    self.events.push(LoadEvent::LaterSegmentsDeleted { behind: base, bases });
                }
                break;
            }
        }
        Ok(Attempt::Done)
    }

    /// `segment.truncateTo(base)`, which finds its way by the index that recovery has begun to write.
    fn empty_segment(&mut self, base: Offset) -> Result<u64, LoadStop> {
        let (log_name, log, index) = segment_files::open(&self.image, self.environment, base)?;
        let reader = SegmentReader::new(base, &log, &index, self.environment.rules);
        let found =
            reader.translate(base, &mut self.environment.records).map_err(|stop| stop.into_failure(&log_name))?;
        let now = self.environment.now;
        for kind in [FileKind::OffsetIndex, FileKind::TimeIndex] {
            self.image.put_bytes(&segment_files::live_name(base, kind), Vec::new(), now);
        }
        let txn_index = segment_files::live_name(base, FileKind::TxnIndex);
        if self.image.has(&txn_index) {
            self.image.put_bytes(&txn_index, Vec::new(), now);
        }
        let truncated_bytes = found.map_or(0, |batch| self.image.truncate(&log_name, batch.position.0, now));
        self.events.push(LoadEvent::Emptied { base, truncated_bytes });
        Ok(truncated_bytes)
    }

    fn delete_all(&mut self, log_end: Offset) {
        let bases: Vec<Offset> = self.segments.iter().copied().collect();
        for base in &bases {
            self.remove_segment(*base);
        }
        self.epochs.clear();
        self.epochs_changed = true;
        self.producers.start_over(&mut self.image, self.input.log_start);
        self.events.push(LoadEvent::AllSegmentsDeleted { bases, log_end });
    }

    fn remove_segment(&mut self, base: Offset) {
        for kind in segment_files::SEGMENT_KINDS {
            self.image.remove(&segment_files::live_name(base, kind));
        }
        self.segments.remove(&base);
    }

    fn create_segment(&mut self, base: Offset) {
        for kind in [FileKind::Log, FileKind::OffsetIndex, FileKind::TimeIndex] {
            let empty = ImageFile { content: Content::Zeros(0), modified: self.environment.now };
            self.image.put(&segment_files::live_name(base, kind), empty);
        }
        self.segments.insert(base);
        self.events.push(LoadEvent::Created { base });
    }

    fn truncate_epochs(&mut self, from: Offset, log_end: Offset) {
        if self.environment.record_format == RecordFormat::Legacy {
            return;
        }
        let before = self.epochs.clone();
        self.epochs.truncate_from_end(log_end);
        let begins_before = self.epochs.entries().first().is_some_and(|first| first.start_offset <= from);
        self.epochs.truncate_from_start(from);
        // Brokers write the file whenever an entry was touched, even where it says the same afterwards.
        if self.epochs_changed || begins_before || before != self.epochs {
            let bytes = LeaderEpochCheckpoint::encode(self.epochs.entries());
            self.image.put_bytes(OsStr::new(EPOCHS), bytes, self.environment.now);
        }
    }

    /// The active segment's indexes are grown at load and cut to their entries at the stop.
    fn close(&mut self) {
        let Some(active) = self.segments.last().copied() else { return };
        for (kind, entry) in [(FileKind::OffsetIndex, OFFSET_INDEX_ENTRY), (FileKind::TimeIndex, TIME_INDEX_ENTRY)] {
            let name = segment_files::live_name(active, kind);
            let size = self.image.size_of(&name);
            let entries = size / len_u64(entry);
            self.image.truncate(&name, entries.saturating_mul(len_u64(entry)), self.environment.now);
        }
    }
}

/// Whether a pass over the segments came to its end.
enum Attempt {
    Done,
    /// This segment is to be split, and the pass begun anew.
    Overflow(Offset),
}

/// Whether recovery tells the leader epochs.
#[derive(Clone, Copy)]
enum EpochUse {
    Assign,
    Ignore,
}

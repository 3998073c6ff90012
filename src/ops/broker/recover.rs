//! The recovery of one segment (`LogSegment.recover`): its log is read up to the first batch that is no good, cut there, and all
//! three indexes are written anew.

use std::ffi::OsStr;

use super::environment::LoadEnvironment;
use super::epochs::EpochHistory;
use super::failure::LoadStop;
use super::index_rules::{IndexBuilder, IndexRefusal, TxnIndexBuilder};
use super::markers::read_end_marker;
use super::segment_files;
use super::snapshots::{ProducerManager, ReplayStop};
use crate::format::{Offset, Position};
use crate::logdir::names::{FileKind, FileSuffix};
use crate::logdir::{LogScanner, ReadErrorKind, ScanStop, Scanned, SegmentFile};
use crate::ops::{FindingId, PartitionImage};

/// How a recovery ended that did not fail the start.
#[derive(Debug)]
pub(super) enum Recovered {
    /// Done; so many bytes were cut off the log.
    Truncated(u64),
    /// A batch's offset cannot be stored relative to the base offset: the segment is to be split.
    Overflow,
    /// An offset went back where an index entry was due: the segment is to be emptied.
    InvalidOffset,
}

/// A segment about to be recovered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) base: Offset,
    pub(super) suffix: FileSuffix,
}

struct Recovery<'a, 'e> {
    environment: &'a mut LoadEnvironment<'e>,
    producers: &'a mut ProducerManager,
    epochs: Option<&'a mut EpochHistory>,
    indexes: IndexBuilder,
    aborted: TxnIndexBuilder,
    log_name: &'a OsStr,
}

/// Why the walk over the batches ends.
enum End {
    /// Everything from here on is cut off.
    Cut,
    Refused(IndexRefusal),
    Stop(LoadStop),
}

/// Recovers a segment. `producers` holds the state at its base offset; `epochs` is left out where a broker does not pass it.
pub(super) fn recover_segment(
    image: &mut PartitionImage,
    environment: &mut LoadEnvironment<'_>,
    producers: &mut ProducerManager,
    epochs: Option<&mut EpochHistory>,
    target: Target,
) -> Result<Recovered, LoadStop> {
    let file_name = |kind| segment_files::name(target.base, kind, target.suffix);
    let log_name = file_name(FileKind::Log);
    let log = image.open(&log_name, environment.io)?;
    let (index_settings, now) = (environment.index, environment.now);
    let mut recovery = Recovery {
        environment,
        producers,
        epochs,
        indexes: IndexBuilder::new(target.base, index_settings),
        aborted: TxnIndexBuilder::default(),
        log_name: &log_name,
    };
    let refusal = match recovery.walk(&log) {
        End::Stop(stop) => return Err(stop),
        End::Refused(refusal) => Some(refusal),
        End::Cut => None,
    };
    let Recovery { indexes, aborted, .. } = recovery;
    let valid = indexes.valid_bytes();
    let txn_index = aborted.finish();
    let txn_name = file_name(FileKind::TxnIndex);
    if image.has(&txn_name) || !txn_index.is_empty() {
        image.put_bytes(&txn_name, txn_index, now);
    }
    let (built, refusal) = if let Some(refusal) = refusal {
        (indexes.so_far(), Some(refusal))
    } else {
        let so_far = indexes.clone();
        indexes.finish().map_or_else(|refusal| (so_far.so_far(), Some(refusal)), |built| (built, None))
    };
    image.put_bytes(&file_name(FileKind::OffsetIndex), built.offset_index, now);
    image.put_bytes(&file_name(FileKind::TimeIndex), built.time_index, now);
    match refusal {
        None => Ok(Recovered::Truncated(image.truncate(&log_name, valid, now))),
        Some(IndexRefusal::OffsetOverflow { .. }) => Ok(Recovered::Overflow),
        Some(IndexRefusal::InvalidOffset { .. }) => Ok(Recovered::InvalidOffset),
        Some(IndexRefusal::Full { .. }) => Err(LoadStop::fails(FindingId::LimitReached, &log_name, Position(valid))),
    }
}

impl Recovery<'_, '_> {
    fn walk(&mut self, log: &SegmentFile) -> End {
        let mut scanner = LogScanner::new(log);
        self.environment.progress.0.expect(log.size());
        loop {
            if self.environment.progress.0.is_cancelled() {
                return End::Stop(LoadStop::Cancelled);
            }
            let batch = match scanner.next_batch() {
                Ok(Some(batch)) => batch,
                Ok(None) | Err(ScanStop::SizeTooSmall { .. } | ScanStop::PastEnd { .. }) => return End::Cut,
                Err(ScanStop::Unreadable(error)) => return End::Stop(unreadable(error, self.log_name)),
            };
            self.environment.progress.0.advance(batch.header().size_bytes);
            match batch.crc_matches() {
                Ok(true) => {}
                Ok(false) => return End::Cut,
                Err(error) => return End::Stop(unreadable(error, self.log_name)),
            }
            if let Err(end) = self.take(&batch) {
                return end;
            }
        }
    }

    fn take(&mut self, batch: &Scanned<'_>) -> Result<(), End> {
        let header = batch.header();
        let position = header.position;
        self.indexes.add(header).map_err(End::Refused)?;
        if header.is_legacy() {
            return Ok(());
        }
        let failed = |stop: ReplayStop| End::Stop(stop.named(self.log_name));
        if let Some(epochs) = &mut self.epochs {
            let negative = |_| End::Stop(LoadStop::fails(FindingId::LeaderEpochMismatch, self.log_name, position));
            epochs.assign_recovered(header.leader_epoch, header.base_offset).map_err(negative)?;
        }
        let has_producer = header.producer_id.is_some_and(|producer_id| producer_id.0 >= 0);
        let marker = if header.is_control() && has_producer {
            read_end_marker(batch, &mut self.environment.records).map_err(|_| failed(ReplayStop::Marker(position)))?
        } else {
            None
        };
        let state = &mut self.producers.state;
        let ended =
            state.append(header, marker.as_ref()).map_err(|error| failed(ReplayStop::Refused(error, position)))?;
        self.producers.map_end = header.next_offset();
        if let Some(entry) = ended.and_then(|ended| ended.index_entry()) {
            let misordered = |_| End::Stop(LoadStop::fails(FindingId::TxnIndexEntryWrong, self.log_name, position));
            self.aborted.add(&entry).map_err(misordered)?;
        }
        Ok(())
    }
}

/// What a broker makes of a log file that the disk refuses to read in part.
fn unreadable(error: crate::logdir::ReadError, log_name: &OsStr) -> LoadStop {
    match error.kind {
        ReadErrorKind::IoAt { position, .. } => LoadStop::fails(FindingId::LogUnreadableRange, log_name, position),
        _ => LoadStop::Unreadable(error),
    }
}

//! The metadata log of KRaft at a start: always recovered from offset 0, then brought in line with its snapshots
//! (`KafkaMetadataLog`).

use std::ffi::OsString;

use super::cut::location_of;
use super::options::Options;
use super::partition::{EveryStart, PartitionStart, PredictError, Predicted, failed, load, predict_loaded};
use crate::format::checkpoint::QuorumState;
use crate::format::{LeaderEpoch, Offset, Position, TimestampMs};
use crate::logdir::names::{CheckpointState, FileKind, FileName, FileSuffix};
use crate::logdir::{LogScanner, ReadError};
use crate::ops::broker::load::{LoadedLog, Shutdown};
use crate::ops::broker::{FailureKind, LoadStop, Rules, StartFailure};
use crate::ops::{Finding, FindingId, PartitionImage, Progress};

/// The largest `quorum-state` that is read.
const MOST_TEXT_BYTES: u64 = 1024 * 1024;

/// A snapshot of the metadata log.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Snapshot {
    end_offset: Offset,
    epoch: LeaderEpoch,
    name: OsString,
}

/// Predicts what a start does to the metadata log.
pub(crate) fn predict_metadata_log(
    start: &PartitionStart,
    options: &Options,
    rules: &Rules,
    progress: &dyn Progress,
) -> Result<Predicted, PredictError> {
    // Neither marker nor checkpoints are asked.
    let zero = Offset(0);
    let start = &PartitionStart { shutdown: Shutdown::Unclean, recovery_point: zero, log_start: zero, ..start.clone() };
    let fails = |reason, file: OsString, position: Option<Position>| {
        let failure = StartFailure { kind: FailureKind::StartFails, reason, file, position };
        Ok(failed(start, failure, EveryStart::Fails))
    };
    let misnamed = start.image.files().find(|(name, _)| FileName::parse(name) == FileName::InvalidCheckpointName);
    if let Some((name, _)) = misnamed {
        return fails(FindingId::SegmentNameInvalid, name.to_os_string(), None);
    }
    let quorum_state = OsString::from("quorum-state");
    if let Some(bytes) = start.image.read_small(&quorum_state, MOST_TEXT_BYTES)?
        && QuorumState::parse(&bytes).fault.is_some()
    {
        return fails(FindingId::CheckpointMalformed, quorum_state, None);
    }
    let mut loaded = match load(start, start.load_input(), options, rules, progress) {
        Ok(loaded) => loaded,
        Err(LoadStop::Unreadable(error)) => return Err(PredictError::Read(error)),
        Err(LoadStop::Cancelled) => return Err(PredictError::Cancelled),
        Err(LoadStop::Failure(failure)) => return Ok(failed(start, failure, EveryStart::Fails)),
    };
    let snapshots = complete_snapshots(&start.image);
    let retained = |log_start: Offset| snapshots.iter().filter(move |snapshot| snapshot.end_offset >= log_start);
    if loaded.log_start_offset > zero && retained(loaded.log_start_offset).next().is_none() {
        return fails(FindingId::KraftSnapshotMissing, OsString::new(), None);
    }
    let latest = retained(loaded.log_start_offset).max().cloned();
    if let Some(latest) = &latest {
        align(&mut loaded, latest, options.now);
    }
    remove_old_snapshots(&mut loaded);
    if let Some(latest) = &latest
        && let Some((reason, position)) = fault_of(&start.image, latest, options)?
    {
        return fails(reason, latest.name.clone(), position);
    }
    let covered = latest.map(|snapshot| snapshot.end_offset);
    predict_loaded(start, loaded, options, rules, covered)
}

fn complete_snapshots(image: &PartitionImage) -> Vec<Snapshot> {
    let snapshots = image.files().filter_map(|(name, _)| match FileName::parse(name) {
        FileName::KraftCheckpoint { end_offset, epoch, state: CheckpointState::Complete } => {
            Some(Snapshot { end_offset, epoch, name: name.to_os_string() })
        }
        _ => None,
    });
    snapshots.collect()
}

/// `truncateToLatestSnapshot`: a log that ends before its newest snapshot is thrown away, and begun anew at the snapshot's end.
fn align(loaded: &mut LoadedLog, latest: &Snapshot, now: TimestampMs) {
    let latest_epoch = loaded.epochs.latest().map_or(LeaderEpoch(0), |entry| entry.epoch);
    let is_beyond =
        latest.epoch > latest_epoch || (latest.epoch == latest_epoch && latest.end_offset > loaded.log_end_offset);
    if !is_beyond {
        return;
    }
    for name in loaded.image.names() {
        if matches!(
            FileName::parse(&name),
            FileName::Segment { suffix: FileSuffix::None, .. } | FileName::Snapshot { suffix: FileSuffix::None, .. }
        ) {
            loaded.image.remove(&name);
        }
    }
    for kind in [FileKind::Log, FileKind::OffsetIndex, FileKind::TimeIndex] {
        let name = FileName::Segment { base: latest.end_offset, kind, suffix: FileSuffix::None }.to_name();
        if let Some(name) = name {
            loaded.image.put_bytes(&name, Vec::new(), now);
        }
    }
    loaded.image.put_bytes("leader-epoch-checkpoint".as_ref(), b"0\n0\n".to_vec(), now);
    loaded.epochs.clear();
    loaded.producers.clear();
    loaded.segments = [latest.end_offset].into();
    loaded.log_start_offset = latest.end_offset;
    loaded.log_end_offset = latest.end_offset;
    loaded.recovery_point = latest.end_offset;
}

/// Unfinished and deleted snapshots go, and those below the log start.
fn remove_old_snapshots(loaded: &mut LoadedLog) {
    for name in loaded.image.names() {
        let bytes = name.as_encoded_bytes();
        let is_leftover = bytes.ends_with(b".checkpoint.part") || bytes.ends_with(b".checkpoint.deleted");
        let is_old = matches!(
            FileName::parse(&name),
            FileName::KraftCheckpoint { end_offset, .. } if end_offset < loaded.log_start_offset
        );
        if is_old || is_leftover || name == "quorum-state.tmp" {
            loaded.image.remove(&name);
        }
    }
}

/// What is wrong with the newest snapshot, if a node does not come up over it. One that lacks its footer is read all the same.
fn fault_of(
    image: &PartitionImage,
    snapshot: &Snapshot,
    options: &Options,
) -> Result<Option<(FindingId, Option<Position>)>, ReadError> {
    let file = image.open(&snapshot.name, options.io)?;
    if file.size() == 0 {
        return Ok(Some((FindingId::KraftSnapshotIncomplete, None)));
    }
    let mut scanner = LogScanner::new(&file);
    loop {
        let position = scanner.position();
        match scanner.next_batch() {
            Ok(Some(batch)) if batch.crc_matches()? => {}
            Ok(Some(_)) => return Ok(Some((FindingId::BatchCrcMismatch, Some(position)))),
            Ok(None) | Err(crate::logdir::ScanStop::PastEnd { .. }) => return Ok(None),
            Err(crate::logdir::ScanStop::SizeTooSmall { .. }) => {
                return Ok(Some((FindingId::BatchLengthInvalid, Some(position))));
            }
            Err(crate::logdir::ScanStop::Unreadable(error)) => return Err(error),
        }
    }
}

/// A failure's finding, for the report of the partition.
pub(super) fn finding_of(image: &PartitionImage, failure: &StartFailure) -> Finding {
    let location = location_of(image, &failure.file);
    let location = match failure.position {
        Some(position) => location.at(position, 0),
        None => location,
    };
    Finding::new(failure.reason, location).with_severity(crate::ops::Severity::Critical)
}

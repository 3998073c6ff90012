//! A file that was named by itself: nothing is known around it.

use rayon::ThreadPool;

use super::context::{DirectoryState, Place, SegmentContext, SegmentRole, Shutdown};
use super::index_file::IndexFile;
use super::kraft;
use super::offset_index::OffsetIndexCheck;
use super::options::Options;
use super::report::{FileReport, FileRole};
use super::scan::unreadable_at;
use super::segment::SegmentFold;
use super::snapshot;
use super::stretch::{self, Stretch, StretchedLog};
use super::time_index::TimeIndexCheck;
use crate::format::checkpoint::{
    LeaderEpochCheckpoint, MetaProperties, OffsetCheckpoint, PartitionMetadata, QuorumState,
};
use crate::format::control::ControlNumbering;
use crate::format::offset_index::OFFSET_INDEX_ENTRY;
use crate::format::time_index::TIME_INDEX_ENTRY;
use crate::format::txn_index::TXN_INDEX_ENTRY;
use crate::format::{FormatError, Offset, Position, TimestampMs};
use crate::logdir::names::{FileKind, FileName, RootName};
use crate::logdir::{ReadError, SegmentFile, SingleFile};
use crate::ops::coverage::Coverage;
use crate::ops::parallel::in_order;
use crate::ops::{Finding, FindingId, Hidden, Progress};

const MOST_SMALL_BYTES: u64 = 256 * 1024 * 1024;

/// Looks at one file.
pub(super) fn check(
    file: &SingleFile,
    options: &Options,
    pool: &ThreadPool,
    progress: &dyn Progress,
) -> (FileReport, Vec<Finding>) {
    let place = Place {
        log_dir: file.path.clone(),
        topic_partition: file.topic_partition.clone(),
        path: file.path.file_name().unwrap_or_default().into(),
    };
    let opened = SegmentFile::open(&file.path, options.io);
    let size = opened.as_ref().map_or(0, SegmentFile::size);
    progress.expect(size);
    let outcome = opened.and_then(|opened| match (file.name, file.root_name) {
        (FileName::Segment { base, kind: FileKind::Log, .. }, _) => Ok(log(&opened, base, &place, options, pool)),
        (FileName::Segment { base, kind, .. }, _) => index(&opened, base, kind, &place),
        (FileName::KraftCheckpoint { .. }, _) | (_, RootName::BootstrapCheckpoint) => {
            let check = kraft::check(Ok(opened), &place, size, options);
            Ok((check.file, check.findings))
        }
        _ => small(&opened, file, &place),
    });
    progress.advance(size);
    outcome.unwrap_or_else(|error| {
        let report = FileReport::new(&place, FileRole::Other, size, Coverage::refused(size));
        (report, vec![unreadable_at(&place, size, &error)])
    })
}

fn context(base_offset: Offset) -> SegmentContext {
    SegmentContext {
        base_offset,
        next_base_offset: None,
        role: SegmentRole::Alone,
        shutdown: Shutdown::Unclean,
        directory: DirectoryState::Live,
    }
}

fn log(
    file: &SegmentFile,
    base: Offset,
    place: &Place,
    options: &Options,
    pool: &ThreadPool,
) -> (FileReport, Vec<Finding>) {
    let context = context(base);
    let numbering = ControlNumbering::Current;
    let mut log = StretchedLog::new(SegmentFold::new(place.clone(), context, file.size()), numbering);
    let starts = if file.size() > options.stretch_bytes.saturating_mul(2) {
        stretch::starts_by_search(file, base, options.stretch_bytes)
    } else {
        vec![Position(0)]
    };
    let ends = starts.iter().skip(1).copied().chain([file.end()]);
    let look = |ends: (Position, Position), send: &mut dyn FnMut(Stretch)| {
        stretch::look(file, ends, (place, &context, numbering), (options, &Hidden), send);
    };
    in_order(pool, starts.iter().copied().zip(ends), &look, |stretch| {
        log.take(file, stretch, options);
    });
    log.walk_to(file, file.end(), options);
    let summary = log.fold.finish(file);
    let report = FileReport::new(place, FileRole::Log, file.size(), summary.coverage);
    (report.with_sound(summary.sound, summary.behind_damage), summary.findings)
}

/// An index without its log: size, padding, order.
fn index(
    file: &SegmentFile,
    base: Offset,
    kind: FileKind,
    place: &Place,
) -> Result<(FileReport, Vec<Finding>), ReadError> {
    let (role, entry) = match kind {
        FileKind::OffsetIndex => (FileRole::OffsetIndex, OFFSET_INDEX_ENTRY),
        FileKind::TimeIndex => (FileRole::TimeIndex, TIME_INDEX_ENTRY),
        _ => (FileRole::TxnIndex, TXN_INDEX_ENTRY),
    };
    let read = IndexFile::read(file, entry)?;
    let mut coverage = Coverage::checked(read.checked_bytes);
    coverage.skip(file.size().saturating_sub(read.checked_bytes));
    let context = context(base);
    let mut findings = Vec::new();
    match role {
        FileRole::OffsetIndex => OffsetIndexCheck::new(base, read).finish_alone(place, &context, &mut findings),
        FileRole::TimeIndex => TimeIndexCheck::new(base, read).finish_alone(place, &context, &mut findings),
        _ => findings.extend(read.check_size(FindingId::TxnIndexMisaligned, place, &context)),
    }
    Ok((FileReport::new(place, role, file.size(), coverage), findings))
}

/// A small file that is read whole.
fn small(file: &SegmentFile, single: &SingleFile, place: &Place) -> Result<(FileReport, Vec<Finding>), ReadError> {
    let fault = |id: FindingId, fault: Option<FormatError>| {
        fault.map(|fault| place.finding(id).with_cause(fault.kind)).into_iter().collect::<Vec<_>>()
    };
    let skipped = || FileReport::new(place, FileRole::Other, file.size(), Coverage::skipped(file.size()));
    let bytes = match (single.name, single.root_name) {
        (FileName::Unknown | FileName::Temporary, RootName::Unknown | RootName::Temporary) => {
            return Ok((skipped(), vec![place.finding(FindingId::UnknownFile)]));
        }
        _ => file.read_whole(MOST_SMALL_BYTES)?,
    };
    let (role, findings) = match (single.name, single.root_name) {
        (FileName::Snapshot { offset, .. }, _) => {
            let read = snapshot::read(&bytes, offset, place.clone(), TimestampMs(0), DirectoryState::Live);
            (FileRole::Snapshot, read.err().map(|finding| *finding).into_iter().collect())
        }
        (FileName::LeaderEpochCheckpoint, _) => {
            let parsed = LeaderEpochCheckpoint::parse(&bytes);
            (FileRole::LeaderEpochCheckpoint, fault(FindingId::LeaderEpochMalformed, parsed.fault))
        }
        (FileName::PartitionMetadata, _) => {
            let parsed = PartitionMetadata::parse(&bytes);
            (FileRole::PartitionMetadata, fault(FindingId::PartitionMetadataMalformed, parsed.fault))
        }
        (FileName::QuorumState, _) => {
            let parsed = QuorumState::parse(&bytes);
            (FileRole::QuorumState, fault(FindingId::QuorumStateMalformed, parsed.fault))
        }
        (_, RootName::Checkpoint(_)) => {
            let parsed = OffsetCheckpoint::parse(&bytes);
            (FileRole::Checkpoint, fault(FindingId::CheckpointMalformed, parsed.fault))
        }
        (_, RootName::MetaProperties) => {
            let parsed = MetaProperties::parse(&bytes);
            (FileRole::MetaProperties, fault(FindingId::MetaPropertiesMalformed, parsed.fault))
        }
        (FileName::InvalidSegmentName { .. }, _) => {
            (FileRole::Other, vec![place.finding(FindingId::SegmentNameInvalid)])
        }
        _ => (FileRole::Other, Vec::new()),
    };
    Ok((FileReport::new(place, role, file.size(), Coverage::checked(file.size())), findings))
}

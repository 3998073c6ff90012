//! Cleaning one partition: from the directory as it is to the directory as it will be.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

use super::failure::{CleanFailure, Uncleanable};
use super::filter::LastRecords;
use super::options::{CompactOptions, Purpose, Rounds};
use super::round::{RoundInput, RoundReport, Tallies, run_idle_round, run_round};
use super::segments::{CleanerLog, LogSegment, MOST_INDEX_BYTES, segment_file};
use super::select::{CheckpointUse, LogState, Selection, select};
use super::tally::{Accounting, SegmentTally};
use super::walk::Reading;
use super::write::CleanedFile;
use crate::format::{Offset, TimestampMs};
use crate::logdir::names::{FileKind, FileName, FileSuffix};
use crate::logdir::{LogScanner, ReadError};
use crate::ops::broker::load::{DirectoryRole, LoadInput, LoadedLog, Shutdown, load_log};
use crate::ops::broker::{LoadEnvironment, LoadStop, ProgressRef, StartFailure};
use crate::ops::{Content, ImageFile, PartitionImage, Progress, RecordReader};

/// A partition as it is on the disk, and what the log dir's checkpoints say of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionInput {
    /// The directory.
    pub image: PartitionImage,
    /// How the broker stopped, as its marker says.
    pub shutdown: Shutdown,
    /// From `recovery-point-offset-checkpoint`; 0 where it has no entry.
    pub recovery_point: Offset,
    /// From `log-start-offset-checkpoint`; 0 where it has no entry.
    pub log_start: Offset,
    /// From `replication-offset-checkpoint`.
    pub high_watermark: Option<Offset>,
    /// From `cleaner-offset-checkpoint`.
    pub first_dirty: Option<Offset>,
}

/// Why a partition is not cleaned at all.
#[derive(Debug)]
pub enum CleanStop {
    /// Files of an interrupted swap or cleaning are there.
    Leftovers {
        /// One of them.
        file: OsString,
    },
    /// A broker could not load the log.
    Unloadable(StartFailure),
    /// A broker would first mend the log of a segment that is to be cleaned.
    RecoveryPending {
        /// The segment.
        base: Offset,
    },
    /// The round ends without a result.
    Failed(CleanFailure),
}

impl From<CleanFailure> for CleanStop {
    fn from(failure: CleanFailure) -> Self {
        Self::Failed(failure)
    }
}

impl From<ReadError> for CleanStop {
    fn from(error: ReadError) -> Self {
        Self::Failed(error.into())
    }
}

/// A partition, cleaned.
#[derive(Debug)]
pub struct CleanedPartition {
    /// The directory as it is.
    pub before: PartitionImage,
    /// The directory as it will be.
    pub after: PartitionImage,
    /// What a broker knows of the log.
    pub state: LogState,
    /// The rounds that were made.
    pub rounds: Vec<RoundReport>,
    /// What could be cleaned after them; nothing was tried where it is not enough for a broker.
    pub left: Selection,
    /// What the broker's cleaner would die of in the next round.
    pub uncleanable: Option<Uncleanable>,
    /// What becomes of the log files that were read, by base offset.
    pub segments: Vec<SegmentTally>,
    /// The sum of all log files, those that were not read included in the bytes.
    pub accounting: Accounting,
    /// What the cleaner's checkpoint will say, where that changes.
    pub checkpoint: Option<Offset>,
    /// Bytes of rewritten batches that are kept until they are written.
    pub made_bytes: u64,
    /// What a round would do that is not made; only if it was asked for.
    pub if_cleaned: Option<IfCleaned>,
}

/// What a round would do that a broker does not make yet.
#[derive(Clone, PartialEq, Debug)]
pub struct IfCleaned {
    /// The round.
    pub round: RoundReport,
    /// What would become of each log file.
    pub segments: Vec<SegmentTally>,
}

/// Cleans a partition, as far as a broker would. Nothing is written.
pub fn clean_partition(
    input: &PartitionInput,
    options: &CompactOptions,
    progress: &dyn Progress,
) -> Result<CleanedPartition, CleanStop> {
    if let Some(file) = leftover(&input.image) {
        return Err(CleanStop::Leftovers { file });
    }
    let loaded = load(input, options, progress)?;
    let state = state_of(&loaded, input, options);
    let last_records = LastRecords::of(&loaded.producers);
    let image = Arc::new(loaded.image.clone());
    let reading = Reading { image: &image, io: options.io, progress, part_bytes: options.part_bytes };
    let mut log = CleanerLog::of(&loaded)?;
    let mut run = Run {
        options,
        reading: &reading,
        round: RoundInput { options, state: &state, last_records: &last_records, reading: &reading },
        tallies: Tallies::default(),
        rounds: Vec::new(),
    };
    let (left, mut uncleanable) = run.rounds_of(&mut log)?;
    let mut if_cleaned = None;
    if options.purpose == Purpose::Explain && run.rounds.is_empty() && uncleanable.is_none() {
        match run.would_be(&log, &left) {
            Ok(round) => if_cleaned = round,
            Err(CleanFailure::Uncleanable(found)) => uncleanable = Some(found),
            Err(failure) => return Err(failure.into()),
        }
    }
    let (rounds, tallies) = (run.rounds, run.tallies);
    for base in tallies.keys() {
        let name = segment_file(*base, FileKind::Log);
        if loaded.image.file(&name) != input.image.file(&name) {
            return Err(CleanStop::RecoveryPending { base: *base });
        }
    }
    let checkpoint = match (rounds.last(), left.checkpoint_use) {
        (Some(last), _) => Some(last.end),
        (None, CheckpointUse::Reset) => Some(left.first_dirty),
        (None, CheckpointUse::Valid) => None,
    };
    let segments: Vec<SegmentTally> = tallies.into_values().collect();
    let after = image_after(&input.image, &image, &log, options)?;
    let accounting = account(&input.image, &after, &segments);
    Ok(CleanedPartition {
        before: input.image.clone(),
        after,
        state,
        rounds,
        left,
        uncleanable,
        segments,
        accounting,
        checkpoint,
        made_bytes: log.made_bytes(),
        if_cleaned,
    })
}

fn leftover(image: &PartitionImage) -> Option<OsString> {
    let mut files = image.files();
    files
        .find(|(name, _)| matches!(FileName::parse(name).suffix(), FileSuffix::Swap | FileSuffix::Cleaned))
        .map(|(name, _)| name.to_os_string())
}

/// The log as a broker has it that starts with this directory.
fn load(input: &PartitionInput, options: &CompactOptions, progress: &dyn Progress) -> Result<LoadedLog, CleanStop> {
    let mut environment = LoadEnvironment {
        rules: &options.rules,
        index: options.settings.index,
        record_format: options.rules.record_format(options.record_format),
        now: options.now,
        producer_expiration_ms: options.producer_expiration_ms,
        io: options.io,
        progress: ProgressRef(progress),
        records: RecordReader::default(),
    };
    let start = LoadInput {
        shutdown: input.shutdown,
        recovery_point: input.recovery_point,
        log_start: options.log_start_offset.unwrap_or(input.log_start),
        role: DirectoryRole::Log,
    };
    match load_log(input.image.clone(), &mut environment, start) {
        Ok(mut loaded) => {
            loaded.producers.expire(options.now, options.producer_expiration_ms);
            Ok(loaded)
        }
        Err(LoadStop::Failure(failure)) => Err(CleanStop::Unloadable(failure)),
        Err(LoadStop::Unreadable(error)) => Err(error.into()),
        Err(LoadStop::Cancelled) => Err(CleanStop::Failed(CleanFailure::Cancelled)),
    }
}

fn state_of(loaded: &LoadedLog, input: &PartitionInput, options: &CompactOptions) -> LogState {
    let (log_start, log_end) = (loaded.log_start_offset, loaded.log_end_offset);
    let high_watermark = options.high_watermark.or(input.high_watermark).unwrap_or(log_end);
    LogState {
        log_start,
        log_end,
        high_watermark: high_watermark.max(log_start).min(log_end),
        first_unstable: loaded.producers.open_transactions().first_unstable_offset(log_start),
        checkpoint: options.first_dirty_offset.or(input.first_dirty),
    }
}

struct Run<'r> {
    options: &'r CompactOptions,
    reading: &'r Reading<'r>,
    round: RoundInput<'r>,
    tallies: Tallies,
    rounds: Vec<RoundReport>,
}

impl Run<'_> {
    /// Makes rounds while a broker would. Where a broker would die in one, those before it stand.
    fn rounds_of(&mut self, log: &mut CleanerLog) -> Result<(Selection, Option<Uncleanable>), CleanFailure> {
        let mut state = *self.round.state;
        loop {
            let selection = self.select(log, &state)?;
            let is_enough = self.rounds.is_empty() || self.options.rounds == Rounds::UntilClean;
            if !is_enough || !selection.is_eligible(&self.options.settings) {
                return Ok((selection, None));
            }
            let dirty_before = selection.first_dirty;
            let mut tallies = self.tallies.clone();
            match run_round(&self.round, log, selection.clone(), &mut tallies) {
                Ok(report) => {
                    self.tallies = tallies;
                    state.checkpoint = Some(report.end);
                    let is_stuck = report.end <= dirty_before;
                    self.rounds.push(report);
                    if is_stuck {
                        return Ok((self.select(log, &state)?, None));
                    }
                }
                Err(CleanFailure::Uncleanable(uncleanable)) => return Ok((selection, Some(uncleanable))),
                Err(failure) => return Err(failure),
            }
        }
    }

    /// A round regardless of whether a broker would make it; the log stays as it is.
    fn would_be(&self, log: &CleanerLog, selection: &Selection) -> Result<Option<IfCleaned>, CleanFailure> {
        let (mut log, mut tallies) = (log.clone(), Tallies::default());
        let is_dirty = selection.cleanable_bytes > 0 && selection.first_dirty < selection.first_uncleanable;
        let run = if is_dirty { run_round } else { run_idle_round };
        let round = run(&self.round, &mut log, selection.clone(), &mut tallies)?;
        let segments: Vec<SegmentTally> = tallies.into_values().collect();
        Ok((!segments.is_empty()).then_some(IfCleaned { round, segments }))
    }

    fn select(&self, log: &CleanerLog, state: &LogState) -> Result<Selection, CleanFailure> {
        let first_dirty = state.checkpoint.unwrap_or(state.log_start);
        let mut timestamps = Vec::new();
        if self.options.settings.max_compaction_lag_ms < i64::MAX {
            // Those of segments before the log start do not matter: nothing dirty lies there.
            for segment in log.non_active_from(first_dirty.min(state.log_start)) {
                timestamps.push((segment.base, self.first_timestamp(segment)?));
            }
        }
        let of_dirty = |from: Offset| {
            let dirty = log.non_active_from(from).first().map(|segment| segment.base);
            let is_dirty = |base: Offset| dirty.is_some_and(|dirty| base >= dirty);
            timestamps.iter().filter(|(base, _)| is_dirty(*base)).filter_map(|(_, timestamp)| *timestamp).collect()
        };
        let rules = &self.options.rules.cleaner;
        Ok(select(log, state, (&self.options.settings, rules), of_dirty, self.options.now))
    }

    /// `LogSegment.getFirstBatchTimestamp`, of the log on the disk: a first batch stays the first or is replaced by a later one.
    fn first_timestamp(&self, segment: &LogSegment) -> Result<Option<TimestampMs>, CleanFailure> {
        let Some(source) = segment.sources.first() else { return Ok(None) };
        let file = self.reading.image.open(&segment_file(source.base, FileKind::Log), self.options.io)?;
        let mut scanner = LogScanner::new(&file);
        let first = scanner.next_batch().ok().flatten();
        Ok(first.and_then(|scanned| scanned.header().max_timestamp))
    }
}

/// The directory with the cleaned segments in the place of those that they were made of.
fn image_after(
    before: &PartitionImage,
    loaded: &Arc<PartitionImage>,
    log: &CleanerLog,
    options: &CompactOptions,
) -> Result<PartitionImage, CleanStop> {
    let mut after = before.clone();
    for segment in log.segments() {
        let Some(built) = &segment.built else { continue };
        let sources: BTreeSet<Offset> = segment.sources.iter().map(|source| source.base).collect();
        for base in sources.iter().filter(|base| **base != segment.base) {
            for kind in FileKind::ALL {
                remove(&mut after, *base, kind);
            }
        }
        put_log(&mut after, loaded, segment, options);
        let time = segment.modified;
        let mut put = |kind, bytes: &[u8]| put_small(&mut after, &segment_file(segment.base, kind), bytes, time);
        put(FileKind::OffsetIndex, &built.offset_index)?;
        put(FileKind::TimeIndex, &built.time_index)?;
        let mut txn_index = Vec::new();
        segment.aborted.iter().for_each(|entry| entry.encode(&mut txn_index));
        let name = segment_file(segment.base, FileKind::TxnIndex);
        if txn_index.is_empty() {
            after.remove(&name);
        } else if after.read_small(&name, MOST_INDEX_BYTES)?.as_deref() != Some(&txn_index) {
            // Its time is that of its writing.
            let content = Content::Bytes(txn_index.into());
            after.put(&name, ImageFile { content, modified: options.now });
        }
    }
    Ok(after)
}

fn put_log(after: &mut PartitionImage, loaded: &Arc<PartitionImage>, segment: &LogSegment, options: &CompactOptions) {
    let name = segment_file(segment.base, FileKind::Log);
    let is_copied = |source: &super::segments::Source| source.verdicts.as_ref().is_some_and(|v| v.copies_all());
    if let [source] = segment.sources.as_slice()
        && source.base == segment.base
        && is_copied(source)
    {
        // Nothing in it changes, so it stays the file that it is.
        return;
    }
    let content = if segment.size_bytes == 0 {
        Content::Zeros(0)
    } else {
        let file = CleanedFile {
            image: Arc::clone(loaded),
            sources: segment.sources.clone(),
            legacy: options.rules.cleaner.legacy_output,
            io: options.io,
            pool: options.pool.clone(),
        };
        Content::Recipe(file.into_recipe(segment.size_bytes))
    };
    after.put(&name, ImageFile { content, modified: segment.modified });
}

/// Gives a small file these bytes and this time; one that has both stays the file that it is.
fn put_small(after: &mut PartitionImage, name: &OsStr, bytes: &[u8], modified: TimestampMs) -> Result<(), ReadError> {
    let len = crate::format::len_u64(bytes.len());
    let has_both = after.file(name).is_some_and(|file| file.size_bytes() == len && file.modified == modified);
    if !has_both || after.read_small(name, len)?.as_deref() != Some(bytes) {
        after.put(name, ImageFile { content: Content::Bytes(bytes.into()), modified });
    }
    Ok(())
}

fn remove(image: &mut PartitionImage, base: Offset, kind: FileKind) {
    let name = match kind {
        FileKind::Snapshot => FileName::Snapshot { offset: base, suffix: FileSuffix::None }.to_name(),
        _ => Some(segment_file(base, kind)),
    };
    if let Some(name) = name {
        image.remove(&name);
    }
}

/// Log files that no round has read stay as they are.
fn account(before: &PartitionImage, after: &PartitionImage, segments: &[SegmentTally]) -> Accounting {
    let mut accounting = Accounting::default();
    for segment in segments {
        accounting.add(&segment.accounting);
    }
    let bytes = |image: &PartitionImage| {
        let logs = image.files().filter(|(name, _)| is_live_log(Path::new(name)));
        logs.map(|(_, file)| file.size_bytes()).fold(0, u64::saturating_add)
    };
    (accounting.bytes_in, accounting.bytes_kept) = (bytes(before), bytes(after));
    accounting
}

fn is_live_log(name: &Path) -> bool {
    let kind = FileName::parse(name.as_os_str());
    matches!(kind, FileName::Segment { kind: FileKind::Log, suffix: FileSuffix::None, .. })
}

//! What a start costs: sound records that are cut off, deleted, swallowed by a swap, or left where no fetch finds them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use super::cut::location_of;
use super::options::Compaction;
use super::report::LostOffsets;
use crate::format::offset_index::OffsetIndex;
use crate::format::{BatchHeader, Offset, Position};
use crate::logdir::names::{FileKind, FileName, FileSuffix};
use crate::logdir::{IoMode, LogScanner, ReadError, Scanned, SegmentFile};
use crate::ops::broker::load::LoadedLog;
use crate::ops::{Content, Damage, Finding, FindingId, PartitionImage, RecordReader, SoundBatches, SoundItem};

/// The largest offset index that is looked at.
const MOST_INDEX_BYTES: u64 = 512 * 1024 * 1024;
/// So many ranges of lost offsets are kept apart; further ones are added to the last.
const MOST_RANGES: usize = 1000;

/// What a start costs a partition.
#[derive(Debug, Default)]
pub(super) struct Loss {
    pub(super) records: u64,
    pub(super) bytes: u64,
    pub(super) truncated_bytes: u64,
    pub(super) deleted_segments: Vec<Offset>,
    pub(super) offsets: Vec<LostOffsets>,
    /// The end of the sound batches that go.
    pub(super) end: Option<Offset>,
    pub(super) findings: Vec<Finding>,
}

impl Loss {
    fn add(&mut self, header: &BatchHeader, records: u64) {
        self.end = self.end.max(Some(header.next_offset()));
        if records == 0 {
            return;
        }
        self.records = self.records.saturating_add(records);
        let (first, last) = (header.base_offset, header.last_offset.max(header.base_offset));
        let is_full = self.offsets.len() >= MOST_RANGES;
        match self.offsets.last_mut() {
            Some(range) if first == range.last.next() || is_full => range.last = range.last.max(last),
            _ => self.offsets.push(LostOffsets { first, last }),
        }
    }
}

/// Counts what a start costs.
pub(super) struct Accountant<'a> {
    before: &'a PartitionImage,
    compaction: Compaction,
    io: IoMode,
    covered: Option<Offset>,
    records: RecordReader,
    loss: Loss,
}

/// A log file of the directory before the start.
struct LiveLog {
    base: Offset,
    name: OsString,
    size_bytes: u64,
}

/// What stays of a log file.
enum Stays {
    /// All of it, here or in the pieces of a split.
    All,
    /// So many bytes.
    Prefix(u64),
    /// Nothing.
    Nothing,
}

impl<'a> Accountant<'a> {
    pub(super) fn new(before: &'a PartitionImage, compaction: Compaction, io: IoMode) -> Self {
        Self { before, compaction, io, covered: None, records: RecordReader::default(), loss: Loss::default() }
    }

    /// Does not count what lies below an offset: it is kept elsewhere, or below the log start.
    pub(super) fn covered_below(mut self, offset: Option<Offset>) -> Self {
        self.covered = offset;
        self
    }

    /// The cost of a start after which the log is `after`.
    pub(super) fn of_load(mut self, after: &LoadedLog) -> Result<Loss, ReadError> {
        let swaps = self.swapped_batches(&after.image)?;
        for log in live_logs(self.before) {
            self.account(&log, &after.image, &swaps)?;
        }
        self.account_hidden(after)?;
        self.account_only_copies(after)?;
        self.loss.offsets.sort_unstable();
        Ok(self.loss)
    }

    /// The cost where the broker no longer serves the directory at all.
    pub(super) fn of_all(mut self) -> Result<Loss, ReadError> {
        for log in live_logs(self.before) {
            let file = self.before.open(&log.name, self.io)?;
            self.count_sound(&file, log.base, Position(0), |_, count| count);
        }
        Ok(self.loss)
    }

    fn account(&mut self, log: &LiveLog, after: &PartitionImage, swaps: &Swapped) -> Result<(), ReadError> {
        let stays = what_stays(self.before, log, after);
        if !after.has(&log.name) {
            self.loss.deleted_segments.push(log.base);
        }
        let from = match stays {
            Stays::All => {
                if after.has(&log.name) {
                    self.loss.truncated_bytes += log.size_bytes.saturating_sub(after.size_of(&log.name));
                }
                return Ok(());
            }
            Stays::Prefix(size) => {
                self.loss.truncated_bytes += log.size_bytes - size;
                self.loss.bytes += log.size_bytes - size;
                Position(size)
            }
            Stays::Nothing => {
                // A new, empty segment may have the name of the old one.
                if after.has(&log.name) && !swaps.names.contains(&log.name) {
                    self.loss.truncated_bytes += log.size_bytes.saturating_sub(after.size_of(&log.name));
                }
                self.loss.bytes += log.size_bytes;
                Position(0)
            }
        };
        let file = self.before.open(&log.name, self.io)?;
        let compaction = self.compaction;
        self.count_sound(&file, log.base, from, |header, count| swaps.lost_of(header, count, compaction));
        Ok(())
    }

    fn count_sound(
        &mut self,
        file: &SegmentFile,
        base: Offset,
        from: Position,
        lost: impl Fn(&BatchHeader, u64) -> u64,
    ) {
        let mut batches = SoundBatches::from(file, base, from);
        while let Some(item) = batches.next_item() {
            if let SoundItem::Batch(batch) = item {
                let header = *batch.header();
                let count = match self.covered.map(|covered| header.next_offset().0.saturating_sub(covered.0)) {
                    Some(..=0) => 0,
                    // Of a batch across the border no more records lie behind it than offsets.
                    Some(behind) => records_in(&batch, &mut self.records).min(behind.unsigned_abs()),
                    None => records_in(&batch, &mut self.records),
                };
                self.loss.add(&header, lost(&header, count));
            }
        }
    }

    fn swapped_batches(&mut self, after: &PartitionImage) -> Result<Swapped, ReadError> {
        let mut swapped = Swapped::default();
        for (name, file) in after.files() {
            let FileName::Segment { base, kind: FileKind::Log, .. } = FileName::parse(name) else { continue };
            let is_swap =
                matches!(&file.content, Content::OnDisk { file, .. } if file.as_encoded_bytes().ends_with(b".swap"));
            if !is_swap {
                continue;
            }
            let log = after.open(name, self.io)?;
            swapped.names.push(name.to_os_string());
            let mut batches = SoundBatches::new(&log, base);
            while let Some(item) = batches.next_item() {
                if let SoundItem::Batch(batch) = item {
                    let count = records_in(&batch, &mut self.records);
                    let header = batch.header();
                    swapped.end = swapped.end.max(Some(header.next_offset()));
                    swapped.records.insert(header.base_offset, count);
                }
            }
        }
        Ok(swapped)
    }

    /// Records at or beyond the end that the broker takes for the log's.
    fn account_hidden(&mut self, after: &LoadedLog) -> Result<(), ReadError> {
        let Some(base) = after.segments.last().copied() else { return Ok(()) };
        let Some(name) = log_name(base) else { return Ok(()) };
        let log = after.image.open(&name, self.io)?;
        let index_name = FileName::Segment { base, kind: FileKind::OffsetIndex, suffix: FileSuffix::None }.to_name();
        let index = match index_name {
            Some(name) => after.image.read_small(&name, MOST_INDEX_BYTES)?.unwrap_or_default(),
            None => Vec::new(),
        };
        if is_consistent_tail(&log, base, &index, after.log_end_offset) {
            return Ok(());
        }
        let lost_before = self.loss.records;
        let mut counted_to: Option<Offset> = None;
        let mut regression: Option<BatchHeader> = None;
        let mut tail: Option<Damage> = None;
        let mut batches = SoundBatches::new(&log, base);
        let mut reader = std::mem::take(&mut self.records);
        while let Some(item) = batches.next_item() {
            match item {
                SoundItem::Damage(damage) => tail = Some(damage),
                SoundItem::Batch(batch) => {
                    tail = None;
                    let header = *batch.header();
                    if counted_to.is_some_and(|reached| header.base_offset <= reached) {
                        regression.get_or_insert(header);
                        continue;
                    }
                    counted_to = Some(header.last_offset);
                    if header.last_offset >= after.log_end_offset {
                        self.loss.add(&header, records_in(&batch, &mut reader));
                    }
                }
            }
        }
        self.records = reader;
        let is_hiding = self.loss.records > lost_before;
        self.explain_tail(&after.image, &name, (base, &index, &log), is_hiding, (tail, regression));
        Ok(())
    }

    /// Says what is wrong with the end of the active segment.
    fn explain_tail(
        &mut self,
        image: &PartitionImage,
        name: &OsStr,
        (base, index, log): (Offset, &[u8], &SegmentFile),
        is_hiding: bool,
        (tail, regression): (Option<Damage>, Option<BatchHeader>),
    ) {
        let location = || location_of(image, name);
        if let Some(damage) = &tail {
            self.loss.findings.push(damage.finding(location()));
            self.loss.findings.push(Finding::new(FindingId::CleanMarkerContradicted, location()));
        }
        if let Some(header) = regression {
            let place =
                location().at(header.position, header.size_bytes).offsets(header.base_offset, header.last_offset);
            self.loss.findings.push(Finding::new(FindingId::BatchOffsetRegression, place));
        }
        if is_hiding && tail.is_none() && regression.is_none() {
            let last = OffsetIndex::new(base, index).iter().next_back();
            let is_past = last.is_some_and(|entry| entry.position >= log.end());
            let id = if is_past { FindingId::OffsetIndexEntryPastEnd } else { FindingId::OffsetIndexEntryWrong };
            self.loss.findings.push(Finding::new(id, location()));
        }
    }

    /// Files marked for deletion that are the only copy of what a hole between two segments held.
    fn account_only_copies(&mut self, after: &LoadedLog) -> Result<(), ReadError> {
        for (name, _) in self.before.files() {
            let FileName::Segment { base, kind: FileKind::Log, suffix: FileSuffix::Deleted } = FileName::parse(name)
            else {
                continue;
            };
            let next = after.segments.range(base..).next().copied();
            let previous = after.segments.range(..base).next_back().copied();
            let (Some(next), Some(previous)) = (next.filter(|next| *next > base), previous) else { continue };
            let Some(previous_name) = log_name(previous) else { continue };
            let end = sound_end(&after.image.open(&previous_name, self.io)?, previous);
            if end.is_some_and(|end| end > base) || after.log_start_offset > base {
                continue;
            }
            let lost_before = self.loss.records;
            let file = self.before.open(name, self.io)?;
            let fits = |header: &BatchHeader, count| if header.last_offset < next { count } else { 0 };
            self.count_sound(&file, base, Position(0), fits);
            if self.loss.records > lost_before {
                self.loss.findings.push(Finding::new(FindingId::LeftoverDeleted, location_of(self.before, name)));
            }
        }
        Ok(())
    }
}

/// The batches of the segments that a swap brings.
#[derive(Default)]
struct Swapped {
    names: Vec<OsString>,
    records: BTreeMap<Offset, u64>,
    end: Option<Offset>,
}

impl Swapped {
    /// How many records of a batch that goes are nowhere else.
    fn lost_of(&self, header: &BatchHeader, count: u64, compaction: Compaction) -> u64 {
        match self.end {
            // What a cleaned topic misses below the end of the swap has been cleaned away.
            Some(end) if compaction == Compaction::On && header.next_offset() <= end => 0,
            Some(_) => count.saturating_sub(self.records.get(&header.base_offset).copied().unwrap_or(0)),
            None => count,
        }
    }
}

fn live_logs(image: &PartitionImage) -> Vec<LiveLog> {
    let logs = image.files().filter_map(|(name, file)| match FileName::parse(name) {
        FileName::Segment { base, kind: FileKind::Log, suffix: FileSuffix::None } => {
            Some(LiveLog { base, name: name.to_os_string(), size_bytes: file.size_bytes() })
        }
        _ => None,
    });
    logs.collect()
}

fn log_name(base: Offset) -> Option<OsString> {
    FileName::Segment { base, kind: FileKind::Log, suffix: FileSuffix::None }.to_name()
}

fn what_stays(before: &PartitionImage, log: &LiveLog, after: &PartitionImage) -> Stays {
    let Some(content) = before.file(&log.name).map(|file| &file.content) else { return Stays::All };
    if let Some(now) = after.file(&log.name) {
        if now.content == *content {
            return Stays::All;
        }
        let size = now.size_bytes();
        if content.truncated(size) == now.content && covered_bytes(after, &log.name) <= size {
            return Stays::Prefix(size);
        }
    }
    if covered_bytes(after, &log.name) >= log.size_bytes { Stays::All } else { Stays::Nothing }
}

/// How many bytes of a file on the disk are still in some file of the image: a split spreads them.
fn covered_bytes(after: &PartitionImage, disk_name: &OsStr) -> u64 {
    let of_file = |content: &Content| match content {
        Content::OnDisk { file, .. } if file == disk_name => content.size_bytes(),
        _ => 0,
    };
    after.files().map(|(_, file)| of_file(&file.content)).fold(0, u64::saturating_add)
}

fn records_in(batch: &Scanned<'_>, reader: &mut RecordReader) -> u64 {
    let header = batch.header();
    match header.records_count {
        _ if header.is_control() => 0,
        Some(count) => u64::try_from(count).unwrap_or(0),
        None if header.is_legacy_wrapper() => {
            let all = &mut |_: &crate::format::record::Record<'_>| std::ops::ControlFlow::Continue(());
            reader.read(batch, all).map_or(0, |content| content.records_count)
        }
        None => 1,
    }
}

/// Where the sound batches of a log file end.
fn sound_end(log: &SegmentFile, base: Offset) -> Option<Offset> {
    let mut end = None;
    let mut batches = SoundBatches::new(log, base);
    while let Some(item) = batches.next_item() {
        if let SoundItem::Batch(batch) = item {
            end = end.max(Some(batch.header().next_offset()));
        }
    }
    end
}

/// Whether the batches from the last index entry on are sound, follow each other, end with the file and at the log end: then there
/// is no need to read all of the segment.
fn is_consistent_tail(log: &SegmentFile, base: Offset, index: &[u8], log_end: Offset) -> bool {
    let last = OffsetIndex::new(base, index).iter().next_back();
    let start = last.map_or(Position(0), |entry| entry.position);
    let mut scanner = LogScanner::over(log, start, log.end());
    let mut reached: Option<Offset> = None;
    while let Ok(Some(batch)) = scanner.next_batch() {
        let header = *batch.header();
        let is_at_entry = match (reached, last) {
            (None, Some(entry)) => header.base_offset <= entry.offset && header.base_offset >= base,
            (None, None) => header.base_offset >= base,
            (Some(reached), _) => header.base_offset > reached,
        };
        if !is_at_entry
            || header.last_offset < header.base_offset && !header.is_legacy()
            || !batch.crc_matches().unwrap_or(false)
        {
            return false;
        }
        reached = Some(header.last_offset);
    }
    let ends_with_file = scanner.position() == log.end();
    ends_with_file && reached.map_or(base, Offset::next) == log_end
}

//! The log files that records are saved from, and the sound batches in them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::ControlFlow;

use super::options::DeletedFiles;
use crate::format::record::Record;
use crate::format::resync::ResyncBounds;
use crate::format::{BatchHeader, LeaderEpoch, Offset, Position};
use crate::logdir::names::{FileKind, FileName, FileSuffix, Misnaming};
use crate::logdir::{IoMode, LogScanner, ReadError, Resync, Scanned, SegmentFile};
use crate::ops::{Damage, DamageKind, FindingId, PartitionImage, Progress, RecordReader, SoundBatches, SoundItem};

/// What the name of a log file says of it. Of two files with the same records, that of the lesser origin is used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Origin {
    /// In use.
    Live,
    /// A broker would not have called it that.
    Misnamed,
    /// Written to replace others.
    Swap,
    /// Not all of it need have been written yet.
    Cleaned,
    /// To be deleted.
    Deleted,
}

impl Origin {
    /// Whether a broker's next start would bring it into use or remove it.
    pub(super) fn is_leftover(self) -> bool {
        matches!(self, Self::Swap | Self::Cleaned | Self::Deleted)
    }
}

/// A log file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Source {
    pub(super) name: OsString,
    /// What the name says.
    pub(super) base: Option<Offset>,
    pub(super) origin: Origin,
    pub(super) size_bytes: u64,
}

/// Sound batches that follow each other in a file, with rising offsets and one leader epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// The place of its file among the sources.
    pub(super) source: usize,
    pub(super) start: Position,
    pub(super) end: Position,
    pub(super) first: Offset,
    pub(super) last: Offset,
    pub(super) epoch: Option<LeaderEpoch>,
    pub(super) batches: u64,
    pub(super) records: u64,
    /// The checksum of its last batch.
    pub(super) crc: u32,
}

impl Piece {
    /// Whether two single batches are the same bytes but for what no checksum covers.
    pub(super) fn is_copy_of(&self, other: &Self) -> bool {
        let same_size = self.end.since(self.start) == other.end.since(other.start);
        same_size && (self.first, self.last, self.crc) == (other.first, other.last, other.crc)
    }

    fn takes(&self, next: &Self) -> bool {
        self.end == next.start && self.last < next.first && self.epoch == next.epoch
    }

    fn extend(&mut self, next: &Self) {
        (self.end, self.last, self.crc) = (next.end, next.last, next.crc);
        self.batches = self.batches.saturating_add(next.batches);
        self.records = self.records.saturating_add(next.records);
    }
}

/// A range of a file that cannot be kept, whatever else there is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Rejected {
    pub(super) start: Position,
    pub(super) end: Position,
    pub(super) reason: FindingId,
    pub(super) offsets: Option<(Offset, Offset)>,
    /// Of a sound batch.
    pub(super) records: u64,
}

/// What is in a file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Contents {
    pub(super) pieces: Vec<Piece>,
    pub(super) rejected: Vec<Rejected>,
}

impl Contents {
    /// Adds a batch to what is there, or with a reason to what cannot be kept.
    fn add(&mut self, piece: Piece, reason: Option<FindingId>, grain: Grain) {
        if let Some(reason) = reason {
            let offsets = (piece.first <= piece.last).then_some((piece.first, piece.last));
            let (start, end, records) = (piece.start, piece.end, piece.records);
            self.rejected.push(Rejected { start, end, reason, offsets, records });
            return;
        }
        match self.pieces.last_mut().filter(|last| grain == Grain::Runs && last.takes(&piece)) {
            Some(last) => last.extend(&piece),
            None => self.pieces.push(piece),
        }
    }

    /// Records of all sound batches.
    pub(super) fn records(&self) -> u64 {
        let of_pieces = self.pieces.iter().map(|piece| piece.records);
        of_pieces.chain(self.rejected.iter().map(|rejected| rejected.records)).fold(0, u64::saturating_add)
    }
}

/// Sound batches that something else is wrong with, by file and place.
pub(super) type Excluded = BTreeMap<(usize, Position), FindingId>;

/// How finely pieces are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Grain {
    Runs,
    Batches,
}

/// The log files of a directory: live ones in the order of their names, then the others.
pub(super) fn list(image: &PartitionImage) -> Vec<Source> {
    let mut sources: Vec<Source> = image
        .files()
        .filter_map(|(name, file)| {
            let (base, origin) = match FileName::parse(name) {
                FileName::Segment { base, kind: FileKind::Log, suffix } => (Some(base), origin_of(suffix)),
                FileName::InvalidSegmentName { kind: FileKind::Log, suffix: FileSuffix::None, misnaming } => {
                    match misnaming {
                        Misnaming::OtherDigits(_) => return None,
                        Misnaming::NoNumber | Misnaming::OtherSpelling(_) => (misnaming.offset(), Origin::Misnamed),
                    }
                }
                _ => return None,
            };
            Some(Source { name: name.to_os_string(), base, origin, size_bytes: file.size_bytes() })
        })
        .collect();
    sources.sort_by_key(|source| (source.origin, source.base));
    sources
}

fn origin_of(suffix: FileSuffix) -> Origin {
    match suffix {
        FileSuffix::None => Origin::Live,
        FileSuffix::Swap => Origin::Swap,
        FileSuffix::Cleaned => Origin::Cleaned,
        FileSuffix::Deleted => Origin::Deleted,
    }
}

/// Reads sources.
pub(super) struct SourceReader<'a> {
    pub(super) image: &'a PartitionImage,
    pub(super) sources: &'a [Source],
    pub(super) io: IoMode,
    pub(super) progress: &'a dyn Progress,
    pub(super) records: RecordReader,
}

impl SourceReader<'_> {
    /// What is in a file: runs of batches, or where offsets go back in it, the batches one by one.
    pub(super) fn read(&mut self, index: usize, excluded: &Excluded) -> Result<Contents, ReadError> {
        let contents = self.scan(index, excluded, Grain::Runs)?;
        let goes_back = contents.pieces.windows(2).any(|pair| matches!(pair, [a, b] if b.first <= a.last));
        if goes_back { self.scan(index, excluded, Grain::Batches) } else { Ok(contents) }
    }

    fn scan(&mut self, index: usize, excluded: &Excluded, grain: Grain) -> Result<Contents, ReadError> {
        let mut contents = Contents::default();
        let Some(source) = self.sources.get(index) else { return Ok(contents) };
        let log = self.image.open(&source.name, self.io)?;
        let mut batches = SoundBatches::new(&log, source.base.unwrap_or(Offset(0)));
        while let Some(item) = batches.next_item() {
            if self.progress.is_cancelled() {
                break;
            }
            match item {
                SoundItem::Damage(damage) => {
                    let misplaced = self.misplaced(index, &log, &damage)?;
                    contents.rejected.extend(of_damage(&damage, &misplaced));
                    for piece in misplaced {
                        contents.add(piece, excluded.get(&(index, piece.start)).copied(), Grain::Batches);
                    }
                }
                SoundItem::Batch(batch) => {
                    let piece = piece_of(index, &batch, &mut self.records);
                    let reason = excluded.get(&(index, piece.start)).copied().or_else(|| flaw_of(batch.header()));
                    contents.add(piece, reason, grain);
                }
            }
        }
        Ok(contents)
    }

    /// Sound batches within a range of foreign bytes: their offsets lie below those before it, so a search for what goes on there
    /// has passed them over. What may be a batch itself is not searched, because records may have batches as values.
    fn misplaced(&mut self, source: usize, log: &SegmentFile, damage: &Damage) -> Result<Vec<Piece>, ReadError> {
        let mut pieces = Vec::new();
        if !matches!(damage.kind, DamageKind::Interior | DamageKind::TrailingBytes) {
            return Ok(pieces);
        }
        let bounds =
            ResyncBounds { file_end: damage.end(), least_offset: Offset(0), most_offset: Offset(i64::MAX - 1) };
        let mut scanner = LogScanner::over(log, damage.position, damage.end());
        let mut from = damage.position.advance(1);
        while let Resync::Found(at) = scanner.find_batch(from, &bounds)? {
            scanner.jump(at);
            let Ok(Some(batch)) = scanner.next_batch() else { break };
            let piece = piece_of(source, &batch, &mut self.records);
            from = piece.end;
            pieces.push(piece);
        }
        Ok(pieces)
    }

    /// The batches of a piece, each a piece of its own.
    pub(super) fn split(&mut self, piece: &Piece) -> Result<Vec<Piece>, ReadError> {
        let Some(source) = self.sources.get(piece.source).filter(|_| piece.batches > 1) else {
            return Ok(vec![*piece]);
        };
        let log = self.image.open(&source.name, self.io)?;
        let mut scanner = LogScanner::over(&log, piece.start, piece.end);
        let mut pieces = Vec::new();
        while let Ok(Some(batch)) = scanner.next_batch() {
            pieces.push(piece_of(piece.source, &batch, &mut self.records));
        }
        Ok(pieces)
    }
}

/// Bytes of log files in use, and records of the sound batches in them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct LogCounts {
    pub(super) bytes: u64,
    pub(super) records: u64,
}

/// Counts what a directory holds.
pub(super) fn count_records(
    image: &PartitionImage,
    io: IoMode,
    progress: &dyn Progress,
) -> Result<LogCounts, ReadError> {
    let sources = list(image);
    let mut reader = SourceReader { image, sources: &sources, io, progress, records: RecordReader::default() };
    let mut counts = LogCounts::default();
    for (index, source) in sources.iter().enumerate().filter(|(_, source)| source.origin == Origin::Live) {
        counts.bytes = counts.bytes.saturating_add(source.size_bytes);
        counts.records = counts.records.saturating_add(reader.read(index, &Excluded::new())?.records());
    }
    Ok(counts)
}

/// A batch as a piece of its own.
pub(super) fn piece_of(source: usize, batch: &Scanned<'_>, records: &mut RecordReader) -> Piece {
    let header = batch.header();
    let (mut first, mut count) = (header.base_offset, 1);
    if let Some(stated) = header.records_count {
        count = u64::try_from(stated).unwrap_or(0);
    } else if header.is_legacy_wrapper()
        && let Ok(content) = records.read(batch, &mut |_: &Record<'_>| ControlFlow::Continue(()))
    {
        count = content.records_count;
        first = content.wrapper.map_or(first, |wrapper| wrapper.base_offset).min(header.last_offset);
    }
    Piece {
        source,
        start: header.position,
        end: header.end(),
        first,
        last: header.last_offset,
        epoch: header.leader_epoch,
        batches: 1,
        records: count,
        crc: header.crc,
    }
}

/// What keeps a batch with a right checksum out of any log.
fn flaw_of(header: &BatchHeader) -> Option<FindingId> {
    match () {
        () if header.base_offset < Offset(0) => Some(FindingId::BatchBelowSegmentBase),
        () if header.last_offset < header.base_offset => Some(FindingId::BatchLastOffsetMismatch),
        () if header.last_offset == Offset(i64::MAX) => Some(FindingId::BatchOffsetOverflow),
        () => None,
    }
}

/// What lies around the sound batches in a range of damage.
fn of_damage(damage: &Damage, sound: &[Piece]) -> impl Iterator<Item = Rejected> {
    let starts = std::iter::once(damage.position).chain(sound.iter().map(|piece| piece.end));
    let ends = sound.iter().map(|piece| piece.start).chain([damage.end()]);
    let offsets = if damage.kind == DamageKind::ZeroTail { None } else { damage.offsets() };
    let reason = damage.kind.finding_id();
    starts.zip(ends).filter(|(start, end)| start < end).map(move |(start, end)| Rejected {
        start,
        end,
        reason,
        offsets,
        records: 0,
    })
}

/// Whether a file marked for deletion may be used at all.
pub(super) fn may_use(deleted: DeletedFiles, closes_hole: bool) -> bool {
    deleted == DeletedFiles::Include || closes_hole
}

//! The sound batches of a log file, one after the other, with whatever lies between them as damage. Every byte of the file is in
//! exactly one of the two.
//!
//! A batch is sound when its frame fits and its checksum is right; its records are another matter. After damage the scan goes on
//! at the next sound batch: first where the damaged one says that it ends, so that nothing inside its payload is taken for a
//! batch by mistake, else wherever one is found.

use super::{Fact, Finding, FindingId, Location};
use crate::format::resync::ResyncBounds;
use crate::format::{BatchHeader, Cursor, HEADER_UP_TO_MAGIC, Offset, Position, Shape, len_u64};
use crate::logdir::{LogScanner, ReadError, ReadErrorKind, Resync, ScanStop, Scanned, SegmentFile};

/// Granularity at which an unreadable range is closed in on.
const SECTOR: u64 = 512;
/// Within so many bytes before the first byte that is not zero a batch can start: base offset and the top of a size may be zero.
const ZEROS_BEFORE_SIZE: u64 = 11;

/// What a damaged range looks like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DamageKind {
    /// A batch whose frame fits and whose checksum does not.
    CrcMismatch {
        /// In the header.
        stored: u32,
        /// Of the bytes.
        computed: u32,
    },
    /// The size field cannot be, and sound batches follow.
    LengthInvalid {
        /// What it says.
        found: i32,
    },
    /// No batch, and sound batches follow.
    Interior,
    /// A batch that is cut off by the end of the file; nothing follows.
    TornTail {
        /// Bytes it would take, where its size field is there.
        needed: Option<u64>,
    },
    /// Nothing but zeros to the end of the file.
    ZeroTail,
    /// Bytes after the last sound batch that are neither.
    TrailingBytes,
    /// The disk refused a part of it.
    Unreadable {
        /// Where the refused part starts.
        position: Position,
        /// How long it is.
        size_bytes: u64,
    },
    /// The search for the next batch was given up at its work bound; the rest of the file is in this range.
    LimitReached,
}

/// A range of a log file that is no sound batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// Its first byte.
    pub position: Position,
    /// Its length.
    pub size_bytes: u64,
    /// What it looks like.
    pub kind: DamageKind,
    /// The header at its start, where that is plausible.
    pub header: Option<BatchHeader>,
    /// The offset after the last sound batch before it: the first that may be concerned.
    pub expected_offset: Offset,
    /// The base offset of the sound batch after it.
    pub next_offset: Option<Offset>,
}

impl Damage {
    /// The first byte after it.
    pub fn end(&self) -> Position {
        self.position.advance(self.size_bytes)
    }

    /// The damage as a finding of the usual severity, in the file at `location`.
    pub fn finding(&self, location: Location) -> Finding {
        let mut location = location.at(self.position, self.size_bytes);
        if let Some((first, last)) = self.offsets() {
            location = location.offsets(first, last);
        }
        let finding = Finding::new(self.kind.finding_id(), location);
        match self.kind {
            DamageKind::CrcMismatch { stored, computed } => {
                finding.with_facts(Fact::Checksum(computed), Fact::Checksum(stored))
            }
            DamageKind::LengthInvalid { found } => finding.with_facts(None, Fact::Number(i64::from(found))),
            DamageKind::TornTail { needed: Some(needed) } => finding.with_facts(
                Fact::Number(i64::try_from(needed).unwrap_or(i64::MAX)),
                Fact::Number(i64::try_from(self.size_bytes).unwrap_or(i64::MAX)),
            ),
            _ => finding,
        }
    }

    /// The offsets that are gone with it, first and last inclusive, as far as its neighbours or its own header tell.
    pub fn offsets(&self) -> Option<(Offset, Offset)> {
        let of_header = self.header.filter(|h| !h.is_legacy()).map(|h| (h.base_offset, h.last_offset));
        match self.next_offset {
            Some(next) if next > self.expected_offset => Some((self.expected_offset, next.saturating_add(-1))),
            _ => of_header.filter(|(first, last)| first <= last && *first >= self.expected_offset),
        }
    }
}

impl DamageKind {
    /// The catalogue's id for a range of this kind.
    pub fn finding_id(&self) -> FindingId {
        match self {
            Self::CrcMismatch { .. } => FindingId::BatchCrcMismatch,
            Self::LengthInvalid { .. } => FindingId::BatchLengthInvalid,
            Self::Interior => FindingId::LogDamageInterior,
            Self::TornTail { .. } => FindingId::BatchTornTail,
            Self::ZeroTail => FindingId::LogZeroTail,
            Self::TrailingBytes => FindingId::LogTrailingBytes,
            Self::Unreadable { .. } => FindingId::LogUnreadableRange,
            Self::LimitReached => FindingId::LimitReached,
        }
    }
}

/// A sound batch, or what lies between two.
#[derive(Debug)]
pub enum SoundItem<'a> {
    /// A batch with a right checksum.
    Batch(Scanned<'a>),
    /// A range without one.
    Damage(Damage),
}

/// Walks a log file as a whole.
#[derive(Debug)]
pub struct SoundBatches<'f> {
    scanner: LogScanner<'f>,
    bounds: ResyncBounds,
    expected_offset: Offset,
    /// The first unreadable part of the range being searched.
    unreadable: Option<(Position, Position)>,
}

/// How a step of the scan came out, before any search.
enum Step {
    Sound(BatchHeader),
    End,
    Bad(Position, Option<BatchHeader>, DamageKind),
}

impl<'f> SoundBatches<'f> {
    /// A walk over the log file of the segment that starts at `base_offset`.
    pub fn new(file: &'f SegmentFile, base_offset: Offset) -> Self {
        Self::from(file, base_offset, Position(0))
    }

    /// A walk from `start` on, which should be a batch's.
    pub fn from(file: &'f SegmentFile, base_offset: Offset, start: Position) -> Self {
        Self {
            scanner: LogScanner::over(file, start, file.end()),
            bounds: ResyncBounds::of_segment(base_offset, file.end()),
            expected_offset: base_offset,
            unreadable: None,
        }
    }

    /// The first byte not yet given out.
    pub fn position(&self) -> Position {
        self.scanner.position()
    }

    /// The next batch or range of damage; `None` at the end of the file.
    pub fn next_item(&mut self) -> Option<SoundItem<'_>> {
        match self.step() {
            Step::End => None,
            Step::Sound(header) => {
                self.expected_offset = header.next_offset();
                self.scanner.latest(&header).map(SoundItem::Batch)
            }
            Step::Bad(position, header, kind) => Some(SoundItem::Damage(self.pass_damage(position, header, kind))),
        }
    }

    fn step(&mut self) -> Step {
        let (position, end) = (self.scanner.position(), self.scanner.end());
        match self.scanner.next_batch() {
            Ok(Some(batch)) => {
                let header = *batch.header();
                match batch.computed_crc() {
                    Ok(computed) if computed == header.crc => Step::Sound(header),
                    Ok(computed) => {
                        Step::Bad(position, Some(header), DamageKind::CrcMismatch { stored: header.crc, computed })
                    }
                    Err(error) => unreadable_step(position, &error),
                }
            }
            Ok(None) if position >= end => Step::End,
            // Too few bytes for a header: Kafka's reader ends here in silence, a later append would follow on garbage.
            Ok(None) => Step::Bad(position, None, DamageKind::TornTail { needed: None }),
            Err(ScanStop::SizeTooSmall { found, .. }) => Step::Bad(position, None, DamageKind::LengthInvalid { found }),
            Err(ScanStop::PastEnd { size_bytes, .. }) => {
                Step::Bad(position, None, DamageKind::TornTail { needed: Some(size_bytes) })
            }
            Err(ScanStop::Unreadable(error)) => unreadable_step(position, &error),
        }
    }

    fn pass_damage(&mut self, position: Position, header: Option<BatchHeader>, kind: DamageKind) -> Damage {
        self.unreadable = None;
        if let DamageKind::Unreadable { position, .. } = kind {
            self.unreadable = Some((position, self.next_readable(position)));
        }
        let found = self.search(position, header.as_ref());
        let end = match found {
            Resync::Found(at) => at,
            Resync::Nothing | Resync::GaveUp(_) => self.scanner.end(),
        };
        self.scanner.jump(end);
        let kind = self.classify(position, header.as_ref(), kind, found);
        let next_offset = self.peek_offset(end);
        Damage {
            position,
            size_bytes: end.since(position),
            kind,
            header: header.filter(|header| self.bounds.allow(header)),
            expected_offset: self.expected_offset,
            next_offset,
        }
    }

    /// Where the next sound batch starts after the bad place.
    fn search(&mut self, position: Position, header: Option<&BatchHeader>) -> Resync {
        if let Some(header) = header {
            let end = header.end();
            if end == self.scanner.end() || self.is_sound_at(end) {
                // A size that was changed may have swallowed sound batches: they would lie between the two neighbours.
                let inside = ResyncBounds {
                    file_end: end,
                    least_offset: self.expected_offset,
                    most_offset: self.peek_offset(end).map_or(self.bounds.most_offset, |next| next.saturating_add(-1)),
                };
                return match self.search_from(position.advance(1), &inside) {
                    Resync::Found(at) => Resync::Found(at),
                    _ if end == self.scanner.end() => Resync::Nothing,
                    _ => Resync::Found(end),
                };
            }
        }
        let bounds = self.bounds;
        self.search_from(position.advance(1), &bounds)
    }

    fn search_from(&mut self, from: Position, bounds: &ResyncBounds) -> Resync {
        let mut at = match self.unreadable {
            Some((_, end)) => from.max(end),
            None => from,
        };
        loop {
            if let Ok(after_zeros) = self.scanner.skip_zeros(at) {
                at = at.max(Position(after_zeros.0.saturating_sub(ZEROS_BEFORE_SIZE)));
            }
            match self.scanner.find_batch(at, bounds) {
                Ok(found) => return found,
                Err(error) => {
                    let refused = refused_at(&error).unwrap_or(at).max(at);
                    let end = self.next_readable(refused);
                    let start = self.unreadable.map_or(refused, |(start, _)| start);
                    self.unreadable = Some((start, end));
                    if end >= self.scanner.end() {
                        return Resync::Nothing;
                    }
                    at = end;
                }
            }
        }
    }

    /// The first sector at or after a refused one that can be read.
    fn next_readable(&mut self, refused: Position) -> Position {
        let mut at = Position(refused.0 / SECTOR * SECTOR);
        while at < self.scanner.end() && self.scanner.peek(at, SECTOR).is_err() {
            at = at.advance(SECTOR);
        }
        at.min(self.scanner.end())
    }

    fn is_sound_at(&mut self, position: Position) -> bool {
        self.scanner.jump(position);
        let sound = matches!(self.scanner.next_batch(), Ok(Some(batch)) if batch.crc_matches().unwrap_or(false));
        self.scanner.jump(position);
        sound
    }

    /// The base offset of the batch at a place, if one is there.
    fn peek_offset(&mut self, position: Position) -> Option<Offset> {
        self.scanner.jump(position);
        let header = match self.scanner.next_batch() {
            Ok(Some(batch)) => Some(batch.header().base_offset),
            _ => None,
        };
        self.scanner.jump(position);
        header
    }

    fn classify(
        &mut self,
        position: Position,
        header: Option<&BatchHeader>,
        kind: DamageKind,
        found: Resync,
    ) -> DamageKind {
        if let Some((start, end)) = self.unreadable {
            return DamageKind::Unreadable { position: start, size_bytes: end.since(start) };
        }
        match (found, kind) {
            (Resync::GaveUp(_), _) => DamageKind::LimitReached,
            (Resync::Found(at), DamageKind::CrcMismatch { .. }) if header.is_some_and(|header| header.end() != at) => {
                DamageKind::Interior
            }
            (Resync::Found(_), DamageKind::TornTail { needed: Some(size) }) => {
                DamageKind::LengthInvalid { found: size.saturating_sub(12).try_into().unwrap_or(i32::MAX) }
            }
            (Resync::Found(_), DamageKind::LengthInvalid { found: 0 }) => DamageKind::Interior,
            (_, kind @ DamageKind::CrcMismatch { .. }) | (Resync::Found(_), kind) => kind,
            (Resync::Nothing, kind) => {
                let end = self.scanner.end();
                let is_zero = self.scanner.skip_zeros(position).is_ok_and(|at| at >= end);
                self.scanner.jump(end);
                match kind {
                    _ if is_zero => DamageKind::ZeroTail,
                    DamageKind::TornTail { .. } if self.may_be_torn(position) => kind,
                    _ => DamageKind::TrailingBytes,
                }
            }
        }
    }

    /// Whether what stands at a place can be the beginning of a batch of this segment, as far as it is there.
    fn may_be_torn(&mut self, position: Position) -> bool {
        let (least, most) = (self.expected_offset, self.bounds.most_offset);
        let Ok(bytes) = self.scanner.peek(position, len_u64(HEADER_UP_TO_MAGIC)) else { return false };
        let is_offset_possible = match Cursor::new(bytes).read_i64(Shape::BatchHeader) {
            Ok(offset) => (least..=most).contains(&Offset(offset)),
            Err(_) => bytes.first().is_none_or(|&byte| byte == 0),
        };
        is_offset_possible && bytes.get(HEADER_UP_TO_MAGIC - 1).is_none_or(|&magic| magic <= 2)
    }
}

fn unreadable_step(position: Position, error: &ReadError) -> Step {
    let start = refused_at(error).unwrap_or(position);
    Step::Bad(position, None, DamageKind::Unreadable { position: start, size_bytes: 0 })
}

fn refused_at(error: &ReadError) -> Option<Position> {
    match error.kind {
        ReadErrorKind::IoAt { position, .. } | ReadErrorKind::Shrank { position, .. } => Some(position),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logdir::IoMode;

    /// A message of magic 0, 29 bytes: offset 5, `a` to `bc`.
    const V0: [u8; 29] =
        [0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0x11, 0x6e, 0xeb, 0xec, 0xe4, 0, 0, 0, 0, 0, 1, 0x61, 0, 0, 0, 2, 0x62, 0x63];

    /// The offset is outside the checksum.
    fn at_offset(offset: u8) -> Vec<u8> {
        let mut message = V0.to_vec();
        message[7] = offset;
        message
    }

    fn log(count: u8) -> Vec<u8> {
        (0..count).flat_map(at_offset).collect()
    }

    /// Positions of the sound batches, and the damages, after checking that together they are the whole file.
    fn walk(bytes: &[u8]) -> (Vec<u64>, Vec<Damage>) {
        let mut walks = Vec::new();
        for mode in [IoMode::Pread, IoMode::Mmap] {
            let temporary = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(temporary.path(), bytes).unwrap();
            let file = SegmentFile::open(temporary.path(), mode).unwrap();
            let mut batches = SoundBatches::new(&file, Offset(0));
            let (mut sound, mut damages, mut covered) = (Vec::new(), Vec::new(), 0);
            while let Some(item) = batches.next_item() {
                match item {
                    SoundItem::Batch(batch) => {
                        assert_eq!(batch.header().position.0, covered);
                        covered += batch.header().size_bytes;
                        sound.push(batch.header().position.0);
                    }
                    SoundItem::Damage(damage) => {
                        assert_eq!(damage.position.0, covered);
                        covered += damage.size_bytes;
                        damages.push(damage);
                    }
                }
            }
            assert_eq!(covered, bytes.len() as u64);
            walks.push((sound, damages));
        }
        assert_eq!(walks[0], walks[1]);
        walks.swap_remove(0)
    }

    fn kinds(damages: &[Damage]) -> Vec<(u64, u64, DamageKind)> {
        damages.iter().map(|d| (d.position.0, d.size_bytes, d.kind.clone())).collect()
    }

    #[test]
    fn a_flipped_payload_bit_costs_its_batch_alone() {
        let mut bytes = log(3);
        bytes[29 + 28] ^= 1;
        let (sound, damages) = walk(&bytes);
        assert_eq!(sound, [0, 58]);
        assert!(matches!(kinds(&damages)[..], [(29, 29, DamageKind::CrcMismatch { stored: 0x6eeb_ece4, .. })]));
        assert_eq!(damages[0].offsets(), Some((Offset(1), Offset(1))));
    }

    #[test]
    fn a_size_too_large_is_told_from_a_torn_tail_by_what_follows() {
        let mut bytes = log(3);
        bytes[29 + 9] = 1;
        let (sound, damages) = walk(&bytes);
        assert_eq!(sound, [0, 58]);
        assert_eq!(kinds(&damages), [(29, 29, DamageKind::LengthInvalid { found: 0x0001_0011 })]);
        let (sound, damages) = walk(&log(3)[..80]);
        assert_eq!(sound, [0, 29]);
        assert_eq!(kinds(&damages), [(58, 22, DamageKind::TornTail { needed: Some(29) })]);
        let (_, damages) = walk(&log(3)[..70]);
        assert_eq!(kinds(&damages), [(58, 12, DamageKind::TornTail { needed: None })]);
    }

    #[test]
    fn a_size_that_swallows_a_batch_does_not_lose_it() {
        let mut bytes = log(4);
        bytes[29 + 11] = 0x11 + 29;
        let (sound, damages) = walk(&bytes);
        assert_eq!(sound, [0, 58, 87]);
        assert_eq!(kinds(&damages), [(29, 29, DamageKind::Interior)]);
    }

    #[test]
    fn zeros_at_the_end_and_between_are_told_apart() {
        for count in [1, 17, 18, 4096, 1_000_000] {
            let mut bytes = log(2);
            bytes.extend(vec![0; count]);
            assert_eq!(kinds(&walk(&bytes).1), [(58, count as u64, DamageKind::ZeroTail)], "{count}");
            bytes.extend(at_offset(9));
            let (sound, damages) = walk(&bytes);
            assert_eq!(sound, [0, 29, 58 + count as u64]);
            assert_eq!(damages[0].size_bytes, count as u64);
            assert_eq!(damages[0].offsets(), Some((Offset(2), Offset(8))));
        }
    }

    #[test]
    fn foreign_bytes_at_the_end_are_neither_torn_nor_zero() {
        let bytes = [log(2), b"this is not a batch of anything".to_vec()].concat();
        assert_eq!(kinds(&walk(&bytes).1), [(58, 31, DamageKind::TrailingBytes)]);
    }

    #[test]
    fn every_flipped_bit_and_every_cut_leaves_all_untouched_batches() {
        let bytes = log(4);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let (sound, _) = walk(&flipped);
            for untouched in (0..4).filter(|&batch| batch != bit / 8 / 29) {
                assert!(sound.contains(&(untouched as u64 * 29)), "bit {bit}: {sound:?}");
            }
        }
        for len in 0..bytes.len() {
            assert_eq!(walk(&bytes[..len]).0.len(), len / 29, "cut to {len}");
        }
    }
}

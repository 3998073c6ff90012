//! The sound batches of a log file, one after the other, with whatever lies between them as damage. Every byte of the file is in
//! exactly one of the two.
//!
//! A batch is sound when its frame fits and its checksum is right; its records are another matter. After damage the scan goes on
//! at the next sound batch: first where the damaged one says that it ends, so that nothing inside its payload is taken for a
//! batch by mistake, else wherever one is found.

use super::damage::{Damage, DamageKind, Probe};
use crate::format::resync::ResyncBounds;
use crate::format::{BatchHeader, Offset, Position};
use crate::logdir::{LogScanner, ReadError, ReadErrorKind, Resync, ScanStop, Scanned, SegmentFile};

/// Bytes that a search for a batch to begin with reads at a time.
const SEARCH_BYTES: usize = 32 * 1024;
/// Granularity at which an unreadable range is closed in on.
const SECTOR: u64 = 512;
/// Within so many bytes before the first byte that is not zero a batch can start: base offset and the top of a size may be zero.
const ZEROS_BEFORE_SIZE: u64 = 11;
/// Zeros at its end with which a batch counts as one that reached the disk in part only.
const ZERO_END: u64 = 32;
/// Frames that are followed from a damaged batch, before the bytes are searched instead.
const MOST_FRAMES: usize = 1024;
/// Sound batches inside a damaged one that are looked at, to see whether its size has swallowed them.
const MOST_SWALLOWED: usize = 64;

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
    /// Up to here the frames are known to lead to a sound batch or to the end.
    framed_until: Position,
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
            framed_until: Position(0),
            unreadable: None,
        }
    }

    /// The same walk, told which offset should come next: something else has read the batches before `start`.
    #[must_use]
    pub fn expecting(mut self, offset: Offset) -> Self {
        self.expected_offset = offset;
        self
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
        let probe = Probe::new(&mut self.scanner, position, &self.bounds, self.expected_offset);
        let found = match header {
            Some(header) if self.is_framed(&header) => self.search_frame(&header, &probe),
            _ => self.search_from(position.advance(1)),
        };
        let kind = self.classify(position, &probe, kind, found);
        let end = match (found, &kind, probe.header) {
            (Resync::Found(at), ..) => at,
            // What follows a batch that only has wrong bytes is judged by itself.
            (_, DamageKind::CrcMismatch { .. }, Some(header)) => header.end(),
            _ => self.scanner.end(),
        };
        let is_crc = matches!(kind, DamageKind::CrcMismatch { .. });
        let true_magic = if is_crc { probe.true_magic(&mut self.scanner) } else { None };
        let next_offset = self.peek_offset(end);
        Damage {
            position,
            size_bytes: end.since(position),
            kind,
            header: probe.header.filter(|header| probe.is_plausible || self.bounds.allow(header)),
            true_magic,
            expected_offset: self.expected_offset,
            next_offset,
        }
    }

    /// Whether the frames from this batch on lead to a sound batch, or exactly to the end of the file. Leaves the scanner anywhere.
    fn is_framed(&mut self, header: &BatchHeader) -> bool {
        if header.position < self.framed_until {
            return true;
        }
        if !self.bounds.allow(&BatchHeader { magic: header.magic.clamp(0, 2), ..*header }) {
            return false;
        }
        let mut at = header.end();
        for _ in 0..MOST_FRAMES {
            if at == self.scanner.end() {
                self.framed_until = at;
                return true;
            }
            self.scanner.jump(at);
            let Ok(Some(batch)) = self.scanner.next_batch() else { return false };
            let next = *batch.header();
            if batch.crc_matches().unwrap_or(false) {
                self.framed_until = at;
                return true;
            }
            if !self.bounds.allow(&next) {
                return false;
            }
            at = next.end();
        }
        false
    }

    /// Where the next sound batch starts after a batch whose frame fits: at its end, unless its size was changed so that it
    /// swallows sound batches.
    fn search_frame(&mut self, header: &BatchHeader, probe: &Probe) -> Resync {
        let end = header.end();
        let bounds = ResyncBounds { file_end: end, least_offset: self.expected_offset, ..self.bounds };
        let mut from = header.position.advance(1);
        for _ in 0..MOST_SWALLOWED {
            let Ok(Resync::Found(at)) = self.scanner.find_batch(from, &bounds) else { break };
            if at >= end {
                break;
            }
            // A batch may be the value of a record: then neither ends it the frame, nor is the checksum right without it.
            if probe.has_true_size(&mut self.scanner, at.since(header.position)) {
                return Resync::Found(at);
            }
            from = self.end_of_sound_batches(at, end).max(at.advance(1));
            if from == end {
                return Resync::Found(at);
            }
        }
        if end == self.scanner.end() { Resync::Nothing } else { Resync::Found(end) }
    }

    /// How far sound batches follow each other from one place on, at most to the other.
    fn end_of_sound_batches(&mut self, from: Position, to: Position) -> Position {
        self.scanner.jump(from);
        let mut reached = from;
        while reached < to {
            match self.scanner.next_batch() {
                Ok(Some(batch)) if batch.crc_matches().unwrap_or(false) => reached = batch.header().end(),
                _ => break,
            }
        }
        reached
    }

    /// The next sound batch from a place on: one whose offsets follow on, else any of this segment.
    fn search_from(&mut self, from: Position) -> Resync {
        let strict = ResyncBounds { least_offset: self.expected_offset.max(self.bounds.least_offset), ..self.bounds };
        match self.search_within(from, &strict) {
            Resync::Nothing if strict.least_offset > self.bounds.least_offset => {
                let bounds = self.bounds;
                self.search_within(from, &bounds)
            }
            outcome => outcome,
        }
    }

    fn search_within(&mut self, from: Position, bounds: &ResyncBounds) -> Resync {
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

    /// The base offset of the batch at a place, if one is there. Leaves the scanner at that place.
    fn peek_offset(&mut self, position: Position) -> Option<Offset> {
        self.scanner.jump(position);
        let offset = match self.scanner.next_batch() {
            Ok(Some(batch)) => Some(batch.header().base_offset),
            _ => None,
        };
        self.scanner.jump(position);
        offset
    }

    fn classify(&mut self, position: Position, probe: &Probe, kind: DamageKind, found: Resync) -> DamageKind {
        if let Some((start, end)) = self.unreadable {
            return DamageKind::Unreadable { position: start, size_bytes: end.since(start) };
        }
        match found {
            Resync::GaveUp(_) => DamageKind::LimitReached,
            Resync::Found(at) => self.classify_before(at, position, probe, kind),
            Resync::Nothing => self.classify_end(position, probe, kind),
        }
    }

    /// What the range is, given that a sound batch starts at `next`.
    fn classify_before(&mut self, next: Position, position: Position, probe: &Probe, kind: DamageKind) -> DamageKind {
        let is_framed = probe.header.is_some_and(|header| header.end() == next);
        match kind {
            kind @ DamageKind::CrcMismatch { .. } if is_framed => kind,
            DamageKind::CrcMismatch { .. } if !probe.has_true_size(&mut self.scanner, next.since(position)) => {
                DamageKind::Interior
            }
            _ if probe.is_plausible => DamageKind::LengthInvalid { found: probe.size },
            _ => DamageKind::Interior,
        }
    }

    /// What the range is, given that no sound batch follows.
    fn classify_end(&mut self, position: Position, probe: &Probe, kind: DamageKind) -> DamageKind {
        if self.is_zero_from(position) {
            return DamageKind::ZeroTail;
        }
        let is_framed = probe.header.is_some_and(|header| header.position < self.framed_until);
        match kind {
            DamageKind::CrcMismatch { .. } if probe.is_plausible || is_framed => match probe.header {
                // A batch whose end never reached the disk, in a file whose size did.
                Some(header)
                    if header.size_bytes > ZERO_END
                        && self.is_zero_from(Position(header.end().0.saturating_sub(ZERO_END))) =>
                {
                    DamageKind::TornTail { needed: Some(header.size_bytes) }
                }
                _ => kind,
            },
            _ if !probe.is_plausible => DamageKind::TrailingBytes,
            kind => kind,
        }
    }

    fn is_zero_from(&mut self, position: Position) -> bool {
        let end = self.scanner.end();
        self.scanner.skip_zeros(position).is_ok_and(|at| at >= end)
    }
}

/// Where the first sound batch of `[start, end)` begins; `None` where none lies in it whole. That it is a batch of this log and not
/// the value of a record, only a walk that arrives there can tell.
pub(crate) fn first_sound_within(
    file: &SegmentFile,
    base_offset: Offset,
    start: Position,
    end: Position,
) -> Option<Position> {
    let bounds = ResyncBounds::of_segment(base_offset, end);
    match LogScanner::over(file, start, end).reading(SEARCH_BYTES).find_batch(start, &bounds) {
        Ok(Resync::Found(at)) => Some(at),
        _ => None,
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
        assert_eq!(kinds(&damages), [(29, 29, DamageKind::LengthInvalid { found: 0x11 + 29 })]);
    }

    #[test]
    fn wrong_batches_in_a_row_are_told_one_by_one() {
        let mut bytes = log(5);
        for batch in 1..4 {
            bytes[29 * batch + 28] ^= 1;
        }
        let (sound, damages) = walk(&bytes);
        assert_eq!(sound, [0, 116]);
        let places: Vec<_> = damages.iter().map(|d| (d.position.0, d.offsets().map(|(first, _)| first.0))).collect();
        assert_eq!(places, [(29, Some(1)), (58, Some(2)), (87, Some(3))]);
        assert!(damages.iter().all(|damage| matches!(damage.kind, DamageKind::CrcMismatch { .. })));
    }

    #[test]
    fn a_batch_in_the_value_of_a_damaged_one_is_not_taken_for_one_of_the_log() {
        // Offset 1, magic 0, no key; the value is a whole message of offset 1 and one byte more.
        let value = [at_offset(1), vec![0xaa]].concat();
        let mut outer =
            vec![0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 14 + 30, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 30];
        outer.extend(value);
        let bytes = [at_offset(0), outer.clone(), at_offset(2)].concat();
        let (sound, damages) = walk(&bytes);
        assert_eq!(sound, [0, 29 + outer.len() as u64]);
        assert!(matches!(kinds(&damages)[..], [(29, 56, DamageKind::CrcMismatch { stored: 0, .. })]), "{damages:?}");
    }

    #[test]
    fn a_batch_with_a_wrong_magic_alone_is_told_by_the_checksum() {
        let mut bytes = log(3);
        bytes[29 + 16] = 1;
        let (_, damages) = walk(&bytes);
        assert_eq!(damages[0].true_magic, Some(0));
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

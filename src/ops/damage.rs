//! Ranges of a log file that are no sound batch, and what they look like.

use super::{Fact, Finding, FindingId, Location};
use crate::format::resync::ResyncBounds;
use crate::format::{
    BATCH_HEADER, BatchHeader, Cursor, FormatErrorKind, LOG_OVERHEAD, Offset, Position, Shape, crc, len_usize,
};
use crate::logdir::LogScanner;

/// The largest damaged batch whose checksum is tried with another magic or another length.
const MOST_TRIED: u64 = 64 * 1024 * 1024;

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
    /// The size field cannot be, or is not that of the batch; what else is there of the header could be a batch's.
    LengthInvalid {
        /// What it says.
        found: i32,
    },
    /// No batch, and sound batches follow.
    Interior,
    /// A batch that is cut off by the end of the file, or by zeros up to there; nothing follows.
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
    /// The magic with which the checksum would be right: it lies outside the checksum's range.
    pub true_magic: Option<i8>,
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
        let mut finding = Finding::new(self.kind.finding_id(), location);
        (finding.expected, finding.found) = self.facts();
        if let (Some(magic), Some(header)) = (self.true_magic, self.header) {
            let (expected, found) = (i64::from(magic), i64::from(header.magic));
            finding.cause =
                Some(FormatErrorKind::Mismatch { shape: Shape::BatchHeader, field: "magic", expected, found });
        }
        finding
    }

    /// What the bytes say, and what they are.
    fn facts(&self) -> (Option<Fact>, Option<Fact>) {
        let number = |bytes: u64| Fact::Number(i64::try_from(bytes).unwrap_or(i64::MAX));
        match self.kind {
            DamageKind::CrcMismatch { stored, computed } => {
                (Some(Fact::Checksum(stored)), Some(Fact::Checksum(computed)))
            }
            DamageKind::LengthInvalid { found } => {
                let length = self.next_offset.map(|_| number(self.size_bytes.saturating_sub(LOG_OVERHEAD as u64)));
                (length, Some(Fact::Number(i64::from(found))))
            }
            DamageKind::TornTail { needed } => (needed.map(number), Some(number(self.size_bytes))),
            _ => (None, None),
        }
    }

    /// The offsets that are gone with it, first and last inclusive, as far as its own header or its neighbours tell.
    pub fn offsets(&self) -> Option<(Offset, Offset)> {
        let of_header = self.header.filter(|h| !h.is_legacy_wrapper()).map(|h| (h.base_offset, h.last_offset));
        let of_header = of_header.filter(|(first, last)| first <= last && *first >= self.expected_offset);
        let missing = self
            .next_offset
            .filter(|next| *next > self.expected_offset)
            .map(|next| (self.expected_offset, next.saturating_add(-1)));
        match self.kind {
            // In a cleaned log more is missing between the neighbours than was in this batch.
            DamageKind::CrcMismatch { .. } => of_header.or(missing),
            _ => missing.or(of_header),
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

/// What stands at the start of a range that is no sound batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    start: Position,
    /// The header, where the bytes suffice for one.
    pub(super) header: Option<BatchHeader>,
    /// Whether what is there of a header could be the next batch's, its size aside.
    pub(super) is_plausible: bool,
    /// What the size field says.
    pub(super) size: i32,
}

impl Probe {
    /// Looks at what stands at `start`. `expected` is the offset that should come next.
    pub(super) fn new(scanner: &mut LogScanner<'_>, start: Position, bounds: &ResyncBounds, expected: Offset) -> Self {
        let bytes = scanner.peek(start, BATCH_HEADER as u64).unwrap_or_default();
        Self {
            start,
            header: BatchHeader::parse(bytes, start).ok(),
            is_plausible: is_plausible(bytes, bounds, expected),
            size: stored_at(bytes, 8).map_or(0, |size| size as i32),
        }
    }

    /// Whether the header's checksum would be right if the batch had this size.
    pub(super) fn has_true_size(&self, scanner: &mut LogScanner<'_>, size_bytes: u64) -> bool {
        let Some(header) = self.header.filter(|_| size_bytes <= MOST_TRIED) else { return false };
        let Ok(bytes) = scanner.peek(self.start, size_bytes) else { return false };
        let from = if header.is_legacy() { 16 } else { 21 };
        let Some(covered) = bytes.get(from..) else { return false };
        let computed = if header.is_legacy() { crc::crc32(covered) } else { crc::crc32c(covered) };
        computed == header.crc
    }

    /// The magic with which the checksum of the batch would be right, if that is another one than it has.
    pub(super) fn true_magic(&self, scanner: &mut LogScanner<'_>) -> Option<i8> {
        let header = self.header.filter(|header| header.size_bytes <= MOST_TRIED)?;
        let mut bytes = scanner.peek(self.start, header.size_bytes).ok()?.to_vec();
        if bytes.len() < len_usize(header.size_bytes) {
            return None;
        }
        if header.magic != 2 && stored_at(&bytes, 17) == Some(crc::crc32c(bytes.get(21..)?)) {
            return Some(2);
        }
        (0..=1i8).filter(|magic| *magic != header.magic).find(|magic| {
            if let Some(place) = bytes.get_mut(16) {
                *place = *magic as u8;
            }
            bytes.get(16..).map(crc::crc32) == stored_at(&bytes, 12)
        })
    }
}

fn stored_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_be_bytes(*word))
}

/// Whether `bytes` could begin the batch that should come next. Nothing is asked of the size, since that may be what is wrong.
fn is_plausible(bytes: &[u8], bounds: &ResyncBounds, expected: Offset) -> bool {
    // They could pass for offset 0 and magic 0.
    if bytes.len() > 16 && bytes.iter().take(17).all(|byte| *byte == 0) {
        return false;
    }
    let mut cursor = Cursor::new(bytes);
    let Ok(offset) = cursor.read_i64(Shape::BatchHeader) else {
        // Too little for an offset: its first bytes must at least be those of the next one.
        return expected.0.to_be_bytes().starts_with(bytes);
    };
    let most = bounds.most_offset.0;
    let rest =
        (cursor.read_i32(Shape::BatchHeader), cursor.read_i32(Shape::BatchHeader), cursor.read_i8(Shape::BatchHeader));
    let (Ok(_), Ok(word), Ok(magic)) = rest else { return (expected.0..=most).contains(&offset) };
    let fits =
        (0..=2).contains(&magic) && (bounds.least_offset.0..=most).contains(&offset) && (magic < 2 || word >= -1);
    if !fits || magic < 2 {
        return fits;
    }
    // With a size that can be, the rest of the header is read and judged.
    let mut resized = bytes.to_vec();
    if let Some(size) = resized.get_mut(8..12) {
        size.copy_from_slice(&i32::MAX.to_be_bytes());
    }
    BatchHeader::parse(&resized, Position(0)).map_or(true, |header| {
        header.last_offset_delta >= 0
            && header.last_offset <= bounds.most_offset
            && header.records_count.is_none_or(|count| count >= 0)
            && header.attributes.unknown_bits() == 0
            && header.producer_id.is_none_or(|id| id.0 >= 0)
    })
}

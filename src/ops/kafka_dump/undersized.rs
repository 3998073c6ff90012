//! Batches whose size field is too small for what they hold: Kafka's tool reads the header of magic 2 from the file all the same,
//! and the sizes of key and value of a legacy message even where the message ends before them.

use super::event::StoredSizes;
use crate::format::{BATCH_HEADER, BatchHeader, LEAST_SIZE, LOG_OVERHEAD, Position, len_u64};
use crate::logdir::SegmentFile;

/// Where the size field stands in a batch.
const SIZE_AT: std::ops::Range<usize> = 8..12;

/// What the tool makes of a size field that [`crate::logdir::ScanStop::SizeTooSmall`] names.
pub(super) enum Undersized {
    /// It reads a header and goes on behind the stated size.
    Batch(BatchHeader),
    /// The stated size reaches beyond the end: the tool stops as at a torn batch.
    PastEnd,
    /// It ends with an exception.
    Impossible,
}

/// Looks at the place where a scan of `log` up to `end` stopped.
pub(super) fn undersized(log: &SegmentFile, position: Position, found: i32, end: Position) -> Undersized {
    if found < LEAST_SIZE {
        return Undersized::Impossible;
    }
    let size_bytes = u64::from(found.unsigned_abs()).saturating_add(len_u64(LOG_OVERHEAD));
    if end.since(position) < size_bytes {
        return Undersized::PastEnd;
    }
    let mut bytes = [0; BATCH_HEADER];
    if log.read_exact_at(&mut bytes, position).is_err() {
        return Undersized::Impossible;
    }
    // The parser wants a size that covers the header.
    if let Some(size) = bytes.get_mut(SIZE_AT) {
        size.copy_from_slice(&i32::MAX.to_be_bytes());
    }
    match BatchHeader::parse(&bytes, position) {
        Ok(header) => Undersized::Batch(BatchHeader { size_bytes, ..header }),
        Err(_) => Undersized::Impossible,
    }
}

/// The stored sizes of key and value of a legacy message, if the message holds them.
pub(super) fn stored_sizes(message: &[u8], magic: i8) -> Option<StoredSizes> {
    let key_at = if magic == 0 { 18 } else { 26 };
    let number = |at: usize| message.get(at..)?.first_chunk().map(|bytes| i32::from_be_bytes(*bytes));
    let key = number(key_at)?;
    let value_at = key_at.checked_add(4)?.checked_add(usize::try_from(key).unwrap_or(0))?;
    let value = number(value_at)?;
    Some(StoredSizes { key, value, value_available: message.len().saturating_sub(value_at.saturating_add(4)) })
}

//! The search for the next batch after damage. Only verify, repair and dump use it; everything else stops where a broker stops.
//!
//! A place is taken for a batch when its header is plausible and its checksum right. Base offset, size, epoch and magic of magic 2
//! lie outside the checksum, so they are held against what the file allows.

use super::batch::{Batch, BatchHeader, HEADER_UP_TO_MAGIC, LEAST_SIZE, LOG_OVERHEAD};
use super::{Offset, Position, len_u64};

/// Where the size field stands, and its bytes.
const SIZE_AT: usize = 8;
const SIZE_LEN: usize = LOG_OVERHEAD - SIZE_AT;

/// What a batch found after damage must fit into.
#[derive(Clone, Copy, Debug)]
pub struct ResyncBounds {
    /// Where the file ends.
    pub file_end: Position,
    /// The least last offset that can follow: the segment's base, or the end of what came before.
    pub least_offset: Offset,
    /// The largest offset that the segment can hold.
    pub most_offset: Offset,
}

impl ResyncBounds {
    /// The bounds that a segment's base offset gives.
    pub fn of_segment(base: Offset, file_end: Position) -> Self {
        Self { file_end, least_offset: base, most_offset: base.saturating_add(i64::from(i32::MAX)) }
    }

    /// Whether a header could stand in this file.
    pub fn allow(&self, header: &BatchHeader) -> bool {
        (0..=2).contains(&header.magic)
            && header.end() <= self.file_end
            && header.base_offset.0 >= 0
            && header.last_offset >= self.least_offset
            && header.last_offset <= self.most_offset
            && header.last_offset_delta >= 0
            && header.leader_epoch.is_none_or(|epoch| epoch.0 >= 0)
            && header.records_count.is_none_or(|count| count >= 0)
            && header.size_bytes >= if header.magic == 1 { 34 } else { 26 }
    }
}

/// The first index of `window` at or after `from` where a batch header could start, judged by its first 17 bytes: cheap enough for
/// every byte of a file. `None` where no such place is left that the window holds in full.
pub fn next_candidate(window: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let tail = window.get(at..)?;
        let found = tail.windows(HEADER_UP_TO_MAGIC).position(|bytes| is_candidate(bytes) || has_no_size(bytes))?;
        at = at.checked_add(found)?;
        let bytes = window.get(at..)?;
        if is_candidate(bytes) {
            return Some(at);
        }
        // As far as there are zeros, no size begins that is one.
        let zeros = leading_zeros(bytes.get(SIZE_AT..).unwrap_or_default());
        at = at.checked_add(zeros.saturating_sub(SIZE_LEN - 1).max(1))?;
    }
}

/// How many zeros stand at the start: as fast as memory where there are many.
pub fn leading_zeros(bytes: &[u8]) -> usize {
    const BLOCK: usize = 128;
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    // A block without a branch inside becomes a handful of vector instructions.
    let empty = blocks.iter().take_while(|block| block.iter().fold(0, |any, &byte| any | byte) == 0).count();
    let start = empty * BLOCK;
    let rest = bytes.get(start..).unwrap_or_default();
    start + rest.iter().position(|&byte| byte != 0).unwrap_or(rest.len())
}

fn is_candidate(bytes: &[u8]) -> bool {
    let magic = bytes.get(HEADER_UP_TO_MAGIC - 1).copied().unwrap_or(u8::MAX);
    if magic > 2 {
        return false;
    }
    let (offset, size) = (leading(bytes, 0, 1), leading(bytes, SIZE_AT, SIZE_LEN));
    // The top bit of the offset and of the size are never set.
    offset < 0x80 && (u64::from(LEAST_SIZE as u32)..=u64::from(i32::MAX as u32)).contains(&size)
}

fn has_no_size(bytes: &[u8]) -> bool {
    leading(bytes, SIZE_AT, SIZE_LEN) == 0
}

fn leading(bytes: &[u8], at: usize, count: usize) -> u64 {
    bytes.iter().skip(at).take(count).fold(0, |sum, &byte| (sum << 8) | u64::from(byte))
}

/// The batch at the start of `data`, if one stands there that fits the bounds and has the right checksum.
pub fn sound_batch<'a>(data: &'a [u8], position: Position, bounds: &ResyncBounds) -> Option<Batch<'a>> {
    let header = BatchHeader::parse(data, position).ok()?;
    if !bounds.allow(&header) || header.size_bytes > len_u64(data.len()) {
        return None;
    }
    Batch::parse(data, position).ok().filter(Batch::crc_matches)
}

#[cfg(test)]
mod tests {
    use super::*;

    const V0: [u8; 29] =
        [0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0x11, 0x6e, 0xeb, 0xec, 0xe4, 0, 0, 0, 0, 0, 1, 0x61, 0, 0, 0, 2, 0x62, 0x63];

    #[test]
    fn a_batch_is_found_behind_any_garbage() {
        for garbage in [0usize, 1, 7, 61, 300] {
            for fill in [0x00, 0xff, 0x02, 0x11] {
                let mut data = vec![fill; garbage];
                data.extend(V0);
                let bounds = ResyncBounds::of_segment(Offset(0), Position(len_u64(data.len())));
                let mut from = 0;
                let found = loop {
                    let candidate = next_candidate(&data, from).unwrap();
                    if sound_batch(&data[candidate..], Position(len_u64(candidate)), &bounds).is_some() {
                        break candidate;
                    }
                    from = candidate + 1;
                };
                assert_eq!(found, garbage);
            }
        }
    }

    #[test]
    fn zeros_are_counted_up_to_the_first_other_byte_wherever_it_is() {
        for len in [0usize, 1, 127, 128, 129, 1000] {
            assert_eq!(leading_zeros(&vec![0; len]), len);
            for other in 0..len {
                let mut bytes = vec![0; len];
                bytes[other] = 1;
                assert_eq!(leading_zeros(&bytes), other);
            }
        }
    }

    #[test]
    fn no_candidate_is_passed_over_between_zeros() {
        for gap in 0..40 {
            let mut data = vec![0; gap];
            for zeros in [0usize, 1, 3, 4, 5, 200, 17] {
                data.extend(vec![0; zeros]);
                data.extend(&V0[8..]);
            }
            let slow: Vec<usize> = (0..data.len() - 16).filter(|&at| is_candidate(&data[at..])).collect();
            let mut fast = Vec::new();
            let mut from = 0;
            while let Some(at) = next_candidate(&data, from) {
                fast.push(at);
                from = at + 1;
            }
            assert_eq!(fast, slow, "{gap}");
        }
    }

    #[test]
    fn offsets_outside_the_segment_are_no_batch_of_it() {
        let end = Position(len_u64(V0.len()));
        assert!(sound_batch(&V0, Position(0), &ResyncBounds::of_segment(Offset(5), end)).is_some());
        assert!(sound_batch(&V0, Position(0), &ResyncBounds::of_segment(Offset(6), end)).is_none());
    }
}

//! Checksums: CRC-32C of magic 2 batches and producer snapshots, CRC-32 of magic 0 and 1 messages and gzip trailers.

use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
fn has_wide_folding() -> bool {
    static WIDE: OnceLock<bool> = OnceLock::new();
    // crc-fast is twice as fast as crc32c where it can fold 512 bits at a time, and slower than it elsewhere.
    *WIDE.get_or_init(|| is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("vpclmulqdq"))
}

#[cfg(not(target_arch = "x86_64"))]
fn has_wide_folding() -> bool {
    false
}

/// CRC-32C (Castagnoli) of `data`.
#[inline]
pub fn crc32c(data: &[u8]) -> u32 {
    if has_wide_folding() { crc_fast::crc32_iscsi(data) } else { crc32c::crc32c(data) }
}

/// CRC-32C of data that arrives in pieces.
#[derive(Clone, Copy, Default, Debug)]
pub struct Crc32cStream(u32);

impl Crc32cStream {
    /// Adds the next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0 = crc32c::crc32c_append(self.0, piece);
    }

    /// The checksum of all pieces so far.
    pub fn value(self) -> u32 {
        self.0
    }
}

/// CRC-32 (IEEE 802.3, as zlib computes it) of `data`.
#[inline]
pub fn crc32(data: &[u8]) -> u32 {
    crc32fast::hash(data)
}

/// CRC-32 of data that arrives in pieces.
#[derive(Clone, Default, Debug)]
pub struct Crc32Stream(crc32fast::Hasher);

impl Crc32Stream {
    /// Adds the next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The checksum of all pieces.
    pub fn value(self) -> u32 {
        self.0.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn check_values_of_both_polynomials() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    proptest! {
        #[test]
        fn every_path_agrees_for_any_length_and_alignment(data in proptest::collection::vec(any::<u8>(), 0..70_001), start in 0usize..64, cut in any::<prop::sample::Index>()) {
            let data = data.get(start..).unwrap_or_default();
            let whole = crc32c::crc32c(data);
            prop_assert_eq!(crc32c(data), whole);
            let (head, tail) = data.split_at(if data.is_empty() { 0 } else { cut.index(data.len()) });
            let mut stream = Crc32cStream::default();
            stream.update(head);
            stream.update(tail);
            prop_assert_eq!(stream.value(), whole);
        }
    }
}

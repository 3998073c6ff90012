//! Logs to measure on.

use std::io::Write as _;
use std::path::Path;

use segtool::format::crc;

/// Bytes of a batch.
pub(crate) const BATCH: usize = 16 * 1024;

/// A batch of magic 2 with one record that fills it.
pub(crate) fn batch(base_offset: i64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BATCH);
    bytes.extend(base_offset.to_be_bytes());
    bytes.extend(u32::try_from(BATCH - 12).unwrap().to_be_bytes());
    bytes.extend(0i32.to_be_bytes());
    bytes.push(2);
    bytes.extend([0; 4]);
    bytes.extend(0i16.to_be_bytes());
    bytes.extend(0i32.to_be_bytes());
    bytes.extend([1_700_000_000_000i64.to_be_bytes(); 2].concat());
    bytes.extend((-1i64).to_be_bytes());
    bytes.extend((-1i16).to_be_bytes());
    bytes.extend((-1i32).to_be_bytes());
    bytes.extend(1i32.to_be_bytes());
    bytes.resize_with(BATCH, || 0x5a);
    let sum = crc::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// A log of so many batches from an offset on.
pub(crate) fn write_segment(path: &Path, base_offset: i64, batches: usize) {
    let mut file = std::io::BufWriter::with_capacity(BATCH, std::fs::File::create(path).unwrap());
    // The checksum does not cover the offset.
    let mut bytes = batch(base_offset);
    for offset in (base_offset..).take(batches) {
        bytes[..8].copy_from_slice(&offset.to_be_bytes());
        file.write_all(&bytes).unwrap();
    }
    file.flush().unwrap();
}

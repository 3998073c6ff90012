//! Look-ups a second in a segment of 1 GiB, warm, on one core. `cargo bench --bench locate`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs, reason = "a bench may panic")]

use std::io::Write;
use std::time::Instant;

use segtool::format::offset_index::OffsetIndexEntry;
use segtool::format::{Offset, Position, crc};
use segtool::logdir::PartitionDir;
use segtool::ops::locate::{Lookup, Options, Query};

/// Batches of 1 KiB with one record each, an index entry every fifth: what a broker writes with its defaults.
const BATCH: usize = 1024;
const BATCHES: u64 = 1024 * 1024;
const LOOKUPS: u64 = 100_000;

/// A batch of magic 2 with one record: null key, a value that fills it, no headers.
fn batch(base_offset: i64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BATCH);
    bytes.extend(base_offset.to_be_bytes());
    bytes.extend(u32::try_from(BATCH - 12).unwrap().to_be_bytes());
    bytes.extend(0i32.to_be_bytes());
    bytes.push(2);
    bytes.extend([0; 4]);
    bytes.extend(0i16.to_be_bytes());
    bytes.extend(0i32.to_be_bytes());
    bytes.extend([(1_700_000_000_000 + base_offset).to_be_bytes(); 2].concat());
    bytes.extend((-1i64).to_be_bytes());
    bytes.extend((-1i16).to_be_bytes());
    bytes.extend((-1i32).to_be_bytes());
    bytes.extend(1i32.to_be_bytes());
    let body = BATCH - 61 - 2;
    let value = body - 3 - 1 - 2 - 1;
    push_varint(&mut bytes, body);
    bytes.extend([0, 0, 0, 1]);
    push_varint(&mut bytes, value);
    bytes.resize(BATCH, b'v');
    bytes[BATCH - 1] = 0;
    let sum = crc::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// Zigzag, two bytes.
fn push_varint(bytes: &mut Vec<u8>, value: usize) {
    let zigzag = value * 2;
    bytes.extend([u8::try_from(zigzag & 0x7f).unwrap() | 0x80, u8::try_from(zigzag >> 7).unwrap()]);
}

fn main() {
    let root = tempfile::tempdir().unwrap();
    let partition = root.path().join("orders-0");
    std::fs::create_dir(&partition).unwrap();
    let log = std::fs::File::create(partition.join("00000000000000000000.log")).unwrap();
    let mut log = std::io::BufWriter::with_capacity(1 << 20, log);
    let mut index = Vec::new();
    for number in 0..BATCHES {
        let offset = i64::try_from(number).unwrap();
        if number > 0 && number % 5 == 0 {
            let entry = OffsetIndexEntry { offset: Offset(offset), position: Position(number * BATCH as u64) };
            entry.encode(Offset(0), &mut index).unwrap();
        }
        log.write_all(&batch(offset)).unwrap();
    }
    log.flush().unwrap();
    std::fs::write(partition.join("00000000000000000000.index"), index).unwrap();
    let partition = PartitionDir::open(root.path(), "orders-0".as_ref()).unwrap();
    let mut lookup = Lookup::open(&partition, None, &Options::default()).unwrap();
    let mut run = |count: u64| {
        // A walk that visits the whole segment in no order that a cache would like.
        for step in 0..count {
            let offset = Offset(i64::try_from(step.wrapping_mul(2_654_435_761) % BATCHES).unwrap());
            assert_eq!(lookup.answer(Query::Offset(offset)).unwrap().offset, Some(offset));
        }
    };
    run(LOOKUPS / 10);
    let start = Instant::now();
    run(LOOKUPS);
    let rate = LOOKUPS as f64 / start.elapsed().as_secs_f64();
    println!("locate: {rate:.0} look-ups a second on one core, {LOOKUPS} look-ups in 1 GiB");
}

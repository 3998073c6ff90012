//! The batch scan with checksums, and `verify --level crc`, against a bare loop of positioned reads and CRC-32C over the same bytes, by
//! the time of the processors; and the memory that a scan takes on a file of 2 GiB. `cargo bench --bench scan`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench may panic"
)]

mod measure;

use std::os::unix::fs::FileExt;
use std::path::Path;

use rayon::ThreadPool;
use segtool::format::{Offset, crc};
use segtool::logdir::{Input, IoMode, LogScanner, SegmentFile};
use segtool::ops::verify::{Level, Options, inspect};
use segtool::ops::{Hidden, SoundBatches, SoundItem};

use measure::log::{BATCH, batch, write_segment};

/// 512 MiB.
const BATCHES: usize = 32 * 1024;
const READ: usize = 512 * 1024;
const ROUNDS: usize = 9;

fn bare_loop(path: &Path) {
    bare_loop_over(path, 0, std::fs::metadata(path).unwrap().len());
}

fn bare_loop_over(path: &Path, start: u64, end: u64) {
    let file = std::fs::File::open(path).unwrap();
    let mut buffer = vec![0; READ];
    let (mut position, mut sum) = (start, 0u32);
    while position < end {
        file.read_exact_at(&mut buffer, position).unwrap();
        for piece in buffer.chunks(BATCH) {
            sum ^= crc::crc32c(piece);
        }
        position += READ as u64;
    }
    std::hint::black_box(sum);
}

fn scan(path: &Path) {
    let file = SegmentFile::open(path, IoMode::Pread).unwrap();
    let mut scanner = LogScanner::new(&file);
    let mut count = 0;
    while let Ok(Some(batch)) = scanner.next_batch() {
        assert!(batch.crc_matches().unwrap());
        count += 1;
    }
    assert_eq!(count, BATCHES);
}

/// `verify --level crc` of one file.
fn verify(path: &Path, pool: &ThreadPool) {
    let options = Options { level: Level::Crc, ..Options::default() };
    let report = inspect(&[Input::open(path).unwrap()], &|_| true, &options, pool, &Hidden).unwrap();
    assert!(report.is_complete && report.findings.is_empty());
}

/// The bare loop over one file, a stretch for each thread.
fn bare_loop_on(path: &Path, threads: u64) {
    let size = std::fs::metadata(path).unwrap().len() / threads;
    std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..threads).map(|n| scope.spawn(move || bare_loop_over(path, n * size, (n + 1) * size))).collect();
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

fn on_two_threads(work: impl Fn(&Path) + Sync, paths: [&Path; 2]) {
    std::thread::scope(|scope| paths.map(|path| scope.spawn(|| work(path))).map(|worker| worker.join().unwrap()));
}

/// 2 GiB that take no disk: batches at both ends and nothing between them.
fn sparse(path: &Path) {
    let file = std::fs::File::create(path).unwrap();
    file.write_all_at(&batch(0), 0).unwrap();
    file.set_len(2 << 30).unwrap();
    file.write_all_at(&batch(1), (2 << 30) - BATCH as u64).unwrap();
}

fn main() {
    let directory = tempfile::tempdir().unwrap();
    let paths = [directory.path().join("a.log"), directory.path().join("b.log")];
    for path in &paths {
        write_segment(path, 0, BATCHES);
    }
    let bytes = (BATCH * BATCHES) as u64;
    measure::compare(measure::processor, ROUNDS, || scan(&paths[0]), || bare_loop(&paths[0]))
        .print("scan with CRC, 1 thread", bytes);
    let both = [paths[0].as_path(), paths[1].as_path()];
    measure::compare(measure::processor, ROUNDS, || on_two_threads(scan, both), || on_two_threads(bare_loop, both))
        .print("scan with CRC, 2 threads", 2 * bytes);
    let whole = directory.path().join(format!("{:020}.log", 0));
    write_segment(&whole, 0, 2 * BATCHES);
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        measure::compare(measure::processor, ROUNDS, || verify(&whole, &pool), || bare_loop_on(&whole, threads as u64))
            .print(&format!("verify --level crc of 1 GiB, threads: {threads}"), 2 * bytes);
    }
    let hole = directory.path().join("00000000000000000001.log");
    sparse(&hole);
    let before = measure::peak_memory_bytes();
    let file = SegmentFile::open(&hole, IoMode::Pread).unwrap();
    let mut batches = SoundBatches::new(&file, Offset(0));
    let (mut sound, mut damaged) = (0, 0);
    while let Some(item) = batches.next_item() {
        match item {
            SoundItem::Batch(_) => sound += 1,
            SoundItem::Damage(damage) => damaged += damage.size_bytes,
        }
    }
    assert_eq!((sound, damaged), (2, (2 << 30) - 2 * BATCH as u64));
    println!(
        "a sparse file of 2 GiB: peak memory {} KiB before, {} KiB after",
        before / 1024,
        measure::peak_memory_bytes() / 1024
    );
}

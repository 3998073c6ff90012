//! `verify --level crc` on a log dir of 12,000 segments of 100 kB, against one file of as many bytes: what a file costs beside its bytes.
//! `cargo bench --bench verify`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench may panic"
)]

mod measure;

use std::fs;
use std::path::Path;
use std::time::Duration;

use segtool::logdir::Input;
use segtool::ops::Hidden;
use segtool::ops::verify::{Level, Options, inspect};

use measure::log::{BATCH, write_segment};

const PARTITIONS: usize = 4000;
const SEGMENTS: usize = 3;
/// 98,304 bytes.
const BATCHES: usize = 6;
const ROUNDS: usize = 5;
/// Of a partition beside its segments' three each.
const OTHER_FILES: usize = 2;
/// All that a file may cost beside its bytes.
const MOST_MICROSECONDS: f64 = 12.0;

/// A partition as a broker closes it: indexes with one entry, a snapshot at each roll, epochs.
fn write_partition(log_dir: &Path, number: usize) {
    let directory = log_dir.join(format!("orders-{number}"));
    fs::create_dir(&directory).unwrap();
    let name = |offset: usize, extension: &str| directory.join(format!("{offset:020}.{extension}"));
    for base in (0..SEGMENTS).map(|segment| segment * BATCHES) {
        write_segment(&name(base, "log"), i64::try_from(base).unwrap(), BATCHES);
        let last = i32::try_from(BATCHES - 1).unwrap();
        let position = last * i32::try_from(BATCH).unwrap();
        fs::write(name(base, "index"), [last.to_be_bytes(), position.to_be_bytes()].concat()).unwrap();
        let time = [&1_700_000_000_000_i64.to_be_bytes()[..], &0_i32.to_be_bytes()].concat();
        fs::write(name(base, "timeindex"), time).unwrap();
    }
    fs::write(directory.join("leader-epoch-checkpoint"), "0\n1\n0 0\n").unwrap();
    fs::write(directory.join("partition.metadata"), "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAABBA").unwrap();
}

/// What a verification takes on one thread: by the clock, and of the processor.
fn verify(path: &Path) -> (Duration, Duration) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let options = Options { level: Level::Crc, ..Options::default() };
    measure::both(|| {
        let report = inspect(&[Input::open(path).unwrap()], &|_| true, &options, &pool, &Hidden).unwrap();
        assert!(report.is_complete);
    })
}

fn main() {
    let directory = tempfile::tempdir().unwrap();
    let one_file = directory.path().join(format!("{:020}.log", 0));
    write_segment(&one_file, 0, PARTITIONS * SEGMENTS * BATCHES);
    let log_dir = directory.path().join("data");
    fs::create_dir(&log_dir).unwrap();
    (0..PARTITIONS).for_each(|number| write_partition(&log_dir, number));
    let bytes = (PARTITIONS * SEGMENTS * BATCHES * BATCH) as f64;
    let segments = PARTITIONS * SEGMENTS;
    let files = (3 * segments + PARTITIONS * OTHER_FILES) as f64;
    let (_, _) = (verify(&one_file), verify(&log_dir));
    let mut costs = Vec::new();
    for _ in 0..ROUNDS {
        let ((wall_one, one), (wall_many, many)) = (verify(&one_file), verify(&log_dir));
        let rate = |wall: Duration| bytes / wall.as_secs_f64() / 1e9;
        let cost = (many.as_secs_f64() - one.as_secs_f64()) / files * 1e6;
        println!(
            "one file {:.2} GB/s, {segments} segments {:.2} GB/s, {cost:.1} us of the processor for each of {files} files",
            rate(wall_one),
            rate(wall_many)
        );
        costs.push(cost);
    }
    costs.sort_by(f64::total_cmp);
    println!(
        "a file costs {:.1} us beside its bytes (at most {MOST_MICROSECONDS}); peak memory {} MiB",
        costs[ROUNDS / 2],
        measure::peak_memory_bytes() >> 20
    );
}

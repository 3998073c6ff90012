//! `dump` as JSON against the same lines written through serde_json in this process, and `dump --format kafka --print-data-log`.
//! `cargo bench --bench dump`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench may panic"
)]

mod measure;

use std::ops::ControlFlow;
use std::path::Path;

use segtool::format::compression::Codec;
use segtool::logdir::{IoMode, LogScanner, SegmentFile};
use segtool::ops::RecordReader;
use serde::Serialize;

use measure::records::{RECORD, write_log};

const ROUNDS: usize = 7;
const JSON_BYTES: usize = 256 << 20;
const KAFKA_BYTES: usize = 1 << 30;
/// How the reference puts its bytes out.
const BLOCK: usize = 256 * 1024;

/// A record's line, field by field.
#[derive(Serialize)]
struct Line<'a> {
    r#type: &'static str,
    topic: &'static str,
    partition: i32,
    segment_base_offset: i64,
    position: u64,
    offset: i64,
    timestamp_ms: Option<i64>,
    timestamp_type: &'static str,
    leader_epoch: Option<i32>,
    producer_id: Option<i64>,
    producer_epoch: Option<i16>,
    sequence: Option<i32>,
    transactional: bool,
    control: Option<&'static str>,
    compression: &'static str,
    key: Option<&'a str>,
    value: Option<&'a str>,
    headers: [(); 0],
}

/// Writes the lines that `dump` writes, without its summary, and says how many bytes they take.
fn through_serde(path: &Path) -> u64 {
    let file = SegmentFile::open(path, IoMode::Pread).unwrap();
    let mut scanner = LogScanner::new(&file);
    let mut reader = RecordReader::default();
    let (mut out, mut written) = (Vec::new(), 0);
    while let Ok(Some(batch)) = scanner.next_batch() {
        assert!(batch.crc_matches().unwrap());
        let header = *batch.header();
        let mut push = |record: &segtool::format::record::Record<'_>| {
            let line = Line {
                r#type: "record",
                topic: "orders",
                partition: 0,
                segment_base_offset: 0,
                position: header.position.0,
                offset: record.offset.0,
                timestamp_ms: record.timestamp.map(|time| time.0),
                timestamp_type: "create_time",
                leader_epoch: header.leader_epoch.map(|epoch| epoch.0),
                producer_id: header.producer_id.map(|id| id.0),
                producer_epoch: header.producer_epoch.map(|epoch| epoch.0),
                sequence: record.sequence.map(|sequence| sequence.0),
                transactional: header.is_transactional(),
                control: None,
                compression: "none",
                key: record.key.map(|key| std::str::from_utf8(key).unwrap()),
                value: record.value.map(|value| std::str::from_utf8(value).unwrap()),
                headers: [],
            };
            serde_json::to_writer(&mut out, &line).unwrap();
            out.push(b'\n');
            ControlFlow::Continue(())
        };
        reader.read(&batch, &mut push).unwrap();
        if out.len() >= BLOCK {
            written += std::hint::black_box(&out).len() as u64;
            out.clear();
        }
    }
    written + out.len() as u64
}

/// Medians of what a command line takes: by the clock, and of the processors.
fn medians(arguments: &[&str]) -> (f64, f64) {
    measure::run(arguments);
    let (mut passed, mut used): (Vec<_>, Vec<_>) = (0..ROUNDS)
        .map(|_| {
            measure::both(|| {
                measure::run(arguments);
            })
        })
        .unzip();
    passed.sort();
    used.sort();
    (passed[ROUNDS / 2].as_secs_f64(), used[ROUNDS / 2].as_secs_f64())
}

fn main() {
    let root = tempfile::tempdir().unwrap();
    let partition = root.path().join("orders-0");
    std::fs::create_dir(&partition).unwrap();
    let path = partition.join("00000000000000000000.log");
    let name = path.to_str().unwrap();

    let records = write_log(&path, Codec::None, JSON_BYTES);
    let json = ["dump", "--format", "json", "--threads", "1", "--quiet", name];
    let summary = measure::run(&json) - through_serde(&path);
    assert!(summary < 200, "the lines differ: {summary} bytes");
    let comparison = measure::compare(
        measure::processor,
        ROUNDS,
        || {
            measure::run(&json);
        },
        || {
            through_serde(&path);
        },
    );
    let rate = records as f64 / comparison.work.as_secs_f64() / 1e6;
    comparison.print("dump as JSON against serde_json, 1 thread, time of the processor", records * RECORD as u64);
    println!("dump as JSON: {rate:.2} million records a second and core, records of {RECORD} bytes");

    for codec in [Codec::None, Codec::Zstd] {
        let records = write_log(&path, codec, KAFKA_BYTES);
        let (wall, processor) = medians(&["dump", "--format", "kafka", "--print-data-log", "--quiet", "--files", name]);
        println!(
            "dump --format kafka --print-data-log, {codec}: {records} records in {wall:.2} s, {processor:.2} s of the processors"
        );
    }
}

//! Memory stays bounded whatever lies in a log dir: for each command, on a huge sparse log and on batches that lie.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::support::{Sandbox, run_measured};
use crate::synth::{Batch, Codec, Record, record};

const MIB: u64 = 1 << 20;
const THREADS: u64 = 2;
/// What the manual promises.
const MOST_BYTES: u64 = (64 + 8 * THREADS) * MIB;
/// The commands that read, or plan, over a log dir.
const COMMANDS: [&[&str]; 7] = [
    &["dump", "--format", "json", "--payload", "none"],
    &["verify"],
    &["locate", "--offset", "7"],
    &["stat"],
    &["preflight"],
    &["reindex"],
    &["repair"],
];

fn partition(log_dir: &Path, topic: &str) -> File {
    let directory = log_dir.join(format!("{topic}-0"));
    fs::create_dir(&directory).unwrap();
    File::create(directory.join(format!("{:020}.log", 0))).unwrap()
}

/// Runs each command over the log dir, none of which may hold too much; the most that one held.
fn check(log_dir: &Path) -> u64 {
    let threads = THREADS.to_string();
    let mut most = 0;
    for command in COMMANDS {
        let (output, peak) = run_measured([command, &["--threads", &threads, log_dir.to_str().unwrap()]].concat());
        assert!(output.status <= 2, "{output}");
        assert!(peak <= MOST_BYTES, "{command:?}: {} MiB", peak / MIB);
        most = most.max(peak);
    }
    most
}

/// 2 GiB that take no disk: a batch at each end.
#[test]
fn a_sparse_log_of_two_gibibytes() {
    let sandbox = Sandbox::empty();
    let log = partition(sandbox.path(), "sparse");
    let size = 2 << 30;
    log.set_len(size).unwrap();
    let batch = |offset| Batch::at(offset).record(record("key", "value")).build();
    log.write_all_at(&batch(0), 0).unwrap();
    let last = batch(1);
    log.write_all_at(&last, size - last.len() as u64).unwrap();
    check(sandbox.path());
}

/// Batches that inflate a thousandfold, to more than all memory that is allowed.
#[test]
fn batches_that_inflate() {
    let sandbox = Sandbox::empty();
    let value = vec![0; 256 << 10];
    let records = || (0..MOST_BYTES >> 18).map(|_| Record::without_key(&value));
    for (codec, topic) in Codec::ALL.into_iter().skip(1).zip(["gzip", "snappy", "lz4", "zstd"]) {
        partition(sandbox.path(), topic)
            .write_all_at(&Batch::at(0).codec(codec).records(records()).build(), 0)
            .unwrap();
    }
    // A record at least is held, and was seen to be.
    assert!(check(sandbox.path()) > MIB);
}

/// Sizes and counts of which none is true, under checksums that are.
#[test]
fn batches_that_lie() {
    let sandbox = Sandbox::empty();
    let honest = || Batch::at(0).record(record("key", "value"));
    let most = [0xfe, 0xff, 0xff, 0xff, 0x0f];
    // Length, attributes, deltas, no key, no value, and then headers without end.
    let headers = [&[40, 0, 0, 0, 1, 1][..], &most, &[0; 9]].concat();
    for (topic, batch) in [
        ("records", honest().records_count(i32::MAX).last_offset_delta(i32::MAX).build()),
        ("size", Batch { length: Some(i32::MAX), ..honest() }.build()),
        ("headers", Batch { records_count: Some(1), ..Batch::at(0).payload(headers) }.build()),
        ("length", Batch { records_count: Some(1), ..Batch::at(0).payload(most.to_vec()) }.build()),
    ] {
        partition(sandbox.path(), topic).write_all_at(&batch, 0).unwrap();
    }
    for codec in Codec::ALL.into_iter().skip(1) {
        // The compressed form begins as it should and then says anything.
        let mut payload = (codec.compress)(&[0; 100]);
        payload.extend([0x7f; 64]);
        let batch =
            Batch { records_count: Some(i32::MAX), codec: Codec { id: codec.id, ..Codec::NONE }, ..Batch::at(0) };
        let bytes = batch.payload(payload).build();
        partition(sandbox.path(), &format!("codec-{}", codec.id)).write_all_at(&bytes, 0).unwrap();
    }
    check(sandbox.path());
}

//! `compact` keeps to the memory that it is given.

use std::fs;
use std::path::Path;

use crate::support::{Sandbox, run_measured};
use crate::synth::{Batch, record};

const MIB: u64 = 1 << 20;
/// Each with a key of its own or one that came before.
const RECORDS: i64 = 120_000;
const KEYS: i64 = 70_000;
const PER_BATCH: i64 = 40;

/// Writes about 40 MiB of log, and an active segment behind it.
fn write_log(log_dir: &Path) {
    let directory = log_dir.join("orders-0");
    fs::create_dir(&directory).unwrap();
    let value = [b'v'; 300];
    let batch = |base: i64| {
        let key = |number: i64| format!("key-{:08}", (base + number) * 7919 % KEYS);
        Batch::at(base).records((0..PER_BATCH).map(|number| record(key(number), value))).build()
    };
    let log: Vec<u8> = (0..RECORDS / PER_BATCH).flat_map(|number| batch(number * PER_BATCH)).collect();
    fs::write(directory.join(format!("{:020}.log", 0)), log).unwrap();
    let active = Batch::at(RECORDS).record(record("last", "value")).build();
    fs::write(directory.join(format!("{RECORDS:020}.log")), active).unwrap();
}

#[test]
fn less_memory_means_more_rounds_and_not_more_memory() {
    let sandbox = Sandbox::empty();
    write_log(sandbox.path());
    let path = sandbox.path().to_str().unwrap();
    let mut results = Vec::new();
    for (limit, out) in [(41, "little"), (96, "much")] {
        let (limit_text, out) = (format!("{limit}MiB"), sandbox.beside(out));
        let target = out.to_str().unwrap();
        let rounds = ["--until-clean", "--min-cleanable-dirty-ratio", "0"];
        let args = [&["compact", path][..], &rounds, &["--max-memory", &limit_text, "--output", target]].concat();
        let (output, peak) = run_measured(&args);
        let text = output.expect_status(0).text().to_owned();
        assert!((8 * MIB..=limit * MIB).contains(&peak), "{} MiB of {limit}", peak / MIB);
        results
            .push((text.matches("  round ").count(), fs::read(out.join(format!("orders-0/{:020}.log", 0))).unwrap()));
    }
    let [(rounds_with_little, little), (rounds_with_much, much)] = &results[..] else { panic!() };
    assert!(*rounds_with_little > 1 && *rounds_with_much == 1, "{rounds_with_little} {rounds_with_much}");
    assert!(little == much);
}

//! `compact` keeps to the memory that it is given.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::Sandbox;
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

/// Runs the program to its end; the most memory that it was seen to hold, and its output.
fn peak_memory_bytes(args: &[&str]) -> (u64, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_segtool"));
    let mut child =
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0;
    while child.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
        let kib = line.split_whitespace().next().and_then(|kib| kib.parse().ok()).unwrap_or(0);
        peak_kib = peak_kib.max(kib);
        std::thread::sleep(Duration::from_millis(1));
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    (peak_kib * 1024, String::from_utf8(output.stdout).unwrap())
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
        let (peak, text) = peak_memory_bytes(&args);
        assert!((8 * MIB..=limit * MIB).contains(&peak), "{} MiB of {limit}", peak / MIB);
        results
            .push((text.matches("  round ").count(), fs::read(out.join(format!("orders-0/{:020}.log", 0))).unwrap()));
    }
    let [(rounds_with_little, little), (rounds_with_much, much)] = &results[..] else { panic!() };
    assert!(*rounds_with_little > 1 && *rounds_with_much == 1, "{rounds_with_little} {rounds_with_much}");
    assert!(little == much);
}

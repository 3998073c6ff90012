//! Honest ratios: two pieces of work in turn, round after round, in one process; the median of the rounds' ratios counts.

#![allow(dead_code, reason = "each bench takes what it needs")]

pub(crate) mod log;

use std::time::{Duration, Instant};

/// How the rounds of a comparison came out.
#[derive(Debug)]
pub(crate) struct Comparison {
    /// Median time of the work that is measured.
    pub(crate) work: Duration,
    /// Median time of the reference.
    pub(crate) reference: Duration,
    /// Speed of the work as a share of the reference's: the lowest, the median and the highest round.
    pub(crate) ratio: [f64; 3],
}

/// Runs both in turn, once to warm up and then `rounds` times.
pub(crate) fn compare(rounds: usize, mut work: impl FnMut(), mut reference: impl FnMut()) -> Comparison {
    let timed = |f: &mut dyn FnMut()| {
        let start = Instant::now();
        f();
        start.elapsed()
    };
    work();
    reference();
    let mut pairs: Vec<(Duration, Duration)> = (0..rounds).map(|_| (timed(&mut work), timed(&mut reference))).collect();
    let mut ratios: Vec<f64> =
        pairs.iter().map(|(work, reference)| reference.as_secs_f64() / work.as_secs_f64()).collect();
    ratios.sort_by(f64::total_cmp);
    pairs.sort();
    let mut references: Vec<Duration> = pairs.iter().map(|pair| pair.1).collect();
    references.sort();
    let middle = rounds / 2;
    Comparison {
        work: pairs[middle].0,
        reference: references[middle],
        ratio: [ratios[0], ratios[middle], ratios[rounds - 1]],
    }
}

impl Comparison {
    /// Prints a line: rates for `bytes`, and the ratio.
    pub(crate) fn print(&self, name: &str, bytes: u64) {
        let rate = |time: Duration| bytes as f64 / time.as_secs_f64() / 1e9;
        let [low, median, high] = self.ratio;
        println!(
            "{name}: {:.2} GB/s, reference {:.2} GB/s, ratio {median:.2} ({low:.2} to {high:.2})",
            rate(self.work),
            rate(self.reference)
        );
    }
}

/// The most memory that this process has held, in bytes, as the system counts it.
pub(crate) fn peak_memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}

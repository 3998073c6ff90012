//! Honest ratios: two pieces of work in turn, round after round, in one process; the median of the rounds' ratios counts.

#![allow(dead_code, reason = "each bench takes what it needs")]

pub(crate) mod log;
pub(crate) mod records;

use std::ffi::OsString;
use std::io::{self, Write};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use segtool::cli::context::Environment;
use segtool::format::TimestampMs;

/// What time is taken by.
pub(crate) type Clock = fn() -> Duration;

/// The time that passes.
pub(crate) fn wall() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}

/// The time that this process has had of all processors.
pub(crate) fn processor() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

/// The time that something takes.
pub(crate) fn time(clock: Clock, work: &mut dyn FnMut()) -> Duration {
    let start = clock();
    work();
    clock().checked_sub(start).unwrap()
}

/// What something takes: by the clock, and of the processors.
pub(crate) fn both(mut work: impl FnMut()) -> (Duration, Duration) {
    let mut passed = Duration::ZERO;
    let used = time(processor, &mut || passed = time(wall, &mut work));
    (passed, used)
}

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

/// Runs both in turn, by the time of the processors where others may use the machine, once to warm up and then `rounds` times.
pub(crate) fn compare(clock: Clock, rounds: usize, mut work: impl FnMut(), mut reference: impl FnMut()) -> Comparison {
    work();
    reference();
    let mut pairs: Vec<(Duration, Duration)> =
        (0..rounds).map(|_| (time(clock, &mut work), time(clock, &mut reference))).collect();
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

/// Runs a command line of segtool in this process, and says how many bytes it has put out.
pub(crate) fn run(arguments: &[&str]) -> u64 {
    let environment = Environment {
        stdout_is_terminal: false,
        stderr_is_terminal: false,
        terminal_width: None,
        no_color: true,
        now: TimestampMs(1_800_000_000_000),
        random: [1, 2],
    };
    let mut stdout = Counted(0);
    let status = segtool::cli::run(arguments.iter().map(OsString::from), environment, &mut stdout, &mut io::sink());
    assert_eq!(status, segtool::cli::exit::ExitStatus::Done);
    stdout.0
}

/// Counts what is written.
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

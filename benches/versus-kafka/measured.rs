//! What a process costs, and how two series of costs compare.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

/// First argument of a process of this program that measures one other: the system tells the cost of children as a sum.
const MEASURE: &str = "--measure-one-command";

/// What a piece of work has cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// By the clock.
    pub(crate) wall: Duration,
    /// Of all processors.
    pub(crate) processor: Duration,
    /// The most memory held; `None` where it is not that of the work alone.
    pub(crate) memory_bytes: Option<u64>,
}

/// The command that this process is to measure.
pub(crate) fn command_to_measure() -> Option<Vec<OsString>> {
    let mut args = std::env::args_os().skip(1);
    (args.next()? == MEASURE).then(|| args.collect())
}

/// Runs a command and prints what it has cost: nanoseconds by the clock and of processors, bytes of memory.
pub(crate) fn measure(command: &[OsString]) {
    let start = Instant::now();
    let status = Command::new(&command[0]).args(&command[1..]).stdin(Stdio::null()).stdout(Stdio::null()).status();
    let wall = start.elapsed();
    // 1 says that there is something to do or to see.
    assert!(status.as_ref().is_ok_and(|status| matches!(status.code(), Some(0 | 1))), "{command:?}: {status:?}");
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let microseconds = [usage.user_time(), usage.system_time()].map(|time| time.tv_sec() * 1_000_000 + time.tv_usec());
    println!("{} {} {}", wall.as_nanos(), microseconds.iter().sum::<i64>() * 1000, usage.max_rss() * 1024);
}

/// What a command costs in a process of its own.
pub(crate) fn cost_of(program: &Path, args: impl IntoIterator<Item = impl Into<OsString>>) -> Cost {
    let output = Command::new(std::env::current_exe().unwrap())
        .arg(MEASURE)
        .arg(program)
        .args(args.into_iter().map(Into::into))
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success());
    let numbers = numbers(&String::from_utf8(output.stdout).unwrap());
    Cost { memory_bytes: Some(numbers[2]), ..of_numbers(&numbers) }
}

/// The cost that a line of numbers tells: nanoseconds by the clock and of processors.
pub(crate) fn cost_from(line: &str) -> Cost {
    of_numbers(&numbers(line))
}

fn numbers(line: &str) -> Vec<u64> {
    line.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

fn of_numbers(numbers: &[u64]) -> Cost {
    Cost { wall: Duration::from_nanos(numbers[0]), processor: Duration::from_nanos(numbers[1]), memory_bytes: None }
}

/// Costs of the same work, ours and theirs, round by round.
#[derive(Clone, Default, Debug)]
pub(crate) struct Series {
    rounds: Vec<(Cost, Cost)>,
}

impl Series {
    pub(crate) fn add(&mut self, ours: Cost, theirs: Cost) {
        self.rounds.push((ours, theirs));
    }

    /// A line: medians, and the ratios with the lowest and the highest of a round.
    pub(crate) fn print(&self, name: &str) {
        let of = |value: &dyn Fn(&(Cost, Cost)) -> f64| Spread::of(self.rounds.iter().map(value).collect());
        let wall = of(&|(ours, theirs)| theirs.wall.as_secs_f64() / ours.wall.as_secs_f64());
        let processor = of(&|(ours, theirs)| theirs.processor.as_secs_f64() / ours.processor.as_secs_f64());
        let (ours, theirs) = (of(&|(ours, _)| ours.wall.as_secs_f64()), of(&|(_, theirs)| theirs.wall.as_secs_f64()));
        let most = self.rounds.iter().filter_map(|(ours, _)| ours.memory_bytes).max().unwrap_or(0);
        println!(
            "  {name}: {wall:.1} times as fast ({processor:.1} by processor time); segtool {ours:.3} s, Kafka {theirs:.3} s; \
             segtool's memory {} MiB",
            most >> 20
        );
    }
}

/// Median, lowest and highest.
#[derive(Clone, Copy, Debug)]
struct Spread {
    low: f64,
    median: f64,
    high: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self { low: values[0], median: values[values.len() / 2], high: values[values.len() - 1] }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = f.precision().unwrap_or(1);
        write!(f, "{:.digits$} [{:.digits$} to {:.digits$}]", self.median, self.low, self.high)
    }
}

//! The process around a command line: its streams, its environment, its clock, and the one line for a bug.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;

use super::context::Environment;
use super::run;
use crate::format::TimestampMs;

/// The exit status of a bug.
const BUG: u8 = 101;

/// Runs the process's own arguments.
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(
            std::io::stderr(),
            "error: a bug in segtool at {place}: {}; nothing more was done, `segtool undo --unfinished` restores what had begun",
            panic.payload_as_str().unwrap_or("no message")
        );
    }));
    let outcome = std::panic::catch_unwind(|| {
        let mut stderr = std::io::stderr();
        let stdout = std::io::stdout();
        // Results leave in blocks, not line by line.
        match stdout.as_fd().try_clone_to_owned() {
            Ok(descriptor) => run(arguments(), environment(), &mut File::from(descriptor), &mut stderr),
            Err(_) => run(arguments(), environment(), &mut std::io::stdout(), &mut stderr),
        }
    });
    outcome.map_or(ExitCode::from(BUG), ExitCode::from)
}

fn arguments() -> impl Iterator<Item = std::ffi::OsString> {
    std::env::args_os().skip(1)
}

fn environment() -> Environment {
    Environment {
        stdout_is_terminal: std::io::stdout().is_terminal(),
        stderr_is_terminal: std::io::stderr().is_terminal(),
        terminal_width: terminal_size::terminal_size().map(|(width, _)| width.0),
        no_color: std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
        now: TimestampMs(jiff::Timestamp::now().as_millisecond()),
        random: random(),
    }
}

/// The keys of the standard library's hash maps are drawn from the system.
fn random() -> [u64; 2] {
    let state = RandomState::new();
    [state.hash_one(0u8), state.hash_one(1u8)]
}

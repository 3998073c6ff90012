//! The built program, and all that it said.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use segtool::cli::context::Environment;
use segtool::format::TimestampMs;

use super::json;

/// What one run of the program left: both streams and the exit status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandOutput {
    args: Vec<OsString>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    pub(crate) status: i32,
}

/// Runs `segtool` with these arguments, without a terminal and without the environment's settings.
pub(crate) fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> CommandOutput {
    run_in(Path::new(env!("CARGO_MANIFEST_DIR")), args)
}

/// The same in a working directory.
pub(crate) fn run_in<S: AsRef<OsStr>>(directory: &Path, args: impl IntoIterator<Item = S>) -> CommandOutput {
    let args: Vec<OsString> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
    let output = Command::new(env!("CARGO_BIN_EXE_segtool"))
        .args(&args)
        .current_dir(directory)
        .env_clear()
        .envs(["PATH", "TMPDIR", "LLVM_PROFILE_FILE"].iter().filter_map(|key| Some((key, std::env::var_os(key)?))))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let status =
        output.status.code().unwrap_or_else(|| panic!("segtool {args:?} ended by a signal: {}", output.status));
    let stderr = String::from_utf8(output.stderr).expect("stderr is prose");
    CommandOutput { args, stdout: output.stdout, stderr, status }
}

/// The same as [`run`], and the most memory in bytes that the program was seen to hold.
pub(crate) fn run_measured<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> (CommandOutput, u64) {
    let args: Vec<OsString> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
    let (mut stdout, mut stderr) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
    let mut child = Command::new(env!("CARGO_BIN_EXE_segtool"))
        .args(&args)
        .stdin(Stdio::null())
        .stdout(stdout.try_clone().unwrap())
        .stderr(stderr.try_clone().unwrap())
        .spawn()
        .unwrap();
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status.code().unwrap();
        }
        let text = std::fs::read_to_string(&status_file).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
        let kib = line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0);
        peak_kib = peak_kib.max(kib);
        std::thread::sleep(Duration::from_millis(1));
    };
    let whole = |file: &mut File| {
        let mut bytes = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    };
    let stderr = String::from_utf8(whole(&mut stderr)).expect("stderr is prose");
    (CommandOutput { args, stdout: whole(&mut stdout), stderr, status }, peak_kib * 1024)
}

/// Runs the command line inside this process at a given time: much faster than [`run`], and with a clock of the test's own.
/// Relative paths are those of the package.
pub(crate) fn run_at<S: AsRef<OsStr>>(now_ms: i64, args: impl IntoIterator<Item = S>) -> CommandOutput {
    let args: Vec<OsString> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
    let environment = Environment {
        stdout_is_terminal: false,
        stderr_is_terminal: false,
        terminal_width: None,
        no_color: true,
        now: TimestampMs(now_ms),
        random: [1, 2],
    };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let status = segtool::cli::run(args.clone(), environment, &mut stdout, &mut stderr).code();
    let stderr = String::from_utf8(stderr).expect("stderr is prose");
    CommandOutput { args, stdout, stderr, status: status.into() }
}

impl CommandOutput {
    /// Standard output as text.
    #[track_caller]
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap_or_else(|error| panic!("stdout is not UTF-8: {error}\n{self}"))
    }

    /// Standard output as one JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("stdout is not JSON: {error}\n{self}"))
    }

    /// Standard output as JSON Lines.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<serde_json::Value> {
        json::lines(&self.stdout)
    }

    /// The same output, after a check of its exit status.
    #[track_caller]
    pub(crate) fn expect_status(self, status: i32) -> Self {
        assert_eq!(self.status, status, "{self}");
        self
    }

    /// Everything as one text for comparison with a golden file, each `from` replaced by its `to`: paths of a sandbox,
    /// numbers that differ between runs.
    pub(crate) fn normalised(&self, replacements: &[(&str, &str)]) -> String {
        replacements.iter().fold(self.to_string(), |text, (from, to)| text.replace(from, to))
    }
}

impl fmt::Display for CommandOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "$ segtool")?;
        for arg in &self.args {
            write!(f, " {}", arg.to_string_lossy())?;
        }
        writeln!(f, "\n{}", String::from_utf8_lossy(&self.stdout))?;
        if !self.stderr.is_empty() {
            writeln!(f, "[stderr]\n{}", self.stderr)?;
        }
        writeln!(f, "[exit {}]", self.status)
    }
}

#[test]
fn a_run_inside_the_process_says_what_the_process_says() {
    let outside = run(["--help"]).expect_status(0);
    assert_eq!(run_at(0, ["--help"]), outside);
    assert_eq!(run_at(0, ["no-such-command"]), run(["no-such-command"]).expect_status(2));
}

//! What a command is given besides its own flags: the global options, where to write, the time of the run.

use std::io::{self, Write};

use clap::{Args, ValueEnum};

use super::args::parse_size_bytes;
use super::error::CliError;
use super::exit::ExitStatus;
use super::progress::Bar;
use crate::format::TimestampMs;
use crate::logdir::IoMode;
use crate::ops::{Finding, Hidden, Progress, Severity};

/// How results are printed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, ValueEnum)]
pub enum OutputFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON document; `dump` prints JSON Lines.
    Json,
    /// Line by line what Kafka's own dump tool prints (`dump` only).
    Kafka,
    /// Prometheus text (`stat` only).
    Prometheus,
}

/// Whether something that only adds is shown.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, ValueEnum)]
pub enum When {
    /// On a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How bulk scans read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, ValueEnum)]
pub enum IoArg {
    /// Positioned reads.
    #[default]
    Pread,
    /// Memory maps.
    Mmap,
}

/// The lowest severity that makes the exit status 1.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, ValueEnum)]
pub enum FailOn {
    /// Anything.
    Info,
    /// Doubtful things.
    #[default]
    Warning,
    /// Wrong files.
    Error,
    /// Lost or unreadable data.
    Critical,
    /// Nothing.
    Never,
}

impl FailOn {
    /// Whether a finding of this severity makes the exit status 1.
    pub fn includes(self, severity: Severity) -> bool {
        match self {
            Self::Info => true,
            Self::Warning => severity >= Severity::Warning,
            Self::Error => severity >= Severity::Error,
            Self::Critical => severity >= Severity::Critical,
            Self::Never => false,
        }
    }
}

/// Options that every command takes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// How results are printed; `dump` also takes kafka, `stat` also prometheus
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: OutputFormat,
    /// Colour on standard output; NO_COLOR is respected
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: When,
    /// Progress bars on standard error
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub progress: When,
    /// No prose on standard error except errors
    #[arg(long, global = true)]
    pub quiet: bool,
    /// Worker threads; the output is the same for any number [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Upper bound for buffers and maps
    #[arg(long, global = true, value_name = "SIZE", default_value = "256MiB", value_parser = parse_size_bytes)]
    pub max_memory: u64,
    /// How bulk scans read
    #[arg(long, global = true, value_enum, default_value_t, value_name = "HOW")]
    pub io: IoArg,
    /// Lowest severity that makes the exit status 1
    #[arg(long, global = true, value_enum, default_value_t, value_name = "SEVERITY")]
    pub fail_on: FailOn,
}

/// What the process found around it.
#[derive(Clone, Copy, Debug)]
pub struct Environment {
    /// Standard output is a terminal.
    pub stdout_is_terminal: bool,
    /// Standard error is a terminal.
    pub stderr_is_terminal: bool,
    /// Columns of the terminal, if there is one.
    pub terminal_width: Option<u16>,
    /// NO_COLOR is set and not empty.
    pub no_color: bool,
    /// The time of the run.
    pub now: TimestampMs,
    /// Numbers that nobody can foresee.
    pub random: [u64; 2],
}

/// A command's surroundings.
pub struct Context<'a> {
    /// The global options.
    pub globals: GlobalArgs,
    /// What the process found around it.
    pub environment: Environment,
    /// Results go here, and nothing else.
    pub stdout: &'a mut (dyn Write + Send),
    /// Prose goes here.
    pub stderr: &'a mut (dyn Write + Send),
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("globals", &self.globals)
            .field("environment", &self.environment)
            .finish_non_exhaustive()
    }
}

impl Context<'_> {
    /// The time of the run.
    pub fn now(&self) -> TimestampMs {
        self.environment.now
    }

    /// Whether results for people are coloured.
    pub fn is_coloured(&self) -> bool {
        match self.globals.color {
            When::Always => true,
            When::Never => false,
            When::Auto => self.environment.stdout_is_terminal && !self.environment.no_color,
        }
    }

    /// Columns that results for people may take.
    pub fn width(&self) -> u16 {
        self.environment.terminal_width.unwrap_or(100)
    }

    /// How bulk scans read.
    pub fn io_mode(&self) -> IoMode {
        match self.globals.io {
            IoArg::Pread => IoMode::Pread,
            IoArg::Mmap => IoMode::Mmap,
        }
    }

    /// Fails for an output format that this command does not have. Human and JSON are always there.
    pub fn expect_format(&self, more: &[OutputFormat]) -> Result<OutputFormat, CliError> {
        let format = self.globals.format;
        if matches!(format, OutputFormat::Human | OutputFormat::Json) || more.contains(&format) {
            return Ok(format);
        }
        let name = format.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        Err(CliError::usage(format!("this command has no output format {name}")))
    }

    /// Worker threads as asked for.
    pub fn thread_pool(&self) -> Result<rayon::ThreadPool, CliError> {
        rayon::ThreadPoolBuilder::new()
            .num_threads(self.globals.threads.map_or(0, usize::from))
            .build()
            .map_err(|error| CliError::failed(format!("failed to start worker threads: {error}")))
    }

    /// A progress bar, or nothing where none is wanted.
    pub fn progress(&self, heading: &'static str) -> Box<dyn Progress> {
        let wanted = match self.globals.progress {
            When::Always => true,
            When::Never => false,
            When::Auto => self.environment.stderr_is_terminal && !self.globals.quiet,
        };
        match wanted.then(|| Bar::start(heading)).flatten() {
            Some(bar) => Box::new(bar),
            None => Box::new(Hidden),
        }
    }

    /// Tells a person something that is no result. `--quiet` drops it; so does a closed standard error.
    pub fn note(&mut self, text: &str) {
        if !self.globals.quiet {
            let _ = writeln!(self.stderr, "{text}");
        }
    }

    /// Writes results. Errors: a closed pipe, or the disk behind standard output.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stdout.write_all(bytes)
    }

    /// The exit status that these findings give.
    pub fn status_of<'f>(&self, findings: impl IntoIterator<Item = &'f Finding>) -> ExitStatus {
        let fail_on = self.globals.fail_on;
        if findings.into_iter().any(|finding| fail_on.includes(finding.severity)) {
            ExitStatus::Findings
        } else {
            ExitStatus::Done
        }
    }
}

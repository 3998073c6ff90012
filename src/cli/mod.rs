//! Layer 5: arguments to operations to output to exit status. The only layer that knows flags, terminals, clock and environment.
//!
//! Each command has a file: a struct whose docs are its help, and a `run` that calls an operation and prints its report. The whole
//! command line can be run in-process through [`run`].

pub mod args;
pub mod compact;
pub mod config_file;
pub mod context;
pub mod dump;
pub mod dump_kafka;
pub mod error;
pub mod exit;
pub mod inputs;
mod interrupt;
pub mod locate;
pub mod man;
pub mod mutate;
pub mod plan_capacity;
mod plan_inputs;
pub mod preflight;
mod process;
mod progress;
pub mod reindex;
pub mod repair;
pub mod retain;
mod settings;
mod start_settings;
pub mod stat;
pub mod undo;
pub mod verify;

use std::ffi::OsString;
use std::io::Write;

use clap::{Parser, Subcommand};

use context::{Context, Environment, GlobalArgs};
use error::CliError;
use exit::ExitStatus;

pub use process::main;

/// Reads, checks, explains and mends Kafka data directories, offline
///
/// PATH is a log dir, one partition directory, or one file of it. Reading commands never write; `reindex`, `repair`, `compact` and
/// `retain` print their plan and change nothing without --apply or --output.
#[derive(Debug, Parser)]
#[command(name = "segtool", version, max_term_width = 100, disable_help_subcommand = true, after_help = EXIT_STATUS)]
pub struct Cli {
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the program")]
    pub globals: GlobalArgs,
    #[command(subcommand)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the program")]
    pub command: Command,
}

const EXIT_STATUS: &str = "Exit status: 0 done, 1 findings remain, 2 not done or incomplete, 3 refused and nothing touched, \
                           101 a bug in segtool, 130 interrupted.";

/// What segtool can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Keep the latest record of each key, as the broker's log cleaner does
    Compact(Box<compact::CompactArgs>),
    /// Print a shell's completion script
    Completions(man::CompletionsArgs),
    /// Print records, batches and the entries of other files
    Dump(Box<dump::DumpArgs>),
    /// Find an offset or an instant the way a broker does
    Locate(locate::LocateArgs),
    /// Print a man page
    Man(man::ManArgs),
    /// Compute how large a disk has to be, and watch it fill
    PlanCapacity(Box<plan_capacity::PlanCapacityArgs>),
    /// Say what the broker will do to its log dirs at its next start
    Preflight(preflight::PreflightArgs),
    /// Rebuild indexes and producer snapshots from the log
    Reindex(reindex::ReindexArgs),
    /// Save everything that still verifies, or do what the broker would
    Repair(repair::RepairArgs),
    /// Delete segments by time, size and log start, as the broker's retention does
    Retain(retain::RetainArgs),
    /// Show the numbers people monitor, per topic and partition, from the files alone
    Stat(stat::StatArgs),
    /// List applied runs, and take them back
    Undo(undo::UndoArgs),
    /// Check every byte and every relation between files
    Verify(verify::VerifyArgs),
}

/// Runs one command line, without the program's name in front. Output goes to the given writers; nothing else is touched except
/// what the command is there for.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    environment: Environment,
    stdout: &mut (dyn Write + Send),
    stderr: &mut (dyn Write + Send),
) -> ExitStatus {
    let arguments = std::iter::once(OsString::from("segtool")).chain(arguments);
    let cli = match Cli::try_parse_from(dump_kafka::accept_kafka_flags(arguments.collect())) {
        Ok(cli) => cli,
        Err(error) => return refuse_arguments(&error, environment, stdout, stderr),
    };
    let mut context = Context { globals: cli.globals, environment, stdout, stderr };
    let result = dispatch(&cli.command, &mut context).and_then(|status| {
        context.stdout.flush()?;
        Ok(status)
    });
    match result {
        Ok(status) => status,
        Err(error) => {
            report(&error, context.stderr);
            error.status()
        }
    }
}

fn dispatch(command: &Command, context: &mut Context<'_>) -> Result<ExitStatus, CliError> {
    match command {
        Command::Compact(args) => compact::run(args, context),
        Command::Completions(args) => man::run_completions(args, context),
        Command::Dump(args) => dump::run(args, context),
        Command::Locate(args) => locate::run(args, context),
        Command::Man(args) => man::run(args, context),
        Command::PlanCapacity(args) => plan_capacity::run(args, context),
        Command::Reindex(args) => reindex::run(args, context),
        Command::Repair(args) => repair::run(args, context),
        Command::Retain(args) => retain::run(args, context),
        Command::Stat(args) => stat::run(args, context),
        Command::Undo(args) => undo::run(args, context),
        Command::Preflight(args) => preflight::run(args, context),
        Command::Verify(args) => verify::run(args, context),
    }
}

/// What clap says of a command line it does not take; help and version are asked for, and no error.
fn refuse_arguments(
    error: &clap::Error,
    environment: Environment,
    stdout: &mut (dyn Write + Send),
    stderr: &mut (dyn Write + Send),
) -> ExitStatus {
    let text = error.render();
    // Nobody is left to tell of a failed write.
    if error.use_stderr() {
        let coloured = environment.stderr_is_terminal && !environment.no_color;
        let _ = if coloured { write!(stderr, "{}", text.ansi()) } else { write!(stderr, "{text}") };
        return ExitStatus::Incomplete;
    }
    let coloured = environment.stdout_is_terminal && !environment.no_color;
    let _ = if coloured { write!(stdout, "{}", text.ansi()) } else { write!(stdout, "{text}") };
    ExitStatus::Done
}

fn report(error: &CliError, stderr: &mut (dyn Write + Send)) {
    let Some(message) = error.message() else { return };
    let _ = writeln!(stderr, "error: {}", message.text);
    if let Some(hint) = &message.hint {
        let _ = writeln!(stderr, "hint: {hint}");
    }
}

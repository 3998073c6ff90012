//! `segtool preflight`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use clap::{Args, ValueEnum};

use super::context::{Context, OutputFormat};
use super::error::CliError;
use super::exit::ExitStatus;
use super::inputs::PathArgs;
use super::start_settings::{BrokerArgs, start_settings};
use crate::format::Uuid;
use crate::logdir::{Input, LogDir, ReadError, ReadErrorKind};
use crate::ops::broker::load::Shutdown;
use crate::ops::preflight::{BrokenLogDir, Options, Report, Scope, StartInput, inspect};
use crate::render::preflight::{render_human, render_json};

/// Say what the broker will do to its log dirs at its next start
///
/// A start after a crash cuts logs at the first bad batch and deletes every later segment; a bad checkpoint, a stray directory or a
/// padded time index cost whole logs. This says so beforehand, and changes nothing. Give all log dirs of the broker together.
#[derive(Clone, Debug, Args)]
pub struct PreflightArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the command")]
    pub paths: PathArgs,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the command")]
    pub broker: BrokerArgs,
    /// How the broker stopped [default: as the clean-shutdown marker says]
    #[arg(long, value_enum, value_name = "HOW")]
    pub assume: Option<AssumeArg>,
    /// A topic id that the cluster knows; repeatable. With any given, partitions without their id are stray
    #[arg(long = "topic-id", value_name = "TOPIC=ID", value_parser = parse_topic_id)]
    pub topic_ids: Vec<(String, Uuid)>,
}

/// How the broker stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum AssumeArg {
    /// In order.
    Clean,
    /// By a crash.
    Unclean,
}

pub(super) fn parse_topic_id(text: &str) -> Result<(String, Uuid), String> {
    let (topic, id) = text.rsplit_once('=').ok_or("expected TOPIC=ID")?;
    let id = Uuid::parse(id).ok_or("a topic id has 22 characters, such as 4ZJ0kSyfQPuWq0PM7P3g6w")?;
    Ok((topic.to_owned(), id))
}

/// Runs the command.
pub fn run(args: &PreflightArgs, context: &mut Context<'_>) -> Result<ExitStatus, CliError> {
    let format = context.expect_format(&[])?;
    let config = args.broker.read_config(context)?;
    let options = Options {
        version: args.broker.version(),
        assume: args.assume.map(|assume| match assume {
            AssumeArg::Clean => Shutdown::Clean,
            AssumeArg::Unclean => Shutdown::Unclean,
        }),
        settings: start_settings(&config),
        now: args.broker.now(context),
        topic_ids: args.topic_ids.iter().cloned().collect::<BTreeMap<_, _>>(),
        io: context.io_mode(),
    };
    let (inputs, broken) = start_inputs(&args.paths)?;
    let pool = context.thread_pool()?;
    let progress = context.progress("preflight");
    let report = inspect(&inputs, &broken, &options, &pool, &*progress).ok_or(CliError::Interrupted)?;
    drop(progress);
    for error in &report.unreadable {
        context.note(&format!("warning: {error}"));
    }
    let bytes = match format {
        OutputFormat::Json => render_json(&report).map_err(|error| CliError::failed(error.to_string()))?,
        _ => render_human(&report, context.is_coloured()),
    };
    context.write(&bytes)?;
    Ok(status_of(&report, context))
}

fn status_of(report: &Report, context: &Context<'_>) -> ExitStatus {
    let status = context.status_of(report.all_findings());
    if report.unreadable.is_empty() { status } else { status.merge(ExitStatus::Incomplete) }
}

/// The log dirs of the start, and those that are none. A partition directory stands for itself in the log dir around it.
fn start_inputs(paths: &PathArgs) -> Result<(Vec<StartInput>, Vec<BrokenLogDir>), CliError> {
    let mut inputs: Vec<StartInput> = Vec::new();
    let mut broken = Vec::new();
    for path in &paths.paths {
        let is_one_of_many = paths.paths.len() > 1;
        let input = match Input::open(path) {
            Err(error) if is_one_of_many && is_missing(&error) => {
                broken.push(BrokenLogDir::Missing(path.clone()));
                continue;
            }
            Ok(Input::File(_)) if is_one_of_many => {
                broken.push(BrokenLogDir::NotADirectory(path.clone()));
                continue;
            }
            opened => opened?,
        };
        match input {
            Input::LogDir(log_dir) => {
                let is_narrowed = !paths.selection.topic_partition.is_empty();
                let members = || paths.selection.members(&log_dir).map(|member| member.entry.name.clone()).collect();
                let scope = if is_narrowed { Scope::Selected(members()) } else { Scope::Whole };
                inputs.push(StartInput { log_dir, scope });
            }
            Input::Partition(partition) => {
                add_partition(&mut inputs, partition.log_dir(), partition.dir_name().into())?;
            }
            Input::File(file) => {
                let text = format!("{}: a broker starts over log dirs, not over a file", file.path.display());
                return Err(CliError::usage(text));
            }
        }
    }
    Ok((inputs, broken))
}

fn is_missing(error: &ReadError) -> bool {
    matches!(&error.kind, ReadErrorKind::Io(error) if error.kind() == std::io::ErrorKind::NotFound)
}

fn add_partition(inputs: &mut Vec<StartInput>, log_dir: &Path, name: OsString) -> Result<(), CliError> {
    let of_log_dir = inputs.iter_mut().find(|input| input.log_dir.path() == log_dir);
    match of_log_dir.map(|input| &mut input.scope) {
        Some(Scope::Partitions(names) | Scope::Selected(names)) => names.push(name),
        Some(Scope::Whole) => {}
        None => inputs.push(StartInput { log_dir: LogDir::open(log_dir)?, scope: Scope::Partitions(vec![name]) }),
    }
    Ok(())
}

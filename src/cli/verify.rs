//! `segtool verify`.

use std::time::Instant;

use clap::{Args, ValueEnum};

use super::context::{Context, OutputFormat};
use super::error::CliError;
use super::exit::ExitStatus;
use super::inputs::SelectionArgs;
use crate::logdir::Input;
use crate::ops::verify::{Level, Options, Report, VerifyError, inspect};
use crate::ops::{FindingId, RecordLimits, Severity};
use crate::render::catalogue;
use crate::render::verify::{Page, render_human, render_json};

/// Check every byte and every relation between files
///
/// Says what is wrong, where, and what it means. PATH is a log dir, a partition directory or a single file; several log dirs count
/// as those of one broker. Nothing is written.
#[derive(Clone, Debug, Args)]
pub struct VerifyArgs {
    /// Log dirs, partition directories or files
    #[arg(required_unless_present = "explain", value_name = "PATH")]
    pub paths: Vec<std::path::PathBuf>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the command")]
    pub selection: SelectionArgs,
    /// How deep to look: records also decompresses and reads every record, crc is what a broker's recovery checks
    #[arg(long, value_enum, default_value_t, value_name = "LEVEL")]
    pub level: LevelArg,
    /// Print what a finding means, what a broker will do about it and what to do now
    #[arg(long, value_name = "ID", conflicts_with_all = ["paths", "level"])]
    pub explain: Option<String>,
}

/// How deep a verification goes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, ValueEnum)]
pub enum LevelArg {
    /// Framing and checksums.
    Crc,
    /// Decompression and every record too.
    #[default]
    Records,
}

impl From<LevelArg> for Level {
    fn from(level: LevelArg) -> Self {
        match level {
            LevelArg::Crc => Self::Crc,
            LevelArg::Records => Self::Records,
        }
    }
}

/// Verifies what the arguments name.
pub fn run(args: &VerifyArgs, context: &mut Context<'_>) -> Result<ExitStatus, CliError> {
    let format = context.expect_format(&[])?;
    if let Some(id) = &args.explain {
        return explain(id, context);
    }
    let options = Options {
        level: args.level.into(),
        limits: RecordLimits { most: context.globals.max_memory, ..RecordLimits::default() },
        io: context.io_mode(),
        now: Some(context.now()),
        ..Options::default()
    };
    let inputs: Vec<Input> = args.paths.iter().map(|path| Input::open(path)).collect::<Result<_, _>>()?;
    let pool = context.thread_pool()?;
    let progress = context.progress("verifying");
    let started = Instant::now();
    let wanted = |partition: &crate::logdir::TopicPartition| args.selection.includes(partition);
    let report = match inspect(&inputs, &wanted, &options, &pool, &*progress) {
        Ok(report) => report,
        Err(VerifyError::Cancelled) => return Err(CliError::Interrupted),
        Err(VerifyError::Read(error)) => return Err(error.into()),
    };
    drop(progress);
    let bytes = if format == OutputFormat::Json {
        render_json(&report)
    } else {
        // What differs from run to run is for the eye alone.
        let seconds = context.environment.stdout_is_terminal.then(|| started.elapsed().as_secs_f64());
        let page = Page { coloured: context.is_coloured(), level: options.level, seconds, least: Severity::Info };
        render_human(&report, &page).into_bytes()
    };
    context.write(&bytes)?;
    Ok(status(&report, context))
}

fn status(report: &Report, context: &Context<'_>) -> ExitStatus {
    let status = context.status_of(&report.findings);
    if report.is_complete { status } else { status.merge(ExitStatus::Incomplete) }
}

fn explain(name: &str, context: &mut Context<'_>) -> Result<ExitStatus, CliError> {
    let Some(id) = FindingId::from_name(name) else {
        let close = catalogue::closest(name);
        let text = format!("there is no finding {name}");
        return Err(match close {
            Some(close) => {
                let hint = format!("`segtool verify --explain {}`", close.as_str());
                CliError::Usage(super::error::Message::new(text).with_hint(hint))
            }
            None => CliError::usage(text),
        });
    };
    context.write(catalogue::explain(id).as_bytes())?;
    Ok(ExitStatus::Done)
}

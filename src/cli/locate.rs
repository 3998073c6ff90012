//! `segtool locate`.

use clap::Args;

use super::args::{InstantArg, ValueError, parse_instant, parse_offset};
use super::context::{Context, OutputFormat};
use super::error::CliError;
use super::exit::ExitStatus;
use super::inputs::PathArgs;
use crate::format::{LeaderEpoch, Offset};
use crate::logdir::names::{FileKind, FileName};
use crate::logdir::{Input, PartitionDir};
use crate::ops::locate::{Answer, Lookup, Options, Query};
use crate::ops::{Finding, RecordLimits};
use crate::render::locate;

/// Find an offset or an instant the way a broker does
///
/// An offset is the first record at or after it, as a fetch returns it; an instant is the earliest record at or after it, as
/// ListOffsets answers. PATH is a partition, a log file, or a log dir for the answer of each partition.
#[derive(Clone, Debug, Args)]
#[command(group = clap::ArgGroup::new("query").required(true))]
pub struct LocateArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the command")]
    pub paths: PathArgs,
    /// The first record at or after this offset
    #[arg(long, group = "query", value_name = "N", value_parser = parse_offset)]
    pub offset: Option<Offset>,
    /// The earliest record at or after this instant; also earliest, latest, max
    #[arg(long, group = "query", value_name = "INSTANT", value_parser = parse_timestamp)]
    pub timestamp: Option<TimestampArg>,
    /// Where this leader epoch ended, as a follower would be told
    #[arg(long, group = "query", value_name = "E")]
    pub leader_epoch: Option<i32>,
    /// The log start offset [default: that of the checkpoint]
    #[arg(long, value_name = "N", value_parser = parse_offset)]
    pub log_start_offset: Option<Offset>,
    /// Show every step
    #[arg(long)]
    pub explain: bool,
}

/// An instant, or one of the words that ListOffsets knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimestampArg {
    /// An instant.
    Instant(InstantArg),
    /// The log start offset.
    Earliest,
    /// The log end offset.
    Latest,
    /// The largest timestamp.
    Max,
}

fn parse_timestamp(text: &str) -> Result<TimestampArg, ValueError> {
    Ok(match text {
        "earliest" => TimestampArg::Earliest,
        "latest" => TimestampArg::Latest,
        "max" => TimestampArg::Max,
        _ => TimestampArg::Instant(parse_instant(text)?),
    })
}

impl LocateArgs {
    fn query(&self, context: &Context<'_>) -> Query {
        match (self.offset, self.timestamp, self.leader_epoch) {
            (Some(offset), _, _) => Query::Offset(offset),
            (_, Some(TimestampArg::Instant(instant)), _) => Query::Timestamp(instant.resolve(context.now())),
            (_, Some(TimestampArg::Earliest), _) => Query::Earliest,
            (_, Some(TimestampArg::Max), _) => Query::MaxTimestamp,
            (_, _, Some(epoch)) => Query::LeaderEpoch(LeaderEpoch(epoch)),
            (_, Some(TimestampArg::Latest) | None, None) => Query::Latest,
        }
    }
}

/// Locates what the arguments name.
pub fn run(args: &LocateArgs, context: &mut Context<'_>) -> Result<ExitStatus, CliError> {
    let format = context.expect_format(&[])?;
    let query = args.query(context);
    let options = Options {
        log_start_offset: args.log_start_offset,
        limits: RecordLimits { most: context.globals.max_memory, ..RecordLimits::default() },
        io: context.io_mode(),
    };
    let inputs = args.paths.open()?;
    let mut answers = Vec::new();
    for input in &inputs {
        match input {
            Input::File(file) => {
                let FileName::Segment { base, kind: FileKind::Log, .. } = file.name else {
                    return Err(CliError::usage(format!("{}: expected a log file", file.path.display())));
                };
                answers.push(Lookup::open(&around(file.path.as_path())?, Some(base), &options)?.answer(query)?);
            }
            Input::Partition(_) | Input::LogDir(_) => {
                for partition in args.paths.live_partitions(input)? {
                    answers.push(Lookup::open(&partition, None, &options)?.answer(query)?);
                }
            }
        }
    }
    print(
        args,
        context,
        format,
        (query, &answers),
        matches!(inputs.as_slice(), [Input::Partition(_) | Input::File(_)]),
    )?;
    let findings: Vec<&Finding> = answers.iter().flat_map(|answer| &answer.findings).collect();
    let status = context.status_of(findings);
    Ok(if answers.iter().any(Answer::is_found) { status } else { status.merge(ExitStatus::Findings) })
}

/// The partition directory that a file lies in.
fn around(file: &std::path::Path) -> Result<PartitionDir, CliError> {
    let absolute = std::path::absolute(file)?;
    let Some((directory, name)) = absolute.parent().and_then(|dir| Some((dir.parent()?, dir.file_name()?))) else {
        return Err(CliError::usage(format!("{}: expected a file in a partition directory", file.display())));
    };
    Ok(PartitionDir::open(directory, name)?)
}

fn print(
    args: &LocateArgs,
    context: &mut Context<'_>,
    format: OutputFormat,
    (query, answers): (Query, &[Answer]),
    is_single: bool,
) -> Result<(), CliError> {
    let mut text = String::new();
    match (format, answers) {
        (OutputFormat::Json, [answer]) if is_single => {
            text.push_str(&locate::json(answer).map_err(std::io::Error::from)?);
        }
        (OutputFormat::Json, _) => {
            text.push_str(&locate::json_results(query, answers).map_err(std::io::Error::from)?);
        }
        _ if args.explain => answers.iter().for_each(|answer| text.push_str(&locate::explanation(answer))),
        _ => {
            let lines: Vec<String> = answers.iter().map(locate::line).collect();
            text.push_str(&lines.join("\n"));
        }
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    context.write(text.as_bytes())?;
    if format == OutputFormat::Human && !args.explain {
        for finding in answers.iter().flat_map(|answer| &answer.findings) {
            let path = crate::render::untrusted::untrusted_path(&finding.location.path);
            context.note(&format!(
                "warning: {path}: {}: {}; it was not used",
                finding.id.as_str(),
                finding.id.meaning()
            ));
        }
    }
    Ok(())
}

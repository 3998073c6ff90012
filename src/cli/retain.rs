//! `segtool retain`.

use clap::Args;

use super::args::{parse_duration_ms, parse_offset, parse_size_or_unlimited};
use super::context::{Context, OutputFormat};
use super::error::CliError;
use super::exit::ExitStatus;
use super::inputs::PathArgs;
use super::mutate::{MutateArgs, Request, check_written};
use super::plan_inputs::{MetadataLog, plan_inputs};
use super::start_settings::{BrokerArgs, start_settings};
use crate::format::Offset;
use crate::ops::preflight::Options;
use crate::ops::retain::{Refusal, RetainError, RetainOptions, RetainPlan, plan};
use crate::render::retain::{Detail, render_human, render_json};
use crate::store::Prepared;

/// Delete segments by time, size and log start, as the broker's retention does
///
/// Prints what would be deleted, and changes nothing without --apply or --output. Retention goes from the oldest segment on and ends
/// at the first that no rule removes; where all segments go, the log ends in a new, empty one.
#[derive(Clone, Debug, Args)]
pub struct RetainArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the command")]
    pub paths: PathArgs,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the command")]
    pub broker: BrokerArgs,
    /// How long records are kept; -1 for ever [default: --config, else 7d]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = parse_duration_ms)]
    pub retention_ms: Option<i64>,
    /// How large a log may be; -1 for any size [default: --config, else -1]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = parse_size_or_unlimited)]
    pub retention_bytes: Option<i64>,
    /// Where the logs start [default: log-start-offset-checkpoint]
    #[arg(long, value_name = "N", value_parser = parse_offset)]
    pub log_start_offset: Option<Offset>,
    /// What all replicas have; nothing beyond it goes [default: replication-offset-checkpoint, else the log end]
    #[arg(long, value_name = "N", value_parser = parse_offset)]
    pub high_watermark: Option<Offset>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the command")]
    pub mutate: MutateArgs,
    /// Say of each segment which rule keeps or removes it, and when it can go
    #[arg(long)]
    pub explain: bool,
}

/// Runs the command.
pub fn run(args: &RetainArgs, context: &mut Context<'_>) -> Result<ExitStatus, CliError> {
    let format = context.expect_format(&[])?;
    let mut config = args.broker.read_config(context)?;
    config.retention_ms = args.retention_ms.or(config.retention_ms);
    config.retention_bytes = args.retention_bytes.or(config.retention_bytes);
    let options = Options {
        version: args.broker.version(),
        settings: start_settings(&config),
        io: context.io_mode(),
        ..Options::at(args.broker.now(context))
    };
    let retain = RetainOptions { log_start: args.log_start_offset, high_watermark: args.high_watermark };
    let inputs = plan_inputs(&args.paths, MetadataLog::LeftOut)?;
    let request = Request {
        command: "retain",
        options: format!("{options:?} {retain:?}"),
        now_ms: args.broker.now(context).0,
        log_dirs: inputs.iter().map(|input| (input.log_dir.path().to_path_buf(), input.partitions.clone())).collect(),
    };
    let make = |context: &mut Context<'_>| {
        let pool = context.thread_pool()?;
        let progress = context.progress("retain");
        plan(&inputs, &options, &retain, &pool, &*progress).map_err(refused)
    };
    let check = |planned: &RetainPlan, prepared: &Prepared| check_written(&planned.plan, prepared);
    let (planned, carried) = args.mutate.run(&request, context, make, |planned| &planned.plan, |_, _| Ok(()), check)?;
    if format == OutputFormat::Json {
        let document = render_json(&planned, &carried.head("retain"));
        context.write(&document.map_err(|error| CliError::failed(error.to_string()))?)?;
        return Ok(ExitStatus::Done);
    }
    context.write(&render_human(&planned, if args.explain { Detail::Explained } else { Detail::Steps }))?;
    context.write(carried.sentence().as_bytes())?;
    Ok(ExitStatus::Done)
}

fn refused(error: RetainError) -> CliError {
    const HINT: &str = "run `segtool repair` to see what a broker would do here";
    match error {
        RetainError::Read(error) => error.into(),
        RetainError::Cancelled => CliError::Interrupted,
        RetainError::Refused(Refusal::Leftovers { topic_partition, file }) => {
            let file = file.to_string_lossy().into_owned();
            CliError::refused(format!("{topic_partition}: {file} is left of an interrupted swap or cleaning"), HINT)
        }
        RetainError::Refused(Refusal::Unloadable { topic_partition, failure }) => {
            let file = failure.file.to_string_lossy().into_owned();
            let text = format!("{topic_partition}: a broker cannot load the log: {file}: {}", failure.reason.meaning());
            CliError::refused(text, HINT)
        }
    }
}

//! `segtool reindex`.

use clap::Args;

use super::args::{parse_duration_ms, parse_size_bytes};
use super::context::{Context, OutputFormat};
use super::error::CliError;
use super::exit::ExitStatus;
use super::inputs::PathArgs;
use super::mutate::{MutateArgs, Request, check_written};
use super::plan_inputs::{MetadataLog, plan_inputs};
use super::start_settings::{BrokerArgs, start_settings};
use crate::ops::plan::Plan;
use crate::ops::reindex::{DEFAULT_PART_BYTES, Extent, Leftovers, ReindexError, ReindexOptions, plan};
use crate::render::reindex::{render_human, render_json};

/// Rebuild indexes and producer snapshots from the log
///
/// Makes `.index`, `.timeindex`, `.txnindex` and `.snapshot` files as a broker's recovery does: those that are missing or wrong, or
/// all of them. The log itself is only read, and nothing is made of what lies behind damage in it.
#[derive(Clone, Debug, Args)]
pub struct ReindexArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the command")]
    pub paths: PathArgs,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the command")]
    pub broker: BrokerArgs,
    /// Make every index anew, not only those that are missing or wrong
    #[arg(long)]
    pub all: bool,
    /// Make every producer snapshot anew
    #[arg(long)]
    pub snapshots: bool,
    /// Bytes of log between two index entries [default: --config, else 4096]
    #[arg(long, value_name = "SIZE", value_parser = parse_size_bytes)]
    pub index_interval_bytes: Option<u64>,
    /// The most that an index may take [default: --config, else 10MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size_bytes)]
    pub segment_index_bytes: Option<u64>,
    /// For how long a producer is remembered that writes nothing [default: --config, else as the version does]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_ms)]
    pub producer_id_expiration_ms: Option<i64>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the command")]
    pub mutate: MutateArgs,
}

/// Runs the command.
pub fn run(args: &ReindexArgs, context: &mut Context<'_>) -> Result<ExitStatus, CliError> {
    let format = context.expect_format(&[])?;
    let options = options(args, context)?;
    let inputs = plan_inputs(&args.paths, MetadataLog::Included)?;
    let request = Request {
        command: "reindex",
        options: format!("{options:?}"),
        now_ms: options.now.0,
        log_dirs: inputs.iter().map(|input| (input.log_dir.path().to_path_buf(), input.partitions.clone())).collect(),
    };
    let make = |context: &mut Context<'_>| {
        let pool = context.thread_pool()?;
        let progress = context.progress("reindex");
        plan(&inputs, &options, &pool, &*progress).map_err(refused)
    };
    let (planned, carried) =
        args.mutate.run(&request, context, make, |planned| planned, |_, _| Ok(()), check_written)?;
    let bytes = match format {
        OutputFormat::Json => {
            render_json(&planned, &carried.head("reindex")).map_err(|error| CliError::failed(error.to_string()))?
        }
        _ => render_human(&planned),
    };
    context.write(&bytes)?;
    let is_left = !args.mutate.writes() && planned.partitions.iter().any(|partition| !partition.changes().is_empty());
    let status = status(&planned, context);
    Ok(if is_left { status.merge(ExitStatus::Findings) } else { status })
}

fn options(args: &ReindexArgs, context: &mut Context<'_>) -> Result<ReindexOptions, CliError> {
    let mut config = args.broker.read_config(context)?;
    let bytes = |value: Option<u64>| value.map(|value| i64::try_from(value).unwrap_or(i64::MAX));
    config.index_interval_bytes = bytes(args.index_interval_bytes).or(config.index_interval_bytes);
    config.segment_index_bytes = bytes(args.segment_index_bytes).or(config.segment_index_bytes);
    config.producer_id_expiration_ms = args.producer_id_expiration_ms.or(config.producer_id_expiration_ms);
    let settings = start_settings(&config);
    let extent = |all: bool| if all { Extent::All } else { Extent::Needed };
    Ok(ReindexOptions {
        version: args.broker.version(),
        indexes: extent(args.all),
        snapshots: extent(args.snapshots),
        index: settings.index,
        producer_expiration_ms: settings.producer_expiration_ms,
        now: args.broker.now(context),
        io: context.io_mode(),
        part_bytes: DEFAULT_PART_BYTES,
    })
}

/// What is still wrong, and whether everything was looked at.
fn status(plan: &Plan, context: &Context<'_>) -> ExitStatus {
    let status = context.status_of(&plan.findings);
    if plan.is_complete { status } else { status.merge(ExitStatus::Incomplete) }
}

fn refused(error: ReindexError) -> CliError {
    match error {
        ReindexError::Read(error) => error.into(),
        ReindexError::Cancelled => CliError::Interrupted,
        ReindexError::Refused(Leftovers { topic_partition, file }) => {
            let file = file.to_string_lossy().into_owned();
            let text = format!("{topic_partition}: {file} is left of an interrupted swap or cleaning");
            CliError::refused(text, "run `segtool repair` to see what a broker would do here")
        }
    }
}

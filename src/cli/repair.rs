//! `segtool repair`.

use clap::{Args, ValueEnum};

use super::context::{Context, OutputFormat};
use super::error::CliError;
use super::exit::ExitStatus;
use super::inputs::PathArgs;
use super::mutate::{MutateArgs, Request};
use super::plan_inputs::{MetadataLog, plan_inputs};
use super::preflight::{AssumeArg, parse_topic_id};
use super::start_settings::{BrokerArgs, start_settings};
use crate::format::Uuid;
use crate::ops::Hidden;
use crate::ops::broker::load::Shutdown;
use crate::ops::preflight::Options;
use crate::ops::repair::{DeletedFiles, Mode, RepairError, RepairOptions, RepairPlan, plan, recheck};
use crate::render::repair::{render_human, render_json};
use crate::store::Prepared;

/// Gaps of a partition that are told where consent is asked for; the plan has them all.
const MOST_GAPS_TOLD: usize = 5;

/// Save everything that still verifies, or do what the broker would
///
/// Prints what would be kept and what would be lost, and changes nothing without --apply or --output. Every batch that verifies is
/// kept, wherever it lies; every other byte is put aside as it is. Indexes, snapshots and checkpoints are made to fit, so that the
/// next start of a broker keeps everything.
#[derive(Clone, Debug, Args)]
pub struct RepairArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the command")]
    pub paths: PathArgs,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the command")]
    pub broker: BrokerArgs,
    /// What to make
    #[arg(long, value_enum, value_name = "MODE", default_value = "salvage")]
    pub mode: ModeArg,
    /// Go on though bytes or records are lost
    #[arg(long)]
    pub accept_loss: bool,
    /// Use files marked for deletion for more than closing holes
    #[arg(long)]
    pub include_deleted: bool,
    /// How the broker stopped [default: as the clean-shutdown marker says]
    #[arg(long, value_enum, value_name = "HOW")]
    pub assume: Option<AssumeArg>,
    /// A topic's id, for partitions that have lost or mixed up theirs; repeatable
    #[arg(long = "topic-id", value_name = "TOPIC=ID", value_parser = parse_topic_id)]
    pub topic_ids: Vec<(String, Uuid)>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the command")]
    pub mutate: MutateArgs,
}

/// What to make.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ModeArg {
    /// A directory with every batch that verifies.
    Salvage,
    /// The directory that a broker's recovery leaves.
    LikeBroker,
}

/// Runs the command.
pub fn run(args: &RepairArgs, context: &mut Context<'_>) -> Result<ExitStatus, CliError> {
    let format = context.expect_format(&[])?;
    let options = options(args, context)?;
    let inputs = plan_inputs(&args.paths, MetadataLog::Included)?;
    let request = Request {
        command: "repair",
        options: format!("{options:?}"),
        now_ms: options.start.now.0,
        log_dirs: inputs.iter().map(|input| (input.log_dir.path().to_path_buf(), input.partitions.clone())).collect(),
    };
    let pool = context.thread_pool()?;
    let make = |context: &mut Context<'_>| {
        let progress = context.progress("repair");
        let planned = plan(&inputs, &options, &pool, &*progress).map_err(refused)?;
        if args.mutate.writes() {
            check_result(&planned)?;
        }
        Ok(planned)
    };
    let consent = |planned: &RepairPlan, context: &mut Context<'_>| check_consent(args, planned, context);
    let check = |planned: &RepairPlan, prepared: &Prepared| {
        recheck(planned, prepared, &options, &pool, &Hidden).map_err(|error| error.to_string())
    };
    let (planned, carried) = args.mutate.run(&request, context, make, |planned| &planned.plan, consent, check)?;
    let bytes = match format {
        OutputFormat::Json => {
            render_json(&planned, &carried.head("repair")).map_err(|error| CliError::failed(error.to_string()))?
        }
        _ => render_human(&planned, &carried.head("repair")),
    };
    context.write(&bytes)?;
    if !planned.plan.is_complete {
        return Ok(ExitStatus::Incomplete);
    }
    if !args.mutate.writes() && planned.changes_anything() {
        return Ok(ExitStatus::Findings);
    }
    Ok(context.status_of(&planned.remaining))
}

fn options(args: &RepairArgs, context: &mut Context<'_>) -> Result<RepairOptions, CliError> {
    let config = args.broker.read_config(context)?;
    Ok(RepairOptions {
        mode: match args.mode {
            ModeArg::Salvage => Mode::Salvage,
            ModeArg::LikeBroker => Mode::LikeBroker,
        },
        deleted: if args.include_deleted { DeletedFiles::Include } else { DeletedFiles::CloseHoles },
        start: Options {
            version: args.broker.version(),
            assume: args.assume.map(|assume| match assume {
                AssumeArg::Clean => Shutdown::Clean,
                AssumeArg::Unclean => Shutdown::Unclean,
            }),
            settings: start_settings(&config),
            topic_ids: args.topic_ids.iter().cloned().collect(),
            io: context.io_mode(),
            ..Options::at(args.broker.now(context))
        },
    })
}

fn refused(error: RepairError) -> CliError {
    match error {
        RepairError::Read(error) => error.into(),
        RepairError::Cancelled => CliError::Interrupted,
        RepairError::StartFails { path, reason } => {
            let text = format!("{}: a broker does not come up over this: {}", path.display(), reason.meaning());
            CliError::refused(text, "`--mode salvage` makes a directory that it starts over, where that is possible")
        }
    }
}

/// A result that the next start would harm is a bug of ours, or beyond repair: nothing is written. What a broker itself leaves may be
/// such that its next start takes more away; who asks for it gets it, and is told.
fn check_result(planned: &RepairPlan) -> Result<(), CliError> {
    if planned.mode == Mode::LikeBroker {
        return Ok(());
    }
    let harmed = planned.plan.partitions.iter().zip(&planned.repairs).find(|(_, repair)| !repair.start.loses_nothing());
    match harmed {
        None => Ok(()),
        Some((partition, _)) => {
            let name = partition.before.topic_partition();
            let text = format!("{name}: the next start of a broker would still cut the result");
            Err(CliError::refused(text, "run without --apply and --output to see why"))
        }
    }
}

/// Data goes only with the user's word for it, and after it was said what goes.
fn check_consent(args: &RepairArgs, planned: &RepairPlan, context: &mut Context<'_>) -> Result<(), CliError> {
    if !planned.is_lossy() {
        return Ok(());
    }
    let ranges = planned.repairs.iter().flat_map(|repair| &repair.set_aside).filter(|range| !range.is_spare);
    let bytes = ranges.map(|range| range.size_bytes).fold(0, u64::saturating_add);
    let records = planned.records_lost();
    let mut text = format!("{bytes} bytes of log files, {records} records that can be read among them, cannot be kept");
    for partition in &planned.plan.partitions {
        for (first, last) in partition.gaps.iter().take(MOST_GAPS_TOLD) {
            text.push_str(&format!("; {} loses offsets {first} to {last}", partition.before.topic_partition()));
        }
        if partition.gaps.len() > MOST_GAPS_TOLD {
            text.push_str(" and others");
        }
    }
    if args.accept_loss {
        context.note(&text);
        return Ok(());
    }
    Err(CliError::refused(text, "look at the plan without --apply; --accept-loss goes on"))
}

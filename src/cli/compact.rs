//! `segtool compact`.

use std::ffi::OsString;
use std::sync::Arc;

use clap::Args;

use super::args::{parse_duration_ms, parse_offset, parse_ratio, parse_size_bytes};
use super::config_file::BrokerConfig;
use super::context::{Context, OutputFormat};
use super::error::{CliError, Message};
use super::exit::ExitStatus;
use super::inputs::PathArgs;
use super::mutate::{MutateArgs, Request, check_written};
use super::start_settings::{BrokerArgs, start_settings};
use crate::format::Offset;
use crate::logdir::names::DirName;
use crate::logdir::{Input, LogDir};
use crate::ops::broker::Rules;
use crate::ops::compact::{
    CleanerSettings, CompactError, CompactInput, CompactOptions, CompactPlan, Coverage, DEFAULT_PART_BYTES, DigestKey,
    Purpose, RefusalReason, Rounds, UnkeyedRecords, plan, recheck,
};
use crate::render::compact::{Detail, refusal_text, render_human, render_json};
use crate::store::{Place, Prepared};

/// Memory for reading, decompressing and compressing, beside the offset map.
const WORK_BYTES: u64 = 32 << 20;
/// The least that verdicts on batches get of what is left.
const LEAST_VERDICT_BYTES: u64 = 8 << 20;

/// Keep the latest record of each key, as the broker's log cleaner does
///
/// Prints what would be done, and changes nothing without --apply or --output. One round like the broker's: logs are cleaned that are dirty enough, up to the
/// active segment, the last stable offset and the compaction lag; tombstones and transaction markers stay for their time.
#[derive(Clone, Debug, Args)]
pub struct CompactArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the command")]
    pub paths: PathArgs,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the command")]
    pub broker: BrokerArgs,
    /// Clean logs of which more than this part is dirty [default: --config, else 0.5]
    #[arg(long, value_name = "RATIO", value_parser = parse_ratio)]
    pub min_cleanable_dirty_ratio: Option<f64>,
    /// How long tombstones and markers stay after a first round has met them [default: --config, else 1d]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_ms)]
    pub delete_retention_ms: Option<i64>,
    /// Leave segments alone whose records are younger [default: --config, else 0]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_ms)]
    pub min_compaction_lag_ms: Option<i64>,
    /// Clean logs, however clean, whose dirty records are older [default: --config, else never]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_ms)]
    pub max_compaction_lag_ms: Option<i64>,
    /// The most that segments cleaned into one have together [default: --config, else 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size_bytes)]
    pub segment_bytes: Option<u64>,
    /// The topic's largest message; shapes the indexes of brokers up to 3.8 [default: --config, else 1048588]
    #[arg(long, value_name = "SIZE", value_parser = parse_size_bytes)]
    pub max_message_bytes: Option<u64>,
    /// Where the logs are dirty from [default: cleaner-offset-checkpoint, else the log start]
    #[arg(long, value_name = "N", value_parser = parse_offset)]
    pub first_dirty_offset: Option<Offset>,
    /// What all replicas have; nothing beyond it is cleaned [default: replication-offset-checkpoint, else the log end]
    #[arg(long, value_name = "N", value_parser = parse_offset)]
    pub high_watermark: Option<Offset>,
    /// Where the logs start [default: log-start-offset-checkpoint]
    #[arg(long, value_name = "N", value_parser = parse_offset)]
    pub log_start_offset: Option<Offset>,
    /// How long idle producers are remembered [default: --config, else 1d, 7d up to 3.3]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_ms)]
    pub producer_id_expiration_ms: Option<i64>,
    /// Memory of the offset map; less of it means more rounds [default: --config, else 128MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size_bytes)]
    pub log_cleaner_dedupe_buffer_size: Option<u64>,
    /// How full the offset map may become [default: --config, else 0.9]
    #[arg(long, value_name = "RATIO", value_parser = parse_ratio)]
    pub log_cleaner_io_buffer_load_factor: Option<f64>,
    /// Drop records without a key, as a broker does
    #[arg(long)]
    pub drop_unkeyed: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the command")]
    pub mutate: MutateArgs,
    /// Make rounds until nothing is left to clean
    #[arg(long)]
    pub until_clean: bool,
    /// Say of each segment what stays and goes and why, what holds cleaning back, and when tombstones may go
    #[arg(long)]
    pub explain: bool,
}

/// Runs the command.
pub fn run(args: &CompactArgs, context: &mut Context<'_>) -> Result<ExitStatus, CliError> {
    let format = context.expect_format(&[])?;
    let options = options(args, context)?;
    let inputs = inputs(&args.paths)?;
    let request = request(&inputs, &options);
    let make = |context: &mut Context<'_>| {
        let progress = context.progress("compact");
        let work = || plan(&inputs, &options, &*progress);
        let planned = options.pool.as_ref().map_or_else(work, |pool| pool.install(work)).map_err(failed)?;
        if let Some(error) = refused(&planned).filter(|_| args.mutate.writes()) {
            return Err(error);
        }
        Ok(planned)
    };
    let check = |planned: &CompactPlan, prepared: &Prepared| {
        let work = || check_prepared(planned, prepared);
        options.pool.as_ref().map_or_else(work, |pool| pool.install(work))
    };
    let (planned, carried) = args.mutate.run(&request, context, make, |planned| &planned.plan, |_, _| Ok(()), check)?;
    tell_of_memory(&planned, &options, context);
    let bytes = if format == OutputFormat::Json {
        render_json(&planned, &carried.head("compact")).map_err(|error| CliError::failed(error.to_string()))?
    } else {
        let mut text = render_human(&planned, if args.explain { Detail::Explained } else { Detail::Steps });
        text.extend_from_slice(carried.sentence().as_bytes());
        text
    };
    context.write(&bytes)?;
    for refusal in &planned.refusals {
        let (text, hint) = refusal_text(refusal);
        context.note(&format!("warning: {text}; {hint}"));
    }
    let stopped = planned.refusals.iter().any(|refusal| matches!(refusal.reason, RefusalReason::Stopped(_)));
    let status = if stopped { ExitStatus::Refused } else { ExitStatus::Done };
    Ok(status.merge(context.status_of(&planned.plan.findings)))
}

fn request(inputs: &[CompactInput], options: &CompactOptions) -> Request {
    // The digests' key is drawn anew in every run and changes nothing, and so does the number of threads.
    let fixed = CompactOptions { digest_key: DigestKey([0, 0]), pool: None, ..options.clone() };
    Request {
        command: "compact",
        options: format!("{fixed:?}"),
        now_ms: options.now.0,
        log_dirs: inputs.iter().map(|input| (input.log_dir.path().to_path_buf(), input.partitions.clone())).collect(),
    }
}

/// The new logs must hold what the plan has counted.
fn check_prepared(planned: &CompactPlan, prepared: &Prepared) -> Result<(), String> {
    check_written(&planned.plan, prepared)?;
    let Place::Partition(directory) = &prepared.place else { return Ok(()) };
    let files = prepared.files.iter().map(|(name, path)| (name.as_os_str(), path.as_path()));
    recheck(planned, directory.as_os_str(), files).map_err(|error| error.to_string())
}

/// The options of the command line, of `--config`, and Kafka's defaults, in this order.
fn options(args: &CompactArgs, context: &mut Context<'_>) -> Result<CompactOptions, CliError> {
    let config = args.broker.read_config(context)?;
    if config.cleanup_policy.is_some_and(|policy| !policy.compact) {
        context.note("warning: cleanup.policy in --config does not name compact; a broker would not clean these logs");
    }
    let rules = Rules::of(args.broker.version());
    let settings = settings(args, &config, context.globals.max_memory);
    let start = start_settings(&config);
    let rest = context.globals.max_memory.saturating_sub(settings.map_bytes.saturating_add(WORK_BYTES));
    let verdicts = (rest / 4).max(LEAST_VERDICT_BYTES);
    let expiration = args.producer_id_expiration_ms.or(config.producer_id_expiration_ms);
    Ok(CompactOptions {
        now: args.broker.now(context),
        producer_expiration_ms: expiration.unwrap_or(rules.producer_expiration_ms),
        record_format: start.record_format,
        first_dirty_offset: args.first_dirty_offset,
        high_watermark: args.high_watermark,
        log_start_offset: args.log_start_offset,
        unkeyed: if args.drop_unkeyed { UnkeyedRecords::Drop } else { UnkeyedRecords::Refuse },
        rounds: if args.until_clean { Rounds::UntilClean } else { Rounds::One },
        purpose: if args.explain { Purpose::Explain } else { Purpose::Clean },
        digest_key: DigestKey(context.environment.random),
        most_verdict_bytes: verdicts,
        most_made_bytes: rest.saturating_sub(verdicts),
        io: context.io_mode(),
        part_bytes: DEFAULT_PART_BYTES,
        pool: Some(Arc::new(context.thread_pool()?)),
        settings,
        rules,
    })
}

fn settings(args: &CompactArgs, config: &BrokerConfig, max_memory: u64) -> CleanerSettings {
    let default = CleanerSettings::default();
    let bytes = |value: Option<i64>, default: u64| value.and_then(|value| u64::try_from(value).ok()).unwrap_or(default);
    let threads = bytes(config.log_cleaner_threads, 1).max(1);
    let dedupe = bytes(config.log_cleaner_dedupe_buffer_size, default.map_bytes);
    let map_bytes =
        args.log_cleaner_dedupe_buffer_size.unwrap_or(dedupe / threads).min(u64::from(i32::MAX.unsigned_abs()));
    let io_buffer = bytes(config.log_cleaner_io_buffer_size, 2 * default.io_buffer_bytes);
    CleanerSettings {
        min_cleanable_dirty_ratio: args
            .min_cleanable_dirty_ratio
            .or(config.min_cleanable_dirty_ratio)
            .unwrap_or(default.min_cleanable_dirty_ratio),
        delete_retention_ms: args
            .delete_retention_ms
            .or(config.delete_retention_ms)
            .unwrap_or(default.delete_retention_ms),
        min_compaction_lag_ms: args
            .min_compaction_lag_ms
            .or(config.min_compaction_lag_ms)
            .unwrap_or(default.min_compaction_lag_ms),
        max_compaction_lag_ms: args
            .max_compaction_lag_ms
            .or(config.max_compaction_lag_ms)
            .unwrap_or(default.max_compaction_lag_ms),
        segment_bytes: args.segment_bytes.unwrap_or(bytes(config.segment_bytes, default.segment_bytes)),
        index: start_settings(config).index,
        max_message_bytes: args.max_message_bytes.unwrap_or(bytes(config.max_message_bytes, default.max_message_bytes)),
        max_io_buffer_bytes: bytes(config.max_message_bytes, default.max_io_buffer_bytes),
        io_buffer_bytes: io_buffer / threads / 2,
        map_bytes: map_bytes.min(max_memory.saturating_sub(WORK_BYTES.saturating_add(LEAST_VERDICT_BYTES))),
        load_factor: args
            .log_cleaner_io_buffer_load_factor
            .or(config.log_cleaner_io_buffer_load_factor)
            .unwrap_or(default.load_factor),
    }
}

fn tell_of_memory(planned: &CompactPlan, options: &CompactOptions, context: &mut Context<'_>) {
    let mut rounds = planned.cleaning.iter().flat_map(|cleaning| &cleaning.rounds);
    if rounds.any(|round| round.coverage == Coverage::Partial) {
        let keys = options.settings.map_bytes / 24;
        context.note(&format!(
            "note: the offset map of {keys} slots was full before the end of the dirty part; more memory \
             (--log-cleaner-dedupe-buffer-size, --max-memory) or more rounds (--until-clean) clean the rest"
        ));
    }
}

fn failed(error: CompactError) -> CliError {
    match error {
        CompactError::Read(error) => error.into(),
        CompactError::Cancelled => CliError::Interrupted,
    }
}

/// The first reason for which nothing may be changed.
fn refused(planned: &CompactPlan) -> Option<CliError> {
    let (text, hint) = refusal_text(planned.refusals.first()?);
    let more = planned.refusals.len() - 1;
    let text = if more > 0 { format!("{text} (and {more} more)") } else { text };
    Some(CliError::Refused(Message::new(text).with_hint(hint)))
}

/// The live partitions that are meant. Those being deleted, moved or stray are never touched, nor is the metadata log.
fn inputs(paths: &PathArgs) -> Result<Vec<CompactInput>, CliError> {
    let mut inputs: Vec<CompactInput> = Vec::new();
    for input in paths.open()? {
        match input {
            Input::LogDir(log_dir) => {
                let is_live = |name: &DirName| matches!(name, DirName::Partition(_));
                let members = paths.selection.members(&log_dir).filter(|member| is_live(&member.name));
                let partitions: Vec<OsString> = members.map(|member| member.entry.name.clone()).collect();
                inputs.push(CompactInput { log_dir, partitions });
            }
            Input::Partition(partition) => {
                let name = partition.dir_name().to_os_string();
                if let Some(input) = inputs.iter_mut().find(|input| input.log_dir.path() == partition.log_dir()) {
                    input.partitions.push(name);
                } else {
                    let log_dir = LogDir::open(partition.log_dir())?;
                    inputs.push(CompactInput { log_dir, partitions: vec![name] });
                }
            }
            Input::File(file) => {
                return Err(CliError::usage(format!(
                    "{}: cleaning is about log dirs and partitions",
                    file.path.display()
                )));
            }
        }
    }
    Ok(inputs)
}

//! `segtool plan-capacity`: flags to inputs, inputs to a plan.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::args::{
    parse_count, parse_duration_ms, parse_growth, parse_positive, parse_rate, parse_ratio, parse_size_bytes,
};
use super::config_file::{BrokerConfig, CleanupPolicy, parse_policy, read_config_file};
use super::context::{Context, OutputFormat};
use super::error::CliError;
use super::exit::ExitStatus;
use super::inputs::{PathArgs, SelectionArgs};
use super::stat::targets as stat_targets;
use crate::logdir::Input as Found;
use crate::ops::capacity::{
    AssumedCodec, Calibration, CapacityReport, Cleanup, Compaction, DailyProfile, DiskClass, IndexPreallocation, Input,
    Inputs, Plan, SimulationOptions, calibrate, in_days, plan, simulate, try_codecs,
};
use crate::ops::stat::{Depth, StatOptions, StatReport, StatTarget, inspect};
use crate::render::capacity::{chart_svg, render_human, render_json};
use crate::store::write_new_file;

const MEASURE: &str = "What is planned for";
const CLUSTER: &str = "Cluster and topic";
const SEGMENTS: &str = "Measurement of real segments";
const SIMULATION: &str = "Simulation";

/// Compute how large a disk has to be, and watch it fill
///
/// Stored bytes are daily bytes x compression ratio x retention days x replication factor x headroom. Every input has a flag;
/// what is not given is assumed, and the output says which is which.
#[derive(Clone, Debug, Args)]
pub struct PlanCapacityArgs {
    /// Messages that producers send a day, such as 100M
    #[arg(long, value_name = "COUNT", value_parser = parse_count, help_heading = MEASURE)]
    pub messages_per_day: Option<u64>,
    /// Mean size of a message before compression, such as 1KB [default: 1000]
    #[arg(long, value_name = "SIZE", value_parser = parse_size_bytes, help_heading = MEASURE)]
    pub message_size: Option<u64>,
    /// Bytes that producers send a day before compression; wins over messages and size
    #[arg(long, value_name = "SIZE", value_parser = parse_size_bytes, help_heading = MEASURE)]
    pub bytes_per_day: Option<u64>,
    /// Stored size as a share of the raw size [default: 1]
    #[arg(long, value_name = "RATIO", value_parser = parse_positive, help_heading = MEASURE)]
    pub compression_ratio: Option<f64>,
    /// Usual ratio of a codec: none 1, gzip 0.29, snappy 0.5, lz4 0.4, zstd 0.29
    #[arg(long, value_enum, value_name = "CODEC", conflicts_with = "compression_ratio", help_heading = MEASURE)]
    pub compression: Option<CodecArg>,
    /// Stored size of a batch, for the indexes [default: 16 KiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size_bytes, help_heading = MEASURE)]
    pub batch_size: Option<u64>,
    /// The busiest moment's rate over the day's mean [default: 2, or the daily profile's]
    #[arg(long, value_name = "FACTOR", value_parser = parse_positive, help_heading = MEASURE)]
    pub peak_factor: Option<f64>,
    /// Growth of the traffic a year, such as 0.5 or 50% [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = parse_growth, help_heading = MEASURE)]
    pub growth_per_year: Option<f64>,
    /// Years of the growth table [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50), help_heading = MEASURE)]
    pub years: Option<u32>,

    /// Days that records are kept [default: retention.ms of --config, else 7]
    #[arg(long, value_name = "DAYS", value_parser = parse_positive, help_heading = CLUSTER)]
    pub retention_days: Option<f64>,
    /// The same as a duration
    #[arg(long, value_name = "MS", value_parser = parse_duration_ms, conflicts_with = "retention_days", help_heading = CLUSTER)]
    pub retention_ms: Option<i64>,
    /// Bytes that a partition keeps at most
    #[arg(long, value_name = "SIZE", value_parser = parse_size_bytes, help_heading = CLUSTER)]
    pub retention_bytes: Option<u64>,
    /// Copies of each partition [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = CLUSTER)]
    pub replication_factor: Option<u32>,
    /// Factor for what the formula does not see [default: 1.2]
    #[arg(long, value_name = "FACTOR", value_parser = parse_positive, help_heading = CLUSTER)]
    pub headroom: Option<f64>,
    /// Brokers that share the load [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = CLUSTER)]
    pub brokers: Option<u32>,
    /// Bytes a second that the topic must take [default: the daily mean x the peak factor]
    #[arg(long, value_name = "RATE", value_parser = parse_rate, help_heading = CLUSTER)]
    pub target_throughput: Option<u64>,
    /// Bytes a second that one partition takes [default: 10MB/s]
    #[arg(long, value_name = "RATE", value_parser = parse_rate, help_heading = CLUSTER)]
    pub partition_throughput: Option<u64>,
    /// Consumers of the largest group [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = CLUSTER)]
    pub consumers: Option<u32>,
    /// Partitions, where they are decided [default: as recommended]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = CLUSTER)]
    pub partitions: Option<u32>,
    /// segment.bytes [default: a tenth of a partition, 64 MiB to 1 GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size_bytes, help_heading = CLUSTER)]
    pub segment_bytes: Option<u64>,
    /// segment.ms [default: a quarter of the retention, at most 7d]
    #[arg(long, value_name = "MS", value_parser = parse_duration_ms, help_heading = CLUSTER)]
    pub segment_ms: Option<i64>,
    /// Disk to plan for: hdd (150 MB/s), sata-ssd (450), nvme (2000), or MB/s
    #[arg(long, value_name = "CLASS", value_parser = parse_disk, help_heading = CLUSTER)]
    pub disk: Option<DiskClass>,
    /// Size of one disk
    #[arg(long, value_name = "SIZE", value_parser = parse_size_bytes, help_heading = CLUSTER)]
    pub disk_size: Option<u64>,
    /// Readers that are behind and read from disk at the peak's rate [default: 1]
    #[arg(long, value_name = "N", value_parser = parse_not_negative, help_heading = CLUSTER)]
    pub catch_up_readers: Option<f64>,
    /// Descriptors besides the segments' [default: 1000]
    #[arg(long, value_name = "N", value_parser = parse_count, help_heading = CLUSTER)]
    pub fd_buffer: Option<u64>,
    /// Settings of the topic or broker, as a properties file
    #[arg(long, value_name = "FILE", help_heading = CLUSTER)]
    pub config: Option<PathBuf>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the command")]
    pub segments: SegmentsArgs,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the command")]
    pub simulation: SimulationArgs,
}

/// Flags of the measurement.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = SEGMENTS)]
pub struct SegmentsArgs {
    /// Measure message size, rate, compression, batches and retention from a log dir, partition or log file; repeatable
    #[arg(long, value_name = "PATH")]
    pub from: Vec<PathBuf>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the command")]
    pub selection: SelectionArgs,
    /// Recompress a sample of the measured batches with every codec
    #[arg(long, requires = "from")]
    pub what_if_codecs: bool,
    /// How much is recompressed, as it lies on disk
    #[arg(long, value_name = "SIZE", value_parser = parse_size_bytes, default_value = "16MiB")]
    pub sample: u64,
}

/// Flags of the simulation.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = SIMULATION)]
pub struct SimulationArgs {
    /// Step the disk of one broker through so much time, such as 30d
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_ms)]
    pub simulate: Option<i64>,
    /// Traffic over the day: flat, evening, or 24 weights separated by commas
    #[arg(long, value_name = "PROFILE", value_parser = parse_profile, requires = "simulate")]
    pub daily_profile: Option<DailyProfile>,
    /// cleanup.policy: delete, compact or both
    #[arg(long, value_name = "POLICY", value_parser = policy, requires = "simulate")]
    pub cleanup_policy: Option<CleanupPolicy>,
    /// Distinct keys of the topic, for compaction [default: one for every ten messages of a day]
    #[arg(long, value_name = "COUNT", value_parser = parse_count, requires = "simulate")]
    pub unique_keys: Option<u64>,
    /// min.cleanable.dirty.ratio [default: 0.5]
    #[arg(long, value_name = "RATIO", value_parser = parse_ratio, requires = "simulate")]
    pub min_cleanable_dirty_ratio: Option<f64>,
    /// Bytes a second that the cleaner rewrites
    #[arg(long, value_name = "RATE", value_parser = parse_rate, default_value = "50MB/s")]
    pub cleaner_throughput: u64,
    /// Whether preallocated indexes take space
    #[arg(long, value_enum, value_name = "HOW", default_value = "sparse")]
    pub index_preallocation: PreallocationArg,
    /// Draw the simulated disk into a new file
    #[arg(long, value_name = "FILE.svg", requires = "simulate")]
    pub plot: Option<PathBuf>,
    /// Size of a broker's disks together [default: disks of --disk-size, else the plan's bytes]
    #[arg(long, value_name = "SIZE", value_parser = parse_size_bytes, requires = "simulate")]
    pub disk_capacity: Option<u64>,
    /// When another broker is lost for good and its replicas are spread over the others
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_ms, requires = "simulate")]
    pub lose_broker_after: Option<i64>,
    /// Bytes a second at which replicas are taken over
    #[arg(long, value_name = "RATE", value_parser = parse_rate, default_value = "100MB/s")]
    pub rebuild_throughput: u64,
}

/// A codec.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
#[expect(missing_docs, reason = "each is Kafka's codec of that name")]
pub enum CodecArg {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

/// Whether preallocated indexes take space.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum PreallocationArg {
    /// Only written pages count, as on ext4 and xfs
    Sparse,
    /// Preallocated space counts in full
    Allocated,
}

/// Computes and prints the plan.
pub fn run(args: &PlanCapacityArgs, context: &mut Context<'_>) -> Result<ExitStatus, CliError> {
    let format = context.expect_format(&[])?;
    let config = read_config(args, context)?;
    let mut inputs = inputs(args, &config)?;
    let mut status = ExitStatus::Done;
    let (mut calibration, mut codecs) = (None, None);
    if !args.segments.from.is_empty() {
        let targets = measured_targets(&args.segments)?;
        let (report, measured) = measure(&targets, context)?;
        status = context.status_of(&report.findings);
        inputs = measured.fill(inputs);
        calibration = Some(measured);
        if args.segments.what_if_codecs {
            codecs = Some(try_codecs(&targets, context.io_mode(), args.segments.sample, &thread_cpu_time));
        }
    }
    if inputs.messages_per_day.value <= 0.0 && inputs.bytes_per_day.value <= 0.0 {
        return Err(CliError::usage("how much is sent? give --messages-per-day, --bytes-per-day or --from PATH"));
    }
    let plan = plan(inputs);
    let simulation = match args.simulation.simulate {
        Some(duration_ms) => {
            let profile = calibration.as_ref().and_then(|calibration| calibration.profile);
            Some(simulate(&plan, &simulation_options(args, &config, &plan, duration_ms, profile)?))
        }
        None => None,
    };
    if let (Some(path), Some(simulation)) = (&args.simulation.plot, &simulation) {
        let written = write_new_file(path, chart_svg(simulation).as_bytes());
        written.map_err(|error| CliError::failed(format!("{}: {error}", path.display())))?;
        context.note(&format!("wrote {}", path.display()));
    }
    let report = CapacityReport { plan, calibration, codecs, simulation };
    let output = match format {
        OutputFormat::Json => {
            render_json(&report).map_err(|error| CliError::failed(format!("failed to write JSON: {error}")))?
        }
        _ => render_human(&report, context.width()).into_bytes(),
    };
    context.write(&output)?;
    Ok(status)
}

/// The partitions to measure: of several copies the largest, internal topics only where they were named.
fn measured_targets(segments: &SegmentsArgs) -> Result<Vec<StatTarget>, CliError> {
    let paths = PathArgs { paths: segments.from.clone(), selection: segments.selection.clone() };
    let inputs = paths.open()?;
    let (found, _) = stat_targets(&paths, &inputs)?;
    let named = !segments.selection.topic_partition.is_empty();
    let mut targets: Vec<StatTarget> = Vec::new();
    for target in found {
        let name = target.topic_partition().cloned();
        let is_internal = name.as_ref().is_some_and(|name| name.topic_bytes().starts_with(b"__"));
        if is_internal && !named && inputs.iter().all(|input| matches!(input, Found::LogDir(_))) {
            continue;
        }
        match targets.iter_mut().find(|known| name.is_some() && known.topic_partition() == name.as_ref()) {
            Some(known) if !target.is_file() && !known.is_file() => {
                if target.log_bytes() > known.log_bytes() {
                    *known = target;
                }
            }
            _ => targets.push(target),
        }
    }
    Ok(targets)
}

fn measure(targets: &[StatTarget], context: &mut Context<'_>) -> Result<(StatReport, Calibration), CliError> {
    let options = StatOptions { depth: Depth::Records, io: context.io_mode() };
    let pool = context.thread_pool()?;
    let progress = context.progress("measuring");
    let report = pool.install(|| inspect(targets, &[], options, &*progress));
    drop(progress);
    if !report.is_complete {
        return Err(CliError::failed("the segments could not be read completely; see segtool verify"));
    }
    let measured = calibrate(&report).map_err(|error| CliError::failed(error.to_string()))?;
    Ok((report, measured))
}

fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanoseconds)
}

fn read_config(args: &PlanCapacityArgs, context: &mut Context<'_>) -> Result<BrokerConfig, CliError> {
    let Some(path) = &args.config else { return Ok(BrokerConfig::default()) };
    let file = read_config_file(path).map_err(|error| CliError::usage(format!("{}: {error}", path.display())))?;
    for warning in &file.warnings {
        context.note(&format!("warning: {}: {warning}", path.display()));
    }
    Ok(file.config)
}

/// The first of flag, file and assumption.
fn choose<T>(flag: Option<T>, config: Option<T>, assumed: Input<T>) -> Input<T> {
    flag.map(Input::given).or_else(|| config.map(Input::config)).unwrap_or(assumed)
}

fn float(value: Option<u64>) -> Option<f64> {
    value.map(|value| value as f64)
}

fn inputs(args: &PlanCapacityArgs, config: &BrokerConfig) -> Result<Inputs, CliError> {
    let assumed = Inputs::default();
    let whole = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
    let small = |value: Option<i64>| value.and_then(|value| u32::try_from(value).ok());
    let codec_ratio = args.compression.map(|codec| assumed_codec(codec).ratio());
    let size_limit = config.retention_bytes.filter(|limit| *limit >= 0).map(|limit| limit as f64);
    Ok(Inputs {
        messages_per_day: choose(float(args.messages_per_day), None, assumed.messages_per_day),
        message_size_bytes: choose(float(args.message_size), None, assumed.message_size_bytes),
        bytes_per_day: choose(float(args.bytes_per_day), None, assumed.bytes_per_day),
        compression_ratio: match codec_ratio {
            Some(ratio) => Input::assumed(ratio),
            None => choose(args.compression_ratio, None, assumed.compression_ratio),
        },
        retention_days: retention_days(args, config, assumed.retention_days)?,
        retention_bytes: float(args.retention_bytes).map(Input::given).or(size_limit.map(Input::config)),
        replication_factor: choose(
            args.replication_factor,
            small(config.default_replication_factor),
            assumed.replication_factor,
        ),
        headroom: choose(args.headroom, None, assumed.headroom),
        brokers: choose(args.brokers, None, assumed.brokers),
        peak_factor: peak_factor(args, assumed.peak_factor),
        target_throughput: choose(float(args.target_throughput), None, assumed.target_throughput),
        partition_throughput: choose(float(args.partition_throughput), None, assumed.partition_throughput),
        consumers: choose(args.consumers, None, assumed.consumers),
        partitions: args.partitions.map(Input::given).or(small(config.num_partitions).map(Input::config)),
        segment_bytes: args.segment_bytes.map(Input::given).or(whole(config.segment_bytes).map(Input::config)),
        segment_ms: choose(args.segment_ms, config.segment_ms, assumed.segment_ms),
        segment_index_bytes: choose(None, whole(config.segment_index_bytes), assumed.segment_index_bytes),
        index_interval_bytes: choose(None, whole(config.index_interval_bytes), assumed.index_interval_bytes),
        batch_size_bytes: choose(float(args.batch_size), None, assumed.batch_size_bytes),
        retention_check_interval_ms: choose(
            None,
            config.log_retention_check_interval_ms,
            assumed.retention_check_interval_ms,
        ),
        file_delete_delay_ms: choose(None, config.file_delete_delay_ms, assumed.file_delete_delay_ms),
        disk: args.disk.map(Input::given),
        disk_size_bytes: float(args.disk_size).map(Input::given),
        catch_up_readers: choose(args.catch_up_readers, None, assumed.catch_up_readers),
        growth_per_year: choose(args.growth_per_year, None, assumed.growth_per_year),
        years: choose(args.years, None, assumed.years),
        fd_buffer: choose(args.fd_buffer, None, assumed.fd_buffer),
    })
}

fn peak_factor(args: &PlanCapacityArgs, assumed: Input<f64>) -> Input<f64> {
    let of_profile = args.simulation.daily_profile.map(|profile| Input::derived(profile.peak_factor()));
    args.peak_factor.map(Input::given).or(of_profile).unwrap_or(assumed)
}

fn retention_days(args: &PlanCapacityArgs, config: &BrokerConfig, assumed: Input<f64>) -> Result<Input<f64>, CliError> {
    let given = args.retention_days.or(args.retention_ms.map(in_days));
    let days = choose(given, config.retention_ms.map(in_days), assumed);
    if days.value > 0.0 {
        return Ok(days);
    }
    Err(CliError::usage("an unlimited retention has no size; give --retention-days"))
}

fn simulation_options(
    args: &PlanCapacityArgs,
    config: &BrokerConfig,
    plan: &Plan,
    duration_ms: i64,
    measured: Option<DailyProfile>,
) -> Result<SimulationOptions, CliError> {
    if duration_ms <= 0 {
        return Err(CliError::usage("--simulate needs a duration above 0, such as 30d"));
    }
    let flags = &args.simulation;
    let default = CleanupPolicy { compact: false, delete: true };
    let policy = flags.cleanup_policy.or(config.cleanup_policy).unwrap_or(default);
    let disks = plan.disks.first().filter(|_| args.disk_size.is_some()).map(|disk| disk.per_broker as f64);
    let by_disks = disks.zip(float(args.disk_size)).map(|(disks, size)| disks * size);
    Ok(SimulationOptions {
        duration_days: in_days(duration_ms),
        profile: flags.daily_profile.or(measured).unwrap_or(DailyProfile::FLAT),
        cleanup: Cleanup {
            deletes: policy.delete,
            compaction: policy.compact.then(|| compaction(flags, config, plan)),
        },
        index_preallocation: match flags.index_preallocation {
            PreallocationArg::Sparse => IndexPreallocation::Sparse,
            PreallocationArg::Allocated => IndexPreallocation::Allocated,
        },
        capacity_bytes: float(flags.disk_capacity).or(by_disks),
        lost_broker_day: flags.lose_broker_after.map(in_days),
        rebuild_bytes_per_second: flags.rebuild_throughput as f64,
    })
}

fn compaction(flags: &SimulationArgs, config: &BrokerConfig, plan: &Plan) -> Compaction {
    let keys = float(flags.unique_keys).unwrap_or(plan.inputs.messages_per_day.value / 10.0);
    let stored_message = plan.inputs.message_size_bytes.value * plan.inputs.compression_ratio.value;
    Compaction {
        key_space_bytes: keys * stored_message / plan.partitions.planned.max(1) as f64,
        min_cleanable_dirty_ratio: flags.min_cleanable_dirty_ratio.or(config.min_cleanable_dirty_ratio).unwrap_or(0.5),
        cleaner_bytes_per_second: flags.cleaner_throughput as f64,
    }
}

fn assumed_codec(codec: CodecArg) -> AssumedCodec {
    match codec {
        CodecArg::None => AssumedCodec::None,
        CodecArg::Gzip => AssumedCodec::Gzip,
        CodecArg::Snappy => AssumedCodec::Snappy,
        CodecArg::Lz4 => AssumedCodec::Lz4,
        CodecArg::Zstd => AssumedCodec::Zstd,
    }
}

fn parse_disk(text: &str) -> Result<DiskClass, String> {
    let text = text.trim().to_ascii_lowercase();
    match text.as_str() {
        "hdd" => return Ok(DiskClass::Hdd),
        "sata-ssd" => return Ok(DiskClass::SataSsd),
        "nvme" => return Ok(DiskClass::Nvme),
        _ => {}
    }
    let number = text.strip_suffix("mb/s").unwrap_or(&text);
    let megabytes =
        parse_positive(number).map_err(|_| "expected hdd, sata-ssd, nvme or MB/s such as 600".to_owned())?;
    Ok(DiskClass::Custom(megabytes))
}

fn parse_profile(text: &str) -> Result<DailyProfile, String> {
    match text.trim() {
        "flat" => return Ok(DailyProfile::FLAT),
        "evening" => return Ok(DailyProfile::EVENING),
        _ => {}
    }
    let weights: Result<Vec<f64>, _> = text.split(',').map(|weight| weight.trim().parse()).collect();
    let profile = weights.ok().and_then(|weights| DailyProfile::new(&weights));
    profile.ok_or_else(|| "expected flat, evening, or 24 weights from 0 on, not all 0, separated by commas".to_owned())
}

fn policy(text: &str) -> Result<CleanupPolicy, String> {
    parse_policy(text).ok_or_else(|| "expected delete, compact or delete,compact".to_owned())
}

fn parse_not_negative(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err("expected a number from 0 on".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_classes_or_megabytes_a_second() {
        assert_eq!(parse_disk("NVMe"), Ok(DiskClass::Nvme));
        assert_eq!(parse_disk("600"), Ok(DiskClass::Custom(600.0)));
        assert_eq!(parse_disk("600MB/s"), Ok(DiskClass::Custom(600.0)));
        assert!(parse_disk("floppy").unwrap_err().contains("hdd"));
    }

    #[test]
    fn profiles_have_a_name_or_24_weights() {
        assert_eq!(parse_profile("flat"), Ok(DailyProfile::FLAT));
        let weights = ["3"; 24].join(",");
        assert_eq!(parse_profile(&weights), Ok(DailyProfile::FLAT));
        assert!(parse_profile("1,2,3").unwrap_err().contains("24 weights"));
    }
}

//! `segtool dump`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::{Args, ValueEnum};

use super::args::{HalfOpen, InstantArg, parse_count, parse_instant_range, parse_offset_range};
use super::context::{Context, OutputFormat};
use super::dump_kafka::{self, KafkaArgs};
use super::error::CliError;
use super::exit::ExitStatus;
use super::inputs::{PathArgs, SelectionArgs};
use crate::format::message::InternalTopic;
use crate::format::{LeaderEpoch, Offset, ProducerId};
use crate::logdir::names::{FileKind, FileName, RootName};
use crate::logdir::{Input, SingleFile};
use crate::ops::dump::{
    Amount, Decode, DecodedRecord, DumpError, DumpOptions, Dumper, Event, FileShape, Filter, Isolation, Output, Range,
    Show,
};
use crate::ops::{RecordLimits, Severity};
use crate::render::dump::{HumanLines, JsonLines, Payload};

/// Print records, batches and the entries of other files
///
/// PATH is a log dir, a partition directory or a single file. Damage is shown where it lies, and the dump goes on behind it.
#[derive(Clone, Debug, Args)]
pub struct DumpArgs {
    /// Log dirs, partition directories or files
    #[arg(required_unless_present = "files", value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the command")]
    pub selection: SelectionArgs,
    /// Only offsets A to B, B excluded; either side may be left out
    #[arg(long, value_name = "A..B", value_parser = parse_offset_range)]
    pub offsets: Option<HalfOpen<Offset>>,
    /// Only records with a timestamp from A to B, B excluded: epoch ms, RFC 3339, a date, `2h ago`
    #[arg(long, value_name = "A..B", value_parser = parse_instant_range)]
    pub timestamps: Option<HalfOpen<InstantArg>>,
    /// Stop after N lines, over everything
    #[arg(long, value_name = "N", value_parser = parse_count, conflicts_with = "last")]
    pub limit: Option<u64>,
    /// Only the last N of each partition
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub last: Option<u64>,
    /// Only records with this key; in an internal topic its first fields, such as group,topic,partition
    #[arg(long, value_name = "TEXT")]
    pub key: Option<String>,
    /// Only batches of this producer
    #[arg(long, value_name = "N")]
    pub producer_id: Option<i64>,
    /// Only batches that a leader of this epoch wrote
    #[arg(long, value_name = "N")]
    pub leader_epoch: Option<i32>,
    /// Batch headers instead of records; both with --records
    #[arg(long)]
    pub batches: bool,
    /// Records; with --batches both
    #[arg(long)]
    pub records: bool,
    /// Whether aborted and open transactions are hidden, as from a consumer
    #[arg(long, value_enum, default_value_t, value_name = "LEVEL")]
    pub isolation: IsolationArg,
    /// How keys, values and header values are shown
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub payload: PayloadArg,
    /// How records of Kafka's internal topics are decoded; auto goes by the topic's name
    #[arg(long, value_enum, default_value_t, value_name = "TOPIC")]
    pub decode: DecodeArg,
    /// Records of internal topics that cannot be decoded are findings
    #[arg(long)]
    pub strict: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "a doc comment here would become the help of the command")]
    pub kafka: KafkaArgs,
}

/// Which internal topic's records are decoded.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, ValueEnum)]
pub enum DecodeArg {
    /// By the topic's name.
    #[default]
    Auto,
    /// Nothing is decoded.
    None,
    /// `__consumer_offsets`.
    Offsets,
    /// `__transaction_state`.
    TransactionLog,
    /// `__cluster_metadata` and its snapshots.
    ClusterMetadata,
    /// `__share_group_state`.
    ShareGroupState,
    /// `__remote_log_metadata`.
    RemoteLogMetadata,
}

/// Whose eyes look at transactions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum IsolationArg {
    /// Everything.
    #[default]
    ReadUncommitted,
    /// What a consumer of committed records is given.
    ReadCommitted,
}

/// How payload bytes are shown.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, ValueEnum)]
pub enum PayloadArg {
    /// Text where it is UTF-8, else base64; long ones are cut for people.
    #[default]
    Auto,
    /// Text, other bytes escaped.
    Utf8,
    /// Hexadecimal digits.
    Hex,
    /// Base64.
    Base64,
    /// Length and digest: comparable, not readable.
    Redacted,
    /// Length alone.
    None,
}

impl From<DecodeArg> for Decode {
    fn from(decode: DecodeArg) -> Self {
        match decode {
            DecodeArg::Auto => Self::ByTopic,
            DecodeArg::None => Self::Never,
            DecodeArg::Offsets => Self::As(InternalTopic::ConsumerOffsets),
            DecodeArg::TransactionLog => Self::As(InternalTopic::TransactionState),
            DecodeArg::ClusterMetadata => Self::As(InternalTopic::ClusterMetadata),
            DecodeArg::ShareGroupState => Self::As(InternalTopic::ShareGroupState),
            DecodeArg::RemoteLogMetadata => Self::As(InternalTopic::RemoteLogMetadata),
        }
    }
}

impl From<PayloadArg> for Payload {
    fn from(payload: PayloadArg) -> Self {
        match payload {
            PayloadArg::Auto => Self::Auto,
            PayloadArg::Utf8 => Self::Utf8,
            PayloadArg::Hex => Self::Hex,
            PayloadArg::Base64 => Self::Base64,
            PayloadArg::Redacted => Self::Redacted,
            PayloadArg::None => Self::None,
        }
    }
}

impl DumpArgs {
    fn options(&self, context: &Context<'_>) -> DumpOptions {
        let now = context.now();
        let timestamps = self.timestamps.unwrap_or_default();
        DumpOptions {
            show: match (self.batches, self.records) {
                (true, true) => Show::Both,
                (true, false) => Show::Batches,
                (false, _) => Show::Records,
            },
            filter: Filter {
                offsets: self.offsets.map_or_else(Range::default, |range| Range { start: range.start, end: range.end }),
                timestamps: Range {
                    start: timestamps.start.map(|instant| instant.resolve(now)),
                    end: timestamps.end.map(|instant| instant.resolve(now)),
                },
                key: self.key.as_ref().map(|key| key.clone().into_bytes()),
                producer_id: self.producer_id.map(ProducerId),
                leader_epoch: self.leader_epoch.map(LeaderEpoch),
            },
            amount: match (self.limit, self.last) {
                (Some(limit), _) => Amount::First(limit),
                (None, Some(last)) => Amount::Last(last),
                (None, None) => Amount::All,
            },
            isolation: match self.isolation {
                IsolationArg::ReadUncommitted => Isolation::ReadUncommitted,
                IsolationArg::ReadCommitted => Isolation::ReadCommitted,
            },
            decode: self.decode.into(),
            limits: RecordLimits { most: context.globals.max_memory, ..RecordLimits::default() },
            io: context.io_mode(),
        }
    }
}

/// Dumps what the arguments name.
pub fn run(args: &DumpArgs, context: &mut Context<'_>) -> Result<ExitStatus, CliError> {
    let format = context.expect_format(&[OutputFormat::Kafka])?;
    let paths = PathArgs { paths: args.paths.clone(), selection: args.selection.clone() };
    if format == OutputFormat::Kafka {
        return dump_kafka::run(&args.kafka, &paths, context);
    }
    if args.kafka.is_any_given() {
        return Err(CliError::usage("the options of Kafka's own tool need --format kafka"));
    }
    let inputs = paths.open()?;
    let options = args.options(context);
    let pool = context.thread_pool()?;
    let progress = context.progress("dumping");
    let payload = args.payload.into();
    // Whoever wants payloads hidden does not want them decoded.
    let decode = if matches!(payload, Payload::Redacted | Payload::None) { Decode::Never } else { options.decode };
    let human = HumanLines { payload, decode, coloured: context.is_coloured() };
    let json = JsonLines { payload, decode };
    let undecoded = AtomicU64::new(0);
    let output: &Output<'_> = &|event: &Event<'_>, out: &mut Vec<u8>| {
        if args.strict && is_undecodable(event, options.decode) {
            undecoded.fetch_add(1, Ordering::Relaxed);
        }
        match format {
            OutputFormat::Json => json.push_event(event, out),
            _ => human.push_event(event, out),
        }
    };
    let stdout = &mut *context.stdout;
    let mut write = |bytes: &[u8]| stdout.write_all(bytes);
    let mut dumper = Dumper::new(&options, &pool, output, &mut write, &*progress);
    let mut problems = Vec::new();
    for input in &inputs {
        dump_input(&paths, input, &mut dumper, &mut problems)?;
    }
    let summary = dumper.summary();
    drop(progress);
    for problem in &problems {
        context.note(&format!("error: {problem}"));
    }
    if format == OutputFormat::Json {
        let mut line = Vec::new();
        JsonLines::push_summary(&summary, &mut line);
        context.write(&line)?;
    } else {
        context.note(&HumanLines::summary(&summary));
    }
    let status = if summary.is_incomplete { ExitStatus::Incomplete } else { ExitStatus::Done };
    let fail_on = context.globals.fail_on;
    let undecoded = undecoded.load(Ordering::Relaxed);
    if undecoded > 0 {
        context.note(&format!("{undecoded} records of internal topics could not be decoded"));
    }
    let has_failing_damage = (summary.damage > 0 && fail_on.includes(Severity::Critical))
        || (undecoded > 0 && fail_on.includes(Severity::Warning));
    Ok(if has_failing_damage { status.merge(ExitStatus::Findings) } else { status })
}

fn is_undecodable(event: &Event<'_>, decode: Decode) -> bool {
    let Event::Record(record) = event else { return false };
    let Some(topic) = decode.topic_of(record.source).filter(|_| !record.header.is_control()) else { return false };
    !DecodedRecord::of(topic, record.record).is_whole()
}

/// A file that cannot be read is named and passed over; a failed output ends the dump.
fn dump_input(
    paths: &PathArgs,
    input: &Input,
    dumper: &mut Dumper<'_>,
    problems: &mut Vec<String>,
) -> Result<(), CliError> {
    let mut pass_over = |result: Result<(), DumpError>, dumper: &mut Dumper<'_>| match result {
        Ok(()) => Ok(()),
        Err(DumpError::Write(error)) => Err(CliError::from(error)),
        Err(DumpError::Read(error)) => {
            dumper.note_unreadable();
            problems.push(error.to_string());
            Ok(())
        }
    };
    if let Input::File(file) = input {
        let result = dump_file(file, dumper)?;
        return pass_over(result, dumper);
    }
    for partition in paths.live_partitions(input)? {
        if dumper.is_satisfied() {
            break;
        }
        let result = dumper.partition(&partition);
        pass_over(result, dumper)?;
    }
    Ok(())
}

fn dump_file(file: &SingleFile, dumper: &mut Dumper<'_>) -> Result<Result<(), DumpError>, CliError> {
    let base_offset = match (file.name, file.root_name) {
        (FileName::Segment { base, kind: FileKind::Log, .. }, _) => base,
        (FileName::KraftCheckpoint { .. }, _) | (_, RootName::BootstrapCheckpoint) => Offset(0),
        _ => {
            let Some(shape) = FileShape::of(file.path.file_name().unwrap_or_default()) else {
                return Err(CliError::usage(format!("{}: this is no file that Kafka writes", file.path.display())));
            };
            return Ok(dumper.other_file(file.path.clone(), file.topic_partition.clone(), shape));
        }
    };
    Ok(dumper.log_file(file.path.clone(), file.topic_partition.clone(), base_offset))
}

//! `dump --format kafka`: the flags of Kafka's own dump tool, and its lines on standard output. What that tool says on standard error
//! is said there too; the exit status stays segtool's.

use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use clap::Args;
use rayon::ThreadPool;

use super::context::{Context, Environment};
use super::error::CliError;
use super::exit::ExitStatus;
use super::inputs::PathArgs;
use crate::format::message::InternalTopic;
use crate::logdir::Input;
use crate::ops::Severity;
use crate::ops::kafka_dump::{Depth, Event, IndexMode, Options, Pages, Report, Trouble, dump_file};
use crate::render::kafka::{
    Decoder, RecordMetadata, ScalarDecoder, Style, java_path, push_crash, push_dumping, push_event, push_report,
    push_trouble,
};
use crate::render::untrusted::push_printable;

/// Bytes of text that make a page full.
const PAGE_BYTES: usize = 256 * 1024;

/// What Kafka's tool takes for the decoders of keys and values.
const DEFAULT_DECODER: &str = "org.apache.kafka.tools.api.StringDecoder";

/// The flags of Kafka's tool that take no value.
const SWITCHES: [&str; 10] = [
    "print-data-log",
    "deep-iteration",
    "skip-record-metadata",
    "verify-index-only",
    "index-sanity-check",
    "offsets-decoder",
    "transaction-log-decoder",
    "cluster-metadata-decoder",
    "remote-log-metadata-decoder",
    "share-group-state-decoder",
];

/// The flags of Kafka's tool that take a value.
const WITH_VALUE: [&str; 5] = ["files", "max-bytes", "max-message-size", "key-decoder-class", "value-decoder-class"];

/// The flags of Kafka's dump tool.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Options of Kafka's own tool (--format kafka), also taken with one dash")]
#[expect(clippy::struct_excessive_bools, reason = "the flags are Kafka's")]
pub struct KafkaArgs {
    /// Files to dump, separated by commas, instead of PATHs
    #[arg(long, value_name = "FILE,...", allow_hyphen_values = true)]
    pub files: Option<OsString>,
    /// Print keys and values of records
    #[arg(long)]
    pub print_data_log: bool,
    /// Print a line for each record
    #[arg(long)]
    pub deep_iteration: bool,
    /// Print only keys and values of records
    #[arg(long)]
    pub skip_record_metadata: bool,
    /// Compare indexes with the log without printing their entries
    #[arg(long)]
    pub verify_index_only: bool,
    /// Check indexes as a broker does at its start
    #[arg(long)]
    pub index_sanity_check: bool,
    /// Look only at so many bytes of each log
    #[arg(long, value_name = "BYTES", default_value_t = i32::MAX, value_parser = clap::value_parser!(i32).range(0..))]
    pub max_bytes: i32,
    /// Largest batch that an index entry may point to
    #[arg(long, value_name = "BYTES", default_value_t = 5_242_880, value_parser = clap::value_parser!(i32).range(0..))]
    pub max_message_size: i32,
    /// Decode records of __consumer_offsets
    #[arg(long)]
    pub offsets_decoder: bool,
    /// Decode records of __transaction_state
    #[arg(long)]
    pub transaction_log_decoder: bool,
    /// Decode records of __cluster_metadata
    #[arg(long)]
    pub cluster_metadata_decoder: bool,
    /// Decode records of __remote_log_metadata
    #[arg(long)]
    pub remote_log_metadata_decoder: bool,
    /// Decode records of __share_group_state
    #[arg(long)]
    pub share_group_state_decoder: bool,
    /// How keys are decoded: string, long, integer, short, float, double, uuid, bytes, or Kafka's class for it
    #[arg(long, value_name = "CLASS", num_args = 0..=1, default_missing_value = DEFAULT_DECODER, value_parser = parse_decoder)]
    pub key_decoder_class: Option<ScalarDecoder>,
    /// How values are decoded
    #[arg(long, value_name = "CLASS", num_args = 0..=1, default_missing_value = DEFAULT_DECODER, value_parser = parse_decoder)]
    pub value_decoder_class: Option<ScalarDecoder>,
}

fn parse_decoder(name: &str) -> Result<ScalarDecoder, String> {
    const PACKAGES: [&str; 3] =
        ["org.apache.kafka.tools.api.", "kafka.serializer.", "org.apache.kafka.common.serialization."];
    let class = PACKAGES.iter().find_map(|package| name.strip_prefix(package)).unwrap_or(name);
    let kind = class.strip_suffix("Decoder").or_else(|| class.strip_suffix("Deserializer")).unwrap_or(class);
    match kind.to_ascii_lowercase().as_str() {
        "string" => Ok(ScalarDecoder::Text),
        "long" => Ok(ScalarDecoder::Long),
        "integer" => Ok(ScalarDecoder::Integer),
        "short" => Ok(ScalarDecoder::Short),
        "float" => Ok(ScalarDecoder::Float),
        "double" => Ok(ScalarDecoder::Double),
        "uuid" => Ok(ScalarDecoder::Uuid),
        "bytes" | "bytearray" | "default" => Ok(ScalarDecoder::Bytes),
        _ => Err("no such decoder; known are string, long, integer, short, float, double, uuid and bytes".to_owned()),
    }
}

impl KafkaArgs {
    /// Whether any of these flags stands on the command line.
    pub fn is_any_given(&self) -> bool {
        let other_bounds = self.max_bytes != i32::MAX || self.max_message_size != 5_242_880;
        let switches =
            [self.deep_iteration, self.skip_record_metadata, self.verify_index_only, self.index_sanity_check];
        self.files.is_some() || other_bounds || self.decoder().is_some() || switches.contains(&true)
    }

    /// The topic's decoder, of several the first in the order in which Kafka's tool looks for them.
    fn topic_decoder(&self) -> Option<InternalTopic> {
        [
            (self.offsets_decoder, InternalTopic::ConsumerOffsets),
            (self.transaction_log_decoder, InternalTopic::TransactionState),
            (self.cluster_metadata_decoder, InternalTopic::ClusterMetadata),
            (self.remote_log_metadata_decoder, InternalTopic::RemoteLogMetadata),
            (self.share_group_state_decoder, InternalTopic::ShareGroupState),
        ]
        .into_iter()
        .find_map(|(given, topic)| given.then_some(topic))
    }

    fn decoder(&self) -> Option<Decoder> {
        let (key, value) = (self.key_decoder_class, self.value_decoder_class);
        let scalars =
            Decoder::Scalars { key: key.unwrap_or(ScalarDecoder::Text), value: value.unwrap_or(ScalarDecoder::Text) };
        let prints = self.print_data_log || key.is_some() || value.is_some();
        self.topic_decoder().map(Decoder::Topic).or_else(|| prints.then_some(scalars))
    }

    fn style(&self) -> Style {
        let metadata = if self.skip_record_metadata { RecordMetadata::Skipped } else { RecordMetadata::Shown };
        Style { decoder: self.decoder(), metadata }
    }

    fn options(&self, context: &Context<'_>) -> Options {
        let is_deep = self.deep_iteration || self.decoder().is_some();
        Options {
            depth: if is_deep { Depth::Records } else { Depth::Batches },
            index_mode: match (self.index_sanity_check, self.verify_index_only) {
                (true, _) => IndexMode::SanityCheck,
                (false, true) => IndexMode::Verify,
                (false, false) => IndexMode::Show,
            },
            max_bytes: self.max_bytes.unsigned_abs().into(),
            max_message_size: self.max_message_size.unsigned_abs().into(),
            max_held: context.globals.max_memory,
            io: context.io_mode(),
        }
    }
}

/// The elements of `--files`, as `String.split(",")` gives them: empty ones at the end are dropped.
fn split_files(list: &OsStr) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        list.as_bytes().split(|byte| *byte == b',').map(|name| PathBuf::from(OsStr::from_bytes(name))).collect();
    while files.len() > 1 && files.last().is_some_and(|name| name.as_os_str().is_empty()) {
        files.pop();
    }
    files
}

/// The same arguments with the flags of Kafka's tool in segtool's form: two dashes, and no value behind a flag that takes none. Only
/// `dump --format kafka` is touched.
pub fn accept_kafka_flags(arguments: Vec<OsString>) -> Vec<OsString> {
    let is_kafka =
        arguments.iter().zip(arguments.iter().skip(1)).any(|(flag, value)| flag == "--format" && value == "kafka")
            || arguments.iter().any(|argument| argument == "--format=kafka");
    if !is_kafka || !arguments.iter().any(|argument| argument == "dump") {
        return arguments;
    }
    arguments.into_iter().map(|argument| as_long_flag(&argument).unwrap_or(argument)).collect()
}

fn as_long_flag(argument: &OsStr) -> Option<OsString> {
    let name = argument.as_bytes().strip_prefix(b"-")?;
    let name = name.strip_prefix(b"-").unwrap_or(name);
    let flag = name.split(|byte| *byte == b'=').next()?;
    let is_one_of = |known: &[&str]| known.iter().any(|known| known.as_bytes() == flag);
    let kept = if is_one_of(&SWITCHES) {
        flag
    } else if is_one_of(&WITH_VALUE) {
        name
    } else {
        return None;
    };
    Some(OsString::from_vec([b"--", kept].concat()))
}

/// Dumps the files of `--files`, or else of the paths: of a directory the log files.
pub fn run(args: &KafkaArgs, paths: &PathArgs, context: &mut Context<'_>) -> Result<ExitStatus, CliError> {
    let files = match &args.files {
        Some(list) => {
            if !paths.paths.is_empty() {
                context.note("PATHs beside --files are not looked at, as by Kafka's tool");
            }
            split_files(list)
        }
        None => files_of(paths)?,
    };
    let (printer, options) = (Printer { style: args.style(), environment: context.environment }, args.options(context));
    let pool = context.thread_pool()?;
    let mut report = Report::default();
    let mut writer = Writer { context, worst: None, is_incomplete: false };
    for file in &files {
        writer.dump(file, (&options, printer), &pool, &mut report)?;
    }
    Ok(writer.finish(&report))
}

fn files_of(paths: &PathArgs) -> Result<Vec<PathBuf>, CliError> {
    let mut files = Vec::new();
    for path in &paths.paths {
        let input = match Input::open(path) {
            Ok(Input::File(_)) | Err(_) => {
                // What is not there is told in its turn, as by Kafka's tool.
                files.push(path.clone());
                continue;
            }
            Ok(input) => input,
        };
        for partition in paths.live_partitions(&input)? {
            let logs = partition.segments().into_iter().filter_map(|segment| segment.log);
            files.extend(logs.map(|log| partition.path().join(log.name)));
        }
    }
    Ok(files)
}

/// Lines of a stretch of a file, those for standard error in order with those for standard output.
#[derive(Debug, Default)]
struct Page {
    out: Vec<u8>,
    /// What is said on standard error, and the place in `out` before which.
    complaints: Vec<(usize, Vec<u8>)>,
    worst: Option<Severity>,
    is_incomplete: bool,
}

impl Page {
    fn note_trouble(&mut self, trouble: &Trouble) {
        match trouble {
            Trouble::UnknownFile => {}
            Trouble::Unreadable(_) => self.is_incomplete = true,
            Trouble::SizeTooSmall { .. } | Trouble::Skipped { .. } => self.note_severity(Severity::Critical),
            _ => self.note_severity(Severity::Error),
        }
    }

    fn note_severity(&mut self, severity: Severity) {
        self.worst = self.worst.max(Some(severity));
    }

    fn complain(&mut self, text: Vec<u8>) {
        self.complaints.push((self.out.len(), text));
    }
}

/// Makes the lines of events.
#[derive(Clone, Copy, Debug)]
struct Printer {
    style: Style,
    environment: Environment,
}

impl Printer {
    /// Adds an event to a page; breaks when the page is full.
    fn see(self, page: &mut Page, path: &[u8], event: &Event<'_>) -> ControlFlow<()> {
        let start = page.out.len();
        let crash = push_event(&mut page.out, path, self.style, event);
        if self.environment.stdout_is_terminal {
            escape_controls(&mut page.out, start);
        }
        match event {
            Event::Trouble(trouble) => {
                page.note_trouble(trouble);
                let mut text = Vec::new();
                push_trouble(&mut text, path, trouble);
                page.complain(text);
            }
            Event::Batch { crc_matches: false, .. } => page.note_severity(Severity::Critical),
            Event::TrailingBytes(_) => page.note_severity(Severity::Warning),
            _ => {}
        }
        if let Err(crash) = crash {
            page.note_severity(Severity::Error);
            let mut text = Vec::new();
            push_crash(&mut text, path, &crash);
            page.complain(text);
        }
        if page.out.len() >= PAGE_BYTES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Writes pages, and remembers what was bad in them.
struct Writer<'p, 'c> {
    context: &'p mut Context<'c>,
    worst: Option<Severity>,
    is_incomplete: bool,
}

impl Writer<'_, '_> {
    fn dump(
        &mut self,
        file: &Path,
        (options, printer): (&Options, Printer),
        pool: &ThreadPool,
        report: &mut Report,
    ) -> Result<(), CliError> {
        let shown = java_path(file.as_os_str().as_bytes());
        let mut heading = Vec::new();
        push_dumping(&mut heading, &shown);
        self.context.write(&heading)?;
        let path = PathBuf::from(OsStr::from_bytes(&shown));
        let mut failure = None;
        let mut pages = Pages {
            pool,
            see: &|page: &mut Page, event: &Event<'_>| printer.see(page, &shown, event),
            take: &mut |page| match self.put(&page) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            },
        };
        let _ = dump_file(&path, options, report, &mut pages);
        failure.map_or(Ok(()), |error| Err(error.into()))
    }

    fn put(&mut self, page: &Page) -> io::Result<()> {
        self.worst = self.worst.max(page.worst);
        self.is_incomplete |= page.is_incomplete;
        let mut written = 0;
        for (place, text) in &page.complaints {
            self.context.write(page.out.get(written..*place).unwrap_or_default())?;
            written = *place;
            self.complain(text);
        }
        self.context.write(page.out.get(written..).unwrap_or_default())
    }

    fn complain(&mut self, text: &[u8]) {
        let mut text = text.to_vec();
        if self.context.environment.stderr_is_terminal {
            escape_controls(&mut text, 0);
        }
        // A closed standard error leaves the result as it is.
        let _ = self.context.stderr.write_all(&text);
    }

    fn finish(mut self, report: &Report) -> ExitStatus {
        let working_directory = std::env::current_dir().unwrap_or_default();
        let absolute = |path: &Path| working_directory.join(path).into_os_string().into_vec();
        let mut text = Vec::new();
        push_report(&mut text, report, &absolute);
        self.complain(&text);
        let has_index_findings = !report.offset_mismatches.is_empty()
            || !report.time_mismatches.is_empty()
            || !report.time_disorder.is_empty()
            || !report.offsets_not_found.is_empty();
        if has_index_findings {
            self.worst = self.worst.max(Some(Severity::Error));
        }
        let fail_on = self.context.globals.fail_on;
        let found = if self.worst.is_some_and(|severity| fail_on.includes(severity)) {
            ExitStatus::Findings
        } else {
            ExitStatus::Done
        };
        if self.is_incomplete { ExitStatus::Incomplete } else { found }
    }
}

/// Replaces control characters other than line feeds from `start` on, for a terminal: bytes from a log must not command it.
fn escape_controls(out: &mut Vec<u8>, start: usize) {
    let text = out.split_off(start.min(out.len()));
    for (place, line) in text.split(|byte| *byte == b'\n').enumerate() {
        if place > 0 {
            out.push(b'\n');
        }
        push_printable(out, line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kafkas_flags_are_taken_with_one_dash_and_with_values_that_mean_nothing() {
        let accept = |line: &str| {
            let accepted = accept_kafka_flags(line.split(' ').map(OsString::from).collect());
            accepted.iter().map(|argument| argument.to_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            accept("dump --format kafka -print-data-log=true -files a.log --deep-iteration -max-bytes=7 -x"),
            "dump --format kafka --print-data-log --files a.log --deep-iteration --max-bytes=7 -x"
        );
        assert_eq!(accept("dump -files a.log"), "dump -files a.log");
    }

    #[test]
    fn empty_names_at_the_end_of_the_list_are_dropped() {
        let split = |list: &str| split_files(OsStr::new(list));
        assert_eq!(split("a,b,,"), [PathBuf::from("a"), PathBuf::from("b")]);
        assert_eq!(split(",a, b"), [PathBuf::from(""), PathBuf::from("a"), PathBuf::from(" b")]);
        assert_eq!(split(""), [PathBuf::from("")]);
    }

    #[test]
    fn decoders_are_known_by_kafkas_names_and_by_short_ones() {
        for name in ["org.apache.kafka.tools.api.LongDecoder", "kafka.serializer.LongDecoder", "long"] {
            assert_eq!(parse_decoder(name), Ok(ScalarDecoder::Long));
        }
        assert_eq!(parse_decoder("org.apache.kafka.common.serialization.UUIDDeserializer"), Ok(ScalarDecoder::Uuid));
        assert!(parse_decoder("com.example.MyDecoder").is_err());
    }

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        let mut out = "x\u{1b}a\u{1b}[31m \"\\q\"\nb\u{202e}".as_bytes().to_vec();
        escape_controls(&mut out, 2);
        assert_eq!(String::from_utf8(out).unwrap(), "x\u{1b}a\\x1b[31m \"\\q\"\nb\\u{202e}");
    }
}

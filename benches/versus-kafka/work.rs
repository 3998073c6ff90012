//! The work that is compared, and the segments that it is done on.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::measured::{Cost, cost_from, cost_of};
use crate::{KAFKA, Options, kafka};

const PARTITION: &str = "orders-0";
const LOG: &str = "00000000000000000000.log";
/// What a broker's scripts give to its tools, and to itself.
const FOR_TOOLS: &[&str] = &["-Xmx256M"];
const FOR_BROKERS: &[&str] = &["-Xmx1G", "-Xms1G"];
const FOR_ALL: &[&str] = &[
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
];

/// How the values are compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Codec {
    None,
    Zstd,
}

impl Codec {
    pub(crate) const ALL: [Self; 2] = [Self::None, Self::Zstd];

    /// As Kafka calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Zstd => "zstd",
        }
    }
}

/// What is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// All batches of a segment, checksums included.
    Batches,
    /// All its records as well, printed.
    Records,
    /// Its indexes made anew.
    Recovery,
    /// The log with the last record of each key only.
    Cleaning,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Batches, Self::Records, Self::Recovery, Self::Cleaning];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Batches => "verify --level crc / dump tool",
            Self::Records => "dump --format kafka --print-data-log / dump tool --print-data-log",
            Self::Recovery => "reindex --all --snapshots --apply / recovery in a warm JVM",
            Self::Cleaning => "compact --output / cleaner in a warm JVM",
        }
    }
}

/// A log dir written by Kafka, copies of it to work on, and a warm JVM.
pub(crate) struct Lab {
    original: PathBuf,
    ours: PathBuf,
    theirs: PathBuf,
    records: u64,
    max_memory: String,
    is_uncompressed: bool,
    broker: Broker,
}

impl Lab {
    pub(crate) fn new(directory: &Path, options: &Options, codec: Codec) -> Self {
        let original = directory.join(codec.name());
        let (bytes, keys) = (options.bytes.to_string(), options.keys.to_string());
        let args = [OsStr::new("make"), original.as_os_str(), codec.name().as_ref(), bytes.as_ref(), keys.as_ref()];
        let made = java(FOR_BROKERS).arg(source()).args(args).output().unwrap();
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "{said}");
        Self {
            ours: directory.join("ours"),
            theirs: directory.join("theirs"),
            records: String::from_utf8(made.stdout).unwrap().trim().parse().unwrap(),
            max_memory: options.max_memory.clone(),
            is_uncompressed: codec == Codec::None,
            broker: Broker::start(),
            original,
        }
    }

    /// Bytes of the segment.
    pub(crate) fn size_bytes(&self) -> u64 {
        fs::metadata(self.log()).unwrap().len()
    }

    /// Records in it.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    fn log(&self) -> PathBuf {
        self.original.join(PARTITION).join(LOG)
    }

    pub(crate) fn segtool(&self, kind: Kind) -> Cost {
        let program = Path::new(env!("CARGO_BIN_EXE_segtool"));
        let log = self.log();
        let log = log.as_os_str();
        let path = OsStr::new;
        let (original, ours) = (self.original.as_os_str(), self.ours.as_os_str());
        let limit = [path("--max-memory"), path(&self.max_memory)];
        let cost = |args: &[&OsStr]| cost_of(program, args.iter().chain(&limit));
        match kind {
            Kind::Batches => cost(&[path("verify"), path("--level"), path("crc"), log]),
            Kind::Records => cost(&[path("dump"), path("--format"), path("kafka"), path("--print-data-log"), log]),
            Kind::Recovery => {
                copy(&self.original, &self.ours);
                cost(&[path("reindex"), path("--all"), path("--snapshots"), path("--apply"), ours])
            }
            Kind::Cleaning => {
                remove(&self.ours);
                cost(&[path("compact"), original, path("--output"), ours])
            }
        }
    }

    pub(crate) fn kafka(&mut self, kind: Kind) -> Cost {
        let log = self.log();
        match kind {
            Kind::Batches => dump_tool(&[OsStr::new("--files"), log.as_os_str()]),
            Kind::Records => dump_tool(&[OsStr::new("--print-data-log"), OsStr::new("--files"), log.as_os_str()]),
            Kind::Recovery => {
                copy(&self.original, &self.theirs);
                self.broker.ask("recover", &self.theirs)
            }
            Kind::Cleaning => {
                copy(&self.original, &self.theirs);
                self.broker.ask("clean", &self.theirs)
            }
        }
    }

    /// Whoever is faster must have done the same.
    pub(crate) fn compare(&self, kind: Kind) {
        let files = match kind {
            Kind::Batches | Kind::Records => return,
            Kind::Recovery => vec!["index", "timeindex"],
            Kind::Cleaning if self.is_uncompressed => vec!["log", "index", "timeindex"],
            Kind::Cleaning => vec![],
        };
        for extension in files {
            let file = |root: &Path| root.join(PARTITION).join(LOG).with_extension(extension);
            assert!(are_equal(&file(&self.ours), &file(&self.theirs)), "{kind:?}: the .{extension} files differ");
        }
    }
}

fn are_equal(one: &Path, other: &Path) -> bool {
    Command::new("cmp").arg("-s").args([one, other]).status().unwrap().success()
}

/// A log dir whose closed log is the same file: neither side writes to it in place.
fn copy(from: &Path, to: &Path) {
    remove(to);
    fs::create_dir_all(to.join(PARTITION)).unwrap();
    for entry in fs::read_dir(from.join(PARTITION)).unwrap() {
        let name = entry.unwrap().file_name();
        let (source, target) = (from.join(PARTITION).join(&name), to.join(PARTITION).join(&name));
        if name == LOG {
            fs::hard_link(source, target).unwrap();
        } else {
            fs::copy(source, target).unwrap();
        }
    }
    let marker = ".kafka_cleanshutdown";
    fs::copy(from.join(marker), to.join(marker)).unwrap();
}

/// Removes a log dir and what segtool has kept beside it.
fn remove(log_dir: &Path) {
    for path in [log_dir.to_path_buf(), log_dir.with_extension("segtool-undo")] {
        if path.exists() {
            fs::remove_dir_all(path).unwrap();
        }
    }
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/versus-kafka/Kafka.java")
}

fn jars() -> PathBuf {
    kafka::jars(KAFKA).join("*")
}

fn java(memory: &[&str]) -> Command {
    let mut command = Command::new("java");
    command.args(memory).args(FOR_ALL).arg("-cp").arg(jars()).stdin(Stdio::null());
    command
}

fn dump_tool(args: &[&OsStr]) -> Cost {
    let jars = jars();
    let flags = FOR_TOOLS.iter().chain(FOR_ALL).map(OsStr::new);
    let class = [OsStr::new("-cp"), jars.as_os_str(), OsStr::new("org.apache.kafka.tools.DumpLogSegments")];
    cost_of(Path::new("java"), flags.chain(class).chain(args.iter().copied()))
}

/// A JVM with Kafka's classes that does one piece of work after the other.
struct Broker {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Broker {
    fn start() -> Self {
        let mut command = java(FOR_BROKERS);
        command.arg(source()).arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (commands, answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, commands, answers }
    }

    fn ask(&mut self, work: &str, log_dir: &Path) -> Cost {
        writeln!(self.commands, "{work} {}", log_dir.display()).unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        cost_from(&answer)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

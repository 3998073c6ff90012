//! A broker and controller in one process on the loopback interface.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::kafka;
use crate::support::{json, properties};

/// Long enough for a cold JVM on a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);

/// What a consumer is allowed to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isolation {
    ReadUncommitted,
    ReadCommitted,
}

/// A running broker. Dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Broker {
    version: String,
    process: Child,
    lines: Receiver<String>,
    /// What it logged so far, as far as it was read.
    log: Vec<String>,
    /// `host:port`.
    pub(crate) address: String,
    _settings: TempDir,
}

impl Broker {
    /// Starts a broker on these log dirs, in place: an empty directory is formatted, another keeps its identity.
    /// The directories must be copies: a broker changes what it serves.
    #[track_caller]
    pub(crate) fn start(version: &str, log_dirs: &[&Path]) -> Self {
        Self::start_with(version, log_dirs, &[])
    }

    /// The same with further settings, which win over the defaults.
    #[track_caller]
    pub(crate) fn start_with(version: &str, log_dirs: &[&Path], settings: &[(&str, &str)]) -> Self {
        let mut broker = Self::launch(version, log_dirs, settings);
        let started = broker.wait_for("Kafka Server started").is_some();
        assert!(started, "Kafka {version} did not start:\n{}", broker.log.join("\n"));
        broker
    }

    /// Starts a process that is expected to end by itself: its exit status and its log.
    #[track_caller]
    pub(crate) fn start_and_fail(version: &str, log_dirs: &[&Path]) -> (Option<i32>, Vec<String>) {
        let mut broker = Self::launch(version, log_dirs, &[]);
        let started = broker.wait_for("Kafka Server started").is_some();
        assert!(!started, "Kafka {version} started all the same:\n{}", broker.log.join("\n"));
        let status = broker.process.wait().unwrap();
        (status.code(), std::mem::take(&mut broker.log))
    }

    /// Serves copies of partition directories that come without cluster metadata, in a log dir made for them (empty
    /// before): the broker recovers every segment.
    #[track_caller]
    pub(crate) fn serve(version: &str, log_dir: &Path, partitions: &[&Path], settings: &[(&str, &str)]) -> Self {
        Self::adopt(version, log_dir, partitions, settings);
        fs::remove_file(log_dir.join(".kafka_cleanshutdown")).unwrap();
        for checkpoint in ["recovery-point-offset", "replication-offset", "log-start-offset", "cleaner-offset"] {
            fs::write(log_dir.join(format!("{checkpoint}-checkpoint")), "0\n0\n").unwrap();
        }
        Self::start_with(version, log_dir_of(&log_dir), settings)
    }

    /// Makes a log dir (empty before) of a broker that knows the topics of these partition directories, stops the broker in
    /// order, and puts copies of the directories in place of the empty ones.
    #[track_caller]
    pub(crate) fn adopt(version: &str, log_dir: &Path, partitions: &[&Path], settings: &[(&str, &str)]) {
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        let broker = Self::start_with(version, log_dir_of(&log_dir), settings);
        let topics: Vec<String> = partitions.iter().map(|path| name(path)).collect();
        broker.client("create-for", &topics);
        broker.stop();
        for source in partitions {
            let target = log_dir.join(name(source));
            for entry in fs::read_dir(&target).unwrap().map(Result::unwrap) {
                if entry.file_name() != "partition.metadata" {
                    fs::remove_file(entry.path()).unwrap();
                }
            }
            for entry in fs::read_dir(source).unwrap().map(Result::unwrap) {
                // The topic has a new identity, and epochs are rebuilt from the batches.
                if entry.file_name() != "partition.metadata" && entry.file_name() != "leader-epoch-checkpoint" {
                    fs::copy(entry.path(), target.join(entry.file_name())).unwrap();
                }
            }
        }
    }

    fn launch(version: &str, log_dirs: &[&Path], settings: &[(&str, &str)]) -> Self {
        let temporary = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let port = free_port();
        let file = temporary.path().join("server.properties");
        fs::write(&file, server_properties(log_dirs, port, settings)).unwrap();
        if !log_dirs.iter().any(|path| path.join("meta.properties").exists()) {
            format_log_dirs(version, &file);
        }
        let mut process = kafka::java(version, "info")
            .args(["kafka.Kafka".as_ref(), file.as_os_str()])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = process.stdout.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let address = format!("127.0.0.1:{port}");
        Self { version: version.to_owned(), process, lines, log: Vec::new(), address, _settings: temporary }
    }

    /// Waits for a line of the log; `None` when the process ended without it.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, words: &str) -> Option<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    self.log.push(line);
                    let line = self.log.last().unwrap();
                    if line.contains(words) {
                        return Some(line.clone());
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => panic!("no {words:?} after {PATIENCE:?}:\n{}", self.log.join("\n")),
            }
        }
    }

    /// Runs a command of `Client.java` against this broker.
    #[track_caller]
    pub(crate) fn client<S: AsRef<str>>(&self, command: &str, args: &[S]) -> String {
        let mut all = vec![command, &self.address];
        all.extend(args.iter().map(AsRef::as_ref));
        kafka::run_java(&self.version, "Client.java", &all)
    }

    /// Every record of a topic that a consumer sees, by partition and offset: `partition`, `offset`, `timestamp`,
    /// `timestampType`, `key` and `value` (base64 or null), `headers` (pairs), `leaderEpoch` (or null).
    #[track_caller]
    pub(crate) fn consume_all(&self, topic: &str, isolation: Isolation) -> Vec<Value> {
        self.consume(&[topic], isolation).remove(topic).unwrap_or_default()
    }

    /// The same of several topics, by one consumer. A topic without records has no entry.
    #[track_caller]
    pub(crate) fn consume(&self, topics: &[&str], isolation: Isolation) -> BTreeMap<String, Vec<Value>> {
        let isolation = match isolation {
            Isolation::ReadUncommitted => "read_uncommitted",
            Isolation::ReadCommitted => "read_committed",
        };
        let args: Vec<&str> = std::iter::once(isolation).chain(topics.iter().copied()).collect();
        let mut records: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for mut record in json::lines(self.client("consume", &args).as_bytes()) {
            let topic = record.as_object_mut().unwrap().remove("topic").unwrap();
            records.entry(topic.as_str().unwrap().to_owned()).or_default().push(record);
        }
        records
    }

    /// Lines of a start at which partitions were not taken as they lie there: something was missing, wrong, rebuilt, cut or
    /// deleted. The metadata log's own are left out: a broker loads it anew each time.
    pub(crate) fn complaints(log: &[String]) -> Vec<&str> {
        // The snapshot at a log's start goes at every start: a producer state as of there is empty.
        let is_work = |line: &&str| {
            ["Recovering unflushed segment", "Wrote producer snapshot"].iter().any(|words| line.contains(words))
        };
        let lines = log_loading(log).filter(|line| is_loud(line) || is_work(line));
        lines.collect()
    }

    /// The same after an unclean stop, when every log is recovered: only what recovery cut or deleted.
    pub(crate) fn losses(log: &[String]) -> Vec<&str> {
        log_loading(log).filter(is_loud).collect()
    }

    /// SIGTERM; waits for the end. The whole log.
    #[track_caller]
    pub(crate) fn stop(mut self) -> Vec<String> {
        let id = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        self.log.extend(self.lines.iter());
        self.process.wait().unwrap();
        std::mem::take(&mut self.log)
    }

    /// SIGKILL: what a crash leaves.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What the log layer says until the broker has started, but for the metadata log.
fn log_loading(log: &[String]) -> impl Iterator<Item = &str> {
    let start = log.iter().take_while(|line| !line.contains("Kafka Server started")).map(String::as_str);
    let of_logs = start.filter(|line| line.contains("storage.internals.log.") || line.contains(" kafka.log."));
    of_logs.filter(|line| !line.contains("__cluster_metadata-0"))
}

/// Warnings and errors, and deletions, which are told quietly.
fn is_loud(line: &&str) -> bool {
    let words = [" WARN ", " ERROR ", "Truncating", "Deleting"];
    words.iter().any(|word| line.contains(word)) && !line.contains(" is deprecated")
}

fn log_dir_of<'a>(log_dir: &'a &'a Path) -> &'a [&'a Path] {
    std::slice::from_ref(log_dir)
}

/// A port that nobody listens on at this moment.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn server_properties(log_dirs: &[&Path], port: u16, settings: &[(&str, &str)]) -> String {
    let identity = log_dirs.iter().map(|path| path.join("meta.properties")).find(|path| path.exists());
    let identity = identity.map(|path| properties(&path)).unwrap_or_default();
    let node = identity.get("node.id").or(identity.get("broker.id")).map_or("1", String::as_str);
    let controller_port = free_port();
    let paths: Vec<String> = log_dirs.iter().map(|path| path.display().to_string()).collect();
    let further: String = settings.iter().map(|(key, value)| format!("{key}={value}\n")).collect();
    format!(
        "node.id={node}
process.roles=broker,controller
log.dirs={}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.quorum.voters={node}@127.0.0.1:{controller_port}
auto.create.topics.enable=false
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=6000
group.initial.rebalance.delay.ms=0
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
log.retention.ms=-1
log.cleaner.dedupe.buffer.size=8388608
num.network.threads=2
num.io.threads=2
background.threads=2
{further}",
        paths.join(",")
    )
}

fn format_log_dirs(version: &str, settings: &Path) {
    let output = kafka::java(version, "warn")
        .args(["kafka.tools.StorageTool", "format", "-t", "c2VndG9vbC1pbnRlcm9wLTE", "-c"])
        .arg(settings)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "format: {said}");
}

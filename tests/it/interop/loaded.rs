//! Kafka's own `LogManager` on what `repair` made of every recorded damage, and of random ones, all in one JVM: it keeps every
//! byte of what was salvaged, and leaves itself what is repaired as a broker would.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::kafka;
use super::salvaged::intact_offsets;
use crate::support::random_damage::{Damage, damage, spoil};
use crate::support::{DamagedCase, Sandbox, Start, Tree, damaged_case, files_below, json, packs, run_at, sha256_hex};
use crate::synth::LogDir;
use crate::synth::random::healthy_partition;

const VERSION: &str = "4.4.0";

/// A start fails over these whatever is done: only the cluster knows the topic's id.
const STUCK: [&str; 3] = ["partition-metadata-empty", "partition-metadata-garbage", "partition-metadata-version-1"];

/// Two sound batches lie over each other; a later leader's stays.
const EITHER: (&str, std::ops::RangeInclusive<i64>) = ("overlap-with-earlier-offsets", 63..=89);

const LIKE_BROKER: [&str; 5] = ["repair", "--mode", "like-broker", "--kafka-version", "4.4"];

/// The clock of random partitions, an hour after their first records.
const RANDOM_NOW_MS: u64 = 1_760_001_800_000;

/// A log dir that awaits a broker's start.
struct Given {
    story: String,
    sandbox: Sandbox,
    now_ms: u64,
    /// A properties file with the topic's settings.
    config: PathBuf,
}

/// What a command made of it, beside it.
struct Made {
    given: Given,
    result: PathBuf,
    /// The result before Kafka has touched it.
    before: Tree,
    /// What was printed; `None` where the command refused, since the broker would not start.
    plan: Option<Value>,
}

impl Given {
    fn made(self, command: &[&str]) -> Made {
        let result = self.sandbox.beside("result");
        let (from, to, now) =
            (self.sandbox.path().to_str().unwrap(), result.to_str().unwrap(), self.now_ms.to_string());
        let config = self.config.to_str().unwrap();
        let flags = ["--format", "json", "--config", config, "--now", &now, "--output", to, from];
        let output = run_at(0, command.iter().chain(&flags));
        assert!([0, 1, 3].contains(&output.status), "{}: {output}", self.story);
        let plan = (output.status != 3).then(|| output.json());
        let before = if plan.is_some() { Tree::of(&result) } else { Tree(BTreeMap::new()) };
        Made { given: self, result, before, plan }
    }
}

/// Every recorded damage, after a clean and after an unclean stop, with its case.
fn recorded(is_wanted: impl Fn(&str) -> bool) -> Vec<(PathBuf, Given)> {
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let cases = packs::cases("damaged").into_iter().filter(|path| path.join("case.properties").exists());
    let both = cases
        .filter(|path| is_wanted(&name(path)))
        .flat_map(|path| [(path.clone(), Start::Clean), (path, Start::Unclean)]);
    let given = both.map(|(path, start)| {
        let DamagedCase { sandbox, now_ms, config, .. } = damaged_case(&name(&path), start);
        let story = format!("{}, {start:?}", name(&path));
        (path, Given { story, sandbox, now_ms, config })
    });
    given.collect()
}

/// Loads and closes what was given, or what was made of it, in one JVM; what Kafka found, in the same order.
fn load<'a>(all: impl Iterator<Item = &'a Made>, log_dir: fn(&Made) -> &Path) -> Vec<Value> {
    let list = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let line = |made: &Made| {
        let settings = fs::read_to_string(&made.given.config).unwrap().trim_end().replace('\n', ";");
        format!("{}\t{}\t{settings}\t\n", log_dir(made).display(), made.given.now_ms)
    };
    let lines: Vec<String> = all.map(line).collect();
    fs::write(list.path(), lines.concat()).unwrap();
    let loaded = json::lines(kafka::run_java(VERSION, "LoadLogs.java", &[list.path()]).as_bytes());
    assert_eq!(loaded.len(), lines.len());
    loaded
}

/// A batch: its last offset, and SHA-256 of its bytes.
type Batch = (i64, String);

/// The batches of a partition's log files as they lie there, found without segtool.
fn batches_on_disk(partition: &Path) -> Vec<Batch> {
    let names = fs::read_dir(partition).unwrap().map(|entry| entry.unwrap().path());
    let logs: BTreeSet<PathBuf> = names.filter(|path| path.extension().is_some_and(|ext| ext == "log")).collect();
    let mut batches = Vec::new();
    for log in logs {
        let bytes = fs::read(log).unwrap();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let size = 12 + usize::try_from(i32::from_be_bytes(rest[8..12].try_into().unwrap())).unwrap();
            let base = i64::from_be_bytes(rest[..8].try_into().unwrap());
            // An old message set carries the offset of its last message.
            let delta = if rest[16] < 2 { 0 } else { i32::from_be_bytes(rest[23..27].try_into().unwrap()) };
            batches.push((base + i64::from(delta), sha256_hex(&rest[..size])));
            rest = &rest[size..];
        }
    }
    batches
}

/// What Kafka returned of a partition; a batch that it could not read is missing.
fn batches_returned(partition: &Value) -> Vec<Batch> {
    let lines = partition["batches"].as_array().unwrap().iter().filter(|line| line.is_array());
    lines.map(|line| (line[1].as_i64().unwrap(), line[2].as_str().unwrap().to_owned())).collect()
}

/// Files in partition directories that are not the same in both. Marker and checkpoints change at each stop; what is marked
/// for deletion goes some time later.
fn different_files<'a>(one: &'a Tree, other: &'a Tree) -> BTreeSet<&'a Path> {
    let content = |tree: &Tree, path: &Path| tree.0.get(path).and_then(|entry| entry.sha256.clone());
    let is_doomed = |path: &Path| {
        path.extension().is_some_and(|ext| ext == "deleted")
            || path.parent().unwrap().to_str().unwrap().ends_with("-delete")
    };
    let inside =
        one.0.keys().chain(other.0.keys()).map(AsRef::as_ref).filter(|path: &&Path| path.components().count() > 1);
    inside.filter(|path| !is_doomed(path) && content(one, path) != content(other, path)).collect()
}

/// What Kafka lost or has otherwise than `repair` said; empty when it kept all.
fn losses(made: &Made, loaded: &Value) -> String {
    let mut wrong = String::new();
    if let Some(failure) = loaded["failure"].as_str() {
        writeln!(wrong, "{}: {failure}", made.given.story).unwrap();
        return wrong;
    }
    let after = Tree::of(&made.result);
    for path in different_files(&made.before, &after) {
        // A log without any segment is given an empty one.
        let is_data = |tree: &Tree| tree.0.get(path).is_some_and(|entry| entry.size_bytes > 0);
        if path.extension().is_some_and(|ext| ext == "log") && (is_data(&made.before) || is_data(&after)) {
            writeln!(wrong, "{}: {} is another file", made.given.story, path.display()).unwrap();
        }
    }
    let plans = made.plan.as_ref().unwrap()["partitions"].as_array().unwrap();
    for partition in loaded["partitions"].as_array().unwrap() {
        let name = partition["directory"].as_str().unwrap();
        let mut kept = batches_on_disk(&made.result.join(name));
        kept.retain(|(last_offset, _)| *last_offset >= partition["start"].as_i64().unwrap());
        let returned = batches_returned(partition);
        if returned != kept {
            writeln!(wrong, "{}: {name}: {} batches of {}", made.given.story, returned.len(), kept.len()).unwrap();
        }
        let is_its = |plan: &&Value| format!("{}-{}", plan["topic"].as_str().unwrap(), plan["partition"]) == name;
        let plan = plans.iter().find(is_its).unwrap();
        if [&plan["log_start_offset"], &plan["log_end_offset"]] != [&partition["start"], &partition["end"]] {
            writeln!(wrong, "{}: {name} has {}..{}", made.given.story, partition["start"], partition["end"]).unwrap();
        }
    }
    wrong
}

/// Where Kafka made something else of the damaged directory than `repair` in the broker's way; empty when the same.
fn deviations(made: &Made, loaded: &Value) -> String {
    match (&made.plan, loaded["failure"].as_str()) {
        (None, Some(_)) => String::new(),
        (None, None) => format!("{}: Kafka loads it\n", made.given.story),
        (Some(_), Some(failure)) => format!("{}: {failure}\n", made.given.story),
        (Some(_), None) => {
            let after = Tree::of(made.given.sandbox.path());
            let paths = different_files(&made.before, &after).into_iter();
            paths.map(|path| format!("{}: {}\n", made.given.story, path.display())).collect()
        }
    }
}

/// Offsets of intact batches that Kafka does not return, from the log start on where a checkpoint has set one.
fn missing_offsets(case: &Path, made: &Made, loaded: &Value) -> BTreeSet<i64> {
    let mut missing = intact_offsets(case);
    let log_starts = fs::read(made.given.sandbox.join("log-start-offset-checkpoint")).unwrap_or_default();
    let log_starts = String::from_utf8_lossy(&log_starts);
    for partition in loaded["partitions"].as_array().unwrap() {
        let start = partition["start"].as_i64().unwrap();
        if log_starts.lines().any(|line| line.ends_with(&format!(" {start}"))) {
            missing.retain(|offset| *offset >= start);
        }
        for batch in partition["batches"].as_array().unwrap().iter().filter(|batch| batch.is_array()) {
            let (base, last) = (batch[0].as_i64().unwrap(), batch[1].as_i64().unwrap());
            missing.retain(|offset| !(base..=last).contains(offset));
        }
    }
    if case.ends_with(EITHER.0) {
        missing.retain(|offset| !EITHER.1.contains(offset));
    }
    missing
}

/// One line for each thing that went wrong.
#[track_caller]
fn assert_all_well(all: &[Made], loaded: &[Value], wrong: fn(&Made, &Value) -> String) {
    let wrong: String = all.iter().zip(loaded).map(|(made, loaded)| wrong(made, loaded)).collect();
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
#[ignore = "loads logs with Kafka's classes"]
fn kafka_keeps_every_byte_of_what_was_salvaged() {
    if kafka::is_missing() {
        return;
    }
    let (cases, given): (Vec<PathBuf>, Vec<Given>) = recorded(|name| !STUCK.contains(&name)).into_iter().unzip();
    let all: Vec<Made> = given.into_iter().map(|given| given.made(&["repair"])).collect();
    let loaded = load(all.iter(), |made| &made.result);
    assert_all_well(&all, &loaded, losses);
    for ((case, made), loaded) in cases.iter().zip(&all).zip(&loaded) {
        assert_eq!(missing_offsets(case, made, loaded), BTreeSet::new(), "{}", made.given.story);
    }
}

#[test]
#[ignore = "loads logs with Kafka's classes"]
fn what_is_repaired_as_a_broker_would_is_what_kafka_leaves() {
    if kafka::is_missing() {
        return;
    }
    // The two logs of one partition, one of them on the move to another disk, end their work in another order.
    let given = recorded(|name| name != "future-directory-leftover");
    let all: Vec<Made> = given.into_iter().map(|(_, given)| given.made(&LIKE_BROKER)).collect();
    assert_all_well(&all, &load(all.iter(), |made| made.given.sandbox.path()), deviations);
}

/// Log dirs of random partitions, each with random damage. `SEGTOOL_SEED` makes others.
fn random(damages: impl Strategy<Value = Vec<(Index, Damage)>>) -> Vec<Given> {
    let seed: u64 = std::env::var("SEGTOOL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &Sha256::digest(seed.to_be_bytes()));
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    let begin_ms = i64::try_from(RANDOM_NOW_MS).unwrap() - 3_600_000;
    let case = (healthy_partition(begin_ms, 40), damages, prop::sample::select(vec![Start::Clean, Start::Unclean]));
    let given = (0..200).map(|number| {
        let (partition, damages, start) = case.new_tree(&mut runner).unwrap().current();
        let sandbox = Sandbox::empty();
        LogDir::new([partition]).write(sandbox.path());
        if start == Start::Unclean {
            crash(&sandbox);
        }
        let mut story = format!("seed {seed}, number {number}, {start:?}");
        for (file, damage) in &damages {
            let files: Vec<PathBuf> = files_below(sandbox.path()).into_iter().filter(|file| is_target(file)).collect();
            let file = file.get(&files);
            write!(story, ", {} {damage:?}", file.display()).unwrap();
            spoil(&sandbox.join(file), damage);
        }
        let config = sandbox.beside("topic.properties");
        fs::write(&config, "index.interval.bytes=200\nretention.ms=-1\n").unwrap();
        Given { story, sandbox, now_ms: RANDOM_NOW_MS, config }
    });
    given.collect()
}

/// Makes an orderly stop look like a crash.
fn crash(log_dir: &Sandbox) {
    for name in [".kafka_cleanshutdown", "recovery-point-offset-checkpoint"] {
        let path = log_dir.join(name);
        if path.exists() {
            fs::remove_file(path).unwrap();
        }
    }
}

/// Everything but what makes a directory one of this cluster, and what only other parts of a broker read.
fn is_target(file: &Path) -> bool {
    let identity = ["partition.metadata", "meta.properties", ".lock", ".kafka_cleanshutdown"];
    let of_others = ["replication-offset-checkpoint", "cleaner-offset-checkpoint"];
    !identity.iter().chain(&of_others).any(|name| file.ends_with(name))
}

fn some_damage() -> impl Strategy<Value = Vec<(Index, Damage)>> {
    vec((any::<Index>(), damage()), 1..4)
}

#[test]
#[ignore = "loads logs with Kafka's classes"]
fn kafka_keeps_what_was_salvaged_of_random_damage() {
    if kafka::is_missing() {
        return;
    }
    let all: Vec<Made> = random(some_damage()).into_iter().map(|given| given.made(&["repair"])).collect();
    assert_all_well(&all, &load(all.iter(), |made| &made.result), losses);
}

#[test]
#[ignore = "loads logs with Kafka's classes"]
fn random_damage_is_repaired_as_kafka_does() {
    if kafka::is_missing() {
        return;
    }
    let all: Vec<Made> = random(some_damage()).into_iter().map(|given| given.made(&LIKE_BROKER)).collect();
    assert_all_well(&all, &load(all.iter(), |made| made.given.sandbox.path()), deviations);
}

#[test]
#[ignore = "loads logs with Kafka's classes"]
fn random_partitions_are_indexed_as_kafka_recovers_them() {
    if kafka::is_missing() {
        return;
    }
    let bare = |given: Given| {
        crash(&given.sandbox);
        let is_made = |file: &PathBuf| ["index", "snapshot"].iter().any(|end| file.to_str().unwrap().ends_with(end));
        for file in files_below(given.sandbox.path()).iter().filter(|file| is_made(file)) {
            fs::remove_file(given.sandbox.join(file)).unwrap();
        }
        given.made(&["reindex", "--all", "--snapshots"])
    };
    let all: Vec<Made> = random(Just(Vec::new())).into_iter().map(bare).collect();
    assert_all_well(&all, &load(all.iter(), |made| made.given.sandbox.path()), deviations);
}

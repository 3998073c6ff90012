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
use crate::support::random_damage::{damage, spoil};
use crate::support::{Sandbox, Start, Tree, damaged_case, files_below, json, packs, run_at, sha256_hex};
use crate::synth::LogDir;
use crate::synth::random::healthy_partition;

const VERSION: &str = "4.4.0";

/// A start fails over these whatever is done: only the cluster knows the topic's id.
const STUCK: [&str; 3] = ["partition-metadata-empty", "partition-metadata-garbage", "partition-metadata-version-1"];

/// Two sound batches lie over each other; a later leader's stays.
const EITHER: (&str, std::ops::RangeInclusive<i64>) = ("overlap-with-earlier-offsets", 63..=89);

/// The clock of random partitions, an hour after their first records.
const RANDOM_NOW_MS: u64 = 1_760_001_800_000;

/// A damaged log dir, and what `repair` made of it beside it.
struct Repaired {
    story: String,
    damaged: Sandbox,
    now_ms: u64,
    /// As `LoadLogs` takes them.
    settings: String,
    result: PathBuf,
    /// The result before Kafka has touched it.
    before: Tree,
    /// What `repair` printed; `None` where it refused, since the broker would not start.
    plan: Option<Value>,
}

fn repaired(story: String, damaged: Sandbox, now_ms: u64, config: &Path, mode: &[&str]) -> Repaired {
    let result = damaged.beside("repaired");
    let (from, to, now) = (damaged.path().to_str().unwrap(), result.to_str().unwrap(), now_ms.to_string());
    let config_path = config.to_str().unwrap();
    let flags = ["repair", "--format", "json", "--config", config_path, "--now", &now, "--output", to, from];
    let output = run_at(0, flags.iter().chain(mode));
    assert!([0, 1, 3].contains(&output.status), "{story}: {output}");
    let plan = (output.status != 3).then(|| output.json());
    let before = if plan.is_some() { Tree::of(&result) } else { Tree(BTreeMap::new()) };
    let settings = fs::read_to_string(config).unwrap().trim_end().replace('\n', ";");
    Repaired { story, damaged, now_ms, settings, result, before, plan }
}

/// Every recorded damage, after a clean and after an unclean stop.
fn recorded(mode: &[&str], is_wanted: impl Fn(&str) -> bool) -> Vec<(PathBuf, Repaired)> {
    let cases = packs::cases("damaged").into_iter().filter(|path| path.join("case.properties").exists());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let cases = cases.filter(|path| is_wanted(&name(path)));
    let repair = |(path, start): (PathBuf, Start)| {
        let case = damaged_case(&name(&path), start);
        let story = format!("{}, {start:?}", name(&path));
        (path, repaired(story, case.sandbox, case.now_ms, &case.config, mode))
    };
    cases.flat_map(|path| [Start::Clean, Start::Unclean].map(|start| (path.clone(), start))).map(repair).collect()
}

/// Loads and closes log dirs in one JVM; what Kafka found, in the same order.
fn load<'a>(log_dirs: impl Iterator<Item = (&'a Path, &'a Repaired)>) -> Vec<Value> {
    let list = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let line = |(path, dir): (&Path, &Repaired)| format!("{}\t{}\t{}\t\n", path.display(), dir.now_ms, dir.settings);
    let lines: Vec<String> = log_dirs.map(line).collect();
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
fn losses(dir: &Repaired, loaded: &Value) -> String {
    let mut wrong = String::new();
    if let Some(failure) = loaded["failure"].as_str() {
        writeln!(wrong, "{}: {failure}", dir.story).unwrap();
        return wrong;
    }
    let after = Tree::of(&dir.result);
    for path in different_files(&dir.before, &after) {
        // A log without any segment is given an empty one.
        let is_data = |tree: &Tree| tree.0.get(path).is_some_and(|entry| entry.size_bytes > 0);
        if path.extension().is_some_and(|ext| ext == "log") && (is_data(&dir.before) || is_data(&after)) {
            writeln!(wrong, "{}: {} is another file", dir.story, path.display()).unwrap();
        }
    }
    let plans = dir.plan.as_ref().unwrap()["partitions"].as_array().unwrap();
    for partition in loaded["partitions"].as_array().unwrap() {
        let name = partition["directory"].as_str().unwrap();
        let mut kept = batches_on_disk(&dir.result.join(name));
        kept.retain(|(last_offset, _)| *last_offset >= partition["start"].as_i64().unwrap());
        let returned = batches_returned(partition);
        if returned != kept {
            writeln!(wrong, "{}: {name}: {} batches of {}", dir.story, returned.len(), kept.len()).unwrap();
        }
        let is_its = |plan: &&Value| format!("{}-{}", plan["topic"].as_str().unwrap(), plan["partition"]) == name;
        let plan = plans.iter().find(is_its).unwrap();
        if [&plan["log_start_offset"], &plan["log_end_offset"]] != [&partition["start"], &partition["end"]] {
            writeln!(wrong, "{}: {name} has {}..{}", dir.story, partition["start"], partition["end"]).unwrap();
        }
    }
    wrong
}

/// Where Kafka made something else of the damaged directory than `repair` in the broker's way; empty when the same.
fn deviations(dir: &Repaired, loaded: &Value) -> String {
    match (&dir.plan, loaded["failure"].as_str()) {
        (None, Some(_)) => String::new(),
        (None, None) => format!("{}: Kafka loads it\n", dir.story),
        (Some(_), Some(failure)) => format!("{}: {failure}\n", dir.story),
        (Some(_), None) => {
            let after = Tree::of(dir.damaged.path());
            let paths = different_files(&dir.before, &after).into_iter();
            paths.map(|path| format!("{}: {}\n", dir.story, path.display())).collect()
        }
    }
}

/// Offsets of intact batches that Kafka does not return, from the log start on.
fn missing_offsets(case: &Path, loaded: &Value) -> BTreeSet<i64> {
    let mut missing = intact_offsets(case);
    for partition in loaded["partitions"].as_array().unwrap() {
        let start = partition["start"].as_i64().unwrap();
        missing.retain(|offset| *offset >= start);
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

#[test]
#[ignore = "loads logs with Kafka's classes"]
fn kafka_keeps_every_byte_of_what_was_salvaged() {
    if kafka::is_missing() {
        return;
    }
    let all = recorded(&[], |name| !STUCK.contains(&name));
    let mut wrong = String::new();
    for ((case, dir), loaded) in all.iter().zip(load(all.iter().map(|(_, dir)| (dir.result.as_path(), dir)))) {
        let found = losses(dir, &loaded);
        let missing = if found.is_empty() { missing_offsets(case, &loaded) } else { BTreeSet::new() };
        wrong.push_str(&found);
        if !missing.is_empty() {
            writeln!(wrong, "{}: intact, but not returned: {missing:?}", dir.story).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
#[ignore = "loads logs with Kafka's classes"]
fn what_is_repaired_as_a_broker_would_is_what_kafka_leaves() {
    if kafka::is_missing() {
        return;
    }
    // The two logs of one partition, one of them on the move to another disk, end their work in another order.
    let mode = ["--mode", "like-broker", "--kafka-version", "4.4"];
    let all = recorded(&mode, |name| name != "future-directory-leftover");
    let loaded = load(all.iter().map(|(_, dir)| (dir.damaged.path(), dir)));
    let wrong: String = all.iter().zip(&loaded).map(|((_, dir), loaded)| deviations(dir, loaded)).collect();
    assert!(wrong.is_empty(), "{wrong}");
}

/// Where a random campaign begins; `SEGTOOL_SEED` makes another one.
fn runner() -> (u64, TestRunner) {
    let seed = std::env::var("SEGTOOL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let bytes = Sha256::digest(u64::to_be_bytes(seed));
    (seed, TestRunner::new_with_rng(ProptestConfig::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &bytes)))
}

/// Log dirs of random partitions with random damage: story, directory, settings beside it.
fn random(count: usize) -> Vec<(String, Sandbox, PathBuf)> {
    let (seed, mut runner) = runner();
    let damages = vec((any::<Index>(), damage()), 1..4);
    let any_case = (healthy_partition(i64::try_from(RANDOM_NOW_MS).unwrap() - 3_600_000, 40), damages, any::<bool>());
    let make = |number| {
        let (partition, damages, is_clean) = any_case.new_tree(&mut runner).unwrap().current();
        let sandbox = Sandbox::empty();
        LogDir::new([partition]).write(sandbox.path());
        if !is_clean {
            fs::remove_file(sandbox.join(".kafka_cleanshutdown")).unwrap();
            fs::remove_file(sandbox.join("recovery-point-offset-checkpoint")).unwrap();
        }
        let mut story = format!("seed {seed}, number {number}, clean: {is_clean}");
        for (file, damage) in &damages {
            let files = files_below(sandbox.path()).into_iter().filter(|file| is_random_target(file));
            let files: Vec<PathBuf> = files.collect();
            let file = file.get(&files);
            write!(story, ", {} {damage:?}", file.display()).unwrap();
            spoil(&sandbox.join(file), damage);
        }
        let config = sandbox.beside("topic.properties");
        fs::write(&config, "index.interval.bytes=200\nretention.ms=-1\n").unwrap();
        (story, sandbox, config)
    };
    (0..count).map(make).collect()
}

/// Everything but what makes a directory one of this cluster, and what only other parts of a broker read.
fn is_random_target(file: &Path) -> bool {
    let names = ["partition.metadata", "meta.properties", ".lock", ".kafka_cleanshutdown"];
    let of_others = ["replication-offset-checkpoint", "cleaner-offset-checkpoint"];
    !names.iter().chain(&of_others).any(|name| file.ends_with(name))
}

#[test]
#[ignore = "loads logs with Kafka's classes"]
fn kafka_keeps_what_was_salvaged_of_random_damage() {
    if kafka::is_missing() {
        return;
    }
    let repair =
        |(story, sandbox, config): (String, Sandbox, PathBuf)| repaired(story, sandbox, RANDOM_NOW_MS, &config, &[]);
    let all: Vec<Repaired> = random(200).into_iter().map(repair).collect();
    let loaded = load(all.iter().map(|dir| (dir.result.as_path(), dir)));
    let wrong: String = all.iter().zip(&loaded).map(|(dir, loaded)| losses(dir, loaded)).collect();
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
#[ignore = "loads logs with Kafka's classes"]
fn random_damage_is_repaired_as_kafka_does() {
    if kafka::is_missing() {
        return;
    }
    let mode = ["--mode", "like-broker", "--kafka-version", "4.4"];
    let repair =
        |(story, sandbox, config): (String, Sandbox, PathBuf)| repaired(story, sandbox, RANDOM_NOW_MS, &config, &mode);
    let all: Vec<Repaired> = random(200).into_iter().map(repair).collect();
    let loaded = load(all.iter().map(|dir| (dir.damaged.path(), dir)));
    let wrong: String = all.iter().zip(&loaded).map(|(dir, loaded)| deviations(dir, loaded)).collect();
    assert!(wrong.is_empty(), "{wrong}");
}

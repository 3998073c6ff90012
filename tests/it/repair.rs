//! `repair` against what real brokers' recovery leaves, and against what an ideal reader can still find.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::json_contract::{described_fields, fields_of};
use super::support::{DamagedCase, Sandbox, Start, Tree, damaged_case, files_below, packs, run_at};

/// Cases over which no start can be made clean: only the cluster knows what is missing.
const STUCK: [&str; 3] = ["partition-metadata-empty", "partition-metadata-garbage", "partition-metadata-version-1"];

fn repair(case: &DamagedCase, directory: &Path, more: &[&str]) -> super::support::CommandOutput {
    let now = case.now_ms.to_string();
    let config = case.config.to_str().unwrap();
    let flags = ["repair", "--config", config, "--now", &now, "--format", "json"];
    run_at(0, flags.into_iter().chain(more.iter().copied()).chain([directory.to_str().unwrap()]))
}

fn case_names() -> Vec<String> {
    let names = packs::cases("damaged").into_iter().filter(|path| path.join("case.properties").exists());
    names.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

fn severities(findings: &Value) -> BTreeSet<&str> {
    findings.as_array().unwrap().iter().map(|finding| finding["severity"].as_str().unwrap()).collect()
}

fn step_count(plan: &Value) -> usize {
    plan["partitions"].as_array().unwrap().iter().map(|partition| partition["steps"].as_array().unwrap().len()).sum()
}

#[test]
fn every_damage_is_salvaged_beside_the_source_and_a_second_run_changes_nothing() {
    let described = described_fields();
    for name in case_names() {
        let case = damaged_case(&name, Start::Unclean);
        let before = Tree::of(case.sandbox.path());
        let target = case.sandbox.beside("salvaged");
        let output = repair(&case, case.sandbox.path(), &["--output", target.to_str().unwrap()]);
        assert!([0, 1].contains(&output.status), "{name}: {output:?}");
        let plan = output.json();
        let mut fields = BTreeSet::new();
        fields_of(&plan, &mut fields);
        let missing: Vec<_> = fields.difference(&described).collect();
        assert!(missing.is_empty(), "segtool-json(5) does not name {missing:?}");
        for partition in plan["partitions"].as_array().unwrap() {
            let number = |name: &str| partition["accounting"][name].as_u64().unwrap();
            assert_eq!(number("bytes_in"), number("bytes_kept") + number("bytes_quarantined"), "{name}");
            assert!(number("records_kept") <= number("records_in"), "{name}");
        }
        assert_eq!(Tree::of(case.sandbox.path()), before, "{name}: the source has changed");
        if STUCK.contains(&&*name) {
            continue;
        }
        let verified = run_at(0, ["verify", "--format", "json", target.to_str().unwrap()]).json();
        let bad = severities(&verified["findings"]);
        assert!(!bad.contains("error") && !bad.contains("critical"), "{name}: {}", verified["findings"]);
        let again = repair(&case, &target, &[]);
        assert_eq!(step_count(&again.json()), 0, "{name}: {}", again.text());
    }
}

#[test]
fn the_broker_s_own_recovery_is_reproduced() {
    let mut compared = 0;
    for name in case_names() {
        let case = damaged_case(&name, Start::Unclean);
        let after = case.case.join("truth/after-4.4.0-unclean");
        // Two logs of one partition are closed in another way.
        if !after.is_dir() || name == "future-directory-leftover" {
            continue;
        }
        let target = case.sandbox.beside("recovered");
        let flags = ["--mode", "like-broker", "--kafka-version", "4.4", "--output", target.to_str().unwrap()];
        let output = repair(&case, case.sandbox.path(), &flags);
        if output.status == 3 {
            continue;
        }
        compared += 1;
        for partition in output.json()["partitions"].as_array().unwrap() {
            let number = |name: &str| partition["accounting"][name].as_u64().unwrap();
            let dropped = |name: &str| {
                let ranges = partition["set_aside"].as_array().unwrap().iter();
                ranges.map(|range| range[name].as_u64().unwrap()).sum::<u64>()
            };
            assert_eq!(number("bytes_in"), number("bytes_kept") + dropped("size_bytes"), "{name}: {partition}");
            assert_eq!(number("records_in"), number("records_kept") + dropped("records"), "{name}: {partition}");
            assert!(partition["records_lost"].as_u64().unwrap() <= number("records_in"), "{name}: {partition}");
        }
        for file in files_below(&after) {
            let text = file.to_str().unwrap();
            let is_live = text.contains('/') && !text.contains("-delete/") && !text.contains("-stray/");
            let by_meaning = text.ends_with(".snapshot") || text.ends_with("leader-epoch-checkpoint");
            if is_live && !by_meaning {
                let (wanted, found) = (std::fs::read(after.join(&file)).unwrap(), std::fs::read(target.join(&file)));
                assert_eq!(found.unwrap_or_default(), wanted, "{name}: {text}");
            }
        }
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn data_is_lost_only_with_consent_and_what_was_applied_stays_so() {
    let case = damaged_case("flip-record-byte-middle-segment", Start::Clean);
    let before = Tree::of(case.sandbox.path());
    let plan = repair(&case, case.sandbox.path(), &[]).expect_status(1).json();
    assert_eq!(plan["partitions"][0]["gaps"], serde_json::json!([[42, 44]]));
    let refused = repair(&case, case.sandbox.path(), &["--apply"]).expect_status(3);
    assert!(refused.stderr.contains("--accept-loss"), "{}", refused.stderr);
    assert_eq!(Tree::of(case.sandbox.path()), before);
    repair(&case, case.sandbox.path(), &["--apply", "--accept-loss"]).expect_status(0);
    let again = repair(&case, case.sandbox.path(), &["--apply"]).expect_status(0).json();
    assert_eq!(step_count(&again), 0);
}

#[test]
fn the_story_is_told_to_people() {
    let case = damaged_case("flip-record-byte-middle-segment", Start::Clean);
    let output = run_at(0, ["repair", case.sandbox.path().to_str().unwrap()]).expect_status(1);
    for part in ["batch-crc-mismatch", "offsets 42 to 44 are missing", "Another replica", "--accept-loss"] {
        assert!(output.text().contains(part), "{part}: {}", output.text());
    }
}

#[test]
fn a_file_whose_name_stops_every_start_is_taken_away() {
    for name in ["leader-epoch-checkpoint.swap", "notes.cleaned", "x.index", "y.snapshot"] {
        let sandbox = Sandbox::copy_of(&packs::unpacked("damaged").join("clean-bases/plain/dir"));
        sandbox.write(Path::new("plain-0").join(name), b"no number");
        let output =
            run_at(1_760_001_800_000, ["repair", "--apply", "--format", "json", sandbox.path().to_str().unwrap()]);
        let plan = output.expect_status(0).json();
        assert_eq!(plan["partitions"][0]["start"]["outcome"], "unchanged", "{name}: {plan}");
        assert_eq!(plan["partitions"][0]["steps"][0]["reasons"], serde_json::json!(["segment-name-invalid"]), "{name}");
        assert!(!sandbox.join("plain-0").join(name).exists(), "{name}");
    }
}

/// A small generator of numbers, the same for a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound.max(1)).unwrap()).unwrap()
    }
}

fn spoil(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    let at = numbers.below(bytes.len());
    let count = numbers.below(200).min(bytes.len() - at);
    match numbers.below(6) {
        _ if bytes.is_empty() => bytes.extend([0; 20]),
        0 | 1 => bytes[at] ^= 1 << numbers.below(8),
        2 => bytes.truncate(at),
        3 => bytes[at..at + count].fill(0),
        4 => {
            bytes.drain(at..at + count);
        }
        _ => {
            let junk: Vec<u8> = (0..count).map(|_| u8::try_from(numbers.below(256)).unwrap()).collect();
            bytes.splice(at..at, junk);
        }
    }
}

/// The batches of a sound log, by the size that each states.
fn batches_of(log: &[u8]) -> Vec<&[u8]> {
    let (mut batches, mut rest) = (Vec::new(), log);
    while rest.len() >= 12 {
        let size = u32::from_be_bytes(rest[8..12].try_into().unwrap()) as usize + 12;
        batches.push(&rest[..size]);
        rest = &rest[size..];
    }
    batches
}

fn logs_below(directory: &Path) -> Vec<Vec<u8>> {
    let logs = files_below(directory).into_iter().filter(|file| file.extension().is_some_and(|ext| ext == "log"));
    logs.map(|file| std::fs::read(directory.join(file)).unwrap()).collect()
}

fn holds(logs: &[Vec<u8>], batch: &[u8]) -> bool {
    logs.iter().any(|log| log.windows(batch.len()).any(|place| place == batch))
}

fn campaign(seed: u64, runs: usize) {
    let bases = packs::unpacked("damaged").join("clean-bases");
    let names = ["plain", "txn", "legacy-v0", "legacy-v1", "codecs", "gaps", "retained", "idem"];
    let bases: Vec<PathBuf> =
        names.iter().map(|name| bases.join(name).join("dir")).filter(|dir| dir.is_dir()).collect();
    let mut numbers = Numbers(seed);
    for run in 0..runs {
        let base = &bases[numbers.below(bases.len())];
        let sandbox = Sandbox::copy_of(base);
        let source = sandbox.path().to_path_buf();
        let files: Vec<PathBuf> =
            files_below(&source).into_iter().filter(|file| !file.ends_with("partition.metadata")).collect();
        let mut story = format!("seed {seed}, run {run}, {}", base.display());
        for _ in 0..=numbers.below(3) {
            let file = &files[numbers.below(files.len())];
            let mut bytes = std::fs::read(source.join(file)).unwrap();
            spoil(&mut bytes, &mut numbers);
            story.push_str(&format!(", {}", file.display()));
            std::fs::write(source.join(file), bytes).unwrap();
        }
        if numbers.below(2) == 0 {
            let _ = std::fs::remove_file(source.join(".kafka_cleanshutdown"));
        }
        let before = Tree::of(&source);
        let spoiled = logs_below(&source);
        let target = sandbox.beside("target");
        let (from, to) = (source.to_str().unwrap(), target.to_str().unwrap());
        let output = run_at(1_760_001_800_000, ["repair", "--format", "json", "--output", to, from]);
        assert!([0, 1].contains(&output.status), "{story}: {output:?}");
        assert_eq!(Tree::of(&source), before, "{story}");
        for partition in output.json()["partitions"].as_array().unwrap() {
            let outcome = partition["start"]["outcome"].as_str().unwrap();
            assert!(["unchanged", "recovered"].contains(&outcome), "{story}: {}", partition["start"]);
        }
        let kept = logs_below(&target);
        for log in logs_below(base) {
            for batch in batches_of(&log) {
                assert!(!holds(&spoiled, batch) || holds(&kept, batch), "{story}: {:?}", &batch[..12]);
            }
        }
        let verified = run_at(1_760_001_800_000, ["verify", "--format", "json", to]).json();
        let bad = severities(&verified["findings"]);
        assert!(!bad.contains("error") && !bad.contains("critical"), "{story}: {}", verified["findings"]);
        let again = run_at(1_760_001_800_000, ["repair", "--format", "json", to]);
        assert_eq!(step_count(&again.json()), 0, "{story}: {}", again.text());
    }
}

#[test]
fn random_damage_costs_no_intact_batch() {
    campaign(0x5eed_0001, 40);
}

#[test]
#[ignore = "takes minutes; run by .ci/run"]
fn five_hundred_random_damages_cost_no_intact_batch() {
    let clock = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let seed = std::env::var("SEGTOOL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(clock | 1);
    println!("SEGTOOL_SEED={seed}");
    campaign(seed, 500);
}

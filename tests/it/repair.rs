//! `repair` against what real brokers' recovery leaves, and against what an ideal reader can still find.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::json_contract::{described_fields, fields_of};
use super::support::changing::facts;
use super::support::{DamagedCase, Sandbox, Start, Tree, damage, damaged_case, files_below, packs, run_at};

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

/// Where a batch of a log file starts.
fn start_of_batch(log: &Path, number: usize) -> usize {
    let bytes = std::fs::read(log).unwrap();
    let size = |at: usize| 12 + u32::from_be_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
    (0..number).fold(0, |at, _| at + size(at))
}

/// Three segments from 0, 30 and 60 on, with ten batches of three records each.
const LOGS: [&str; 3] = ["00000000000000000000.log", "00000000000000000030.log", "00000000000000000060.log"];

/// How a field that no checksum covers was changed, or a name, and the offsets that this costs.
type Slip = (&'static str, fn(&Path), &'static [(i64, i64)]);

fn rename(directory: &Path, from: &str, to: &str) {
    std::fs::rename(directory.join(from), directory.join(to)).unwrap();
}

fn set_base_offset(directory: &Path, log: usize, batch: usize, offset: i64) {
    let log = directory.join(LOGS[log]);
    damage::overwrite(&log, start_of_batch(&log, batch), &offset.to_be_bytes());
}

const SLIPS: [Slip; 8] = [
    (
        "a leader epoch that is too high",
        |dir| {
            let log = dir.join(LOGS[1]);
            damage::overwrite(&log, start_of_batch(&log, 2) + 12, &1000_i32.to_be_bytes());
        },
        &[(36, 38)],
    ),
    ("the first offset of a file zeroed", |dir| set_base_offset(dir, 2, 0, 0), &[(60, 62)]),
    ("an offset that overlaps the batch before", |dir| set_base_offset(dir, 0, 1, 1), &[(3, 5)]),
    ("an offset beyond the file, in its last batch", |dir| set_base_offset(dir, 0, 9, 1 << 33), &[(27, 29)]),
    (
        "a batch of a later leader behind a hole",
        |dir| {
            std::fs::remove_file(dir.join(LOGS[1])).unwrap();
            let log = dir.join(LOGS[2]);
            let mut batch = std::fs::read(&log).unwrap()[..start_of_batch(&log, 1)].to_vec();
            batch[..8].copy_from_slice(&45_i64.to_be_bytes());
            batch[12..16].copy_from_slice(&1000_i32.to_be_bytes());
            damage::append(&log, &batch);
        },
        &[(30, 59)],
    ),
    ("a name that is too low", |dir| rename(dir, LOGS[2], "00000000000000000001.log"), &[]),
    ("a name that is too high", |dir| rename(dir, LOGS[1], "00000000000000000041.log"), &[]),
    ("a wrong name, marked for deletion", |dir| rename(dir, LOGS[1], "00000000000000000007.log.deleted"), &[]),
];

#[test]
fn what_no_checksum_covers_costs_no_other_batch() {
    let original = packs::unpacked("damaged").join("clean-bases/plain/dir");
    for (what, slip, gaps) in SLIPS {
        let sandbox = Sandbox::copy_of(&original);
        slip(&sandbox.join("plain-0"));
        let target = sandbox.beside("salvaged");
        let paths = [sandbox.path(), &target].map(|path| path.to_str().unwrap().to_owned());
        let output = run_at(0, ["repair", "--format", "json", "--output", &paths[1], &paths[0]]);
        let kept = offsets_in(&target);
        let wanted: Vec<i64> =
            (0..90).filter(|offset| !gaps.iter().any(|(first, last)| (first..=last).contains(&offset))).collect();
        assert_eq!(kept, wanted, "{what}: {output}");
        let verified = run_at(0, ["verify", "--format", "json", &paths[1]]).json();
        let bad = severities(&verified["findings"]);
        assert!(!bad.contains("error") && !bad.contains("critical"), "{what}: {}", verified["findings"]);
    }
}

/// The offsets of all records, in the order of the files.
fn offsets_in(log_dir: &Path) -> Vec<i64> {
    let output = run_at(0, ["dump", "--format", "json", "--payload", "none", log_dir.to_str().unwrap()]);
    let lines = output.json_lines();
    lines.iter().filter(|line| line["type"] == "record").map(|line| line["offset"].as_i64().unwrap()).collect()
}

#[test]
fn the_story_is_told_to_people() {
    let case = damaged_case("flip-record-byte-middle-segment", Start::Clean);
    let output = run_at(0, ["repair", case.sandbox.path().to_str().unwrap()]).expect_status(1);
    for part in ["batch-crc-mismatch", "lost      offsets 42 to 44 in this copy", "Another replica", "--accept-loss"] {
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

#[test]
fn every_kind_of_repair_is_taken_back_to_the_byte() {
    let names = [
        "flip-record-byte-middle-segment",
        "block-of-zeros-over-batches",
        "leftover-swap-replaces-two",
        "leftover-deleted-only-copy",
        "stray-log-short-name",
        "offset-overflow-in-segment",
        "overlap-with-earlier-offsets",
        "epoch-file-nuls",
        "log-start-ahead-of-end",
        "torn-middle-segment",
        "txnindex-zero-entry",
        "snapshots-all-corrupt",
        "tail-4096-zero-bytes-first-segment",
    ];
    for (name, mode) in names.iter().flat_map(|name| ["salvage", "like-broker"].map(|mode| (name, mode))) {
        for start in Start::ALL {
            let case = damaged_case(name, start);
            let before = facts(case.sandbox.path());
            let applied = repair(&case, case.sandbox.path(), &["--mode", mode, "--apply", "--accept-loss"]);
            // A broker that does not start leaves nothing to be like.
            if applied.status == 3 && mode == "like-broker" {
                continue;
            }
            assert!([0, 1].contains(&applied.status), "{name}, {mode}: {applied}");
            let Some(id) = applied.json()["undo_id"].as_str().map(str::to_owned) else { continue };
            assert_ne!(facts(case.sandbox.path()), before, "{name}, {mode}");
            run_at(0, ["undo", &id, case.sandbox.path().to_str().unwrap()]).expect_status(0);
            assert_eq!(facts(case.sandbox.path()), before, "{name}, {mode}");
        }
    }
}

#[test]
fn what_is_put_aside_is_kept_verbatim() {
    for name in ["flip-record-byte-middle-segment", "block-of-zeros-over-batches", "garbage-between-batches"] {
        let case = damaged_case(name, Start::Unclean);
        let target = case.sandbox.beside("salvaged");
        let plan = repair(&case, case.sandbox.path(), &["--output", target.to_str().unwrap()]).json();
        let ranges = plan["partitions"][0]["set_aside"].as_array().unwrap();
        assert!(!ranges.is_empty(), "{name}");
        for range in ranges {
            let path = range["path"].as_str().unwrap();
            let number = |field: &str| usize::try_from(range[field].as_u64().unwrap()).unwrap();
            let (start, end) = (number("position"), number("position") + number("size_bytes"));
            let aside = case.sandbox.beside("salvaged.quarantine").join(format!("{path}@{start}-{end}"));
            let source = std::fs::read(case.sandbox.join(path)).unwrap();
            assert_eq!(std::fs::read(aside).unwrap(), source[start..end], "{name}");
        }
    }
}

#[test]
fn what_was_put_aside_earlier_is_not_written_over() {
    let case = damaged_case("flip-record-byte-middle-segment", Start::Unclean);
    let target = case.sandbox.beside("salvaged");
    let kept = case.sandbox.beside("salvaged.quarantine");
    std::fs::create_dir(&kept).unwrap();
    std::fs::write(kept.join("of another run"), "bytes").unwrap();
    let before = Tree::of(&kept);
    let output = repair(&case, case.sandbox.path(), &["--output", target.to_str().unwrap()]);
    assert!(output.status == 3 && output.stderr.contains("salvaged.quarantine"), "{output}");
    assert!(!target.exists());
    assert_eq!(Tree::of(&kept), before);
}

#[test]
fn a_batch_whose_offset_cannot_be_right_is_missed_where_it_was() {
    let case = damaged_case("flip-base-offset-bit-33", Start::Clean);
    let plan = repair(&case, case.sandbox.path(), &[]).expect_status(1).json();
    assert_eq!(plan["partitions"][0]["gaps"], serde_json::json!([[42, 44]]));
    assert_eq!(plan["partitions"][0]["records_lost"], 3);
}

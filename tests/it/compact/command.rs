//! `segtool compact` as a command: what it prints, what it writes, what it refuses.

use std::fs;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use serde_json::Value;

use super::recording::Recording;
use crate::support::{CommandOutput, Sandbox, Tree, packs, run_at};

/// A recorded round, in a directory of its own.
struct Case {
    recording: Recording,
    sandbox: Sandbox,
}

impl Case {
    fn open(name: &str) -> Self {
        let recording = Recording::open(&packs::case("compaction", name));
        let sandbox = recording.before();
        Self { recording, sandbox }
    }

    /// Runs the command with the settings of the recorded round.
    fn run(&self, more: &[&str]) -> CommandOutput {
        let config = self.sandbox.beside("c.properties");
        fs::write(&config, self.recording.properties()).unwrap();
        let flags = self.recording.flags();
        let flags = flags.iter().filter(|(flag, _)| !more.contains(flag));
        let flags = flags.flat_map(|(flag, value)| [*flag, value.as_str()]);
        let log_dir = self.sandbox.path().to_str().unwrap();
        let fixed = ["compact", log_dir, "--config", config.to_str().unwrap()];
        run_at(0, fixed.into_iter().chain(flags).chain(more.iter().copied()))
    }

    fn output_dir(&self) -> PathBuf {
        self.sandbox.beside("out")
    }

    fn undo(&self, id: &str) -> CommandOutput {
        run_at(0, ["undo", id, self.sandbox.path().to_str().unwrap()])
    }
}

#[test]
fn written_files_have_the_times_that_the_cleaner_leaves() {
    let mut compared = 0;
    for path in packs::cases("compaction") {
        let recording = Recording::open(&path);
        let Some(stats) = recording.stats("4.4.0") else { continue };
        if recording.runs_retention() || stats["eligible"] != true || stats.get("error").is_some() {
            continue;
        }
        let case = Case { sandbox: recording.before(), recording };
        let out = case.output_dir();
        case.run(&["--drop-unkeyed", "--output", out.to_str().unwrap()]).expect_status(0);
        let times = fs::read_to_string(path.join("truth/mtimes-after-4.4.0.tsv")).unwrap();
        for (file, time) in times.lines().filter_map(|line| line.split_once('\t')) {
            let Ok(facts) = fs::metadata(out.join(file)) else { continue };
            let modified = facts.modified().unwrap().duration_since(UNIX_EPOCH).unwrap();
            assert_eq!(modified.as_millis().to_string(), time, "{} {file}", case.recording.name());
            compared += 1;
        }
    }
    assert!(compared > 500, "{compared}");
}

#[test]
fn a_plan_and_an_output_leave_the_source_alone() {
    let case = Case::open("group-segment-bytes-r2");
    let before = Tree::of(case.sandbox.path());
    let plan = case.run(&[]).expect_status(0);
    assert!(plan.text().contains("Cleaning 1 of 1 partitions gives back"), "{plan}");
    before.assert_unchanged(case.sandbox.path());
    let out = case.output_dir();
    case.run(&["--output", out.to_str().unwrap()]).expect_status(0);
    before.assert_unchanged(case.sandbox.path());
    assert!(out.join("cleaner-offset-checkpoint").is_file() && out.join(".kafka_cleanshutdown").is_file());
}

#[test]
fn what_is_applied_is_what_would_be_written_and_can_be_taken_back() {
    for name in ["group-segment-bytes-r2", "txn-abort-r2", "codec-zstd", "v1-gzip", "group-becomes-empty"] {
        let case = Case::open(name);
        let before = Tree::of(case.sandbox.path());
        let out = case.output_dir();
        case.run(&["--output", out.to_str().unwrap()]).expect_status(0);
        let applied = case.run(&["--apply", "--format", "json"]).expect_status(0).json();
        let id = applied["undo_id"].as_str().unwrap().to_owned();
        let (written, changed) = (Tree::of(&out), Tree::of(case.sandbox.path()));
        for (path, entry) in &written.0 {
            let ours = &changed.0[path];
            assert_eq!((&ours.sha256, ours.size_bytes), (&entry.sha256, entry.size_bytes), "{name} {}", path.display());
        }
        let again = case.run(&["--apply", "--format", "json"]).expect_status(0).json();
        assert_eq!(again["undo_id"], Value::Null, "{name}: {again}");
        changed.assert_unchanged(case.sandbox.path());
        case.undo(&id).expect_status(0);
        before.assert_unchanged(case.sandbox.path());
    }
}

#[test]
fn only_the_plan_that_was_looked_at_is_applied() {
    let case = Case::open("latest-per-key");
    let digest = case.run(&["--format", "json"]).expect_status(0).json()["digest"].as_str().unwrap().to_owned();
    let before = Tree::of(case.sandbox.path());
    let other = case.run(&["--apply", "--expect", &digest, "--delete-retention-ms", "7"]).expect_status(3);
    assert!(other.stderr.contains("the plan is not the one expected"), "{other}");
    before.assert_unchanged(case.sandbox.path());
    case.run(&["--apply", "--expect", &digest]).expect_status(0);
}

#[test]
fn records_without_a_key_go_only_when_told() {
    let case = Case::open("null-key");
    let before = Tree::of(case.sandbox.path());
    let plan = case.run(&["--format", "json"]).expect_status(0);
    let blockers = plan.json()["partitions"][0]["blockers"].as_array().unwrap().clone();
    assert!(blockers.iter().any(|blocker| blocker["because"] == "unkeyed-record"), "{blockers:?}");
    assert!(plan.stderr.contains("--drop-unkeyed"), "{plan}");
    let refused = case.run(&["--apply"]).expect_status(3);
    assert!(refused.stderr.contains("without a key"), "{refused}");
    let out = case.output_dir();
    case.run(&["--output", out.to_str().unwrap()]).expect_status(3);
    assert!(!out.exists());
    before.assert_unchanged(case.sandbox.path());
    case.run(&["--apply", "--drop-unkeyed"]).expect_status(0);
}

#[test]
fn what_a_cleaner_dies_of_is_named_and_nothing_is_written() {
    for (name, id) in [("truncated-tail", "batch-torn-tail"), ("v1-last-at-high-watermark", "record-malformed")] {
        let case = Case::open(name);
        let before = Tree::of(case.sandbox.path());
        let plan = case.run(&["--format", "json", "--drop-unkeyed"]).expect_status(1).json();
        assert_eq!(plan["findings"][0]["id"], id, "{name}");
        assert_eq!(plan["partitions"][0]["blockers"][0]["because"], "uncleanable", "{name}");
        assert!(plan["partitions"][0]["uncleanable"]["reason"].is_string(), "{name}");
        case.run(&["--apply", "--drop-unkeyed"]).expect_status(3);
        before.assert_unchanged(case.sandbox.path());
    }
}

#[test]
fn leftovers_of_a_swap_are_left_to_repair() {
    let case = Case::open("latest-per-key");
    case.sandbox.write("orders-0/00000000000000000000.log.cleaned", b"");
    for more in [&[][..], &["--apply"], &["--explain"]] {
        let refused = case.run(more).expect_status(3);
        assert!(refused.stderr.contains("segtool repair"), "{refused}");
    }
}

#[test]
fn little_memory_means_more_rounds_and_is_said() {
    let case = Case::open("latest-per-key");
    let small = ["--log-cleaner-dedupe-buffer-size", "48", "--log-cleaner-io-buffer-load-factor", "1"];
    let one = case.run(&small).expect_status(0);
    assert!(one.text().contains("a full map") && one.stderr.contains("--until-clean"), "{one}");
    let rounds = |output: &CommandOutput| output.json()["partitions"][0]["rounds"].as_array().unwrap().len();
    let until_clean = case.run(&[&small[..], &["--until-clean", "--format", "json"]].concat()).expect_status(0);
    assert!(rounds(&until_clean) > 1, "{until_clean}");
    let tiny = case.run(&["--log-cleaner-dedupe-buffer-size", "24"]).expect_status(3);
    assert!(tiny.stderr.contains("too few for an offset map"), "{tiny}");
}

#[test]
fn an_explanation_says_what_a_round_would_give_back() {
    let case = Case::open("ratio-exactly-half");
    let explained = case.run(&["--explain", "--format", "json"]).expect_status(0).json();
    let partition = &explained["partitions"][0];
    assert_eq!(partition["steps"].as_array().unwrap().len(), 0, "{partition}");
    assert_eq!(partition["dirty_ratio"], 0.5);
    assert_eq!(
        (&partition["if_cleaned"]["bytes_before"], &partition["if_cleaned"]["bytes_after"]),
        (&210.into(), &105.into())
    );
    assert_eq!(partition["segments"][0]["dropped"]["superseded"], 2);
    let because: Vec<&str> =
        partition["blockers"].as_array().unwrap().iter().map(|b| b["because"].as_str().unwrap()).collect();
    assert_eq!(because, ["dirty-ratio", "active-segment"]);
    let plain = case.run(&["--format", "json"]).expect_status(0).json();
    assert_eq!(plain["partitions"][0]["if_cleaned"], Value::Null);
}

#[test]
fn an_explanation_says_when_tombstones_may_go() {
    let case = Case::open("tombstone-r2");
    let explained = case.run(&["--explain", "--format", "json"]).expect_status(0).json();
    let segments = explained["partitions"][0]["segments"].as_array().unwrap();
    let waiting: Vec<&Value> = segments.iter().map(|segment| &segment["tombstones"]).collect();
    let kept: u64 = waiting.iter().map(|tombstones| tombstones["kept"].as_u64().unwrap()).sum();
    assert!(kept > 0 && waiting.iter().any(|t| t["removable"][0]["at_ms"].is_i64()), "{explained}");
    let text = case.run(&["--explain"]).expect_status(0);
    assert!(text.text().contains("tombstones stay; removable:"), "{text}");
}

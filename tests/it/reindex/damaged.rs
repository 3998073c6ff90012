//! Damaged log dirs: what is wrong with indexes and snapshots is made good in place, and comes back with `undo`.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;

use rayon::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use super::rebuilt::is_derived;
use crate::json_contract::{described_fields, fields_of};
use crate::support::{CommandOutput, DamagedCase, Start, Tree, damaged_case, packs, run_at};

/// Cases in which something other than an index or a snapshot is wrong that keeps one of them wrong.
const NOT_OURS: [&str; 10] = [
    "garbage-between-batches",
    "index-missing-and-bad-batch",
    "leftover-index-swaps",
    "log-file-is-a-directory",
    "non-transactional-batch-in-open-transaction",
    "recovery-point-ahead-and-torn-tail",
    "snapshot-bad-name",
    "torn-middle-segment",
    "txn-open-flip-record-byte",
    "zeros-between-batches",
];

fn reindex(case: &DamagedCase, more: &[&str]) -> CommandOutput {
    let now = case.now_ms.to_string();
    let config = case.config.to_str().unwrap();
    let flags = ["reindex", "--format", "json", "--config", config, "--now", &now];
    let path = case.sandbox.path().to_str().unwrap();
    run_at(case.now_ms.try_into().unwrap(), flags.into_iter().chain(more.iter().copied()).chain([path]))
}

/// What is wrong with indexes and snapshots, by `verify`.
fn wrong_files(case: &DamagedCase) -> BTreeSet<(String, String)> {
    let path = case.sandbox.path().to_str().unwrap();
    let report = run_at(case.now_ms.try_into().unwrap(), ["verify", "--level", "crc", "--format", "json", path]).json();
    let findings = report["findings"].as_array().unwrap().iter();
    findings
        .filter(|finding| finding["severity"] != "info" && finding["path"].as_str().is_some_and(is_derived))
        .map(|finding| (finding["path"].as_str().unwrap().to_owned(), finding["id"].as_str().unwrap().to_owned()))
        .collect()
}

fn step_paths(plan: &Value) -> BTreeSet<String> {
    let partitions = plan["partitions"].as_array().unwrap().iter();
    let steps = partitions.flat_map(|partition| partition["steps"].as_array().unwrap());
    steps.map(|step| step["path"].as_str().unwrap().to_owned()).collect()
}

/// Applies and undoes; whether there was anything to do.
fn is_mended_and_undone(name: &str, start: Start) -> bool {
    let case = damaged_case(name, start);
    let wrong = wrong_files(&case);
    if wrong.is_empty() || NOT_OURS.contains(&name) {
        return false;
    }
    let context = format!("{name}, {start:?}: {wrong:?}");
    let before = Tree::of(case.sandbox.path());
    let directory_time = std::fs::metadata(case.sandbox.path()).unwrap().mtime();
    let plan = reindex(&case, &[]);
    assert_eq!(plan.status, 1, "{context}\n{plan}");
    before.assert_unchanged(case.sandbox.path());
    let planned = step_paths(&plan.json());
    assert!(wrong.iter().all(|(path, _)| planned.contains(path)), "{context}\n{plan}");
    let applied = reindex(&case, &["--apply"]);
    let document = applied.json();
    let has_findings = document["findings"].as_array().unwrap().iter().any(|f| f["severity"] != "info");
    assert_eq!(applied.status, i32::from(has_findings), "{context}\n{applied}");
    assert_eq!(step_paths(&document), planned, "{context}");
    assert_eq!(wrong_files(&case), BTreeSet::new(), "{context}\n{applied}");
    assert_eq!(step_paths(&reindex(&case, &[]).json()), BTreeSet::new(), "{context}: there is still work");
    // Nothing but indexes and snapshots was touched.
    let after = Tree::of(case.sandbox.path());
    let is_other = |path: &std::path::Path| !is_derived(path.to_str().unwrap());
    let others = |tree: &Tree| tree.0.clone().into_iter().filter(|(path, _)| is_other(path)).collect::<Vec<_>>();
    assert_eq!(others(&before), others(&after), "{context}");
    let log_dir = case.sandbox.path().to_str().unwrap();
    run_at(0, ["undo", document["undo_id"].as_str().unwrap(), log_dir]).expect_status(0);
    before.assert_unchanged(case.sandbox.path());
    assert_eq!(std::fs::metadata(case.sandbox.path()).unwrap().mtime(), directory_time, "{context}");
    true
}

#[test]
fn everything_wrong_with_indexes_and_snapshots_is_made_good_in_place_and_undone_to_the_byte() {
    let cases = packs::cases("damaged");
    let mended = cases.par_iter().enumerate().map(|(number, path)| {
        let name = path.file_name().unwrap().to_str().unwrap();
        // What a stop leaves differs little: half of the cases each way, and those that are about the end of the log both ways.
        let is_about_the_end = ["last", "newest", "torn", "all"].iter().any(|word| name.contains(word));
        let starts = [Start::Clean, Start::Unclean].into_iter().enumerate();
        let chosen = starts.filter(|(index, _)| is_about_the_end || number % 2 == *index);
        chosen.filter(|(_, start)| is_mended_and_undone(name, *start)).count()
    });
    let mended: usize = mended.sum();
    assert!(mended > 50, "{mended}");
}

#[test]
fn nothing_is_made_at_interior_damage_or_behind_it_and_other_partitions_go_on() {
    let case = damaged_case("index-missing-and-bad-batch", Start::Clean);
    // A second partition, sound but for an index.
    let (damaged, sound) = (case.sandbox.join("plain-0"), case.sandbox.join("plain-1"));
    std::fs::create_dir(&sound).unwrap();
    crate::support::copy_tree(&packs::case("damaged", "index-missing-first-segment").join("dir/plain-0"), &sound);
    for base in ["00000000000000000000", "00000000000000000060"] {
        std::fs::write(damaged.join(format!("{base}.index")), [1]).unwrap();
    }
    let applied = reindex(&case, &["--apply"]);
    assert_eq!(applied.status, 1, "{applied}");
    let paths = step_paths(&applied.json());
    let expected = ["plain-0/00000000000000000000.index", "plain-1/00000000000000000000.index"];
    assert_eq!(paths.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{applied}");
    let findings = applied.json()["findings"].to_string();
    assert!(findings.contains("batch-crc-mismatch") && findings.contains("offset-index-missing"), "{findings}");
    let everything = reindex(&case, &["--all", "--snapshots"]).json();
    let at_damage =
        |path: &String| path.contains("plain-0/00000000000000000030") || path.contains("plain-0/00000000000000000060");
    let behind: Vec<String> = step_paths(&everything).into_iter().filter(at_damage).collect();
    assert_eq!(behind, Vec::<String>::new());
}

#[test]
fn leftovers_of_a_swap_are_refused_and_the_hint_is_repair() {
    let case = damaged_case("leftover-swap-replaces-two", Start::Unclean);
    let before = Tree::of(case.sandbox.path());
    for more in [&[][..], &["--apply"]] {
        let refused = reindex(&case, more);
        assert_eq!(refused.status, 3, "{refused}");
        assert!(refused.stderr.contains("segtool repair"), "{refused}");
        before.assert_unchanged(case.sandbox.path());
    }
}

#[test]
fn an_old_segment_gets_a_time_index_only_where_all_are_made() {
    let case = damaged_case("v0-torn", Start::Unclean);
    let directory = case.sandbox.path().read_dir().unwrap().map(|entry| entry.unwrap().path()).find(|p| p.is_dir());
    let directory = directory.unwrap();
    for file in directory.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_some_and(|extension| extension == "timeindex") {
            std::fs::remove_file(file).unwrap();
        }
    }
    let has_time_index = |plan: &Value| step_paths(plan).iter().any(|path| path.ends_with(".timeindex"));
    assert!(!has_time_index(&reindex(&case, &[]).json()));
    assert!(has_time_index(&reindex(&case, &["--all"]).json()));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there to be parsed")]
struct Document {
    schema_version: u32,
    r#type: String,
    mode: String,
    kafka_version: String,
    recorded: bool,
    digest: Option<String>,
    undo_id: Option<String>,
    complete: bool,
    partitions: Vec<PlannedPartition>,
    findings: Vec<Value>,
    summary: Summary,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there to be parsed")]
struct PlannedPartition {
    log_dir: String,
    topic: String,
    partition: i32,
    steps: Vec<Step>,
    accounting: Value,
    gaps: Vec<(i64, i64)>,
    blockers: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there to be parsed")]
struct Step {
    action: String,
    path: String,
    size_before: Option<u64>,
    size_after: Option<u64>,
    reasons: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there to be parsed")]
struct Summary {
    files_written: u64,
    files_removed: u64,
    bytes_written: u64,
    records_lost: u64,
}

#[test]
fn the_document_has_the_fields_that_are_described_and_no_other() {
    let described = described_fields();
    for (name, more) in [
        ("index-missing-and-bad-batch", &[][..]),
        ("orphan-index-files", &["--apply"]),
        ("txnindex-missing", &["--all"]),
    ] {
        let output = reindex(&damaged_case(name, Start::Clean), more);
        let document: Document = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output}"));
        assert_eq!((document.r#type.as_str(), document.undo_id.is_some()), ("reindex", more == ["--apply"]));
        let mut fields = BTreeSet::new();
        fields_of(&output.json(), &mut fields);
        let missing: Vec<_> = fields.difference(&described).collect();
        assert!(missing.is_empty(), "segtool-json(5) does not name {missing:?}");
    }
}

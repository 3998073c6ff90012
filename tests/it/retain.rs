//! `retain` against what real brokers' retention deleted.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;

use super::support::{CommandOutput, Sandbox, Tree, damaged_case, packs, run_at, set_modified};

/// A copy of a case's directory with the times it had, and the flags of the recorded run.
struct Case {
    sandbox: Sandbox,
    params: Value,
    path: PathBuf,
}

fn read_json(path: &Path) -> Option<Value> {
    std::fs::read(path).ok().map(|bytes| serde_json::from_slice(&bytes).unwrap())
}

fn case(path: &Path) -> Case {
    let sandbox = Sandbox::copy_of(&path.join("before"));
    for line in std::fs::read_to_string(path.join("truth/mtimes-before.tsv")).unwrap().lines() {
        let (file, ms) = line.split_once('\t').unwrap();
        let ms = ms.split('\t').next().unwrap().parse().unwrap();
        if sandbox.join(file).exists() {
            set_modified(&sandbox.join(file), UNIX_EPOCH + Duration::from_millis(ms));
        }
    }
    Case { sandbox, params: read_json(&path.join("truth/params.json")).unwrap(), path: path.to_path_buf() }
}

impl Case {
    fn run(&self, version: &str, more: &[&str]) -> CommandOutput {
        let config: String = self.params["config"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(key, value)| format!("{key}={}\n", value.as_str().unwrap()))
            .collect();
        let file = self.sandbox.beside("topic.properties");
        std::fs::write(&file, config).unwrap();
        let number = |name: &str| self.params[name].to_string();
        let flags = [
            ("--kafka-version", version.to_owned()),
            ("--config", file.to_str().unwrap().to_owned()),
            ("--now", number("now")),
            ("--high-watermark", number("high_watermark")),
            ("--log-start-offset", number("log_start_offset")),
        ];
        let flags = flags.iter().flat_map(|(flag, value)| [*flag, value.as_str()]);
        let path = self.sandbox.path().to_str().unwrap();
        run_at(0, ["retain", path].into_iter().chain(flags).chain(more.iter().copied()))
    }
}

fn bases(segments: &Value, name: &str) -> BTreeSet<i64> {
    segments.as_array().unwrap().iter().map(|segment| segment[name].as_i64().unwrap()).collect()
}

#[test]
fn every_recorded_retention_is_planned_for_every_version() {
    let mut runs = 0;
    for path in packs::cases("retention") {
        let case = case(&path);
        let before = Tree::of(case.sandbox.path());
        for version in ["4.4.0", "4.3.1", "3.9.1", "2.8.2"] {
            let Some(truth) = read_json(&case.path.join(format!("truth/result-{version}.json"))) else { continue };
            runs += 1;
            let output = case.run(version, &["--format", "json"]).expect_status(0);
            let json = output.json();
            let partition = &json["partitions"][0];
            let deleted = |wanted: bool| {
                let segments = partition["segments"].as_array().unwrap().iter();
                let chosen = segments.filter(|segment| segment["deleted"] == wanted);
                chosen.map(|segment| segment["base_offset"].as_i64().unwrap()).collect::<BTreeSet<_>>()
            };
            let gone: BTreeSet<i64> =
                truth["deleted_bases"].as_array().unwrap().iter().map(|base| base.as_i64().unwrap()).collect();
            assert_eq!(deleted(true), gone, "{} {version}", path.display());
            let mut left = deleted(false);
            left.extend(partition["rolled_segment"].as_i64());
            assert_eq!(left, bases(&truth["segments_after"], "base"), "{} {version}", path.display());
            assert_eq!(partition["log_start_offset"], truth["log_start_offset_after"], "{} {version}", path.display());
            let believed = |segments: &Value, base: &str, time: &str| {
                let rows = segments.as_array().unwrap().iter();
                rows.map(|row| (row[base].as_i64().unwrap(), row[time].as_i64().unwrap())).collect::<BTreeSet<_>>()
            };
            let ours = believed(&partition["segments"], "base_offset", "largest_timestamp_ms");
            let theirs = believed(&truth["segments_before"], "base", "largest_timestamp");
            assert_eq!(ours, theirs, "{} {version}", path.display());
        }
        before.assert_unchanged(case.sandbox.path());
    }
    assert!(runs >= 100, "{runs} recorded runs");
}

#[test]
fn the_files_of_a_deleted_segment_go_and_the_epochs_follow() {
    let case = case(&packs::case("retention", "all-three-reasons"));
    let json = case.run("4.4.0", &["--format", "json"]).json();
    let steps = json["partitions"][0]["steps"].as_array().unwrap();
    let of = |action: &str| {
        let chosen = steps.iter().filter(|step| step["action"] == action);
        chosen.map(|step| step["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of("remove").len(), 19, "{steps:?}");
    assert_eq!(of("replace"), ["orders-0/leader-epoch-checkpoint"]);
    let reasons = |path: &str| {
        let step = steps.iter().find(|step| step["path"] == path).unwrap();
        step["reasons"][0].as_str().unwrap().to_owned()
    };
    assert_eq!(reasons("orders-0/00000000000000000000.log"), "log_start_offset");
    assert_eq!(reasons("orders-0/00000000000000000004.log"), "retention_bytes");
    assert_eq!(reasons("orders-0/00000000000000000016.log"), "retention_ms");
    let accounting = &json["partitions"][0]["accounting"];
    assert_eq!((accounting["bytes_in"].as_u64(), accounting["bytes_kept"].as_u64()), (Some(1375), Some(125)));
    assert_eq!(accounting["records_in"].as_u64(), Some(22));
    assert_eq!(accounting["dropped"]["retention"].as_u64(), Some(20));
}

#[test]
fn an_expired_active_segment_is_rolled_first() {
    let case = case(&packs::case("retention", "time-single-active-expired"));
    let json = case.run("4.4.0", &["--format", "json"]).json();
    let steps = json["partitions"][0]["steps"].as_array().unwrap();
    let created: Vec<&str> = steps
        .iter()
        .filter(|step| step["action"] == "create")
        .map(|step| step["path"].as_str().unwrap().rsplit_once('.').unwrap().1)
        .collect();
    assert_eq!(created, ["index", "log", "timeindex"], "the snapshot at the log end is there already");
}

#[test]
fn explanations_say_when_a_segment_can_go_and_what_blocks_it() {
    let case = case(&packs::case("retention", "time-future-blocks"));
    let json = case.run("4.4.0", &["--format", "json"]).json();
    let partition = &json["partitions"][0];
    let blockers = partition["blockers"].as_array().unwrap();
    assert_eq!(blockers.len(), 1, "{blockers:?}");
    assert_eq!(blockers[0]["because"], "future-timestamp");
    let retention: i64 = case.params["config"]["retention.ms"].as_str().unwrap().parse().unwrap();
    let mut latest = i64::MIN;
    for segment in partition["segments"].as_array().unwrap() {
        latest = latest.max(segment["largest_timestamp_ms"].as_i64().unwrap() + retention + 1);
        assert_eq!(segment["removable_at_ms"], latest);
    }
    let text = case.run("4.4.0", &["--explain"]);
    assert!(text.text().contains("blocked by future-timestamp"), "{text}");
    assert!(text.text().contains("stays, behind_kept"), "{text}");
}

#[test]
fn leftovers_of_a_swap_are_refused_with_a_hint() {
    let case = damaged_case("leftover-swap-replaces-two", super::support::Start::Clean);
    let output = run_at(0, ["retain", case.sandbox.path().to_str().unwrap()]).expect_status(3);
    assert!(output.stderr.contains("segtool repair"), "{output}");
    assert!(output.stdout.is_empty());
}

#[test]
fn the_document_has_the_fields_that_are_described() {
    let described = super::json_contract::described_fields();
    for name in ["all-three-reasons", "time-future-blocks", "time-single-active-expired"] {
        let json = case(&packs::case("retention", name)).run("4.4.0", &["--format", "json"]).json();
        let mut fields = BTreeSet::new();
        super::json_contract::fields_of(&json, &mut fields);
        let missing: Vec<_> = fields.difference(&described).collect();
        assert!(missing.is_empty(), "segtool-json(5) does not name {missing:?}");
    }
}

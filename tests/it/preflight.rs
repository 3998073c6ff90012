//! `preflight` against what real brokers did: the recorded starts of 2.8.2, 3.9.1 and 4.4.0 over damaged log dirs.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;

use segtool::format::{TimestampMs, Uuid};
use segtool::logdir::{IoMode, LogDir};
use segtool::ops::broker::index_rules::IndexSettings;
use segtool::ops::broker::retention::RetentionSettings;
use segtool::ops::broker::{FailureKind, RecordFormat};
use segtool::ops::preflight::{Options, Outcome, PartitionReport, Report, StartInput, StartSettings, inspect};
use segtool::ops::{Hidden, PartitionImage};
use serde_json::Value;

use super::support::{DamagedCase, Start, damaged_case, packs, sha256_hex};

const VERSIONS: [&str; 3] = ["4.4.0", "3.9.1", "2.8.2"];

/// The prediction for a damaged case, by a broker of this version.
fn predict(case: &DamagedCase, version: &str) -> Report {
    let setting = |name: &str| case.properties.get(&format!("config.{name}"));
    let number = |name: &str| setting(name).and_then(|value| value.parse().ok());
    let retention_ms = setting("retention.ms").map(|value| value.parse::<i64>().unwrap()).filter(|limit| *limit >= 0);
    let is_legacy = setting("message.format.version").is_some_and(|version| version.starts_with("0."));
    let defaults = IndexSettings::default();
    let mut options = Options::at(TimestampMs(i64::try_from(case.now_ms).unwrap()));
    options.version = version.parse().unwrap();
    options.settings = StartSettings {
        index: IndexSettings {
            interval_bytes: number("index.interval.bytes").unwrap_or(defaults.interval_bytes),
            segment_index_bytes: number("segment.index.bytes").unwrap_or(defaults.segment_index_bytes),
        },
        record_format: if is_legacy { RecordFormat::Legacy } else { RecordFormat::Current },
        retention: RetentionSettings { retention_ms, ..RetentionSettings::default() },
        ..StartSettings::default()
    };
    let ids = case.properties.iter().filter_map(|(key, id)| Some((key.strip_prefix("topic.id.")?, id)));
    options.topic_ids = ids.map(|(topic, id)| (topic.to_owned(), Uuid::parse(id).unwrap())).collect();
    inspect_dir(case.sandbox.path(), &options)
}

fn inspect_dir(path: &Path, options: &Options) -> Report {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let inputs = [StartInput { log_dir: LogDir::open(path).unwrap(), only: None }];
    inspect(&inputs, &[], options, &pool, &Hidden).unwrap()
}

/// Every recorded start: case, version, start, verdict.
fn recorded_starts(mut judge: impl FnMut(&DamagedCase, &str, Start, &Value)) {
    for case in packs::cases("damaged") {
        let name = case.file_name().unwrap().to_str().unwrap();
        for start in Start::ALL {
            let verdicts: Vec<(&str, Value)> = VERSIONS
                .into_iter()
                .filter_map(|version| {
                    let path = case.join(format!("truth/{version}-{}.json", start.variant()));
                    let bytes = std::fs::read(path).ok()?;
                    Some((version, serde_json::from_slice(&bytes).unwrap()))
                })
                .collect();
            if verdicts.is_empty() {
                continue;
            }
            let damaged = damaged_case(name, start);
            for (version, verdict) in &verdicts {
                judge(&damaged, version, start, verdict);
            }
        }
    }
}

fn fatal_of(report: &Report) -> &'static str {
    match report.fatal.as_ref().map(|fatal| fatal.kind) {
        None => "loaded",
        Some(FailureKind::StartFails) => "startup-fails",
        Some(FailureKind::LogDirOffline) => "log-dir-offline",
    }
}

fn served(report: &Report) -> Vec<&PartitionReport> {
    let is_served = |p: &&PartitionReport| !p.is_future && !matches!(p.outcome, Outcome::Deleted | Outcome::Stray);
    report.partitions.iter().filter(is_served).collect()
}

/// What differs between a prediction and what the broker did.
fn differences(report: &Report, verdict: &Value) -> Vec<String> {
    let mut differences = Vec::new();
    let outcome = verdict["outcome"].as_str().unwrap();
    if fatal_of(report) != outcome {
        differences.push(format!("{} instead of {outcome}", fatal_of(report)));
    }
    if let Some(second) = verdict.get("secondStart") {
        let fails_again = second["outcome"] != "loaded";
        if report.fatal.as_ref().map(|fatal| fatal.every_start) != Some(fails_again) {
            differences.push(format!("every start: not {fails_again}"));
        }
    }
    if outcome != "loaded" {
        return differences;
    }
    let offsets = |p: &PartitionReport| (p.log_start_offset.0, p.log_end_offset_after.0);
    let predicted: BTreeMap<String, (i64, i64)> =
        served(report).into_iter().map(|p| (p.topic_partition.to_string(), offsets(p))).collect();
    let of_verdict = |p: &Value| (p["logStartOffset"].as_i64().unwrap(), p["logEndOffset"].as_i64().unwrap());
    let actual: BTreeMap<String, (i64, i64)> = verdict["partitions"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|p| !p["directory"].as_str().unwrap().ends_with("-future"))
        .map(|p| (p["partition"].as_str().unwrap().to_owned(), of_verdict(p)))
        .collect();
    if predicted != actual {
        differences.push(format!("log start and end {predicted:?}, broker {actual:?}"));
    }
    // With its own copy in the same log dir the recorder closed only one of the two.
    let is_twice = report.partitions.iter().any(|partition| partition.is_future);
    for partition in served(report).into_iter().filter(|_| !is_twice) {
        let image = partition.image.as_ref().unwrap();
        differences.extend(file_differences(image, &partition.dir_name, verdict));
    }
    differences
}

/// Files of the image against those that the broker left after an orderly stop, names, sizes and bytes.
fn file_differences(image: &PartitionImage, directory: &OsStr, verdict: &Value) -> Vec<String> {
    let prefix = format!("{}/", directory.to_str().unwrap());
    let is_gone = |name: &str| name.ends_with(".deleted") || name.ends_with('/');
    let actual: BTreeMap<&str, (u64, &str)> = verdict["filesAfter"]
        .as_object()
        .unwrap()
        .iter()
        .filter_map(|(path, facts)| Some((path.strip_prefix(&prefix)?, facts)))
        .filter(|(name, _)| !name.is_empty() && !is_gone(name))
        .map(|(name, facts)| (name, (facts[0].as_u64().unwrap(), facts[1].as_str().unwrap())))
        .collect();
    let mut differences = Vec::new();
    let predicted: BTreeSet<String> = image.files().map(|(name, _)| name.to_str().unwrap().to_owned()).collect();
    let names: BTreeSet<&str> = predicted.iter().map(String::as_str).chain(actual.keys().copied()).collect();
    for name in names {
        let found = predicted.contains(name).then(|| {
            let bytes = image.open(OsStr::new(name), IoMode::Pread).unwrap().read_whole(u64::MAX).unwrap();
            (bytes.len() as u64, sha256_hex(&bytes)[..16].to_owned())
        });
        match (&found, actual.get(name)) {
            (Some((size, hash)), Some((actual_size, actual_hash))) if size == actual_size && hash == actual_hash => {}
            (found, actual) => differences.push(format!("{name}: {found:?}, broker {actual:?}")),
        }
    }
    differences
}

#[test]
fn every_recorded_start_is_predicted_file_by_file() {
    let mut wrong = Vec::new();
    let mut starts = 0;
    recorded_starts(|case, version, start, verdict| {
        starts += 1;
        let report = predict(case, version);
        assert_eq!(report.unreadable.len(), 0);
        let differences = differences(&report, verdict);
        if !differences.is_empty() {
            let name = case.case.file_name().unwrap().to_str().unwrap();
            wrong.push(format!("{name} {version} {}: {}", start.variant(), differences.join("; ")));
        }
    });
    assert!(starts > 1500, "{starts} recorded starts");
    assert!(wrong.is_empty(), "{} of {starts} starts:\n{}", wrong.len(), wrong.join("\n"));
}

//! `preflight` against what real brokers did: the recorded starts of 2.8.2, 3.9.1 and 4.4.0 over damaged log dirs.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;

use segtool::format::{TimestampMs, Uuid};
use segtool::logdir::{IoMode, LogDir};
use segtool::ops::broker::index_rules::IndexSettings;
use segtool::ops::broker::load::Shutdown;
use segtool::ops::broker::retention::RetentionSettings;
use segtool::ops::broker::{FailureKind, RecordFormat};
use segtool::ops::preflight::{Options, Outcome, PartitionReport, Report, Scope, StartInput, StartSettings, inspect};
use segtool::ops::{Hidden, PartitionImage};
use serde_json::Value;

use super::support::{DamagedCase, Start, damage, damaged_case, packs, run_at, sha256_hex};

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
    let inputs = [StartInput { log_dir: LogDir::open(path).unwrap(), scope: Scope::Whole }];
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
        differences.extend(retention_differences(partition, verdict));
    }
    differences
}

/// How many segments the first pass of retention deletes, where that was recorded.
fn retention_differences(partition: &PartitionReport, verdict: &Value) -> Option<String> {
    let reads = verdict.get("reads")?.as_array()?;
    let name = partition.topic_partition.to_string();
    let read = reads.iter().find(|read| read["partition"] == name.as_str())?;
    let deleted = usize::try_from(read.get("retention")?.get("deletedSegments")?.as_u64()?).unwrap();
    let predicted = partition.retention_deletes.len();
    (predicted != deleted).then(|| format!("retention deletes {predicted} segments, broker {deleted}"))
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

#[test]
fn records_lost_are_those_that_were_sound_and_can_no_longer_be_fetched() {
    let lost = |name: &str, start: Start| {
        let report = predict(&damaged_case(name, start), "4.4.0");
        let partition = &report.partitions[0];
        (partition.records_lost, partition.log_end_offset_before.0, partition.log_end_offset_after.0)
    };
    // 42 to 44 are in the damaged batch; the broker also cuts 45 to 59 and deletes the segment from 60 on.
    assert_eq!(lost("flip-crc", Start::Unclean), (45, 90, 42));
    assert_eq!(lost("flip-crc", Start::Clean), (0, 90, 90));
    // A clean start believes the index, and hides what lies between its wrong end and the real one.
    assert_eq!(lost("recovery-point-ahead-and-torn-tail", Start::Clean), (27, 87, 60));
    assert_eq!(lost("duplicate-batch-at-end", Start::Clean), (30, 90, 60));
    assert_eq!(lost("log-start-ahead-of-end", Start::Clean), (90, 90, 400));
    // Below the log start nothing can be lost any more.
    assert_eq!(lost("log-start-ahead-after-truncation", Start::Unclean), (53, 90, 37));
    assert_eq!(lost("leftover-deleted-only-copy", Start::Unclean), (30, 90, 90));
    assert_eq!(lost("leftover-swap-shorter-than-group", Start::Clean), (18, 90, 90));
    assert_eq!(lost("offset-overflow-in-segment", Start::Unclean), (0, 2_147_483_713, 2_147_483_713));
}

#[test]
fn reasons_name_what_the_broker_stumbles_over() {
    for (name, start, expected) in [
        ("torn-middle-segment", Start::Unclean, "batch-torn-tail"),
        ("length-zero", Start::Unclean, "batch-length-invalid"),
        ("tail-17-zero-bytes-middle-segment", Start::Unclean, "log-zero-tail"),
        ("log-start-ahead-of-end", Start::Clean, "log-start-beyond-log-end"),
        ("index-missing-first-segment", Start::Clean, "offset-index-missing"),
        ("timeindex-padded-1-entry-first-segment", Start::Clean, "time-index-zero-padded"),
        ("epoch-file-nuls", Start::Clean, "leader-epoch-malformed"),
        ("stray-directory-lost-found", Start::Clean, "stray-directory"),
        ("recovery-point-nuls", Start::Clean, "checkpoint-malformed"),
        ("non-transactional-batch-in-open-transaction", Start::Clean, "transaction-foreign-batch"),
        ("txnindex-version-256", Start::Clean, "txn-index-version-unknown"),
        ("partition-metadata-other-id", Start::Clean, "topic-id-conflict"),
        ("stray-log-name-not-a-number", Start::Clean, "segment-name-invalid"),
        ("tail-1-stray-byte", Start::Clean, "log-trailing-bytes"),
    ] {
        let report = predict(&damaged_case(name, start), "4.4.0");
        let of_fatal = report.fatal.iter().map(|fatal| fatal.reason);
        let reasons: Vec<&str> = report
            .partitions
            .iter()
            .flat_map(|partition| partition.reasons.iter().copied())
            .chain(of_fatal)
            .map(segtool::ops::FindingId::as_str)
            .collect();
        assert!(reasons.contains(&expected), "{name}: {reasons:?}");
    }
}

#[test]
fn a_padded_time_index_makes_retention_delete_young_records() {
    let report = predict(&damaged_case("timeindex-padded-all-closed-segments", Start::Clean), "4.4.0");
    let partition = &report.partitions[0];
    assert_eq!(partition.records_lost, 0);
    assert!(partition.records_misled() >= 60, "{:?}", partition.retention_deletes);
    assert_eq!(report.summary.records_misled, partition.records_misled());
}

/// Seen of 2.8.2, 3.9.1 and 4.4.0: the search begins at the start of the file and finds no batch that reaches the entry's offset.
#[test]
fn after_a_clean_stop_an_index_entry_with_a_negative_position_moves_the_log_end_to_the_base() {
    for version in VERSIONS {
        let case = damaged_case("index-random-bytes", Start::Clean);
        let index = case.sandbox.join("plain-0/00000000000000000060.index");
        std::fs::write(index, [1000_i32.to_be_bytes(), (-691_366_397_i32).to_be_bytes()].concat()).unwrap();
        let report = predict(&case, version);
        assert_eq!(fatal_of(&report), "loaded", "{version}");
        assert_eq!(served(&report)[0].log_end_offset_after.0, 60, "{version}");
    }
}

/// Seen of 2.8.2 and 3.9.1; 3.8 is the first that removes the file unread.
#[test]
fn a_malformed_epoch_file_beside_a_legacy_log_matters_to_brokers_that_read_it() {
    for (version, outcome) in
        [("2.8.2", "startup-fails"), ("3.7", "log-dir-offline"), ("3.8", "loaded"), ("3.9.1", "loaded")]
    {
        let case = damaged_case("v1-flip-record-byte", Start::Clean);
        std::fs::write(case.sandbox.join("legacy-v1-0/leader-epoch-checkpoint"), "1\n0\n").unwrap();
        assert_eq!(fatal_of(&predict(&case, version)), outcome, "{version}");
    }
}

/// Seen of 4.4.0; the earlier ones look at the first byte, and refuse it only above 0.
#[test]
fn a_negative_version_in_a_transaction_index_stops_4_4_alone() {
    for (version, outcome) in [("2.8.2", "loaded"), ("3.9.1", "loaded"), ("4.4.0", "startup-fails")] {
        let case = damaged_case("txnindex-version-1", Start::Clean);
        damage::overwrite(&case.sandbox.join("txn-0/00000000000000000017.txnindex"), 0, &[0xff, 0xff]);
        assert_eq!(fatal_of(&predict(&case, version)), outcome, "{version}");
    }
}

/// Logs of one file each, made byte by byte, and every segment recovered.
#[test]
fn recorded_starts_over_odd_logs_are_predicted_file_by_file() {
    let mut wrong = Vec::new();
    let mut starts = 0;
    for case in packs::cases("odd") {
        for version in VERSIONS {
            let Ok(bytes) = std::fs::read(case.join(format!("truth/start-{version}.json"))) else { continue };
            let verdict: Value = serde_json::from_slice(&bytes).unwrap();
            if verdict.get("outcome").is_none() {
                continue;
            }
            starts += 1;
            let mut options = Options::at(TimestampMs(1_760_001_800_000));
            options.version = version.parse().unwrap();
            let report = inspect_dir(&case.join("dir"), &options);
            let differences = differences(&report, &verdict);
            if !differences.is_empty() {
                wrong.push(format!("{} {version}: {}", case.display(), differences.join("; ")));
            }
        }
    }
    assert!(starts > 200, "{starts} recorded starts");
    assert!(wrong.is_empty(), "{} of {starts} starts:\n{}", wrong.len(), wrong.join("\n"));
}

/// Whole brokers, with metadata log, several log dirs, tiered storage.
#[test]
fn recorded_starts_of_whole_brokers_are_predicted() {
    // File modes are not kept, and root reads everything.
    const NOT_HERE: [&str; 2] = ["jbod-read-only", "jbod-unreadable"];
    let mut wrong = Vec::new();
    let mut starts = 0;
    for case in packs::cases("odd") {
        let name = case.file_name().unwrap().to_str().unwrap().to_owned();
        for version in ["3.9.1", "4.4.0"] {
            let Ok(bytes) = std::fs::read(case.join(format!("truth/start-{version}.json"))) else { continue };
            let verdict: Value = serde_json::from_slice(&bytes).unwrap();
            let Some(settings) = verdict.get("settings").filter(|_| !NOT_HERE.contains(&&*name)) else { continue };
            starts += 1;
            let has_started = verdict["started"].as_bool().unwrap();
            let loses_log_dir = verdict["log"].as_array().unwrap().iter().any(|line| {
                let line = line.as_str().unwrap();
                line.contains("LogDirFailureChannel") || line.contains("Error while reading meta.properties file")
            });
            let expected = match (has_started, loses_log_dir) {
                (false, _) => "startup_fails",
                (true, true) => "log_dir_offline",
                (true, false) => "",
            };
            let found = whole_broker(&case.join("dir"), version, settings);
            if found != expected {
                wrong.push(format!("{name} {version}: {found} instead of {expected}"));
            }
        }
    }
    assert!(starts > 90, "{starts} recorded starts");
    assert!(wrong.is_empty(), "{} of {starts} starts:\n{}", wrong.len(), wrong.join("\n"));
}

/// The kind of failure that the command line predicts; empty for a start that succeeds.
fn whole_broker(log_dir: &Path, version: &str, settings: &Value) -> String {
    let sandbox = super::support::Sandbox::empty();
    let settings = settings.as_object().unwrap().iter();
    // The recorded brokers were node 1.
    let lines: String = settings.map(|(key, value)| format!("{key}={}\n", value.as_str().unwrap())).collect();
    let config = sandbox.write("server.properties", format!("node.id=1\n{lines}").as_bytes());
    let (first, second) = (log_dir.join("d1"), log_dir.join("d2"));
    let log_dirs = if first.is_dir() { vec![first, second] } else { vec![log_dir.to_path_buf()] };
    let version = version.rsplit_once('.').unwrap().0;
    let mut args: Vec<std::ffi::OsString> =
        ["preflight", "--format", "json", "--kafka-version", version, "--config"].map(Into::into).to_vec();
    args.push(config.into());
    args.extend(log_dirs.into_iter().map(Into::into));
    let output = run_at(1_760_001_800_000, args);
    output.json()["fatal"]["kind"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn healthy_log_dirs_lose_nothing_however_they_were_stopped() {
    let mut log_dirs = 0;
    for family in ["modern-4.x", "modern-3.9.1", "modern-2.8.2", "eras", "clients", "internal"] {
        for case in packs::cases(family) {
            for log_dir in log_dirs_of(&case.join("dir")) {
                log_dirs += 1;
                for version in ["4.4", "3.9", "2.8"] {
                    for shutdown in [Shutdown::Clean, Shutdown::Unclean] {
                        let mut options = Options::at(TimestampMs(1_700_000_000_000));
                        (options.version, options.assume) = (version.parse().unwrap(), Some(shutdown));
                        let report = inspect_dir(&log_dir, &options);
                        let is_lossless = report.fatal.is_none() && report.summary.truncated == 0;
                        let numbers = (report.summary.records_lost, report.summary.bytes_lost);
                        assert!(is_lossless, "{} {version} {shutdown:?}: {:?}", log_dir.display(), report.fatal);
                        assert_eq!(numbers, (0, 0), "{} {version} {shutdown:?}", log_dir.display());
                    }
                }
            }
        }
    }
    assert!(log_dirs > 100, "{log_dirs} log dirs");
}

/// The log dirs of a case: itself, or one for each broker or disk.
fn log_dirs_of(dir: &Path) -> Vec<std::path::PathBuf> {
    let Ok(listed) = LogDir::open(dir) else { return Vec::new() };
    let is_log_dir = listed
        .directories()
        .iter()
        .any(|member| member.name.topic_partition().is_some_and(|_| member.name.is_loaded()))
        && !listed.directories().iter().any(|member| member.entry.name.to_str().unwrap().starts_with("broker-"));
    if is_log_dir {
        return vec![dir.to_path_buf()];
    }
    listed.directories().iter().map(|member| dir.join(&member.entry.name)).collect()
}

#[test]
fn the_report_for_people_is_one_sentence_and_a_line_for_each_partition_that_matters() {
    let case = damaged_case("flip-crc", Start::Unclean);
    let now = i64::try_from(case.now_ms).unwrap();
    let config = case.config.to_str().unwrap();
    let output = run_at(now, ["preflight", "--config", config, case.sandbox.path().to_str().unwrap()]).expect_status(1);
    let expected = "Kafka 4.4 starts after a crash\n\
        plain-0: truncated, 45 records lost, 00000000000000000030.log cut at 781, 1.01 KiB gone, 1 segment deleted, \
        log end 90 becomes 42 (batch-crc-mismatch)\n\
        Starting this broker now would destroy 45 records in 1 partition.\n";
    assert_eq!(output.text(), expected);
    let healthy = run_at(now, ["preflight", "--assume", "clean", case.sandbox.path().to_str().unwrap()]);
    assert!(healthy.text().ends_with("Starting this broker now would destroy nothing in 1 partition.\n"), "{healthy}");
}

#[test]
fn preflight_leaves_everything_as_it_is() {
    let case = damaged_case("leftover-swap-replaces-two", Start::Unclean);
    let before = super::support::Tree::of(case.sandbox.path());
    run_at(0, ["preflight", case.sandbox.path().to_str().unwrap()]);
    assert_eq!(super::support::Tree::of(case.sandbox.path()), before);
}

/// The document as it is described. Unknown fields fail the test, so that a new one is described before it is printed.
mod contract {
    use serde::Deserialize;

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, clippy::struct_excessive_bools, reason = "the fields are there to be parsed")]
    pub(super) struct Document {
        schema_version: u32,
        r#type: String,
        kafka_version: String,
        recorded: bool,
        complete: bool,
        clean_shutdown: bool,
        live: bool,
        fatal: Option<Fatal>,
        partitions: Vec<Partition>,
        findings: Vec<serde_json::Value>,
        summary: Summary,
    }

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "the fields are there to be parsed")]
    struct Fatal {
        kind: String,
        log_dir: String,
        path: String,
        reason: String,
        every_start: bool,
    }

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, clippy::struct_field_names, reason = "the fields are there to be parsed")]
    struct Partition {
        log_dir: String,
        topic: String,
        partition: i32,
        directory: String,
        #[serde(default)]
        future: bool,
        outcome: String,
        log_start_offset: i64,
        log_end_offset_before: i64,
        log_end_offset_after: i64,
        truncated_bytes: u64,
        truncated_at: Option<Place>,
        deleted_segments: Vec<i64>,
        deleted_files: Vec<String>,
        rebuilt_files: Vec<String>,
        renamed_files: Vec<(String, String)>,
        records_lost: u64,
        bytes_lost: u64,
        lost_offsets: Vec<(i64, i64)>,
        retention_deletes: Vec<RetentionDelete>,
        reasons: Vec<String>,
    }

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "the fields are there to be parsed")]
    struct Place {
        path: String,
        position: u64,
    }

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "the fields are there to be parsed")]
    struct RetentionDelete {
        segment_base_offset: i64,
        because: String,
        largest_timestamp_ms: i64,
        misled_by: Option<String>,
        records: u64,
    }

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "the fields are there to be parsed")]
    struct Summary {
        partitions: u64,
        truncated: u64,
        records_lost: u64,
        bytes_lost: u64,
        records_lost_to_retention: u64,
    }
}

#[test]
fn the_document_has_the_fields_that_are_described_and_no_other() {
    let described = super::json_contract::described_fields();
    for name in ["flip-crc", "timeindex-padded-all-closed-segments", "epoch-file-nuls", "future-directory-leftover"] {
        let case = damaged_case(name, Start::Unclean);
        let now = i64::try_from(case.now_ms).unwrap();
        let assume = if name.starts_with("timeindex") { "clean" } else { "unclean" };
        let config = case.config.to_str().unwrap();
        let path = case.sandbox.path().to_str().unwrap();
        let output = run_at(now, ["preflight", "--format", "json", "--assume", assume, "--config", config, path]);
        let _: contract::Document = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}"));
        let mut fields = BTreeSet::new();
        super::json_contract::fields_of(&output.json(), &mut fields);
        let missing: Vec<_> = fields.difference(&described).collect();
        assert!(missing.is_empty(), "segtool-json(5) does not name {missing:?}");
    }
}

#[test]
fn a_partition_directory_is_looked_at_by_itself_wherever_it_lies() {
    let case = damaged_case("flip-crc", Start::Unclean);
    // Around a copy of a partition lie things that no log dir has.
    std::fs::create_dir(case.sandbox.join("notes")).unwrap();
    let partition = case.sandbox.join("plain-0");
    let output = run_at(0, ["preflight", "--format", "json", partition.to_str().unwrap()]).expect_status(1);
    let json = output.json();
    assert_eq!(json["fatal"], Value::Null);
    assert_eq!(json["partitions"][0]["records_lost"], 45);
    let copy = case.sandbox.join("copy of plain");
    std::fs::rename(&partition, &copy).unwrap();
    let json = run_at(0, ["preflight", "--format", "json", copy.to_str().unwrap()]).expect_status(1).json();
    assert_eq!(json["partitions"][0]["records_lost"], 45);
    let whole = run_at(0, ["preflight", "--format", "json", case.sandbox.path().to_str().unwrap()]).json();
    assert_eq!(whole["fatal"]["reason"], "stray-directory");
}

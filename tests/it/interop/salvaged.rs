//! Real brokers on what `repair` saved: they take it as it is, and consumers read every record that was still intact.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Broker, Isolation, kafka};
use crate::support::{Sandbox, Tree, copy_tree, packs, run};

/// Damages of every kind, each in a partition of its own; behind it the clean directory it was made of.
const DAMAGES: [(&str, &str); 17] = [
    ("all-indexes-missing", "codecs"),
    ("append-time-torn", "append-time"),
    ("big-offsets-flip-record-byte", "big-offsets"),
    ("disk-full-combination", "idem"),
    ("duplicate-batch", "plain"),
    ("flip-compressed-byte", "codecs"),
    ("flip-record-byte-middle-segment", "plain"),
    ("gaps-flip-record-byte", "gaps"),
    ("garbage-between-batches", "plain"),
    ("index-missing-and-bad-batch", "plain"),
    ("leftover-swap-replaces-two", "plain"),
    ("segment-missing-middle", "plain"),
    ("segments-overlap", "plain"),
    ("torn-middle-segment", "plain"),
    ("txn-open-flip-record-byte", "txn-open"),
    ("v0-flip-record-byte", "legacy-v0"),
    ("v1-flip-compressed-byte", "legacy-v1"),
];

/// The offsets of the batches that the damage left byte for byte somewhere, as the case's card lists them.
pub(crate) fn intact_offsets(case: &Path) -> BTreeSet<i64> {
    let card = fs::read_to_string(case.join("CASE.md")).unwrap();
    let line = card.lines().find_map(|line| line.strip_prefix("* batches found byte for byte: offsets ")).unwrap();
    let ranges = line.split(", ").filter(|range| *range != "none");
    let bounds = ranges.map(|range| range.split_once('-').unwrap_or((range, range)));
    bounds.flat_map(|(first, last)| first.parse().unwrap()..=last.parse().unwrap()).collect()
}

/// Copies of the damaged directories under names of their own, and of the clean ones.
fn partitions(staging: &Sandbox) -> Vec<PathBuf> {
    let bases: BTreeSet<&str> = DAMAGES.iter().map(|(_, base)| *base).collect();
    let clean = bases.into_iter().map(|base| (format!("clean-bases/{base}"), base, base));
    let damaged = DAMAGES.iter().map(|(case, base)| ((*case).to_owned(), *base, *case));
    let copy = |(case, base, topic): (String, &str, &str)| {
        let target = staging.join(format!("{topic}-0"));
        fs::create_dir(&target).unwrap();
        copy_tree(&packs::case("damaged", &case).join("dir").join(format!("{base}-0")), &target);
        target
    };
    clean.chain(damaged).map(copy).collect()
}

fn kept(records: &[Value], offsets: &BTreeSet<i64>) -> Vec<Value> {
    records.iter().filter(|record| offsets.contains(&record["offset"].as_i64().unwrap())).cloned().collect()
}

fn logs(directory: &Path) -> Vec<(PathBuf, Option<String>)> {
    let files = Tree::of(directory).0.into_iter().filter(|(path, _)| path.extension().is_some_and(|ext| ext == "log"));
    files.map(|(path, entry)| (path, entry.sha256)).collect()
}

/// Starts a broker on a salvaged log dir and reads everything twice: by a consumer, and the log files afterwards.
#[track_caller]
fn assert_served(version: &str, log_dir: &Path, settings: &[(&str, &str)]) -> Vec<String> {
    let before: Vec<_> = DAMAGES.iter().map(|(case, _)| logs(&log_dir.join(format!("{case}-0")))).collect();
    let broker = Broker::start_with(version, &[log_dir], settings);
    let topics: BTreeSet<&str> = DAMAGES.iter().flat_map(|(case, base)| [*case, *base]).collect();
    let served = broker.consume(&topics.into_iter().collect::<Vec<_>>(), Isolation::ReadUncommitted);
    for (case, base) in DAMAGES {
        let intact = intact_offsets(&packs::case("damaged", case));
        assert!(!intact.is_empty());
        assert_eq!(served[case], kept(&served[base], &intact), "{version} {case}");
    }
    let log = broker.stop();
    let after: Vec<_> = DAMAGES.iter().map(|(case, _)| logs(&log_dir.join(format!("{case}-0")))).collect();
    assert_eq!(after, before, "{version}");
    log
}

#[test]
#[ignore = "starts real brokers"]
fn brokers_serve_every_intact_record_of_salvaged_partitions() {
    if kafka::is_missing() {
        return;
    }
    let staging = Sandbox::empty();
    let partitions = partitions(&staging);
    let partitions: Vec<&Path> = partitions.iter().map(AsRef::as_ref).collect();
    // The open transaction is years old; its end by the broker would be written to the log.
    let settings = [("transaction.partition.verification.enable", "false")];
    for version in kafka::VERSIONS {
        let clean = Sandbox::empty();
        Broker::adopt(version, clean.path(), &partitions, &settings);
        let unclean = Sandbox::copy_of(clean.path());
        fs::remove_file(unclean.join(".kafka_cleanshutdown")).unwrap();

        let repair = ["repair", "--apply", "--accept-loss", "--kafka-version"];
        for sandbox in [&clean, &unclean] {
            let output = run(repair.into_iter().chain([&version[..3], sandbox.path().to_str().unwrap()]));
            // That offsets are missing between two segments remains a finding.
            assert!(output.status <= 1, "{output}");
        }
        let log = assert_served(version, clean.path(), &settings);
        // Where a log ends earlier than before, a broker takes a snapshot.
        let complaints = Broker::complaints(&log).into_iter().filter(|line| !line.contains("Wrote producer snapshot"));
        assert_eq!(complaints.collect::<Vec<_>>(), [""; 0], "{}", log.join("\n"));
        let log = assert_served(version, unclean.path(), &settings);
        assert_eq!(Broker::losses(&log), [""; 0], "{}", log.join("\n"));
    }
}

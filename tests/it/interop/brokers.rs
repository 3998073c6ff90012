//! The launcher itself: brokers start on recorded directories, and consumers read what they read when it was recorded.

use std::path::Path;

use super::{Broker, Isolation, kafka};
use crate::support::{Sandbox, json, packs};

/// Compares what is served now with the recorded view; large values stand there as length and digest.
#[track_caller]
pub(crate) fn assert_serves(broker: &Broker, topic: &str, case: &Path) {
    for (isolation, name) in [(Isolation::ReadUncommitted, "uncommitted"), (Isolation::ReadCommitted, "committed")] {
        let recorded = json::lines_of(&case.join(format!("truth/consumed-{topic}.{name}.jsonl")));
        let served = broker.consume_all(topic, isolation);
        assert_eq!(served.len(), recorded.len(), "{topic} {name}");
        for (served, recorded) in served.iter().zip(&recorded) {
            for field in ["partition", "offset", "timestamp", "timestampType", "key", "leaderEpoch"] {
                assert_eq!(served[field], recorded[field], "{topic} {name} {field}: {recorded}");
            }
            if recorded.get("valueSha256").is_none() {
                assert_eq!(served["value"], recorded["value"], "{topic} {name}: {recorded}");
            }
        }
    }
}

#[test]
#[ignore = "starts real brokers"]
fn brokers_start_on_recorded_log_dirs_and_serve_them() {
    if kafka::is_missing() {
        return;
    }
    for version in kafka::VERSIONS {
        let family = if version == "3.9.1" { "modern-3.9.1" } else { "modern-4.x" };
        let case = packs::case(family, &format!("{version}/transactions"));
        let copy = Sandbox::copy_of(&case.join("dir"));
        let broker = Broker::start(version, &[copy.path()]);
        assert_serves(&broker, "txn", &case);
        broker.stop();
    }
}

#[test]
#[ignore = "starts real brokers"]
fn partitions_without_cluster_metadata_are_served_after_recovery() {
    if kafka::is_missing() {
        return;
    }
    let case = packs::case("modern-2.8.2", "2.8.2/stop-kill");
    let log_dir = Sandbox::empty();
    let partitions = [case.join("dir/s-0"), case.join("dir/t-0")];
    let partitions: Vec<&Path> = partitions.iter().map(AsRef::as_ref).collect();
    let broker = Broker::serve("4.4.0", log_dir.path(), &partitions, &[]);
    let recorded = json::lines_of(&case.join("truth/consumed-s.uncommitted.jsonl"));
    let served = broker.consume_all("s", Isolation::ReadUncommitted);
    let offsets = |records: &[serde_json::Value]| records.iter().map(|r| r["offset"].clone()).collect::<Vec<_>>();
    assert_eq!(offsets(&served), offsets(&recorded));
    let log = broker.stop();
    assert!(log.iter().any(|line| line.contains("Recovering unflushed segment")), "{}", log.join("\n"));
}

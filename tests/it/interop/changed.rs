//! After `reindex`, `retain` and `compact` a broker starts as after a clean stop, and serves what it should.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::brokers::assert_serves;
use super::{Broker, Isolation, kafka};
use crate::support::{Sandbox, damage, json, packs, run};

const VERSION: &str = "4.4.0";

/// A log dir with aborted transactions in several segments, one of them still open.
fn transactions() -> PathBuf {
    packs::case("modern-4.x", "4.4.0/transactions")
}

/// Every kind of index and snapshot is spoilt somewhere, in the topic and in the internal ones.
fn spoil_companions(log_dir: &Path) {
    let segment = |partition: &str, base: u64, kind: &str| log_dir.join(partition).join(format!("{base:020}.{kind}"));
    damage::overwrite(&segment("txn-0", 21, "index"), 4, &[0x7f; 4]);
    damage::cut_tail(&segment("txn-0", 21, "txnindex"), 34);
    damage::append(&segment("txn-0", 91, "timeindex"), b"xx");
    fs::remove_file(segment("txn-0", 103, "txnindex")).unwrap();
    damage::append(&segment("txn-0", 184, "index"), b"abc");
    damage::flip_bit(&segment("txn-0", 236, "snapshot"), 40, 3);
    for base in [0, 2] {
        fs::remove_file(segment("txn-1", base, "index")).unwrap();
        fs::remove_file(segment("txn-1", base, "timeindex")).unwrap();
    }
    damage::zero_range(&segment("txn-1", 109, "timeindex"), 0, 12);
    fs::remove_file(segment("txn-1", 452, "snapshot")).unwrap();
    fs::remove_file(segment("__transaction_state-0", 0, "index")).unwrap();
    damage::append_zeros(&segment("__consumer_offsets-0", 0, "timeindex"), 24);
}

#[test]
#[ignore = "starts a real broker"]
fn a_broker_complains_of_spoilt_companions() {
    if kafka::is_missing() {
        return;
    }
    let copy = Sandbox::copy_of(&transactions().join("dir"));
    spoil_companions(copy.path());
    let log = Broker::start(VERSION, &[copy.path()]).stop();
    let complaints = Broker::complaints(&log);
    for words in ["Could not find offset index file", "Failed to load producer snapshot", "Wrote producer snapshot"] {
        assert!(complaints.iter().any(|line| line.contains(words)), "{words}: {complaints:#?}");
    }
}

#[test]
#[ignore = "starts a real broker"]
fn a_broker_finds_nothing_to_do_after_reindex() {
    if kafka::is_missing() {
        return;
    }
    let case = transactions();
    let copy = Sandbox::copy_of(&case.join("dir"));
    spoil_companions(copy.path());
    run(["reindex", "--apply", copy.path().to_str().unwrap()]).expect_status(0);
    let broker = Broker::start(VERSION, &[copy.path()]);
    assert_serves(&broker, "txn", &case);
    let log = broker.stop();
    assert_eq!(Broker::complaints(&log), [""; 0], "{}", log.join("\n"));
}

#[test]
#[ignore = "starts a real broker"]
fn what_retain_deletes_stays_away_and_what_it_leaves_is_served() {
    if kafka::is_missing() {
        return;
    }
    let case = transactions();
    let copy = Sandbox::copy_of(&case.join("dir"));
    let path = copy.path().to_str().unwrap();
    // By size some segments go, by time all of them.
    run(["retain", "--apply", "--topic-partition", "txn-1", "--retention-ms", "-1", "--retention-bytes", "9000", path])
        .expect_status(0);
    run(["retain", "--apply", "--topic-partition", "txn-0", "--retention-ms", "0", path]).expect_status(0);
    let first_base = first_log_base(&copy.join("txn-1"));
    assert!(first_base > 0);

    let broker = Broker::start(VERSION, &[copy.path()]);
    let offsets = json::lines(broker.client("offsets", &["txn"]).as_bytes());
    let expected = [
        serde_json::json!({"partition": 0, "beginning": 236, "end": 236, "lastStable": 236}),
        serde_json::json!({"partition": 1, "beginning": first_base, "end": 452, "lastStable": 452}),
    ];
    assert_eq!(offsets, expected);
    for (isolation, name) in [(Isolation::ReadUncommitted, "uncommitted"), (Isolation::ReadCommitted, "committed")] {
        let recorded = json::lines_of(&case.join(format!("truth/consumed-txn.{name}.jsonl")));
        let left =
            recorded.iter().filter(|record| record["partition"] == 1 && record["offset"].as_i64() >= Some(first_base));
        let place = |record: &Value| (record["partition"].clone(), record["offset"].clone(), record["value"].clone());
        let served = broker.consume_all("txn", isolation);
        assert_eq!(served.iter().map(place).collect::<Vec<_>>(), left.map(place).collect::<Vec<_>>(), "{name}");
    }
    let log = broker.stop();
    assert_eq!(Broker::complaints(&log), [""; 0], "{}", log.join("\n"));
    assert_eq!(first_log_base(&copy.join("txn-1")), first_base);
    assert_eq!(first_log_base(&copy.join("txn-0")), 236);
}

/// Base offset of a partition's first segment.
fn first_log_base(partition: &Path) -> i64 {
    let names = fs::read_dir(partition).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter_map(|name| name.strip_suffix(".log")?.parse().ok()).min().unwrap()
}

/// The last value of each key; a key whose last record is a tombstone has none. Values stand for themselves, or for a digest.
fn last_values(records: &[Value]) -> BTreeMap<String, Value> {
    let mut last = BTreeMap::new();
    for record in records {
        last.insert(record["key"].to_string(), record["value"].clone());
    }
    last.retain(|_, value| !value.is_null());
    last
}

#[test]
#[ignore = "starts real brokers"]
fn compaction_leaves_every_last_value() {
    if kafka::is_missing() {
        return;
    }
    // At first nothing was cleaned yet; then new records lie behind a cleaned part whose tombstones and markers may go.
    for stage in ["compaction-0-before", "compaction-2-dirty-again"] {
        let case = packs::case("modern-4.x", &format!("{VERSION}/{stage}"));
        let copy = Sandbox::copy_of(&case.join("dir"));
        let options = ["--topic-partition", "cmp*", "--min-cleanable-dirty-ratio", "0", "--delete-retention-ms", "0"];
        let path = copy.path().to_str().unwrap();
        run(["compact", "--apply"].into_iter().chain(options).chain([path])).expect_status(0);

        let broker = Broker::start_with(VERSION, &[copy.path()], &[("log.cleaner.enable", "false")]);
        for topic in ["cmp", "cmpdel"] {
            let recorded = json::lines_of(&case.join(format!("truth/consumed-{topic}.committed.jsonl")));
            let served = broker.consume_all(topic, Isolation::ReadCommitted);
            let place =
                |record: &Value| (record["offset"].to_string(), record["key"].to_string(), record["value"].to_string());
            let before: BTreeSet<_> = recorded.iter().map(place).collect();
            assert!(served.iter().all(|record| before.contains(&place(record))), "{stage} {topic}");
            let tombstones = |records: &[Value]| records.iter().filter(|record| record["value"].is_null()).count();
            if topic == "cmp" {
                assert!(served.len() < recorded.len(), "{stage}: {} records", served.len());
                assert!(tombstones(&served) < tombstones(&recorded), "{stage}");
            }
            assert_eq!(last_values(&served), last_values(&recorded), "{stage} {topic}");
        }
        let log = broker.stop();
        assert_eq!(Broker::complaints(&log), [""; 0], "{}", log.join("\n"));
    }
}

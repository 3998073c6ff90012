//! `segtool dump` over Kafka's own topics: what it decodes is what the brokers themselves answered.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::packs::{case, cases};
use crate::support::{Sandbox, run_at};

/// The partition directories of a topic in a case.
fn partitions(case: &Path, topic: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(case.join("dir"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&format!("{topic}-")))
        .collect();
    found.sort();
    found
}

fn records(path: &Path) -> Vec<Value> {
    let path = path.to_str().unwrap();
    let lines = run_at(0, ["dump", "--format", "json", path]).expect_status(0).json_lines();
    lines.into_iter().filter(|line| line["type"] == "record").collect()
}

/// The newest value of each key, as a coordinator loads them: those of a transaction count from its commit on.
fn newest(case: &Path, topic: &str) -> BTreeMap<String, Value> {
    let mut state = BTreeMap::new();
    for partition in partitions(case, topic) {
        let mut pending: BTreeMap<i64, Vec<(String, Value)>> = BTreeMap::new();
        for record in records(&partition) {
            let producer = record["producer_id"].as_i64().unwrap_or(-1);
            if let Some(control) = record["control"].as_str() {
                let ended = pending.remove(&producer).unwrap_or_default();
                if control == "commit" {
                    state.extend(ended);
                }
                continue;
            }
            let decoded = &record["decoded"];
            let entry = (decoded["key"].to_string(), decoded["value"].clone());
            if record["transactional"] == true {
                pending.entry(producer).or_default().push(entry);
            } else {
                state.extend([entry]);
            }
        }
    }
    state
}

fn answer(case: &Path, question: &str) -> Option<Value> {
    let text = fs::read_to_string(case.join("truth/admin").join(question)).ok()?;
    Some(serde_json::from_str(&text).unwrap()).filter(|answer: &Value| answer["error"].is_null())
}

#[test]
fn newest_commits_are_the_offsets_that_brokers_answered() {
    let mut compared = 0;
    for case in cases("internal") {
        let Some(groups) = answer(&case, "group-offsets.json") else { continue };
        let mut expected = BTreeMap::new();
        for (group, offsets) in groups.as_object().unwrap() {
            for (partition, offset) in offsets.as_object().into_iter().flatten() {
                if let Some(offset) = offset.as_object() {
                    expected.insert(
                        (group.clone(), partition.clone()),
                        (offset["offset"].clone(), offset["metadata"].clone()),
                    );
                }
            }
        }
        let mut found = BTreeMap::new();
        for (key, value) in newest(&case, "__consumer_offsets") {
            let key: Value = serde_json::from_str(&key).unwrap();
            let (name, fields) = (key["type"].as_str().unwrap(), &key["data"]);
            if !name.ends_with("OffsetCommitKey") || value.is_null() {
                continue;
            }
            let partition = format!("{}-{}", fields["topic"].as_str().unwrap(), fields["partition"]);
            let data = &value["data"];
            found.insert(
                (fields["group"].as_str().unwrap().to_owned(), partition),
                (data["offset"].clone(), data["metadata"].clone()),
            );
        }
        assert_eq!(found, expected, "{}", case.display());
        compared += found.len();
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn newest_transaction_states_are_those_that_brokers_answered() {
    let mut compared = 0;
    for case in cases("internal") {
        let Some(transactions) = answer(&case, "transactions.json") else { continue };
        let expected: BTreeMap<String, Value> = transactions
            .as_object()
            .unwrap()
            .iter()
            .filter(|(_, transaction)| transaction.is_object())
            .map(|(id, transaction)| (id.clone(), transaction["state"].clone()))
            .collect();
        let found: BTreeMap<String, Value> = newest(&case, "__transaction_state")
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| {
                let key: Value = serde_json::from_str(&key).unwrap();
                let id = key["data"]["transactionalId"].as_str().unwrap().to_owned();
                (id, value["data"]["transactionStatus"].clone())
            })
            .collect();
        assert_eq!(found, expected, "{}", case.display());
        compared += found.len();
    }
    assert!(compared > 10, "{compared}");
}

#[test]
fn every_record_of_internal_topics_is_decoded_and_strict_finds_nothing() {
    let mut count = 0;
    for case in cases("internal") {
        let dir = case.join("dir");
        let lines =
            run_at(0, ["dump", "--strict", "--format", "json", dir.to_str().unwrap()]).expect_status(0).json_lines();
        for line in lines.iter().filter(|line| line["type"] == "record" && line["control"].is_null()) {
            let topic = line["topic"].as_str().unwrap();
            if topic.starts_with("__") || topic == "@metadata" {
                let decoded = &line["decoded"];
                assert!(decoded["key"]["error"].is_null() && decoded["value"]["error"].is_null(), "{line}");
                assert!(decoded["value"]["trailing_bytes"].is_null(), "{line}");
                count += 1;
            } else {
                assert_eq!(line["decoded"], Value::Null, "{line}");
            }
        }
    }
    assert!(count > 2000, "{count}");
}

#[test]
fn the_newest_value_of_a_key_is_found_by_its_fields() {
    let case = case("internal", "4.4.0/internal-groups");
    let dir = case.join("dir");
    let last = |glob: &str, key: &str| {
        let arguments = ["dump", "--format", "json", "--topic-partition", glob, "--key", key, "--last", "1"];
        let lines = run_at(0, [&arguments[..], &[dir.to_str().unwrap()]].concat()).expect_status(0).json_lines();
        let found: Vec<Value> = lines.into_iter().filter(|line| line["type"] == "record").collect();
        assert_eq!(found.len(), 1, "{key}");
        found[0]["decoded"].clone()
    };
    let transaction = last("__transaction_state-*", "tx-open.a");
    assert_eq!(transaction["value"]["data"]["transactionStatus"], "Ongoing");
    let commit = last("__consumer_offsets-*", "g-classic.a,orders.a,2");
    assert_eq!(commit["key"]["data"], json!({"group": "g-classic.a", "topic": "orders.a", "partition": 2}));
    let offsets = answer(&case, "group-offsets.json").unwrap();
    assert_eq!(commit["value"]["data"]["offset"], offsets["g-classic.a"]["orders.a-2"]["offset"]);
}

#[test]
fn what_has_no_schema_is_printed_raw_marked_and_found_by_strict() {
    let case = case("modern-4.x", "4.4.0/codecs");
    let file = crate::support::files_below(&case.join("dir"))
        .into_iter()
        .find(|path| path.extension() == Some("log".as_ref()) && !path.starts_with("__cluster_metadata-0"))
        .unwrap();
    let sandbox = Sandbox::empty();
    let log = sandbox.write("plain-0/00000000000000000000.log", &fs::read(case.join("dir").join(file)).unwrap());
    let log = log.to_str().unwrap();
    let arguments = ["dump", "--decode", "offsets", "--limit", "1"];
    let human = run_at(0, [&arguments[..], &[log]].concat()).expect_status(0);
    assert!(human.text().contains(" (unknown type "), "{human}");
    run_at(0, [&arguments[..], &["--strict", log]].concat()).expect_status(1);
    run_at(0, [&arguments[..], &["--strict", "--fail-on", "never", log]].concat()).expect_status(0);
    let plain = run_at(0, ["dump", "--limit", "1", log]).expect_status(0);
    assert!(!plain.text().contains("unknown type"), "{plain}");
}

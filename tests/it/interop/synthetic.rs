//! Real brokers judge the oracle: what `synth` calls a healthy partition is one, and its companions are what recovery writes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::{Broker, Isolation, kafka};
use crate::support::Sandbox;
use crate::synth::random::healthy_partition;
use crate::synth::{Batch, Partition, Record, Segment, Unit};

#[test]
#[ignore = "starts real brokers"]
fn brokers_recover_random_partitions_to_the_same_files() {
    if kafka::is_missing() {
        return;
    }
    // Producers that were silent for a day are forgotten, hence the real time.
    #[expect(clippy::disallowed_methods, reason = "the broker has a clock of its own")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let begin_ms = i64::try_from(now.as_millis()).unwrap() - 3_600_000;
    let mut runner = TestRunner::deterministic();
    let partitions: Vec<Partition> = (0..8)
        .map(|number| {
            let partition = healthy_partition(begin_ms, 60).new_tree(&mut runner).unwrap().current();
            Partition { topic: format!("random{number}"), ..partition }
        })
        .collect();
    for version in kafka::VERSIONS {
        let (written, served) = (Sandbox::empty(), Sandbox::empty());
        let directories: Vec<_> = partitions.iter().map(|partition| partition.write(written.path())).collect();
        let directories: Vec<&Path> = directories.iter().map(AsRef::as_ref).collect();
        let broker = Broker::serve(version, served.path(), &directories, &[("log.index.interval.bytes", "200")]);
        for partition in &partitions {
            let consumed = broker.consume_all(&partition.topic, Isolation::ReadUncommitted);
            assert_eq!(consumed, expected_records(partition), "{version} {}", partition.topic);
        }
        broker.stop();
        for partition in &partitions {
            assert_recovered(partition, &served.join(partition.name()), version);
        }
    }
}

fn expected_records(partition: &Partition) -> Vec<Value> {
    let units = partition.segments.iter().flat_map(|segment| &segment.units);
    let batches = units.filter_map(|unit| match unit {
        Unit::Batch(batch) if !batch.is_control() => Some(batch),
        Unit::Batch(_) | Unit::Legacy(_) => None,
    });
    batches
        .flat_map(|batch| (0..).zip(&batch.records).map(move |(place, record)| expected(batch, place, record)))
        .collect()
}

fn expected(batch: &Batch, place: i64, record: &Record) -> Value {
    let base64 = |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|bytes| STANDARD.encode(bytes));
    let headers: Vec<Value> =
        record.headers.iter().map(|(key, value)| json!([STANDARD.encode(key), base64(value)])).collect();
    json!({
        "partition": 0, "offset": batch.base_offset + place, "timestamp": record.timestamp_ms,
        "timestampType": "CreateTime", "key": base64(&record.key), "value": base64(&record.value), "headers": headers,
        "leaderEpoch": batch.leader_epoch,
    })
}

/// Every file is the one that `synth` would have written, but for `partition.metadata` (the topic has a new id) and
/// `leader-epoch-checkpoint` (the new cluster counts epochs from 0, below those of the batches).
#[track_caller]
fn assert_recovered(partition: &Partition, directory: &Path, version: &str) {
    let mut recovered = partition.clone();
    recovered.segments = partition.segments.iter().map(Segment::recovered).collect();
    let expected: Vec<(String, Vec<u8>)> = recovered.files();
    let comparable = |name: &str| name != "partition.metadata" && name != "leader-epoch-checkpoint";
    for (name, bytes) in expected.iter().filter(|(name, _)| comparable(name)) {
        let place = format!("{version} {} {name}", partition.name());
        let actual = fs::read(directory.join(name)).unwrap_or_else(|error| panic!("{place}: {error}"));
        if name.ends_with(".snapshot") {
            // Kafka's order is that of a hash map.
            let producers = |bytes: &[u8]| bytes[10..].chunks(46).map(<[u8]>::to_vec).collect::<BTreeSet<_>>();
            assert_eq!(producers(&actual), producers(bytes), "{place}");
        } else {
            assert_eq!(&actual, bytes, "{place}");
        }
    }
    let names: BTreeSet<String> = expected.into_iter().map(|(name, _)| name).collect();
    let there = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(there.collect::<BTreeSet<_>>(), names, "{version} {}", partition.name());
}

//! `segtool stat` against figures computed from what Kafka's own dump tool printed of the same files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::json_contract::{described_fields, fields_of};
use crate::support::{Sandbox, damage, packs, run, testdata};
use crate::synth;

/// Figures of one partition.
#[derive(Default, PartialEq, Eq, Debug)]
struct Figures {
    batches: u64,
    records: u64,
    batch_bytes: u64,
    control_records: u64,
    codecs: BTreeMap<String, u64>,
    tombstones: u64,
    unkeyed: u64,
    key_bytes: u64,
    value_bytes: u64,
}

/// The word behind `name: ` in a line of the dump tool.
fn word<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!(" {name}: "))?;
    rest.split(' ').next()
}

fn number(line: &str, name: &str) -> i64 {
    word(line, name).unwrap_or_else(|| panic!("no {name}: {line}")).parse().unwrap()
}

fn add_dump(figures: &mut Figures, text: &str) {
    let mut is_control = false;
    for line in text.lines() {
        if line.starts_with("baseOffset:") && line.contains("compresscodec") {
            figures.batches += 1;
            figures.batch_bytes += number(line, "size").cast_unsigned();
            *figures.codecs.entry(word(line, "compresscodec").unwrap().to_lowercase()).or_default() += 1;
            is_control = word(line, "isControl") == Some("true");
            if is_control {
                figures.control_records += number(line, "count").cast_unsigned();
            }
        } else if line.starts_with("| offset:") {
            figures.records += 1;
            let (key, value) = (number(line, "keySize"), number(line, "valueSize"));
            if !is_control {
                figures.unkeyed += u64::from(key < 0);
                figures.tombstones += u64::from(key >= 0 && value < 0);
                figures.key_bytes += key.max(0).cast_unsigned();
                figures.value_bytes += value.max(0).cast_unsigned();
            }
        }
    }
}

/// What the dump tool says of a partition, if it was run on each of its logs.
fn truth(case: &Path, partition: &Path) -> Option<Figures> {
    let name = partition.file_name()?;
    let mut figures = Figures::default();
    let mut logs = 0;
    for entry in std::fs::read_dir(partition).ok()? {
        let file = entry.ok()?.file_name().into_string().ok()?;
        if Path::new(&file).extension().is_some_and(|extension| extension == "log") {
            let dump = case.join("truth").join(name).join(format!("{file}.dump.txt"));
            add_dump(&mut figures, &String::from_utf8_lossy(&std::fs::read(dump).ok()?));
            logs += 1;
        }
    }
    (logs > 0).then_some(figures)
}

fn count(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("no {name} in {value}"))
}

fn found(partition: &Value) -> Figures {
    let codecs = partition["codecs"].as_object().unwrap();
    Figures {
        batches: count(partition, "batches"),
        records: count(partition, "records"),
        batch_bytes: count(partition, "batch_bytes"),
        control_records: count(partition, "control_records"),
        codecs: codecs.iter().map(|(name, codec)| (name.clone(), count(codec, "batches"))).collect(),
        tombstones: count(partition, "tombstones"),
        unkeyed: count(&partition["keys"], "null"),
        key_bytes: count(partition, "key_bytes"),
        value_bytes: count(partition, "value_bytes"),
    }
}

fn stat(args: &[&str], path: &Path) -> Value {
    run([&["stat", "--format", "json", "--fail-on", "never"], args, &[path.to_str().unwrap()]].concat()).json()
}

fn partitions(document: &Value) -> &Vec<Value> {
    document["partitions"].as_array().unwrap()
}

/// The path of a partition's directory.
fn directory(log_dir: &Path, partition: &Value) -> PathBuf {
    log_dir.join(format!("{}-{}", partition["topic"].as_str().unwrap(), partition["partition"]))
}

#[test]
fn figures_are_those_of_kafkas_own_dump() {
    let mut compared = 0;
    for family in ["modern-4.x", "modern-3.9.1", "modern-2.8.2"] {
        for case in packs::cases(family) {
            let log_dir = case.join("dir");
            let (full, quick) = (stat(&[], &log_dir), stat(&["--quick"], &log_dir));
            for (partition, header) in partitions(&full).iter().zip(partitions(&quick)) {
                let Some(truth) = truth(&case, &directory(&log_dir, partition)) else { continue };
                assert_eq!(found(partition), truth, "{} {}", case.display(), partition["topic"]);
                for name in ["batches", "records", "batch_bytes", "control_records", "size_bytes", "open_transactions"]
                {
                    assert_eq!(header[name], partition[name], "{} {name}", case.display());
                }
                assert_eq!(header["keys"], Value::Null);
                compared += 1;
            }
        }
    }
    assert!(compared >= 60, "only {compared} partitions have a dump");
}

#[test]
fn open_transactions_and_dirty_bytes_are_those_of_the_broker() {
    let open = stat(&[], &packs::case("modern-4.x", "4.4.0/stop-kill").join("dir"));
    let with_open: Vec<_> = partitions(&open).iter().filter(|p| count(p, "open_transactions") > 0).collect();
    for partition in &with_open {
        let first = &partition["open"][0];
        assert!(first["first_offset"].as_i64() >= partition["log_start_offset"].as_i64());
    }
    let cleaned = stat(&[], &packs::case("modern-4.x", "4.4.0/compaction-1-cleaned").join("dir"));
    let compacted: Vec<_> = partitions(&cleaned).iter().filter(|p| p["cleaner_checkpoint"] == true).collect();
    assert!(!compacted.is_empty());
    for partition in compacted {
        assert_eq!(partition["dirty_bytes"], 0, "{partition}");
        assert_eq!(partition["dirty_ratio"], 0.0);
    }
}

#[test]
fn any_number_of_threads_and_either_way_of_reading_give_the_same_bytes() {
    let shop = testdata("real/4.4.0/shop");
    let shop = shop.to_str().unwrap();
    for format in ["json", "human", "prometheus"] {
        // Free space moves between two runs.
        let run_with = |threads: &str, io: &str| {
            let output = run(["stat", "--format", format, "--threads", threads, "--io", io, shop]).expect_status(0);
            let steady = |line: &&str| !line.contains("available");
            let text = output.text().lines().filter(steady).collect::<Vec<_>>().join("\n");
            match format {
                "json" => {
                    let mut document = output.json();
                    document["log_dirs"] = Value::Null;
                    document.to_string()
                }
                _ => text,
            }
        };
        assert_eq!(run_with("1", "pread"), run_with("4", "mmap"), "{format}");
    }
}

#[test]
fn damage_is_counted_apart_and_makes_the_status_1() {
    let sandbox = Sandbox::copy_of(&testdata("real/4.4.0/shop"));
    let log = sandbox.join("orders-0/00000000000000000000.log");
    let before = stat(&[], sandbox.path());
    damage::append(&log, &[0; 100]);
    let output = run(["stat", "--format", "json", sandbox.path().to_str().unwrap()]).expect_status(1);
    let after = output.json();
    assert_eq!(after["findings"][0]["id"], "log-zero-tail");
    assert_eq!(after["totals"]["damaged_bytes"], 100);
    assert_eq!(after["totals"]["records"], before["totals"]["records"]);
    assert_eq!(count(&after["totals"], "size_bytes"), count(&before["totals"], "size_bytes") + 100);
}

#[test]
fn a_single_log_file_can_be_measured() {
    let log = testdata("real/4.4.0/shop/orders-0/00000000000000000000.log");
    let document = stat(&[], &log);
    assert_eq!(partitions(&document).len(), 1);
    assert_eq!(partitions(&document)[0]["topic"], "orders");
    let index = testdata("real/4.4.0/shop/orders-0/00000000000000000000.index");
    run(["stat", index.to_str().unwrap()]).expect_status(2);
}

#[test]
fn legacy_wrappers_are_opened_unless_only_headers_are_read() {
    let case = packs::case("eras", "1.1.1/era-upgrade-0.9.0.1-0.10.2.2-1.1.1").join("dir");
    let (full, quick) = (stat(&[], &case), stat(&["--quick"], &case));
    assert!(count(&full["totals"], "records") > count(&full["totals"], "batches"));
    assert_eq!(quick["totals"]["records"], Value::Null);
    assert_eq!(quick["totals"]["batches"], full["totals"]["batches"]);
}

#[test]
fn keys_of_synthetic_batches_are_counted() {
    let sandbox = Sandbox::empty();
    let records = (0..5000).map(|i| synth::record(format!("key-{}", i % 4000), "v").at(1_700_000_000_000 + i));
    let records: Vec<_> = records.collect();
    let mut log = Vec::new();
    for (index, some) in records.chunks(500).enumerate() {
        log.extend(synth::Batch::at(index as i64 * 500).records(some.to_vec()).build());
    }
    sandbox.write("t-0/00000000000000000000.log", &log);
    let document = stat(&[], sandbox.path());
    let keys = &document["totals"]["keys"];
    let distinct = count(keys, "distinct") as f64;
    assert!((distinct / 4000.0 - 1.0).abs() < 0.03, "{distinct}");
    assert_eq!(keys["exact"], false);
    assert_eq!(document["totals"]["records_per_batch"]["p50"], 500);
    assert_eq!(document["totals"]["record_size_bytes"]["max"], 9);
}

#[test]
fn the_json_has_no_field_that_the_manual_does_not_name() {
    let described = described_fields();
    let shop = testdata("real/4.4.0/shop-damaged");
    let mut document = stat(&[], &shop);
    assert!(!document["findings"].as_array().unwrap().is_empty());
    let mut fields = BTreeSet::new();
    fields_of(&document.take(), &mut fields);
    let missing: Vec<_> = fields.difference(&described).collect();
    assert!(missing.is_empty(), "segtool-json(5) does not name {missing:?}");
}

/// Per metric its samples: labels and value.
type Families = BTreeMap<String, Vec<(BTreeMap<String, String>, f64)>>;

/// A strict reader of the Prometheus text format 0.0.4: families in one piece, HELP and TYPE in front, no sample twice.
fn parse_prometheus(text: &str) -> Families {
    let mut families = Families::new();
    let (mut current, mut has_type) = (String::new(), false);
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap();
            assert!(!help.is_empty() && !families.contains_key(name), "{line}");
            (current, has_type) = (name.to_owned(), false);
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            assert_eq!(kind, format!("{current} gauge"));
            has_type = true;
        } else if !line.starts_with('#') {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = match series.split_once('{') {
                Some((name, labels)) => (name, parse_labels(labels.strip_suffix('}').unwrap())),
                None => (series, BTreeMap::new()),
            };
            assert!(name == current && has_type, "{line}");
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
            let samples = families.entry(name.to_owned()).or_default();
            assert!(samples.iter().all(|(known, _)| *known != labels), "twice: {line}");
            samples.push((labels, value.parse().unwrap()));
        }
    }
    families
}

fn parse_labels(mut rest: &str) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    while !rest.is_empty() {
        let (name, tail) = rest.split_once("=\"").unwrap();
        assert!(!name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
        let mut value = String::new();
        let mut characters = tail.chars();
        loop {
            match characters.next().expect("a label ends with a quote") {
                '"' => break,
                '\\' => match characters.next() {
                    Some('n') => value.push('\n'),
                    Some(c @ ('"' | '\\')) => value.push(c),
                    other => panic!("escape {other:?}"),
                },
                c => {
                    assert!(!c.is_control());
                    value.push(c);
                }
            }
        }
        assert!(labels.insert(name.to_owned(), value).is_none());
        rest = characters.as_str();
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    labels
}

#[test]
fn prometheus_text_passes_a_strict_parser() {
    let sandbox = Sandbox::copy_of(&testdata("real/4.4.0/shop"));
    sandbox
        .write("evil\"\\\n{}-0/00000000000000000000.log", &synth::Batch::at(0).record(synth::record("k", "v")).build());
    let output = run(["stat", "--format", "prometheus", sandbox.path().to_str().unwrap()]).expect_status(0);
    let families = parse_prometheus(output.text());
    for name in ["kafka_log_size_bytes", "kafka_log_segments", "kafka_log_index_bytes", "kafka_log_cleaner_lag_bytes"] {
        assert!(families.contains_key(name), "{name}");
    }
    let document = stat(&[], sandbox.path());
    let sum: f64 = families["kafka_log_size_bytes"].iter().map(|(_, value)| value).sum();
    assert_eq!(sum.to_string(), count(&document["totals"], "size_bytes").to_string());
    assert!(families["kafka_log_size_bytes"].iter().any(|(labels, _)| labels["topic"] == "evil\"\\\n{}"));
    assert!(output.text().contains("Flush times are not on disk: unknown."));
}

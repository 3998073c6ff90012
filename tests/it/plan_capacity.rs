//! `segtool plan-capacity`: the formula's numbers, the page, the simulation.

use std::collections::BTreeSet;

use crate::json_contract::{described_fields, fields_of};
use crate::support::{packs, run, testdata};

const EXAMPLE: [&str; 14] = [
    "--messages-per-day",
    "100M",
    "--message-size",
    "1KB",
    "--compression-ratio",
    "0.5",
    "--retention-days",
    "7",
    "--replication-factor",
    "3",
    "--headroom",
    "1.2",
    "--format",
    "json",
];

fn plan(args: &[&str]) -> serde_json::Value {
    run([&["plan-capacity"], args].concat()).expect_status(0).json()
}

#[test]
fn the_example_of_the_manual_is_1260_gigabytes() {
    let document = plan(&EXAMPLE);
    assert_eq!(document["schema_version"], 1);
    assert_eq!(document["type"], "plan_capacity");
    assert!((document["storage"]["cluster_bytes"].as_f64().unwrap() - 1.26e12).abs() < 1.0);
    assert!((document["storage"]["per_broker_bytes"].as_f64().unwrap() - 4.2e11).abs() < 1.0);
    assert_eq!(document["inputs"]["messages_per_day"]["origin"], "given");
    assert_eq!(document["inputs"]["brokers"]["origin"], "default");
    assert_eq!(document["simulation"], serde_json::Value::Null);
}

#[test]
fn the_page_says_both_units() {
    let decimal = run([&["plan-capacity"], &EXAMPLE[..12]].concat()).expect_status(0);
    assert!(decimal.text().contains("**1260 GB = 1173 GiB** in the cluster"), "{decimal}");
    let mut args = [&["plan-capacity"], &EXAMPLE[..12]].concat();
    args[4] = "1024";
    let binary = run(args).expect_status(0);
    assert!(binary.text().contains("**1290 GB = 1201 GiB** in the cluster"), "{binary}");
    assert!(binary.text().contains("102 GB a day x 0.5 compression ratio x 7 days x 3 replicas x 1.2 headroom"));
}

#[test]
fn partitions_descriptors_and_disks_follow_from_the_flags() {
    let more = "--brokers 3 --target-throughput 115MB/s --partition-throughput 10MB/s --consumers 8 --fd-buffer 500 \
                --segment-bytes 1GiB --segment-ms 7d --disk 600 --disk-size 4TB";
    let args: Vec<&str> = EXAMPLE.into_iter().chain(more.split_whitespace()).collect();
    let document = plan(&args);
    assert_eq!(document["partitions"]["recommended"], 12);
    assert_eq!(document["partitions"]["because"], "throughput");
    assert_eq!(document["partitions"]["upper_advice"], 30);
    assert_eq!(document["file_descriptors"]["per_broker"], 12 * 29 * 3 + 500);
    assert_eq!(document["disks"][0]["class"], "custom");
    assert_eq!(document["disks"][0]["per_broker"], 1);
    assert_eq!(document["disks"].as_array().unwrap().len(), 4);
}

#[test]
fn a_codec_gives_its_usual_ratio() {
    for (codec, ratio) in [("none", 1.0), ("gzip", 0.29), ("snappy", 0.5), ("lz4", 0.4), ("zstd", 0.29)] {
        let document = plan(&["--bytes-per-day", "1TB", "--compression", codec, "--format", "json"]);
        assert_eq!(document["inputs"]["compression_ratio"]["value"], ratio, "{codec}");
        assert_eq!(document["inputs"]["compression_ratio"]["origin"], "default");
    }
}

#[test]
fn a_simulation_fills_the_disk_and_holds_it() {
    let args: Vec<&str> = EXAMPLE.into_iter().chain(["--simulate", "30d", "--partitions", "12"]).collect();
    let simulation = &plan(&args)["simulation"];
    assert_eq!(simulation["days"].as_array().unwrap().len(), 30);
    let (peak, steady) = (simulation["peak_bytes"].as_f64().unwrap(), simulation["steady_bytes"].as_f64().unwrap());
    let flat = simulation["flat_bytes"].as_f64().unwrap();
    // Twelve partitions with a segment of 1 GiB more each, and the indexes.
    assert!(steady > flat && peak >= steady && peak < flat + 13.0 * f64::from(1 << 30), "{peak} {steady} {flat}");
    assert_eq!(simulation["full_on_day"], serde_json::Value::Null);
}

#[test]
fn settings_of_a_file_are_inputs_and_flags_win() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("server.properties");
    std::fs::write(&path, "log.retention.hours=48\ndefault.replication.factor=2\nlog.segment.ms=1\n").unwrap();
    let path = path.to_str().unwrap();
    let output = run(["plan-capacity", "--bytes-per-day", "1TB", "--config", path, "--format", "json"]);
    assert!(output.stderr.contains("unknown setting `log.segment.ms` is ignored; did you mean `log.roll.ms`?"));
    let document = output.json();
    assert_eq!(document["inputs"]["retention_days"]["value"], 2.0);
    assert_eq!(document["inputs"]["retention_days"]["origin"], "config");
    assert_eq!(document["inputs"]["replication_factor"]["value"], 2.0);
    let flags =
        plan(&["--bytes-per-day", "1TB", "--config", path, "--retention-days", "3", "--quiet", "--format", "json"]);
    assert_eq!(flags["inputs"]["retention_days"]["value"], 3.0);
    assert_eq!(flags["inputs"]["retention_days"]["origin"], "given");
}

#[test]
fn without_traffic_there_is_nothing_to_plan() {
    let output = run(["plan-capacity"]).expect_status(2);
    assert!(output.stderr.contains("--messages-per-day"), "{output}");
    assert!(output.stdout.is_empty());
    run(["plan-capacity", "--bytes-per-day", "1TB", "--retention-ms", "-1"]).expect_status(2);
    run(["plan-capacity", "--bytes-per-day", "1TB", "--headroom", "0"]).expect_status(2);
}

#[test]
fn inputs_are_measured_from_real_segments_and_say_so() {
    let shop = testdata("real/4.4.0/shop");
    let from = ["--from", shop.to_str().unwrap(), "--topic-partition", "orders-*"];
    let document = plan(&[&from[..], &["--retention-days", "3", "--format", "json"]].concat());
    let measured = &document["calibration"];
    let stat = run(["stat", "--format", "json", "--topic-partition", "orders-*", shop.to_str().unwrap()]).json();
    let totals = &stat["totals"];
    let payload: u64 =
        ["key_bytes", "value_bytes", "header_bytes"].iter().map(|name| totals[*name].as_u64().unwrap()).sum();
    assert_eq!(measured["payload_bytes"], payload);
    assert_eq!(measured["stored_bytes"], totals["batch_bytes"]);
    let records = totals["records"].as_u64().unwrap() - totals["control_records"].as_u64().unwrap();
    assert_eq!(measured["records"], records);
    let ratio = totals["batch_bytes"].as_u64().unwrap() as f64 / payload as f64;
    assert_eq!(document["inputs"]["compression_ratio"]["value"].as_f64().unwrap().to_bits(), ratio.to_bits());
    assert_eq!(document["inputs"]["compression_ratio"]["origin"], "measured");
    assert_eq!(document["inputs"]["message_size_bytes"]["origin"], "measured");
    assert_eq!(document["inputs"]["retention_days"]["origin"], "given");
}

#[test]
fn recompressed_batches_are_as_large_as_kafkas_producer_made_them() {
    let mut compared = 0;
    for (family, version) in [("modern-4.x", "4.4.0"), ("modern-3.9.1", "3.9.1"), ("modern-2.8.2", "2.8.2")] {
        let case = packs::case(family, &format!("{version}/codecs")).join("dir");
        for (codec, level) in [("gzip", Some(6)), ("snappy", None), ("lz4", None), ("zstd", Some(3))] {
            let partition = case.join(format!("codec-{codec}-0"));
            let document = plan(&["--from", partition.to_str().unwrap(), "--what-if-codecs", "--format", "json"]);
            let sample = &document["codecs"];
            let trials = sample["trials"].as_array().unwrap();
            let same = trials.iter().find(|trial| trial["codec"] == codec && trial["level"].as_i64() == level).unwrap();
            let ratio = same["bytes"].as_f64().unwrap() / sample["stored_bytes"].as_f64().unwrap();
            assert!((ratio - 1.0).abs() < 0.02, "{version} {codec}: {ratio}");
            assert!(trials.iter().all(|trial| trial["failures"] == 0));
            compared += 1;
        }
    }
    assert_eq!(compared, 12);
}

#[test]
fn a_plot_is_a_new_file_and_never_replaces_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("disk.svg");
    let args = ["plan-capacity", "--bytes-per-day", "1TB", "--simulate", "10d", "--plot", path.to_str().unwrap()];
    let output = run(args).expect_status(0);
    assert!(output.stderr.contains("wrote "), "{output}");
    let svg = std::fs::read_to_string(&path).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("capacity"));
    run(args).expect_status(2);
}

#[test]
fn the_json_has_no_field_that_the_manual_does_not_name() {
    let shop = testdata("real/4.4.0/shop");
    let args: Vec<&str> =
        EXAMPLE.into_iter().chain(["--simulate", "9d", "--from", shop.to_str().unwrap(), "--what-if-codecs"]).collect();
    let mut document = plan(&args);
    // Kafka's own names, with dots.
    document["settings"].take();
    let mut fields = BTreeSet::new();
    fields_of(&document, &mut fields);
    let described = described_fields();
    let missing: Vec<_> = fields.difference(&described).collect();
    assert!(missing.is_empty(), "segtool-json(5) does not name {missing:?}");
}

//! `segtool dump` against what Kafka's own readers and consumers saw in the same files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{self, CommandOutput, Sandbox, packs, run, testdata};
use crate::synth;

const FAMILIES: [&str; 7] = ["eras", "clients", "modern-2.8.2", "modern-3.9.1", "modern-4.x", "internal", "odd"];

type Partition = (String, i64);
type Records = BTreeMap<Partition, BTreeMap<i64, Value>>;

/// The log dirs below a case's `dir/`: itself, or one for each broker or disk.
fn log_dirs(dir: &Path) -> Vec<PathBuf> {
    let below = |path: &Path| -> Vec<PathBuf> {
        let mut entries: Vec<PathBuf> = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        entries
    };
    let holds_log = |path: &Path| below(path).iter().any(|file| file.extension().is_some_and(|e| e == "log"));
    let children = below(dir);
    if holds_log(dir) || children.iter().any(|child| child.is_dir() && holds_log(child)) {
        return vec![dir.to_path_buf()];
    }
    children.into_iter().filter(|child| child.is_dir()).collect()
}

fn dump(path: &Path, isolation: &str) -> CommandOutput {
    let path = path.to_str().unwrap();
    run(["dump", "--format", "json", "--payload", "base64", "--decode", "none", "--isolation", isolation, path])
}

fn records_by_partition(output: &CommandOutput) -> Records {
    let mut records = Records::new();
    for line in output.json_lines().into_iter().filter(|line| line["type"] == "record") {
        let partition = (line["topic"].as_str().unwrap().to_owned(), line["partition"].as_i64().unwrap());
        records.entry(partition).or_default().insert(line["offset"].as_i64().unwrap(), line);
    }
    records
}

fn decoded(object: &Value, key: &str) -> Option<Vec<u8>> {
    object[key].as_str().map(support::json::base64)
}

/// Compares bytes with what Kafka's reader saw; large values stand there as a digest, in one of three spellings.
fn same_bytes(wanted: &Value, key: &str, found: &Value) -> bool {
    let bytes = support::json::bytes(found, key);
    if key == "value" && wanted["valueSha256"].is_string() {
        return bytes.is_some_and(|bytes| wanted["valueSha256"] == support::sha256_hex(&bytes));
    }
    let digest =
        wanted[key]["sha256"].as_str().or_else(|| wanted[key].as_str().and_then(|text| text.strip_prefix("sha256:")));
    match digest {
        Some(digest) => bytes.is_some_and(|bytes| {
            let hex = support::sha256_hex(&bytes);
            let raw: Vec<u8> =
                (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect();
            digest == hex || support::json::base64(digest) == raw
        }),
        None => decoded(wanted, key) == bytes,
    }
}

/// What differs between a record of Kafka's reader and one of ours.
fn difference(wanted: &Value, found: &Value) -> Option<&'static str> {
    let timestamp = |value: &Value| value.as_i64().unwrap_or(-1);
    if wanted["control"] == true {
        let kind = decoded(wanted, "key").map(|key| i16::from_be_bytes([key[2], key[3]]));
        let name = match kind {
            Some(0) => Some("abort"),
            Some(1) => Some("commit"),
            _ => None,
        };
        let same_name = name.is_none_or(|name| found["control"] == name);
        let same = !found["control"].is_null()
            && same_name
            && timestamp(&wanted["timestamp"]) == timestamp(&found["timestamp_ms"]);
        return (!same).then_some("control");
    }
    let timestamp_type = match found["timestamp_type"].as_str().unwrap() {
        "create_time" => "CreateTime",
        "log_append_time" => "LogAppendTime",
        _ => "NoTimestampType",
    };
    let headers: Vec<(String, Option<Vec<u8>>)> = found["headers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|h| {
            let key = support::json::bytes(h, "key").unwrap();
            (String::from_utf8_lossy(&key).into_owned(), support::json::bytes(h, "value"))
        })
        .collect();
    let wanted_headers: Vec<(String, Option<Vec<u8>>)> = wanted["headers"]
        .as_array()
        .map(|headers| {
            headers
                .iter()
                .map(|h| (h[0].as_str().unwrap().to_owned(), h[1].as_str().map(support::json::base64)))
                .collect()
        })
        .unwrap_or_default();
    let checks = [
        ("control", found["control"].is_null()),
        ("key", same_bytes(wanted, "key", found)),
        ("value", same_bytes(wanted, "value", found)),
        ("timestamp", timestamp(&wanted["timestamp"]) == timestamp(&found["timestamp_ms"])),
        ("timestamp type", wanted["timestampType"].as_str().is_none_or(|wanted| wanted == timestamp_type)),
        ("headers", headers == wanted_headers),
    ];
    checks.into_iter().find(|(_, same)| !same).map(|(name, _)| name)
}

/// What a truth file is about: topic, partition where it names one, and whether aborted records were hidden from it.
fn subject(file_name: &str) -> Option<(String, Option<i64>, bool)> {
    let stem = file_name.strip_suffix(".jsonl")?;
    if let Some(name) = stem.strip_prefix("records-") {
        let (topic, partition) = name.rsplit_once('-')?;
        return Some((topic.to_owned(), Some(partition.parse().ok()?), false));
    }
    let name = stem.strip_prefix("consumed-")?;
    let (name, was_committed) = name.strip_prefix("committed-").map_or((name, false), |name| (name, true));
    if let Some(topic) = name.strip_suffix(".committed") {
        return Some((topic.to_owned(), None, true));
    }
    Some((name.strip_suffix(".uncommitted").unwrap_or(name).to_owned(), None, was_committed))
}

/// Why none of the dumps holds the records that Kafka saw, or `None` where one does.
fn mismatch(
    dumps: &[Records],
    partition: &Partition,
    wanted: &BTreeMap<i64, Value>,
    whole_log: bool,
) -> Option<String> {
    let (first, last) = (*wanted.keys().next().unwrap(), *wanted.keys().next_back().unwrap());
    let mut why = "no such partition in the dump".to_owned();
    for found in dumps.iter().filter_map(|records| records.get(partition)) {
        let found: BTreeMap<_, _> = found
            .iter()
            .filter(|(offset, record)| {
                **offset <= last && (whole_log || (**offset >= first && record["control"].is_null()))
            })
            .collect();
        if !found.keys().copied().eq(wanted.keys()) {
            why = format!("offsets {:?} instead of {:?}", found.keys(), wanted.keys());
            continue;
        }
        match wanted.iter().find_map(|(offset, record)| Some((offset, difference(record, found[offset])?))) {
            Some((offset, what)) => why = format!("{what} of offset {offset}"),
            None => return None,
        }
    }
    Some(why)
}

#[test]
fn every_record_that_kafka_reads_is_dumped_alike() {
    let (mut compared, mut failures) = (0, Vec::new());
    for case in FAMILIES.into_iter().flat_map(packs::cases) {
        let (truth, dir) = (case.join("truth"), case.join("dir"));
        if !truth.is_dir() || !dir.is_dir() {
            continue;
        }
        let mut views: BTreeMap<bool, Vec<Records>> = BTreeMap::new();
        let mut names: Vec<_> =
            std::fs::read_dir(&truth).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        for name in names {
            let Some((topic, partition, committed)) = subject(&name) else { continue };
            let mut wanted: BTreeMap<i64, BTreeMap<i64, Value>> = BTreeMap::new();
            for record in support::json::lines_of(&truth.join(&name)) {
                let partition = partition.unwrap_or_else(|| record["partition"].as_i64().unwrap_or(0));
                wanted.entry(partition).or_default().insert(record["offset"].as_i64().unwrap(), record);
            }
            let isolation = if committed { "read_committed" } else { "read_uncommitted" };
            let dumps = views
                .entry(committed)
                .or_insert_with(|| log_dirs(&dir).iter().map(|d| records_by_partition(&dump(d, isolation))).collect());
            for (number, wanted) in wanted {
                compared += 1;
                if let Some(why) = mismatch(dumps, &(topic.clone(), number), &wanted, partition.is_some()) {
                    failures.push(format!("{} {name} partition {number}: {why}", case.display()));
                }
            }
        }
    }
    assert!(compared > 500, "only {compared} partitions were compared");
    assert!(failures.is_empty(), "{} of {compared}:\n{}", failures.len(), failures.join("\n"));
}

/// Names of a batch's fields in Kafka's list and in ours.
const BATCH_FIELDS: [(&str, &str); 12] = [
    ("position", "position"),
    ("size", "size_bytes"),
    ("magic", "magic"),
    ("baseOffset", "base_offset"),
    ("lastOffset", "last_offset"),
    ("codec", "compression"),
    ("leaderEpoch", "leader_epoch"),
    ("producerId", "producer_id"),
    ("producerEpoch", "producer_epoch"),
    ("baseSequence", "base_sequence"),
    ("maxTimestamp", "max_timestamp_ms"),
    ("crc", "crc"),
];

fn batch_difference(wanted: &Value, found: &Value) -> Option<&'static str> {
    let same = |(wanted_name, name): &(&'static str, &'static str)| {
        let (wanted, found) = (&wanted[*wanted_name], &found[*name]);
        match (*name, wanted, found) {
            (_, Value::Null, _) => true,
            ("crc", wanted, found) => {
                u64::from_str_radix(found.as_str().unwrap().trim_start_matches("0x"), 16).ok() == wanted.as_u64()
            }
            (_, wanted, Value::Null) => *wanted == -1,
            (_, wanted, found) => wanted == found,
        }
    };
    BATCH_FIELDS.iter().find(|names| !same(names)).map(|names| names.1)
}

#[test]
fn every_batch_header_that_kafka_reads_is_dumped_alike() {
    let (mut compared, mut failures) = (0, Vec::new());
    for case in FAMILIES.into_iter().flat_map(packs::cases) {
        let truth = case.join("truth");
        let files = if truth.is_dir() { support::files_below(&truth) } else { Vec::new() };
        for file in files {
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            let Some(partition) = name.strip_prefix("batches-").and_then(|name| name.strip_suffix(".jsonl")) else {
                continue;
            };
            let outcomes: Vec<Option<String>> = log_dirs(&case.join("dir"))
                .iter()
                .map(|dir| if dir.ends_with(partition) { dir.clone() } else { dir.join(partition) })
                .filter(|dir| dir.is_dir())
                .map(|dir| compare_batches(&support::json::lines_of(&truth.join(&file)), &dir, &mut compared))
                .collect();
            if outcomes.iter().all(Option::is_some) {
                failures.push(format!("{} {name}: {outcomes:?}", case.display()));
            }
        }
    }
    assert!(compared > 2500, "only {compared} batches were compared");
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
}

/// Both lists up to the first batch of each file that Kafka found invalid.
fn compare_batches(wanted: &[Value], partition: &Path, compared: &mut usize) -> Option<String> {
    let output = run(["dump", "--format", "json", "--batches", partition.to_str().unwrap()]);
    let mut found: BTreeMap<i64, std::collections::VecDeque<Value>> = BTreeMap::new();
    for line in output.json_lines().into_iter().filter(|line| line["type"] == "batch") {
        found.entry(line["segment_base_offset"].as_i64().unwrap()).or_default().push_back(line);
    }
    let mut given_up = std::collections::BTreeSet::new();
    for batch in wanted {
        let base: i64 = batch["file"].as_str().unwrap().trim_end_matches(".log").parse().unwrap();
        if batch["valid"] == false {
            given_up.insert(base);
        }
        if given_up.contains(&base) {
            continue;
        }
        *compared += 1;
        let Some(ours) = found.get_mut(&base).and_then(std::collections::VecDeque::pop_front) else {
            return Some(format!("no batch at {base} {}", batch["position"]));
        };
        if let Some(what) = batch_difference(batch, &ours) {
            return Some(format!("{what} of the batch at {base} {}", batch["position"]));
        }
    }
    found
        .iter()
        .find(|(base, left)| !left.is_empty() && !given_up.contains(base))
        .map(|(base, _)| format!("more batches in {base}"))
}

/// A partition of three segments: 40 batches of two records each, keys `k0` to `k9`.
fn three_segments() -> Sandbox {
    let sandbox = Sandbox::empty();
    let mut partition = synth::Partition::new("orders", 0).index_interval_bytes(200);
    for number in 0..40i64 {
        if number == 15 || number == 30 {
            partition = partition.roll();
        }
        let records = (0..2).map(|i| {
            let offset = number * 2 + i;
            synth::record(format!("k{}", offset % 10), format!("value-{offset}")).at(1_700_000_000_000 + offset * 1000)
        });
        partition = partition.append(synth::Batch::at(number * 2).records(records));
    }
    partition.write(sandbox.path());
    sandbox
}

fn offsets(output: &CommandOutput) -> Vec<i64> {
    output
        .json_lines()
        .iter()
        .filter(|line| line["type"] == "record")
        .map(|line| line["offset"].as_i64().unwrap())
        .collect()
}

#[test]
fn ranges_and_filters_give_exactly_what_they_name() {
    let sandbox = three_segments();
    let path = sandbox.path().to_str().unwrap();
    let with = |flags: &[&str]| {
        let all = ["dump", "--format", "json", path].iter().chain(flags).copied().collect::<Vec<_>>();
        offsets(&run(all).expect_status(0))
    };
    for (flags, expected) in [
        (&[][..], (0..80).collect::<Vec<i64>>()),
        (&["--offsets", "33..37"], vec![33, 34, 35, 36]),
        (&["--offsets", "77.."], vec![77, 78, 79]),
        (&["--offsets", "..2"], vec![0, 1]),
        (&["--offsets", "90.."], vec![]),
        (&["--limit", "3"], vec![0, 1, 2]),
        (&["--last", "3"], vec![77, 78, 79]),
        (&["--last", "3", "--offsets", "..31"], vec![28, 29, 30]),
        (&["--last", "2", "--key", "k4"], vec![64, 74]),
        (&["--key", "k7", "--limit", "2"], vec![7, 17]),
        (&["--timestamps", "1700000005000..1700000007000"], vec![5, 6]),
        (&["--timestamps", "2023-11-14T22:14:38Z.."], vec![78, 79]),
        (&["--producer-id", "9"], vec![]),
        (&["--topic-partition", "orders-*", "--limit", "1"], vec![0]),
        (&["--topic-partition", "payments-*"], vec![]),
    ] {
        assert_eq!(with(flags), expected, "{flags:?}");
    }
}

#[test]
fn an_index_that_lies_costs_time_but_no_record() {
    let sandbox = three_segments();
    let path = sandbox.path().to_str().unwrap().to_owned();
    let wanted = offsets(&run(["dump", "--format", "json", "--offsets", "50..56", &path]));
    let index = sandbox.join("orders-0/00000000000000000030.index");
    let size = std::fs::metadata(&index).unwrap().len();
    assert!(size > 0);
    for byte in 0..usize::try_from(size).unwrap() {
        let copy = Sandbox::copy_of(sandbox.path());
        support::damage::edit(&copy.join("orders-0/00000000000000000030.index"), |bytes| bytes[byte] ^= 0x55);
        let found = offsets(&run(["dump", "--format", "json", "--offsets", "50..56", copy.path().to_str().unwrap()]));
        assert_eq!(found, wanted, "byte {byte}");
    }
}

#[test]
fn output_does_not_depend_on_threads_or_on_the_way_of_reading() {
    let case = packs::case("modern-4.x", "4.4.0/transactions");
    for dir in log_dirs(&case.join("dir")) {
        let dir = dir.to_str().unwrap();
        for shape in [&["--format", "json"][..], &["--format", "human", "--records", "--batches"]] {
            let with = |more: &[&str]| {
                let all: Vec<&str> = ["dump", dir].iter().chain(shape).chain(more).copied().collect();
                run(all).stdout
            };
            let wanted = with(&["--threads", "1"]);
            assert!(!wanted.is_empty());
            for more in [&["--threads", "2"][..], &["--threads", "8"], &["--io", "mmap"]] {
                assert!(with(more) == wanted, "{more:?} {shape:?}");
            }
        }
    }
}

#[test]
fn damage_is_shown_where_it_lies_and_the_dump_goes_on_behind_it() {
    let sandbox = three_segments();
    let log = sandbox.join("orders-0/00000000000000000030.log");
    support::damage::flip_bit(&log, 61 + 200, 3);
    let output = run(["dump", "--format", "json", sandbox.path().to_str().unwrap()]).expect_status(1);
    let lines = output.json_lines();
    let damage: Vec<&Value> = lines.iter().filter(|line| line["type"] == "damage").collect();
    assert_eq!(damage.len(), 1);
    assert_eq!(damage[0]["id"], "batch-crc-mismatch");
    assert_eq!(damage[0]["path"], "orders-0/00000000000000000030.log");
    let (first, last) = (damage[0]["first_offset"].as_i64().unwrap(), damage[0]["last_offset"].as_i64().unwrap());
    let expected: Vec<i64> = (0..80).filter(|offset| !(first..=last).contains(offset)).collect();
    assert_eq!((last - first, offsets(&output)), (1, expected));
    let summary = lines.last().unwrap();
    assert_eq!(
        (&summary["type"], &summary["damage"], &summary["complete"]),
        (&"summary".into(), &1.into(), &true.into())
    );
    run(["dump", "--fail-on", "never", sandbox.path().to_str().unwrap()]).expect_status(0);
}

#[test]
fn every_flipped_cut_or_zeroed_byte_of_a_segment_is_survived_and_accounted_for() {
    let sandbox = Sandbox::empty();
    let batch = |offset, codec| {
        let records = (0..3).map(|i| synth::record(format!("k{i}"), format!("value {i}")).header("h", "v"));
        synth::Batch::at(offset).records(records).codec(codec).build()
    };
    let bytes: Vec<u8> = [
        batch(0, synth::Codec::NONE),
        batch(3, synth::Codec::GZIP),
        batch(6, synth::Codec::SNAPPY),
        batch(9, synth::Codec::LZ4),
        batch(12, synth::Codec::ZSTD),
    ]
    .concat();
    let check = |bytes: &[u8], what: &str| {
        let path = sandbox.write("orders-0/00000000000000000000.log", bytes);
        let output = run(["dump", "--format", "json", path.to_str().unwrap()]);
        assert!(matches!(output.status, 0 | 1), "{what}: {} {}", output.status, output.stderr);
        let lines = output.json_lines();
        let summary = lines.last().unwrap();
        assert_eq!((&summary["type"], &summary["bytes"]), (&"summary".into(), &bytes.len().into()), "{what}");
    };
    for position in 0..bytes.len() {
        for (name, value) in [("flipped", bytes[position] ^ 0x10), ("zeroed", 0), ("filled", 0xff)] {
            let mut changed = bytes.clone();
            changed[position] = value;
            check(&changed, &format!("byte {position} {name}"));
        }
        check(&bytes[..position], &format!("cut to {position}"));
    }
}

#[test]
fn untrusted_bytes_never_reach_the_output_raw() {
    let sandbox = Sandbox::empty();
    let everything: Vec<u8> = (0..=255).collect();
    let deceptive = "\u{202e}\u{200b}\u{9b}\u{feff}\u{2066}".as_bytes();
    let batch = synth::Batch::at(0)
        .record(synth::record(&everything, deceptive).header(deceptive, &everything))
        .record(synth::record(deceptive, &everything));
    synth::Partition::new("orders", 0).append(batch).write(sandbox.path());
    for format in ["human", "json"] {
        for payload in ["auto", "utf8", "hex", "base64", "redacted", "none"] {
            let output = run(["dump", "--format", format, "--payload", payload, sandbox.path().to_str().unwrap()]);
            let text = String::from_utf8(output.stdout).unwrap();
            let bad = text.chars().find(|&c| {
                (c.is_control() && c != '\n') || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
            });
            assert_eq!(bad, None, "{format} {payload}");
        }
    }
}

#[test]
fn what_cannot_be_read_is_named_and_the_status_says_so() {
    let sandbox = three_segments();
    let log = sandbox.join("orders-0/00000000000000000030.log");
    std::fs::remove_file(&log).unwrap();
    std::fs::create_dir(&log).unwrap();
    let output = run(["dump", "--format", "json", sandbox.path().to_str().unwrap()]).expect_status(2);
    assert!(
        output.stderr.contains("00000000000000000030.log: expected a regular file, found a directory"),
        "{}",
        output.stderr
    );
    assert_eq!(output.json_lines().last().unwrap()["complete"], false);
    let output = run(["dump", sandbox.join("nothing-here").to_str().unwrap()]).expect_status(2);
    assert!(output.stderr.starts_with("error: ") && output.stderr.contains("nothing-here"), "{}", output.stderr);
}

#[test]
fn a_closed_pipe_ends_the_dump_quietly() {
    let sandbox = three_segments();
    let mut child = Command::new(env!("CARGO_BIN_EXE_segtool"))
        .args(["dump", sandbox.path().to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn the_shipped_shop_reads_as_a_person_would_want_it() {
    let output =
        run(["dump", testdata("real/4.4.0/shop").to_str().unwrap(), "--topic-partition", "orders-0", "--limit", "2"]);
    for line in output.text().lines() {
        assert!(line.starts_with("orders-0 @") && line.contains(" off=") && line.contains(" zstd"), "{line}");
    }
    assert_eq!(output.text().lines().count(), 2);
}

#[test]
fn every_other_file_of_a_log_dir_is_shown_entry_by_entry() {
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    for root in ["modern-4.x", "modern-2.8.2", "eras"].map(packs::unpacked) {
        for relative in support::files_below(&root) {
            let path = root.join(&relative);
            let name = path.file_name().unwrap().to_str().unwrap();
            let is_data = relative.components().any(|part| part.as_os_str() == "dir");
            let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| name.ends_with(suffix));
            let is_shown =
                ends(&["index", ".snapshot", "checkpoint", "meta.properties", "partition.metadata", "quorum-state"]);
            // Padded indexes are long and dull.
            if !is_data || !is_shown || ends(&[".checkpoint"]) || std::fs::metadata(&path).unwrap().len() > 100_000 {
                continue;
            }
            let output = run(["dump", "--format", "json", path.to_str().unwrap()]).expect_status(0);
            let lines = output.json_lines();
            let summary = lines.last().unwrap();
            assert_eq!((&summary["complete"], &summary["damage"]), (&true.into(), &0.into()), "{}", path.display());
            let size = std::fs::read(&path).unwrap().len();
            let entry_size =
                [("timeindex", 12), ("txnindex", 34), ("index", 8)].into_iter().find(|(e, _)| name.ends_with(e));
            if let Some((_, entry_size)) = entry_size {
                assert_eq!(lines.len() - 1, size / entry_size, "{}", path.display());
            }
            for line in &lines {
                *seen.entry(line["type"].as_str().unwrap().to_owned()).or_default() += 1;
            }
        }
    }
    let types: Vec<&str> = seen.keys().map(String::as_str).collect();
    let all = [
        "aborted_transaction",
        "checkpoint_entry",
        "leader_epoch",
        "offset_index_entry",
        "producer_state",
        "property",
        "summary",
        "time_index_entry",
    ];
    assert_eq!(types, all, "{seen:?}");
}

#[test]
fn a_damaged_small_file_shows_what_can_be_read_and_what_is_wrong() {
    let sandbox = Sandbox::empty();
    let path = sandbox.write("leader-epoch-checkpoint", b"0\n2\n0 0\nfive 42\n");
    let output = run(["dump", "--format", "json", path.to_str().unwrap()]).expect_status(1);
    let lines = output.json_lines();
    assert_eq!((&lines[0]["type"], &lines[0]["start_offset"]), (&"leader_epoch".into(), &0.into()));
    assert_eq!((&lines[1]["type"], &lines[1]["id"]), (&"damage".into(), &"leader-epoch-malformed".into()));
    let path = sandbox.write("orders-0/notes.txt", b"hello");
    let output = run(["dump", path.to_str().unwrap()]).expect_status(2);
    assert!(output.stderr.contains("this is no file that Kafka writes"), "{}", output.stderr);
}

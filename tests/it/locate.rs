//! `segtool locate` against what Kafka's log classes answered to thousands of questions.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use segtool::format::{LeaderEpoch, Offset, TimestampMs};
use segtool::logdir::{Input, PartitionDir};
use segtool::ops::locate::{Answer, Lookup, Options, Query};

use crate::support::{Sandbox, damage, json, packs, run, set_modified};
use crate::synth;

struct Case {
    _sandbox: Sandbox,
    name: String,
    truth: std::path::PathBuf,
    partition: PartitionDir,
    lookup: Lookup,
    options: Options,
}

fn cases() -> Vec<Case> {
    packs::cases("lookup")
        .into_iter()
        .map(|case| {
            let params: serde_json::Value =
                serde_json::from_slice(&std::fs::read(case.join("truth/params.json")).unwrap()).unwrap();
            let name = format!("{}-{}", params["topic"].as_str().unwrap(), params["partition"]);
            let sandbox = Sandbox::copy_of(&case.join("dir"));
            // Without a time index a broker goes by the time of the log file.
            for row in rows(&case.join("truth/mtimes-before.tsv")) {
                let modified = UNIX_EPOCH + Duration::from_millis(row[1].parse().unwrap());
                set_modified(&sandbox.join(&row[0]), modified);
            }
            let Input::Partition(partition) = Input::open(&sandbox.join(name)).unwrap() else { unreachable!() };
            let log_start_offset = params["log_start_offset"].as_i64().filter(|&start| start > 0).map(Offset);
            let options = Options { log_start_offset, ..Options::default() };
            let lookup = Lookup::open(&partition, None, &options).unwrap();
            Case {
                _sandbox: sandbox,
                name: case.file_name().unwrap().to_str().unwrap().to_owned(),
                truth: case.join("truth"),
                partition,
                lookup,
                options,
            }
        })
        .collect()
}

fn rows(path: &Path) -> Vec<Vec<String>> {
    std::fs::read_to_string(path)
        .unwrap_or_default()
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect()
}

fn place(answer: &Answer) -> Option<Vec<i64>> {
    let (batch, record) = (answer.batch?, answer.record?);
    Some(vec![
        answer.segment_base_offset?.0,
        batch.position.0 as i64,
        batch.base_offset.0,
        batch.last_offset.0,
        batch.size_bytes as i64,
        record.offset.0,
    ])
}

#[test]
fn every_offset_is_found_where_a_fetch_finds_it() {
    let (mut probes, mut failures) = (0, Vec::new());
    for mut case in cases() {
        let rows = rows(&case.truth.join("offsets.tsv"));
        let by_offset: BTreeMap<i64, &Vec<String>> = rows.iter().map(|row| (row[0].parse().unwrap(), row)).collect();
        for (&offset, row) in by_offset.iter().filter(|(offset, _)| **offset >= 0) {
            // A batch that cleaning left without a record from there on is passed over, as a consumer does.
            let mut told = Some(*row);
            while let Some(row) = told.filter(|row| row[6] == "none" && row[4].parse::<i64>().is_ok()) {
                told = by_offset.get(&(row[4].parse::<i64>().unwrap() + 1)).copied();
            }
            let Some(row) = told else { continue };
            let wanted = (!row[1].starts_with("error") && row[3] != "none")
                .then(|| row[1..7].iter().map(|field| field.parse::<i64>().unwrap()).collect::<Vec<_>>());
            probes += 1;
            let answer = case.lookup.answer(Query::Offset(Offset(offset))).unwrap();
            if place(&answer) != wanted || answer.is_found() != wanted.is_some() {
                failures.push(format!("{} {offset}: {:?} instead of {wanted:?}", case.name, place(&answer)));
            }
        }
    }
    assert!(probes > 700, "only {probes} probes");
    assert!(failures.is_empty(), "{} of {probes}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_instant_is_found_where_list_offsets_finds_it() {
    let (mut probes, mut failures) = (0, Vec::new());
    for mut case in cases() {
        for row in rows(&case.truth.join("timestamps.tsv")) {
            let query = match row[0].parse::<i64>().unwrap() {
                -1 => Query::Latest,
                -2 | -4 => Query::Earliest,
                -3 => Query::MaxTimestamp,
                timestamp if timestamp < 0 => continue,
                timestamp => Query::Timestamp(TimestampMs(timestamp)),
            };
            let wanted = row[1].parse::<i64>().ok().filter(|&offset| offset >= 0);
            let wanted_time = row[2].parse::<i64>().ok().filter(|&time| time >= 0);
            probes += 1;
            let answer = case.lookup.answer(query).unwrap();
            let found = (answer.offset.map(|o| o.0), answer.record.and_then(|r| r.timestamp).map(|t| t.0));
            if found != (wanted, wanted_time) {
                failures.push(format!("{} {}: {found:?} instead of {:?}", case.name, row[0], (wanted, wanted_time)));
            }
        }
    }
    assert!(probes > 1000, "only {probes} probes");
    assert!(failures.is_empty(), "{} of {probes}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_leader_epoch_ends_where_a_follower_is_told() {
    let mut probes = 0;
    for mut case in cases() {
        for row in rows(&case.truth.join("leader-epochs.tsv")) {
            let answer = case.lookup.answer(Query::LeaderEpoch(LeaderEpoch(row[0].parse().unwrap()))).unwrap();
            let told = answer.epoch.unwrap();
            let wanted = (row[1].parse::<i32>().ok(), row[2].parse::<i64>().ok());
            probes += 1;
            assert_eq!(
                (told.epoch.map(|e| e.0), told.end_offset.map(|o| o.0)),
                wanted,
                "{} epoch {}",
                case.name,
                row[0]
            );
        }
    }
    assert!(probes > 50, "only {probes} probes");
}

/// `segment-offsets.tsv` and `segment-timestamps.tsv` ask one segment alone, as `locate` on a log file does.
#[test]
fn a_single_segment_answers_as_its_class_does() {
    let (mut probes, mut failures) = (0, Vec::new());
    for case in cases() {
        let mut segments: BTreeMap<i64, Lookup> = BTreeMap::new();
        for row in rows(&case.truth.join("segment-offsets.tsv")) {
            let (base, offset) = (row[0].parse::<i64>().unwrap(), row[1].parse::<i64>().unwrap());
            let options = Options { log_start_offset: Some(Offset(0)), ..Options::default() };
            let lookup = segments
                .entry(base)
                .or_insert_with(|| Lookup::open(&case.partition, Some(Offset(base)), &options).unwrap());
            let (Ok(position), true) = (row[5].parse::<u64>(), offset >= 0) else { continue };
            let answer = lookup.answer(Query::Offset(Offset(offset))).unwrap();
            let Some(batch) = answer.batch else { continue };
            probes += 1;
            let entry = answer.index.unwrap();
            let wanted = (row[2].parse::<i64>().unwrap(), row[3].parse::<u64>().unwrap());
            let passed_over = batch.position.0 > position;
            if (entry.entry_offset.0, entry.entry_position.0) != wanted
                || (batch.position.0 != position && !passed_over)
            {
                failures.push(format!("{} segment {base} offset {offset}: {answer:?} instead of {row:?}", case.name));
            }
        }
    }
    assert!(probes > 600, "only {probes} probes");
    assert!(failures.is_empty(), "{} of {probes}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn a_single_segment_finds_instants_as_its_class_does() {
    let (mut probes, mut failures) = (0, Vec::new());
    for case in cases() {
        let mut segments: BTreeMap<i64, Lookup> = BTreeMap::new();
        for row in rows(&case.truth.join("segment-timestamps.tsv")) {
            let (base, timestamp) = (row[0].parse::<i64>().unwrap(), row[1].parse::<i64>().unwrap());
            let lookup = segments
                .entry(base)
                .or_insert_with(|| Lookup::open(&case.partition, Some(Offset(base)), &case.options).unwrap());
            if timestamp < 0 {
                continue;
            }
            let wanted = (row[4].parse::<i64>().ok(), row[5].parse::<i64>().ok());
            let answer = lookup.answer(Query::Timestamp(TimestampMs(timestamp))).unwrap();
            probes += 1;
            let found = (answer.offset.map(|o| o.0), answer.record.and_then(|r| r.timestamp).map(|t| t.0));
            if found != wanted {
                failures.push(format!("{} segment {base} at {timestamp}: {found:?} instead of {wanted:?}", case.name));
            }
        }
    }
    assert!(probes > 1000, "only {probes} probes");
    assert!(failures.is_empty(), "{} of {probes}:\n{}", failures.len(), failures.join("\n"));
}

/// `offsets.jsonl`: what brokers answered to ListOffsets while they ran.
#[test]
fn running_brokers_gave_the_same_answers() {
    let (mut probes, mut failures) = (0, Vec::new());
    for case in ["modern-2.8.2", "modern-3.9.1", "modern-4.x"].into_iter().flat_map(packs::cases) {
        let truth = case.join("truth/offsets.jsonl");
        let mut lookups: BTreeMap<String, Option<Lookup>> = BTreeMap::new();
        for line in if truth.is_file() { json::lines_of(&truth) } else { Vec::new() } {
            let name = format!("{}-{}", line["topic"].as_str().unwrap(), line["partition"]);
            let lookup = lookups.entry(name.clone()).or_insert_with(|| {
                let Ok(Input::Partition(partition)) = Input::open(&case.join("dir").join(&name)) else { return None };
                Lookup::open(&partition, None, &Options::default()).ok()
            });
            // Several brokers have their log dirs one level further down; replicas may differ.
            let Some(lookup) = lookup else { continue };
            let mut ask = |query: Query, wanted: &serde_json::Value, what: &str| {
                let Some(wanted) = wanted.as_i64() else { return };
                let found = lookup.answer(query).unwrap().offset.map_or(-1, |offset| offset.0);
                probes += 1;
                if found != wanted {
                    failures.push(format!("{} {name} {what}: {found} instead of {wanted}", case.display()));
                }
            };
            ask(Query::Earliest, &line["beginning"], "beginning");
            ask(Query::Latest, &line["end"], "end");
            if let Some(timestamp) = line["offsetForTime"].as_i64().filter(|&timestamp| timestamp >= 0) {
                ask(Query::Timestamp(TimestampMs(timestamp)), &line["offset"], &format!("at {timestamp}"));
            }
        }
    }
    assert!(probes > 300, "only {probes} probes");
    assert!(failures.is_empty(), "{} of {probes}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn a_sound_index_costs_few_probes_and_one_interval_of_log() {
    for mut case in cases() {
        let interval = 100 + 61;
        let (start, end) = case.lookup.range();
        for offset in start.0..end.0.min(start.0 + 400) {
            let answer = case.lookup.answer(Query::Offset(Offset(offset))).unwrap();
            let (Some(index), Some(scan), Some(batch)) = (answer.index, answer.scan, answer.batch) else { continue };
            let most = if index.entries == 0 { 0 } else { index.entries.next_power_of_two().ilog2() + 1 };
            assert!(
                index.probes <= u64::from(most),
                "{} {offset}: {} probes of {}",
                case.name,
                index.probes,
                index.entries
            );
            // Batches of the cleaner and of followers are indexed by the append, which holds many.
            if index.entries > 1
                && !matches!(case.name.as_str(), "compacted-gaps" | "empty-batches" | "v0" | "v1" | "mixed-v1-v2")
            {
                let read = scan.to_position.since(scan.from_position);
                assert!(read <= interval + 4 * batch.size_bytes, "{} {offset}: {read} bytes", case.name);
            }
        }
    }
}

/// The walk of the textbooks: entries (47, 4096), (94, 8192), (141, 12288), and the place before the first.
fn textbook() -> Sandbox {
    let sandbox = Sandbox::empty();
    let mut log = Vec::new();
    for batch in 0..4i64 {
        // Four batches, each of 47 records and exactly 4096 bytes.
        let base = batch * 47;
        let bare = |filler: usize| {
            let records = (0..47)
                .map(|i| synth::record("", vec![b'x'; if i == 0 { filler } else { 60 }]).at(synth::T + base + i));
            synth::Batch::at(base).records(records).build()
        };
        let filler = (0..2000).find(|&filler| bare(filler).len() == 4096).unwrap();
        log.extend(bare(filler));
    }
    sandbox.write("orders-0/00000000000000000000.log", &log);
    sandbox.write(
        "orders-0/00000000000000000000.index",
        &synth::files::offset_index(0, &[(47, 4096), (94, 8192), (141, 12288)]),
    );
    sandbox
}

#[test]
fn the_walk_of_the_textbooks_is_told_as_a_person_would() {
    let sandbox = textbook();
    let partition = sandbox.join("orders-0");
    let output = run(["locate", "--offset", "100", "--explain", partition.to_str().unwrap()]).expect_status(0);
    let text = output.text();
    for told in [
        "orders-0 holds offsets 0 to 187",
        "entry (94, 8192): no batch before position 8192 can hold it",
        "read from position 8192",
        "batch 94..140 at 8192: here",
        "offset 100, ",
        "position 8192, 50 % into the file",
    ] {
        assert!(text.contains(told), "{told:?} is missing in\n{text}");
    }
}

#[test]
fn an_index_that_lies_is_noticed_and_the_answer_stays_right() {
    let sandbox = textbook();
    let index = sandbox.join("orders-0/00000000000000000000.index");
    // (94, 8192) becomes (94, 8200): no batch starts there.
    damage::overwrite(&index, 12, &8200u32.to_be_bytes());
    let partition = sandbox.join("orders-0");
    let output = run(["locate", "--offset", "100", "--format", "json", partition.to_str().unwrap()]).expect_status(1);
    let answer = output.json();
    assert_eq!((&answer["found"], &answer["batch"]["position"]), (&true.into(), &8192.into()));
    assert_eq!(answer["findings"][0]["id"], "offset-index-entry-wrong");
    assert_eq!(answer["findings"][0]["path"], "orders-0/00000000000000000000.index");
}

#[test]
fn out_of_range_is_not_found_and_says_what_the_log_holds() {
    let sandbox = textbook();
    let partition = sandbox.join("orders-0");
    for offset in ["188", "5000"] {
        let output = run(["locate", "--offset", offset, partition.to_str().unwrap()]).expect_status(1);
        assert!(output.text().contains("out of range; the log holds 0 to 187"), "{}", output.text());
    }
    let output =
        run(["locate", "--timestamp", "latest", sandbox.path().to_str().unwrap(), "--format", "json"]).expect_status(0);
    assert_eq!(output.json()["results"][0]["offset"], 188);
}

//! Every recorded round of the real cleaners, repeated.

use std::collections::{BTreeMap, BTreeSet};

use segtool::ops::compact::CleanStop;

use super::recording::{Digest, Recording, bytes_of, clean};
use crate::support::packs;

/// How a round compares with the recorded one.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Outcome {
    Exact,
    EqualAfterDecompression,
    BothDie,
    BothLeaveItAlone,
    Differs(String),
}

fn compare(recording: &Recording, version: &str) -> Option<Outcome> {
    let stats = recording.stats(version)?;
    if stats.get("open_error").is_some() {
        return None;
    }
    let sandbox = recording.before();
    let cleaned = clean(sandbox.path(), &recording.options(version));
    let dies = stats.get("error").is_some();
    let cleaned = match cleaned {
        Ok(cleaned) if cleaned.uncleanable.is_some() => {
            assert_eq!(cleaned.before, cleaned.after, "{}: a log that cannot be cleaned is changed", recording.name());
            let text = format!("dies of {:?}", cleaned.uncleanable);
            return Some(if dies { Outcome::BothDie } else { Outcome::Differs(text) });
        }
        Ok(cleaned) => cleaned,
        Err(CleanStop::Failed(failure)) => return Some(Outcome::Differs(format!("fails: {failure:?}"))),
        Err(stop) => return Some(Outcome::Differs(format!("stops: {stop:?}"))),
    };
    if dies {
        return Some(Outcome::Differs("should die".to_owned()));
    }
    if stats["eligible"] == false {
        let is_alone = cleaned.rounds.is_empty() && cleaned.before == cleaned.after;
        return Some(if is_alone { Outcome::BothLeaveItAlone } else { Outcome::Differs("should be left".to_owned()) });
    }
    let Some(round) = cleaned.rounds.first() else { return Some(Outcome::Differs("no round".to_owned())) };
    let facts = [
        ("first_dirty_offset", round.selection.first_dirty.0),
        ("first_uncleanable_offset", round.selection.first_uncleanable.0),
        ("clean_bytes", round.selection.clean_bytes as i64),
        ("cleanable_bytes", round.selection.cleanable_bytes as i64),
        ("map_size", round.mapped_keys as i64),
        ("end_offset", round.end.0),
        ("bytes_read", round.bytes_before as i64),
        ("bytes_written", round.bytes_after as i64),
    ];
    let with_codec = recording.records_after(version).map(|text| logs_with_codec(&text)).unwrap_or_default();
    for (name, ours) in facts {
        let is_free = name == "bytes_written" && !with_codec.is_empty();
        if stats[name].as_i64() != Some(ours) && !is_free {
            return Some(Outcome::Differs(format!("{name}: {ours}, recorded {}", stats[name])));
        }
    }
    for tally in &cleaned.segments {
        assert!(tally.accounting.adds_up(), "{}: {tally:?}", recording.name());
    }
    if recording.runs_retention() {
        return None;
    }
    let ours = bytes_of(&cleaned.after);
    Some(compare_files(recording, version, &stats, &ours, &with_codec))
}

/// The logs, without their extension, that have compressed batches.
fn logs_with_codec(records: &str) -> BTreeSet<String> {
    let batches = records.lines().map(|line| line.split('\t').collect::<Vec<_>>()).filter(|fields| fields[0] == "B");
    let compressed = batches.filter(|fields| fields[8] != "none");
    compressed.map(|fields| fields[1].trim_end_matches(".log").to_owned()).collect()
}

fn compare_files(
    recording: &Recording,
    version: &str,
    stats: &serde_json::Value,
    ours: &BTreeMap<String, Vec<u8>>,
    with_codec: &BTreeSet<String>,
) -> Outcome {
    let theirs = recording.files_after(version).unwrap();
    let by_opening: BTreeSet<&str> = stats["changed_by_open_and_close_alone"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|change| change.as_str().unwrap()[2..].strip_prefix("orders-0/"))
        .collect();
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let differing: Vec<&str> = names
        .into_iter()
        .filter(|name| ours.get(*name).map(|bytes| Digest::of(bytes)) != theirs.get(*name).cloned())
        .map(String::as_str)
        .filter(|name| *name != "partition.metadata" && !by_opening.contains(name))
        .collect();
    if differing.is_empty() {
        return Outcome::Exact;
    }
    // Another library compresses to other bytes, which moves what follows them.
    let may_differ = |name: &&str| {
        name.rsplit_once('.')
            .is_some_and(|(base, kind)| with_codec.contains(base) && ["log", "index", "timeindex"].contains(&kind))
    };
    if differing.iter().all(may_differ) {
        let recorded = super::decoded::recorded(&recording.records_after(version).unwrap());
        let decoded = super::decoded::decoded(ours);
        if recorded == decoded {
            return Outcome::EqualAfterDecompression;
        }
        let first = recorded.iter().zip(&decoded).find(|(theirs, ours)| theirs != ours);
        return Outcome::Differs(format!("records of {differing:?}: {first:?}"));
    }
    Outcome::Differs(format!("files {differing:?}"))
}

#[track_caller]
fn assert_all(family: &str, versions: &[&str]) {
    let mut counts: BTreeMap<&str, BTreeMap<String, usize>> = BTreeMap::new();
    let mut differing = Vec::new();
    for path in packs::cases(family) {
        let recording = Recording::open(&path);
        for version in versions {
            let Some(outcome) = compare(&recording, version) else { continue };
            match outcome {
                Outcome::Differs(why) => differing.push(format!("{} {version}: {why}", recording.name())),
                outcome => *counts.entry(version).or_default().entry(format!("{outcome:?}")).or_default() += 1,
            }
        }
    }
    println!("{family}: {counts:?}");
    assert!(differing.is_empty(), "{} differ:\n{}", differing.len(), differing.join("\n"));
    assert!(!counts.is_empty());
}

#[test]
fn scenarios_come_out_as_from_the_cleaners_of_four_versions() {
    assert_all("compaction", &["4.4.0", "4.3.1", "3.9.1", "2.8.2"]);
}

#[test]
fn random_logs_come_out_as_from_the_cleaner() {
    assert_all("compaction-random", &["4.4.0"]);
}

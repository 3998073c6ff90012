//! `verify` on every recorded damage: noticed at its place, and critical where brokers lost data by it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use segtool::ops::verify::Options;
use segtool::ops::{Finding, FindingId, Severity};

use crate::support::{Start, damaged_case, packs};
use crate::verify::{options, serious, verify};

/// About one batch: it is a matter of taste which of two neighbours is out of order.
const NEAR: u64 = 300;

type Key = (FindingId, PathBuf, Option<u64>);

fn key(finding: &Finding) -> Key {
    (finding.id, finding.location.path.clone(), finding.location.position.map(|position| position.0))
}

/// What is found in a case beyond what its undamaged original has.
fn new_findings(name: &str, start: Start) -> Vec<Finding> {
    let case = damaged_case(name, start);
    let settings = Options { now: Some(segtool::format::TimestampMs(case.now_ms.try_into().unwrap())), ..options() };
    let report = verify(&[case.sandbox.path()], &settings, 1);
    let text = fs::read_to_string(case.case.join("CASE.md")).unwrap();
    let original = text.split("clean-bases/").nth(1).map(|rest| rest.split('`').next().unwrap().to_owned());
    let known = original.map(|base| findings_of_original(&base, &settings)).unwrap_or_default();
    report.findings.into_iter().filter(|finding| !known.contains(&key(finding))).collect()
}

fn findings_of_original(base: &str, settings: &Options) -> BTreeSet<Key> {
    let log_dir = packs::case("damaged", "clean-bases").join(base).join("dir");
    verify(&[&log_dir], settings, 1).findings.iter().map(key).collect()
}

/// A line of a case's section on its damage: the file, where in it, and what was done.
struct Spoilt {
    path: PathBuf,
    position: Option<u64>,
    what: String,
}

fn spoilt(case: &Path) -> Vec<Spoilt> {
    let text = fs::read_to_string(case.join("CASE.md")).unwrap();
    let section = text.split("\n## Damage").nth(1).unwrap_or_default();
    let lines = section.lines().skip(1).take_while(|line| !line.starts_with("## "));
    lines
        .filter_map(|line| line.strip_prefix("* "))
        .filter_map(|line| {
            let (path, what) = line.strip_prefix("directory ").unwrap_or(line).strip_prefix('`')?.split_once('`')?;
            let digits = what.split("position ").nth(1).map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
            let position = digits.flatten().and_then(|digits| digits.parse().ok());
            Some(Spoilt { path: PathBuf::from(path), position, what: what.to_owned() })
        })
        .collect()
}

/// Cases of `exceptions.txt` with this mark.
fn marked(mark: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(packs::unpacked("damaged").join("exceptions.txt")).unwrap();
    let words = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    words.filter(|words| words.first() == Some(&mark)).map(|words| words[1].to_owned()).collect()
}

fn cases() -> Vec<String> {
    let names = packs::cases("damaged").into_iter().map(|case| case.file_name().unwrap().to_str().unwrap().to_owned());
    names.collect()
}

/// A finding in the partition of the path, in its log dir's files about it, or in the path itself.
fn concerns(finding: &Finding, path: &Path) -> bool {
    let part = path.components().next().unwrap().as_os_str().to_str().unwrap();
    let place = &finding.location;
    let partition = place.topic_partition.as_ref().map(ToString::to_string);
    place.path.to_str().unwrap().starts_with(part) || partition.is_some_and(|name| part.starts_with(&name))
}

fn is_near(finding: &Finding, position: u64) -> bool {
    let Some(start) = finding.location.position else { return true };
    let end = start.0 + finding.location.size_bytes.unwrap_or(0);
    (start.0.saturating_sub(NEAR)..=end + NEAR).contains(&position)
}

/// Whether a batch is gone, or a field was changed that no checksum covers: what contradicts it may be elsewhere.
fn leaves_sound_bytes(what: &str) -> bool {
    ["cut out", "baseOffset", "leaderEpoch"].iter().any(|word| what.contains(word))
}

#[test]
fn every_damage_is_noticed_at_its_place() {
    let (legal, blind) = (marked("legal"), marked("blind"));
    let mut missed = Vec::new();
    for name in cases().iter().filter(|name| !blind.contains(*name) && !legal.contains(*name)) {
        let found = new_findings(name, Start::Clean);
        let mut is_noticed = false;
        for Spoilt { path, position, what } in spoilt(&packs::case("damaged", name)) {
            let is_log = path.extension().is_some_and(|extension| extension == "log");
            let hit = match position {
                Some(position) if is_log && !leaves_sound_bytes(&what) => {
                    let hit = found.iter().any(|finding| {
                        finding.location.path == path && finding.severity > Severity::Info && is_near(finding, position)
                    });
                    if !hit {
                        missed.push(format!("{name}: {} at {position}", path.display()));
                    }
                    hit
                }
                _ => found.iter().any(|finding| concerns(finding, &path)),
            };
            is_noticed |= hit;
        }
        if !is_noticed {
            missed.push(format!("{name}: nothing noticed"));
        }
    }
    assert_eq!(missed, Vec::<String>::new());
}

#[test]
fn what_is_legal_is_called_no_error() {
    for name in marked("legal") {
        let changed: Vec<PathBuf> =
            spoilt(&packs::case("damaged", &name)).into_iter().map(|spoilt| spoilt.path).collect();
        let wrong: Vec<Key> = new_findings(&name, Start::Clean)
            .iter()
            .filter(|finding| finding.severity >= Severity::Error)
            // An added batch may leave checkpoints, snapshots and indexes behind.
            .filter(|finding| {
                let path = finding.location.path.to_str().unwrap();
                let may_lag = ["checkpoint", ".snapshot", "index"].iter().any(|end| path.ends_with(end));
                changed.contains(&finding.location.path) || !may_lag
            })
            .map(key)
            .collect();
        assert_eq!(wrong, [], "{name}");
    }
}

#[test]
fn the_undamaged_originals_have_nothing_serious() {
    let bases = packs::case("damaged", "clean-bases");
    for base in fs::read_dir(bases).unwrap().map(|entry| entry.unwrap().path()) {
        let found = verify(&[&base.join("dir")], &options(), 1);
        assert_eq!(serious(&found), Vec::<String>::new(), "{}", base.display());
    }
}

/// What a broker of 4.4.0 lost at its start, from the table of all verdicts.
fn harm(start: Start) -> BTreeMap<String, String> {
    let text = fs::read_to_string(packs::unpacked("damaged").join("verdicts.tsv")).unwrap();
    let rows = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let rows = rows.filter(|row| row[1] == "4.4.0" && row[2] == start.variant());
    rows.filter_map(|row| {
        let (outcome, gone, lost, notes) = (row[3], row[6], row[8], row[9]);
        let deleted = notes.split("retention deletes ").nth(1).is_some_and(|count| !count.starts_with('0'));
        let what = match () {
            () if outcome != "loaded" => outcome.to_owned(),
            () if !["-", "none"].contains(&lost) => format!("lost {lost}"),
            () if !["-", "0"].contains(&gone) => format!("{gone} segments gone"),
            () if deleted || notes.contains("append not fetchable") => notes.to_owned(),
            () => return None,
        };
        Some((row[0].to_owned(), what))
    })
    .collect()
}

#[test]
fn what_cost_a_broker_data_after_a_clean_stop_is_critical() {
    // The same bytes are left by what is allowed: deleting records, retention, and the cleaner.
    const ALLOWED: [&str; 6] = [
        "log-start-equals-end",
        "log-start-mid-batch",
        "segment-empty-first",
        "segment-empty-middle",
        "segment-missing-first",
        "segment-missing-middle",
    ];
    // What the broker does depends on the topic id that the cluster knows.
    const TOLD_BY_THE_CLUSTER: [&str; 2] = ["partition-metadata-missing", "partition-metadata-other-id"];
    let mut too_mild = Vec::new();
    for (name, what) in harm(Start::Clean) {
        if ALLOWED.iter().chain(&TOLD_BY_THE_CLUSTER).any(|known| *known == name) {
            continue;
        }
        let found = new_findings(&name, Start::Clean);
        if found.iter().map(|finding| finding.severity).max() != Some(Severity::Critical) {
            too_mild.push(format!("{name}: {what}: {:?}", found.iter().map(key).collect::<Vec<_>>()));
        }
    }
    assert_eq!(too_mild, Vec::<String>::new());
}

#[test]
fn after_an_unclean_stop_torn_tails_are_warnings() {
    let names = cases();
    let is_tail = |name: &&String| name.starts_with("tail-") || name.starts_with("torn-");
    let mut looked_at = 0;
    // A sound batch behind zeros is no tail.
    for name in names.iter().filter(is_tail).filter(|name| *name != "tail-zeros-then-valid-batch") {
        let is_in_last = |spoilt: &Spoilt| spoilt.path.ends_with("00000000000000000060.log");
        if spoilt(&packs::case("damaged", name)).iter().all(is_in_last) {
            let worst = new_findings(name, Start::Unclean).iter().map(|finding| finding.severity).max();
            assert_eq!(worst, Some(Severity::Warning), "{name}");
            looked_at += 1;
        }
    }
    assert!(looked_at > 8, "{looked_at}");
}

/// What a broker does not see, or sees and keeps.
const LEFT_BY_RECOVERY: &str = "\
duplicate-batch: batch-duplicate
duplicate-batch-at-end: batch-duplicate batch-leader-epoch-regression leader-epoch-mismatch
epoch-file-descending: leader-epoch-mismatch
epoch-file-start-beyond-end: leader-epoch-mismatch
flip-leader-epoch: batch-leader-epoch-regression
future-directory-leftover: clean-marker-contradicted offset-index-zero-padded time-index-zero-padded
index-missing-and-bad-batch: segment-gap
leftover-deleted-only-copy: segment-gap
leftover-swap-and-cleaned-above: segment-gap
leftover-swap-bad-batch: batch-leader-epoch-regression
leftover-swap-empty: segment-gap
leftover-swap-shorter-than-group: segment-gap
log-file-is-a-directory: index-without-log segment-gap segment-missing-log
marker-coordinator-epoch-back: control-epoch-regression
marker-producer-epoch-back: producer-sequence-gap
overlap-with-earlier-offsets: batch-offset-regression leader-epoch-mismatch
partition-metadata-other-id: topic-id-conflict
recovery-point-ahead-and-torn-tail: batch-crc-mismatch
recovery-point-mid-middle-segment: batch-crc-mismatch
segment-missing-middle: segment-gap
segment-renamed-down: segment-overlap
segment-renamed-up: batch-below-segment-base segment-gap
segments-overlap: segment-overlap
sequence-gap: producer-sequence-gap
stray-log-short-name: segment-gap segment-name-invalid segment-overlap
valid-crc-future-timestamp: batch-timestamp-implausible batch-timestamp-mismatch
";

#[test]
fn what_recovery_left_is_sound_but_for_what_recovery_does_not_see() {
    let mut left = BTreeMap::new();
    for name in cases() {
        let after = packs::case("damaged", &name).join("truth/after-4.4.0-unclean");
        if !after.is_dir() {
            continue;
        }
        let report = verify(&[&after], &options(), 1);
        let ids: BTreeSet<&str> = report
            .findings
            .iter()
            .filter(|finding| finding.severity > Severity::Info)
            .map(|finding| finding.id.as_str())
            .collect();
        if !ids.is_empty() {
            left.insert(name, ids.into_iter().collect::<Vec<_>>().join(" "));
        }
    }
    let left: String = left.into_iter().map(|(name, ids)| format!("{name}: {ids}\n")).collect();
    assert_eq!(left, LEFT_BY_RECOVERY);
}

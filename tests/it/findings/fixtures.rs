//! All inputs: written, looked at, compared.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use segtool::ops::FindingId;

use super::fixture::Fixture;
use super::{batches, files, indexes, producers, segments};
use crate::support::{files_below, golden, run_at, testdata};

/// What no file can have.
const WITHOUT_FILE: [FindingId; 1] = [FindingId::LogUnreadableRange];
/// All that an input may take.
const MOST_BYTES: usize = 8 << 10;
/// The log dirs that an input may have.
const LOG_DIRS: [&str; 3] = ["dir", "a", "b"];
/// What `verify` prints of an input.
const EXPECTED: &str = "expected.txt";
/// Years after the synthetic data.
const NOW_MS: i64 = 1_800_000_000_000;

fn all() -> impl Iterator<Item = &'static Fixture> {
    [batches::FIXTURES, segments::FIXTURES, indexes::FIXTURES, files::FIXTURES, producers::FIXTURES]
        .into_iter()
        .flatten()
}

#[test]
fn every_finding_has_an_input() {
    let ids: BTreeSet<FindingId> = all().map(|fixture| fixture.id).collect();
    assert_eq!(ids.len(), all().count(), "an id twice");
    for id in FindingId::ALL {
        assert_ne!(ids.contains(id), WITHOUT_FILE.contains(id), "{}", id.as_str());
    }
}

/// Writes the shipped files anew.
fn write_shipped(fixture: &Fixture, shipped: &Path) {
    for log_dir in LOG_DIRS.map(|log_dir| shipped.join(log_dir)) {
        if log_dir.is_dir() {
            fs::remove_dir_all(log_dir).unwrap();
        }
    }
    fs::create_dir_all(shipped).unwrap();
    (fixture.write)(shipped);
}

/// What is not as the description makes it.
fn difference(fixture: &Fixture, shipped: &Path) -> Option<String> {
    let fresh = tempfile::tempdir().unwrap();
    (fixture.write)(fresh.path());
    let (described, there) = (content(fresh.path()), content(shipped));
    let size: usize = there.iter().map(|(_, bytes)| bytes.len()).sum();
    match () {
        () if size > MOST_BYTES => Some(format!("{size} bytes")),
        () if there != described => Some("not as described".to_owned()),
        () => None,
    }
}

/// Paths and bytes of the files of an input.
fn content(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = files_below(root).into_iter().filter(|file| file != Path::new(EXPECTED));
    files.map(|file| (file.clone(), fs::read(root.join(file)).unwrap())).collect()
}

#[test]
fn every_input_has_its_finding_and_no_other() {
    let mut offences = Vec::new();
    for fixture in all() {
        let name = fixture.id.as_str();
        let shipped = testdata("damaged").join(name);
        if golden::is_updating() {
            write_shipped(fixture, &shipped);
        }
        offences.extend(difference(fixture, &shipped).map(|what| format!("{name}: {what}")));
        let log_dirs = LOG_DIRS.into_iter().filter(|log_dir| shipped.join(log_dir).is_dir());
        let log_dirs: Vec<String> = log_dirs.map(|log_dir| format!("testdata/damaged/{name}/{log_dir}")).collect();
        let args: Vec<&str> = ["verify"]
            .into_iter()
            .chain(log_dirs.iter().map(String::as_str))
            .chain(fixture.flags.iter().copied())
            .collect();
        let json = run_at(NOW_MS, args.iter().chain(&["--format", "json"])).json();
        let found = json["findings"].as_array().unwrap();
        let ids: BTreeSet<&str> = found.iter().map(|finding| finding["id"].as_str().unwrap()).collect();
        let expected: BTreeSet<&str> = fixture.with.iter().chain([&fixture.id]).map(|id| id.as_str()).collect();
        if ids != expected {
            offences.push(format!("{name}: {ids:?}"));
        }
        golden::assert_golden(&shipped.join(EXPECTED), &run_at(NOW_MS, args).to_string());
    }
    assert!(offences.is_empty(), "{}", offences.join("\n"));
}

//! What was written is read again: a log that does not hold what the rounds have counted is refused.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use segtool::format::{Batches, Position};
use segtool::logdir::LogDir;
use segtool::ops::Hidden;
use segtool::ops::compact::{CompactInput, CompactPlan, RecheckError, plan, recheck};

use super::recording::{Recording, bytes_of};
use crate::support::packs;

/// Reads the files of a directory again as those of a plan.
fn recheck_files(planned: &CompactPlan, files: &[(String, Vec<u8>)]) -> Result<(), RecheckError> {
    let directory = tempfile::tempdir().unwrap();
    let paths: Vec<_> = files.iter().map(|(name, _)| directory.path().join(name)).collect();
    for (path, (_, bytes)) in paths.iter().zip(files) {
        fs::write(path, bytes).unwrap();
    }
    let files = files.iter().zip(&paths).map(|((name, _), path)| (OsStr::new(name), Path::new(path)));
    recheck(planned, OsStr::new("orders-0"), files)
}

/// The log in batches.
fn batches_of(log: &[u8]) -> Vec<Vec<u8>> {
    Batches::new(log, Position(0)).map(|batch| batch.unwrap().bytes().to_vec()).collect()
}

/// A way in which a log can be wrong, and the log.
fn spoiled(log: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let batches = batches_of(log);
    let without = |index: usize| {
        let others = batches.iter().enumerate().filter(|(other, _)| *other != index);
        others.flat_map(|(_, batch)| batch.clone()).collect::<Vec<u8>>()
    };
    let mut flipped = log.to_vec();
    *flipped.last_mut().unwrap() ^= 1;
    let mut all = vec![
        ("a bit of the last byte is another", flipped),
        ("the last byte is missing", log[..log.len() - 1].to_vec()),
        ("the first batch is missing", without(0)),
        ("the last batch is missing", without(batches.len() - 1)),
        ("the last batch is there twice", [log, batches.last().unwrap()].concat()),
        ("zeros follow", [log, &[0; 100]].concat()),
        ("it is empty", Vec::new()),
    ];
    if batches.len() > 1 {
        all.push(("the batches are in the wrong order", batches.iter().rev().flatten().copied().collect()));
    }
    all
}

#[test]
fn a_log_that_differs_from_what_was_counted_is_refused() {
    let mut refused = 0;
    for path in packs::cases("compaction") {
        let recording = Recording::open(&path);
        if recording.stats("4.4.0").is_none_or(|stats| stats["eligible"] != true || stats.get("error").is_some()) {
            continue;
        }
        let sandbox = recording.before();
        let log_dir = LogDir::open(sandbox.path()).unwrap();
        let input = CompactInput { log_dir, partitions: vec!["orders-0".into()] };
        let planned = plan(&[input], &recording.options("4.4.0"), &Hidden).unwrap();
        let partition = &planned.plan.partitions[0];
        let changed: Vec<String> =
            partition.changes().iter().map(|change| change.name().to_str().unwrap().to_owned()).collect();
        let mut files: Vec<_> =
            bytes_of(&partition.after).into_iter().filter(|(name, _)| changed.contains(name)).collect();
        recheck_files(&planned, &files).unwrap();
        for index in 0..files.len() {
            let (name, log) = files[index].clone();
            if !name.ends_with(".log") || log.is_empty() {
                continue;
            }
            for (how, bytes) in spoiled(&log) {
                files[index].1 = bytes;
                let found = recheck_files(&planned, &files);
                assert!(found.is_err(), "{} {name}: {how}", recording.name());
                refused += 1;
            }
            files[index].1 = log;
        }
    }
    assert!(refused > 300, "{refused}");
}

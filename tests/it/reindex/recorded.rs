//! Byte for byte what recovery writes.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use segtool::ops::broker::index_rules::IndexSettings;
use segtool::ops::reindex::ReindexOptions;

use super::rebuilt::{Files, derived, everything, is_derived, log_start_of, planned, planned_live, recovered};
use crate::support::{Sandbox, packs, properties};
use crate::synth::random::healthy_partition;
use crate::synth::{LogDir, T};

fn files_of(directory: &Path) -> Files {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap()))
        .filter(|(name, _)| is_derived(name))
        .collect()
}

fn names_and_sizes(files: &Files) -> Vec<(&str, usize)> {
    files.iter().map(|(name, bytes)| (name.as_str(), bytes.len())).collect()
}

fn partition_dir(log_dir: &Path) -> std::path::PathBuf {
    fs::read_dir(log_dir).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap()
}

#[test]
fn every_recorded_recovery_is_rebuilt_byte_for_byte_by_any_number_of_workers() {
    let mut rebuilt = 0;
    for case in packs::cases("reindex") {
        let properties = properties(&case.join("case.properties"));
        let now: i64 = properties["now"].parse().unwrap();
        for truth in fs::read_dir(case.join("truth")).unwrap().map(|entry| entry.unwrap().path()) {
            let interval = truth.file_name().unwrap().to_str().unwrap().strip_prefix("interval-").unwrap().to_owned();
            let Ok(interval_bytes) = interval.parse() else { continue };
            let segment_index_bytes = properties
                .get("config.segment.index.bytes")
                .map_or(IndexSettings::default().segment_index_bytes, |bytes| bytes.parse().unwrap());
            let options = everything(now, IndexSettings { interval_bytes, segment_index_bytes });
            let sandbox = Sandbox::copy_of(&case.join("dir"));
            let partition = partition_dir(sandbox.path());
            let before = derived(&planned(sandbox.path(), &options, 2).partitions[0].after);
            for name in files_of(&partition).keys() {
                fs::remove_file(partition.join(name)).unwrap();
            }
            let plan = planned(sandbox.path(), &options, 1);
            let (found, expected) = (derived(&plan.partitions[0].after), files_of(&truth));
            let context = format!("{} interval {interval}", case.display());
            assert_eq!(names_and_sizes(&found), names_and_sizes(&expected), "{context}");
            assert!(found == expected, "{context}: bytes differ");
            assert_eq!((plan.findings, plan.is_complete), (Vec::new(), true), "{context}");
            // What was there before plays no part, unless a file of nothing is left of a transaction index.
            assert!(before == expected, "{context}: with the old files there");
            rebuilt += 1;
        }
    }
    assert!(rebuilt >= 36, "{rebuilt}");
}

/// What is rebuilt twice is the same, and then there is nothing left to do.
#[test]
fn a_recovered_directory_is_not_touched() {
    for case in packs::cases("reindex") {
        let properties = properties(&case.join("case.properties"));
        let now: i64 = properties["now"].parse().unwrap();
        let sandbox = Sandbox::copy_of(&case.join("dir"));
        let partition = partition_dir(sandbox.path());
        for name in files_of(&partition).keys() {
            fs::remove_file(partition.join(name)).unwrap();
        }
        for (name, bytes) in files_of(&case.join("truth/interval-300")) {
            fs::write(partition.join(name), bytes).unwrap();
        }
        let index = IndexSettings { interval_bytes: 300, ..IndexSettings::default() };
        for options in
            [everything(now, index), ReindexOptions { index, ..ReindexOptions::at(everything(now, index).now) }]
        {
            let plan = planned(sandbox.path(), &options, 2);
            assert_eq!(plan.partitions[0].changes(), [], "{}", case.display());
        }
    }
}

/// Real directories of every generation: what is made anew is what the model of recovery makes of them.
#[test]
fn real_logs_of_every_generation_are_rebuilt_as_the_model_of_recovery_has_them() {
    let mut compared = 0;
    for family in ["eras", "modern-2.8.2", "modern-3.9.1", "modern-4.x"] {
        for case in packs::cases(family) {
            let log_dir = case.join("dir");
            if !log_dir.join("recovery-point-offset-checkpoint").exists() {
                continue;
            }
            let options = everything(T, IndexSettings::default());
            let Some(plan) = planned_live(&log_dir, &options) else { continue };
            if !plan.findings.is_empty() {
                continue;
            }
            for partition in &plan.partitions {
                let log_start = log_start_of(&log_dir, &partition.before);
                let mut found = derived(&partition.after);
                let mut expected = recovered(&partition.before, log_start, &options);
                // A file of a transaction index that is there stays, empty, where there is nothing to list.
                for files in [&mut found, &mut expected] {
                    files.retain(|name, bytes| !(name.ends_with(".txnindex") && bytes.is_empty()));
                }
                let context = format!("{} {:?}", case.display(), partition.before.dir_name());
                assert_eq!(names_and_sizes(&found), names_and_sizes(&expected), "{context}");
                assert!(found == expected, "{context}");
                compared += 1;
            }
        }
    }
    assert!(compared > 100, "{compared}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn random_logs_are_rebuilt_as_the_model_of_recovery_has_them(
        partition in healthy_partition(T, 40),
        interval_bytes in prop_oneof![Just(1u32), Just(200), Just(4096)],
        later_ms in 0i64..200_000_000,
        start in 0.0f64..1.0,
    ) {
        let sandbox = Sandbox::empty();
        let mut partition = partition;
        let end = partition.log_end_offset();
        #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "a share of a small number")]
        let log_start = ((end as f64 * start) as i64).max(partition.segments[0].base_offset);
        partition.log_start_offset = log_start;
        LogDir::new([partition]).write(sandbox.path());
        let index = IndexSettings { interval_bytes, ..IndexSettings::default() };
        let options = everything(T + later_ms, index);
        let directory = partition_dir(sandbox.path());
        for name in files_of(&directory).keys() {
            fs::remove_file(directory.join(name)).unwrap();
        }
        let plan = planned(sandbox.path(), &options, 2);
        let (found, expected) =
            (derived(&plan.partitions[0].after), recovered(&plan.partitions[0].before, log_start, &options));
        prop_assert_eq!(names_and_sizes(&found), names_and_sizes(&expected));
        prop_assert!(found == expected);
    }
}

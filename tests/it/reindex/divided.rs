//! One log divided among workers: any division comes to the same plan.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use segtool::format::TimestampMs;
use segtool::ops::broker::index_rules::IndexSettings;
use segtool::ops::plan::Plan;
use segtool::ops::reindex::ReindexOptions;

use super::rebuilt::{Files, derived, everything, planned, planned_live};
use crate::support::{Sandbox, packs};
use crate::synth::random::healthy_partition;
use crate::synth::{Batch, LogDir, T, record};

fn divided(options: ReindexOptions, part_bytes: u64) -> ReindexOptions {
    ReindexOptions { part_bytes, ..options }
}

/// What a plan says and makes.
fn outcome(plan: &Plan) -> (Vec<Files>, String) {
    let files = plan.partitions.iter().map(|partition| derived(&partition.after)).collect();
    (files, format!("{} {:?}", plan.is_complete, plan.findings))
}

#[test]
fn damaged_logs_come_to_the_same_in_parts() {
    let mut compared = 0;
    for case in packs::cases("damaged") {
        let log_dir = case.join("dir");
        let fine = IndexSettings { interval_bytes: 1, ..IndexSettings::default() };
        for options in [everything(T, fine), ReindexOptions { index: fine, ..ReindexOptions::at(TimestampMs(T)) }] {
            let Some(whole) = planned_live(&log_dir, &divided(options, u64::MAX)) else { continue };
            for part_bytes in [1, 70, 1000] {
                let plan = planned_live(&log_dir, &divided(options, part_bytes)).unwrap();
                let context = format!("{} in parts of {part_bytes}", case.display());
                assert!(outcome(&plan) == outcome(&whole), "{context}:\n{:?}\n{:?}", plan.findings, whole.findings);
                compared += 1;
            }
        }
    }
    assert!(compared > 300, "{compared}");
}

/// Parts begin at the first batch that is found, which here is none of this log.
#[test]
fn batches_that_are_values_of_records_are_not_taken_for_batches_of_the_log() {
    let mut log = Vec::new();
    for offset in 0..40 {
        let inner: Vec<u8> =
            (0..5).flat_map(|number| Batch::at(offset + number).record(record("inner", "value")).build()).collect();
        log.extend(Batch::at(offset).record(record("outer", inner)).build());
    }
    let sandbox = Sandbox::empty();
    let directory = sandbox.join("nested-0");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("00000000000000000000.log"), log).unwrap();
    let of = |path: &Path, part_bytes| {
        let options = everything(T, IndexSettings { interval_bytes: 100, ..IndexSettings::default() });
        outcome(&planned(path, &divided(options, part_bytes), 2))
    };
    let whole = of(sandbox.path(), u64::MAX);
    assert_eq!(whole.0[0]["00000000000000000000.index"].len(), 39 * 8);
    for part_bytes in [1, 100, 451, 2000] {
        assert_eq!(of(sandbox.path(), part_bytes), whole, "{part_bytes}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn random_logs_with_a_byte_changed_come_to_the_same_in_parts(
        partition in healthy_partition(T, 40),
        part_bytes in 1u64..2000,
        place: proptest::sample::Index,
        change in 0u8..=255,
        threads in 1usize..4,
    ) {
        let sandbox = Sandbox::empty();
        LogDir::new([partition.clone()]).write(sandbox.path());
        let directory = sandbox.join(partition.name());
        let log = directory.join(format!("{:020}.log", partition.segments[0].base_offset));
        let mut bytes = fs::read(&log).unwrap();
        // The first segment may be empty.
        let place = place.index(bytes.len().max(1));
        if let Some(byte) = bytes.get_mut(place) {
            *byte ^= change;
        }
        fs::write(&log, bytes).unwrap();
        let options = everything(T, IndexSettings { interval_bytes: 1, ..IndexSettings::default() });
        let whole = planned(sandbox.path(), &divided(options, u64::MAX), 1);
        let parts = planned(sandbox.path(), &divided(options, part_bytes), threads);
        prop_assert_eq!(outcome(&parts), outcome(&whole));
    }
}

//! `preflight` over log dirs that are damaged at random: it always comes to an end, adds up, and what a broker leaves is what a
//! broker finds in order.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use proptest::prelude::*;
use proptest::sample::Index;
use segtool::format::{Offset, TimestampMs};
use segtool::logdir::names::DirName;
use segtool::logdir::{LogDir, PartitionDir};
use segtool::ops::broker::index_rules::IndexSettings;
use segtool::ops::broker::load::Shutdown;
use segtool::ops::broker::{KafkaVersion, Rules};
use segtool::ops::preflight::{Compaction, Options, PartitionStart, Scope, StartInput, inspect, predict_partition};
use segtool::ops::{Hidden, PartitionImage};

use super::support::random_damage::{damage, spoil};
use super::support::{Sandbox, files_below, packs};

/// Pristine log dirs of several kinds.
fn pristine() -> &'static [PathBuf] {
    static FOUND: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let names =
            ["plain", "txn", "txn-open", "legacy-v0", "legacy-v1", "codecs", "gaps", "last-empty", "retained", "idem"];
        let bases = packs::unpacked("damaged").join("clean-bases");
        names.iter().map(|name| bases.join(name).join("dir")).filter(|path| path.is_dir()).collect()
    })
}

fn options(version: KafkaVersion, shutdown: Shutdown) -> Options {
    let mut options = Options::at(TimestampMs(1_760_001_800_000));
    (options.version, options.assume) = (version, Some(shutdown));
    options.settings.index = IndexSettings { interval_bytes: 400, segment_index_bytes: 1024 };
    options
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_damage_is_predicted_without_panic_and_the_numbers_add_up(
        base in any::<Index>(),
        damages in proptest::collection::vec((any::<Index>(), damage()), 1..4),
        version in prop::sample::select(KafkaVersion::ALL.to_vec()),
        shutdown in prop::sample::select(vec![Shutdown::Clean, Shutdown::Unclean]),
    ) {
        let sandbox = Sandbox::copy_of(base.get(pristine()).as_path());
        for (file, damage) in &damages {
            let files = files_below(sandbox.path());
            spoil(&sandbox.join(file.get(&files)), damage);
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let inputs = [StartInput { log_dir: LogDir::open(sandbox.path()).unwrap(), scope: Scope::Whole }];
        let options = options(version, shutdown);
        let report = inspect(&inputs, &[], &options, &pool, &Hidden).unwrap();
        prop_assert!(report.unreadable.is_empty(), "{:?}", report.unreadable);
        for partition in &report.partitions {
            let bytes_before: u64 = files_below(sandbox.path())
                .iter()
                .map(|file| std::fs::metadata(sandbox.join(file)).unwrap().len())
                .sum();
            prop_assert!(partition.bytes_lost <= bytes_before);
            prop_assert!(partition.records_lost <= 200, "{partition:?}");
            let Some(image) = &partition.image else { continue };
            prop_assert!(partition.log_start_offset <= partition.log_end_offset_after.max(partition.log_start_offset));
            let again = second_start(image, &partition.dir_name, partition.log_end_offset_after, partition.log_start_offset, &options);
            prop_assert!(again.is_ok(), "the second start differs: {}", again.unwrap_err());
        }
    }
}

/// What an orderly stop leaves is what the next start finds in order: nothing is lost but what the first start had hidden already.
fn second_start(
    image: &PartitionImage,
    dir_name: &std::ffi::OsStr,
    log_end: Offset,
    log_start: Offset,
    options: &Options,
) -> Result<(), String> {
    let start = PartitionStart {
        image: image.clone(),
        name: DirName::parse(dir_name),
        shutdown: Shutdown::Clean,
        recovery_point: log_end,
        log_start,
        cleaned: Compaction::Off,
    };
    let (report, failure) = predict_partition(&start, options, &Rules::of(options.version), &Hidden).unwrap();
    if failure.is_some() || report.truncated_bytes > 0 || report.log_end_offset_after != log_end {
        return Err(format!("{failure:?} {report:?}"));
    }
    let after = report.image.unwrap();
    let logs = |image: &PartitionImage| {
        let logs =
            image.files().filter(|(name, _)| Path::new(name).extension().is_some_and(|extension| extension == "log"));
        logs.map(|(name, file)| (name.to_os_string(), file.content.clone())).collect::<Vec<_>>()
    };
    if logs(image) == logs(&after) { Ok(()) } else { Err(format!("{:?}", image.difference(&after))) }
}

#[test]
fn a_directory_without_files_starts_as_an_empty_log() {
    let sandbox = Sandbox::empty();
    std::fs::create_dir(sandbox.join("t-0")).unwrap();
    let partition = PartitionDir::open(sandbox.path(), "t-0".as_ref()).unwrap();
    let start = PartitionStart {
        image: PartitionImage::of(&partition),
        name: DirName::parse("t-0".as_ref()),
        shutdown: Shutdown::Unclean,
        recovery_point: Offset(0),
        log_start: Offset(17),
        cleaned: Compaction::Off,
    };
    let options = options(KafkaVersion::NEWEST, Shutdown::Unclean);
    let (report, failure) = predict_partition(&start, &options, &Rules::of(options.version), &Hidden).unwrap();
    assert!(failure.is_none());
    assert_eq!(
        (report.log_start_offset, report.log_end_offset_after, report.records_lost),
        (Offset(17), Offset(17), 0)
    );
    let names: Vec<String> =
        report.image.unwrap().names().into_iter().map(|name| name.into_string().unwrap()).collect();
    let expected = [
        "00000000000000000017.index",
        "00000000000000000017.log",
        "00000000000000000017.timeindex",
        "leader-epoch-checkpoint",
    ];
    assert_eq!(names, expected);
}

//! `verify` on what brokers left: nothing is wrong with healthy directories, nothing is lost on the way, and neither threads nor
//! stretches change the report.

use std::path::{Path, PathBuf};

use segtool::format::TimestampMs;
use segtool::logdir::Input;
use segtool::ops::verify::{Level, Options, Report, inspect};
use segtool::ops::{Hidden, Severity};

use crate::support::{Sandbox, Tree, damage, packs, run, testdata};
use crate::synth::{Batch, Partition, T, record};

/// Long after everything in the packs was written.
const NOW: TimestampMs = TimestampMs(1_800_000_000_000);

pub(crate) fn options() -> Options {
    Options { now: Some(NOW), ..Options::default() }
}

pub(crate) fn verify(paths: &[&Path], options: &Options, threads: usize) -> Report {
    let inputs: Vec<Input> = paths.iter().map(|path| Input::open(path).unwrap()).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let report = inspect(&inputs, &|_| true, options, &pool, &Hidden).unwrap();
    for file in &report.files {
        assert_eq!(file.coverage.total(), file.size_bytes, "{}", file.path.display());
    }
    report
}

/// Severity, id and place of what is worse than info.
pub(crate) fn serious(report: &Report) -> Vec<String> {
    let serious = report.findings.iter().filter(|finding| finding.severity > Severity::Info);
    serious.map(|f| format!("{} {} {}", f.severity.name(), f.id.as_str(), f.location.path.display())).collect()
}

/// The log dirs below a case's `dir`: itself, or one for each broker or disk.
pub(crate) fn log_dirs(dir: &Path) -> Vec<PathBuf> {
    let mut below: Vec<PathBuf> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    below.sort();
    let has_log = |path: &Path| {
        std::fs::read_dir(path).unwrap().any(|entry| entry.unwrap().path().extension().is_some_and(|e| e == "log"))
    };
    let is_partition = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.rsplit_once('-').is_some_and(|(_, n)| n.parse::<i32>().is_ok()) && has_log(path)
    };
    if has_log(dir) || below.iter().any(is_partition) { vec![dir.to_path_buf()] } else { below }
}

const RECORDED: [&str; 6] = ["eras", "clients", "modern-2.8.2", "modern-3.9.1", "modern-4.x", "internal"];

#[test]
fn nothing_is_wrong_with_healthy_directories() {
    // Killed, unfinished, cut back, or with a transaction left open on purpose.
    const OTHERS: [&str; 10] = [
        "stop-kill",
        "crash",
        "cleaner-died",
        "killed",
        "deletes",
        "diverged",
        "transactions",
        "internal-static",
        "internal-zk",
        "expire",
    ];
    let mut looked_at = 0;
    for case in RECORDED.iter().flat_map(|family| packs::cases(family)) {
        if OTHERS.iter().any(|other| case.to_str().unwrap().contains(other)) {
            continue;
        }
        for log_dir in log_dirs(&case.join("dir")) {
            let report = verify(&[&log_dir], &options(), 2);
            assert_eq!(serious(&report), Vec::<String>::new(), "{}", log_dir.display());
            assert!(report.is_complete);
            looked_at += 1;
        }
    }
    assert!(looked_at > 80, "{looked_at}");
}

#[test]
fn what_a_killed_broker_leaves_is_a_warning_at_most() {
    let mut looked_at = 0;
    for case in RECORDED.iter().flat_map(|family| packs::cases(family)) {
        if !["stop-kill", "crash", "killed"].iter().any(|name| case.to_str().unwrap().contains(name)) {
            continue;
        }
        for log_dir in log_dirs(&case.join("dir")) {
            let report = verify(&[&log_dir], &options(), 2);
            let worst = report.findings.iter().map(|finding| finding.severity).max();
            assert!(worst <= Some(Severity::Warning), "{}: {:?}", log_dir.display(), serious(&report));
            looked_at += 1;
        }
    }
    assert!(looked_at >= 6, "{looked_at}");
}

#[test]
fn cleaned_and_uncleaned_logs_are_both_sound() {
    // Each has its fault on purpose.
    const FAULTY: [&str; 5] = ["bad-crc", "checkpoint-beyond-end", "missing-txnindex", "truncated-tail", "corrupt"];
    for case in packs::cases("compaction").into_iter().chain(packs::cases("compaction-random")) {
        if FAULTY.iter().any(|name| case.to_str().unwrap().contains(name)) {
            continue;
        }
        for state in ["before", "after-4.4.0", "after-3.9.1", "after-2.8.2"] {
            let log_dir = case.join(state);
            if log_dir.is_dir() {
                let report = verify(&[&log_dir], &options(), 1);
                assert_eq!(serious(&report), Vec::<String>::new(), "{}", log_dir.display());
            }
        }
    }
}

#[test]
fn neither_threads_nor_stretches_nor_the_way_of_reading_change_the_report() {
    let mut cases = packs::cases("damaged");
    cases.extend(packs::cases("modern-4.x"));
    for case in cases {
        let dir = case.join("dir");
        if !dir.is_dir() {
            continue;
        }
        let logs = log_dirs(&dir);
        let logs: Vec<&Path> = logs.iter().map(PathBuf::as_path).collect();
        let expected = verify(&logs, &options(), 1);
        for (threads, stretch_bytes) in [(2, 8 << 20), (8, 8 << 20), (1, 100), (4, 300), (2, 1000)] {
            let options = Options { stretch_bytes, ..options() };
            let report = verify(&logs, &options, threads);
            assert_eq!(report, expected, "{} with {threads} threads, stretches of {stretch_bytes}", dir.display());
        }
        let mapped = Options { io: segtool::logdir::IoMode::Mmap, ..options() };
        assert_eq!(verify(&logs, &mapped, 2), expected, "{} mapped", dir.display());
    }
}

#[test]
fn output_is_the_same_for_any_number_of_threads_at_either_level() {
    let shop = testdata("real/4.4.0/shop");
    let damaged = testdata("real/4.4.0/shop-damaged");
    for format in ["human", "json"] {
        for level in ["crc", "records"] {
            let output = |threads: &str| {
                let args = ["verify", "--format", format, "--level", level, "--threads", threads];
                run(args.map(Path::new).into_iter().chain([shop.as_path(), damaged.as_path()]))
            };
            let expected = output("1");
            assert_eq!(expected.status, 1, "{expected}");
            for threads in ["2", "4", "8"] {
                assert_eq!(output(threads).stdout, expected.stdout, "{format} {level} {threads}");
            }
        }
    }
}

#[test]
fn verifying_changes_nothing() {
    for name in ["orphan-index-files", "index-missing-first-segment", "timeindex-padded-all-closed-segments"] {
        let sandbox = Sandbox::copy_of(&packs::case("damaged", name).join("dir"));
        let before = Tree::of(sandbox.path());
        let _ = run(["verify".as_ref(), sandbox.path().as_os_str()]);
        before.assert_unchanged(sandbox.path());
    }
}

#[test]
fn the_level_of_checksums_finds_what_a_recovery_would() {
    let sandbox = Sandbox::copy_of(&packs::case("damaged", "flip-crc").join("dir"));
    let crc = verify(&[sandbox.path()], &Options { level: Level::Crc, ..options() }, 1);
    assert_eq!(serious(&crc), ["critical batch-crc-mismatch plain-0/00000000000000000030.log"]);
    let undecodable = Sandbox::copy_of(&packs::case("damaged", "valid-crc-undecodable-zstd").join("dir"));
    let crc = verify(&[undecodable.path()], &Options { level: Level::Crc, ..options() }, 1);
    assert_eq!(serious(&crc), Vec::<String>::new());
    let records = verify(&[undecodable.path()], &options(), 1);
    assert_eq!(serious(&records), ["critical batch-payload-undecodable codecs-0/00000000000000000040.log"]);
}

#[test]
fn a_file_by_itself_is_looked_at_by_itself() {
    let sandbox = Sandbox::copy_of(&packs::case("damaged", "torn-middle-segment").join("dir"));
    let log = sandbox.join("plain-0/00000000000000000030.log");
    let report = verify(&[&log], &options(), 1);
    assert_eq!(serious(&report), ["warning batch-torn-tail 00000000000000000030.log"]);
    for name in ["00000000000000000030.index", "00000000000000000030.timeindex", "00000000000000000030.snapshot"] {
        let report = verify(&[&sandbox.join("plain-0").join(name)], &options(), 1);
        assert_eq!(serious(&report), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_partition_by_itself_knows_how_the_broker_stopped() {
    let sandbox = Sandbox::copy_of(&packs::case("damaged", "torn-records").join("dir"));
    let partition = sandbox.join("codecs-0");
    let severity_of = |report: &Report| {
        let torn = report.findings.iter().find(|finding| finding.id.as_str() == "batch-torn-tail");
        torn.map(|finding| finding.severity)
    };
    assert_eq!(severity_of(&verify(&[&partition], &options(), 1)), Some(Severity::Critical));
    std::fs::remove_file(sandbox.join(".kafka_cleanshutdown")).unwrap();
    assert_eq!(severity_of(&verify(&[&partition], &options(), 1)), Some(Severity::Warning));
}

#[test]
fn a_large_segment_is_put_together_from_its_stretches_damage_and_all() {
    let mut partition = Partition::new("large", 0);
    for batch in 0..1000i64 {
        let records = (0..4).map(|n| record(format!("k{n}"), vec![7u8; 300]).at(T + batch * 4 + n));
        partition = partition.append(Batch::at(batch * 4).records(records));
    }
    let sandbox = Sandbox::empty();
    partition.write(sandbox.path());
    let small = Options { stretch_bytes: 64 * 1024, ..options() };
    let whole = verify(&[sandbox.path()], &options(), 1);
    assert_eq!(verify(&[sandbox.path()], &small, 4), whole);
    assert_eq!(serious(&whole), Vec::<String>::new());

    let log = sandbox.join("large-0/00000000000000000000.log");
    let size = std::fs::read(&log).unwrap().len();
    for position in [0, 70_000, 500_000, 1_000_003, size - 40] {
        damage::flip_bit(&log, position, 3);
    }
    damage::zero_range(&log, 300_000, 9000);
    let whole = verify(&[sandbox.path()], &options(), 1);
    assert!(whole.summary.count_of(Severity::Critical) >= 5, "{:?}", serious(&whole));
    for threads in [1, 3] {
        assert_eq!(verify(&[sandbox.path()], &small, threads), whole);
    }
}

#[test]
fn an_unknown_finding_is_told_with_the_one_that_was_meant() {
    let output = run(["verify", "--explain", "batch-crc-missmatch"]).expect_status(2);
    assert_eq!(
        output.stderr,
        "error: there is no finding batch-crc-missmatch\nhint: `segtool verify --explain batch-crc-mismatch`\n"
    );
    let output = run(["verify", "--explain", "time-index-zero-padded"]).expect_status(0);
    assert!(output.text().contains("What a broker will do\n"), "{output}");
}

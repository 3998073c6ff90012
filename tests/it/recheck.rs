//! What is written is read again before anything takes its place: a byte that changes on its way to the disk changes nothing else.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use segtool::format::TimestampMs;
use segtool::logdir::LogDir;
use segtool::ops::Hidden;
use segtool::ops::apply::changes_of;
use segtool::ops::plan::PlanInput;
use segtool::ops::preflight::Options;
use segtool::ops::repair::{DeletedFiles, Mode, RepairOptions, plan, recheck};
use segtool::store::{BrokerLock, LockTrust, Prepared, RealFs, RunOptions, StoreErrorKind, Watch, apply};

use super::support::changing::{ALL, NOW_MS, facts};
use super::support::{Sandbox, testdata};

fn flip_last_byte(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(path, bytes).unwrap();
}

/// Applies a repair in which byte of the `spoiled`-th file with bytes changes after it was written. Whether there was such a file.
fn apply_with_a_flipped_byte(mode: Mode, spoiled: usize) -> bool {
    let sandbox = Sandbox::copy_of(&testdata("real/4.4.0/shop-damaged"));
    let before = facts(sandbox.path());
    let log_dir = LogDir::open(sandbox.path()).unwrap();
    let partitions = log_dir.directories().iter().map(|member| member.entry.name.clone()).collect();
    let options = RepairOptions { mode, deleted: DeletedFiles::CloseHoles, start: Options::at(TimestampMs(NOW_MS)) };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let planned = plan(&[PlanInput { log_dir, partitions }], &options, &pool, &Hidden).unwrap();
    let seen = Cell::new(0);
    let check = |prepared: &Prepared| {
        for (_, path) in prepared.files.iter().chain(&prepared.aside) {
            if fs::metadata(path).unwrap().len() > 0 {
                if seen.get() == spoiled {
                    flip_last_byte(path);
                }
                seen.set(seen.get() + 1);
            }
        }
        recheck(&planned, prepared, &options, &pool, &Hidden).map_err(|error| error.to_string())
    };
    let fs = RealFs;
    let lock = BrokerLock::take(&fs, sandbox.path(), LockTrust::Required).unwrap();
    let run = RunOptions {
        command: "repair",
        digest: "0123456789abcdef0123456789abcdef",
        started_s: 1_800_000_000,
        undo_dir: None,
        watch: Watch { interrupted: &AtomicBool::new(false), progress: &|_| {} },
        announce: &|_, _| {},
        check: &check,
    };
    let mut outcome = Ok(());
    for changes in changes_of(&planned.plan) {
        outcome = outcome.and_then(|()| apply(&fs, &lock, &changes, &run).map(|_| ()));
    }
    lock.release(&fs).unwrap();
    if seen.get() <= spoiled {
        outcome.unwrap();
        return false;
    }
    let error = outcome.unwrap_err();
    assert!(matches!(error.cause().kind, StoreErrorKind::Rejected { .. }), "{error}");
    assert_eq!(facts(sandbox.path()), before, "file {spoiled} that was written");
    true
}

#[test]
fn a_byte_that_changes_on_its_way_to_the_disk_is_caught_and_nothing_is_swapped() {
    for (mode, least) in [(Mode::Salvage, 5), (Mode::LikeBroker, 3)] {
        let caught = (0..100).take_while(|spoiled| apply_with_a_flipped_byte(mode, *spoiled)).count();
        assert!(caught >= least, "{mode:?}: {caught}");
    }
}

/// The numbers of the calls of `write` that fill a new file of a partition.
fn writes_of_new_files(args: &[String], log: &Path) -> Option<Vec<usize>> {
    let mut command = Command::new("strace");
    command.args(["-qq", "-y", "-o"]).arg(log).args(["-e", "trace=write", env!("CARGO_BIN_EXE_segtool")]).args(args);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    command.status().ok().filter(|status| status.code().is_some_and(|code| code < 3))?;
    let text = fs::read_to_string(log).unwrap();
    let writes = text.lines().filter(|line| line.starts_with("write("));
    // A file of a partition's directory that has no name yet.
    let fills = |line: &str| line.split_once('>').is_some_and(|(file, _)| file.contains("-0/#"));
    Some(writes.enumerate().filter(|(_, line)| fills(line)).map(|(index, _)| index + 1).collect())
}

#[test]
fn every_command_reads_again_what_it_has_written() {
    for changing in ALL {
        let first = changing.sandbox();
        let log = tempfile::NamedTempFile::new().unwrap();
        let Some(writes) = writes_of_new_files(&changing.args(first.path(), &["--apply"]), log.path()) else {
            eprintln!("skipped: strace cannot be run here");
            return;
        };
        assert!(!writes.is_empty(), "{}", changing.name);
        for number in writes {
            let sandbox = changing.sandbox();
            let before = facts(sandbox.path());
            let inject = format!("inject=write:poke_enter=@arg2=ff:when={number}");
            let mut command = Command::new("strace");
            command.args(["-qq", "-o", "/dev/null", "-e", "trace=write", "-e", &inject]);
            let output = command
                .arg(env!("CARGO_BIN_EXE_segtool"))
                .args(changing.args(sandbox.path(), &["--apply"]))
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{} write {number}: {said}", changing.name);
            assert_eq!(facts(sandbox.path()), before, "{} write {number}: {said}", changing.name);
        }
    }
}

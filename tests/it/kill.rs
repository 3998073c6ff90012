//! SIGKILL instead of every system call with which a command changes something, in a process of its own on a real file system.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::changing::{ALL, Changing, NOW_MS, facts, facts_without_times};
use crate::support::{CommandOutput, Sandbox, copy_tree, run_at};

/// Calls that change a file system or write to a file; `openat` counts where it makes a file.
const CALLS: &str = "write,pwrite64,writev,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,link,linkat,ftruncate,\
                     fallocate,openat,fchown,fchmod,utimensat,fsetxattr,mkdirat,copy_file_range,ioctl";

/// A copy with the times of directories, so that nothing but segtool changes them.
fn fresh(model: &Path, into: &Sandbox) {
    if into.path().exists() {
        fs::remove_dir_all(into.path()).unwrap();
    }
    for entry in fs::read_dir(into.path().parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }
    fs::create_dir(into.path()).unwrap();
    copy_tree(model, into.path());
}

fn strace() -> Command {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq"]).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn has_strace() -> bool {
    let found = strace().args(["-o", "/dev/null", "true"]).status().is_ok_and(|status| status.success());
    if !found {
        eprintln!("skipped: strace cannot be run here");
    }
    found
}

/// How often the main thread makes each call that changes something, as `(call, number of the call)`.
fn points(args: &[String], log: &Path) -> Vec<(String, usize)> {
    let status = strace()
        .args(["-o", log.to_str().unwrap(), "-e", &format!("trace={CALLS}"), env!("CARGO_BIN_EXE_segtool")])
        .args(args)
        .status()
        .unwrap();
    assert!(status.code().is_some(), "{status}");
    let text = fs::read_to_string(log).unwrap();
    let main = text.split_whitespace().next().unwrap().to_owned();
    let (mut counts, mut points): (BTreeMap<String, usize>, _) = (BTreeMap::new(), Vec::new());
    for line in text.lines() {
        let Some((pid, rest)) = line.split_once(char::is_whitespace) else { continue };
        let Some((call, arguments)) = rest.trim_start().split_once('(') else { continue };
        if pid != main || call.starts_with('<') {
            continue;
        }
        let count = counts.entry(call.to_owned()).or_default();
        *count += 1;
        let makes = call != "openat" || arguments.contains("O_CREAT") || arguments.contains("O_TMPFILE");
        let clones = call != "ioctl" || arguments.contains("FICLONE");
        if makes && clones {
            points.push((call.to_owned(), *count));
        }
    }
    points
}

/// Runs segtool and kills it instead of one call. Whether it was killed: a call may be made by another thread this time.
fn kill_before(call: &str, number: usize, args: &[String]) -> bool {
    let inject = format!("inject={call}:signal=KILL:when={number}");
    let traced = strace()
        .args(["-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject, env!("CARGO_BIN_EXE_segtool")])
        .args(args)
        .status();
    // strace ends as the process it traced has ended.
    matches!(traced.unwrap().code(), None | Some(137))
}

/// Kills a run before each call of `points` and holds what is left to the contract. Returns how many times it was killed.
fn sweep(name: &str, model: &Path, arguments: &dyn Fn(&Path) -> Vec<String>, judge: &dyn Fn(&Sandbox)) -> usize {
    let work = Sandbox::empty();
    fresh(model, &work);
    let log = tempfile::NamedTempFile::new().unwrap();
    let points = points(&arguments(work.path()), log.path());
    let mut killed = 0;
    for (call, number) in &points {
        fresh(model, &work);
        killed += usize::from(kill_before(call, *number, &arguments(work.path())));
        eprint_on_panic(&format!("{name}: killed before {call} number {number}"), || judge(&work));
    }
    assert!(killed * 10 >= points.len() * 9, "{name}: killed {killed} of {} times", points.len());
    killed
}

fn undo(log_dir: &Path, words: &[&str]) -> CommandOutput {
    run_at(
        NOW_MS,
        ["undo"].iter().chain(words).map(|word| (*word).to_owned()).chain([log_dir.to_str().unwrap().to_owned()]),
    )
}

/// What a broker that starts on a directory is predicted to do: nothing fatal, and no more lost than the command's own plan or
/// the old state loses.
fn check_start(log_dir: &Path, most_lost: u64) {
    let report = predicted(log_dir);
    assert!(report["fatal"].is_null(), "{report}");
    let lost = report["summary"]["records_lost"].as_u64().unwrap();
    assert!(lost <= most_lost, "{lost} records lost, {most_lost} allowed: {report}");
}

fn eprint_on_panic(where_: &str, judge: impl FnOnce()) {
    if let Err(reason) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(judge)) {
        eprintln!("{where_}");
        std::panic::resume_unwind(reason);
    }
}

#[track_caller]
fn assert_same(found: &[String], wanted: &[String], ended: &CommandOutput) {
    let only = |here: &[String], there: &[String]| here.iter().filter(|line| !there.contains(line)).cloned().collect();
    let (more, less): (Vec<String>, Vec<String>) = (only(found, wanted), only(wanted, found));
    assert!(more.is_empty() && less.is_empty(), "found {more:#?}\nwanted {less:#?}\n{ended}");
}

fn without_lock(facts: Vec<String>) -> Vec<String> {
    facts.into_iter().filter(|line| !line.starts_with(".lock ")).collect()
}

struct States {
    model: Sandbox,
    old: Vec<String>,
    new: Vec<String>,
    most_lost: u64,
}

impl States {
    fn of(changing: &Changing) -> Self {
        let model = changing.sandbox();
        let old = facts(model.path());
        let after = Sandbox::copy_of(model.path());
        changing.run(after.path(), &["--apply"]);
        assert_ne!(facts(after.path()), old, "{} has nothing to do", changing.name);
        let new = facts_without_times(after.path());
        // Compaction and retention drop records, and a swap that is completed drops them too.
        let most_lost = if ["compact", "retain"].contains(&changing.name) { u64::MAX } else { lost(model.path()) };
        Self { model, old, new, most_lost }
    }

    fn judge(&self, changing: &Changing, work: &Sandbox) {
        check_start(work.path(), self.most_lost);
        let ended = undo(work.path(), &["--unfinished"]).expect_status(0);
        if without_lock(facts_without_times(work.path())) == self.new {
            return;
        }
        assert_same(&without_lock(facts(work.path())), &self.old, &ended);
        let beside = fs::read_dir(work.path().parent().unwrap()).unwrap().count();
        assert_eq!(beside, 1, "something is left beside the log dir");
        changing.run(work.path(), &["--apply"]);
        assert_same(&without_lock(facts_without_times(work.path())), &self.new, &ended);
    }
}

fn predicted(log_dir: &Path) -> serde_json::Value {
    let now = NOW_MS.to_string();
    let args = ["preflight", "--format", "json", "--fail-on", "never", "--now", &now, log_dir.to_str().unwrap()];
    run_at(NOW_MS, args).json()
}

fn lost(log_dir: &Path) -> u64 {
    predicted(log_dir)["summary"]["records_lost"].as_u64().unwrap()
}

#[test]
#[ignore = "a campaign of some minutes; needs strace"]
fn a_command_or_an_undo_that_is_killed_before_any_call_leaves_the_old_or_the_new_state() {
    if !has_strace() {
        return;
    }
    let sweeps = |changing: &Changing| {
        let states = States::of(changing);
        let arguments = |log_dir: &Path| changing.args(log_dir, &["--apply"]);
        let judge = |work: &Sandbox| states.judge(changing, work);
        [sweep(changing.name, states.model.path(), &arguments, &judge), kill_undo(changing, &states)]
    };
    let killed: Vec<[usize; 2]> = std::thread::scope(|scope| {
        let running: Vec<_> = ALL.iter().map(|changing| scope.spawn(|| sweeps(changing))).collect();
        running.into_iter().map(|sweeps| sweeps.join().unwrap()).collect()
    });
    for (changing, [runs, undos]) in ALL.iter().zip(&killed) {
        eprintln!("{}: killed {runs} times, its undo {undos} times", changing.name);
        assert!(*runs >= 20 && *undos >= 20, "{}: {runs} {undos}", changing.name);
    }
    let points: usize = killed.iter().flatten().sum();
    eprintln!("{points} points");
    assert!(points >= 500, "{points}");
}

/// Each time the command is applied anew: a journal knows its files by their inodes.
fn kill_undo(changing: &Changing, states: &States) -> usize {
    let work = Sandbox::empty();
    let prepare = || {
        fresh(states.model.path(), &work);
        changing.run(work.path(), &["--apply"]);
        let journals = work.beside("data.segtool-undo");
        fs::read_dir(journals).unwrap().next().unwrap().unwrap().file_name().into_string().unwrap()
    };
    let arguments = |id: &str| vec!["undo".to_owned(), id.to_owned(), work.path().to_str().unwrap().to_owned()];
    let log = tempfile::NamedTempFile::new().unwrap();
    let points = points(&arguments(&prepare()), log.path());
    let mut killed = 0;
    for (call, number) in &points {
        let id = prepare();
        killed += usize::from(kill_before(call, *number, &arguments(&id)));
        check_start(work.path(), states.most_lost);
        let ended = undo(work.path(), &["--unfinished"]).expect_status(0);
        if without_lock(facts_without_times(work.path())) == states.new {
            undo(work.path(), &[&id]).expect_status(0);
        }
        eprint_on_panic(&format!("{}: killed before {call} number {number}", changing.name), || {
            assert_same(&without_lock(facts(work.path())), &states.old, &ended);
        });
    }
    killed
}

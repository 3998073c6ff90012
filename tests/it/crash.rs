//! The machine stops before every call that changes something, with the process alone or with the power, on a disk in memory.
//! Whatever is left, a broker finds the old or the new state, and segtool reaches one of the two.

mod harness;
mod scenarios;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use segtool::store::{Disturbance, Ending, LockTrust, StoreError, StoreErrorKind, Watch, refuse_unfinished, with_lock};

use crate::support::fault_fs::{Call, FaultFs, Faults, Loss};
use harness::{
    Effort, Expected, broker, check_durable, difference, end_all, picture, run, run_announced, run_watched, state,
    sweep, undo_all, verdict, without_lock,
};
use scenarios::{FILE, LOG_DIR, Scenario, all};

/// Every seventh stop, for every day.
const QUICK: Effort = Effort { seeds: 1, every: 7 };
/// Every stop, and more ways of losing.
const FULL: Effort = Effort { seeds: 3, every: 1 };

#[test]
fn a_run_that_stops_anywhere_leaves_the_old_or_the_new_state_and_can_be_ended() {
    assert!(stopped_runs(QUICK) > 500);
}

#[test]
fn undo_puts_back_everything_and_may_stop_anywhere_too() {
    assert!(stopped_undos(QUICK) > 500);
}

#[test]
fn ending_a_stopped_run_may_stop_anywhere_too() {
    assert!(twice_stopped_runs(QUICK) > 200);
}

#[test]
#[ignore = "a campaign of some minutes"]
fn no_stop_at_all_does_harm() {
    let states = [stopped_runs(FULL), stopped_undos(FULL), twice_stopped_runs(FULL)];
    eprintln!("{states:?} states after a stopped run, a stopped undo, and a second stop");
    assert!(states.iter().sum::<u64>() > 50_000, "{states:?}");
}

fn stopped_runs(effort: Effort) -> u64 {
    let mut states = 0;
    for scenario in all() {
        let expected = Expected::of(&scenario);
        for faults in [Faults::default(), Faults { no_links: true, can_clone: true, ..Faults::default() }] {
            let body = |disk: &FaultFs| drop(run(disk, &scenario));
            let look = |disk: &FaultFs, loss: Loss| verdict(disk, loss, &scenario, &expected);
            let swept = sweep(&scenario.disk, &faults, effort, &body, &look);
            states += swept.unwrap_or_else(|e| panic!("{}: {e}", scenario.name));
        }
    }
    states
}

/// What a broker that starts in between does must not make things worse: segtool ends the run, or refuses and keeps everything.
#[test]
fn a_broker_may_start_before_a_stopped_run_is_ended() {
    let (ended, kept) = (Cell::new(0), Cell::new(0));
    for scenario in all() {
        let expected = Expected::of(&scenario);
        let body = |disk: &FaultFs| drop(run(disk, &scenario));
        let look = |disk: &FaultFs, _| {
            broker(disk, &scenario).unwrap();
            let before = picture(disk);
            let refused = match end_all(disk, Disturbance::Refuse) {
                Ok(_) => false,
                Err(error) if matches!(error.kind, StoreErrorKind::Changed) => true,
                Err(error) => return Err(error.to_string()),
            };
            if refused {
                let names = |picture: &BTreeMap<_, _>| picture.keys().cloned().collect::<Vec<_>>();
                let lost: Vec<_> =
                    names(&before).into_iter().filter(|path| !picture(disk).contains_key(path)).collect();
                let own = |path: &Path| path.to_string_lossy().contains("segtool-") || path.ends_with(".lock");
                if let Some(path) = lost.iter().find(|path| !own(path)) {
                    return Err(format!("{} is gone after a refusal", path.display()));
                }
                end_all(disk, Disturbance::Keep).map_err(|e| format!("cannot be kept: {e}"))?;
            }
            expected.check_broker(disk, &scenario)?;
            let ready =
                with_lock(disk, Path::new(LOG_DIR), LockTrust::Required, |lock| refuse_unfinished(disk, lock, None));
            ready.map_err(|e| format!("not ended: {e}"))?;
            Ok(refused)
        };
        let counted = |disk: &FaultFs, loss: Loss| {
            let count = if look(disk, loss)? { &kept } else { &ended };
            count.set(count.get() + 1);
            Ok(())
        };
        let swept = sweep(&scenario.disk, &Faults::default(), QUICK, &body, &counted);
        swept.unwrap_or_else(|e| panic!("{}: {e}", scenario.name));
    }
    let (ended, kept) = (ended.get(), kept.get());
    eprintln!("{ended} runs ended after a broker's start, {kept} refused and kept");
    assert!(ended > 10 * kept, "{ended} {kept}");
}

fn stopped_undos(effort: Effort) -> u64 {
    let mut states = 0;
    for scenario in all() {
        let expected = Expected::of(&scenario);
        for faults in [Faults::default(), Faults { no_links: true, ..Faults::default() }] {
            let done = scenario.disk.with(faults.clone());
            run(&done, &scenario).unwrap();
            let undone = done.with(Faults::default());
            undo_all(&undone).unwrap();
            difference(&expected.old, &picture(&undone)).unwrap_or_else(|e| panic!("{}: {e}", scenario.name));
            assert_eq!(undone.picture("/kafka").len(), undone.picture(LOG_DIR).len() + 1, "nothing is left beside");
            let body = |disk: &FaultFs| drop(undo_all(disk));
            let look = |disk: &FaultFs, _| undo_verdict(disk, &scenario, &expected);
            let swept = sweep(&done, &Faults::default(), effort, &body, &look);
            states += swept.unwrap_or_else(|e| panic!("{}: {e}", scenario.name));
        }
    }
    states
}

/// Everything that must hold for a disk on which `undo ID` was stopped.
fn undo_verdict(disk: &FaultFs, scenario: &Scenario, expected: &Expected) -> Result<(), String> {
    expected.check_broker(&disk.with(Faults::default()), scenario)?;
    let endings = end_all(disk, Disturbance::Refuse).map_err(|e| format!("undo --unfinished: {e}"))?;
    let found = without_lock(state(disk));
    match endings.as_slice() {
        [] | [Ending::Finished | Ending::NotBegun] if found == expected.new_time_free => {
            undo_all(disk).map_err(|e| format!("undo again: {e}"))?;
            difference(&expected.old_time_free, &without_lock(state(disk)))
        }
        _ => difference(&expected.old_time_free, &found),
    }
}

fn twice_stopped_runs(effort: Effort) -> u64 {
    let mut states = 0;
    for scenario in all() {
        let expected = Expected::of(&scenario);
        let film = scenario.disk.film(&Faults::default(), &|disk| drop(run(disk, &scenario)));
        for (stop_at, stopped) in film.iter().enumerate().step_by(7 * effort.every) {
            let left = stopped.after(if stop_at % 2 == 0 { Loss::Nothing } else { Loss::Some(stop_at as u64) });
            let body = |disk: &FaultFs| drop(end_all(disk, Disturbance::Refuse));
            let look = |disk: &FaultFs, loss| verdict(disk, loss, &scenario, &expected);
            let swept = sweep(&left, &Faults::default(), effort, &body, &look);
            states += swept.unwrap_or_else(|e| panic!("{}, first stopped before {stop_at}: {e}", scenario.name));
        }
    }
    states
}

const ENOSPC: i32 = 28;
const EIO: i32 = 5;

#[test]
fn an_error_of_any_call_puts_everything_back_or_leaves_what_can_be_ended() {
    let (mut put_back, mut left, mut harmless) = (0, 0, 0);
    for scenario in all() {
        let expected = Expected::of(&scenario);
        let calm = scenario.disk.with(Faults::default());
        run(&calm, &scenario).unwrap();
        let (_, calls, ..) = calm.counts();
        for (at, code, forever) in (0..calls).step_by(5).flat_map(|at| [(at, EIO, false), (at + 2, ENOSPC, true)]) {
            let disk = scenario.disk.with(Faults { error_at: Some((at, code, forever)), ..Faults::default() });
            let result = run(&disk, &scenario);
            let disk = disk.after(Loss::Nothing);
            let where_ = format!("{}: error {code} of call {at} {forever}", scenario.name);
            match result.map_err(|error| error.kind) {
                Ok(_) => harmless += 1,
                Err(StoreErrorKind::PutBack { .. }) => {
                    put_back += 1;
                    difference(&expected.old_time_free, &without_lock(state(&disk)))
                        .unwrap_or_else(|e| panic!("{where_}: put back, but {e}"));
                }
                Err(_) => {
                    left += 1;
                    verdict(&disk, Loss::Nothing, &scenario, &expected).unwrap_or_else(|e| panic!("{where_}: {e}"));
                }
            }
        }
    }
    eprintln!("{put_back} runs put back, {left} left to be ended, {harmless} not hurt");
    assert!(put_back > 300 && harmless < put_back / 10, "{put_back} {left} {harmless}");
}

#[test]
fn writes_that_take_one_byte_at_once_give_the_same_files() {
    for scenario in all() {
        let expected = Expected::of(&scenario);
        let disk = scenario.disk.with(Faults { short_writes: Some(1), ..Faults::default() });
        run(&disk, &scenario).unwrap();
        difference(&expected.new_time_free, &state(&disk)).unwrap_or_else(|e| panic!("{}: {e}", scenario.name));
        undo_all(&disk).unwrap();
        difference(&expected.old, &picture(&disk)).unwrap_or_else(|e| panic!("{}: {e}", scenario.name));
    }
}

#[test]
fn who_interrupts_a_run_finds_the_old_state() {
    for scenario in all() {
        let expected = Expected::of(&scenario);
        for stop_after in 0..6 {
            let interrupted = AtomicBool::new(stop_after == 0);
            let written = Cell::new(0);
            let progress = |_| {
                written.set(written.get() + 1);
                interrupted.store(written.get() >= stop_after, Ordering::Relaxed);
            };
            let disk = scenario.disk.with(Faults::default());
            let watch = Watch { interrupted: &interrupted, progress: &progress };
            let Err(error) = run_watched(&disk, &scenario, watch) else { continue };
            assert!(error.is_interruption(), "{}: {error}", scenario.name);
            difference(&expected.old, &picture(&disk)).unwrap_or_else(|e| panic!("{}: {e}", scenario.name));
        }
    }
}

#[test]
fn a_disk_without_room_is_refused_before_anything_is_touched() {
    for scenario in all() {
        let disk = scenario.disk.with(Faults { free_bytes: Some(1 << 20), ..Faults::default() });
        let error = run(&disk, &scenario).unwrap_err();
        assert!(matches!(error.kind, StoreErrorKind::NoSpace { .. }), "{}: {error}", scenario.name);
        difference(&picture(&scenario.disk), &picture(&disk)).unwrap();
        assert_eq!(disk.picture("/kafka").len(), disk.picture(LOG_DIR).len() + 1, "nothing is left beside");
    }
}

#[test]
fn undo_refuses_when_a_file_has_changed_since_and_touches_nothing() {
    for scenario in all() {
        let disk = scenario.disk.with(Faults::default());
        run(&disk, &scenario).unwrap();
        let (old, new) = (picture(&scenario.disk), picture(&disk));
        let is_new =
            |path: &&std::path::PathBuf| old.get(*path) != new.get(*path) && !new[*path].ends_with("directory");
        let touched = new.keys().rfind(is_new).unwrap();
        disk.append(touched.to_str().unwrap(), b"more");
        let changed = picture(&disk);
        let error = undo_all(&disk).unwrap_err();
        assert!(matches!(error.kind, StoreErrorKind::Changed) && error.is_refusal(), "{}: {error}", scenario.name);
        difference(&changed, &picture(&disk)).unwrap();
    }
}

#[test]
fn nothing_is_written_to_a_file_that_was_there_and_no_directory_is_made_in_the_log_dir() {
    for scenario in all() {
        let disk = scenario.disk.with(Faults::default());
        let done = run(&disk, &scenario);
        done.unwrap();
        let made_in_log_dir = |call: &Call| call.name == "make directory" && call.target.starts_with("segtool");
        assert!(!disk.log().iter().any(made_in_log_dir));
        let first_new = scenario.disk.next_inode();
        for call in
            disk.log().iter().filter(|call| ["write", "copy", "cut", "clone", "xattr", "mtime"].contains(&call.name))
        {
            assert!(call.target.parse::<u64>().unwrap() >= first_new, "{}: {call:?}", scenario.name);
        }
    }
}

/// What the broker's lock promises, for one scenario.
fn lock_verdict(scenario: &Scenario, faults: &Faults) -> Result<(), String> {
    let is_in_use = |result: Result<_, StoreError>| {
        result.is_err_and(|error| matches!(error.cause().kind, StoreErrorKind::InUse { .. }))
    };
    let lock = format!("{LOG_DIR}/.lock");
    let disk = scenario.disk.with(faults.clone());
    disk.add_file(&lock, b"", FILE);
    let old = picture(&disk);
    disk.lock_elsewhere(&lock);
    if !is_in_use(run(&disk, scenario).map(drop)) || picture(&disk) != old {
        return Err("a lock that is held does not stop a run".into());
    }
    let disk = scenario.disk.with(faults.clone());
    run(&disk, scenario).map_err(|e| e.to_string())?;
    let is_of_lock = |call: &Call| call.target == ".lock" || call.name == "directory mtime";
    if let Some(call) = disk.log().iter().find(|call| !call.is_locked && !is_of_lock(call)) {
        return Err(format!("not under the lock: {call:?}"));
    }
    // A broker that stops removes the file, the next one makes and locks another.
    let disk = scenario.disk.with(faults.clone());
    let exchange = || {
        disk.move_file(LOG_DIR, ".lock", None);
        disk.add_file(&lock, b"", FILE);
        disk.lock_elsewhere(&lock);
    };
    if !is_in_use(run_announced(&disk, scenario, &exchange)) {
        return Err("a lock on a file without a name counts".into());
    }
    // What waits for `undo --unfinished` is nothing that a broker looks at: files of ours, and second names in the journal.
    let seen = |disk| -> BTreeMap<_, _> {
        let is_ours = |path: &Path| path.to_string_lossy().contains("/segtool-");
        let all = without_lock(state(disk)).into_iter().filter(|(path, _)| !is_ours(path));
        all.map(|(path, text)| (path, text.replace("links 2", "links 1"))).collect()
    };
    difference(&seen(&scenario.disk), &seen(&disk))
}

#[test]
fn nothing_changes_without_the_lock_that_a_broker_would_take() {
    for scenario in all() {
        lock_verdict(&scenario, &Faults::default()).unwrap_or_else(|e| panic!("{}: {e}", scenario.name));
        let mutants = [
            Faults { ignores_locks: true, ..Faults::default() },
            Faults { ignores_lock_name: true, ..Faults::default() },
        ];
        for mutant in mutants {
            assert!(lock_verdict(&scenario, &mutant).is_err(), "{}: {mutant:?} survives", scenario.name);
        }
    }
}

/// One sync does nothing, one change of a name comes after the next one, new files keep our owner, times and attributes are lost:
/// each of these, anywhere in any run or undo, must be noticed by what the tests above look at.
#[test]
#[ignore = "a campaign of some minutes"]
fn every_sync_and_every_order_is_needed() {
    let mut killed: BTreeMap<String, bool> = BTreeMap::new();
    for scenario in all() {
        let expected = Expected::of(&scenario);
        let sound = scenario.disk.with(Faults::default());
        run(&sound, &scenario).unwrap();
        check_durable(&sound, &scenario, &expected).unwrap_or_else(|e| panic!("{}: {e}", scenario.name));
        for (mutant, faults) in mutants(&scenario.disk, &|disk| drop(run(disk, &scenario))) {
            if !killed.get(&mutant).is_some_and(|killed| *killed) {
                killed.insert(mutant, is_noticed(&scenario, &expected, &faults));
            }
        }
        let done = sound;
        for (mutant, faults) in mutants(&done, &|disk| drop(undo_all(disk))) {
            if !killed.get(&mutant).is_some_and(|killed| *killed) {
                killed.insert(mutant, is_noticed_in_undo(&done, &scenario, &expected, &faults));
            }
        }
        let end = |disk: &FaultFs| drop(end_all(disk, Disturbance::Refuse));
        for stopped in scenario.disk.film(&Faults::default(), &|disk| drop(run(disk, &scenario))).iter().step_by(5) {
            let left = stopped.after(Loss::Nothing);
            for (mutant, faults) in mutants(&left, &end) {
                if !killed.get(&mutant).is_some_and(|killed| *killed) {
                    killed.insert(mutant, is_noticed_in_end(&left, &scenario, &expected, &faults));
                }
            }
        }
    }
    let survivors: Vec<&String> = killed.iter().filter(|(_, killed)| !**killed).map(|(mutant, _)| mutant).collect();
    let unexpected: Vec<_> =
        survivors.iter().filter(|name| !HARMLESS.iter().any(|(known, _)| name.starts_with(known))).collect();
    eprintln!("{} of {} mutants killed, {survivors:#?} are harmless", killed.len() - survivors.len(), killed.len());
    assert!(unexpected.is_empty(), "these survive:\n{unexpected:#?}");
}

/// How mutants begin that do no harm, each with the reason.
const HARMLESS: [(&str, &str); 6] = [
    ("rename .index.swap -> .index after", "a broker completes the swap itself, whatever else has changed"),
    ("rename .log.swap -> .log after rename new -> .log.deleted", "the same"),
    ("rename new -> .log.swap after remove .log.cleaned", "a log without indexes: a swap that has not begun"),
    ("remove .timeindex.swap after rename new -> .log.swap", "without its offset index a broker rebuilds all of them"),
    ("no sync directory in swap.rs after remove .timeindex.swap", "the same"),
    ("no sync directory in place.rs after nothing", "a pointer that comes back is removed when runs are ended again"),
];

/// Every stop, and so many ways of losing that one of a few pending changes is hit alone.
const MUTANT: Effort = Effort { seeds: 8, every: 1 };

fn is_noticed(scenario: &Scenario, expected: &Expected, faults: &Faults) -> bool {
    // Once more with originals that have not reached the disk: undo promises them all the same.
    let unsynced = scenario.disk.with(faults.clone());
    unsynced.forget_sync(&expected.replaced());
    for whole in [scenario.disk.with(faults.clone()), unsynced] {
        if run(&whole, scenario).is_err() || check_durable(&whole, scenario, expected).is_err() {
            return true;
        }
    }
    let body = |disk: &FaultFs| drop(run(disk, scenario));
    let look = |disk: &FaultFs, loss| verdict(disk, loss, scenario, expected);
    sweep(&scenario.disk, faults, MUTANT, &body, &look).is_err()
}

fn is_noticed_in_undo(done: &FaultFs, scenario: &Scenario, expected: &Expected, faults: &Faults) -> bool {
    let whole = done.with(faults.clone());
    let is_back = |loss| difference(&expected.old_time_free, &without_lock(state(&whole.after(loss)))).is_ok();
    if undo_all(&whole).is_err() || ![Loss::Nothing, Loss::Everything, Loss::Some(1)].into_iter().all(is_back) {
        return true;
    }
    let body = |disk: &FaultFs| drop(undo_all(disk));
    let look = |disk: &FaultFs, _| undo_verdict(disk, scenario, expected);
    sweep(done, faults, MUTANT, &body, &look).is_err()
}

fn is_noticed_in_end(left: &FaultFs, scenario: &Scenario, expected: &Expected, faults: &Faults) -> bool {
    if end_all(&left.with(faults.clone()), Disturbance::Refuse).is_err() {
        return true;
    }
    let body = |disk: &FaultFs| drop(end_all(disk, Disturbance::Refuse));
    let look = |disk: &FaultFs, loss| verdict(disk, loss, scenario, expected);
    sweep(left, faults, MUTANT, &body, &look).is_err()
}

/// What may go wrong while `body` works on a disk, each with a name: the line of segtool and what it was about. The same name in
/// another scenario is the same mutant.
fn mutants(disk: &FaultFs, body: &dyn Fn(&FaultFs)) -> Vec<(String, Faults)> {
    let calm = disk.with(Faults::default());
    body(&calm);
    let log = calm.log();
    let mut mutants = vec![
        ("owners and modes are ours".to_owned(), Faults { ignores_access: true, ..Faults::default() }),
        ("times and attributes are lost".to_owned(), Faults { ignores_looks: true, ..Faults::default() }),
    ];
    let is_name = |call: &Call| ["rename", "link", "remove"].contains(&call.name);
    let is_sync = |call: &Call| call.name.starts_with("sync");
    for (number, at) in (0..log.len()).filter(|at| is_sync(&log[*at])).enumerate() {
        let before = log[..at].iter().rev().find(|call| !is_sync(call));
        let before = before.map(|call| if is_name(call) { kind(call) } else { call_kind(call).to_owned() });
        let before = before.unwrap_or_else(|| "nothing".to_owned());
        let file = log[at].site.split(':').next().unwrap_or_default();
        let name = format!("no {} in {file} after {before}", log[at].name);
        mutants.push((name, Faults { lazy_sync: Some(number as u64), ..Faults::default() }));
    }
    let names: Vec<usize> = (0..log.len()).filter(|at| is_name(&log[*at])).collect();
    for (number, pair) in names.windows(2).enumerate() {
        // Within a step of the sequence any order will do.
        if log[pair[0]..pair[1]].iter().any(|call| call.name == "sync directory") {
            let name = format!("{} after {}", kind(&log[pair[0]]), kind(&log[pair[1]]));
            mutants.push((name, Faults { late_name: Some(number as u64), ..Faults::default() }));
        }
    }
    mutants
}

/// What a call that changes no name of a file was about.
fn call_kind(call: &Call) -> &'static str {
    match call.name {
        "create" | "write" | "copy" | "clone" | "cut" | "xattr" | "mtime" => "new files",
        other => other,
    }
}

/// A call without what differs between files of a kind.
fn kind(call: &Call) -> String {
    let target = call.target.replace("20261130T201500Z-01234567", "ID");
    let word = |word: &str| {
        let word = word.trim_start_matches(|c: char| c.is_ascii_digit());
        if word.starts_with("segtool-ID-") && !word.ends_with("unfinished") { "new".into() } else { word.to_owned() }
    };
    format!("{} {}", call.name, target.split(' ').map(word).collect::<Vec<_>>().join(" "))
}

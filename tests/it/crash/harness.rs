//! Runs of scenarios, what must hold afterwards, and the stop before every call.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use segtool::store::{
    Applied, Disturbance, Ending, LockTrust, RunOptions, RunState, StoreError, Watch, apply, default_undo_dir,
    end_all_unfinished, list_runs, refuse_unfinished, undo, with_lock,
};

use super::scenarios::{LOG_DIR, Scenario};
use crate::support::fault_fs::{FaultFs, Faults, Loss};
use crate::support::start_model::{Segment, start};

const DIGEST: &str = "0123456789abcdef0123456789abcdef";

type Started = BTreeMap<String, BTreeMap<i64, Segment>>;

pub(super) fn with_watch<T>(body: impl FnOnce(Watch<'_>) -> T) -> T {
    let interrupted = AtomicBool::new(false);
    body(Watch { interrupted: &interrupted, progress: &|_| {} })
}

/// The run of a scenario as a command does it.
pub(super) fn run(disk: &FaultFs, scenario: &Scenario) -> Result<Applied, StoreError> {
    with_watch(|watch| run_watched(disk, scenario, watch))
}

/// A directory for journals that is not where segtool looks by itself.
pub(super) const ELSEWHERE: &str = "/undo/journals";

fn undo_dir(scenario: &Scenario) -> Option<&'static Path> {
    scenario.keeps_journal_elsewhere.then_some(Path::new(ELSEWHERE))
}

/// The same for who may interrupt it.
pub(super) fn run_watched(disk: &FaultFs, scenario: &Scenario, watch: Watch<'_>) -> Result<Applied, StoreError> {
    run_with(disk, scenario, watch, &|| {})
}

/// The same with something that happens when the lock is held and nothing has changed yet.
pub(super) fn run_announced(disk: &FaultFs, scenario: &Scenario, announced: &dyn Fn()) -> Result<(), StoreError> {
    with_watch(|watch| run_with(disk, scenario, watch, announced)).map(drop)
}

fn run_with(
    disk: &FaultFs,
    scenario: &Scenario,
    watch: Watch<'_>,
    announced: &dyn Fn(),
) -> Result<Applied, StoreError> {
    with_lock(disk, Path::new(LOG_DIR), LockTrust::Required, |lock| {
        refuse_unfinished(disk, lock, None)?;
        let options = RunOptions {
            command: scenario.name,
            digest: DIGEST,
            started_s: 1_796_069_700,
            undo_dir: undo_dir(scenario),
            watch,
            announce: &|_, _| announced(),
            check: &|_| Ok(()),
        };
        apply(disk, lock, &scenario.changes, &options)
    })
}

/// `undo --unfinished`.
pub(super) fn end_all(disk: &FaultFs, disturbance: Disturbance) -> Result<Vec<Ending>, StoreError> {
    with_lock(disk, Path::new(LOG_DIR), LockTrust::Required, |lock| {
        let endings = with_watch(|watch| end_all_unfinished(disk, lock, None, disturbance, watch))?;
        Ok(endings.into_iter().map(|(_, ending)| ending).collect())
    })
}

/// `undo ID` of the only run there is.
pub(super) fn undo_all(disk: &FaultFs) -> Result<(), StoreError> {
    with_lock(disk, Path::new(LOG_DIR), LockTrust::Required, |lock| {
        refuse_unfinished(disk, lock, None)?;
        let default = default_undo_dir(Path::new(LOG_DIR)).unwrap();
        for found in [list_runs(disk, &default)?, list_runs(disk, Path::new(ELSEWHERE))?].concat() {
            assert_eq!(found.state, RunState::Complete);
            with_watch(|watch| undo(disk, lock, &found, watch))?;
        }
        Ok(())
    })
}

pub(super) fn parts(scenario: &Scenario) -> BTreeSet<String> {
    scenario.partitions.iter().cloned().collect()
}

pub(super) fn broker(disk: &FaultFs, scenario: &Scenario) -> Result<Started, String> {
    parts(scenario).into_iter().map(|name| Ok((name.clone(), start(disk, &format!("{LOG_DIR}/{name}"))?))).collect()
}

/// All that must be the same but what time has done to directories and, where told, inodes.
pub(super) fn picture(disk: &FaultFs) -> BTreeMap<PathBuf, String> {
    disk.picture(LOG_DIR)
}

/// The same without what tells an old state from one that is new again: times of directories, and the journal.
pub(super) fn state(disk: &FaultFs) -> BTreeMap<PathBuf, String> {
    let without_times = |(path, text): (PathBuf, String)| {
        let words: Vec<&str> = text.split(' ').collect();
        let text = if text.ends_with(" directory") { format!("{} {}", words[0], words[1]) } else { text };
        (path, text)
    };
    disk.picture(LOG_DIR).into_iter().map(without_times).collect()
}

pub(super) fn without_lock(mut state: BTreeMap<PathBuf, String>) -> BTreeMap<PathBuf, String> {
    state.remove(&Path::new(LOG_DIR).join(".lock"));
    state
}

/// What the states of a scenario look like.
pub(super) struct Expected {
    pub(super) old: BTreeMap<PathBuf, String>,
    /// What a broker may find, partition by partition.
    pub(super) started: BTreeMap<String, Vec<BTreeMap<i64, Segment>>>,
    /// Log dir files of the old and the new state.
    pub(super) root_files: [BTreeMap<String, Vec<u8>>; 2],
    pub(super) old_time_free: BTreeMap<PathBuf, String>,
    pub(super) new_time_free: BTreeMap<PathBuf, String>,
}

impl Expected {
    pub(super) fn of(scenario: &Scenario) -> Self {
        let new_disk = scenario.disk.with(Faults::default());
        run(&new_disk, scenario).unwrap();
        let mut started: BTreeMap<String, Vec<BTreeMap<i64, Segment>>> = BTreeMap::new();
        for disk in [&scenario.disk, &new_disk] {
            for (name, segments) in broker(&disk.with(Faults::default()), scenario).unwrap() {
                started.entry(name).or_default().push(segments);
            }
        }
        for (name, segments) in &scenario.between {
            let between = segments(&started[name][0], &started[name][1]);
            started.get_mut(name).unwrap().push(between);
        }
        let several_names = picture(&new_disk).into_iter().find(|(_, text)| text.contains("links 2"));
        assert_eq!(several_names, None, "{}: a file shares its inode with the journal", scenario.name);
        Self {
            old: picture(&scenario.disk),
            old_time_free: state(&scenario.disk),
            new_time_free: state(&new_disk),
            started,
            root_files: [scenario.disk.files(LOG_DIR), new_disk.files(LOG_DIR)],
        }
    }

    /// A segment of one state may have its index rebuilt by the broker; it may never have another's.
    pub(super) fn check_broker(&self, disk: &FaultFs, scenario: &Scenario) -> Result<(), String> {
        let found = broker(disk, scenario)?;
        for (name, segments) in found {
            let states = &self.started[&name];
            let new = &states[1];
            // A broker may have rebuilt the index of a new log, which is sound; an old one it would cut.
            let may_be_rebuilt = |base: i64, wanted: &Segment| {
                scenario.rebuilds_old || new.get(&base).is_some_and(|new| new.log == wanted.log)
            };
            let fits = |base: i64, wanted: Option<&Segment>| match (wanted, segments.get(&base)) {
                (Some(wanted), Some(found)) => same(wanted, found, may_be_rebuilt(base, wanted)),
                (wanted, found) => wanted.is_none() && found.is_none(),
            };
            let bases: BTreeSet<i64> = states.iter().flat_map(BTreeMap::keys).chain(segments.keys()).copied().collect();
            let is_state = |wanted: &BTreeMap<i64, Segment>| bases.iter().all(|base| fits(*base, wanted.get(base)));
            let is_mixed = || bases.iter().all(|base| states.iter().any(|wanted| fits(*base, wanted.get(base))));
            let is_one_of_both = states.iter().any(is_state) || (scenario.is_per_segment && is_mixed());
            if !is_one_of_both {
                return Err(format!("{name}: neither old nor new: {segments:#?}"));
            }
        }
        for (name, bytes) in disk.files(LOG_DIR) {
            let known = self.root_files.iter().any(|files| files.get(&name) == Some(&bytes));
            let between = scenario.checkpoint_between.is_some_and(|text| text.as_bytes() == bytes);
            if !known && !between && !name.starts_with("segtool-") && name != ".lock" {
                return Err(format!("{name} is neither old nor new"));
            }
        }
        Ok(())
    }

    /// Files of the old state that are not in the new one as they were.
    pub(super) fn replaced(&self) -> Vec<PathBuf> {
        let is_replaced = |(path, text): &(&PathBuf, &String)| {
            !text.ends_with(" directory") && self.new_time_free.get(*path) != Some(text)
        };
        self.old_time_free.iter().filter(is_replaced).map(|(path, _)| path.clone()).collect()
    }

    /// `stopped` is the disk as segtool found it, `disk` as it left it.
    pub(super) fn check_ended(&self, stopped: &FaultFs, disk: &FaultFs, endings: &[Ending]) -> Result<(), String> {
        let beside: Vec<PathBuf> =
            disk.picture("/kafka").into_keys().filter(|path| !path.starts_with(LOG_DIR)).collect();
        if endings != [Ending::Finished]
            && without_lock(state(disk)) != self.new_time_free
            && beside != [Path::new("/kafka")]
        {
            return Err(format!("left beside the log dir: {beside:?}"));
        }
        let points = |(name, bytes): (&String, &Vec<u8>)| name.ends_with("-unfinished") && bytes.ends_with(b"\n");
        let had_begun = stopped.files(LOG_DIR).iter().any(points);
        match endings {
            // Nothing had begun, or nothing was missing; an empty `.lock` is what brokers leave too.
            [] if without_lock(state(disk)) == self.new_time_free => Ok(()),
            [Ending::PutBack] if had_begun => difference(&self.old, &picture(disk)),
            [] | [Ending::PutBack | Ending::NotBegun] => difference(&self.old_time_free, &without_lock(state(disk))),
            [Ending::Finished] => difference(&self.new_time_free, &state(disk)),
            other => Err(format!("{other:?}")),
        }
    }
}

fn same(wanted: &Segment, found: &Segment, may_be_rebuilt: bool) -> bool {
    let rebuilt = may_be_rebuilt && found.index == format!("rebuilt from {}", wanted.log);
    let indexes = |segment: &Segment| (segment.index.clone(), segment.time_index.clone(), segment.txn_index.clone());
    wanted.log == found.log && (rebuilt || indexes(wanted) == indexes(found))
}

pub(super) fn difference(wanted: &BTreeMap<PathBuf, String>, found: &BTreeMap<PathBuf, String>) -> Result<(), String> {
    let mut lines = Vec::new();
    for path in wanted.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
        if wanted.get(path) != found.get(path) {
            lines.push(format!("{}\n  wanted {:?}\n  found  {:?}", path.display(), wanted.get(path), found.get(path)));
        }
    }
    if lines.is_empty() { Ok(()) } else { Err(lines.join("\n")) }
}

/// How many ways of losing some of it are tried at each stop, and how far apart the stops are.
#[derive(Clone, Copy)]
pub(super) struct Effort {
    pub(super) seeds: u64,
    pub(super) every: usize,
}

fn losses(stop_at: u64, effort: Effort) -> impl Iterator<Item = Loss> {
    let seeds = (0..effort.seeds).map(move |seed| Loss::Some(stop_at * 1_000 + seed));
    [Loss::Nothing, Loss::Everything].into_iter().chain(seeds)
}

/// Everything that must hold for a disk on which segtool was stopped.
pub(super) fn verdict(disk: &FaultFs, loss: Loss, scenario: &Scenario, expected: &Expected) -> Result<(), String> {
    expected.check_broker(&disk.with(Faults::default()), scenario).map_err(|e| format!("a broker starts: {e}"))?;
    let ended = disk.with(Faults::default());
    let endings = end_all(&ended, Disturbance::Refuse).map_err(|e| format!("undo --unfinished: {e}"))?;
    expected.check_ended(disk, &ended, &endings).map_err(|e| format!("after undo --unfinished ({endings:?}): {e}"))?;
    if loss == Loss::Nothing && endings != [Ending::Finished] && without_lock(state(&ended)) != expected.new_time_free {
        run(&ended, scenario).map_err(|e| format!("a run afterwards: {e}"))?;
        difference(&expected.new_time_free, &without_lock(state(&ended)))
            .map_err(|e| format!("after a run afterwards: {e}"))?;
    }
    if let Some(name) = disk.unreadable().first() {
        return Err(format!("{name} was there while a broker could not read it"));
    }
    Ok(())
}

/// What must hold when a run has said that it is done, whatever happens next: nothing is missing, and undo has all it needs.
pub(super) fn check_durable(disk: &FaultFs, scenario: &Scenario, expected: &Expected) -> Result<(), String> {
    for loss in [Loss::Nothing, Loss::Everything, Loss::Some(1), Loss::Some(2), Loss::Some(3)] {
        let left = disk.after(loss);
        // The empty `.lock` may be back, as brokers leave it too.
        let found = || without_lock(state(&left));
        difference(&expected.new_time_free, &found()).map_err(|e| format!("done, {loss:?} lost: {e}"))?;
        check_journal(&left)?;
        undo_all(&left).map_err(|e| format!("done, {loss:?} lost, undo: {e}"))?;
        difference(&expected.old_time_free, &found()).map_err(|e| format!("done, {loss:?} lost, undone: {e}"))?;
        if !scenario.keeps_journal_elsewhere && left.picture("/kafka").len() != left.picture(LOG_DIR).len() + 1 {
            return Err("something is left beside the log dir".into());
        }
    }
    Ok(())
}

/// Every step has its beginning and its end in the journal, and what was put aside is there.
fn check_journal(disk: &FaultFs) -> Result<(), String> {
    let everything = disk.picture("/");
    let journal = everything.iter().find(|(path, _)| path.ends_with("journal.jsonl")).ok_or("no journal")?;
    let dir = journal.0.parent().unwrap();
    let lines = disk.files(dir.to_str().unwrap()).remove("journal.jsonl").unwrap();
    let count = |state: &str| String::from_utf8_lossy(&lines).matches(&format!("\"state\":\"{state}\"")).count();
    // The line of the run itself only begins; a transaction has one line more, `prepared`.
    if count("begin") != count("done") + 1 {
        return Err(format!("{} steps begin, {} are done", count("begin"), count("done")));
    }
    if String::from_utf8_lossy(&lines).contains("salvage") {
        let aside = everything.iter().find(|(path, _)| path.ends_with("00000000000000000100.log.12-15"));
        if !aside.is_some_and(|(_, text)| text.ends_with(" 10")) {
            return Err(format!("what was put aside is not there: {aside:?}"));
        }
    }
    Ok(())
}

/// Stops before every changing call of `body` on `disk`, and looks at what is left. Returns how many states were looked at.
pub(super) fn sweep(
    disk: &FaultFs,
    faults: &Faults,
    effort: Effort,
    body: &dyn Fn(&FaultFs),
    look: &dyn Fn(&FaultFs, Loss) -> Result<(), String>,
) -> Result<u64, String> {
    let film = disk.film(faults, body);
    let calls = film.last().map(FaultFs::log).unwrap_or_default();
    let mut states = 0;
    for (stop_at, stopped) in film.iter().enumerate().step_by(effort.every) {
        for loss in losses(stop_at as u64, effort) {
            states += 1;
            look(&stopped.after(loss), loss).map_err(|error| {
                let done: Vec<String> =
                    calls.iter().take(stop_at).map(|c| format!("{} {}", c.name, c.target)).collect();
                let at = calls.get(stop_at);
                format!("stopped before call {stop_at} {at:?}, {loss:?} lost:\n{error}\ndone: {}", done.join(", "))
            })?;
        }
    }
    Ok(states)
}

//! Putting back what a run has changed, and finishing or taking back one that stopped half-way.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::atomic::{NewFile, Watch};
use super::error::{At, StoreError, StoreErrorKind};
use super::fs::{Access, EntryName, Fs};
use super::journal::{Direction, History, JOURNAL, Journal, Logged, Outcome, plain};
use super::lock::BrokerLock;
use super::place::{
    FoundRun, RunId, RunState, UNDONE, clear_pointer, default_undo_dir, find_undo_dir, list_runs, set_pointer,
    unfinished_runs,
};
use super::record::{Action, Before, Entry, Identity, Order, Record};
use super::step::Place;
use super::survey::open_place;
use super::swap::{Ground, Progress, Role, active_base};
use super::worker::Worker;

/// What became of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// All its files are new; it can be undone by its id.
    Finished,
    /// All its files are old; its journal is gone.
    PutBack,
    /// It had not changed anything yet.
    NotBegun,
    /// Each of its directories stays as it is, some new, some old; what is new can be undone by its id.
    Kept,
}

/// What to do with files that were changed after the run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Disturbance {
    /// Refuse and leave everything as it is.
    #[default]
    Refuse,
    /// Close the journal and leave each directory as it is.
    Keep,
}

/// Puts back all files of a run that is done.
///
/// # Errors
///
/// Refused where a file that would be replaced has changed since; nothing is touched then.
pub fn undo<F: Fs>(fs: &F, lock: &BrokerLock<F>, run: &FoundRun, watch: Watch<'_>) -> Result<Ending, StoreError> {
    let Some(history) = &run.history else { return Err(unreadable(run)) };
    let mut back = Back::open(fs, lock, run, history, watch)?;
    back.check_unchanged()?;
    set_pointer(fs, lock, &run.id, &run.path)?;
    back.worker.journal.undo(fs, lock.is_made_here())?;
    back.put_back()?;
    back.close()?;
    Ok(Ending::PutBack)
}

/// Ends every run that a log dir is waiting for, the last first, and removes a directory of journals that has none.
pub fn end_all_unfinished<F: Fs>(
    fs: &F,
    lock: &BrokerLock<F>,
    undo_dir: Option<&Path>,
    disturbance: Disturbance,
    watch: Watch<'_>,
) -> Result<Vec<(RunId, Ending)>, StoreError> {
    let mut endings = Vec::new();
    for run in unfinished_runs(fs, lock, undo_dir)?.iter().rev() {
        endings.push((run.id.clone(), end_unfinished(fs, lock, run, disturbance, watch)?));
    }
    // Whatever else may stand there was refused, or is not ours.
    if let Some(path) = default_undo_dir(lock.log_dir())
        && let Ok(Some(dir)) = find_undo_dir(fs, &path)
    {
        drop_if_empty(fs, dir, &path)?;
    }
    Ok(endings)
}

/// Ends a run that stopped half-way: finishes it where only the last word is missing, puts everything back otherwise.
///
/// # Errors
///
/// Refused where a broker or somebody else has changed files in between, unless they are to be kept.
fn end_unfinished<F: Fs>(
    fs: &F,
    lock: &BrokerLock<F>,
    run: &FoundRun,
    disturbance: Disturbance,
    watch: Watch<'_>,
) -> Result<Ending, StoreError> {
    if run.is_pointed_at {
        // The pointer goes.
        lock.leave_time(None);
    }
    let was_at_work = run.is_pointed_at || run.state != RunState::Complete;
    if was_at_work && run.history.as_ref().is_some_and(|history| history.made_lock) {
        lock.take_over_file();
    }
    let Some(history) = &run.history else {
        if run.state == RunState::Unfinished && disturbance == Disturbance::Refuse {
            return Err(unreadable(run));
        }
        clear_pointer(fs, lock, &run.id)?;
        if run.state != RunState::Complete {
            remove_journal(fs, &run.path)?;
        }
        return Ok(Ending::NotBegun);
    };
    if run.state == RunState::Complete {
        clear_pointer(fs, lock, &run.id)?;
        return Ok(Ending::Finished);
    }
    let mut back = Back::open(fs, lock, run, history, watch)?;
    if run.state == RunState::Undone {
        back.close()?;
        return Ok(Ending::PutBack);
    }
    match back.settle().and_then(|()| back.end()) {
        Err(error) if disturbance == Disturbance::Keep && matches!(error.kind, StoreErrorKind::Changed) => {
            back.clear_waiting()?;
            back.worker.journal.keep(fs)?;
            back.worker.complete()?;
            Ok(Ending::Kept)
        }
        other => other,
    }
}

/// Puts everything back after an error, and tells both.
pub(crate) fn put_back_after<F: Fs>(
    fs: &F,
    lock: &BrokerLock<F>,
    undo_dir: &Path,
    id: &RunId,
    cause: StoreError,
) -> StoreError {
    // Who asked to stop asked for the old state.
    let never = AtomicBool::new(false);
    let watch = Watch { interrupted: &never, progress: &|_| {} };
    let path = cause.path.clone();
    let found = list_runs(fs, undo_dir).map(|runs| runs.into_iter().find(|run| run.id == *id));
    let ended = match found {
        Ok(Some(run)) => end_unfinished(fs, lock, &run, Disturbance::Refuse, watch),
        Ok(None) => Err(StoreError::new(undo_dir, StoreErrorKind::NoSuchRun { id: id.as_str().to_owned() })),
        Err(error) => Err(error),
    };
    let cause = Box::new(cause);
    match ended {
        Ok(Ending::PutBack | Ending::NotBegun) => StoreError::new(path, StoreErrorKind::PutBack { cause }),
        Ok(Ending::Finished | Ending::Kept) => *cause,
        Err(rollback) => StoreError::new(path, StoreErrorKind::LeftUnfinished { cause, rollback: Box::new(rollback) }),
    }
}

/// The entries of a transaction that last.
fn files_of(record: &Record) -> impl Iterator<Item = &Entry> {
    record.entries.iter().filter(|entry| entry.action != Action::Guard)
}

fn unreadable(run: &FoundRun) -> StoreError {
    StoreError::new(&run.path, StoreErrorKind::Journal { line: 1 })
}

/// A journal at work backwards.
struct Back<'a, F: Fs> {
    worker: Worker<'a, F>,
    history: History,
}

impl<'a, F: Fs> Back<'a, F> {
    fn open(
        fs: &'a F,
        lock: &'a BrokerLock<F>,
        run: &FoundRun,
        history: &History,
        watch: Watch<'a>,
    ) -> Result<Self, StoreError> {
        let dir = fs.open_dir(&run.path).at(&run.path, "opening an undo journal")?;
        let journal = Journal::resume(fs, dir, &run.path, history)?;
        let worker = Worker::new(fs, lock, run.id.clone(), journal, watch);
        Ok(Self { worker, history: history.clone() })
    }

    fn open_place(&self, place: &Place) -> Result<(F::Dir, PathBuf), StoreError> {
        let lock = self.worker.lock;
        let (dir, _) = open_place(self.worker.fs, lock.dir(), lock.log_dir(), place)?;
        Ok((dir, place.path_in(lock.log_dir())))
    }

    /// Brings the transaction that was interrupted, if any, to an end, and removes files that waited for one that never began.
    fn settle(&mut self) -> Result<(), StoreError> {
        let fs = self.worker.fs;
        let id = self.worker.id.clone();
        if let Some(last) = self.history.transactions.last_mut().filter(|last| last.outcome == Outcome::Open) {
            let lock = self.worker.lock;
            let (dir, _) = open_place(fs, lock.dir(), lock.log_dir(), &last.record.place)?;
            let path = last.record.place.path_in(lock.log_dir());
            let ground = Ground { fs, dir: &dir, path: &path };
            // Whoever was stopped may have changed names without making that durable.
            ground.sync()?;
            last.outcome = match ground.progress(&last.record)? {
                Progress::NotBegun => {
                    ground.give_up(&last.record, |name| id.is_waiting_name(name))?;
                    Outcome::GivenUp
                }
                Progress::Begun => {
                    // Where this puts back a run that lost its lock, somebody else may be at work here.
                    lock.check(fs)?;
                    ground.carry_out(&last.record)?;
                    Outcome::Done
                }
                Progress::Done => Outcome::Done,
                Progress::Disturbed => return Err(StoreError::new(path, StoreErrorKind::Changed)),
            };
            self.worker.journal.close(fs, &last.record, last.outcome)?;
        }
        self.clear_waiting()
    }

    /// Removes new files of the run that have not got their places.
    fn clear_waiting(&self) -> Result<(), StoreError> {
        for place in self.history.run.places().into_keys() {
            let (dir, path) = self.open_place(&place)?;
            let ground = Ground { fs: self.worker.fs, dir: &dir, path: &path };
            ground.clear(|name| self.worker.id.is_waiting_name(name))?;
        }
        Ok(())
    }

    /// Finishes or puts back, once nothing is half-way.
    fn end(&mut self) -> Result<Ending, StoreError> {
        let forward = self.history.transactions.iter().filter(|logged| logged.direction == Direction::Forward);
        let done = forward.filter(|logged| logged.outcome == Outcome::Done).count();
        if !self.history.is_being_undone && done == self.history.run.transaction_count() {
            self.worker.complete()?;
            return Ok(Ending::Finished);
        }
        self.check_unchanged()?;
        self.put_back()?;
        self.close()?;
        Ok(Ending::PutBack)
    }

    /// Transactions whose names are new, the last first.
    fn standing(&self) -> Vec<Record> {
        let mut standing: Vec<&Logged> = Vec::new();
        for logged in self.history.transactions.iter().filter(|logged| logged.outcome == Outcome::Done) {
            match logged.direction {
                Direction::Forward => standing.push(logged),
                Direction::Back => {
                    standing.pop();
                }
            }
        }
        standing.iter().rev().map(|logged| logged.record.clone()).collect()
    }

    /// Makes sure that every file that would be replaced is the one that the run has put there.
    fn check_unchanged(&self) -> Result<(), StoreError> {
        let mut expected = BTreeMap::new();
        for logged in self.history.transactions.iter().filter(|logged| logged.outcome == Outcome::Done) {
            for entry in files_of(&logged.record) {
                expected.insert((&logged.record.place, &entry.name), entry.after);
            }
        }
        for record in self.standing() {
            let (dir, path) = self.open_place(&record.place)?;
            for entry in files_of(&record) {
                let path = path.join(&entry.name);
                let stat = self.worker.fs.stat(&dir, &entry.name).at(&path, "looking at a file")?;
                let known = expected.get(&(&record.place, &entry.name)).copied().flatten();
                if stat.as_ref().map(Identity::from) != known {
                    return Err(StoreError::new(path, StoreErrorKind::Changed));
                }
            }
        }
        Ok(())
    }

    fn put_back(&mut self) -> Result<(), StoreError> {
        for record in self.standing() {
            self.reverse(&record)?;
        }
        Ok(())
    }

    /// Puts the names of one transaction back.
    fn reverse(&mut self, record: &Record) -> Result<(), StoreError> {
        let fs = self.worker.fs;
        self.worker.watch.check(self.worker.lock.log_dir())?;
        let (dir, path) = self.open_place(&record.place)?;
        let dir_stat = fs.stat_dir(&dir).at(&path, "looking at a directory")?;
        let names = fs.list(&dir).at(&path, "listing a directory")?;
        let mut entries = Vec::new();
        for entry in files_of(record) {
            let now = fs.stat(&dir, &entry.name).at(&path.join(&entry.name), "looking at a file")?;
            let standing = now.map(|stat| Before {
                identity: Identity::from(&stat),
                mode: stat.mode,
                uid: stat.uid,
                gid: stat.gid,
                xattrs: BTreeMap::new(),
                saved: None,
            });
            let (waiting, after) = match &entry.before {
                Some(before) => Some(self.bring_back(&dir, &path, record, &entry.name, before, &names)?).unzip(),
                None => (None, None),
            };
            let action = if waiting.is_some() { Action::Restore } else { Action::Remove };
            let name = entry.name.clone();
            entries.push(Entry { action, name, order: Order::Plain, before: standing, waiting, after });
        }
        self.worker.add_guards(&dir, &path, &dir_stat, &names, &mut entries)?;
        let back = Record { place: record.place.clone(), entries };
        self.worker.carry_out(Direction::Back, &dir, &path, &back)
    }

    /// Makes the original wait beside its old place.
    fn bring_back(
        &mut self,
        dir: &F::Dir,
        path: &Path,
        record: &Record,
        name: &EntryName,
        before: &Before,
        names: &[EntryName],
    ) -> Result<(EntryName, Identity), StoreError> {
        let fs = self.worker.fs;
        let kept = self.worker.keep("files", &record.place)?;
        let saved_name = before.saved.as_ref().unwrap_or(name);
        let saved_path = kept.path.join(saved_name);
        let saved = fs.open_file(&kept.dir, saved_name).at(&saved_path, "opening a kept original")?;
        let stat = fs.stat_file(&saved).at(&saved_path, "looking at a kept original")?;
        let waiting = self.worker.waiting_name()?;
        let base = match Role::of(name) {
            Role::Log(base) | Role::OffsetIndex(base) | Role::OtherIndex(base) => Some(base),
            _ => None,
        };
        let is_active = base.is_none() || base >= active_base(names);
        let is_original = stat.inode == before.identity.inode && Identity::from(&stat) == before.identity;
        if is_original && !is_active && fs.link(&kept.dir, saved_name, dir, &waiting).is_ok() {
            return Ok((waiting, before.identity));
        }
        let access = Access { uid: before.uid, gid: before.gid, mode: before.mode };
        let mtime_ns = Some(before.identity.mtime_ns);
        let new = NewFile { name: &waiting, access, xattrs: &before.xattrs, mtime_ns };
        let identity = self.worker.workshop(dir, path, &kept.dir, &kept.path).copy(&new, &saved)?;
        if identity.size_bytes != before.identity.size_bytes {
            return Err(StoreError::new(saved_path, StoreErrorKind::Changed));
        }
        Ok((waiting, identity))
    }

    /// Says that everything is back, and removes the journal.
    fn close(&self) -> Result<(), StoreError> {
        let fs = self.worker.fs;
        let times = self.history.run.places().into_iter().filter_map(|(place, time)| Some((place, time?)));
        for (place, mtime_ns) in times.filter(|(place, _)| *place != Place::LogDir) {
            let (dir, path) = self.open_place(&place)?;
            fs.set_dir_mtime(&dir, mtime_ns).at(&path, "setting the time of a directory")?;
        }
        let journal = &self.worker.journal;
        // Second names of originals go while somebody still knows of them.
        empty_dir(fs, &journal.dir, &journal.path, &[plain(UNDONE)?, plain(JOURNAL)?])?;
        journal.mark(fs, UNDONE)?;
        self.worker.lock.leave_time(self.history.run.dir_mtime_ns);
        clear_pointer(fs, self.worker.lock, &self.worker.id)?;
        remove_journal(fs, &self.worker.journal.path)
    }
}

/// Removes a journal, and the directory of journals where that was the last one.
///
/// What says how the run stands goes last, so that a removal that stops half-way is known for what it is.
pub fn remove_journal<F: Fs>(fs: &F, path: &Path) -> Result<(), StoreError> {
    // Only ever what has the name of a journal.
    let name = path.file_name().filter(|name| name.to_str().and_then(RunId::parse).is_some());
    let (Some(parent_path), Some(name)) = (path.parent(), name.and_then(EntryName::new)) else {
        return Ok(());
    };
    let Some(parent) = find_undo_dir(fs, parent_path)? else { return Ok(()) };
    if fs.stat(&parent, &name).at(path, "looking at an undo journal")?.is_some() {
        let dir = fs.open_subdir(&parent, &name).at(path, "opening an undo journal")?;
        // Nothing rests on this any more, so nothing is synced; what comes back after a power failure is removed the next time.
        empty_dir(fs, &dir, path, &[plain(UNDONE)?])?;
        empty_dir(fs, &dir, path, &[])?;
        fs.remove_dir(&parent, &name).at(path, "removing an undo journal")?;
    }
    let is_default = parent_path.extension().is_some_and(|extension| extension == "segtool-undo");
    if is_default {
        drop_if_empty(fs, parent, parent_path)?;
    }
    Ok(())
}

/// Removes the directory of journals where none is in it.
pub(crate) fn drop_if_empty<F: Fs>(fs: &F, dir: F::Dir, path: &Path) -> Result<(), StoreError> {
    if fs.list(&dir).at(path, "listing undo journals")?.is_empty() {
        drop(dir);
        if let (Some(above_path), Some(name)) = (path.parent(), path.file_name().and_then(EntryName::new)) {
            let above = fs.open_dir(above_path).at(above_path, "opening a directory")?;
            fs.remove_dir(&above, &name).at(path, "removing the directory of undo journals")?;
        }
    }
    Ok(())
}

pub(crate) fn empty_dir<F: Fs>(fs: &F, dir: &F::Dir, path: &Path, but: &[EntryName]) -> Result<(), StoreError> {
    for name in fs.list(dir).at(path, "listing an undo journal")? {
        let below = path.join(&name);
        match fs.stat(dir, &name).at(&below, "looking at an undo journal")? {
            _ if but.contains(&name) => {}
            Some(stat) if stat.kind == super::fs::NodeKind::Directory => {
                let sub = fs.open_subdir(dir, &name).at(&below, "opening an undo journal")?;
                empty_dir(fs, &sub, &below, &[])?;
                fs.remove_dir(dir, &name).at(&below, "removing an undo journal")?;
            }
            Some(_) => fs.remove(dir, &name).at(&below, "removing an undo journal")?,
            None => {}
        }
    }
    Ok(())
}

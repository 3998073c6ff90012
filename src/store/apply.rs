//! A run: the changes of one log dir, carried out so that the machine may stop at any moment.

use std::path::{Path, PathBuf};

use super::atomic::Watch;
use super::error::{At, StoreError, StoreErrorKind};
use super::fs::{EntryName, Fs};
use super::journal::{Journal, Run};
use super::lock::BrokerLock;
use super::place::{RunId, make_run_dir, open_undo_dir, set_pointer, whole};
use super::record::{Action, Record};
use super::step::{Changes, Place, Step};
use super::survey::Survey;
use super::undo;
use super::worker::Worker;

/// Room that journals and directories take besides what is counted.
const SPARE_BYTES: u64 = 1 << 20;

/// New files that are complete but not in their places yet.
#[derive(Debug)]
pub struct Prepared {
    /// The log dir that the changes are about.
    pub log_dir: PathBuf,
    /// Which directory of it they will change.
    pub place: Place,
    /// The directory in which the new files wait: that one, or its double in an output.
    pub directory: PathBuf,
    /// Each new file's name to be, and where it waits.
    pub files: Vec<(EntryName, PathBuf)>,
    /// The bytes put aside, each by its name, and where they are.
    pub aside: Vec<(EntryName, PathBuf)>,
}

/// How a run is carried out.
pub struct RunOptions<'a> {
    /// The command, for the journal.
    pub command: &'a str,
    /// The digest of the plan, 32 hexadecimal digits.
    pub digest: &'a str,
    /// Seconds since 1970, for the run's id.
    pub started_s: i64,
    /// Where journals are kept; `None`: `<log dir>.segtool-undo`.
    pub undo_dir: Option<&'a Path>,
    /// Who is told, and may stop it.
    pub watch: Watch<'a>,
    /// Told the id and the journal's directory before anything changes.
    pub announce: &'a dyn Fn(&RunId, &Path),
    /// Looks at the new files of each transaction before they get their places; an objection puts everything back.
    pub check: &'a dyn Fn(&Prepared) -> Result<(), String>,
}

impl std::fmt::Debug for RunOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunOptions")
            .field("command", &self.command)
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

/// A run that is done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Applied {
    /// Its id, for `undo`.
    pub id: RunId,
    /// Its journal's directory.
    pub journal: PathBuf,
    /// Files that were made or replaced.
    pub files_written: u64,
    /// Files that are gone.
    pub files_removed: u64,
    /// Bytes in the files that were made or replaced.
    pub bytes_written: u64,
}

/// Carries out changes under a lock that is held.
///
/// # Errors
///
/// Before anything is touched: refusals of what was found. Later: everything is put back and the error says so, or the journal
/// is left for `undo --unfinished` where that fails too.
pub fn apply<F: Fs>(
    fs: &F,
    lock: &BrokerLock<F>,
    changes: &Changes,
    options: &RunOptions<'_>,
) -> Result<Applied, StoreError> {
    let mut needs = Needs::default();
    let mut header = Run::new("", options.command, options.digest, &whole(lock.log_dir()));
    for transaction in &changes.transactions {
        let survey = Survey::of(fs, lock.dir(), lock.log_dir(), transaction)?;
        transaction.steps.iter().for_each(|step| needs.add(step, &survey));
        header.add_place(&transaction.place, survey.stat.mtime_ns);
    }
    let undo_dir = open_undo_dir(fs, lock, options.undo_dir)?;
    if let Err(error) = needs.check(fs, lock, &undo_dir) {
        undo::drop_if_empty(fs, undo_dir.0, &undo_dir.1)?;
        return Err(error);
    }
    let (id, dir, path) = make_run_dir(fs, &undo_dir, options.started_s, options.digest)?;
    let mut done = Applied { id: id.clone(), journal: path, files_written: 0, files_removed: 0, bytes_written: 0 };
    id.as_str().clone_into(&mut header.id);
    match carry_out(fs, lock, changes, options, (dir, header), &mut done) {
        Ok(()) => {
            lock.leave_time(None);
            Ok(done)
        }
        Err(cause) => Err(undo::put_back_after(fs, lock, &undo_dir.1, &id, cause)),
    }
}

fn carry_out<F: Fs>(
    fs: &F,
    lock: &BrokerLock<F>,
    changes: &Changes,
    options: &RunOptions<'_>,
    (dir, mut header): (F::Dir, Run),
    done: &mut Applied,
) -> Result<(), StoreError> {
    header.dir_mtime_ns = Some(lock.stat().mtime_ns);
    header.made_lock = lock.is_made_here();
    let journal = Journal::begin(fs, dir, &done.journal, header)?;
    (options.announce)(&done.id, &done.journal);
    set_pointer(fs, lock, &done.id, &done.journal)?;
    let mut worker = Worker::new(fs, lock, done.id.clone(), journal, options.watch);
    for transaction in &changes.transactions {
        let record = worker.transact(transaction, options.check)?;
        done.count(&record);
    }
    worker.complete()
}

/// Bytes that a run may write, at most.
#[derive(Clone, Copy, Default)]
struct Needs {
    /// In the log dir.
    new: u64,
    /// In the journal.
    kept: u64,
    /// In the journal besides, where it cannot keep an original by a second name for it.
    kept_if_apart: u64,
}

impl Needs {
    fn add<F: Fs>(&mut self, step: &Step, survey: &Survey<F>) {
        let (written, original) = match step {
            Step::Create { content, .. } => (content.most_bytes(), None),
            Step::Replace { name, content, .. } => (content.most_bytes(), Some(name)),
            Step::Truncate { name, size_bytes } => (*size_bytes, Some(name)),
            Step::Remove { name } => (0, Some(name)),
            Step::Rename { from, .. } => (0, Some(from)),
            Step::Quarantine { content, .. } => {
                self.kept = self.kept.saturating_add(content.most_bytes());
                (0, None)
            }
        };
        self.new = self.new.saturating_add(written);
        if let Some((name, stat)) = original.and_then(|name| survey.found.get_key_value(name)) {
            let linked = survey.may_be_linked(name) && !matches!(step, Step::Rename { .. });
            let kept = if linked { &mut self.kept_if_apart } else { &mut self.kept };
            *kept = kept.saturating_add(stat.size_bytes);
        }
    }

    fn check<F: Fs>(self, fs: &F, lock: &BrokerLock<F>, undo: &(F::Dir, PathBuf)) -> Result<(), StoreError> {
        let undo_device = fs.stat_dir(&undo.0).at(&undo.1, "looking at the directory of undo journals")?.device;
        let enough = |dir: &F::Dir, path: &Path, needed: u64| {
            let needed = needed.saturating_add(SPARE_BYTES);
            let available = fs.free_bytes(dir).at(path, "asking for free space")?;
            if needed > available {
                return Err(StoreError::new(path, StoreErrorKind::NoSpace { needed, available }));
            }
            Ok(())
        };
        if undo_device == lock.stat().device {
            return enough(lock.dir(), lock.log_dir(), self.new.saturating_add(self.kept));
        }
        enough(lock.dir(), lock.log_dir(), self.new)?;
        enough(&undo.0, &undo.1, self.kept.saturating_add(self.kept_if_apart))
    }
}

impl Applied {
    fn count(&mut self, record: &Record) {
        for entry in record.entries.iter().filter(|entry| entry.action != Action::Guard) {
            match (&entry.waiting, entry.after) {
                (Some(_), Some(after)) => {
                    self.files_written = self.files_written.saturating_add(1);
                    self.bytes_written = self.bytes_written.saturating_add(after.size_bytes);
                }
                _ if record.is_consumed(&entry.name) => {}
                _ => self.files_removed = self.files_removed.saturating_add(1),
            }
        }
    }
}

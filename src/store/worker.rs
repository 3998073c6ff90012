//! Carries out the transactions of one run: makes the new files, keeps the originals, says so in the journal, changes the names.

use std::path::{Path, PathBuf};

use super::apply::Prepared;
use super::atomic::{NewFile, Watch, Workshop};
use super::error::{At, StoreError, StoreErrorKind};
use super::fs::{Access, EntryName, FileStat, Fs, Xattrs};
use super::journal::{Direction, Journal, Outcome, plain};
use super::lock::BrokerLock;
use super::place::{COMPLETE, RunId, clear_pointer};
use super::record::{Action, Before, Entry, Identity, Order, Record};
use super::step::{Content, Looks, Mtime, Place, Step, Transaction};
use super::survey::Survey;
use super::swap::{Ground, arrange};

/// The directory of a journal for bytes that no file keeps.
const QUARANTINE: &str = "quarantine";

/// One run at work.
pub(crate) struct Worker<'a, F: Fs> {
    pub(crate) fs: &'a F,
    pub(crate) lock: &'a BrokerLock<F>,
    pub(crate) id: RunId,
    pub(crate) journal: Journal<F>,
    pub(crate) watch: Watch<'a>,
    next_file: u64,
}

/// A directory below the journal.
pub(crate) struct Kept<F: Fs> {
    pub(crate) dir: F::Dir,
    pub(crate) path: PathBuf,
}

/// How an original is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeping {
    /// By a second name where nobody will write to the file any more.
    LinkIfSafe,
    /// As a file of its own.
    Copy,
}

fn file_access(stat: &FileStat) -> Access {
    Access { uid: stat.uid, gid: stat.gid, mode: stat.mode }
}

fn entry(action: Action, name: &EntryName, before: Option<Before>, new: Option<(EntryName, Identity)>) -> Entry {
    let (waiting, after) = new.unzip();
    Entry { action, name: name.clone(), order: Order::Plain, before, waiting, after }
}

impl<'a, F: Fs> Worker<'a, F> {
    pub(crate) fn new(fs: &'a F, lock: &'a BrokerLock<F>, id: RunId, journal: Journal<F>, watch: Watch<'a>) -> Self {
        Self { fs, lock, id, journal, watch, next_file: 0 }
    }

    pub(crate) fn waiting_name(&mut self) -> Result<EntryName, StoreError> {
        self.next_file = self.next_file.saturating_add(1);
        self.id.waiting_name(self.next_file)
    }

    /// Carries out one transaction.
    pub(crate) fn transact(
        &mut self,
        transaction: &Transaction,
        check: &dyn Fn(&Prepared) -> Result<(), String>,
    ) -> Result<Record, StoreError> {
        self.watch.check(self.lock.log_dir())?;
        let survey = Survey::of(self.fs, self.lock.dir(), self.lock.log_dir(), transaction)?;
        let record = self.prepare(&survey, transaction)?;
        check(&self.prepared(&survey, transaction, &record))
            .map_err(|because| StoreError::new(&survey.path, StoreErrorKind::Rejected { because }))?;
        self.watch.check(&survey.path)?;
        self.carry_out(Direction::Forward, &survey.dir, &survey.path, &record)?;
        Ok(record)
    }

    fn prepared(&self, survey: &Survey<F>, transaction: &Transaction, record: &Record) -> Prepared {
        let aside = self.kept_path(QUARANTINE, &record.place);
        let put_aside = |step: &Step| match step {
            Step::Quarantine { name, .. } => Some((name.clone(), aside.join(name))),
            _ => None,
        };
        let waiting = |entry: &Entry| Some((entry.name.clone(), survey.path.join(entry.waiting.as_ref()?)));
        Prepared {
            log_dir: self.lock.log_dir().to_path_buf(),
            place: record.place.clone(),
            directory: survey.path.clone(),
            files: record.entries.iter().filter(|entry| entry.action != Action::Guard).filter_map(waiting).collect(),
            aside: transaction.steps.iter().filter_map(put_aside).collect(),
        }
    }

    /// Says what is about to happen, does it, and says that it has happened.
    pub(crate) fn carry_out(
        &mut self,
        direction: Direction,
        dir: &F::Dir,
        path: &Path,
        record: &Record,
    ) -> Result<(), StoreError> {
        let ground = Ground { fs: self.fs, dir, path };
        // All new files have their waiting names for good before the first of them moves on.
        ground.sync()?;
        self.journal.prepared(self.fs, direction, record)?;
        // The last moment at which somebody else's lock can still stop us.
        self.lock.check(self.fs)?;
        ground.carry_out(record)?;
        self.journal.close(self.fs, record, Outcome::Done)
    }

    /// Says that the run is done.
    pub(crate) fn complete(&self) -> Result<(), StoreError> {
        self.journal.mark(self.fs, COMPLETE)?;
        clear_pointer(self.fs, self.lock, &self.id)
    }

    /// Makes the new files and keeps the originals; no name that anybody reads changes.
    fn prepare(&mut self, survey: &Survey<F>, transaction: &Transaction) -> Result<Record, StoreError> {
        let kept = self.keep("files", &transaction.place)?;
        let mut entries = Vec::new();
        for step in &transaction.steps {
            self.watch.check(&survey.path)?;
            self.prepare_step(survey, &kept, &transaction.place, step, &mut entries)?;
        }
        self.fs.sync_dir(&kept.dir).at(&kept.path, "syncing the undo journal")?;
        self.add_guards(&survey.dir, &survey.path, &survey.stat, &survey.names, &mut entries)?;
        Ok(Record { place: transaction.place.clone(), entries })
    }

    /// Decides the order of the entries and makes the guards that it needs.
    pub(crate) fn add_guards(
        &mut self,
        dir: &F::Dir,
        path: &Path,
        dir_stat: &FileStat,
        names: &[EntryName],
        entries: &mut Vec<Entry>,
    ) -> Result<(), StoreError> {
        for (group, name) in arrange(entries, names) {
            let waiting = self.waiting_name()?;
            let access = Access { mode: dir_stat.mode & 0o666, ..file_access(dir_stat) };
            // Empty, and with owner and mode from the first moment: there is nothing to sync.
            let file = self.fs.create(dir, &waiting, access).at(&path.join(&waiting), "making a file")?;
            let after = Identity::from(&self.fs.stat_file(&file).at(&path.join(&waiting), "looking at a file")?);
            let guard = entry(Action::Guard, &name, None, Some((waiting, after)));
            entries.push(Entry { order: Order::Group(group), ..guard });
        }
        Ok(())
    }

    pub(crate) fn workshop<'b>(
        &'b self,
        dir: &'b F::Dir,
        path: &'b Path,
        source: &'b F::Dir,
        source_path: &'b Path,
    ) -> Workshop<'b, F> {
        Workshop { fs: self.fs, dir, path, source, source_path, watch: self.watch }
    }

    fn prepare_step(
        &mut self,
        survey: &Survey<F>,
        kept: &Kept<F>,
        place: &Place,
        step: &Step,
        entries: &mut Vec<Entry>,
    ) -> Result<(), StoreError> {
        let keeping = Keeping::LinkIfSafe;
        match step {
            Step::Create { name, content, looks } => {
                let new = self.make(survey, None, content, looks)?;
                entries.push(entry(Action::Create, name, None, Some(new)));
            }
            Step::Replace { name, content, looks } => {
                let before = self.save(survey, kept, name, keeping)?;
                let new = self.make(survey, Some(name), content, looks)?;
                entries.push(entry(Action::Replace, name, Some(before), Some(new)));
            }
            Step::Truncate { name, size_bytes } => {
                let before = self.save(survey, kept, name, keeping)?;
                let content = Content::whole(name.clone(), *size_bytes);
                let new = self.make(survey, Some(name), &content, &Looks::default())?;
                entries.push(entry(Action::Truncate, name, Some(before), Some(new)));
            }
            Step::Remove { name } => {
                let before = self.save(survey, kept, name, keeping)?;
                entries.push(entry(Action::Remove, name, Some(before), None));
            }
            Step::Rename { from, to } => {
                let replaced =
                    survey.found.contains_key(to).then(|| self.save(survey, kept, to, keeping)).transpose()?;
                // The file lives on under its new name, so the original has to be another.
                let before = self.save(survey, kept, from, Keeping::Copy)?;
                let new = if *from == to.with_suffix(".swap") {
                    // A swap that was left half-way is finished as a broker would.
                    (from.clone(), before.identity)
                } else {
                    self.rename(survey, from, before.identity)?
                };
                entries.push(entry(Action::Rename, to, replaced, Some(new)));
                entries.push(entry(Action::Remove, from, Some(before), None));
            }
            Step::Quarantine { name, content } => {
                let aside = self.keep(QUARANTINE, place)?;
                let shop = self.workshop(&aside.dir, &aside.path, &survey.dir, &survey.path);
                let new = NewFile { name, access: self.journal.access, xattrs: &Xattrs::new(), mtime_ns: None };
                shop.write(&new, content)?;
                self.fs.sync_dir(&aside.dir).at(&aside.path, "syncing the undo journal")?;
            }
        }
        Ok(())
    }

    /// A second name for a file, or a copy where the file system has no second names.
    fn rename(
        &mut self,
        survey: &Survey<F>,
        from: &EntryName,
        identity: Identity,
    ) -> Result<(EntryName, Identity), StoreError> {
        let waiting = self.waiting_name()?;
        if self.fs.link(&survey.dir, from, &survey.dir, &waiting).is_ok() {
            return Ok((waiting, identity));
        }
        self.make(survey, Some(from), &Content::whole(from.clone(), identity.size_bytes), &Looks::default())
    }

    fn make(
        &mut self,
        survey: &Survey<F>,
        replaced: Option<&EntryName>,
        content: &Content,
        looks: &Looks,
    ) -> Result<(EntryName, Identity), StoreError> {
        let model =
            looks.like.as_ref().or(replaced).map(|name| survey.need(name).map(|stat| (name, stat))).transpose()?;
        let (access, xattrs) = match model {
            Some((name, stat)) => (file_access(stat), self.xattrs(survey, name)?),
            None => (Access { mode: survey.stat.mode & 0o666, ..file_access(&survey.stat) }, Xattrs::new()),
        };
        let mtime_ns = match &looks.mtime {
            Mtime::Kept => model.map(|(_, stat)| stat.mtime_ns),
            Mtime::Of(name) => Some(survey.need(name)?.mtime_ns),
            Mtime::At(mtime_ns) => Some(*mtime_ns),
        };
        let waiting = self.waiting_name()?;
        let new = NewFile { name: &waiting, access, xattrs: &xattrs, mtime_ns };
        let shop = self.workshop(&survey.dir, &survey.path, &survey.dir, &survey.path);
        let identity = shop.write(&new, content)?;
        Ok((waiting, identity))
    }

    fn xattrs(&self, survey: &Survey<F>, name: &EntryName) -> Result<Xattrs, StoreError> {
        let path = survey.path.join(name);
        let file = self.fs.open_file(&survey.dir, name).at(&path, "opening a file")?;
        self.fs.xattrs(&file).at(&path, "reading attributes")
    }

    /// Keeps an original: sharing its blocks, else by a second name for it, else as a copy. Durable but for its name.
    fn save(
        &self,
        survey: &Survey<F>,
        kept: &Kept<F>,
        name: &EntryName,
        keeping: Keeping,
    ) -> Result<Before, StoreError> {
        let path = survey.path.join(name);
        let stat = survey.need(name)?;
        let file = self.fs.open_file(&survey.dir, name).at(&path, "opening a file")?;
        let opened = self.fs.stat_file(&file).at(&path, "looking at a file")?;
        if Identity::from(&opened) != Identity::from(stat) {
            return Err(StoreError::new(path, StoreErrorKind::Changed));
        }
        let xattrs = self.fs.xattrs(&file).at(&path, "reading attributes")?;
        let saved = self.free_name(kept, name)?;
        let may_be_linked = keeping == Keeping::LinkIfSafe && survey.may_be_linked(name);
        let linked = may_be_linked && self.fs.link(&survey.dir, name, &kept.dir, &saved).is_ok();
        if linked {
            // Nobody has promised yet that its content is on the disk.
            self.fs.sync_file(&file).at(&path, "syncing a file")?;
        } else {
            let mtime_ns = Some(stat.mtime_ns);
            let new = NewFile { name: &saved, access: file_access(stat), xattrs: &xattrs, mtime_ns };
            self.workshop(&kept.dir, &kept.path, &survey.dir, &survey.path).copy(&new, &file)?;
        }
        let identity = Identity::from(stat);
        Ok(Before { identity, mode: stat.mode, uid: stat.uid, gid: stat.gid, xattrs, saved: Some(saved) })
    }

    /// The name under which an original is kept: its own, or with a number where an earlier transaction has kept that.
    fn free_name(&self, kept: &Kept<F>, name: &EntryName) -> Result<EntryName, StoreError> {
        let mut saved = name.clone();
        for number in 2..1_000 {
            if self.fs.stat(&kept.dir, &saved).at(&kept.path, "looking at the undo journal")?.is_none() {
                break;
            }
            saved = name.with_suffix(&format!(".{number}"));
        }
        Ok(saved)
    }

    /// The path of a directory of the journal for a place.
    fn kept_path(&self, kind: &str, place: &Place) -> PathBuf {
        match place {
            Place::LogDir => self.journal.path.join(kind),
            Place::Partition(name) => self.journal.path.join(kind).join(name),
        }
    }

    /// Opens a directory of the journal for a place, making it durably where it is missing.
    pub(crate) fn keep(&self, kind: &str, place: &Place) -> Result<Kept<F>, StoreError> {
        let name = plain(kind)?;
        let path = self.journal.path.join(&name);
        let dir = self.make_kept(&self.journal.dir, &name, &path)?;
        match place {
            Place::LogDir => Ok(Kept { dir, path }),
            Place::Partition(name) => {
                let path = path.join(name);
                Ok(Kept { dir: self.make_kept(&dir, name, &path)?, path })
            }
        }
    }

    fn make_kept(&self, dir: &F::Dir, name: &EntryName, path: &Path) -> Result<F::Dir, StoreError> {
        if self.fs.stat(dir, name).at(path, "looking at the undo journal")?.is_none() {
            self.fs.make_dir(dir, name, 0o700).at(path, "making a directory of the undo journal")?;
            self.fs.sync_dir(dir).at(path, "syncing the undo journal")?;
        }
        self.fs.open_subdir(dir, name).at(path, "opening the undo journal")
    }
}

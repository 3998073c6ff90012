//! Looking at everything a transaction touches before anything is touched, and refusing what was planted or does not fit.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::error::{At, StoreError, StoreErrorKind};
use super::fs::{EntryName, FileStat, Fs, NodeKind};
use super::step::{Content, Mtime, Part, Place, Step, Transaction};
use super::swap::{Role, active_base};
use crate::logdir::names::FileName;

/// A directory as it is before a transaction, with all its files that the transaction touches or copies from.
pub(crate) struct Survey<F: Fs> {
    pub(crate) dir: F::Dir,
    pub(crate) path: PathBuf,
    pub(crate) stat: FileStat,
    /// Every name.
    pub(crate) names: Vec<EntryName>,
    /// What the transaction needs of them.
    pub(crate) found: BTreeMap<EntryName, FileStat>,
    active: Option<i64>,
}

fn contradiction(path: &Path, because: &'static str) -> StoreError {
    StoreError::new(path, StoreErrorKind::Contradiction { because })
}

/// Opens the directory of a place and makes sure that it is the log dir's own.
pub(crate) fn open_place<F: Fs>(
    fs: &F,
    log_dir: &F::Dir,
    log_dir_path: &Path,
    place: &Place,
) -> Result<(F::Dir, FileStat), StoreError> {
    let path = place.path_in(log_dir_path);
    let name = match place {
        Place::LogDir => {
            let dir = fs.open_dir(log_dir_path).at(&path, "opening the log dir")?;
            let stat = fs.stat_dir(&dir).at(&path, "looking at the log dir")?;
            return Ok((dir, stat));
        }
        Place::Partition(name) => name,
    };
    match fs.stat(log_dir, name).at(&path, "looking at a partition directory")? {
        Some(stat) if stat.kind != NodeKind::Directory => {
            let kind = StoreErrorKind::WrongKind { expected: "a directory", found: stat.kind.name() };
            return Err(StoreError::new(path, kind));
        }
        Some(stat) if stat.device != fs.stat_dir(log_dir).at(log_dir_path, "looking at the log dir")?.device => {
            return Err(StoreError::new(path, StoreErrorKind::OtherDevice));
        }
        _ => {}
    }
    let dir = fs.open_subdir(log_dir, name).at(&path, "opening a partition directory")?;
    let stat = fs.stat_dir(&dir).at(&path, "looking at a partition directory")?;
    if stat.frozen {
        return Err(StoreError::new(path, StoreErrorKind::Frozen));
    }
    Ok((dir, stat))
}

/// Refuses anything but a plain file with one name, of the directory's owner, that its owner may write to.
pub(crate) fn check_file(path: &Path, stat: &FileStat, dir: &FileStat) -> Result<(), StoreError> {
    let kind = match stat {
        stat if stat.kind != NodeKind::Regular => {
            StoreErrorKind::WrongKind { expected: "a regular file", found: stat.kind.name() }
        }
        stat if stat.device != dir.device => StoreErrorKind::OtherDevice,
        stat if stat.links > 1 => StoreErrorKind::HardLinked { links: stat.links },
        stat if stat.uid != dir.uid => StoreErrorKind::ForeignOwner { uid: stat.uid, expected: dir.uid },
        stat if stat.mode & 0o200 == 0 => StoreErrorKind::ReadOnly { mode: stat.mode },
        stat if stat.frozen => StoreErrorKind::Frozen,
        _ => return Ok(()),
    };
    Err(StoreError::new(path, kind))
}

/// The names a step changes.
fn changes_of(step: &Step) -> Vec<&EntryName> {
    match step {
        Step::Create { name, .. }
        | Step::Replace { name, .. }
        | Step::Remove { name }
        | Step::Truncate { name, .. } => {
            vec![name]
        }
        Step::Rename { from, to } => vec![from, to],
        Step::Quarantine { .. } => vec![],
    }
}

/// The names a step only copies from.
fn sources_of(step: &Step) -> Vec<&EntryName> {
    let (content, looks) = match step {
        Step::Create { content, looks, .. } | Step::Replace { content, looks, .. } => (content, Some(looks)),
        Step::Quarantine { content, .. } => (content, None),
        Step::Remove { .. } | Step::Truncate { .. } | Step::Rename { .. } => return vec![],
    };
    let parts = if let Content::Parts(parts) = content { parts.as_slice() } else { &[] };
    let mtime = looks.and_then(|looks| if let Mtime::Of(name) = &looks.mtime { Some(name) } else { None });
    let ranges = parts.iter().filter_map(|part| if let Part::Range { name, .. } = part { Some(name) } else { None });
    ranges.chain(looks.and_then(|looks| looks.like.as_ref())).chain(mtime).collect()
}

impl<F: Fs> Survey<F> {
    /// Looks at a directory and refuses what the transaction cannot or should not change.
    pub(crate) fn of(
        fs: &F,
        log_dir: &F::Dir,
        log_dir_path: &Path,
        transaction: &Transaction,
    ) -> Result<Self, StoreError> {
        let path = transaction.place.path_in(log_dir_path);
        let (dir, stat) = open_place(fs, log_dir, log_dir_path, &transaction.place)?;
        let names = fs.list(&dir).at(&path, "listing a directory")?;
        let active = active_base(&names);
        let mut survey = Self { dir, path, stat, names, found: BTreeMap::new(), active };
        let mut changed = BTreeSet::new();
        for step in &transaction.steps {
            let (changes, sources) = (changes_of(step), sources_of(step));
            for name in changes.iter().chain(&sources) {
                survey.look(fs, name)?;
            }
            for name in sources {
                survey.need(name)?;
            }
            survey.check_step(step)?;
            for name in changes {
                if !changed.insert(name) {
                    return Err(contradiction(&survey.path.join(name), "two steps change one file"));
                }
            }
        }
        if transaction.place != Place::LogDir {
            survey.check_leftovers(&changed)?;
            survey.check_kinds(fs)?;
        }
        Ok(survey)
    }

    fn look(&mut self, fs: &F, name: &EntryName) -> Result<(), StoreError> {
        if self.found.contains_key(name) {
            return Ok(());
        }
        let path = self.path.join(name);
        if let Some(stat) = fs.stat(&self.dir, name).at(&path, "looking at a file")? {
            check_file(&path, &stat, &self.stat)?;
            self.found.insert(name.clone(), stat);
        }
        Ok(())
    }

    /// What a name that must exist leads to.
    pub(crate) fn need(&self, name: &EntryName) -> Result<&FileStat, StoreError> {
        self.found.get(name).ok_or_else(|| StoreError::new(self.path.join(name), StoreErrorKind::Changed))
    }

    fn check_step(&self, step: &Step) -> Result<(), StoreError> {
        match step {
            Step::Create { name, .. } if self.found.contains_key(name) => {
                Err(StoreError::new(self.path.join(name), StoreErrorKind::Changed))
            }
            Step::Replace { name, .. } | Step::Remove { name } => self.need(name).map(|_| ()),
            Step::Truncate { name, size_bytes } if self.need(name)?.size_bytes < *size_bytes => {
                Err(StoreError::new(self.path.join(name), StoreErrorKind::Changed))
            }
            Step::Create { .. } | Step::Quarantine { .. } | Step::Truncate { .. } => Ok(()),
            Step::Rename { from, to } if from == to => {
                Err(contradiction(&self.path.join(from), "a file is renamed to its own name"))
            }
            Step::Rename { from, .. } => self.need(from).map(|_| ()),
        }
    }

    /// What an interrupted swap left would take part in ours, so it must be part of the plan.
    fn check_leftovers(&self, changed: &BTreeSet<&EntryName>) -> Result<(), StoreError> {
        let is_left = |name: &&EntryName| matches!(Role::of(name), Role::Swap(_) | Role::Cleaned);
        match self.names.iter().filter(is_left).find(|name| !changed.contains(name)) {
            Some(name) => Err(StoreError::new(self.path.join(name), StoreErrorKind::Leftover)),
            None => Ok(()),
        }
    }

    /// Where something else stands under the name of a file, the plan knows less of the partition than a broker might: a pipe or a
    /// link that leads nowhere reads like a segment that is not there. Directories with names of their own are nobody's.
    fn check_kinds(&self, fs: &F) -> Result<(), StoreError> {
        for name in self.names.iter().filter(|name| !self.found.contains_key(*name)) {
            let path = self.path.join(name);
            let Some(stat) = fs.stat(&self.dir, name).at(&path, "looking at a file")? else { continue };
            let is_nobodys =
                || stat.kind == NodeKind::Directory && FileName::parse(name.as_os_str()) == FileName::Unknown;
            if stat.kind != NodeKind::Regular && !is_nobodys() {
                let kind = StoreErrorKind::WrongKind { expected: "a regular file", found: stat.kind.name() };
                return Err(StoreError::new(path, kind));
            }
        }
        Ok(())
    }

    /// Whether the original may be kept by a second name for it: not where a broker that starts meanwhile would append to it.
    pub(crate) fn may_be_linked(&self, name: &EntryName) -> bool {
        match Role::of(name) {
            Role::Log(base) | Role::OffsetIndex(base) | Role::OtherIndex(base) => Some(base) != self.active,
            _ => false,
        }
    }
}

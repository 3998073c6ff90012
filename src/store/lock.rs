//! The broker's lock on a log dir, taken as a JVM takes it, so that neither works while the other does.
//!
//! A broker opens `.lock`, creating it where it is missing, and asks for a POSIX write lock on all of it
//! (`org.apache.kafka.server.util.FileLock`); when it stops in order it deletes the file. So a lock counts only while the file
//! that it is on is the one under the name, and a missing file says nothing.

use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};

use super::error::{At, StoreError, StoreErrorKind};
use super::fs::{Access, EntryName, FileStat, Fs, FsKind, LockAnswer, NodeKind};
use super::journal::plain;

/// What to do where a lock cannot be trusted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum LockTrust {
    /// Refuse.
    #[default]
    Required,
    /// Go on: the user has said that no broker runs (`--i-have-stopped-the-broker`).
    BrokerIsStopped,
}

/// Times that a lock is asked for again because the file was exchanged meanwhile.
const ATTEMPTS: u32 = 5;

/// A log dir that is ours until [`BrokerLock::release`].
#[derive(Debug)]
pub struct BrokerLock<F: Fs> {
    log_dir: PathBuf,
    dir: F::Dir,
    stat: FileStat,
    name: EntryName,
    /// The time of last change that the log dir gets when the lock is given back; `None`: the one it has then.
    time_ns: Cell<Option<i128>>,
    /// `None` where locks do not work and the user has taken that upon himself.
    held: Option<Held<F>>,
}

#[derive(Debug)]
struct Held<F: Fs> {
    #[expect(dead_code, reason = "the lock lives as long as the file is open")]
    file: F::File,
    inode: u64,
    /// Whether `.lock` goes when the lock does.
    made_here: Cell<bool>,
}

impl<F: Fs> BrokerLock<F> {
    /// Takes the lock of `log_dir` without waiting.
    ///
    /// # Errors
    ///
    /// Refused where a process holds it or has a file of the log dir open for writing, where `.lock` is no plain file, and on
    /// file systems whose locks others may not see.
    pub fn take(fs: &F, log_dir: &Path, trust: LockTrust) -> Result<Self, StoreError> {
        let dir = open_log_dir(fs, log_dir)?;
        let stat = fs.stat_dir(&dir).at(log_dir, "looking at the log dir")?;
        if stat.frozen {
            return Err(StoreError::new(log_dir, StoreErrorKind::Frozen));
        }
        let kind = fs.kind(&dir).at(log_dir, "asking for the file system")?;
        if let (FsKind::Unknown(magic), LockTrust::Required) = (kind, trust) {
            return Err(StoreError::new(log_dir, StoreErrorKind::UntrustedLock { magic }));
        }
        let time_ns = Cell::new(Some(stat.mtime_ns));
        let mut lock = Self { log_dir: log_dir.to_path_buf(), dir, stat, name: plain(".lock")?, time_ns, held: None };
        lock.held = lock.ask(fs, trust)?;
        if let Some((holder, path)) = fs.writer_below(&lock.dir) {
            lock.release(fs)?;
            return Err(StoreError::new(path, StoreErrorKind::OpenForWriting { pid: holder.pid }));
        }
        Ok(lock)
    }

    fn path(&self) -> PathBuf {
        self.log_dir.join(&self.name)
    }

    fn ask(&self, fs: &F, trust: LockTrust) -> Result<Option<Held<F>>, StoreError> {
        for _ in 0..ATTEMPTS {
            let Some((file, made_here)) = self.open_or_make(fs)? else { continue };
            let inode = fs.stat_file(&file).at(&self.path(), "looking at the lock file")?.inode;
            match fs.try_lock(&file) {
                Ok(LockAnswer::Granted) => {}
                Ok(LockAnswer::Held(holder)) => {
                    return Err(StoreError::new(&self.log_dir, StoreErrorKind::InUse { pid: holder.pid }));
                }
                Err(_) if trust == LockTrust::BrokerIsStopped => return Ok(None),
                Err(error) => return Err(StoreError::io(&self.path(), "locking", error)),
            }
            let held = Held { file, inode, made_here: Cell::new(made_here) };
            if self.is_under_its_name(fs, &held)? {
                return Ok(Some(held));
            }
        }
        Err(StoreError::new(self.path(), StoreErrorKind::InUse { pid: None }))
    }

    /// `None` where the file came or went between two calls.
    fn open_or_make(&self, fs: &F) -> Result<Option<(F::File, bool)>, StoreError> {
        let path = self.path();
        let Some(stat) = fs.stat(&self.dir, &self.name).at(&path, "looking at the lock file")? else {
            // It must appear with the right owner: a broker of another user could never open a file of ours.
            let access = Access { uid: self.stat.uid, gid: self.stat.gid, mode: self.stat.mode & 0o666 };
            return match fs.create(&self.dir, &self.name, access) {
                Ok(file) => Ok(Some((file, true))),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
                Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                    Err(StoreError::new(&self.log_dir, StoreErrorKind::ReadOnlyFileSystem))
                }
                Err(error) => Err(StoreError::io(&path, "making the lock file", error)),
            };
        };
        if stat.kind != NodeKind::Regular {
            let kind = StoreErrorKind::WrongKind { expected: "a regular file", found: stat.kind.name() };
            return Err(StoreError::new(path, kind));
        }
        match fs.open_lock(&self.dir, &self.name) {
            Ok(file) => Ok(Some((file, false))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                Err(StoreError::new(&self.log_dir, StoreErrorKind::ReadOnlyFileSystem))
            }
            Err(error) => Err(StoreError::io(&path, "opening the lock file", error)),
        }
    }

    fn is_under_its_name(&self, fs: &F, held: &Held<F>) -> Result<bool, StoreError> {
        let stat = fs.stat(&self.dir, &self.name).at(&self.path(), "looking at the lock file")?;
        Ok(stat.is_some_and(|stat| stat.inode == held.inode && stat.device == self.stat.device))
    }

    /// Makes sure that the lock is still on the file that a broker would open.
    pub fn check(&self, fs: &F) -> Result<(), StoreError> {
        match &self.held {
            Some(held) if !self.is_under_its_name(fs, held)? => {
                Err(StoreError::new(self.path(), StoreErrorKind::InUse { pid: None }))
            }
            _ => Ok(()),
        }
    }

    /// Says which time of last change the log dir is to have in the end, now that more than the lock file has come and gone.
    pub(crate) fn leave_time(&self, mtime_ns: Option<i128>) {
        self.time_ns.set(mtime_ns);
    }

    /// Whether `.lock` was not there before.
    pub(crate) fn is_made_here(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.made_here.get())
    }

    /// Says that `.lock` was made by a run that could not remove it any more.
    pub(crate) fn take_over_file(&self) {
        if let Some(held) = &self.held {
            held.made_here.set(true);
        }
    }

    /// Gives the lock back, and removes `.lock` where it was made here.
    pub fn release(self, fs: &F) -> Result<(), StoreError> {
        if let Some(held) = self.held.as_ref().filter(|held| held.made_here.get())
            && self.is_under_its_name(fs, held)?
        {
            // While it is still locked: a broker that has opened it meanwhile is refused and starts anew.
            fs.remove(&self.dir, &self.name).at(&self.path(), "removing the lock file")?;
        }
        let stat = fs.stat_dir(&self.dir).at(&self.log_dir, "looking at the log dir")?;
        match self.time_ns.get() {
            Some(mtime_ns) if mtime_ns != stat.mtime_ns => {
                fs.set_dir_mtime(&self.dir, mtime_ns).at(&self.log_dir, "setting the time of the log dir")
            }
            _ => Ok(()),
        }
    }

    /// The log dir's path.
    pub fn log_dir(&self) -> &Path {
        &self.log_dir
    }

    pub(crate) fn dir(&self) -> &F::Dir {
        &self.dir
    }

    /// What the log dir was when it was locked.
    pub(crate) fn stat(&self) -> &FileStat {
        &self.stat
    }
}

/// Opens a log dir; a link in its place is refused by name.
pub(crate) fn open_log_dir<F: Fs>(fs: &F, log_dir: &Path) -> Result<F::Dir, StoreError> {
    let refused = |error: io::Error| {
        let is_link = std::fs::symlink_metadata(log_dir).is_ok_and(|meta| meta.file_type().is_symlink());
        if is_link {
            let kind = StoreErrorKind::WrongKind { expected: "a directory", found: NodeKind::Symlink.name() };
            StoreError::new(log_dir, kind)
        } else {
            StoreError::io(log_dir, "opening the log dir", error)
        }
    };
    fs.open_dir(log_dir).map_err(refused)
}

/// Does something under the lock of a log dir and gives the lock back, whatever comes of it.
pub fn with_lock<F: Fs, T, E: From<StoreError>>(
    fs: &F,
    log_dir: &Path,
    trust: LockTrust,
    body: impl FnOnce(&BrokerLock<F>) -> Result<T, E>,
) -> Result<T, E> {
    let lock = BrokerLock::take(fs, log_dir, trust)?;
    let result = body(&lock);
    let released = lock.release(fs);
    let value = result?;
    released?;
    Ok(value)
}

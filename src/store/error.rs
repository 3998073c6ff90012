//! Why nothing was written, or why writing stopped. Sentences for people are made in `cli`.

use std::io;
use std::path::{Path, PathBuf};

/// A path and what happened there.
#[derive(Debug, thiserror::Error)]
#[error("{}: {kind}", path.display())]
pub struct StoreError {
    /// The file or directory.
    pub path: PathBuf,
    /// What happened.
    pub kind: StoreErrorKind,
}

/// What kept `store` from writing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// Another process has the broker's lock.
    #[error("the log dir is in use{}", by(*pid))]
    InUse {
        /// The process, where the system tells.
        pid: Option<i32>,
    },
    /// Another process writes below the log dir, lock or not.
    #[error("open for writing{}", by(*pid))]
    OpenForWriting {
        /// The process.
        pid: Option<i32>,
    },
    /// The file system is not one whose locks are known to be seen by every process.
    #[error("a lock cannot be trusted on this file system (type {magic:#x})")]
    UntrustedLock {
        /// The file system's magic number.
        magic: u64,
    },
    /// A former run of segtool did not end.
    #[error("run {id} of segtool is unfinished")]
    Unfinished {
        /// The id of its journal.
        id: String,
    },
    /// Something else stands where a regular file or a directory should.
    #[error("expected {expected}, found {found}")]
    WrongKind {
        /// What should be there.
        expected: &'static str,
        /// What is.
        found: &'static str,
    },
    /// A file with several names: a change here could be meant for only one of them.
    #[error("the file has {links} names (hard links)")]
    HardLinked {
        /// How many.
        links: u64,
    },
    /// A file belongs to somebody else than its directory.
    #[error("owned by user {uid}, the directory by user {expected}")]
    ForeignOwner {
        /// The file's owner.
        uid: u32,
        /// The directory's owner.
        expected: u32,
    },
    /// Nobody may write to it.
    #[error("is read-only (mode {mode:04o})")]
    ReadOnly {
        /// Its mode.
        mode: u32,
    },
    /// The whole file system is mounted read-only.
    #[error("the file system is mounted read-only")]
    ReadOnlyFileSystem,
    /// It is marked immutable or append-only.
    #[error("is marked immutable or append-only")]
    Frozen,
    /// A directory lies on another device than the log dir.
    #[error("lies on another file system than the log dir")]
    OtherDevice,
    /// It is not what it was when the plan was made, or when the run to be undone had ended.
    #[error("has changed since")]
    Changed,
    /// The disk has not enough room for the whole run.
    #[error("{needed} bytes are needed, {available} are free")]
    NoSpace {
        /// Bytes that the run may need at most.
        needed: u64,
        /// Bytes that are free.
        available: u64,
    },
    /// A leftover of an interrupted cleaning or swap that the plan does not resolve.
    #[error("left over from an interrupted cleaning or swap")]
    Leftover,
    /// The place for the undo journal cannot be made or trusted.
    #[error("no undo journal can be kept here: {because}")]
    UndoDirectory {
        /// Why.
        because: String,
    },
    /// No journal of that id.
    #[error("no run {id} here")]
    NoSuchRun {
        /// The id asked for.
        id: String,
    },
    /// The directory for the result holds something.
    #[error("the output directory is not empty")]
    OutputNotEmpty,
    /// The output would lie inside a log dir.
    #[error("lies inside the log dir {}", log_dir.display())]
    InsideLogDir {
        /// That log dir.
        log_dir: PathBuf,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// Steps that contradict each other or name what is not there.
    #[error("the plan cannot be carried out: {because}")]
    Contradiction {
        /// Why.
        because: &'static str,
    },
    /// A line of a journal that segtool did not write so.
    #[error("line {line} is no line of an undo journal")]
    Journal {
        /// The line, from 1.
        line: usize,
    },
    /// What was written is not what was planned.
    #[error("the new content is not as planned: {because}")]
    Rejected {
        /// Why.
        because: String,
    },
    /// The operating system refused.
    #[error("{action}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The refusal.
        source: io::Error,
    },
    /// A run failed and everything was put back.
    #[error("{cause}; everything was put back")]
    PutBack {
        /// Why the run failed.
        cause: Box<StoreError>,
    },
    /// A run failed and could not be put back now; its journal is left.
    #[error("{cause}; putting back failed too: {rollback}")]
    LeftUnfinished {
        /// Why the run failed.
        cause: Box<StoreError>,
        /// Why it could not be put back.
        rollback: Box<StoreError>,
    },
}

fn by(pid: Option<i32>) -> String {
    pid.map(|pid| format!(" by process {pid}")).unwrap_or_default()
}

impl StoreError {
    /// Any reason.
    pub fn new(path: impl Into<PathBuf>, kind: StoreErrorKind) -> Self {
        Self { path: path.into(), kind }
    }

    /// A refusal of the operating system.
    pub(crate) fn io(path: &Path, action: &'static str, source: io::Error) -> Self {
        Self::new(path, StoreErrorKind::Io { action, source })
    }

    /// The first cause of a chain.
    pub fn cause(&self) -> &Self {
        match &self.kind {
            StoreErrorKind::PutBack { cause } | StoreErrorKind::LeftUnfinished { cause, .. } => cause.cause(),
            _ => self,
        }
    }

    /// Whether this is a refusal (exit status 3): nothing was touched, and the reason is the directory's state rather than a
    /// fault. Errors of the operating system and new content that turned out wrong are not.
    pub fn is_refusal(&self) -> bool {
        match &self.kind {
            StoreErrorKind::Io { .. }
            | StoreErrorKind::Interrupted
            | StoreErrorKind::NoSpace { .. }
            | StoreErrorKind::Contradiction { .. }
            | StoreErrorKind::Rejected { .. }
            | StoreErrorKind::Journal { .. }
            | StoreErrorKind::NoSuchRun { .. }
            | StoreErrorKind::LeftUnfinished { .. } => false,
            StoreErrorKind::PutBack { cause } => cause.is_refusal(),
            _ => true,
        }
    }

    /// Whether the user asked to stop and everything is in its old state.
    pub fn is_interruption(&self) -> bool {
        match &self.kind {
            StoreErrorKind::Interrupted => true,
            StoreErrorKind::PutBack { cause } => cause.is_interruption(),
            _ => false,
        }
    }
}

/// Gives an error of the operating system its path and what was tried.
pub(crate) trait At<T> {
    /// Adds the place.
    fn at(self, path: &Path, action: &'static str) -> Result<T, StoreError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path, action: &'static str) -> Result<T, StoreError> {
        self.map_err(|source| StoreError::io(path, action, source))
    }
}

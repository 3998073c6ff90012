//! Where undo journals lie, and which runs are there.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use super::error::{At, StoreError, StoreErrorKind};
use super::fs::{Access, EntryName, Fs, NodeKind};
use super::journal::{self, History, plain};
use super::lock::BrokerLock;

/// Said of a run whose files are all new.
pub(crate) const COMPLETE: &str = "COMPLETE";
/// Said of a run whose files are all old again.
pub(crate) const UNDONE: &str = "UNDONE";
/// What a journal's directory lets others do: nothing, it holds copies of data.
const PRIVATE: u32 = 0o700;

/// The id of a run: when it began and what it was, `20261130T201500Z-0a1b2c3d`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RunId(String);

impl RunId {
    /// The id of a run that begins `seconds` after 1970 and whose plan has this digest (32 hexadecimal digits).
    pub fn new(seconds: i64, digest: &str) -> Self {
        let time = jiff::Timestamp::from_second(seconds).unwrap_or_default();
        Self(format!("{}-{}", time.strftime("%Y%m%dT%H%M%SZ"), digest.get(..8).unwrap_or("00000000")))
    }

    /// Reads an id.
    pub fn parse(text: &str) -> Option<Self> {
        let (time, digest) = text.split_once('-')?;
        let time = time.strip_suffix('Z')?;
        let (date, clock) = time.split_once('T')?;
        let digits = |text: &str, count: usize| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
        let hex = digest.len() == 8 && digest.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase());
        (digits(date, 8) && digits(clock, 6) && hex).then(|| Self(text.to_owned()))
    }

    /// The id's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A name for the `number`th new file of the run, which no version of Kafka takes for one of its own.
    pub(crate) fn waiting_name(&self, number: u64) -> Result<EntryName, StoreError> {
        plain(&format!("segtool-{}-{number}", self.0))
    }

    /// Whether a name is one that [`Self::waiting_name`] gives.
    pub(crate) fn is_waiting_name(&self, name: &EntryName) -> bool {
        let number = name.as_bytes().strip_prefix(format!("segtool-{}-", self.0).as_bytes());
        number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
    }

    /// The file in the log dir that says that the run is not done, and where its journal is.
    pub(crate) fn pointer_name(&self) -> Result<EntryName, StoreError> {
        plain(&format!("segtool-{}-unfinished", self.0))
    }

    fn of_pointer(name: &EntryName) -> Option<Self> {
        let text = std::str::from_utf8(name.as_bytes()).ok()?;
        Self::parse(text.strip_prefix("segtool-")?.strip_suffix("-unfinished")?)
    }
}

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a run stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunState {
    /// Done; it can be undone.
    Complete,
    /// It stopped before it changed anything.
    NotBegun,
    /// It stopped half-way.
    Unfinished,
    /// Putting its files back stopped half-way.
    BeingUndone,
    /// Its files are back; only the journal is left.
    Undone,
}

/// A run and its journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundRun {
    /// Its id.
    pub id: RunId,
    /// The journal's directory.
    pub path: PathBuf,
    /// How it stands.
    pub state: RunState,
    /// Whether a file in the log dir says that it is not done.
    pub is_pointed_at: bool,
    /// What the journal says; `None` where it had not begun to say anything, so nothing had been changed.
    pub(crate) history: Option<History>,
}

/// `<log dir>.segtool-undo`.
pub fn default_undo_dir(log_dir: &Path) -> Option<PathBuf> {
    let log_dir = whole(log_dir);
    let mut name = log_dir.file_name()?.to_os_string();
    name.push(".segtool-undo");
    Some(log_dir.with_file_name(name))
}

/// A path that means the same from any working directory: journals are read from another one.
pub(crate) fn whole(path: &Path) -> PathBuf {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

fn refused(path: &Path, because: impl Into<String>) -> StoreError {
    StoreError::new(path, StoreErrorKind::UndoDirectory { because: because.into() })
}

fn no_directory(path: &Path, found: NodeKind) -> StoreError {
    refused(path, format!("it is {}", found.name()))
}

/// Opens the directory of journals, making it where it is missing.
pub(crate) fn open_undo_dir<F: Fs>(
    fs: &F,
    lock: &BrokerLock<F>,
    undo_dir: Option<&Path>,
) -> Result<(F::Dir, PathBuf), StoreError> {
    let log_dir = lock.log_dir();
    let path = undo_dir.map(whole).or_else(|| default_undo_dir(log_dir));
    let path = path.ok_or_else(|| refused(log_dir, "the log dir has no name"))?;
    if path.starts_with(whole(log_dir)) {
        return Err(StoreError::new(path, StoreErrorKind::InsideLogDir { log_dir: log_dir.to_path_buf() }));
    }
    let io = |error: std::io::Error| refused(&path, error.to_string());
    let (Some(parent_path), Some(name)) = (path.parent(), path.file_name().and_then(EntryName::new)) else {
        return Err(refused(&path, "it has no name"));
    };
    let parent = fs.open_dir(parent_path).map_err(io)?;
    // A broker fails to start over any directory in a log dir that is no partition.
    if fs.stat(&parent, &plain("meta.properties")?).map_err(io)?.is_some() {
        return Err(StoreError::new(path.clone(), StoreErrorKind::InsideLogDir { log_dir: parent_path.to_path_buf() }));
    }
    match fs.stat(&parent, &name).map_err(io)? {
        None => {
            fs.make_dir(&parent, &name, PRIVATE).map_err(io)?;
            fs.sync_dir(&parent).map_err(io)?;
        }
        Some(stat) if stat.kind != NodeKind::Directory => {
            return Err(no_directory(&path, stat.kind));
        }
        Some(stat) if stat.uid != fs.user() && stat.uid != lock.stat().uid => {
            return Err(refused(&path, format!("it belongs to user {}", stat.uid)));
        }
        Some(_) => {}
    }
    let dir = fs.open_dir(&path).map_err(io)?;
    Ok((dir, path))
}

/// Makes the directory of a new journal; the id's time is moved on where that second is taken.
pub(crate) fn make_run_dir<F: Fs>(
    fs: &F,
    (undo, path): &(F::Dir, PathBuf),
    seconds: i64,
    digest: &str,
) -> Result<(RunId, F::Dir, PathBuf), StoreError> {
    for later in 0..1_000 {
        let id = RunId::new(seconds.saturating_add(later), digest);
        let name = plain(id.as_str())?;
        match fs.make_dir(undo, &name, PRIVATE) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
            other => other.map_err(|error| refused(path, error.to_string()))?,
        }
        fs.sync_dir(undo).map_err(|error| refused(path, error.to_string()))?;
        let path = path.join(&name);
        let dir = fs.open_subdir(undo, &name).at(&path, "opening the undo journal")?;
        return Ok((id, dir, path));
    }
    Err(refused(path, "too many journals"))
}

/// Says in the log dir that a run has begun and where its journal is. A broker passes over a plain file there.
pub(crate) fn set_pointer<F: Fs>(fs: &F, lock: &BrokerLock<F>, id: &RunId, journal: &Path) -> Result<(), StoreError> {
    let name = id.pointer_name()?;
    let path = lock.log_dir().join(&name);
    // One that was left may not be whole.
    if fs.stat(lock.dir(), &name).at(&path, "looking at a file")?.is_some() {
        fs.remove(lock.dir(), &name).at(&path, "removing a file")?;
    }
    let stat = lock.stat();
    let access = Access { uid: stat.uid, gid: stat.gid, mode: stat.mode & 0o666 };
    let file = fs.create(lock.dir(), &name, access).at(&path, "making a file")?;
    // The line's end says that the path is whole.
    let line = [journal.as_os_str().as_bytes(), b"\n"].concat();
    let mut rest = line.as_slice();
    while !rest.is_empty() {
        let written = fs.write(&file, rest).at(&path, "writing")?;
        rest = rest.get(written.max(1)..).unwrap_or_default();
    }
    fs.sync_file(&file).at(&path, "syncing a file")?;
    fs.sync_dir(lock.dir()).at(lock.log_dir(), "syncing the log dir")
}

/// Takes back what [`set_pointer`] said.
pub(crate) fn clear_pointer<F: Fs>(fs: &F, lock: &BrokerLock<F>, id: &RunId) -> Result<(), StoreError> {
    let name = id.pointer_name()?;
    let path = lock.log_dir().join(&name);
    if fs.stat(lock.dir(), &name).at(&path, "looking at a file")?.is_some() {
        fs.remove(lock.dir(), &name).at(&path, "removing a file")?;
    }
    fs.sync_dir(lock.dir()).at(lock.log_dir(), "syncing the log dir")
}

/// Opens the directory of journals to read it; `None` where there is none. Anything else in its place is refused by name.
pub(crate) fn find_undo_dir<F: Fs>(fs: &F, undo_dir: &Path) -> Result<Option<F::Dir>, StoreError> {
    let stands_there = || {
        let parent = fs.open_dir(undo_dir.parent()?).ok()?;
        fs.stat(&parent, &EntryName::new(undo_dir.file_name()?)?).ok()?
    };
    match fs.open_dir(undo_dir) {
        Ok(dir) => Ok(Some(dir)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => match stands_there() {
            Some(stat) if stat.kind != NodeKind::Directory => Err(no_directory(undo_dir, stat.kind)),
            _ => Err(StoreError::io(undo_dir, "opening the directory of undo journals", error)),
        },
    }
}

/// Journals in a directory of journals, oldest first. A directory that is missing has none.
pub fn list_runs<F: Fs>(fs: &F, undo_dir: &Path) -> Result<Vec<FoundRun>, StoreError> {
    let Some(dir) = find_undo_dir(fs, undo_dir)? else { return Ok(Vec::new()) };
    let names = fs.list(&dir).at(undo_dir, "listing undo journals")?;
    let ids = names.iter().filter_map(|name| RunId::parse(name.as_os_str().to_str()?));
    let mut runs: Vec<FoundRun> = ids.map(|id| find_run(fs, &dir, undo_dir, id)).collect::<Result<_, _>>()?;
    runs.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(runs)
}

fn find_run<F: Fs>(fs: &F, undo: &F::Dir, undo_path: &Path, id: RunId) -> Result<FoundRun, StoreError> {
    let name = plain(id.as_str())?;
    let path = undo_path.join(&name);
    let dir = fs.open_subdir(undo, &name).at(&path, "opening an undo journal")?;
    let has = |name: &str| -> Result<bool, StoreError> {
        Ok(fs.stat(&dir, &plain(name)?).at(&path, "looking at an undo journal")?.is_some())
    };
    let is_undone = has(UNDONE)?;
    let history = if has(journal::JOURNAL)? {
        match journal::read(fs, &dir, &path) {
            // The first line was never whole, so nothing had begun.
            Err(StoreError { kind: StoreErrorKind::Journal { line: 1 }, .. }) => None,
            other => Some(other?),
        }
    } else {
        None
    };
    let state = match (&history, is_undone, has(COMPLETE)?) {
        (_, true, _) => RunState::Undone,
        (Some(history), _, _) if history.is_being_undone => RunState::BeingUndone,
        (_, _, true) => RunState::Complete,
        (None, ..) => RunState::NotBegun,
        _ => RunState::Unfinished,
    };
    Ok(FoundRun { id, path, state, is_pointed_at: false, history })
}

/// Runs that a log dir is waiting for: those it points at, and those in the directory of journals.
pub fn unfinished_runs<F: Fs>(
    fs: &F,
    lock: &BrokerLock<F>,
    undo_dir: Option<&Path>,
) -> Result<Vec<FoundRun>, StoreError> {
    let mut known = Vec::new();
    for dir in default_undo_dir(lock.log_dir()).iter().map(PathBuf::as_path).chain(undo_dir) {
        let of_log_dir = |run: &FoundRun| match &run.history {
            // A directory of journals that is given may serve several log dirs.
            Some(history) => undo_dir.is_none() || history.run.log_dir() == whole(lock.log_dir()),
            None => undo_dir.is_none(),
        };
        let listed = match list_runs(fs, dir) {
            // Where something else stands in the usual place, another one can be named.
            Err(StoreError { kind: StoreErrorKind::UndoDirectory { .. }, .. })
                if undo_dir.is_some_and(|d| d != dir) =>
            {
                continue;
            }
            other => other?,
        };
        known.extend(listed.into_iter().filter(of_log_dir));
    }
    let mut runs = Vec::new();
    let names = fs.list(lock.dir()).at(lock.log_dir(), "listing the log dir")?;
    for (name, id) in names.iter().filter_map(|name| Some((name, RunId::of_pointer(name)?))) {
        let run = match known.iter().position(|run| run.id == id).map(|at| known.swap_remove(at)) {
            Some(run) => run,
            None => follow_pointer(fs, lock, name, id)?,
        };
        runs.push(FoundRun { is_pointed_at: true, ..run });
    }
    runs.extend(known.into_iter().filter(|run| run.state != RunState::Complete));
    runs.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(runs)
}

fn follow_pointer<F: Fs>(fs: &F, lock: &BrokerLock<F>, name: &EntryName, id: RunId) -> Result<FoundRun, StoreError> {
    let path = lock.log_dir().join(name);
    let file = fs.open_file(lock.dir(), name).at(&path, "opening a file")?;
    let mut target = vec![0; 8192];
    let read = fs.read_at(&file, 0, &mut target).at(&path, "reading")?;
    target.truncate(read);
    let is_whole = target.pop() == Some(b'\n');
    let journal = PathBuf::from(std::ffi::OsString::from_vec(target));
    if let Some(undo_dir) = journal.parent().filter(|_| journal.file_name() == Some(OsStr::new(id.as_str())))
        && is_whole
        && let Some(run) = list_runs(fs, undo_dir)?.into_iter().find(|run| run.id == id)
    {
        return Ok(run);
    }
    // Where the line is not whole, nothing had begun. A journal that is gone leaves nothing to put back with; the run is still
    // named.
    let state = if is_whole { RunState::Unfinished } else { RunState::NotBegun };
    Ok(FoundRun { id, path: journal, state, is_pointed_at: true, history: None })
}

/// Refuses to go on while a former run is not done.
pub fn refuse_unfinished<F: Fs>(fs: &F, lock: &BrokerLock<F>, undo_dir: Option<&Path>) -> Result<(), StoreError> {
    let open = |run: &&FoundRun| run.is_pointed_at || run.state != RunState::Undone;
    match unfinished_runs(fs, lock, undo_dir)?.iter().find(open) {
        Some(run) => {
            Err(StoreError::new(lock.log_dir(), StoreErrorKind::Unfinished { id: run.id.as_str().to_owned() }))
        }
        None => Ok(()),
    }
}

//! A disk in memory that can fail, stop, and lose what was not synced.
//!
//! Every file and directory has two states: what programs see, and what is durable. A crash keeps the second and, depending on
//! [`Loss`], nothing, everything or some of the difference. Calls are counted, so that a test can stop the machine before each.

mod calls;
mod state;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use segtool::store::{Access, EntryName, Fs, NodeKind};

use state::{Body, Change, State, apply, entry, lose_data, set_durably};

pub(crate) use state::Random;

/// What a crash takes of what was not synced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Loss {
    /// Nothing: the process was killed, the machine runs on.
    Nothing,
    /// Everything: the power failed.
    Everything,
    /// The power failed while the disk was writing: any of it, chosen by this seed.
    Some(u64),
}

/// What goes wrong, by the number of the call (from 0).
#[derive(Clone, Default, Debug)]
pub(crate) struct Faults {
    /// The machine stops instead of this call that changes something, and answers no more.
    pub(crate) stop_at: Option<u64>,
    /// This call of any kind fails with this error, and so do all later ones where the flag is set.
    pub(crate) error_at: Option<(u64, i32, bool)>,
    /// All writes take at most this many bytes at once.
    pub(crate) short_writes: Option<usize>,
    /// This sync says that it is done and does nothing.
    pub(crate) lazy_sync: Option<u64>,
    /// This change of a name (rename, link, removal) happens only after the next one.
    pub(crate) late_name: Option<u64>,
    /// New files keep the owner and mode of whoever makes them.
    pub(crate) ignores_access: bool,
    /// Times and attributes are not set.
    pub(crate) ignores_looks: bool,
    /// Locks are granted and not taken.
    pub(crate) ignores_locks: bool,
    /// The lock file seems to be the same after somebody has exchanged it.
    pub(crate) ignores_lock_name: bool,
    /// Free bytes on the disk.
    pub(crate) free_bytes: Option<u64>,
    /// Second names for files are refused.
    pub(crate) no_links: bool,
    /// Blocks can be shared.
    pub(crate) can_clone: bool,
}

/// A call that changed something, for tests that look at the order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) target: String,
    /// The line of segtool that made it.
    pub(crate) site: String,
    /// Whether segtool had a lock.
    pub(crate) is_locked: bool,
}

const ROOT: u64 = 1;
/// The user that segtool runs as; files of brokers belong to [`BROKER`].
pub(crate) const USER: u32 = 0;
/// The broker's user.
pub(crate) const BROKER: u32 = 1001;

/// The disk.
#[derive(Clone)]
pub(crate) struct FaultFs(Rc<RefCell<State>>);

impl fmt::Debug for FaultFs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultFs")
    }
}

/// An open directory.
#[derive(Debug)]
pub(crate) struct FaultDir(u64);

/// An open file; its lock goes when it is closed.
#[derive(Debug)]
pub(crate) struct FaultFile {
    inode: u64,
    handle: u64,
    position: Cell<usize>,
    disk: FaultFs,
}

impl Drop for FaultFile {
    fn drop(&mut self) {
        let mut state = self.disk.0.borrow_mut();
        if state.locks.get(&self.inode) == Some(&self.handle) {
            state.locks.remove(&self.inode);
        }
    }
}

impl FaultFs {
    /// An empty disk.
    pub(crate) fn new() -> Self {
        let mut state = State {
            nodes: BTreeMap::new(),
            next_inode: ROOT,
            clock: 1_700_000_000_000_000_000,
            faults: Faults::default(),
            changes: 0,
            calls: 0,
            syncs: 0,
            names: 0,
            late: None,
            stopped: false,
            locks: BTreeMap::new(),
            next_handle: 1,
            log: Rc::default(),
            snapshots: None,
            unreadable: Vec::new(),
        };
        let body = Body::Directory { entries: BTreeMap::new(), durable: BTreeMap::new(), pending: Vec::new() };
        state.add_node(body, Access { uid: 0, gid: 0, mode: 0o755 });
        Self(Rc::new(RefCell::new(state)))
    }

    /// The same disk once more, with faults and with all counters at 0.
    pub(crate) fn with(&self, faults: Faults) -> Self {
        let mut state = self.0.borrow().clone();
        state.faults = faults;
        (state.changes, state.calls, state.syncs, state.names) = (0, 0, 0, 0);
        state.log = Rc::default();
        Self(Rc::new(RefCell::new(state)))
    }

    /// The disk before each call that changes something, and after the last, while `body` works on it.
    pub(crate) fn film(&self, faults: &Faults, body: &dyn Fn(&Self)) -> Vec<Self> {
        let disk = self.with(faults.clone());
        disk.0.borrow_mut().snapshots = Some(Vec::new());
        body(&disk);
        let mut state = disk.0.borrow_mut();
        let mut film = state.snapshots.take().unwrap_or_default();
        film.push(state.clone());
        film.into_iter().map(|state| Self(Rc::new(RefCell::new(state)))).collect()
    }

    /// The disk as the machine finds it after a crash.
    pub(crate) fn after(&self, loss: Loss) -> Self {
        let mut state = self.0.borrow().clone();
        let mut random = Random(if let Loss::Some(seed) = loss { seed } else { 0 });
        for node in state.nodes.values_mut() {
            let is_safe = loss == Loss::Nothing
                || match &node.body {
                    Body::File { data, durable } => {
                        durable.as_ref().is_some_and(|(bytes, looks)| bytes == data && *looks == node.looks)
                    }
                    Body::Directory { pending, .. } => pending.is_empty(),
                    Body::Special(_) => true,
                };
            if is_safe {
                continue;
            }
            let node = Rc::make_mut(node);
            match &mut node.body {
                Body::File { data, durable } => lose_data(data, durable, &mut node.looks, loss, &mut random),
                Body::Directory { entries, durable, pending } => {
                    for change in pending.drain(..) {
                        if loss != Loss::Everything && random.coin() {
                            apply(durable, &change);
                        }
                    }
                    *entries = durable.clone();
                }
                Body::Special(_) => {}
            }
        }
        state.forget_unreachable();
        state.faults = Faults { free_bytes: state.faults.free_bytes, ..Faults::default() };
        (state.changes, state.calls, state.syncs, state.names) = (0, 0, 0, 0);
        state.stopped = false;
        state.late = None;
        state.locks.clear();
        state.log = Rc::default();
        Self(Rc::new(RefCell::new(state)))
    }

    /// Makes a directory and those above it, durably.
    pub(crate) fn add_dir(&self, path: &str, access: Access) {
        let mut state = self.0.borrow_mut();
        let mut at = ROOT;
        for part in Path::new(path).components() {
            let Component::Normal(name) = part else { continue };
            at = match state.entries(at).get(&entry(name)) {
                Some(inode) => *inode,
                None => {
                    let body = Body::Directory { entries: BTreeMap::new(), durable: BTreeMap::new(), pending: vec![] };
                    let inode = state.add_node(body, access);
                    set_durably(&mut state, at, entry(name), inode);
                    inode
                }
            };
        }
    }

    /// Makes a file in an existing directory, durably. Each has a time of its own.
    pub(crate) fn add_file(&self, path: &str, bytes: &[u8], access: Access) {
        let mut state = self.0.borrow_mut();
        let path = Path::new(path);
        let dir = state.walk(path.parent().unwrap()).unwrap();
        let inode = state.add_node(Body::File { data: bytes.to_vec(), durable: None }, access);
        let now = state.tick();
        let node = state.node_mut(inode);
        node.looks.mtime_ns = now - 500_000_000_007;
        node.looks.xattrs.insert("user.origin".into(), path.as_os_str().as_encoded_bytes().to_vec());
        let looks = node.looks.clone();
        node.body = Body::File { data: bytes.to_vec(), durable: Some((bytes.to_vec(), looks)) };
        set_durably(&mut state, dir, entry(path.file_name().unwrap()), inode);
    }

    /// Makes something that is no file.
    pub(crate) fn add_special(&self, path: &str, kind: NodeKind) {
        let mut state = self.0.borrow_mut();
        let path = Path::new(path);
        let dir = state.walk(path.parent().unwrap()).unwrap();
        let inode = state.add_node(Body::Special(kind), Access { uid: BROKER, gid: BROKER, mode: 0o644 });
        set_durably(&mut state, dir, entry(path.file_name().unwrap()), inode);
    }

    /// Changes a file as a broker would: more bytes, a later time.
    pub(crate) fn append(&self, path: &str, bytes: &[u8]) {
        let mut state = self.0.borrow_mut();
        let inode = state.walk(Path::new(path)).unwrap();
        let now = state.tick();
        let node = state.node_mut(inode);
        node.looks.mtime_ns = now;
        let looks = node.looks.clone();
        let Body::File { data, durable } = &mut node.body else { panic!("no file") };
        data.extend_from_slice(bytes);
        *durable = Some((data.clone(), looks));
    }

    /// Removes a file or renames it, durably.
    pub(crate) fn move_file(&self, dir: &str, from: &str, to: Option<&str>) {
        let mut state = self.0.borrow_mut();
        let dir = state.walk(Path::new(dir)).unwrap();
        let inode = state.entries(dir)[&entry(from.as_ref())];
        let change = match to {
            Some(to) => Change::Move(entry(from.as_ref()), entry(to.as_ref()), inode),
            None => Change::Unset(entry(from.as_ref())),
        };
        let Body::Directory { entries, durable, .. } = &mut state.node_mut(dir).body else { panic!("no directory") };
        apply(entries, &change);
        apply(durable, &change);
    }

    /// Nothing of these files has reached the disk yet.
    pub(crate) fn forget_sync(&self, paths: &[PathBuf]) {
        let mut state = self.0.borrow_mut();
        for path in paths {
            let inode = state.walk(path).unwrap();
            if let Body::File { durable, .. } = &mut state.node_mut(inode).body {
                *durable = None;
            }
        }
    }

    /// Another process takes the lock on a file.
    pub(crate) fn lock_elsewhere(&self, path: &str) {
        let mut state = self.0.borrow_mut();
        let inode = state.walk(Path::new(path)).unwrap();
        state.locks.insert(inode, 0);
    }

    /// Names and bytes of the files in a directory.
    pub(crate) fn files(&self, dir: &str) -> BTreeMap<String, Vec<u8>> {
        let state = self.0.borrow();
        let Ok(dir) = state.walk(Path::new(dir)) else { return BTreeMap::new() };
        let file = |(name, inode): (&EntryName, &u64)| match &state.node(*inode).body {
            Body::File { data, .. } => Some((name.to_string(), data.clone())),
            _ => None,
        };
        state.entries(dir).iter().filter_map(file).collect()
    }

    /// Owner and mode of a file.
    pub(crate) fn access(&self, path: &str) -> Access {
        let state = self.0.borrow();
        let looks = &state.node(state.walk(Path::new(path)).unwrap()).looks;
        Access { uid: looks.uid, gid: looks.gid, mode: looks.mode }
    }

    /// Everything below a directory that must come back: paths, bytes, owners, modes, times, attributes, times of directories.
    pub(crate) fn picture(&self, dir: &str) -> BTreeMap<PathBuf, String> {
        let state = self.0.borrow();
        let mut found = BTreeMap::new();
        let mut open = vec![PathBuf::from(dir)];
        while let Some(path) = open.pop() {
            let Ok(inode) = state.walk(&path) else { continue };
            let node = state.node(inode);
            let looks = &node.looks;
            let common = {
                let xattrs: Vec<String> =
                    looks.xattrs.iter().map(|(k, v)| format!("{k:?}={}", String::from_utf8_lossy(v))).collect();
                format!("{}:{} {:o} {} {xattrs:?}", looks.uid, looks.gid, looks.mode, looks.mtime_ns)
            };
            let body = match &node.body {
                Body::File { data, .. } => format!("links {} {}", state.links(inode), String::from_utf8_lossy(data)),
                Body::Directory { entries, .. } => {
                    open.extend(entries.keys().map(|name| path.join(name)));
                    "directory".to_owned()
                }
                Body::Special(kind) => kind.name().to_owned(),
            };
            found.insert(path, format!("{common} {body}"));
        }
        found
    }

    /// How many calls changed something, how many there were in all, how many syncs, how many changes of names.
    pub(crate) fn counts(&self) -> (u64, u64, u64, u64) {
        let state = self.0.borrow();
        (state.changes, state.calls, state.syncs, state.names)
    }

    /// The number that the next new file gets.
    pub(crate) fn next_inode(&self) -> u64 {
        self.0.borrow().next_inode
    }

    /// The calls that changed something.
    pub(crate) fn log(&self) -> Vec<Call> {
        self.0.borrow().log.to_vec()
    }

    /// Files that were visible below a log dir while the broker's user could not read them.
    pub(crate) fn unreadable(&self) -> Vec<String> {
        self.0.borrow().unreadable.clone()
    }
}

#[test]
fn what_was_not_synced_is_lost_when_the_power_fails_and_kept_when_a_process_is_killed() {
    let access = Access { uid: BROKER, gid: BROKER, mode: 0o644 };
    let disk = FaultFs::new();
    disk.add_dir("/data", access);
    let dir = disk.open_dir(Path::new("/data")).unwrap();
    let name = |text: &str| EntryName::new(text).unwrap();
    let file = disk.create(&dir, &name("a"), access).unwrap();
    disk.write(&file, b"abc").unwrap();
    disk.sync_dir(&dir).unwrap();
    assert_eq!(disk.after(Loss::Everything).files("/data")["a"], b"");
    disk.sync_file(&file).unwrap();
    disk.rename(&dir, &name("a"), &name("b")).unwrap();
    assert_eq!(disk.after(Loss::Everything).files("/data")["a"], b"abc");
    assert_eq!(disk.after(Loss::Nothing).files("/data")["b"], b"abc");
    let seen: BTreeSet<_> = (0..20).map(|seed| disk.after(Loss::Some(seed)).files("/data")).collect();
    assert_eq!(seen.len(), 2);
}

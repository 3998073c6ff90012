//! What the disk in memory is made of.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::panic::Location;
use std::path::{Component, Path};
use std::rc::Rc;

use segtool::store::{Access, EntryName, FileStat, NodeKind, Xattrs};

use super::{Call, FaultFile, Faults, Loss, ROOT};

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Looks {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) mode: u32,
    pub(super) mtime_ns: i128,
    pub(super) xattrs: Xattrs,
}

#[derive(Clone, Debug)]
pub(super) enum Change {
    Set(EntryName, u64),
    Unset(EntryName),
    Move(EntryName, EntryName, u64),
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    File { data: Vec<u8>, durable: Option<(Vec<u8>, Looks)> },
    Directory { entries: BTreeMap<EntryName, u64>, durable: BTreeMap<EntryName, u64>, pending: Vec<Change> },
    Special(NodeKind),
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) body: Body,
    pub(super) looks: Looks,
    pub(super) ctime_ns: i128,
}

#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) nodes: BTreeMap<u64, Rc<Node>>,
    pub(super) next_inode: u64,
    pub(super) clock: i128,
    pub(super) faults: Faults,
    pub(super) changes: u64,
    pub(super) calls: u64,
    pub(super) syncs: u64,
    pub(super) names: u64,
    pub(super) late: Option<Late>,
    pub(super) stopped: bool,
    /// Inode and owner of locks; owner 0 is another process.
    pub(super) locks: BTreeMap<u64, u64>,
    pub(super) next_handle: u64,
    pub(super) log: Rc<Vec<Call>>,
    /// What the disk was before each call that changed something, where wanted.
    pub(super) snapshots: Option<Vec<State>>,
    /// Files that a program was refused to find unsafe: a broker's user could not have read them at this moment.
    pub(super) unreadable: Vec<String>,
}

pub(super) fn errno(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

pub(super) const ENOENT: i32 = 2;
pub(super) const EEXIST: i32 = 17;
pub(super) const ENOTDIR: i32 = 20;
pub(super) const ENOTEMPTY: i32 = 39;
pub(super) const ELOOP: i32 = 40;
pub(super) const EPERM: i32 = 1;
pub(super) const ENOSPC: i32 = 28;

/// A small generator of random bits, so that a seed says everything.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(super) fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }
}

pub(super) fn entry(name: &OsStr) -> EntryName {
    EntryName::new(name).unwrap()
}

impl State {
    pub(super) fn tick(&mut self) -> i128 {
        self.clock += 1_000;
        self.clock
    }

    /// A call that only looks.
    pub(super) fn look(&mut self) -> io::Result<()> {
        if self.stopped {
            return Err(io::Error::other("the machine has stopped"));
        }
        let number = self.calls;
        self.calls += 1;
        match self.faults.error_at {
            Some((at, code, forever)) if number == at || (forever && number > at) => Err(errno(code)),
            _ => Ok(()),
        }
    }

    /// A call that changes something.
    #[track_caller]
    pub(super) fn change(&mut self, name: &'static str, target: impl fmt::Display) -> io::Result<()> {
        self.look()?;
        if let Some(mut snapshots) = self.snapshots.take() {
            snapshots.push(self.clone());
            self.snapshots = Some(snapshots);
        }
        if self.faults.stop_at == Some(self.changes) {
            self.stopped = true;
            return Err(io::Error::other("the machine has stopped"));
        }
        self.changes += 1;
        let caller = Location::caller();
        let file = caller.file().rsplit('/').next().unwrap_or_default();
        let site = format!("{file}:{}", caller.line());
        let is_locked = self.locks.values().any(|handle| *handle != 0);
        Rc::make_mut(&mut self.log).push(Call { name, target: target.to_string(), site, is_locked });
        Ok(())
    }

    pub(super) fn node(&self, inode: u64) -> &Node {
        &self.nodes[&inode]
    }

    pub(super) fn node_mut(&mut self, inode: u64) -> &mut Node {
        Rc::make_mut(self.nodes.get_mut(&inode).unwrap())
    }

    pub(super) fn entries(&self, dir: u64) -> &BTreeMap<EntryName, u64> {
        match &self.node(dir).body {
            Body::Directory { entries, .. } => entries,
            _ => panic!("no directory"),
        }
    }

    pub(super) fn edit(&mut self, dir: u64, change: Change) {
        let now = self.tick();
        let node = self.node_mut(dir);
        node.looks.mtime_ns = now;
        node.ctime_ns = now;
        let Body::Directory { entries, pending, .. } = &mut node.body else { panic!("no directory") };
        apply(entries, &change);
        pending.push(change);
    }

    pub(super) fn add_node(&mut self, body: Body, access: Access) -> u64 {
        let now = self.tick();
        let inode = self.next_inode;
        self.next_inode += 1;
        let looks = Looks { uid: access.uid, gid: access.gid, mode: access.mode, mtime_ns: now, xattrs: Xattrs::new() };
        self.nodes.insert(inode, Rc::new(Node { body, looks, ctime_ns: now }));
        inode
    }

    /// Inodes that names lead to, those of directories besides what is durable where told.
    fn reachable(&self, and_durable: bool) -> BTreeSet<u64> {
        let mut reached = BTreeSet::from([ROOT]);
        let mut open = vec![ROOT];
        while let Some(inode) = open.pop() {
            if let Body::Directory { entries, durable, .. } = &self.node(inode).body {
                let kept = durable.values().filter(|_| and_durable);
                open.extend(entries.values().chain(kept).filter(|inode| reached.insert(**inode)));
            }
        }
        reached
    }

    /// What no name leads to any more is gone.
    pub(super) fn forget_unreachable(&mut self) {
        let reached = self.reachable(true);
        self.nodes.retain(|inode, _| reached.contains(inode));
    }

    pub(super) fn links(&self, inode: u64) -> u64 {
        let count = |dir: u64| match &self.node(dir).body {
            Body::Directory { entries, .. } => entries.values().filter(|found| **found == inode).count(),
            _ => 0,
        };
        self.reachable(false).into_iter().map(count).sum::<usize>() as u64
    }

    pub(super) fn stat(&self, inode: u64) -> FileStat {
        let node = self.node(inode);
        let (kind, size_bytes) = match &node.body {
            Body::File { data, .. } => (NodeKind::Regular, data.len() as u64),
            Body::Directory { .. } => (NodeKind::Directory, 0),
            Body::Special(kind) => (*kind, 0),
        };
        FileStat {
            kind,
            device: 7,
            inode,
            links: if kind == NodeKind::Directory { 2 } else { self.links(inode) },
            size_bytes,
            mode: node.looks.mode,
            uid: node.looks.uid,
            gid: node.looks.gid,
            mtime_ns: node.looks.mtime_ns,
            ctime_ns: node.ctime_ns,
            frozen: false,
        }
    }

    pub(super) fn walk(&self, path: &Path) -> io::Result<u64> {
        let mut at = ROOT;
        for part in path.components() {
            let Component::Normal(name) = part else { continue };
            if !matches!(self.node(at).body, Body::Directory { .. }) {
                return Err(errno(ENOTDIR));
            }
            at = *self.entries(at).get(&entry(name)).ok_or_else(|| errno(ENOENT))?;
        }
        Ok(at)
    }

    /// The late change of a name happens now.
    pub(super) fn catch_up(&mut self) {
        if let Some(late) = self.late.take() {
            match late {
                Late::Edit(dir, change) => self.edit(dir, change),
            }
        }
    }

    pub(super) fn edit_name(&mut self, dir: u64, change: Change) {
        let number = self.names;
        self.names += 1;
        if self.faults.late_name == Some(number) {
            self.late = Some(Late::Edit(dir, change));
            return;
        }
        self.edit(dir, change);
        self.catch_up();
    }
}

#[derive(Clone, Debug)]
pub(super) enum Late {
    Edit(u64, Change),
}

pub(super) fn apply(entries: &mut BTreeMap<EntryName, u64>, change: &Change) {
    match change {
        Change::Set(name, inode) => {
            entries.insert(name.clone(), *inode);
        }
        Change::Unset(name) => {
            entries.remove(name);
        }
        Change::Move(from, to, inode) => {
            entries.remove(from);
            entries.insert(to.clone(), *inode);
        }
    }
}

pub(super) fn set_durably(state: &mut State, dir: u64, name: EntryName, inode: u64) {
    let Body::Directory { entries, durable, .. } = &mut state.node_mut(dir).body else { panic!("no directory") };
    entries.insert(name.clone(), inode);
    durable.insert(name, inode);
}

/// Of a file that was never synced only owner and mode are sure: it had them before it had a name.
fn never_synced(data: &mut Vec<u8>, looks: &mut Looks) {
    data.clear();
    looks.xattrs.clear();
    looks.mtime_ns = 0;
}

pub(super) fn lose_data(
    data: &mut Vec<u8>,
    durable: &mut Option<(Vec<u8>, Looks)>,
    looks: &mut Looks,
    loss: Loss,
    random: &mut Random,
) {
    match (&*durable, loss) {
        (Some((bytes, then)), Loss::Everything) => (*data, *looks) = (bytes.clone(), then.clone()),
        (None, Loss::Everything) => never_synced(data, looks),
        (known, _) => match random.next() % 3 {
            0 => {
                // What was durable stays as far as it was not overwritten.
                let safe =
                    known.as_ref().map_or(0, |(bytes, _)| bytes.iter().zip(&*data).take_while(|(a, b)| a == b).count());
                data.truncate(safe + random.next() as usize % (data.len() - safe + 1));
            }
            1 => match known {
                Some((bytes, then)) => (*data, *looks) = (bytes.clone(), then.clone()),
                None => never_synced(data, looks),
            },
            _ => {}
        },
    }
    *durable = Some((data.clone(), looks.clone()));
}

impl State {
    pub(super) fn data(&self, inode: u64) -> &[u8] {
        match &self.node(inode).body {
            Body::File { data, .. } => data,
            _ => panic!("no file"),
        }
    }

    pub(super) fn put(&mut self, file: &FaultFile, bytes: &[u8]) {
        let now = self.tick();
        let node = self.node_mut(file.inode);
        node.looks.mtime_ns = now;
        node.ctime_ns = now;
        let Body::File { data, .. } = &mut node.body else { panic!("no file") };
        let at = file.position.get().min(data.len());
        data.truncate(at);
        data.extend_from_slice(bytes);
        file.position.set(if file.position.get() == usize::MAX { usize::MAX } else { at + bytes.len() });
    }

    pub(super) fn sync_is_lazy(&mut self) -> bool {
        let number = self.syncs;
        self.syncs += 1;
        self.faults.lazy_sync == Some(number)
    }
}

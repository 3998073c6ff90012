//! The calls that segtool makes.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use segtool::store::{Access, EntryName, FileStat, Fs, FsKind, Holder, LockAnswer, NodeKind, Xattrs};

use super::state::{Body, Change, EEXIST, ELOOP, ENOENT, ENOSPC, ENOTDIR, ENOTEMPTY, EPERM, State, errno};
use super::{BROKER, FaultDir, FaultFile, FaultFs, USER};

impl Fs for FaultFs {
    type Dir = FaultDir;
    type File = FaultFile;

    fn open_dir(&self, path: &Path) -> io::Result<FaultDir> {
        let mut state = self.0.borrow_mut();
        state.look()?;
        let inode = state.walk(path)?;
        match state.node(inode).body {
            Body::Directory { .. } => Ok(FaultDir(inode)),
            _ => Err(errno(ENOTDIR)),
        }
    }

    fn open_subdir(&self, dir: &FaultDir, name: &EntryName) -> io::Result<FaultDir> {
        let mut state = self.0.borrow_mut();
        state.look()?;
        let inode = *state.entries(dir.0).get(name).ok_or_else(|| errno(ENOENT))?;
        match state.node(inode).body {
            Body::Directory { .. } => Ok(FaultDir(inode)),
            Body::Special(NodeKind::Symlink) => Err(errno(ELOOP)),
            _ => Err(errno(ENOTDIR)),
        }
    }

    fn stat(&self, dir: &FaultDir, name: &EntryName) -> io::Result<Option<FileStat>> {
        let mut state = self.0.borrow_mut();
        state.look()?;
        let locked = || state.locks.iter().find(|(_, handle)| **handle != 0).map(|(inode, _)| inode);
        let old = locked().filter(|_| state.faults.ignores_lock_name && name.as_bytes() == b".lock");
        Ok(old.or(state.entries(dir.0).get(name)).map(|inode| state.stat(*inode)))
    }

    fn stat_dir(&self, dir: &FaultDir) -> io::Result<FileStat> {
        let mut state = self.0.borrow_mut();
        state.look()?;
        Ok(state.stat(dir.0))
    }

    fn stat_file(&self, file: &FaultFile) -> io::Result<FileStat> {
        let mut state = self.0.borrow_mut();
        state.look()?;
        Ok(state.stat(file.inode))
    }

    fn list(&self, dir: &FaultDir) -> io::Result<Vec<EntryName>> {
        let mut state = self.0.borrow_mut();
        state.look()?;
        Ok(state.entries(dir.0).keys().cloned().collect())
    }

    fn free_bytes(&self, _dir: &FaultDir) -> io::Result<u64> {
        let mut state = self.0.borrow_mut();
        state.look()?;
        Ok(state.faults.free_bytes.unwrap_or(u64::MAX))
    }

    fn kind(&self, _dir: &FaultDir) -> io::Result<FsKind> {
        self.0.borrow_mut().look()?;
        Ok(FsKind::Known)
    }

    fn open_file(&self, dir: &FaultDir, name: &EntryName) -> io::Result<FaultFile> {
        let mut state = self.0.borrow_mut();
        state.look()?;
        let inode = *state.entries(dir.0).get(name).ok_or_else(|| errno(ENOENT))?;
        if !matches!(state.node(inode).body, Body::File { .. }) {
            return Err(errno(ELOOP));
        }
        Ok(self.handle(&mut state, inode))
    }

    fn open_lock(&self, dir: &FaultDir, name: &EntryName) -> io::Result<FaultFile> {
        self.open_file(dir, name)
    }

    fn open_append(&self, dir: &FaultDir, name: &EntryName) -> io::Result<FaultFile> {
        let file = self.open_file(dir, name)?;
        file.position.set(usize::MAX);
        Ok(file)
    }

    fn read_at(&self, file: &FaultFile, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.0.borrow_mut();
        state.look()?;
        let data = state.data(file.inode);
        let rest = data.get(position as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn xattrs(&self, file: &FaultFile) -> io::Result<Xattrs> {
        let mut state = self.0.borrow_mut();
        state.look()?;
        Ok(state.node(file.inode).looks.xattrs.clone())
    }

    #[track_caller]
    fn create(&self, dir: &FaultDir, name: &EntryName, access: Access) -> io::Result<FaultFile> {
        let mut state = self.0.borrow_mut();
        state.change("create", name)?;
        if state.entries(dir.0).contains_key(name) {
            return Err(errno(EEXIST));
        }
        let access = if state.faults.ignores_access { Access { uid: USER, gid: USER, mode: 0o600 } } else { access };
        let inode = state.add_node(Body::File { data: Vec::new(), durable: None }, access);
        state.edit(dir.0, Change::Set(name.clone(), inode));
        let of_broker = state.node(dir.0).looks.uid == BROKER;
        if of_broker && access.uid != BROKER && access.mode & 0o044 != 0o044 {
            state.unreadable.push(name.to_string());
        }
        Ok(self.handle(&mut state, inode))
    }

    fn reserve(&self, _file: &FaultFile, size_bytes: u64) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.look()?;
        if state.faults.free_bytes.is_some_and(|free| size_bytes > free) { Err(errno(ENOSPC)) } else { Ok(()) }
    }

    #[track_caller]
    fn write(&self, file: &FaultFile, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.borrow_mut();
        state.change("write", file.inode)?;
        let count = state.faults.short_writes.unwrap_or(usize::MAX).min(bytes.len());
        state.put(file, &bytes[..count]);
        Ok(count)
    }

    #[track_caller]
    fn clone_content(&self, from: &FaultFile, to: &FaultFile) -> io::Result<bool> {
        let mut state = self.0.borrow_mut();
        if !state.faults.can_clone {
            state.look()?;
            return Ok(false);
        }
        state.change("clone", to.inode)?;
        let bytes = state.data(from.inode).to_vec();
        state.put(to, &bytes);
        Ok(true)
    }

    #[track_caller]
    fn copy_range(&self, from: &FaultFile, position: u64, to: &FaultFile, size_bytes: u64) -> io::Result<u64> {
        let mut state = self.0.borrow_mut();
        state.change("copy", to.inode)?;
        let rest = state.data(from.inode).get(position as usize..).unwrap_or_default();
        let most = (size_bytes as usize).min(state.faults.short_writes.unwrap_or(usize::MAX)).min(rest.len());
        let bytes = rest[..most].to_vec();
        state.put(to, &bytes);
        Ok(bytes.len() as u64)
    }

    #[track_caller]
    fn cut(&self, file: &FaultFile, size_bytes: u64) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.change("cut", file.inode)?;
        let Body::File { data, .. } = &mut state.node_mut(file.inode).body else { panic!("no file") };
        data.resize(size_bytes as usize, 0);
        Ok(())
    }

    #[track_caller]
    fn set_xattr(&self, file: &FaultFile, name: &OsStr, value: &[u8]) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.change("xattr", file.inode)?;
        if !state.faults.ignores_looks {
            state.node_mut(file.inode).looks.xattrs.insert(OsString::from(name), value.to_vec());
        }
        Ok(())
    }

    #[track_caller]
    fn set_mtime(&self, file: &FaultFile, mtime_ns: i128) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.change("mtime", file.inode)?;
        if !state.faults.ignores_looks {
            state.node_mut(file.inode).looks.mtime_ns = mtime_ns;
        }
        Ok(())
    }

    #[track_caller]
    fn set_dir_mtime(&self, dir: &FaultDir, mtime_ns: i128) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.change("directory mtime", dir.0)?;
        state.node_mut(dir.0).looks.mtime_ns = mtime_ns;
        Ok(())
    }

    #[track_caller]
    fn sync_file(&self, file: &FaultFile) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.change("sync file", file.inode)?;
        if state.sync_is_lazy() {
            return Ok(());
        }
        let node = state.node_mut(file.inode);
        let looks = node.looks.clone();
        let Body::File { data, durable } = &mut node.body else { panic!("no file") };
        *durable = Some((data.clone(), looks));
        Ok(())
    }

    #[track_caller]
    fn sync_dir(&self, dir: &FaultDir) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.change("sync directory", dir.0)?;
        if state.sync_is_lazy() {
            return Ok(());
        }
        let Body::Directory { entries, durable, pending } = &mut state.node_mut(dir.0).body else { panic!("no dir") };
        *durable = entries.clone();
        pending.clear();
        Ok(())
    }

    #[track_caller]
    fn rename(&self, dir: &FaultDir, from: &EntryName, to: &EntryName) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.change("rename", format!("{from} -> {to}"))?;
        let inode = *state.entries(dir.0).get(from).ok_or_else(|| errno(ENOENT))?;
        if state.entries(dir.0).get(to) != Some(&inode) {
            state.edit_name(dir.0, Change::Move(from.clone(), to.clone(), inode));
        }
        Ok(())
    }

    #[track_caller]
    fn link(&self, dir: &FaultDir, name: &EntryName, to_dir: &FaultDir, to: &EntryName) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.change("link", format!("{name} -> {to}"))?;
        if state.faults.no_links {
            return Err(errno(EPERM));
        }
        let inode = *state.entries(dir.0).get(name).ok_or_else(|| errno(ENOENT))?;
        if state.entries(to_dir.0).contains_key(to) {
            return Err(errno(EEXIST));
        }
        state.edit_name(to_dir.0, Change::Set(to.clone(), inode));
        Ok(())
    }

    #[track_caller]
    fn remove(&self, dir: &FaultDir, name: &EntryName) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.change("remove", name)?;
        if !state.entries(dir.0).contains_key(name) {
            return Err(errno(ENOENT));
        }
        state.edit_name(dir.0, Change::Unset(name.clone()));
        Ok(())
    }

    #[track_caller]
    fn make_dir(&self, dir: &FaultDir, name: &EntryName, mode: u32) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.change("make directory", name)?;
        if state.entries(dir.0).contains_key(name) {
            return Err(errno(EEXIST));
        }
        let body = Body::Directory { entries: BTreeMap::new(), durable: BTreeMap::new(), pending: Vec::new() };
        let inode = state.add_node(body, Access { uid: USER, gid: USER, mode });
        state.edit(dir.0, Change::Set(name.clone(), inode));
        Ok(())
    }

    #[track_caller]
    fn set_dir_access(&self, dir: &FaultDir, access: Access) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.change("directory access", dir.0)?;
        let looks = &mut state.node_mut(dir.0).looks;
        (looks.uid, looks.gid, looks.mode) = (access.uid, access.gid, access.mode);
        Ok(())
    }

    #[track_caller]
    fn remove_dir(&self, dir: &FaultDir, name: &EntryName) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.change("remove directory", name)?;
        let inode = *state.entries(dir.0).get(name).ok_or_else(|| errno(ENOENT))?;
        if !state.entries(inode).is_empty() {
            return Err(errno(ENOTEMPTY));
        }
        state.edit(dir.0, Change::Unset(name.clone()));
        Ok(())
    }

    fn try_lock(&self, file: &FaultFile) -> io::Result<LockAnswer> {
        let mut state = self.0.borrow_mut();
        state.look()?;
        match state.locks.get(&file.inode) {
            _ if state.faults.ignores_locks => Ok(LockAnswer::Granted),
            Some(handle) if *handle != file.handle => {
                Ok(LockAnswer::Held(Holder { pid: (*handle == 0).then_some(4711) }))
            }
            _ => {
                state.locks.insert(file.inode, file.handle);
                Ok(LockAnswer::Granted)
            }
        }
    }

    fn writer_below(&self, _dir: &FaultDir) -> Option<(Holder, PathBuf)> {
        None
    }

    fn user(&self) -> u32 {
        USER
    }
}

impl FaultFs {
    fn handle(&self, state: &mut State, inode: u64) -> FaultFile {
        let handle = state.next_handle;
        state.next_handle += 1;
        FaultFile { inode, handle, position: Cell::new(0), disk: self.clone() }
    }
}

//! The disk itself, by calls relative to open directories.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, ResolveFlags, Statx, StatxFlags, Timespec, Timestamps, Uid, XattrFlags,
};
use rustix::io::Errno;

use super::fs::{Access, EntryName, FileStat, Fs, FsKind, Holder, LockAnswer, NodeKind, Xattrs};

/// Bytes moved at once where the kernel cannot copy by itself.
const COPY_BUFFER: usize = 256 * 1024;

/// The disk.
#[derive(Clone, Copy, Default, Debug)]
pub struct RealFs;

/// An open directory.
#[derive(Debug)]
pub struct RealDir(OwnedFd);

/// Flags that every file is opened with: no link followed, no waiting for the other end of a pipe, nothing inherited.
fn safe_flags() -> OFlags {
    OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC
}

/// Opens one name below `dir`, on the same device, through no link of any kind.
fn open_below(dir: &RealDir, name: &EntryName, flags: OFlags) -> io::Result<OwnedFd> {
    let resolve =
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    match rustix::fs::openat2(&dir.0, name.as_os_str(), flags, Mode::empty(), resolve) {
        // Kernels before 5.6 and some sandboxes have no openat2; for a single component O_NOFOLLOW means the same but for
        // the device, which is compared.
        Err(Errno::NOSYS | Errno::PERM) => {
            let fd = rustix::fs::openat(&dir.0, name.as_os_str(), flags, Mode::empty())?;
            let same = stat_fd(&fd)?.device == stat_fd(&dir.0)?.device;
            if same { Ok(fd) } else { Err(Errno::XDEV.into()) }
        }
        other => Ok(other?),
    }
}

fn open_regular(dir: &RealDir, name: &EntryName, flags: OFlags) -> io::Result<File> {
    let fd = open_below(dir, name, flags | safe_flags())?;
    let kind = stat_fd(&fd)?.kind;
    if kind != NodeKind::Regular {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("expected a regular file, found {}", kind.name()),
        ));
    }
    Ok(File::from(fd))
}

fn stat_fd(fd: &impl std::os::fd::AsFd) -> io::Result<FileStat> {
    Ok(to_stat(&rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?))
}

fn to_stat(stat: &Statx) -> FileStat {
    let nanos = |t: rustix::fs::StatxTimestamp| i128::from(t.tv_sec) * 1_000_000_000 + i128::from(t.tv_nsec);
    let kind = match rustix::fs::FileType::from_raw_mode(u32::from(stat.stx_mode)) {
        rustix::fs::FileType::RegularFile => NodeKind::Regular,
        rustix::fs::FileType::Directory => NodeKind::Directory,
        rustix::fs::FileType::Symlink => NodeKind::Symlink,
        rustix::fs::FileType::Fifo => NodeKind::Fifo,
        rustix::fs::FileType::Socket => NodeKind::Socket,
        _ => NodeKind::Device,
    };
    FileStat {
        kind,
        device: rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor),
        inode: stat.stx_ino,
        links: u64::from(stat.stx_nlink),
        size_bytes: stat.stx_size,
        mode: u32::from(stat.stx_mode) & 0o7777,
        uid: stat.stx_uid,
        gid: stat.stx_gid,
        mtime_ns: nanos(stat.stx_mtime),
        ctime_ns: nanos(stat.stx_ctime),
        frozen: stat
            .stx_attributes
            .intersects(rustix::fs::StatxAttributes::IMMUTABLE | rustix::fs::StatxAttributes::APPEND),
    }
}

fn set_access(file: &impl std::os::fd::AsFd, access: Access) -> io::Result<()> {
    let now = stat_fd(file)?;
    if (now.uid, now.gid) != (access.uid, access.gid) {
        // Only what differs: the owner of a file may set a group, and never an owner.
        let owner = (now.uid != access.uid).then(|| Uid::from_raw(access.uid));
        let group = (now.gid != access.gid).then(|| Gid::from_raw(access.gid));
        rustix::fs::fchown(file, owner, group)?;
    }
    // Always: a change of owner clears bits.
    Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(access.mode))?)
}

/// A nameless file that gets its name when owner and mode are right. `None` where the file system has no such files.
fn create_unnamed(dir: &RealDir, name: &EntryName, access: Access) -> io::Result<Option<File>> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let fd = match rustix::fs::openat(&dir.0, ".", flags, Mode::from_raw_mode(0o600)) {
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => return Ok(None),
        other => other?,
    };
    set_access(&fd, access)?;
    let own_name = format!("/proc/self/fd/{}", fd.as_raw_fd());
    match rustix::fs::linkat(CWD, own_name, &dir.0, name.as_os_str(), AtFlags::SYMLINK_FOLLOW) {
        // No /proc here.
        Err(Errno::NOENT) => Ok(None),
        other => Ok(other.map(|()| Some(File::from(fd)))?),
    }
}

fn create_named(dir: &RealDir, name: &EntryName, access: Access) -> io::Result<File> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | safe_flags();
    // Readable by all while it is empty, lest a broker that starts now meets a file it cannot read.
    let fd = rustix::fs::openat(&dir.0, name.as_os_str(), flags, Mode::from_raw_mode(0o644))?;
    if let Err(error) = set_access(&fd, access) {
        rustix::fs::unlinkat(&dir.0, name.as_os_str(), AtFlags::empty())?;
        return Err(error);
    }
    Ok(File::from(fd))
}

fn copy_by_hand(from: &File, position: u64, mut to: &File, size_bytes: u64) -> io::Result<u64> {
    let mut buffer = vec![0; COPY_BUFFER.min(usize::try_from(size_bytes).unwrap_or(COPY_BUFFER))];
    let read = from.read_at(&mut buffer, position)?;
    let bytes = buffer.get(..read).unwrap_or_default();
    to.write_all(bytes)?;
    Ok(read as u64)
}

#[expect(clippy::cast_possible_truncation, reason = "two small constants of the C library")]
fn write_lock() -> libc::flock {
    libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

fn timestamps(mtime_ns: i128) -> io::Result<Timestamps> {
    let sec = i64::try_from(mtime_ns.div_euclid(1_000_000_000)).map_err(|_| Errno::INVAL)?;
    let nsec = i64::try_from(mtime_ns.rem_euclid(1_000_000_000)).map_err(|_| Errno::INVAL)?;
    let keep = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    Ok(Timestamps { last_access: keep, last_modification: Timespec { tv_sec: sec, tv_nsec: nsec } })
}

impl Fs for RealFs {
    type Dir = RealDir;
    type File = File;

    fn open_dir(&self, path: &Path) -> io::Result<RealDir> {
        // A slash at the end would follow a link.
        let path: PathBuf = path.components().collect();
        let path = if path.as_os_str().is_empty() { PathBuf::from(".") } else { path };
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(RealDir(rustix::fs::openat(CWD, &path, flags, Mode::empty())?))
    }

    fn open_subdir(&self, dir: &RealDir, name: &EntryName) -> io::Result<RealDir> {
        open_below(dir, name, OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC).map(RealDir)
    }

    fn stat(&self, dir: &RealDir, name: &EntryName) -> io::Result<Option<FileStat>> {
        match rustix::fs::statx(&dir.0, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS) {
            Err(Errno::NOENT) => Ok(None),
            other => Ok(Some(to_stat(&other?))),
        }
    }

    fn stat_dir(&self, dir: &RealDir) -> io::Result<FileStat> {
        stat_fd(&dir.0)
    }

    fn stat_file(&self, file: &File) -> io::Result<FileStat> {
        stat_fd(file)
    }

    fn list(&self, dir: &RealDir) -> io::Result<Vec<EntryName>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&dir.0)? {
            let name = std::ffi::OsString::from_vec(entry?.file_name().to_bytes().to_vec());
            names.extend(EntryName::new(name));
        }
        Ok(names)
    }

    fn free_bytes(&self, dir: &RealDir) -> io::Result<u64> {
        let stat = rustix::fs::fstatvfs(&dir.0)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn kind(&self, dir: &RealDir) -> io::Result<FsKind> {
        const EXT4: u64 = 0xEF53;
        const XFS: u64 = 0x5846_5342;
        const BTRFS: u64 = 0x9123_683E;
        const TMPFS: u64 = 0x0102_1994;
        const OVERLAY: u64 = 0x794C_7630;
        let magic = rustix::fs::fstatfs(&dir.0)?.f_type as u64 & 0xFFFF_FFFF;
        let known = [EXT4, XFS, BTRFS, TMPFS, OVERLAY].contains(&magic);
        Ok(if known { FsKind::Known } else { FsKind::Unknown(magic) })
    }

    fn open_file(&self, dir: &RealDir, name: &EntryName) -> io::Result<File> {
        open_regular(dir, name, OFlags::RDONLY)
    }

    fn open_lock(&self, dir: &RealDir, name: &EntryName) -> io::Result<File> {
        open_regular(dir, name, OFlags::RDWR)
    }

    fn open_append(&self, dir: &RealDir, name: &EntryName) -> io::Result<File> {
        open_regular(dir, name, OFlags::RDWR | OFlags::APPEND)
    }

    fn read_at(&self, file: &File, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, position.saturating_add(filled as u64)) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn xattrs(&self, file: &File) -> io::Result<Xattrs> {
        let mut list = vec![0; 64 * 1024];
        let size = match rustix::fs::flistxattr(file, &mut list[..]) {
            Err(Errno::OPNOTSUPP) => return Ok(Xattrs::new()),
            other => other?,
        };
        list.truncate(size);
        let mut found = Xattrs::new();
        for name in list.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let name = std::ffi::OsString::from_vec(name.to_vec());
            let mut value = vec![0; 64 * 1024];
            let size = rustix::fs::fgetxattr(file, &name, &mut value[..])?;
            value.truncate(size);
            found.insert(name, value);
        }
        Ok(found)
    }

    fn create(&self, dir: &RealDir, name: &EntryName, access: Access) -> io::Result<File> {
        match create_unnamed(dir, name, access)? {
            Some(file) => Ok(file),
            None => create_named(dir, name, access),
        }
    }

    fn reserve(&self, file: &File, size_bytes: u64) -> io::Result<()> {
        if size_bytes == 0 {
            return Ok(());
        }
        match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::KEEP_SIZE, 0, size_bytes) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            other => Ok(other?),
        }
    }

    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<usize> {
        file.write(bytes)
    }

    fn clone_content(&self, from: &File, to: &File) -> io::Result<bool> {
        match rustix::fs::ioctl_ficlone(to, from) {
            Ok(()) => Ok(true),
            Err(Errno::OPNOTSUPP | Errno::XDEV | Errno::INVAL | Errno::NOTTY | Errno::NOSYS | Errno::TXTBSY) => {
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn copy_range(&self, from: &File, position: u64, to: &File, size_bytes: u64) -> io::Result<u64> {
        let mut place = position;
        let at_once = usize::try_from(size_bytes.min(1 << 30)).unwrap_or(COPY_BUFFER);
        match rustix::fs::copy_file_range(from, Some(&mut place), to, None, at_once) {
            // Some kernels answer 0 where they cannot; reading by hand tells the end of the file from that.
            Ok(0) | Err(Errno::OPNOTSUPP | Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::PERM) => {
                copy_by_hand(from, position, to, size_bytes)
            }
            other => Ok(other? as u64),
        }
    }

    fn cut(&self, file: &File, size_bytes: u64) -> io::Result<()> {
        Ok(rustix::fs::ftruncate(file, size_bytes)?)
    }

    fn set_xattr(&self, file: &File, name: &OsStr, value: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::fsetxattr(file, name, value, XattrFlags::empty())?)
    }

    fn set_mtime(&self, file: &File, mtime_ns: i128) -> io::Result<()> {
        Ok(rustix::fs::futimens(file, &timestamps(mtime_ns)?)?)
    }

    fn set_dir_mtime(&self, dir: &RealDir, mtime_ns: i128) -> io::Result<()> {
        Ok(rustix::fs::futimens(&dir.0, &timestamps(mtime_ns)?)?)
    }

    fn sync_file(&self, file: &File) -> io::Result<()> {
        Ok(rustix::fs::fsync(file)?)
    }

    fn sync_dir(&self, dir: &RealDir) -> io::Result<()> {
        Ok(rustix::fs::fsync(&dir.0)?)
    }

    fn rename(&self, dir: &RealDir, from: &EntryName, to: &EntryName) -> io::Result<()> {
        Ok(rustix::fs::renameat(&dir.0, from.as_os_str(), &dir.0, to.as_os_str())?)
    }

    fn link(&self, dir: &RealDir, name: &EntryName, to_dir: &RealDir, to: &EntryName) -> io::Result<()> {
        Ok(rustix::fs::linkat(&dir.0, name.as_os_str(), &to_dir.0, to.as_os_str(), AtFlags::empty())?)
    }

    fn remove(&self, dir: &RealDir, name: &EntryName) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&dir.0, name.as_os_str(), AtFlags::empty())?)
    }

    fn make_dir(&self, dir: &RealDir, name: &EntryName, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&dir.0, name.as_os_str(), Mode::from_raw_mode(mode))?)
    }

    fn set_dir_access(&self, dir: &RealDir, access: Access) -> io::Result<()> {
        set_access(&dir.0, access)
    }

    fn remove_dir(&self, dir: &RealDir, name: &EntryName) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&dir.0, name.as_os_str(), AtFlags::REMOVEDIR)?)
    }

    fn try_lock(&self, file: &File) -> io::Result<LockAnswer> {
        // Not flock(2), which a JVM's lock does not conflict with, and not F_SETLK, which any close() of the file drops.
        match fcntl(file, FcntlArg::F_OFD_SETLK(&write_lock())) {
            Ok(_) => Ok(LockAnswer::Granted),
            Err(nix::Error::EAGAIN | nix::Error::EACCES) => {
                let mut lock = write_lock();
                let asked = fcntl(file, FcntlArg::F_GETLK(&mut lock));
                let pid = asked.is_ok().then_some(lock.l_pid).filter(|pid| *pid > 0);
                Ok(LockAnswer::Held(Holder { pid }))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn writer_below(&self, dir: &RealDir) -> Option<(Holder, PathBuf)> {
        let below = std::fs::read_link(format!("/proc/self/fd/{}", dir.0.as_raw_fd())).ok()?;
        let own = std::process::id().to_string();
        for process in std::fs::read_dir("/proc").ok()?.flatten() {
            let name = process.file_name();
            let Some(pid) = name.to_str().filter(|n| *n != own).and_then(|n| n.parse::<i32>().ok()) else { continue };
            if is_child_before_exec(&process.path(), &own) {
                continue;
            }
            // Of other users' processes only root sees the files.
            let Ok(files) = std::fs::read_dir(process.path().join("fd")) else { continue };
            for file in files.flatten() {
                let Ok(target) = std::fs::read_link(file.path()) else { continue };
                if target.starts_with(&below) && is_open_for_writing(&process.path(), &file.file_name()) {
                    return Some((Holder { pid: Some(pid) }, target));
                }
            }
        }
        None
    }

    fn user(&self) -> u32 {
        rustix::process::geteuid().as_raw()
    }
}

/// Whether a process is our child and still runs our program: it has our files until it runs another, and does nothing with them.
fn is_child_before_exec(process: &Path, own: &str) -> bool {
    let program = |process: &Path| std::fs::read_link(process.join("exe")).ok();
    let Ok(stat) = std::fs::read_to_string(process.join("stat")) else { return false };
    // The name in parentheses may hold anything; state and parent follow it.
    let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
    parent == Some(own) && program(process).is_some_and(|path| Some(path) == program(Path::new("/proc/self")))
}

/// Whether a descriptor of a process is open for writing, by `/proc/<pid>/fdinfo/<n>`.
fn is_open_for_writing(process: &Path, descriptor: &OsStr) -> bool {
    let Ok(info) = std::fs::read_to_string(process.join("fdinfo").join(descriptor)) else { return false };
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let mode = flags.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok());
    mode.is_some_and(|mode| mode & (libc::O_ACCMODE as u32) != 0)
}

//! The calls with which a directory is changed, as a trait: one implementation for the disk, one for tests that loses power.
//!
//! Every name is one component relative to an open directory, so no link planted on the way can lead elsewhere. Knows nothing
//! of Kafka.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One component of a path: not empty, not `.` or `..`, without `/` and NUL.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EntryName(OsString);

impl EntryName {
    /// The name, or `None` where it is not a single component.
    pub fn new(name: impl Into<OsString>) -> Option<Self> {
        let name = name.into();
        let bytes = name.as_bytes();
        let plain =
            !bytes.is_empty() && bytes != b"." && bytes != b".." && !bytes.contains(&b'/') && !bytes.contains(&0);
        plain.then_some(Self(name))
    }

    /// The name as the operating system has it.
    pub fn as_os_str(&self) -> &OsStr {
        &self.0
    }

    /// The name's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// This name with `suffix` behind it.
    pub(crate) fn with_suffix(&self, suffix: &str) -> Self {
        let mut name = self.0.clone();
        name.push(suffix);
        Self(name)
    }
}

impl AsRef<Path> for EntryName {
    fn as_ref(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl fmt::Display for EntryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Path::new(&self.0).display())
    }
}

/// What stands under a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeKind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A block or character device.
    Device,
}

impl NodeKind {
    /// The words for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Regular => "a regular file",
            Self::Directory => "a directory",
            Self::Symlink => "a symbolic link",
            Self::Fifo => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
        }
    }
}

/// What the file system says of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileStat {
    /// What it is.
    pub kind: NodeKind,
    /// The device it lies on.
    pub device: u64,
    /// Its inode number on that device.
    pub inode: u64,
    /// Names that lead to it.
    pub links: u64,
    /// Its length in bytes.
    pub size_bytes: u64,
    /// Permission bits, the lower 12.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Last change of content, nanoseconds since 1970.
    pub mtime_ns: i128,
    /// Last change of content or attributes, nanoseconds since 1970.
    pub ctime_ns: i128,
    /// Marked so that it can be neither replaced nor removed (`chattr +i`, `+a`).
    pub frozen: bool,
}

/// A family of file systems, as far as locks and copies differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FsKind {
    /// ext4, xfs, btrfs, tmpfs or overlay: a lock that is held is seen by every process of this machine.
    Known,
    /// A network or unknown file system, with its magic number: a lock of another machine may not be seen.
    Unknown(u64),
}

/// Who holds something we want.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Holder {
    /// The process, where the system tells.
    pub pid: Option<i32>,
}

/// The answer to asking for a lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LockAnswer {
    /// It is ours until the file is closed.
    Granted,
    /// Somebody else has it.
    Held(Holder),
}

/// Owner, group and mode of a new file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Permission bits.
    pub mode: u32,
}

/// Extended attributes by name, access control lists and security labels among them.
pub type Xattrs = BTreeMap<OsString, Vec<u8>>;

/// The file system, as far as `store` needs it. All names are single components below an open directory.
///
/// What a crash leaves is promised by `sync_file` and `sync_dir` alone: a call that has returned may be lost until then.
pub trait Fs {
    /// An open directory.
    type Dir: fmt::Debug;
    /// An open file.
    type File: fmt::Debug;

    /// Opens a directory by path; the last component must not be a symbolic link.
    fn open_dir(&self, path: &Path) -> io::Result<Self::Dir>;
    /// Opens a directory inside another, on the same device and not through a link.
    fn open_subdir(&self, dir: &Self::Dir, name: &EntryName) -> io::Result<Self::Dir>;
    /// What stands under a name itself, links not followed; `None` where nothing does.
    fn stat(&self, dir: &Self::Dir, name: &EntryName) -> io::Result<Option<FileStat>>;
    /// What an open directory is.
    fn stat_dir(&self, dir: &Self::Dir) -> io::Result<FileStat>;
    /// What an open file is.
    fn stat_file(&self, file: &Self::File) -> io::Result<FileStat>;
    /// All names in a directory, in any order.
    fn list(&self, dir: &Self::Dir) -> io::Result<Vec<EntryName>>;
    /// Bytes an unprivileged user may still write on the directory's file system.
    fn free_bytes(&self, dir: &Self::Dir) -> io::Result<u64>;
    /// Which family of file systems a directory lies on.
    fn kind(&self, dir: &Self::Dir) -> io::Result<FsKind>;

    /// Opens a regular file for reading, never through a link and never waiting for a pipe.
    fn open_file(&self, dir: &Self::Dir, name: &EntryName) -> io::Result<Self::File>;
    /// Opens a regular file for reading and writing, for its lock alone.
    fn open_lock(&self, dir: &Self::Dir, name: &EntryName) -> io::Result<Self::File>;
    /// Opens a regular file for appending.
    fn open_append(&self, dir: &Self::Dir, name: &EntryName) -> io::Result<Self::File>;
    /// Reads at a place; fewer bytes than asked for only at the end of the file, 0 there.
    fn read_at(&self, file: &Self::File, position: u64, buffer: &mut [u8]) -> io::Result<usize>;
    /// The extended attributes.
    fn xattrs(&self, file: &Self::File) -> io::Result<Xattrs>;

    /// Makes an empty file that must not exist yet and that appears with owner and mode already right: a broker that starts
    /// between two calls would give up the log dir over a file it cannot read.
    fn create(&self, dir: &Self::Dir, name: &EntryName, access: Access) -> io::Result<Self::File>;
    /// Reserves room for `size_bytes`, so that a full disk shows before the first byte.
    fn reserve(&self, file: &Self::File, size_bytes: u64) -> io::Result<()>;
    /// Appends; may take fewer bytes than given.
    fn write(&self, file: &Self::File, bytes: &[u8]) -> io::Result<usize>;
    /// Makes `to`, which is empty, share all bytes of `from`; `false` where the file system cannot.
    fn clone_content(&self, from: &Self::File, to: &Self::File) -> io::Result<bool>;
    /// Appends `size_bytes` of `from`, starting at `position`; may take fewer; 0 at the end of `from`.
    fn copy_range(&self, from: &Self::File, position: u64, to: &Self::File, size_bytes: u64) -> io::Result<u64>;
    /// Cuts a file.
    fn cut(&self, file: &Self::File, size_bytes: u64) -> io::Result<()>;
    /// Sets one extended attribute.
    fn set_xattr(&self, file: &Self::File, name: &OsStr, value: &[u8]) -> io::Result<()>;
    /// Sets the time of last change; the last thing before `sync_file`.
    fn set_mtime(&self, file: &Self::File, mtime_ns: i128) -> io::Result<()>;
    /// Sets a directory's time of last change.
    fn set_dir_mtime(&self, dir: &Self::Dir, mtime_ns: i128) -> io::Result<()>;

    /// Makes content and attributes of a file durable. After an error nothing is known of them.
    fn sync_file(&self, file: &Self::File) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Self::Dir) -> io::Result<()>;

    /// Gives a file of the directory another name there, replacing what stands under it.
    fn rename(&self, dir: &Self::Dir, from: &EntryName, to: &EntryName) -> io::Result<()>;
    /// Gives a file a second name, which must be free.
    fn link(&self, dir: &Self::Dir, name: &EntryName, to_dir: &Self::Dir, to: &EntryName) -> io::Result<()>;
    /// Removes the name of a file.
    fn remove(&self, dir: &Self::Dir, name: &EntryName) -> io::Result<()>;
    /// Makes a directory that must not exist yet.
    fn make_dir(&self, dir: &Self::Dir, name: &EntryName, mode: u32) -> io::Result<()>;
    /// Sets owner, group and mode of a directory.
    fn set_dir_access(&self, dir: &Self::Dir, access: Access) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, dir: &Self::Dir, name: &EntryName) -> io::Result<()>;

    /// Asks for the lock that a JVM sees (POSIX record lock, all bytes), owned by the open file, without waiting.
    fn try_lock(&self, file: &Self::File) -> io::Result<LockAnswer>;
    /// A process other than ours that has a file below this directory open for writing, where that can be told.
    fn writer_below(&self, dir: &Self::Dir) -> Option<(Holder, PathBuf)>;
    /// The user this process acts as.
    fn user(&self) -> u32;
}

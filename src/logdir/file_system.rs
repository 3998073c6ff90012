//! The file system under a log dir: what kind it is, how it is mounted, how much room is left. Linux only; elsewhere unknown.

use std::path::{Path, PathBuf};

use super::error::ReadError;

/// What is known of a file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileSystem {
    /// Its size.
    pub total_bytes: u64,
    /// Free bytes, those kept for the superuser included.
    pub free_bytes: u64,
    /// Bytes that an ordinary process may still take.
    pub available_bytes: u64,
    /// Free inodes; `None` where the file system has no fixed number of them.
    pub free_inodes: Option<u64>,
    /// How it is mounted; `None` where the system does not say.
    pub mount: Option<Mount>,
}

/// A line of `/proc/self/mountinfo`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mount {
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// `ext4`, `xfs`, `nfs4` ...
    pub kind: String,
    /// The device or its like.
    pub source: String,
    /// Options of the mount and of the file system, in the order of the system, each once.
    pub options: Vec<String>,
}

/// Asks for the file system that `path` lies on.
pub fn file_system_of(path: &Path) -> Result<FileSystem, ReadError> {
    let stat = rustix::fs::statvfs(path).map_err(|error| ReadError::io(path, error.into()))?;
    let absolute = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    Ok(FileSystem {
        total_bytes: stat.f_blocks.saturating_mul(stat.f_frsize),
        free_bytes: stat.f_bfree.saturating_mul(stat.f_frsize),
        available_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
        free_inodes: (stat.f_files > 0).then_some(stat.f_ffree),
        mount: mount_of(&absolute, &mounts),
    })
}

/// The mount that holds `path`: the longest mount point above it, and of equal ones the last, which hides the others.
fn mount_of(path: &Path, mounts: &str) -> Option<Mount> {
    let candidates = mounts.lines().filter_map(parse_mount).filter(|mount| path.starts_with(&mount.mount_point));
    candidates.max_by_key(|mount| mount.mount_point.as_os_str().len())
}

/// `36 35 98:0 /root /mount/point rw,noatime master:1 - ext4 /dev/root rw,errors=continue` (proc(5)).
fn parse_mount(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(4);
    let mount_point = PathBuf::from(unescape(left.next()?));
    let mut right = right.split(' ');
    let kind = right.next()?.to_owned();
    let source = unescape(right.next()?);
    let mut options: Vec<String> = Vec::new();
    for option in [left.next()?, right.next().unwrap_or_default()].into_iter().flat_map(|list| list.split(',')) {
        if !option.is_empty() && !options.iter().any(|seen| seen == option) {
            options.push(option.to_owned());
        }
    }
    Some(Mount { mount_point, kind, source, options })
}

/// Blanks, tabs, line ends and backslashes stand in octal.
fn unescape(text: &str) -> String {
    text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
30 21 8:17 / /var/lib/kafka rw,noatime shared:2 - xfs /dev/sdb1 rw,attr2,inode64
31 30 0:40 / /var/lib/kafka/with\\040space rw - nfs4 server:/export rw,vers=4.2
";

    #[test]
    fn the_longest_mount_point_above_a_path_holds_it() {
        let kind = |path: &str| mount_of(Path::new(path), MOUNTS).map(|mount| mount.kind);
        assert_eq!(kind("/var/lib/kafka/orders-0").as_deref(), Some("xfs"));
        assert_eq!(kind("/var/lib/kafka-2").as_deref(), Some("ext4"));
        assert_eq!(kind("/var/lib/kafka/with space/x").as_deref(), Some("nfs4"));
    }

    #[test]
    fn options_of_mount_and_file_system_stand_together_without_repetition() {
        let mount = mount_of(Path::new("/var/lib/kafka"), MOUNTS).unwrap();
        assert_eq!(mount.options, ["rw", "noatime", "attr2", "inode64"]);
        assert_eq!((mount.source.as_str(), mount.mount_point.to_str()), ("/dev/sdb1", Some("/var/lib/kafka")));
    }

    #[test]
    fn a_directory_lies_on_some_file_system() {
        let directory = tempfile::tempdir().unwrap();
        let found = file_system_of(directory.path()).unwrap();
        assert!(found.total_bytes >= found.free_bytes);
    }
}

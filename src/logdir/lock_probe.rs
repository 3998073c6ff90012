//! Whether a process holds a log dir's lock, asked without taking it.
//!
//! A broker holds a POSIX record lock on `.lock` (`FileChannel.tryLock` of the JVM). `F_GETLK` sees it, works on a descriptor that
//! is open for reading only, and changes nothing. `flock` would not see it.

use std::fs::File;
use std::path::Path;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

/// Who holds the lock of a log dir.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockHolder {
    /// Nobody, or there is no `.lock`.
    Nobody,
    /// A process of this id; 0 where it cannot be named, as for a lock of an open file description.
    Process(i32),
}

/// Asks who holds the lock of a log dir. What cannot be asked counts as held by nobody: reading goes on either way.
pub fn probe_lock(log_dir: &Path) -> LockHolder {
    let Ok(file) = File::open(log_dir.join(".lock")) else { return LockHolder::Nobody };
    let mut lock = write_lock_of_whole_file();
    match fcntl(&file, FcntlArg::F_GETLK(&mut lock)) {
        Ok(_) if i32::from(lock.l_type) != libc::F_UNLCK => LockHolder::Process(lock.l_pid.max(0)),
        _ => LockHolder::Nobody,
    }
}

/// The lock that a broker takes: exclusive, from byte 0 to the end however far that is.
fn write_lock_of_whole_file() -> libc::flock {
    libc::flock {
        l_type: i16::try_from(libc::F_WRLCK).unwrap_or_default(),
        l_whence: i16::try_from(libc::SEEK_SET).unwrap_or_default(),
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_without_a_lock_file_is_held_by_nobody() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(probe_lock(directory.path()), LockHolder::Nobody);
        std::fs::write(directory.path().join(".lock"), b"").unwrap();
        assert_eq!(probe_lock(directory.path()), LockHolder::Nobody);
    }

    #[test]
    fn a_held_lock_is_seen_and_stays_held() {
        let directory = tempfile::tempdir().unwrap();
        let file = File::create(directory.path().join(".lock")).unwrap();
        fcntl(&file, FcntlArg::F_OFD_SETLK(&write_lock_of_whole_file())).unwrap();
        assert!(matches!(probe_lock(directory.path()), LockHolder::Process(_)));
        assert!(matches!(probe_lock(directory.path()), LockHolder::Process(_)));
    }
}

//! The identity of a plan: what it was made from, so that what is applied is what was read.

use std::hash::Hasher;
use std::path::Path;

use siphasher::sip128::{Hasher128, SipHasher13};

use super::error::{At, StoreError};
use super::fs::{EntryName, FileStat, Fs};
use super::step::Place;
use super::survey::open_place;

/// A digest over a command, its options, and every input file's path, size, times and inode.
///
/// SipHash-1-3 with 128 bits and fixed keys: it tells plans apart that differ by chance or by work on the files. Who can write to
/// the log dir needs no collision to do harm.
#[derive(Clone, Debug)]
pub struct PlanDigest(SipHasher13);

impl PlanDigest {
    /// Begins with the command, its options in a fixed form, and the instant the plan is made for.
    pub fn new(command: &str, options: &str, now_ms: i64) -> Self {
        let mut digest = Self(SipHasher13::new());
        digest.add(command.as_bytes());
        digest.add(options.as_bytes());
        digest.add(&now_ms.to_be_bytes());
        digest
    }

    fn add(&mut self, bytes: &[u8]) {
        self.0.write(&(bytes.len() as u64).to_be_bytes());
        self.0.write(bytes);
    }

    fn add_stat(&mut self, stat: &FileStat) {
        self.add(&stat.size_bytes.to_be_bytes());
        self.add(&stat.mtime_ns.to_be_bytes());
        self.add(&stat.ctime_ns.to_be_bytes());
        self.add(&stat.inode.to_be_bytes());
    }

    /// Adds every entry of a place: a partition's files, or the plain files of the log dir but those of a lock or a run.
    pub fn add_place<F: Fs>(&mut self, fs: &F, log_dir: &Path, place: &Place) -> Result<(), StoreError> {
        let root = fs.open_dir(log_dir).at(log_dir, "opening the log dir")?;
        let (dir, _) = open_place(fs, &root, log_dir, place)?;
        let path = place.path_in(log_dir);
        let mut names = fs.list(&dir).at(&path, "listing a directory")?;
        names.sort();
        self.add(path.as_os_str().as_encoded_bytes());
        for name in names.iter().filter(|name| *place != Place::LogDir || !is_own(name)) {
            let Some(stat) = fs.stat(&dir, name).at(&path.join(name), "looking at a file")? else { continue };
            if *place != Place::LogDir || stat.kind == super::fs::NodeKind::Regular {
                self.add(name.as_bytes());
                self.add_stat(&stat);
            }
        }
        Ok(())
    }

    /// 32 hexadecimal digits.
    pub fn finish(&self) -> String {
        let hash = self.0.finish128();
        format!("{:016x}{:016x}", hash.h1, hash.h2)
    }
}

/// A file of the log dir that comes and goes with a broker's lock or with a run.
fn is_own(name: &EntryName) -> bool {
    name.as_bytes() == b".lock" || name.as_bytes().starts_with(b"segtool-")
}

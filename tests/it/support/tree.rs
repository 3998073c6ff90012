//! A directory as a value, for comparison before and after.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::sha256_hex;

/// What is known of one file or directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// `None` for a directory.
    pub(crate) sha256: Option<String>,
    pub(crate) size_bytes: u64,
    pub(crate) mode: u32,
    /// `None` for a directory, whose time changes with its entries.
    pub(crate) modified_ns: Option<i128>,
}

/// All files and directories below a path, with their content, mode and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree(pub(crate) BTreeMap<PathBuf, Entry>);

impl Tree {
    pub(crate) fn of(root: &Path) -> Self {
        let mut entries = BTreeMap::new();
        let mut open = vec![PathBuf::new()];
        while let Some(below) = open.pop() {
            for found in fs::read_dir(root.join(&below)).unwrap() {
                let path = below.join(found.unwrap().file_name());
                let facts = fs::symlink_metadata(root.join(&path)).unwrap();
                let is_file = facts.is_file();
                let entry = Entry {
                    sha256: is_file.then(|| sha256_hex(&fs::read(root.join(&path)).unwrap())),
                    size_bytes: if is_file { facts.len() } else { 0 },
                    mode: facts.mode(),
                    modified_ns: is_file
                        .then(|| i128::from(facts.mtime()) * 1_000_000_000 + i128::from(facts.mtime_nsec())),
                };
                if facts.is_dir() {
                    open.push(path.clone());
                }
                entries.insert(path, entry);
            }
        }
        Self(entries)
    }

    /// Fails with a line for each path that differs.
    #[track_caller]
    pub(crate) fn assert_unchanged(&self, root: &Path) {
        let now = Self::of(root);
        let paths = self.0.keys().chain(now.0.keys()).collect::<std::collections::BTreeSet<_>>();
        let mut changes = String::new();
        for path in paths.into_iter().filter(|path| self.0.get(*path) != now.0.get(*path)) {
            writeln!(changes, "{}:\n  {:?}\n  {:?}", path.display(), self.0.get(path), now.0.get(path)).unwrap();
        }
        assert!(changes.is_empty(), "changed below {}:\n{changes}", root.display());
    }
}

#[test]
fn a_changed_time_is_a_change() {
    let sandbox = super::Sandbox::empty();
    let file = sandbox.write("orders-0/file", b"abc");
    let before = Tree::of(sandbox.path());
    before.assert_unchanged(sandbox.path());
    super::set_modified(&file, std::time::UNIX_EPOCH);
    assert_ne!(Tree::of(sandbox.path()), before);
}

//! Directories of a test's own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::TempDir;

/// A temporary directory that holds a log dir to work on, `data`, and room beside it for what commands write there
/// (undo journals, `--output`). It is removed in the end.
#[derive(Debug)]
pub(crate) struct Sandbox {
    temporary: TempDir,
    data: PathBuf,
}

impl Sandbox {
    /// With an empty `data` directory.
    pub(crate) fn empty() -> Self {
        let temporary = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        // Results that name a path name it as the file system does.
        let data = temporary.path().canonicalize().unwrap().join("data");
        fs::create_dir(&data).unwrap();
        Self { temporary, data }
    }

    /// With a copy of a directory as `data`: times, modes and empty directories kept.
    pub(crate) fn copy_of(source: &Path) -> Self {
        let sandbox = Self::empty();
        copy_tree(source, &sandbox.data);
        sandbox
    }

    /// The log dir.
    pub(crate) fn path(&self) -> &Path {
        &self.data
    }

    /// A path inside the log dir.
    pub(crate) fn join(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.data.join(relative)
    }

    /// A path beside the log dir.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.data.with_file_name(name)
    }

    /// Bytes of a file inside the log dir.
    pub(crate) fn read(&self, relative: impl AsRef<Path>) -> Vec<u8> {
        let path = self.join(relative);
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Writes a file inside the log dir, with its parent directories.
    pub(crate) fn write(&self, relative: impl AsRef<Path>, bytes: &[u8]) -> PathBuf {
        let path = self.join(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}

/// Copies a directory's content into an existing one: times, modes and empty directories kept.
pub(crate) fn copy_tree(source: &Path, target: &Path) {
    for entry in fs::read_dir(source).unwrap_or_else(|error| panic!("{}: {error}", source.display())) {
        let entry = entry.unwrap();
        let to = target.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&to).unwrap();
            copy_tree(&entry.path(), &to);
        } else {
            // `fs::copy` brings the mode; the time is set by a handle of its own, for which read access is enough.
            fs::copy(entry.path(), &to).unwrap();
            set_modified(&to, entry.metadata().unwrap().modified().unwrap());
        }
    }
}

/// Sets the modification time of a file.
pub(crate) fn set_modified(path: &Path, to: SystemTime) {
    File::open(path)
        .and_then(|file| file.set_modified(to))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Paths of all regular files below, relative to `root`, sorted.
pub(crate) fn files_below(root: &Path) -> Vec<PathBuf> {
    fn visit(root: &Path, below: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(root.join(below)).unwrap() {
            let entry = entry.unwrap();
            let path = below.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                visit(root, &path, found);
            } else {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    visit(root, Path::new(""), &mut found);
    found.sort();
    found
}

#[test]
fn a_copy_keeps_times_modes_and_empty_directories() {
    let source = Sandbox::empty();
    let file = source.write("orders-0/00000000000000000000.log", b"abc");
    let then = SystemTime::UNIX_EPOCH + std::time::Duration::new(1_700_000_000, 123_456_789);
    set_modified(&file, then);
    fs::create_dir(source.join("empty-0")).unwrap();

    let copy = Sandbox::copy_of(source.path());

    let facts = fs::metadata(copy.join("orders-0/00000000000000000000.log")).unwrap();
    assert_eq!(facts.modified().unwrap(), then);
    assert!(copy.join("empty-0").is_dir());
    assert_eq!(copy.read("orders-0/00000000000000000000.log"), b"abc");
}

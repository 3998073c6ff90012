//! Expected texts kept in files: generated pages, screens.

use std::fs;
use std::path::Path;

/// Set (to anything), tests write what they got instead of comparing it. The only such switch.
const UPDATE: &str = "UPDATE_GOLDEN";

/// Whether tests write what they got.
pub(crate) fn is_updating() -> bool {
    std::env::var_os(UPDATE).is_some()
}

/// Compares a text with the content of a file of the repository, or replaces the content when `UPDATE_GOLDEN` is set.
#[track_caller]
pub(crate) fn assert_golden(path: &Path, actual: &str) {
    if is_updating() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, actual).unwrap();
        return;
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    if expected == actual {
        return;
    }
    let at = expected.lines().zip(actual.lines()).position(|(expected, actual)| expected != actual);
    let at = at.unwrap_or_else(|| expected.lines().count().min(actual.lines().count()));
    panic!(
        "{} is not what it should be, first at line {}\nexpected: {}\n  actual: {}\nupdate it with {UPDATE}=1 cargo test --test it",
        path.display(),
        at + 1,
        expected.lines().nth(at).unwrap_or("<end>"),
        actual.lines().nth(at).unwrap_or("<end>"),
    );
}

//! A file that the user asked for by name, outside all log dirs: a plot.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Writes a file that must not exist yet: a name that was mistyped never costs a segment.
pub fn write_new_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_existing_file_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plot.svg");
        write_new_file(&path, b"one").unwrap();
        assert_eq!(write_new_file(&path, b"two").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
    }
}

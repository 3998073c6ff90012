//! What can go wrong between a path and its bytes.

use std::io;
use std::path::{Path, PathBuf};

use crate::format::{FormatError, Position};

/// A path and why it could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {kind}", path.display())]
pub struct ReadError {
    /// The file or directory.
    pub path: PathBuf,
    /// What happened.
    pub kind: ReadErrorKind,
}

/// Why a file or directory could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// The operating system refused.
    #[error(transparent)]
    Io(io::Error),
    /// The disk or the operating system refused a range of a file.
    #[error("reading at position {position}: {source}")]
    IoAt {
        /// Where the refused read began.
        position: Position,
        /// The refusal.
        source: io::Error,
    },
    /// A file is shorter than it was when it was opened.
    #[error("the file shrank while it was read: {expected} bytes when opened, nothing at position {position}")]
    Shrank {
        /// The size when the file was opened.
        expected: u64,
        /// Where no byte was found.
        position: Position,
    },
    /// Something else stands where a regular file should.
    #[error("expected a regular file, found {found}")]
    NotAFile {
        /// What it is.
        found: &'static str,
    },
    /// Something else stands where a directory should.
    #[error("expected a directory, found {found}")]
    NotADirectory {
        /// What it is.
        found: &'static str,
    },
    /// A small file is larger than any sound one could be.
    #[error("{size_bytes} bytes are more than the {limit} that are read of such a file")]
    TooLarge {
        /// Its size.
        size_bytes: u64,
        /// The bound.
        limit: u64,
    },
    /// The bytes do not have the form that the name promises.
    #[error(transparent)]
    Format(#[from] FormatError),
}

impl ReadError {
    /// A refusal of the operating system.
    pub fn io(path: &Path, error: io::Error) -> Self {
        Self::new(path, ReadErrorKind::Io(error))
    }

    /// Any reason.
    pub fn new(path: &Path, kind: ReadErrorKind) -> Self {
        Self { path: path.to_path_buf(), kind }
    }
}

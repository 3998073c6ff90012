//! Files read by position: whole ones of the disk, and ones put together from pieces of others.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, SeekFrom};
use rustix::io::Errno;

use super::assembled::{Assembled, FilePart};
use super::error::{ReadError, ReadErrorKind};
use super::mapped::MappedFile;
use crate::format::{Position, len_u64, len_usize};

/// At the end of a file, what is read even if it is a hole.
const LAST_BYTES: u64 = 4096;

/// How bulk scans read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum IoMode {
    /// Positioned reads: a shrinking file or a bad sector is an ordinary error.
    #[default]
    Pread,
    /// A memory map.
    Mmap,
}

/// A regular file open for reading. Its size is that of the moment of opening.
#[derive(Debug)]
pub struct SegmentFile {
    path: PathBuf,
    size: u64,
    source: Source,
    map: Option<MappedFile>,
}

#[derive(Debug)]
enum Source {
    File(File),
    Parts(Assembled),
}

/// Says in a word what a file type is, for errors.
pub(crate) fn describe_type(file_type: std::fs::FileType) -> &'static str {
    match () {
        () if file_type.is_file() => "a regular file",
        () if file_type.is_dir() => "a directory",
        () if file_type.is_symlink() => "a symbolic link",
        () if file_type.is_fifo() => "a FIFO",
        () if file_type.is_socket() => "a socket",
        () if file_type.is_block_device() || file_type.is_char_device() => "a device",
        () => "something unknown",
    }
}

impl SegmentFile {
    /// Opens a file for reading. A directory, FIFO, socket or device is refused without waiting on it.
    pub fn open(path: &Path, mode: IoMode) -> Result<Self, ReadError> {
        // Without O_NONBLOCK opening a FIFO waits for a writer.
        let nonblocking = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or(0);
        let file = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(nonblocking)
            .open(path)
            .map_err(|error| ReadError::io(path, error))?;
        let metadata = file.metadata().map_err(|error| ReadError::io(path, error))?;
        if !metadata.is_file() {
            return Err(ReadError::new(path, ReadErrorKind::NotAFile { found: describe_type(metadata.file_type()) }));
        }
        let size = metadata.len();
        let map = match mode {
            IoMode::Mmap => Some(MappedFile::new(&file, size).map_err(|error| ReadError::io(path, error))?),
            IoMode::Pread => None,
        };
        Ok(Self { path: path.to_path_buf(), size, source: Source::File(file), map })
    }

    /// A file that is put together from pieces of others; `path` is what errors call it.
    pub fn assembled(path: &Path, parts: Vec<FilePart>) -> Self {
        let parts = Assembled::new(parts);
        Self { path: path.to_path_buf(), size: parts.size(), source: Source::Parts(parts), map: None }
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes it had when it was opened.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Where it ends.
    pub fn end(&self) -> Position {
        Position(self.size)
    }

    /// All bytes, where the file is mapped.
    pub fn mapped(&self) -> Option<&[u8]> {
        self.map.as_ref().map(MappedFile::bytes)
    }

    /// Fills `buffer` from `position` on. Errors: what the disk refuses, and a file that has become shorter.
    pub fn read_exact_at(&self, buffer: &mut [u8], position: Position) -> Result<(), ReadError> {
        let file = match &self.source {
            Source::File(file) => file,
            Source::Parts(parts) => return parts.read_exact_at(buffer, position, &self.path),
        };
        let mut done = 0usize;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = position.advance(len_u64(done));
            match file.read_at(rest, at.0) {
                Ok(0) => {
                    let kind = ReadErrorKind::Shrank { expected: self.size, position: at };
                    return Err(ReadError::new(&self.path, kind));
                }
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(ReadError::new(&self.path, ReadErrorKind::IoAt { position: at, source })),
            }
        }
        Ok(())
    }

    /// Where the hole ends that the file has at a place, which reads as zeros and takes no disk; the place itself where there is none,
    /// or where the file system does not tell. The last bytes of the file always count as data: they show whether it has become shorter.
    pub(super) fn skip_hole(&self, from: Position) -> Position {
        let Source::File(file) = &self.source else { return from };
        let last = Position(self.size.saturating_sub(LAST_BYTES));
        match rustix::fs::seek(file, SeekFrom::Data(from.0)) {
            Ok(data) => Position(data).min(last).max(from),
            Err(Errno::NXIO) => last.max(from),
            Err(_) => from,
        }
    }

    /// The whole file, which must be at most `limit` bytes: for indexes, snapshots, checkpoints.
    pub fn read_whole(&self, limit: u64) -> Result<Vec<u8>, ReadError> {
        if self.size > limit {
            return Err(ReadError::new(&self.path, ReadErrorKind::TooLarge { size_bytes: self.size, limit }));
        }
        let mut bytes = vec![0; len_usize(self.size)];
        self.read_exact_at(&mut bytes, Position(0))?;
        Ok(bytes)
    }

    /// A reader over `[start, end)`.
    pub fn range_reader(&self, start: Position, end: Position) -> RangeReader<'_> {
        RangeReader { file: self, position: start, end: end.min(self.end()) }
    }
}

/// Reads a range of a file in order.
#[derive(Debug)]
pub struct RangeReader<'f> {
    file: &'f SegmentFile,
    position: Position,
    end: Position,
}

impl Read for RangeReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = len_usize(self.end.since(self.position));
        let wanted = left.min(buffer.len());
        let Some(part) = buffer.get_mut(..wanted) else { return Ok(0) };
        self.file.read_exact_at(part, self.position).map_err(|error| match error.kind {
            ReadErrorKind::Io(source) | ReadErrorKind::IoAt { source, .. } => source,
            _ => io::Error::new(io::ErrorKind::InvalidData, error),
        })?;
        self.position = self.position.advance(len_u64(wanted));
        Ok(wanted)
    }
}

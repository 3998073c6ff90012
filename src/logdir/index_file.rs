//! Index files opened for look-ups: mapped where nobody trims them meanwhile, else read.

use std::path::Path;

use super::error::ReadError;
use super::segment_file::{IoMode, SegmentFile};

/// The largest index that is read into memory where it cannot be mapped: ten times Kafka's default.
const MOST_READ_BYTES: u64 = 128 * 1024 * 1024;

/// The bytes of an index file.
#[derive(Debug)]
pub struct IndexFile(Bytes);

#[derive(Debug)]
enum Bytes {
    Mapped(SegmentFile),
    Read(Vec<u8>),
}

impl IndexFile {
    /// Opens an index. [`IoMode::Mmap`] only where no broker holds the log dir's lock: it may trim the file.
    pub fn open(path: &Path, mode: IoMode) -> Result<Self, ReadError> {
        let file = SegmentFile::open(path, mode)?;
        Ok(Self(match mode {
            IoMode::Mmap => Bytes::Mapped(file),
            IoMode::Pread => Bytes::Read(file.read_whole(MOST_READ_BYTES)?),
        }))
    }

    /// All its bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Bytes::Mapped(file) => file.mapped().unwrap_or_default(),
            Bytes::Read(bytes) => bytes,
        }
    }
}

//! Files that are not on the disk yet: put together from ranges of files that are, and from bytes. They read as any other file.

use std::sync::Arc;

use super::error::{ReadError, ReadErrorKind};
use super::segment_file::SegmentFile;
use crate::format::{Position, len_u64, len_usize};

/// A piece of an assembled file.
#[derive(Clone, Debug)]
pub enum FilePart {
    /// Bytes of a file on the disk.
    Range {
        /// The file.
        file: Arc<SegmentFile>,
        /// Where the piece starts in it.
        start: Position,
        /// How many bytes it has.
        len: u64,
    },
    /// Bytes in memory.
    Bytes(Arc<[u8]>),
    /// As many zeros.
    Zeros(u64),
}

impl FilePart {
    /// How many bytes the piece has.
    pub fn len(&self) -> u64 {
        match self {
            Self::Range { len, .. } | Self::Zeros(len) => *len,
            Self::Bytes(bytes) => len_u64(bytes.len()),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn read(&self, buffer: &mut [u8], skip: u64) -> Result<(), ReadError> {
        match self {
            Self::Range { file, start, .. } => return file.read_exact_at(buffer, start.advance(skip)),
            Self::Zeros(_) => buffer.fill(0),
            Self::Bytes(bytes) => {
                let from = bytes.get(len_usize(skip)..).unwrap_or_default();
                buffer.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            }
        }
        Ok(())
    }
}

/// The pieces of a file and where each starts.
#[derive(Debug)]
pub(super) struct Assembled {
    parts: Vec<(u64, FilePart)>,
    size: u64,
}

impl Assembled {
    pub(super) fn new(parts: Vec<FilePart>) -> Self {
        let mut size = 0u64;
        let mut placed = Vec::with_capacity(parts.len());
        for part in parts {
            let start = size;
            size = size.saturating_add(part.len());
            placed.push((start, part));
        }
        Self { parts: placed, size }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Fills `buffer` from `position` on; the whole of it must lie inside.
    pub(super) fn read_exact_at(
        &self,
        mut buffer: &mut [u8],
        position: Position,
        path: &std::path::Path,
    ) -> Result<(), ReadError> {
        let mut at = position.0;
        while !buffer.is_empty() {
            let after = self.parts.partition_point(|(start, _)| *start <= at);
            let part = after.checked_sub(1).and_then(|index| self.parts.get(index));
            let Some((start, part)) = part.filter(|(start, part)| at - start < part.len()) else {
                let kind = ReadErrorKind::Shrank { expected: self.size, position: Position(at) };
                return Err(ReadError::new(path, kind));
            };
            let skip = at - start;
            let count = len_usize(part.len() - skip).min(buffer.len());
            let Some((now, rest)) = buffer.split_at_mut_checked(count) else { return Ok(()) };
            part.read(now, skip)?;
            at = at.saturating_add(len_u64(count));
            buffer = rest;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::segment_file::IoMode;
    use super::*;

    #[test]
    fn pieces_read_as_one_file_across_their_borders() {
        let temporary = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(temporary.path(), b"0123456789").unwrap();
        let file = Arc::new(SegmentFile::open(temporary.path(), IoMode::Pread).unwrap());
        let parts = vec![
            FilePart::Range { file: file.clone(), start: Position(7), len: 3 },
            FilePart::Bytes(Arc::from(&b""[..])),
            FilePart::Bytes(Arc::from(&b"ab"[..])),
            FilePart::Zeros(2),
            FilePart::Range { file, start: Position(0), len: 2 },
        ];
        let whole = b"789ab\0\x0001";
        let assembled = SegmentFile::assembled(temporary.path(), parts);
        assert_eq!(assembled.size(), 9);
        assert_eq!(assembled.read_whole(9).unwrap(), whole);
        for start in 0..9 {
            let mut buffer = vec![9; 9 - start];
            assembled.read_exact_at(&mut buffer, Position(start as u64)).unwrap();
            assert_eq!(buffer, whole[start..], "from {start}");
        }
        let error = assembled.read_exact_at(&mut [0; 4], Position(6)).unwrap_err();
        assert!(matches!(error.kind, ReadErrorKind::Shrank { expected: 9, position: Position(9) }), "{error}");
    }
}

//! One partition directory: its files by name, and its segments. Listing opens no file; a file is opened when it is read.

use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::{ReadError, ReadErrorKind};
use super::names::{DirName, FileKind, FileName, FileSuffix};
use super::segment_file::{IoMode, SegmentFile, describe_type};
use super::topic_partition::TopicPartition;
use crate::format::{Offset, TimestampMs};

/// One entry of a directory, links followed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirEntry {
    /// Its name.
    pub name: OsString,
    /// `None` for a regular file; else in a word what it is.
    pub not_a_file: Option<&'static str>,
    /// Its apparent size.
    pub size_bytes: u64,
    /// Bytes of disk that it holds.
    pub allocated_bytes: u64,
    /// When it was last modified.
    pub modified: TimestampMs,
}

impl DirEntry {
    fn new(name: OsString, metadata: &Metadata) -> Self {
        let not_a_file = if metadata.is_file() { None } else { Some(describe_type(metadata.file_type())) };
        Self {
            name,
            not_a_file,
            size_bytes: metadata.len(),
            allocated_bytes: metadata.blocks().saturating_mul(512),
            modified: TimestampMs(
                metadata.mtime().saturating_mul(1000).saturating_add(metadata.mtime_nsec() / 1_000_000),
            ),
        }
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.not_a_file == Some("a directory")
    }
}

/// The entries of a directory in the order of their names' bytes, which for segments is the order of offsets. An entry that
/// vanishes while the directory is read is left out; a link that leads nowhere stays, as something that is no file.
pub fn list_directory(path: &Path) -> Result<Vec<DirEntry>, ReadError> {
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(path).map_err(|error| ReadError::io(path, error))? {
        let entry = entry.map_err(|error| ReadError::io(path, error))?;
        match std::fs::metadata(entry.path()).or_else(|_| std::fs::symlink_metadata(entry.path())) {
            Ok(metadata) => entries.push(DirEntry::new(entry.file_name(), &metadata)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(ReadError::io(&entry.path(), error)),
        }
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// A file of a partition directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionFile {
    /// What the directory says of it.
    pub entry: DirEntry,
    /// What its name says.
    pub name: FileName,
}

/// The files that share a base offset: one segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment {
    /// The offset in the names.
    pub base_offset: Offset,
    /// `.log`: the batches.
    pub log: Option<DirEntry>,
    /// `.index`.
    pub offset_index: Option<DirEntry>,
    /// `.timeindex`.
    pub time_index: Option<DirEntry>,
    /// `.txnindex`.
    pub txn_index: Option<DirEntry>,
    /// `.snapshot` of the producers before the segment's first record.
    pub snapshot: Option<DirEntry>,
}

impl Segment {
    fn empty(base_offset: Offset) -> Self {
        Self { base_offset, log: None, offset_index: None, time_index: None, txn_index: None, snapshot: None }
    }

    /// The file of this kind.
    pub fn file(&self, kind: FileKind) -> Option<&DirEntry> {
        match kind {
            FileKind::Log => self.log.as_ref(),
            FileKind::OffsetIndex => self.offset_index.as_ref(),
            FileKind::TimeIndex => self.time_index.as_ref(),
            FileKind::TxnIndex => self.txn_index.as_ref(),
            FileKind::Snapshot => self.snapshot.as_ref(),
        }
    }

    fn slot(&mut self, kind: FileKind) -> &mut Option<DirEntry> {
        match kind {
            FileKind::Log => &mut self.log,
            FileKind::OffsetIndex => &mut self.offset_index,
            FileKind::TimeIndex => &mut self.time_index,
            FileKind::TxnIndex => &mut self.txn_index,
            FileKind::Snapshot => &mut self.snapshot,
        }
    }
}

/// A partition directory and what is in it, as it was when it was listed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionDir {
    log_dir: PathBuf,
    dir_name: OsString,
    kind: DirName,
    topic_partition: TopicPartition,
    files: Vec<PartitionFile>,
}

impl PartitionDir {
    /// Lists the directory `dir_name` of `log_dir`. A name that is no partition's is taken for partition 0 of a topic of that name:
    /// copies of partition directories are called anything.
    pub fn open(log_dir: &Path, dir_name: &OsStr) -> Result<Self, ReadError> {
        let kind = DirName::parse(dir_name);
        let topic_partition = kind.topic_partition().cloned().unwrap_or_else(|| TopicPartition::new(dir_name, 0));
        let files = list_directory(&log_dir.join(dir_name))?
            .into_iter()
            .map(|entry| PartitionFile { name: FileName::parse(&entry.name), entry })
            .collect();
        Ok(Self { log_dir: log_dir.to_path_buf(), dir_name: dir_name.to_os_string(), kind, topic_partition, files })
    }

    /// The directory that it lies in.
    pub fn log_dir(&self) -> &Path {
        &self.log_dir
    }

    /// Its own name, which is its path relative to the log dir.
    pub fn dir_name(&self) -> &OsStr {
        &self.dir_name
    }

    /// What its name says.
    pub fn kind(&self) -> &DirName {
        &self.kind
    }

    /// The partition whose log it holds.
    pub fn topic_partition(&self) -> &TopicPartition {
        &self.topic_partition
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        self.log_dir.join(&self.dir_name)
    }

    /// All entries in the order of their names.
    pub fn files(&self) -> &[PartitionFile] {
        &self.files
    }

    /// The entry of this name.
    pub fn file(&self, name: &OsStr) -> Option<&PartitionFile> {
        let index = self.files.binary_search_by(|file| file.entry.name.as_os_str().cmp(name)).ok()?;
        self.files.get(index)
    }

    /// The path of one of its files relative to the log dir.
    pub fn relative(&self, name: &OsStr) -> PathBuf {
        Path::new(&self.dir_name).join(name)
    }

    /// Opens one of its files.
    pub fn open_file(&self, name: &OsStr, mode: IoMode) -> Result<SegmentFile, ReadError> {
        SegmentFile::open(&self.path().join(name), mode)
    }

    /// The segments in the order of their base offsets, those without a `.log` included. A snapshot belongs to the segment that
    /// starts at its offset; [`Self::snapshots`] has them all.
    pub fn segments(&self) -> Vec<Segment> {
        let mut segments: Vec<Segment> = Vec::new();
        for file in &self.files {
            let FileName::Segment { base, kind, suffix: FileSuffix::None } = file.name else { continue };
            let index = match segments.binary_search_by_key(&base, |segment| segment.base_offset) {
                Ok(index) => index,
                Err(index) => {
                    segments.insert(index, Segment::empty(base));
                    index
                }
            };
            if let Some(segment) = segments.get_mut(index) {
                *segment.slot(kind) = Some(file.entry.clone());
            }
        }
        for (offset, entry) in self.snapshots() {
            let found = segments.binary_search_by_key(&offset, |segment| segment.base_offset);
            if let Some(segment) = found.ok().and_then(|index| segments.get_mut(index)) {
                segment.snapshot = Some(entry.clone());
            }
        }
        segments
    }

    /// The producer snapshots in use, in the order of their offsets.
    pub fn snapshots(&self) -> impl Iterator<Item = (Offset, &DirEntry)> {
        self.files.iter().filter_map(|file| match file.name {
            FileName::Snapshot { offset, suffix: FileSuffix::None } => Some((offset, &file.entry)),
            _ => None,
        })
    }

    /// Reads a small file whole; `None` where it is not there.
    pub fn read_small(&self, name: &OsStr, limit: u64) -> Result<Option<Vec<u8>>, ReadError> {
        match self.file(name) {
            None => Ok(None),
            Some(file) => match file.entry.not_a_file {
                Some(found) => Err(ReadError::new(&self.path().join(name), ReadErrorKind::NotAFile { found })),
                None => self.open_file(name, IoMode::Pread)?.read_whole(limit).map(Some),
            },
        }
    }
}

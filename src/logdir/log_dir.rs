//! A log dir, one entry of a broker's `log.dirs`, and what a path of the command line turns out to be.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use super::error::{ReadError, ReadErrorKind};
use super::names::{CheckpointKind, DirName, FileKind, FileName, RootName};
use super::partition::{DirEntry, PartitionDir, list_directory};
use super::segment_file::{IoMode, SegmentFile, describe_type};
use super::topic_partition::TopicPartition;

/// The largest text file that is read: checkpoints, properties. A checkpoint of a million partitions has about 64 MB.
const MOST_TEXT_BYTES: u64 = 256 * 1024 * 1024;

/// A directory inside a log dir.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogDirMember {
    /// The directory entry.
    pub entry: DirEntry,
    /// What its name says.
    pub name: DirName,
}

/// A log dir as it was when it was listed. Partition directories are named here and opened one by one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogDir {
    path: PathBuf,
    directories: Vec<LogDirMember>,
    files: Vec<(DirEntry, RootName)>,
}

impl LogDir {
    /// Lists a log dir. Directories come in the order of topic and partition, those that are no partition last.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let mut directories = Vec::new();
        let mut files = Vec::new();
        for entry in list_directory(path)? {
            if entry.is_directory() {
                directories.push(LogDirMember { name: DirName::parse(&entry.name), entry });
            } else {
                let name = RootName::parse(&entry.name);
                files.push((entry, name));
            }
        }
        directories.sort_by(|a, b| {
            let key = |member: &LogDirMember| {
                (
                    member.name.topic_partition().is_none(),
                    member.name.topic_partition().cloned(),
                    member.entry.name.clone(),
                )
            };
            key(a).cmp(&key(b))
        });
        Ok(Self { path: path.to_path_buf(), directories, files })
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directories in it.
    pub fn directories(&self) -> &[LogDirMember] {
        &self.directories
    }

    /// Everything directly in it that is no directory.
    pub fn files(&self) -> &[(DirEntry, RootName)] {
        &self.files
    }

    /// The entry of a file directly in it.
    pub fn file(&self, name: RootName) -> Option<&DirEntry> {
        self.files.iter().find(|(_, parsed)| *parsed == name).map(|(entry, _)| entry)
    }

    /// Whether the last stop left the clean-shutdown marker.
    pub fn has_clean_marker(&self) -> bool {
        self.file(RootName::CleanShutdownMarker).is_some()
    }

    /// Lists one of its directories.
    pub fn open_partition(&self, dir_name: &OsStr) -> Result<PartitionDir, ReadError> {
        PartitionDir::open(&self.path, dir_name)
    }

    /// The bytes of a checkpoint file; `None` where it is not there.
    pub fn read_checkpoint(&self, kind: CheckpointKind) -> Result<Option<Vec<u8>>, ReadError> {
        self.read_file(OsStr::new(kind.file_name()))
    }

    /// The bytes of any small file directly in it; `None` where it is not there.
    pub fn read_file(&self, name: &OsStr) -> Result<Option<Vec<u8>>, ReadError> {
        let Some((entry, _)) = self.files.iter().find(|(entry, _)| entry.name == name) else { return Ok(None) };
        let path = self.path.join(name);
        match entry.not_a_file {
            Some(found) => Err(ReadError::new(&path, ReadErrorKind::NotAFile { found })),
            None => SegmentFile::open(&path, IoMode::Pread)?.read_whole(MOST_TEXT_BYTES).map(Some),
        }
    }
}

/// A single file of the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SingleFile {
    /// The path as it was given.
    pub path: PathBuf,
    /// What its name says, read as that of a file in a partition directory.
    pub name: FileName,
    /// What its name says, read as that of a file directly in a log dir.
    pub root_name: RootName,
    /// The partition that the directory around it names, if it does.
    pub topic_partition: Option<TopicPartition>,
}

/// What a path of the command line is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// A log dir.
    LogDir(LogDir),
    /// One partition directory.
    Partition(PartitionDir),
    /// One file.
    File(SingleFile),
}

impl Input {
    /// Looks at a path. A directory that holds partition directories or the files of a log dir is one; else one that holds segment
    /// files, or whose name is a partition's, is a partition; else it is an empty log dir.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let metadata = std::fs::metadata(path).map_err(|error| ReadError::io(path, error))?;
        if metadata.is_file() {
            return Ok(Self::File(single_file(path)));
        }
        if !metadata.is_dir() {
            let found = describe_type(metadata.file_type());
            return Err(ReadError::new(path, ReadErrorKind::NotAFile { found }));
        }
        let log_dir = LogDir::open(path)?;
        let (parent, name) = split_path(path)?;
        if is_log_dir(&log_dir) || !is_partition(&log_dir, &name) {
            return Ok(Self::LogDir(log_dir));
        }
        PartitionDir::open(&parent, &name).map(Self::Partition)
    }

    /// The log dir that paths are relative to: of a single file, the file itself.
    pub fn log_dir_path(&self) -> &Path {
        match self {
            Self::LogDir(log_dir) => log_dir.path(),
            Self::Partition(partition) => partition.log_dir(),
            Self::File(file) => &file.path,
        }
    }
}

fn is_log_dir(listed: &LogDir) -> bool {
    let holds_partitions = listed
        .directories
        .iter()
        .any(|member| !matches!(member.name, DirName::NotAPartition | DirName::RemoteIndexCache));
    let holds_root_files =
        listed.files.iter().any(|(_, name)| !matches!(name, RootName::Temporary | RootName::Unknown | RootName::Lock));
    holds_partitions || holds_root_files
}

fn is_partition(listed: &LogDir, name: &OsStr) -> bool {
    let holds_segments = listed
        .files
        .iter()
        .any(|(entry, _)| matches!(FileName::parse(&entry.name), FileName::Segment { kind: FileKind::Log, .. }));
    holds_segments || DirName::parse(name).topic_partition().is_some()
}

/// The directory that holds `path`, and the path's own name in it. `.` and paths that end in `..` are resolved first, since their
/// name is that of the directory they lead to.
fn split_path(path: &Path) -> Result<(PathBuf, OsString), ReadError> {
    let resolved = match path.components().next_back() {
        Some(Component::Normal(_)) => path.to_path_buf(),
        _ => std::fs::canonicalize(path).map_err(|error| ReadError::io(path, error))?,
    };
    let name = resolved.file_name().unwrap_or_default().to_os_string();
    let parent = match resolved.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    Ok((parent, name))
}

fn single_file(path: &Path) -> SingleFile {
    let name = path.file_name().unwrap_or_default();
    let around = std::path::absolute(path).ok();
    let directory = around.as_deref().and_then(Path::parent).and_then(Path::file_name);
    SingleFile {
        path: path.to_path_buf(),
        name: FileName::parse(name),
        root_name: RootName::parse(name),
        topic_partition: directory.and_then(|name| DirName::parse(name).topic_partition().cloned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Offset;
    use std::fs;

    #[test]
    fn a_path_is_what_it_holds() {
        let root = tempfile::tempdir().unwrap();
        let partition = root.path().join("a.b-c-7");
        fs::create_dir(&partition).unwrap();
        let log = partition.join("00000000000000000042.log");
        fs::write(&log, b"x").unwrap();
        fs::write(partition.join("00000000000000000042.snapshot"), b"").unwrap();
        fs::write(partition.join("00000000000000000007.index"), b"").unwrap();
        fs::create_dir(root.path().join("lost+found")).unwrap();

        let Input::LogDir(log_dir) = Input::open(root.path()).unwrap() else { unreachable!() };
        let names: Vec<_> = log_dir.directories().iter().map(|d| d.entry.name.to_str().unwrap()).collect();
        assert_eq!(names, ["a.b-c-7", "lost+found"]);

        let Input::Partition(opened) = Input::open(&partition).unwrap() else { unreachable!() };
        assert_eq!(opened.topic_partition(), &TopicPartition::new("a.b-c", 7));
        assert_eq!(opened.log_dir(), root.path());
        let segments = opened.segments();
        assert_eq!(segments.iter().map(|s| s.base_offset).collect::<Vec<_>>(), [Offset(7), Offset(42)]);
        assert!(segments[0].log.is_none() && segments[1].log.is_some() && segments[1].snapshot.is_some());

        let Input::File(file) = Input::open(&log).unwrap() else { unreachable!() };
        assert_eq!(file.topic_partition, Some(TopicPartition::new("a.b-c", 7)));
    }

    #[test]
    fn an_empty_directory_is_an_empty_log_dir_unless_its_name_is_a_partitions() {
        let root = tempfile::tempdir().unwrap();
        assert!(matches!(Input::open(root.path()).unwrap(), Input::LogDir(_)));
        let partition = root.path().join("orders-0");
        fs::create_dir(&partition).unwrap();
        assert!(matches!(Input::open(&partition).unwrap(), Input::Partition(_)));
    }

    #[test]
    fn what_is_not_there_is_an_error_with_its_path() {
        let error = Input::open(Path::new("/nonexistent/orders-0")).unwrap_err();
        assert!(error.to_string().starts_with("/nonexistent/orders-0: "), "{error}");
    }
}

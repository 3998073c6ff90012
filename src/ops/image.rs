//! A partition directory as it will be, without its bytes: what repairs, compactions, retention and a broker's start make of it.
//!
//! An image starts as the directory that is on the disk. Operations change it by name; the bytes of a file stay where they are until
//! somebody reads them, so an image of a terabyte is small. `verify` and `preflight` read an image as they read a directory, and
//! the steps of a plan are [`PartitionImage::difference`] to what is on the disk.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::format::{Position, TimestampMs, len_u64, len_usize};
use crate::logdir::{DirEntry, FilePart, IoMode, PartitionDir, ReadError, ReadErrorKind, SegmentFile, TopicPartition};

/// A range of a file on the disk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DiskRange {
    /// Its first byte.
    pub start: Position,
    /// The byte after its last.
    pub end: Position,
}

impl DiskRange {
    /// How many bytes it has.
    pub fn len(&self) -> u64 {
        self.end.since(self.start)
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Where the bytes of a file of an image are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// In a file of the directory on the disk: these ranges of it, one after the other.
    OnDisk {
        /// The file's name on the disk.
        file: OsString,
        /// Its size on the disk.
        size_bytes: u64,
        /// The ranges.
        ranges: Vec<DiskRange>,
    },
    /// In memory: for indexes, snapshots, checkpoints.
    Bytes(Arc<[u8]>),
    /// Nowhere: that many zeros.
    Zeros(u64),
    /// Nowhere yet: made while they are written.
    Recipe(Recipe),
}

type Writer = dyn Fn(&mut dyn Write) -> io::Result<()> + Send + Sync;

/// How the bytes of a file are made that are too many to hold. The file can be written but not read.
#[derive(Clone)]
pub struct Recipe {
    size_bytes: u64,
    write: Arc<Writer>,
}

impl Recipe {
    /// `write` makes so many bytes, and the same ones whenever it is called.
    pub fn new(size_bytes: u64, write: impl Fn(&mut dyn Write) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self { size_bytes, write: Arc::new(write) }
    }

    /// Writes the bytes.
    pub fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        (self.write)(out)
    }

    /// How many bytes there are.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }
}

impl PartialEq for Recipe {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.write, &other.write)
    }
}

impl Eq for Recipe {}

impl fmt::Debug for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recipe").field("size_bytes", &self.size_bytes).finish_non_exhaustive()
    }
}

impl Content {
    fn whole(entry: &DirEntry) -> Self {
        let ranges = vec![DiskRange { start: Position(0), end: Position(entry.size_bytes) }];
        Self::OnDisk { file: entry.name.clone(), size_bytes: entry.size_bytes, ranges }
    }

    /// How many bytes there are.
    pub fn size_bytes(&self) -> u64 {
        match self {
            Self::OnDisk { ranges, .. } => ranges.iter().map(DiskRange::len).fold(0, u64::saturating_add),
            Self::Bytes(bytes) => len_u64(bytes.len()),
            Self::Zeros(len) => *len,
            Self::Recipe(recipe) => recipe.size_bytes(),
        }
    }

    /// The name of the file on the disk whose bytes these are, from its first to its last.
    pub fn whole_file(&self) -> Option<&OsStr> {
        match self {
            Self::OnDisk { file, size_bytes, ranges } if spans(ranges, *size_bytes) => Some(file),
            _ => None,
        }
    }

    /// The same bytes up to `size`.
    #[must_use]
    pub fn truncated(&self, size: u64) -> Self {
        match self {
            Self::Bytes(bytes) => {
                let len = len_usize(size);
                Self::Bytes(bytes.get(..len).map_or_else(|| bytes.clone(), Arc::from))
            }
            Self::Zeros(len) => Self::Zeros(size.min(*len)),
            Self::Recipe(recipe) => part_of(recipe, Position(0), Position(size)),
            Self::OnDisk { file, size_bytes, ranges } => {
                let mut left = size;
                let mut kept = Vec::new();
                for range in ranges {
                    let len = range.len().min(left);
                    left -= len;
                    if len > 0 || kept.is_empty() {
                        kept.push(DiskRange { start: range.start, end: range.start.advance(len) });
                    }
                }
                Self::OnDisk { file: file.clone(), size_bytes: *size_bytes, ranges: kept }
            }
        }
    }

    /// The bytes from `start` to `end` of these.
    #[must_use]
    pub fn slice(&self, start: Position, end: Position) -> Self {
        match self {
            Self::Bytes(bytes) => {
                let (from, to) = (len_usize(start.0), len_usize(end.0));
                Self::Bytes(Arc::from(bytes.get(from..to.min(bytes.len())).unwrap_or_default()))
            }
            Self::Zeros(len) => Self::Zeros(end.min(Position(*len)).since(start)),
            Self::Recipe(recipe) => part_of(recipe, start, end),
            Self::OnDisk { file, size_bytes, ranges } => {
                let mut at = Position(0);
                let mut kept = Vec::new();
                for range in ranges {
                    let (from, to) = (start.max(at), end.min(at.advance(range.len())));
                    if from < to {
                        let first = range.start.advance(from.since(at));
                        kept.push(DiskRange { start: first, end: first.advance(to.since(from)) });
                    }
                    at = at.advance(range.len());
                }
                Self::OnDisk { file: file.clone(), size_bytes: *size_bytes, ranges: kept }
            }
        }
    }
}

/// A part of what a recipe makes: it makes all and passes on the part.
fn part_of(recipe: &Recipe, start: Position, end: Position) -> Content {
    let end = end.min(Position(recipe.size_bytes));
    if start == Position(0) && end == Position(recipe.size_bytes) {
        return Content::Recipe(recipe.clone());
    }
    let whole = recipe.clone();
    Content::Recipe(Recipe::new(end.since(start), move |out| {
        whole.write_to(&mut Part { out, at: Position(0), range: DiskRange { start, end } })
    }))
}

/// Passes on the bytes of a range.
struct Part<'o> {
    out: &'o mut dyn Write,
    at: Position,
    range: DiskRange,
}

impl Write for Part<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let place = |position: Position| len_usize(position.since(self.at)).min(bytes.len());
        let (from, to) = (place(self.range.start), place(self.range.end));
        self.out.write_all(bytes.get(from..to).unwrap_or_default())?;
        self.at = self.at.advance(len_u64(bytes.len()));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn spans(ranges: &[DiskRange], size_bytes: u64) -> bool {
    matches!(ranges, [range] if range.start == Position(0) && range.end == Position(size_bytes))
}

/// A file of an image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageFile {
    /// Its bytes.
    pub content: Content,
    /// When it was last modified; retention looks at it.
    pub modified: TimestampMs,
}

impl ImageFile {
    /// How many bytes it has.
    pub fn size_bytes(&self) -> u64 {
        self.content.size_bytes()
    }
}

/// A difference between two images of a directory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Change {
    /// A file appears.
    Create {
        /// Its name.
        name: OsString,
        /// Its size.
        size_after: u64,
    },
    /// A file gets other bytes.
    Replace {
        /// Its name.
        name: OsString,
        /// Its size before.
        size_before: u64,
        /// Its size after.
        size_after: u64,
    },
    /// A file loses its end.
    Truncate {
        /// Its name.
        name: OsString,
        /// Its size before.
        size_before: u64,
        /// Its size after.
        size_after: u64,
    },
    /// A file goes.
    Remove {
        /// Its name.
        name: OsString,
        /// Its size before.
        size_before: u64,
    },
    /// A file gets another name, and keeps its bytes. One that had the name before is gone.
    Rename {
        /// Its name before.
        from: OsString,
        /// Its name after.
        to: OsString,
        /// Its size.
        size_bytes: u64,
    },
}

impl Change {
    /// The name of the file: after a renaming, the new one.
    pub fn name(&self) -> &OsStr {
        match self {
            Self::Create { name, .. }
            | Self::Replace { name, .. }
            | Self::Truncate { name, .. }
            | Self::Remove { name, .. }
            | Self::Rename { to: name, .. } => name,
        }
    }
}

/// A partition directory as it is or will be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionImage {
    log_dir: PathBuf,
    dir_name: OsString,
    topic_partition: TopicPartition,
    files: BTreeMap<OsString, ImageFile>,
    others: Vec<DirEntry>,
}

impl PartitionImage {
    /// The image of a directory as it was listed.
    pub fn of(partition: &PartitionDir) -> Self {
        let mut image = Self {
            log_dir: partition.log_dir().to_path_buf(),
            dir_name: partition.dir_name().to_os_string(),
            topic_partition: partition.topic_partition().clone(),
            files: BTreeMap::new(),
            others: Vec::new(),
        };
        for file in partition.files() {
            let entry = &file.entry;
            if entry.not_a_file.is_some() {
                image.others.push(entry.clone());
                continue;
            }
            let file = ImageFile { content: Content::whole(entry), modified: entry.modified };
            image.files.insert(entry.name.clone(), file);
        }
        image
    }

    /// The directory that the partition's lies in.
    pub fn log_dir(&self) -> &Path {
        &self.log_dir
    }

    /// The directory's own name.
    pub fn dir_name(&self) -> &OsStr {
        &self.dir_name
    }

    /// The partition whose log it holds.
    pub fn topic_partition(&self) -> &TopicPartition {
        &self.topic_partition
    }

    /// The path of a file relative to the log dir.
    pub fn relative(&self, name: &OsStr) -> PathBuf {
        Path::new(&self.dir_name).join(name)
    }

    /// The regular files in the order of their names.
    pub fn files(&self) -> impl DoubleEndedIterator<Item = (&OsStr, &ImageFile)> {
        self.files.iter().map(|(name, file)| (name.as_os_str(), file))
    }

    /// The names of the regular files, in order.
    pub fn names(&self) -> Vec<OsString> {
        self.files.keys().cloned().collect()
    }

    /// What is in the directory and no regular file.
    pub fn others(&self) -> &[DirEntry] {
        &self.others
    }

    /// A file.
    pub fn file(&self, name: &OsStr) -> Option<&ImageFile> {
        self.files.get(name)
    }

    /// Whether a regular file of this name is there.
    pub fn has(&self, name: &OsStr) -> bool {
        self.files.contains_key(name)
    }

    /// The size of a file; 0 where it is not there.
    pub fn size_of(&self, name: &OsStr) -> u64 {
        self.file(name).map_or(0, ImageFile::size_bytes)
    }

    /// Opens a file for reading, whether it is on the disk or not.
    pub fn open(&self, name: &OsStr, mode: IoMode) -> Result<SegmentFile, ReadError> {
        if let Some(file) = self.files.get(name) {
            return self.open_content(name, &file.content, mode);
        }
        let path = self.log_dir.join(&self.dir_name).join(name);
        Err(ReadError::io(&path, io::Error::from(io::ErrorKind::NotFound)))
    }

    /// Opens bytes for reading whose files lie in this directory; errors call them `name`.
    pub fn open_content(&self, name: &OsStr, content: &Content, mode: IoMode) -> Result<SegmentFile, ReadError> {
        let path = self.log_dir.join(&self.dir_name).join(name);
        let parts = match content {
            Content::Bytes(bytes) => vec![FilePart::Bytes(bytes.clone())],
            Content::Zeros(len) => vec![FilePart::Zeros(*len)],
            Content::Recipe(_) => return Err(ReadError::io(&path, io::Error::from(io::ErrorKind::Unsupported))),
            Content::OnDisk { file, size_bytes, ranges } => {
                let on_disk = SegmentFile::open(&self.log_dir.join(&self.dir_name).join(file), mode)?;
                if on_disk.size() == *size_bytes && spans(ranges, *size_bytes) {
                    return Ok(on_disk);
                }
                let on_disk = Arc::new(on_disk);
                let part =
                    |range: &DiskRange| FilePart::Range { file: on_disk.clone(), start: range.start, len: range.len() };
                ranges.iter().map(part).collect()
            }
        };
        Ok(SegmentFile::assembled(&path, parts))
    }

    /// The bytes of a small file; `None` where it is not there.
    pub fn read_small(&self, name: &OsStr, limit: u64) -> Result<Option<Vec<u8>>, ReadError> {
        match self.files.get(name).map(|file| &file.content) {
            None => Ok(None),
            Some(Content::Bytes(bytes)) if len_u64(bytes.len()) <= limit => Ok(Some(bytes.to_vec())),
            Some(content) if content.size_bytes() > limit => {
                let path = self.log_dir.join(&self.dir_name).join(name);
                Err(ReadError::new(&path, ReadErrorKind::TooLarge { size_bytes: content.size_bytes(), limit }))
            }
            Some(_) => self.open(name, IoMode::Pread)?.read_whole(limit).map(Some),
        }
    }

    /// Gives a file these bytes, as one that is modified `now`. Where it has them already, only its time changes.
    pub fn put_bytes(&mut self, name: &OsStr, bytes: Vec<u8>, now: TimestampMs) {
        let same_size = self.files.get(name).is_some_and(|file| file.size_bytes() == len_u64(bytes.len()));
        let is_same = same_size && self.read_small(name, len_u64(bytes.len())).ok().flatten().as_ref() == Some(&bytes);
        match self.files.get_mut(name) {
            Some(file) if is_same => file.modified = now,
            _ => self.put(name, ImageFile { content: Content::Bytes(bytes.into()), modified: now }),
        }
    }

    /// Gives a name this file.
    pub fn put(&mut self, name: &OsStr, file: ImageFile) {
        self.files.insert(name.to_os_string(), file);
    }

    /// Cuts a file to `size` bytes, as one that is modified `now`. Returns how many bytes go.
    pub fn truncate(&mut self, name: &OsStr, size: u64, now: TimestampMs) -> u64 {
        let Some(file) = self.files.get_mut(name) else { return 0 };
        let gone = file.size_bytes().saturating_sub(size);
        if gone > 0 {
            *file = ImageFile { content: file.content.truncated(size), modified: now };
        }
        gone
    }

    /// Removes a file.
    pub fn remove(&mut self, name: &OsStr) -> Option<ImageFile> {
        self.files.remove(name)
    }

    /// Gives a file another name; one that has it goes. Returns whether there was such a file.
    pub fn rename(&mut self, from: &OsStr, to: &OsStr) -> bool {
        match self.files.remove(from) {
            Some(file) => {
                self.files.insert(to.to_os_string(), file);
                true
            }
            None => false,
        }
    }

    /// What has to be done to the directory on the disk, where `self` is the image of that, to make it `after`. In the order of
    /// names.
    pub fn difference(&self, after: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut moved = Vec::new();
        for (name, file) in &after.files {
            let before = self.files.get(name);
            let (size_before, size_after) = (before.map_or(0, ImageFile::size_bytes), file.size_bytes());
            if before.is_some_and(|before| before.content == file.content) {
                continue;
            }
            let name = name.clone();
            if let Some(from) = file.content.whole_file().filter(|from| *from != name && is_gone(after, from)) {
                moved.push(from.to_os_string());
                changes.push(Change::Rename { from: from.to_os_string(), to: name, size_bytes: size_after });
            } else if before.is_none() {
                changes.push(Change::Create { name, size_after });
            } else if before.is_some_and(|before| before.content.truncated(size_after) == file.content) {
                changes.push(Change::Truncate { name, size_before, size_after });
            } else {
                changes.push(Change::Replace { name, size_before, size_after });
            }
        }
        for (name, file) in &self.files {
            if !after.files.contains_key(name) && !moved.contains(name) {
                changes.push(Change::Remove { name: name.clone(), size_before: file.size_bytes() });
            }
        }
        changes.sort_by(|a, b| a.name().cmp(b.name()));
        changes
    }
}

/// Whether the bytes of a file on the disk are under its own name no more.
fn is_gone(after: &PartitionImage, name: &OsStr) -> bool {
    after.files.get(name).is_none_or(|file| file.content.whole_file() != Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image_of(files: &[(&str, &[u8])]) -> (tempfile::TempDir, PartitionImage) {
        let log_dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(log_dir.path().join("t-0")).unwrap();
        for (name, bytes) in files {
            std::fs::write(log_dir.path().join("t-0").join(name), bytes).unwrap();
        }
        let image = PartitionImage::of(&PartitionDir::open(log_dir.path(), OsStr::new("t-0")).unwrap());
        (log_dir, image)
    }

    fn name(text: &str) -> &OsStr {
        OsStr::new(text)
    }

    #[test]
    fn a_changed_image_reads_as_the_directory_that_it_stands_for() {
        let (_log_dir, mut image) = image_of(&[("0.log", b"abcdef"), ("1.log.swap", b"xyz"), ("p", b"q")]);
        assert_eq!(image.truncate(name("0.log"), 4, TimestampMs(9)), 2);
        assert!(image.rename(name("1.log.swap"), name("1.log")));
        image.put_bytes(name("e"), b"new".to_vec(), TimestampMs(9));
        let read = |file: &str| image.open(name(file), IoMode::Pread).unwrap().read_whole(100).unwrap();
        assert_eq!((read("0.log"), read("1.log"), read("e")), (b"abcd".to_vec(), b"xyz".to_vec(), b"new".to_vec()));
        assert_eq!(image.read_small(name("gone"), 9).unwrap(), None);
        assert!(image.open(name("1.log.swap"), IoMode::Pread).is_err());
    }

    #[test]
    fn the_difference_names_what_has_to_be_done() {
        let (_log_dir, before) = image_of(&[("a", b"123"), ("b", b"45"), ("c", b"6"), ("d.swap", b"7"), ("e", b"8")]);
        let mut after = before.clone();
        after.truncate(name("a"), 1, TimestampMs(0));
        after.put_bytes(name("b"), b"54".to_vec(), TimestampMs(0));
        after.put_bytes(name("c"), b"6".to_vec(), TimestampMs(0));
        after.rename(name("d.swap"), name("d"));
        after.remove(name("e"));
        after.put(name("f"), ImageFile { content: Content::Zeros(3), modified: TimestampMs(0) });
        let named = |text: &str| OsString::from(text);
        let expected = [
            Change::Truncate { name: named("a"), size_before: 3, size_after: 1 },
            Change::Replace { name: named("b"), size_before: 2, size_after: 2 },
            Change::Rename { from: named("d.swap"), to: named("d"), size_bytes: 1 },
            Change::Remove { name: named("e"), size_before: 1 },
            Change::Create { name: named("f"), size_after: 3 },
        ];
        assert_eq!(before.difference(&after), expected);
        assert_eq!(before.difference(&before), []);
    }

    #[test]
    fn a_recipe_is_written_and_not_read_and_parts_of_it_are_recipes() {
        let (_log_dir, mut image) = image_of(&[]);
        let recipe =
            Recipe::new(10, |out| b"01234 56789".split(|b| *b == b' ').try_for_each(|part| out.write_all(part)));
        let whole = Content::Recipe(recipe);
        let written = |content: &Content| {
            let Content::Recipe(recipe) = content else { panic!("{content:?}") };
            let mut out = Vec::new();
            recipe.write_to(&mut out).unwrap();
            assert_eq!(out.len() as u64, content.size_bytes());
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(&whole.truncated(7)), "0123456");
        assert_eq!(written(&whole.slice(Position(3), Position(8)).slice(Position(1), Position(99))), "4567");
        assert_eq!(whole.truncated(10), whole);
        image.put(name("0.log"), ImageFile { content: whole, modified: TimestampMs(0) });
        assert_eq!(image.size_of(name("0.log")), 10);
        assert!(image.open(name("0.log"), IoMode::Pread).is_err());
    }

    #[test]
    fn slices_of_ranges_are_ranges_of_the_file_on_the_disk() {
        let (_log_dir, mut image) = image_of(&[("0.log", b"0123456789")]);
        let whole = image.file(name("0.log")).unwrap().content.clone();
        let slice = whole.slice(Position(2), Position(8)).slice(Position(1), Position(4));
        image.put(name("3.log"), ImageFile { content: slice.clone(), modified: TimestampMs(0) });
        assert_eq!(image.read_small(name("3.log"), 9).unwrap().unwrap(), b"345");
        assert_eq!((slice.size_bytes(), slice.truncated(2).size_bytes(), slice.whole_file()), (3, 2, None));
        assert_eq!(whole.truncated(10).whole_file(), Some(name("0.log")));
    }
}

//! A new file, complete and durable before it gets the name that anybody reads.

use std::io::{self, Read as _, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::{At, StoreError, StoreErrorKind};
use super::fs::{Access, EntryName, Fs, Xattrs};
use super::record::Identity;
use super::step::{Content, Part, RecipeSize};

/// Bytes copied between two looks at whether the user wants to stop.
const COPY_AT_ONCE: u64 = 64 << 20;

/// Who is told of bytes written, and who may ask to stop.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Set when the user asks to stop.
    pub interrupted: &'a AtomicBool,
    /// Told of bytes as they are written.
    pub progress: &'a dyn Fn(u64),
}

impl std::fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("interrupted", &self.interrupted).finish_non_exhaustive()
    }
}

impl Watch<'_> {
    pub(crate) fn check(&self, path: &Path) -> Result<(), StoreError> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(StoreError::new(path, StoreErrorKind::Interrupted));
        }
        Ok(())
    }
}

/// What a new file is to look like.
pub(crate) struct NewFile<'a> {
    pub(crate) name: &'a EntryName,
    pub(crate) access: Access,
    pub(crate) xattrs: &'a Xattrs,
    /// `None`: the moment of writing.
    pub(crate) mtime_ns: Option<i128>,
}

/// Where new files are made and where the ranges in them come from.
pub(crate) struct Workshop<'a, F: Fs> {
    pub(crate) fs: &'a F,
    pub(crate) dir: &'a F::Dir,
    pub(crate) path: &'a Path,
    pub(crate) source: &'a F::Dir,
    pub(crate) source_path: &'a Path,
    pub(crate) watch: Watch<'a>,
}

impl<F: Fs> Workshop<'_, F> {
    /// Makes a file with this content, durable when it returns. After an error no file is left, as far as the disk lets us.
    pub(crate) fn write(&self, new: &NewFile<'_>, content: &Content) -> Result<Identity, StoreError> {
        self.make(new, |file| self.fill(new, file, content))
    }

    /// Makes a file with the content of another.
    pub(crate) fn copy(&self, new: &NewFile<'_>, from: &F::File) -> Result<Identity, StoreError> {
        self.make(new, |file| {
            let size = self.fs.stat_file(from).at(self.path, "looking at a file")?.size_bytes;
            self.take(new, file, from, 0, size)
        })
    }

    fn make(
        &self,
        new: &NewFile<'_>,
        fill: impl FnOnce(&F::File) -> Result<(), StoreError>,
    ) -> Result<Identity, StoreError> {
        let path = self.path.join(new.name);
        let file = self.fs.create(self.dir, new.name, new.access).at(&path, "making a file")?;
        let made = fill(&file).and_then(|()| self.finish(new, &file));
        if made.is_err() {
            // The first error is the one to tell; what cannot be removed now is found again by its name.
            let _ = self.fs.remove(self.dir, new.name);
        }
        made
    }

    fn finish(&self, new: &NewFile<'_>, file: &F::File) -> Result<Identity, StoreError> {
        let path = self.path.join(new.name);
        let present = self.fs.xattrs(file).at(&path, "reading attributes")?;
        for (name, value) in new.xattrs.iter().filter(|(name, value)| present.get(*name) != Some(value)) {
            self.fs.set_xattr(file, name, value).at(&path, "setting an attribute")?;
        }
        if let Some(mtime_ns) = new.mtime_ns {
            self.fs.set_mtime(file, mtime_ns).at(&path, "setting a time")?;
        }
        self.fs.sync_file(file).at(&path, "syncing a file")?;
        Ok(Identity::from(&self.fs.stat_file(file).at(&path, "looking at a file")?))
    }

    fn fill(&self, new: &NewFile<'_>, file: &F::File, content: &Content) -> Result<(), StoreError> {
        let path = self.path.join(new.name);
        match content {
            Content::Bytes(bytes) => {
                self.fs.reserve(file, bytes.len() as u64).at(&path, "reserving room")?;
                self.pour(&path, file, u64::MAX, |sink| sink.write_all(bytes)).map(|_| ())
            }
            Content::Parts(parts) => parts.iter().try_for_each(|part| match part {
                Part::Bytes(bytes) => self.pour(&path, file, u64::MAX, |sink| sink.write_all(bytes)).map(|_| ()),
                Part::Zeros(size) => {
                    let zeros = |sink: &mut dyn Write| io::copy(&mut io::repeat(0).take(*size), sink).map(|_| ());
                    self.pour(&path, file, u64::MAX, zeros).map(|_| ())
                }
                Part::Range { name, start, size_bytes } => {
                    let from =
                        self.fs.open_file(self.source, name).at(&self.source_path.join(name), "opening a file")?;
                    if let [_] = parts.as_slice() {
                        return self.take(new, file, &from, start.0, *size_bytes);
                    }
                    self.append(&path, file, &from, start.0, *size_bytes)
                }
            }),
            Content::Recipe(recipe) => {
                let (least, most) = match recipe.size() {
                    RecipeSize::Exactly(size) => {
                        self.fs.reserve(file, size).at(&path, "reserving room")?;
                        (size, size)
                    }
                    RecipeSize::AtMost(size) => (0, size),
                };
                let written = self.pour(&path, file, most, |sink| recipe.write_to(sink))?;
                if written < least {
                    let because = format!("{written} bytes instead of {least}");
                    return Err(StoreError::new(path, StoreErrorKind::Rejected { because }));
                }
                Ok(())
            }
        }
    }

    fn pour(
        &self,
        path: &Path,
        file: &F::File,
        most: u64,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<u64, StoreError> {
        let mut sink = Sink { fs: self.fs, file, watch: self.watch, written: 0, most };
        let result = write(&mut sink);
        if sink.written > most {
            let because = format!("more than {most} bytes");
            return Err(StoreError::new(path, StoreErrorKind::Rejected { because }));
        }
        self.watch.check(path)?;
        result.at(path, "writing")?;
        Ok(sink.written)
    }

    /// The whole new file from one range: shared with the source where the file system can, copied elsewhere.
    fn take(&self, new: &NewFile<'_>, file: &F::File, from: &F::File, start: u64, size: u64) -> Result<(), StoreError> {
        let path = self.path.join(new.name);
        if start == 0 && self.fs.clone_content(from, file).at(&path, "sharing content")? {
            let shared = self.fs.stat_file(file).at(&path, "looking at a file")?.size_bytes;
            if shared < size {
                return Err(too_short(&path));
            }
            if shared > size {
                self.fs.cut(file, size).at(&path, "cutting a new file")?;
            }
            (self.watch.progress)(size);
            return Ok(());
        }
        self.fs.reserve(file, size).at(&path, "reserving room")?;
        self.append(&path, file, from, start, size)
    }

    fn append(&self, path: &Path, to: &F::File, from: &F::File, start: u64, size: u64) -> Result<(), StoreError> {
        let mut done = 0;
        while done < size {
            self.watch.check(path)?;
            let at_once = COPY_AT_ONCE.min(size - done);
            match self.fs.copy_range(from, start.saturating_add(done), to, at_once) {
                Ok(0) => return Err(too_short(path)),
                Ok(copied) => {
                    done = done.saturating_add(copied);
                    (self.watch.progress)(copied);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(StoreError::io(path, "copying", error)),
            }
        }
        Ok(())
    }
}

fn too_short(path: &Path) -> StoreError {
    let because = "the file it is copied from ends before the range does".to_owned();
    StoreError::new(path, StoreErrorKind::Rejected { because })
}

/// The end of a new file, for a recipe to write to.
struct Sink<'a, F: Fs> {
    fs: &'a F,
    file: &'a F::File,
    watch: Watch<'a>,
    written: u64,
    most: u64,
}

impl<F: Fs> Write for Sink<'_, F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.watch.interrupted.load(Ordering::Relaxed) {
            // Not ErrorKind::Interrupted, which `write_all` would try again for ever.
            return Err(io::Error::other("asked to stop"));
        }
        if self.written.saturating_add(bytes.len() as u64) > self.most {
            self.written = self.most.saturating_add(1);
            return Err(io::Error::other("longer than planned"));
        }
        let written = self.fs.write(self.file, bytes)?;
        self.written = self.written.saturating_add(written as u64);
        (self.watch.progress)(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

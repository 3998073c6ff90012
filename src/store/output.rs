//! The result of a plan as a log dir of its own; the source is only read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::apply::Prepared;
use super::atomic::{NewFile, Watch, Workshop};
use super::error::{At, StoreError, StoreErrorKind};
use super::fs::{Access, EntryName, FileStat, Fs, NodeKind, Xattrs};
use super::journal::plain;
use super::lock::open_log_dir;
use super::step::{Changes, Content, Looks, Mtime, Place, Step, Transaction};
use super::survey::open_place;
use super::undo::empty_dir;

/// Said of an output directory that is not complete.
const INCOMPLETE: &str = "segtool-incomplete";

/// Added to the name of the output: where the bytes are that it has no place for.
const QUARANTINE: &str = ".quarantine";

/// What is written where.
pub struct OutputOptions<'a> {
    /// The directory; it must not exist, or be empty.
    pub target: &'a Path,
    /// The partition directories that it holds, changed or not.
    pub partitions: &'a [EntryName],
    /// Files of the log dir that it holds where they exist, changed or not.
    pub log_dir_files: &'a [EntryName],
    /// Who is told, and may stop it.
    pub watch: Watch<'a>,
    /// Looks at the new files of each transaction; an objection removes the output.
    pub check: &'a dyn Fn(&Prepared) -> Result<(), String>,
}

impl std::fmt::Debug for OutputOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutputOptions").field("target", &self.target).finish_non_exhaustive()
    }
}

/// What was written.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Written {
    /// Files in the output.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Writes the result of changes beside the source. It is complete and durable when this returns, and gone after an error.
pub fn write_output<F: Fs>(fs: &F, changes: &Changes, options: &OutputOptions<'_>) -> Result<Written, StoreError> {
    let source = open_log_dir(fs, &changes.log_dir)?;
    let stat = fs.stat_dir(&source).at(&changes.log_dir, "looking at the log dir")?;
    let target = options.target;
    let (Some(parent_path), Some(name)) = (target.parent(), target.file_name().and_then(EntryName::new)) else {
        return Err(StoreError::new(target, StoreErrorKind::OutputNotEmpty));
    };
    refuse_inside_log_dir(fs, target, parent_path, &stat, &changes.log_dir)?;
    let parent = fs.open_dir(parent_path).at(parent_path, "opening the directory of the output")?;
    let aside = puts_aside(changes).then(|| name.with_suffix(QUARANTINE));
    if let Some(aside) = &aside {
        let path = parent_path.join(aside);
        if fs.stat(&parent, aside).at(&path, "looking at the output")?.is_some() {
            return Err(StoreError::new(path, StoreErrorKind::OutputNotEmpty));
        }
    }
    let is_new = fs.stat(&parent, &name).at(target, "looking at the output")?.is_none();
    if is_new {
        fs.make_dir(&parent, &name, 0o700).at(target, "making the output")?;
    }
    let dir = fs.open_dir(target).at(target, "opening the output")?;
    if !is_new && !fs.list(&dir).at(target, "listing the output")?.is_empty() {
        return Err(StoreError::new(target, StoreErrorKind::OutputNotEmpty));
    }
    let writer = Writer { fs, changes, options, source, source_stat: stat, target: dir };
    let written = writer.write().and_then(|written| {
        fs.sync_dir(&parent).at(parent_path, "syncing the directory of the output")?;
        Ok(written)
    });
    if written.is_err() {
        // The first error is the one to tell.
        let _ = empty_dir(fs, &writer.target, target, &[]);
        if is_new {
            let _ = fs.remove_dir(&parent, &name);
        }
        if let Some(aside) = &aside {
            let path = parent_path.join(aside);
            let _ = fs.open_subdir(&parent, aside).map(|dir| empty_dir(fs, &dir, &path, &[]));
            let _ = fs.remove_dir(&parent, aside);
        }
    }
    written
}

fn puts_aside(changes: &Changes) -> bool {
    let mut steps = changes.transactions.iter().flat_map(|transaction| &transaction.steps);
    steps.any(|step| matches!(step, Step::Quarantine { .. }))
}

/// A broker would fail to start over a directory in its log dir.
fn refuse_inside_log_dir<F: Fs>(
    fs: &F,
    target: &Path,
    parent: &Path,
    source: &FileStat,
    log_dir: &Path,
) -> Result<(), StoreError> {
    for above in parent.ancestors().filter(|path| !path.as_os_str().is_empty()) {
        let dir = fs.open_dir(above).at(above, "opening a directory above the output")?;
        let stat = fs.stat_dir(&dir).at(above, "looking at a directory above the output")?;
        let mut inside = (stat.device, stat.inode) == (source.device, source.inode);
        for name in ["meta.properties", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"] {
            inside |= fs.stat(&dir, &plain(name)?).at(above, "looking at a directory above the output")?.is_some();
        }
        if inside {
            let log_dir = if above.as_os_str().is_empty() { log_dir } else { above }.to_path_buf();
            return Err(StoreError::new(target, StoreErrorKind::InsideLogDir { log_dir }));
        }
    }
    Ok(())
}

struct Writer<'a, F: Fs> {
    fs: &'a F,
    changes: &'a Changes,
    options: &'a OutputOptions<'a>,
    source: F::Dir,
    source_stat: FileStat,
    target: F::Dir,
}

/// A directory of the source and its double.
struct Double<F: Fs> {
    source: F::Dir,
    source_path: PathBuf,
    source_stat: FileStat,
    /// Plain files of the source.
    files: BTreeMap<EntryName, FileStat>,
    target: F::Dir,
    target_path: PathBuf,
}

impl<F: Fs> Writer<'_, F> {
    fn write(&self) -> Result<Written, StoreError> {
        let fs = self.fs;
        let path = self.options.target;
        let access = self.access(&self.source_stat);
        fs.set_dir_access(&self.target, access).at(path, "setting the owner of the output")?;
        let file = Access { mode: access.mode & 0o666, ..access };
        fs.create(&self.target, &plain(INCOMPLETE)?, file).at(path, "making a file")?;
        let mut written = Written::default();
        for name in self.options.partitions {
            self.write_place(&Place::Partition(name.clone()), &mut written)?;
        }
        self.write_place(&Place::LogDir, &mut written)?;
        fs.remove(&self.target, &plain(INCOMPLETE)?).at(path, "removing a file")?;
        fs.sync_dir(&self.target).at(path, "syncing the output")?;
        Ok(written)
    }

    /// The owner is kept where we may give files away.
    fn access(&self, stat: &FileStat) -> Access {
        let own = self.fs.stat_dir(&self.target).map_or(stat.gid, |target| target.gid);
        let (uid, gid) = if self.fs.user() == 0 { (stat.uid, stat.gid) } else { (self.fs.user(), own) };
        Access { uid, gid, mode: stat.mode }
    }

    fn open(&self, place: &Place) -> Result<Double<F>, StoreError> {
        let fs = self.fs;
        let source_path = place.path_in(&self.changes.log_dir);
        let target_path = place.path_in(self.options.target);
        let (source, source_stat) = open_place(fs, &self.source, &self.changes.log_dir, place)?;
        let target = match place {
            Place::LogDir => fs.open_dir(&target_path).at(&target_path, "opening the output")?,
            Place::Partition(name) => {
                fs.make_dir(&self.target, name, 0o700).at(&target_path, "making a directory")?;
                let dir = fs.open_subdir(&self.target, name).at(&target_path, "opening a directory")?;
                fs.set_dir_access(&dir, self.access(&source_stat)).at(&target_path, "setting an owner")?;
                dir
            }
        };
        let mut files = BTreeMap::new();
        for name in fs.list(&source).at(&source_path, "listing a directory")? {
            let path = source_path.join(&name);
            match fs.stat(&source, &name).at(&path, "looking at a file")? {
                Some(stat) if stat.kind == NodeKind::Regular => {
                    files.insert(name, stat);
                }
                Some(stat) if stat.kind != NodeKind::Directory && *place != Place::LogDir => {
                    let kind = StoreErrorKind::WrongKind { expected: "a regular file", found: stat.kind.name() };
                    return Err(StoreError::new(path, kind));
                }
                _ => {}
            }
        }
        Ok(Double { source, source_path, source_stat, files, target, target_path })
    }

    fn write_place(&self, place: &Place, written: &mut Written) -> Result<(), StoreError> {
        let double = self.open(place)?;
        let of_place = |transaction: &&Transaction| transaction.place == *place;
        let steps: Vec<&Step> =
            self.changes.transactions.iter().filter(of_place).flat_map(|transaction| &transaction.steps).collect();
        let mut gone: BTreeSet<&EntryName> = BTreeSet::new();
        // What a later transaction says of a file holds.
        let mut contents: BTreeMap<&EntryName, (Content, Looks)> = BTreeMap::new();
        let mut aside = Vec::new();
        for step in steps {
            match step {
                Step::Create { name, content, looks } => {
                    contents.insert(name, (content.clone(), looks.clone()));
                }
                Step::Replace { name, content, looks } => {
                    let looks = Looks { like: looks.like.clone().or(Some(name.clone())), ..looks.clone() };
                    contents.insert(name, (content.clone(), looks));
                }
                Step::Truncate { name, size_bytes } => {
                    let content = Content::whole(name.clone(), *size_bytes);
                    contents.insert(name, (content, Looks::like(name.clone())));
                }
                Step::Rename { from, to } => {
                    gone.insert(from);
                    let size_bytes = double.files.get(from).map_or(0, |stat| stat.size_bytes);
                    contents.insert(to, (Content::whole(from.clone(), size_bytes), Looks::like(from.clone())));
                }
                Step::Remove { name } => {
                    contents.remove(name);
                    gone.insert(name);
                }
                Step::Quarantine { name, content } => {
                    aside.extend(self.quarantine(&double, place, name, content)?.map(|path| (name.clone(), path)));
                }
            }
        }
        for (name, stat) in &double.files {
            let is_wanted = *place != Place::LogDir || self.options.log_dir_files.contains(name);
            if is_wanted && !gone.contains(name) && !contents.contains_key(name) {
                let looks = Looks::like(name.clone());
                self.make(&double, name, &Content::whole(name.clone(), stat.size_bytes), &looks, written)?;
            }
        }
        let mut files = Vec::new();
        for (name, (content, looks)) in &contents {
            self.make(&double, name, content, looks, written)?;
            files.push(((*name).clone(), double.target_path.join(name)));
        }
        let prepared = Prepared {
            log_dir: self.changes.log_dir.clone(),
            place: place.clone(),
            directory: double.target_path.clone(),
            files,
            aside,
        };
        (self.options.check)(&prepared)
            .map_err(|because| StoreError::new(&double.target_path, StoreErrorKind::Rejected { because }))?;
        let fs = self.fs;
        let time = fs.set_dir_mtime(&double.target, double.source_stat.mtime_ns);
        time.at(&double.target_path, "setting the time of a directory")?;
        fs.sync_dir(&double.target).at(&double.target_path, "syncing a directory")
    }

    fn make(
        &self,
        double: &Double<F>,
        name: &EntryName,
        content: &Content,
        looks: &Looks,
        written: &mut Written,
    ) -> Result<(), StoreError> {
        let missing = |name: &EntryName| StoreError::new(double.source_path.join(name), StoreErrorKind::Changed);
        let stat_of = |name: &EntryName| double.files.get(name).ok_or_else(|| missing(name));
        let model = looks.like.as_ref().map(|name| stat_of(name).map(|stat| (name, stat))).transpose()?;
        let mtime_ns = match &looks.mtime {
            Mtime::Kept => model.map(|(_, stat)| stat.mtime_ns),
            Mtime::Of(name) => Some(stat_of(name)?.mtime_ns),
            Mtime::At(mtime_ns) => Some(*mtime_ns),
        };
        let (access, xattrs) = if let Some((like, stat)) = model {
            let path = double.source_path.join(like);
            let file = self.fs.open_file(&double.source, like).at(&path, "opening a file")?;
            (self.access(stat), self.fs.xattrs(&file).at(&path, "reading attributes")?)
        } else {
            let access = self.access(&double.source_stat);
            (Access { mode: access.mode & 0o666, ..access }, Xattrs::new())
        };
        let identity = self.shop(double).write(&NewFile { name, access, xattrs: &xattrs, mtime_ns }, content)?;
        written.files = written.files.saturating_add(1);
        written.bytes = written.bytes.saturating_add(identity.size_bytes);
        Ok(())
    }

    fn shop<'b>(&'b self, double: &'b Double<F>) -> Workshop<'b, F> {
        Workshop {
            fs: self.fs,
            dir: &double.target,
            path: &double.target_path,
            source: &double.source,
            source_path: &double.source_path,
            watch: self.options.watch,
        }
    }

    /// Bytes that no file keeps go beside the output, where no broker looks: `<output>.quarantine/<topic>-<partition>/`.
    fn quarantine(
        &self,
        double: &Double<F>,
        place: &Place,
        name: &EntryName,
        content: &Content,
    ) -> Result<Option<PathBuf>, StoreError> {
        let fs = self.fs;
        let target = self.options.target;
        let Some(root_name) = target.file_name().and_then(EntryName::new).map(|name| name.with_suffix(QUARANTINE))
        else {
            return Ok(None);
        };
        let parent_path = target.parent().unwrap_or(target);
        let mut path = parent_path.to_path_buf();
        let mut dir = fs.open_dir(parent_path).at(parent_path, "opening a directory")?;
        let place_name = if let Place::Partition(name) = place { Some(name.clone()) } else { None };
        for part in [root_name].into_iter().chain(place_name) {
            path.push(&part);
            if fs.stat(&dir, &part).at(&path, "looking at a directory")?.is_none() {
                fs.make_dir(&dir, &part, 0o700).at(&path, "making a directory")?;
                fs.sync_dir(&dir).at(&path, "syncing a directory")?;
            }
            dir = fs.open_subdir(&dir, &part).at(&path, "opening a directory")?;
        }
        let stat = fs.stat_dir(&dir).at(&path, "looking at a directory")?;
        let access = Access { uid: stat.uid, gid: stat.gid, mode: 0o600 };
        let shop = Workshop { dir: &dir, path: &path, ..self.shop(double) };
        shop.write(&NewFile { name, access, xattrs: &Xattrs::new(), mtime_ns: None }, content)?;
        fs.sync_dir(&dir).at(&path, "syncing a directory")?;
        Ok(Some(path.join(name)))
    }
}

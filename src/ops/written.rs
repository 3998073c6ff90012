//! New files read once more before they get their places: they must have the very bytes that the plan gives them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::image::{Content, PartitionImage};
use super::plan::{PartitionPlan, Plan};
use crate::format::{Position, len_u64, len_usize};
use crate::logdir::{FilePart, IoMode, PartitionDir, ReadError, SegmentFile};
use crate::store::{Place, Prepared};

/// Bytes compared at once.
const AT_ONCE: usize = 256 * 1024;

/// What is wrong with new files.
#[derive(Debug, thiserror::Error)]
pub enum WrittenError {
    /// They cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file has other bytes.
    #[error("{} was written, but from position {position} on it is not what was planned", path.display())]
    Differs {
        /// The file.
        path: PathBuf,
        /// The first byte that is another one, or is missing.
        position: Position,
    },
    /// A file that the plan does not know.
    #[error("{} was written and not planned", path.display())]
    Unplanned {
        /// The file.
        path: PathBuf,
    },
    /// A file that the plan knows and that is not there.
    #[error("{} was planned and is not there", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
}

/// Compares new files, and the bytes put aside, with the plan. A file that is made while it is written has to be checked by whoever
/// knows how it is made.
pub fn check_bytes(plan: &Plan, prepared: &Prepared) -> Result<(), WrittenError> {
    let Some(partition) = plan.partitions.iter().find(|partition| is_about(prepared, partition)) else {
        return check_checkpoints(plan, prepared);
    };
    for (name, path) in &prepared.files {
        match partition.after.file(name.as_os_str()).map(|file| &file.content) {
            None => return Err(WrittenError::Unplanned { path: path.clone() }),
            Some(Content::Recipe(_)) => {}
            Some(_) => compare(&partition.after.open(name.as_os_str(), IoMode::Pread)?, path)?,
        }
    }
    for quarantined in &partition.quarantined {
        let written = prepared.aside.iter().find(|(name, _)| name.as_os_str() == quarantined.name);
        let Some((_, path)) = written else {
            return Err(WrittenError::Missing { path: prepared.directory.join(&quarantined.name) });
        };
        let planned = partition.before.open_content(&quarantined.name, &quarantined.content, IoMode::Pread)?;
        compare(&planned, path)?;
    }
    Ok(())
}

/// Whether new files are those of this partition.
pub fn is_about(prepared: &Prepared, partition: &PartitionPlan) -> bool {
    let Place::Partition(directory) = &prepared.place else { return false };
    partition.before.dir_name() == directory.as_os_str() && partition.before.log_dir() == prepared.log_dir
}

fn check_checkpoints(plan: &Plan, prepared: &Prepared) -> Result<(), WrittenError> {
    let planned = plan.checkpoints.iter().filter(|checkpoint| checkpoint.log_dir == prepared.log_dir);
    for (name, path) in &prepared.files {
        let mut of_name = planned.clone().filter(|checkpoint| checkpoint.kind.file_name() == name.as_os_str());
        let Some(checkpoint) = of_name.next() else { return Err(WrittenError::Unplanned { path: path.clone() }) };
        compare(&SegmentFile::assembled(path, vec![FilePart::Bytes(checkpoint.after.clone().into())]), path)?;
    }
    Ok(())
}

/// The directory as it will be, read from the new files and from those that stay.
pub fn image_of(partition: &PartitionPlan, prepared: &Prepared) -> Result<PartitionImage, WrittenError> {
    let (parent, name) = (prepared.directory.parent(), prepared.directory.file_name());
    let (parent, name) = (parent.unwrap_or(Path::new("")), name.unwrap_or_default());
    let mut image = PartitionImage::of(&PartitionDir::open(parent, name)?);
    for (name, path) in &prepared.files {
        let waiting = path.file_name().unwrap_or_default();
        if waiting != name.as_os_str() && !image.rename(waiting, name.as_os_str()) {
            return Err(WrittenError::Missing { path: path.clone() });
        }
    }
    let is_planned = |name: &OsString| partition.after.has(name);
    for name in image.names().iter().filter(|name| !is_planned(name)) {
        image.remove(name);
    }
    match partition.after.names().into_iter().find(|name| !image.has(name)) {
        Some(name) => Err(WrittenError::Missing { path: prepared.directory.join(name) }),
        None => Ok(image),
    }
}

/// Whether a file has the bytes that were meant for it.
fn compare(planned: &SegmentFile, path: &Path) -> Result<(), WrittenError> {
    let written = SegmentFile::open(path, IoMode::Pread)?;
    let differs = |position| Err(WrittenError::Differs { path: path.to_path_buf(), position });
    if written.size() != planned.size() {
        return differs(written.end().min(planned.end()));
    }
    let (mut ours, mut theirs) = (Vec::with_capacity(AT_ONCE), Vec::with_capacity(AT_ONCE));
    let mut at = Position(0);
    while at < planned.end() {
        let len = len_usize(planned.end().since(at)).min(AT_ONCE);
        read_into(&mut ours, planned, at, len)?;
        read_into(&mut theirs, &written, at, len)?;
        if ours != theirs {
            return differs(at.advance(first_difference(&ours, &theirs).0));
        }
        at = at.advance(len_u64(len));
    }
    Ok(())
}

fn read_into(buffer: &mut Vec<u8>, file: &SegmentFile, position: Position, len: usize) -> Result<(), ReadError> {
    buffer.resize(len, 0);
    file.read_exact_at(buffer, position)
}

fn first_difference(a: &[u8], b: &[u8]) -> Position {
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    Position(len_u64(same))
}

//! A plan carried out by `store`: the same piece of code for every command that changes something.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::image::{Change, Content, PartitionImage};
use super::plan::{CheckpointPlan, PartitionPlan, Plan};
use crate::format::checkpoint::OffsetCheckpoint;
use crate::logdir::names::{FileKind, FileName, FileSuffix, offset_prefix};
use crate::store::{Changes, EntryName, Looks, Mtime, Part, Place, Recipe, RecipeSize, Step, Transaction};

/// What has to be done to each log dir that a plan is about, in the order of the plan.
///
/// A checkpoint that is lowered goes before the partitions, one that is raised behind them: whenever the machine stops, none claims
/// more than there is.
pub fn changes_of(plan: &Plan) -> Vec<Changes> {
    log_dirs_of(plan).into_iter().map(|log_dir| changes_in(plan, log_dir)).collect()
}

/// The log dirs that a plan is about.
pub fn log_dirs_of(plan: &Plan) -> Vec<&Path> {
    let mut log_dirs: Vec<&Path> = Vec::new();
    let of_partitions = plan.partitions.iter().map(|partition| partition.before.log_dir());
    for log_dir in of_partitions.chain(plan.checkpoints.iter().map(|checkpoint| checkpoint.log_dir.as_path())) {
        if !log_dirs.contains(&log_dir) {
            log_dirs.push(log_dir);
        }
    }
    log_dirs
}

fn changes_in(plan: &Plan, log_dir: &Path) -> Changes {
    let checkpoints = plan.checkpoints.iter().filter(|checkpoint| checkpoint.log_dir == log_dir);
    let (lowered, raised): (Vec<&CheckpointPlan>, Vec<_>) = checkpoints.partition(|checkpoint| is_lowered(checkpoint));
    let partitions = plan.partitions.iter().filter(|partition| partition.before.log_dir() == log_dir);
    let transactions = checkpoint_transaction(&lowered)
        .into_iter()
        .chain(partitions.filter_map(partition_transaction))
        .chain(checkpoint_transaction(&raised))
        .collect();
    Changes { log_dir: PathBuf::from(log_dir), transactions }
}

/// Whether some partition's offset becomes smaller, or is forgotten.
fn is_lowered(checkpoint: &CheckpointPlan) -> bool {
    let before = OffsetCheckpoint::parse(checkpoint.before.as_deref().unwrap_or_default()).content;
    let after = OffsetCheckpoint::parse(&checkpoint.after).content;
    let after = after.effective();
    before.effective().iter().any(|(partition, offset)| after.get(partition).is_none_or(|after| after < offset))
}

fn checkpoint_transaction(checkpoints: &[&CheckpointPlan]) -> Option<Transaction> {
    let steps: Vec<Step> = checkpoints
        .iter()
        .filter_map(|checkpoint| {
            let name = EntryName::new(checkpoint.kind.file_name())?;
            let content = crate::store::Content::Bytes(checkpoint.after.clone());
            // A checkpoint's time says when it was written.
            Some(match checkpoint.before {
                Some(_) => Step::Replace { name, content, looks: Looks::default() },
                None => Step::Create { name, content, looks: Looks::default() },
            })
        })
        .collect();
    (!steps.is_empty()).then_some(Transaction { place: Place::LogDir, steps })
}

fn partition_transaction(plan: &PartitionPlan) -> Option<Transaction> {
    let place = Place::Partition(EntryName::new(plan.before.dir_name())?);
    let quarantined = plan.quarantined.iter().filter_map(|quarantined| {
        Some(Step::Quarantine { name: EntryName::new(&*quarantined.name)?, content: content_of(&quarantined.content) })
    });
    let changes = plan.changes();
    let steps: Vec<Step> = quarantined.chain(changes.iter().filter_map(|change| step_of(change, plan))).collect();
    (!steps.is_empty()).then_some(Transaction { place, steps })
}

fn step_of(change: &Change, plan: &PartitionPlan) -> Option<Step> {
    let entry = |name: &OsStr| EntryName::new(name);
    let content = |name: &OsStr| plan.after.file(name).map(|file| content_of(&file.content));
    Some(match change {
        Change::Create { name, .. } => {
            Step::Create { name: entry(name)?, content: content(name)?, looks: looks_of(name, plan) }
        }
        Change::Replace { name, .. } => {
            Step::Replace { name: entry(name)?, content: content(name)?, looks: looks_of(name, plan) }
        }
        Change::Truncate { name, size_after, .. } => Step::Truncate { name: entry(name)?, size_bytes: *size_after },
        Change::Remove { name, .. } => Step::Remove { name: entry(name)? },
        Change::Rename { from, to, .. } => Step::Rename { from: entry(from)?, to: entry(to)? },
    })
}

fn content_of(content: &Content) -> crate::store::Content {
    match content {
        Content::Bytes(bytes) => crate::store::Content::Bytes(bytes.to_vec()),
        Content::Zeros(count) => crate::store::Content::Parts(vec![Part::Zeros(*count)]),
        Content::OnDisk { file, ranges, .. } => {
            let part = |range: &super::image::DiskRange| {
                Some(Part::Range { name: EntryName::new(&**file)?, start: range.start, size_bytes: range.len() })
            };
            crate::store::Content::Parts(ranges.iter().filter_map(part).collect())
        }
        Content::Recipe(recipe) => {
            let (size, recipe) = (RecipeSize::Exactly(recipe.size_bytes()), recipe.clone());
            crate::store::Content::Recipe(Recipe::new(size, move |out| recipe.write_to(out)))
        }
    }
}

/// A new file belongs to whom its segment's log belongs to, and has the time that the plan gives it.
fn looks_of(name: &OsStr, plan: &PartitionPlan) -> Looks {
    let before = plan.before.file(name);
    let modified = plan.after.file(name).map(|file| file.modified);
    let mtime = match (before, modified) {
        // The very time, to the nanosecond.
        (Some(before), Some(modified)) if before.modified == modified => Mtime::Kept,
        (_, Some(modified)) => match same_time(&plan.before, modified) {
            Some(file) => Mtime::Of(file),
            None => Mtime::At(i128::from(modified.0).saturating_mul(1_000_000)),
        },
        (_, None) => Mtime::Kept,
    };
    let like = if before.is_some() { None } else { log_beside(name, &plan.before) };
    Looks { like, mtime }
}

/// A log file with this time of last change: merged segments have the time of their last source, to the nanosecond.
fn same_time(before: &PartitionImage, modified: crate::format::TimestampMs) -> Option<EntryName> {
    let is_log = |name: &OsStr| matches!(FileName::parse(name), FileName::Segment { kind: FileKind::Log, .. });
    let (name, _) = before.files().find(|(name, file)| file.modified == modified && is_log(name))?;
    EntryName::new(name)
}

fn log_beside(name: &OsStr, before: &PartitionImage) -> Option<EntryName> {
    let of_segment = match FileName::parse(name) {
        FileName::Segment { base, .. } | FileName::Snapshot { offset: base, suffix: FileSuffix::None } => {
            Some(format!("{}.log", offset_prefix(base)))
        }
        _ => None,
    };
    let own = of_segment.filter(|log| before.has(OsStr::new(log))).and_then(EntryName::new);
    own.or_else(|| {
        let mut logs = before.files().filter(|(name, _)| {
            matches!(FileName::parse(name), FileName::Segment { kind: FileKind::Log, suffix: FileSuffix::None, .. })
        });
        logs.next().and_then(|(name, _)| EntryName::new(name))
    })
}

//! The order in which names change, such that a broker may start after any of the calls, and after a power failure between them.
//!
//! A changed `.log` goes in by Kafka's own swap, under the protection of an empty `.cleaned` file, the guard:
//!
//! ```text
//!     step                                            a broker that starts after it
//! 1   guard `<lowest base>.log.cleaned` appears       removes it
//! 2   new files become `.log.swap`, `.index.swap`..   removes them and the guard: old state
//! 3   the guard goes                                  completes the swap: new state
//! 4   old indexes and the logs that go are removed    completes the swap
//! 5   `.log.swap` -> `.log`, lowest base first        renames the rest
//! 6   `.index.swap` -> `.index` and so on             renames the rest
//! ```
//!
//! The directory is synced between the lines, so no power failure mixes two of them. A broker that completes a swap removes
//! whatever lies in the range of offsets between the lowest and the highest swap file; therefore segments that have an unchanged
//! one between them go in one after the other, group by group.
//!
//! Other files change by one rename each: the offset index last, because a broker that finds none rebuilds all of a segment's
//! indexes, and one that finds it trusts them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::error::{At, StoreError, StoreErrorKind};
use super::fs::{EntryName, Fs};
use super::record::{Action, Entry, Identity, Order, Record};
use crate::logdir::names::{FileKind, FileName, FileSuffix, offset_prefix};

/// What a name means for the order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// A log file in use, with the number in its name.
    Log(i64),
    /// An offset index in use.
    OffsetIndex(i64),
    /// A time or transaction index in use.
    OtherIndex(i64),
    /// Something that an interrupted swap left, with its number where it has one.
    Swap(Option<i64>),
    /// Something that an interrupted cleaning left.
    Cleaned,
    /// Anything else.
    Other,
}

impl Role {
    pub(crate) fn of(name: &EntryName) -> Self {
        let parsed = FileName::parse(name.as_os_str());
        let (base, kind) = match parsed {
            FileName::Segment { base, kind, .. } => (Some(base.0), kind),
            FileName::Snapshot { offset, .. } => (Some(offset.0), FileKind::Snapshot),
            FileName::InvalidSegmentName { kind, misnaming, .. } => (misnaming.offset().map(|o| o.0), kind),
            _ if name.as_bytes().ends_with(b".swap") => return Self::Swap(None),
            _ if name.as_bytes().ends_with(b".cleaned") => return Self::Cleaned,
            _ => return Self::Other,
        };
        match (parsed.suffix(), base, kind) {
            (FileSuffix::Swap, base, _) => Self::Swap(base),
            (FileSuffix::Cleaned, ..) => Self::Cleaned,
            (FileSuffix::None, Some(base), FileKind::Log) => Self::Log(base),
            (FileSuffix::None, Some(base), FileKind::OffsetIndex) => Self::OffsetIndex(base),
            (FileSuffix::None, Some(base), FileKind::TimeIndex | FileKind::TxnIndex) => Self::OtherIndex(base),
            _ => Self::Other,
        }
    }

    /// The segment whose files change together.
    fn segment(self) -> Option<i64> {
        match self {
            Self::Log(base) | Self::OffsetIndex(base) | Self::OtherIndex(base) => Some(base),
            _ => None,
        }
    }
}

/// A call that changes names in the directory of a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Call {
    /// Moves the file of this inode.
    Rename { from: EntryName, to: EntryName, inode: u64 },
    /// Removes the name of the file of this inode.
    Remove { name: EntryName, inode: u64 },
    /// Makes everything before durable.
    Sync,
}

/// The highest number of a log file in use: the segment that a broker would append to.
pub(crate) fn active_base(names: &[EntryName]) -> Option<i64> {
    names.iter().filter_map(|name| if let Role::Log(base) = Role::of(name) { Some(base) } else { None }).max()
}

/// Decides when each name changes, and the guards that are needed as `(group, name)`.
///
/// `present` are the names in the directory before the transaction.
pub(crate) fn arrange(entries: &mut [Entry], present: &[EntryName]) -> Vec<(u32, EntryName)> {
    let touched: BTreeSet<EntryName> = entries.iter().map(|entry| entry.name.clone()).collect();
    let bases = |names: &mut dyn Iterator<Item = &EntryName>| -> BTreeSet<i64> {
        names.filter_map(|name| if let Role::Log(base) = Role::of(name) { Some(base) } else { None }).collect()
    };
    let unchanged = bases(&mut present.iter().filter(|name| !touched.contains(*name)));
    let changed = bases(&mut touched.iter());
    let standing = bases(&mut present.iter());
    for entry in entries.iter_mut() {
        entry.order = match Role::of(&entry.name) {
            role if role.segment().is_some_and(|base| changed.contains(&base)) => {
                let below = role.segment().map_or(0, |base| unchanged.range(..base).count());
                Order::Group(u32::try_from(below).unwrap_or(u32::MAX))
            }
            Role::Cleaned => Order::Early,
            // Where its log is gone, a leftover swap is what a broker would use: it stays until ours has replaced it.
            Role::Swap(base) if base.is_some_and(|base| standing.contains(&base)) => Order::Early,
            _ => Order::Plain,
        };
    }
    guards(entries, present)
}

fn guards(entries: &[Entry], present: &[EntryName]) -> Vec<(u32, EntryName)> {
    let mut lowest: BTreeMap<u32, i64> = BTreeMap::new();
    for entry in entries {
        let (Order::Group(group), Role::Log(base), Some(_)) = (entry.order, Role::of(&entry.name), &entry.waiting)
        else {
            continue;
        };
        lowest.entry(group).and_modify(|least| *least = base.min(*least)).or_insert(base);
    }
    // A guard would make a broker remove a leftover swap that is all it has: such a group goes in without.
    let early: BTreeSet<&EntryName> =
        entries.iter().filter(|entry| entry.order == Order::Early).map(|entry| &entry.name).collect();
    let swaps_stay = present.iter().any(|name| matches!(Role::of(name), Role::Swap(_)) && !early.contains(name));
    if swaps_stay {
        return Vec::new();
    }
    let name = |base: i64| {
        let prefix = offset_prefix(base.into());
        EntryName::new(format!("{prefix}{}{}", FileKind::Log.extension(), FileSuffix::Cleaned.text()))
    };
    lowest.into_iter().filter_map(|(group, base)| Some((group, name(base)?))).collect()
}

fn swap_name(name: &EntryName) -> EntryName {
    name.with_suffix(FileSuffix::Swap.text())
}

fn place(entry: &Entry, to: EntryName) -> Option<Call> {
    let from = entry.waiting.clone()?;
    let inode = entry.after?.inode;
    (from != to).then_some(Call::Rename { from, to, inode })
}

fn promote(entry: &Entry) -> Option<Call> {
    let inode = entry.after.filter(|_| entry.waiting.is_some())?.inode;
    Some(Call::Rename { from: swap_name(&entry.name), to: entry.name.clone(), inode })
}

fn removal(entry: &Entry) -> Option<Call> {
    let inode = entry.before.as_ref()?.identity.inode;
    Some(Call::Remove { name: entry.name.clone(), inode })
}

/// A list of calls with a sync behind each step that has any.
#[derive(Default)]
struct Calls(Vec<Call>);

impl Calls {
    fn step(&mut self, calls: impl IntoIterator<Item = Call>) {
        let before = self.0.len();
        self.0.extend(calls);
        if self.0.len() > before {
            self.0.push(Call::Sync);
        }
    }
}

/// All calls of a transaction, in order.
fn sequence(record: &Record) -> Vec<Call> {
    let mut calls = Calls::default();
    let goes = |entry: &&Entry| entry.waiting.is_none() && !record.is_consumed(&entry.name);
    let early: Vec<&Entry> = record.entries.iter().filter(|e| e.order == Order::Early).filter(goes).collect();
    // A `.cleaned` file voids the swaps beside it, so they go first.
    calls.step(early.iter().filter(|e| matches!(Role::of(&e.name), Role::Swap(_))).filter_map(|e| removal(e)));
    calls.step(early.iter().filter(|e| !matches!(Role::of(&e.name), Role::Swap(_))).filter_map(|e| removal(e)));
    let groups: BTreeSet<u32> = record
        .entries
        .iter()
        .filter_map(|e| if let Order::Group(group) = e.order { Some(group) } else { None })
        .collect();
    for group in groups {
        let members: Vec<&Entry> = record.entries.iter().filter(|e| e.order == Order::Group(group)).collect();
        sequence_group(record, members, &mut calls);
    }
    let plain: Vec<&Entry> = record.entries.iter().filter(|e| e.order == Order::Plain).collect();
    let is_index = |e: &&&Entry| matches!(Role::of(&e.name), Role::OffsetIndex(_));
    let placed = |e: &&Entry| place(e, e.name.clone());
    calls.step(plain.iter().filter(|e| !is_index(e)).filter_map(placed));
    calls.step(plain.iter().filter(is_index).filter_map(placed));
    calls.step(plain.iter().copied().filter(goes).filter_map(removal));
    calls.0
}

fn sequence_group(record: &Record, mut members: Vec<&Entry>, calls: &mut Calls) {
    members.sort_by_key(|entry| Role::of(&entry.name).segment());
    let guard = members.iter().position(|entry| entry.action == Action::Guard).map(|at| members.remove(at));
    let is_log = |entry: &&&Entry| matches!(Role::of(&entry.name), Role::Log(_));
    let new_bases: BTreeSet<Option<i64>> =
        members.iter().filter(is_log).filter(|e| e.waiting.is_some()).map(|e| Role::of(&e.name).segment()).collect();
    let is_new = |entry: &&&Entry| new_bases.contains(&Role::of(&entry.name).segment());
    let to_swap = |entry: &&Entry| place(entry, swap_name(&entry.name));
    if let Some(guard) = guard {
        calls.step(place(guard, guard.name.clone()));
        calls.step(members.iter().filter_map(to_swap));
        calls.step(guard.after.map(|after| Call::Remove { name: guard.name.clone(), inode: after.inode }));
    } else {
        // Index swaps that were left would be given to our log: they go first.
        let stale = |entry: &&Entry| {
            let is_index = !entry.name.as_bytes().ends_with(b".log.swap");
            let of_group = matches!(Role::of(&entry.name), Role::Swap(base) if new_bases.contains(&base));
            is_index && of_group && entry.waiting.is_none() && !record.is_consumed(&entry.name)
        };
        calls.step(record.entries.iter().filter(stale).filter_map(removal));
        calls.step(members.iter().filter(is_log).filter_map(to_swap));
        calls.step(members.iter().filter(|e| !is_log(e)).filter_map(to_swap));
    }
    let goes = |entry: &&&Entry| entry.waiting.is_none();
    let old_indexes = members.iter().filter(|e| !is_log(e)).filter(is_new);
    let removed_logs = members.iter().filter(is_log).filter(goes);
    calls.step(removed_logs.chain(old_indexes).filter_map(|e| removal(e)));
    calls.step(members.iter().filter(|e| !is_log(e) && !is_new(e)).filter(goes).filter_map(|e| removal(e)));
    for log in members.iter().filter(is_log) {
        calls.step(promote(log));
    }
    calls.step(members.iter().filter(|e| !is_log(e)).filter_map(|e| promote(e)));
}

/// What is known of a transaction from the names in its directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// Everything old stands unchanged and a broker would keep it: the transaction can be given up.
    NotBegun,
    /// Something old is gone, or a broker would complete it: it has to be carried on.
    Begun,
    /// It is as it should be when all is done.
    Done,
    /// Somebody else has changed this name, so that it can be neither given up nor carried on.
    Disturbed,
}

/// A transaction's directory, for looking and changing.
pub(crate) struct Ground<'a, F: Fs> {
    pub(crate) fs: &'a F,
    pub(crate) dir: &'a F::Dir,
    pub(crate) path: &'a Path,
}

impl<F: Fs> Ground<'_, F> {
    fn identity(&self, name: &EntryName) -> Result<Option<Identity>, StoreError> {
        let stat = self.fs.stat(self.dir, name).at(&self.path.join(name), "looking at a file")?;
        Ok(stat.as_ref().map(Identity::from))
    }

    fn has_inode(&self, name: &EntryName, inode: u64) -> Result<bool, StoreError> {
        Ok(self.identity(name)?.is_some_and(|found| found.inode == inode))
    }

    /// Does all calls of a transaction that are not done yet. Safe to repeat from any state in which a former attempt stopped.
    pub(crate) fn carry_out(&self, record: &Record) -> Result<(), StoreError> {
        for call in sequence(record) {
            match call {
                Call::Rename { from, to, inode } => {
                    if self.has_inode(&from, inode)? {
                        self.fs.rename(self.dir, &from, &to).at(&self.path.join(&to), "renaming")?;
                    }
                }
                Call::Remove { name, inode } => {
                    if self.has_inode(&name, inode)? {
                        self.fs.remove(self.dir, &name).at(&self.path.join(&name), "removing")?;
                    }
                }
                Call::Sync => self.sync()?,
            }
        }
        match self.first_undone(record)? {
            None => Ok(()),
            Some(name) => Err(StoreError::new(self.path.join(&name), StoreErrorKind::Changed)),
        }
    }

    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        self.fs.sync_dir(self.dir).at(self.path, "syncing a directory")
    }

    fn first_undone(&self, record: &Record) -> Result<Option<EntryName>, StoreError> {
        for entry in &record.entries {
            let is_done = match (&entry.waiting, entry.after) {
                (Some(_), Some(after)) if entry.action != Action::Guard => self.has_inode(&entry.name, after.inode)?,
                _ => self.identity(&entry.name)?.is_none(),
            };
            if !is_done {
                return Ok(Some(entry.name.clone()));
            }
        }
        Ok(None)
    }

    /// How far a transaction has come that was interrupted.
    pub(crate) fn progress(&self, record: &Record) -> Result<Progress, StoreError> {
        if self.first_undone(record)?.is_none() {
            return Ok(Progress::Done);
        }
        let (mut gone, mut disturbed, mut lost) = (false, false, false);
        let (mut swapped, mut guarded) = (BTreeMap::new(), BTreeSet::new());
        for entry in &record.entries {
            let found = self.identity(&entry.name)?;
            let before = entry.before.as_ref().map(|before| before.identity);
            let is_same = |known: Option<Identity>| known.map(|k| k.inode) == found.map(|f| f.inode);
            if is_same(before) {
                disturbed |= found != before;
            } else if is_same(entry.after) {
                gone |= entry.action != Action::Guard;
                disturbed |= found != entry.after;
            } else {
                gone = true;
                disturbed |= found.is_some();
            }
            let (Some(waiting), Some(after)) = (&entry.waiting, entry.after) else { continue };
            if entry.action == Action::Guard {
                guarded.extend(self.has_inode(&entry.name, after.inode)?.then_some(entry.order));
                continue;
            }
            let in_swap = self.has_inode(&swap_name(&entry.name), after.inode)?;
            let waits = !in_swap && self.has_inode(waiting, after.inode)?;
            lost |= !waits && !in_swap && found.is_none_or(|found| found.inode != after.inode);
            if matches!(Role::of(&entry.name), Role::Log(_)) {
                *swapped.entry(entry.order).or_insert(true) &= !waits;
            }
        }
        let promised = swapped.iter().any(|(group, complete)| *complete && !guarded.contains(group));
        Ok(match (gone, promised && !lost) {
            (false, false) => Progress::NotBegun,
            _ if lost || disturbed => Progress::Disturbed,
            _ => Progress::Begun,
        })
    }

    /// Takes back what a transaction that has not begun has put beside the old files. `is_ours` tells the names of the run.
    pub(crate) fn give_up(&self, record: &Record, is_ours: impl Fn(&EntryName) -> bool) -> Result<(), StoreError> {
        let remove = |name: &EntryName, inode: u64| -> Result<bool, StoreError> {
            let present = self.has_inode(name, inode)?;
            if present {
                self.fs.remove(self.dir, name).at(&self.path.join(name), "removing")?;
            }
            Ok(present)
        };
        let mut removed = false;
        let files = || record.entries.iter().filter(|entry| entry.action != Action::Guard);
        for entry in files().filter(|entry| entry.waiting.as_ref().is_some_and(&is_ours)) {
            if let Some(after) = entry.after {
                removed |= remove(&swap_name(&entry.name), after.inode)?;
            }
        }
        if removed {
            self.sync()?;
        }
        for guard in record.entries.iter().filter(|entry| entry.action == Action::Guard) {
            if let Some(after) = guard.after {
                remove(&guard.name, after.inode)?;
            }
        }
        self.clear(is_ours)
    }

    /// Removes all files of a run that wait under names of its own.
    pub(crate) fn clear(&self, is_ours: impl Fn(&EntryName) -> bool) -> Result<(), StoreError> {
        let names = self.fs.list(self.dir).at(self.path, "listing a directory")?;
        for name in names.iter().filter(|name| is_ours(name)) {
            self.fs.remove(self.dir, name).at(&self.path.join(name), "removing")?;
        }
        self.sync()
    }
}

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

use std::collections::{BTreeMap, BTreeSet, HashSet};
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
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
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
            Role::Swap(base) if entry.waiting.is_some() || base.is_some_and(|base| standing.contains(&base)) => {
                Order::Early
            }
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
    if swaps_stay || entries.iter().any(is_restored_swap) {
        return Vec::new();
    }
    let is_free = |name: &EntryName| !present.contains(name) && !entries.iter().any(|entry| entry.name == *name);
    let name = |base: i64| {
        let prefix = offset_prefix(base.into());
        let names = FileKind::ALL.map(|kind| format!("{prefix}{}{}", kind.extension(), FileSuffix::Cleaned.text()));
        names.into_iter().filter_map(EntryName::new).find(is_free)
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

fn placed(entry: &Entry) -> Option<Call> {
    place(entry, entry.name.clone())
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
    let early: Vec<&Entry> = record.entries.iter().filter(|e| e.order == Order::Early).collect();
    let is_swap = |entry: &&&Entry| matches!(Role::of(&entry.name), Role::Swap(_));
    let ends = |entry: &&&Entry, end: &str| entry.name.as_bytes().ends_with(end.as_bytes());
    // An index swap alone would be given to the log that stands, so it goes before its log and comes back after it. A `.cleaned`
    // file voids the swaps beside it, so they go before it and come back after it.
    let is_log = |entry: &&&Entry| ends(entry, ".log.swap");
    let is_index = |entry: &&&Entry| ends(entry, ".index.swap");
    let early = || early.iter();
    calls.step(early().filter(is_index).copied().filter(goes).filter_map(removal));
    calls.step(early().filter(|e| is_swap(e) && !is_log(e) && !is_index(e)).copied().filter(goes).filter_map(removal));
    calls.step(early().filter(is_log).copied().filter(goes).filter_map(removal));
    calls.step(early().filter(|e| !is_swap(e)).copied().filter(goes).filter_map(removal));
    calls.step(early().filter(|e| !is_swap(e)).filter_map(|e| placed(e)));
    calls.step(early().filter(is_log).filter_map(|e| placed(e)));
    calls.step(early().filter(|e| is_swap(e) && !is_log(e) && !is_index(e)).filter_map(|e| placed(e)));
    calls.step(early().filter(is_index).filter_map(|e| placed(e)));
    let groups: BTreeSet<u32> = record
        .entries
        .iter()
        .filter_map(|e| if let Order::Group(group) = e.order { Some(group) } else { None })
        .collect();
    for group in groups {
        Group::of(record, group).sequence(&mut calls);
    }
    let plain: Vec<&Entry> = record.entries.iter().filter(|e| e.order == Order::Plain).collect();
    let is_index = |e: &&&Entry| matches!(Role::of(&e.name), Role::OffsetIndex(_));
    calls.step(plain.iter().filter(|e| !is_index(e)).filter_map(|e| placed(e)));
    calls.step(plain.iter().filter(is_index).filter_map(|e| placed(e)));
    calls.step(plain.iter().filter(is_index).copied().filter(goes).filter_map(removal));
    calls.step(plain.iter().filter(|e| !is_index(e)).copied().filter(goes).filter_map(removal));
    calls.0
}

/// The files of a group of segments that change together.
struct Group<'a> {
    record: &'a Record,
    guard: Option<&'a Entry>,
    logs: Vec<&'a Entry>,
    offset_indexes: Vec<&'a Entry>,
    other_indexes: Vec<&'a Entry>,
    /// Bases whose logs have new content.
    new_bases: BTreeSet<i64>,
}

impl<'a> Group<'a> {
    fn of(record: &'a Record, group: u32) -> Self {
        let mut found = Self {
            record,
            guard: None,
            logs: Vec::new(),
            offset_indexes: Vec::new(),
            other_indexes: Vec::new(),
            new_bases: BTreeSet::new(),
        };
        for entry in record.entries.iter().filter(|entry| entry.order == Order::Group(group)) {
            match Role::of(&entry.name) {
                _ if entry.action == Action::Guard => found.guard = Some(entry),
                Role::Log(base) => {
                    found.new_bases.extend(entry.waiting.is_some().then_some(base));
                    found.logs.push(entry);
                }
                Role::OffsetIndex(_) => found.offset_indexes.push(entry),
                _ => found.other_indexes.push(entry),
            }
        }
        found.logs.sort_by_key(|entry| Role::of(&entry.name).segment());
        found
    }

    fn is_new(&self, entry: &Entry) -> bool {
        Role::of(&entry.name).segment().is_some_and(|base| self.new_bases.contains(&base))
    }

    fn indexes(&self) -> impl Iterator<Item = &'a Entry> + '_ {
        self.other_indexes.iter().chain(&self.offset_indexes).copied()
    }

    fn removed_logs(&self) -> impl Iterator<Item = &'a Entry> + '_ {
        self.logs.iter().copied().filter(|log| log.waiting.is_none())
    }

    fn sequence(&self, calls: &mut Calls) {
        let restores_swap = self.record.entries.iter().any(is_restored_swap);
        if restores_swap {
            return self.sequence_direct(calls);
        }
        let to_swap = |entry: &&Entry| place(entry, swap_name(&entry.name));
        if let Some(guard) = self.guard {
            calls.step(placed(guard));
            calls.step(self.logs.iter().chain(&self.other_indexes).chain(&self.offset_indexes).filter_map(to_swap));
            calls.step(guard.after.map(|after| Call::Remove { name: guard.name.clone(), inode: after.inode }));
        } else {
            self.remove_stale_swaps(calls);
            calls.step(self.logs.iter().filter_map(to_swap));
            calls.step(self.other_indexes.iter().filter_map(to_swap));
            calls.step(self.offset_indexes.iter().filter_map(to_swap));
        }
        let old_indexes = self.indexes().filter(|entry| self.is_new(entry));
        calls.step(self.removed_logs().chain(old_indexes).filter_map(removal));
        let goes = |entry: &&Entry| !self.is_new(entry) && entry.waiting.is_none();
        calls.step(self.indexes().filter(goes).filter_map(removal));
        for log in &self.logs {
            calls.step(promote(log));
        }
        calls.step(self.indexes().filter_map(promote));
    }

    /// Index swaps that were left would be given to our log. The offset index goes before the others: without it a broker
    /// rebuilds them all.
    fn remove_stale_swaps(&self, calls: &mut Calls) {
        let is_stale = |entry: &&Entry| {
            let of_group = matches!(Role::of(&entry.name), Role::Swap(Some(base)) if self.new_bases.contains(&base));
            let goes = entry.waiting.is_none() && !self.record.is_consumed(&entry.name);
            of_group && goes && !entry.name.as_bytes().ends_with(b".log.swap")
        };
        let is_offset_index = |entry: &&Entry| entry.name.as_bytes().ends_with(b".index.swap");
        let stale = || self.record.entries.iter().filter(is_stale);
        calls.step(stale().filter(is_offset_index).filter_map(removal));
        calls.step(stale().filter(|entry| !is_offset_index(entry)).filter_map(removal));
    }

    /// Beside a swap of a broker's own that comes back, one of ours would be completed with it.
    fn sequence_direct(&self, calls: &mut Calls) {
        calls.step(self.offset_indexes.iter().copied().filter(|entry| self.is_new(entry)).filter_map(removal));
        calls.step(self.other_indexes.iter().copied().filter(|entry| self.is_new(entry)).filter_map(removal));
        calls.step(self.removed_logs().filter_map(removal));
        calls.step(self.indexes().filter(|entry| entry.waiting.is_none()).filter_map(removal));
        calls.step(self.logs.iter().copied().filter_map(placed));
        calls.step(self.other_indexes.iter().copied().filter_map(placed));
        calls.step(self.offset_indexes.iter().copied().filter_map(placed));
    }
}

fn is_restored_swap(entry: &Entry) -> bool {
    entry.waiting.is_some() && matches!(Role::of(&entry.name), Role::Swap(_))
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
        let ours: BTreeSet<u64> = record.entries.iter().filter_map(|entry| Some(entry.after?.inode)).collect();
        for entry in &record.entries {
            let found = self.identity(&entry.name)?;
            let before = entry.before.as_ref().map(|before| before.identity);
            let is_same = |known: Option<Identity>| known.map(|k| k.inode) == found.map(|f| f.inode);
            if entry.action == Action::Guard {
                guarded.extend(is_same(entry.after).then_some(entry.order));
                continue;
            }
            if is_same(before) {
                disturbed |= found != before;
            } else if is_same(entry.after) {
                gone = true;
                disturbed |= found != entry.after;
            } else {
                gone = true;
                // Our own new file passes through the name of a leftover swap that it replaces.
                disturbed |= found.is_some_and(|found| !ours.contains(&found.inode));
            }
            let (Some(waiting), Some(after)) = (&entry.waiting, entry.after) else { continue };
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
            _ if lost || disturbed || !self.is_a_beginning(record)? => Progress::Disturbed,
            _ => Progress::Begun,
        })
    }

    /// Whether what is done are the first steps of the sequence, the last of them perhaps in part, and nothing behind them.
    fn is_a_beginning(&self, record: &Record) -> Result<bool, StoreError> {
        let mut is_open = false;
        let mut step = Vec::new();
        // A broker that has completed our swap may have run ahead of us there, and our own swap replaces one that was left.
        let is_exempt = |call: &Call| match call {
            Call::Rename { from, to, .. } => *from == swap_name(to),
            Call::Remove { name, .. } => {
                record.entries.iter().any(|e| e.waiting.is_some() && swap_name(&e.name) == *name)
            }
            Call::Sync => false,
        };
        let mut seen = HashSet::new();
        for call in sequence(record).into_iter().filter(|call| !is_exempt(call)) {
            if call != Call::Sync {
                if !seen.contains(&call) {
                    step.push(self.is_done(record, &call)?);
                    seen.insert(call);
                }
                continue;
            }
            if is_open && step.iter().any(|is_done| *is_done) {
                return Ok(false);
            }
            is_open |= step.iter().any(|is_done| !is_done);
            step.clear();
        }
        Ok(true)
    }

    fn is_done(&self, record: &Record, call: &Call) -> Result<bool, StoreError> {
        let waits = |inode: u64| {
            let waiting = record.entries.iter().find(|e| e.after.is_some_and(|after| after.inode == inode))?;
            waiting.waiting.clone()
        };
        match call {
            Call::Sync => Ok(true),
            // A file on its way is past a place when it is not there and not before it.
            Call::Rename { from, inode, .. } => {
                let waits_before = match waits(*inode).filter(|name| name != from) {
                    Some(name) => self.has_inode(&name, *inode)?,
                    None => false,
                };
                Ok(!waits_before && !self.has_inode(from, *inode)?)
            }
            Call::Remove { name, inode } => {
                let waits_before = match waits(*inode).filter(|waiting| waiting != name) {
                    Some(waiting) if record.entries.iter().any(|e| e.name == *name && e.action == Action::Guard) => {
                        self.has_inode(&waiting, *inode)?
                    }
                    _ => false,
                };
                Ok(!waits_before && !self.has_inode(name, *inode)?)
            }
        }
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

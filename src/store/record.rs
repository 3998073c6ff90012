//! A transaction as the journal keeps it: every name it touches, what stood there, what is to stand there.

use super::fs::{EntryName, FileStat, Xattrs};
use super::step::Place;

/// By what a file is known again: names may be exchanged behind our back, these do not repeat while the file lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    pub(crate) inode: u64,
    pub(crate) size_bytes: u64,
    pub(crate) mtime_ns: i128,
}

impl From<&FileStat> for Identity {
    fn from(stat: &FileStat) -> Self {
        Self { inode: stat.inode, size_bytes: stat.size_bytes, mtime_ns: stat.mtime_ns }
    }
}

/// What stood under a name before a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Before {
    pub(crate) identity: Identity,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) xattrs: Xattrs,
    /// Its name in `files/` of the journal. Only what a reversal puts away is not kept.
    pub(crate) saved: Option<EntryName>,
}

/// What a step does, in the journal's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Create,
    Replace,
    Remove,
    Truncate,
    Rename,
    /// An empty `.cleaned` file that makes brokers give up a swap that is not complete. Gone when the transaction is done.
    Guard,
    /// A reversal puts the original back.
    Restore,
}

impl Action {
    const WORDS: [(Self, &'static str); 7] = [
        (Self::Create, "create"),
        (Self::Replace, "replace"),
        (Self::Remove, "remove"),
        (Self::Truncate, "truncate"),
        (Self::Rename, "rename"),
        (Self::Guard, "guard"),
        (Self::Restore, "restore"),
    ];

    pub(crate) fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(action, _)| *action == self).map_or("", |(_, word)| word)
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, known)| *known == word).map(|(action, _)| *action)
    }
}

/// When within the transaction a name changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Order {
    /// Before all others: leftovers that would take part in our own swap.
    Early,
    /// With the segments of this group, lowest first.
    Group(u32),
    /// After all groups.
    Plain,
}

/// One name that a transaction touches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) action: Action,
    pub(crate) name: EntryName,
    pub(crate) order: Order,
    pub(crate) before: Option<Before>,
    /// Under what name the new file waits; `None` where the name goes.
    pub(crate) waiting: Option<EntryName>,
    /// The new file.
    pub(crate) after: Option<Identity>,
}

/// A transaction that is ready to be carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Record {
    pub(crate) place: Place,
    pub(crate) entries: Vec<Entry>,
}

impl Record {
    /// Whether a name is only moved to become another's new content.
    pub(crate) fn is_consumed(&self, name: &EntryName) -> bool {
        self.entries.iter().any(|entry| entry.waiting.as_ref() == Some(name))
    }
}

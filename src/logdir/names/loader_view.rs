//! What a broker's log loader makes of a file's name at start (`LogLoader.load`), before it opens anything.

use std::ffi::OsStr;

use super::file_name::{FileKind, leading_offset};
use crate::format::Offset;

/// The loader's reading of the name of a regular file in a partition directory, in the order in which it asks.
///
/// Holds for 3.0 and later; 2.8 asks the same of every name but completes swaps in another way, and knows no
/// `.snapshot.deleted`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LoaderView {
    /// Ends in `.deleted` and is no metadata snapshot: removed first of all.
    Removed,
    /// Ends in `.cleaned`: removed. The smallest such number decides which swaps are void.
    Cleaned(Offset),
    /// Ends in `.swap`: renamed to what it is without, or removed where a `.cleaned` of a number not above its own is left.
    Swap {
        /// The number in the name.
        base: Offset,
        /// Whether it is a log file, which makes the loader remove what lies in its range of offsets.
        kind: SwapKind,
    },
    /// An index; removed where `<number>.log`, written out, does not exist.
    Index(Offset),
    /// A log file: the segment of this number, written out in 20 digits, is opened. That need not be this file.
    Log(Offset),
    /// A producer snapshot, under the name it has.
    Snapshot(Offset),
    /// The number cannot be read where it has to be: the start fails, at every start.
    StartFails,
    /// Nothing is done, unless a swap is completed whose range holds the name's leading number.
    Ignored,
}

/// What a `.swap` file is without its suffix.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SwapKind {
    /// A log file.
    Log,
    /// Anything else.
    Other,
}

impl LoaderView {
    /// The loader's reading of `name`. A name that a JVM cannot decode is no regular file to it, and ignored.
    pub fn of(name: &OsStr) -> Self {
        let Some(text) = name.to_str() else { return Self::Ignored };
        let numbered = |view: fn(Offset) -> Self| leading_offset(name).map_or(Self::StartFails, view);
        if text.ends_with(".deleted") {
            return if text.ends_with(".checkpoint.deleted") { Self::Ignored } else { Self::Removed };
        }
        if text.ends_with(".cleaned") {
            return numbered(Self::Cleaned);
        }
        if let Some(stem) = text.strip_suffix(".swap") {
            let kind = if stem.ends_with(FileKind::Log.extension()) { SwapKind::Log } else { SwapKind::Other };
            return leading_offset(name).map_or(Self::StartFails, |base| Self::Swap { base, kind });
        }
        match FileKind::ALL.into_iter().find(|kind| text.ends_with(kind.extension())) {
            Some(FileKind::Log) => numbered(Self::Log),
            Some(FileKind::Snapshot) => numbered(Self::Snapshot),
            Some(_) => numbered(Self::Index),
            None => Self::Ignored,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn names_lead_to_what_brokers_were_seen_to_do() {
        let rows = [
            ("00000000000000000045.log", LoaderView::Log(Offset(45))),
            ("45.log", LoaderView::Log(Offset(45))),
            ("45.old.log", LoaderView::Log(Offset(45))),
            ("foo.log", LoaderView::StartFails),
            ("foo.index", LoaderView::StartFails),
            ("5.index", LoaderView::Index(Offset(5))),
            ("5.txnindex", LoaderView::Index(Offset(5))),
            ("abc.snapshot", LoaderView::StartFails),
            ("18.snapshot", LoaderView::Snapshot(Offset(18))),
            ("x.cleaned", LoaderView::StartFails),
            ("45.log.cleaned", LoaderView::Cleaned(Offset(45))),
            ("x.swap", LoaderView::StartFails),
            ("45.log.swap", LoaderView::Swap { base: Offset(45), kind: SwapKind::Log }),
            ("45.index.swap", LoaderView::Swap { base: Offset(45), kind: SwapKind::Other }),
            ("foo.log.deleted", LoaderView::Removed),
            ("anything.deleted", LoaderView::Removed),
            ("00000000000000000013-0000000001.checkpoint.deleted", LoaderView::Ignored),
            ("00000000000000000013-0000000001.checkpoint", LoaderView::Ignored),
            ("00000000000000000045.log.bak", LoaderView::Ignored),
            ("leader-epoch-checkpoint", LoaderView::Ignored),
        ];
        for (name, expected) in rows {
            assert_eq!(LoaderView::of(OsStr::new(name)), expected, "{name:?}");
        }
        assert_eq!(LoaderView::of(OsStr::from_bytes(b"\xff.log")), LoaderView::Ignored);
    }
}

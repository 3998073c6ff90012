//! `remote-log-index-cache`: local copies of the indexes of tiered segments. A broker with tiered storage checks them at its start,
//! and does not start over a bad one; one without does not look.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;

use super::context::Place;
use super::report::{FileReport, FileRole};
use super::root::RootFacts;
use super::scan::unreadable_at;
use crate::format::offset_index::{OFFSET_INDEX_ENTRY, OffsetIndex};
use crate::format::time_index::{TIME_INDEX_ENTRY, TimeIndex};
use crate::format::txn_index::{TXN_INDEX_ENTRY, TxnIndex};
use crate::format::{Offset, Position, len_u64};
use crate::logdir::names::{FileKind, RemoteCacheName, RemoteCacheState};
use crate::logdir::{DirEntry, IoMode, LogDir, SegmentFile, list_directory};
use crate::ops::coverage::Coverage;
use crate::ops::{Fact, Finding, FindingId, Severity};

/// The largest cached index that is read.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// Looks at the cache directory of a log dir.
pub(super) fn check(log_dir: &LogDir, directory: &OsStr, facts: &mut RootFacts) {
    let path = log_dir.path().join(directory);
    let entries = match list_directory(&path) {
        Ok(entries) => entries,
        Err(error) => {
            let finding = unreadable_at(&facts.place(directory), 0, &error);
            facts.findings.push(finding);
            return;
        }
    };
    let mut sets: BTreeMap<(Offset, String), BTreeSet<FileKind>> = BTreeMap::new();
    for entry in &entries {
        let place = facts.place(Path::new(directory).join(&entry.name));
        let name = RemoteCacheName::parse(&entry.name);
        match &name {
            Some(name) if name.state == RemoteCacheState::Cached && entry.not_a_file.is_none() => {
                sets.entry((name.start_offset, name.segment_id.clone())).or_default().insert(name.kind);
                index(&path, entry, name, &place, facts);
                continue;
            }
            Some(_) => facts.findings.push(place.finding(FindingId::LeftoverDeleted)),
            None => facts.findings.push(place.finding(FindingId::SegmentNameInvalid)),
        }
        let size = if entry.not_a_file.is_none() { entry.size_bytes } else { 0 };
        facts.files.push(FileReport::new(&place, FileRole::Leftover, size, Coverage::skipped(size)));
    }
    for ((start_offset, id), kinds) in sets.iter().filter(|(_, kinds)| kinds.len() < 3) {
        // A set that is not whole is removed and fetched again.
        for kind in kinds {
            let name = format!("{start_offset}_{id}{}", kind.extension());
            let place = facts.place(Path::new(directory).join(name));
            facts.findings.push(place.finding(FindingId::IndexWithoutLog).with_severity(Severity::Info));
        }
    }
}

fn index(path: &Path, entry: &DirEntry, name: &RemoteCacheName, place: &Place, facts: &mut RootFacts) {
    let size = entry.size_bytes;
    let read = SegmentFile::open(&path.join(&entry.name), IoMode::Pread).and_then(|file| file.read_whole(MOST_BYTES));
    match read {
        Ok(bytes) => {
            let size = len_u64(bytes.len());
            facts.files.push(FileReport::new(place, FileRole::RemoteIndex, size, Coverage::checked(size)));
            facts.findings.extend(sanity(&bytes, name, place));
        }
        Err(error) => {
            facts.files.push(FileReport::new(place, FileRole::RemoteIndex, size, Coverage::refused(size)));
            facts.findings.push(unreadable_at(place, size, &error));
        }
    }
}

/// What `sanityCheck` of the three indexes refuses.
fn sanity(bytes: &[u8], name: &RemoteCacheName, place: &Place) -> Option<Finding> {
    let start = name.start_offset;
    let (entry, misaligned) = match name.kind {
        FileKind::OffsetIndex => (OFFSET_INDEX_ENTRY, FindingId::OffsetIndexMisaligned),
        FileKind::TimeIndex => (TIME_INDEX_ENTRY, FindingId::TimeIndexMisaligned),
        _ => (TXN_INDEX_ENTRY, FindingId::TxnIndexMisaligned),
    };
    let remainder = bytes.len() % entry;
    if remainder > 0 {
        let at = Position(len_u64(bytes.len() - remainder));
        let bytes = Fact::Number(i64::try_from(remainder).unwrap_or(i64::MAX));
        let finding = place.finding_at(misaligned, at, len_u64(remainder)).with_facts(Fact::Number(0), bytes);
        let ignored = name.kind == FileKind::TxnIndex;
        return Some(finding.with_severity(if ignored { Severity::Warning } else { Severity::Critical }));
    }
    let finding = |id: FindingId| place.finding(id).with_severity(Severity::Critical);
    match name.kind {
        FileKind::OffsetIndex => {
            let index = OffsetIndex::new(start, bytes);
            let last = index.iter().next_back()?;
            (last.offset < start).then(|| finding(FindingId::OffsetIndexEntryOrder))
        }
        FileKind::TimeIndex => {
            let index = TimeIndex::new(start, bytes);
            let (first, last) = (index.entry(0)?, index.last()?);
            let is_zero = last.timestamp.0 == 0 && last.offset == start;
            match () {
                () if last.timestamp < first.timestamp && is_zero => Some(finding(FindingId::TimeIndexZeroPadded)),
                () if last.timestamp < first.timestamp || last.offset < start => {
                    Some(finding(FindingId::TimeIndexEntryOrder))
                }
                () => None,
            }
        }
        _ => TxnIndex::new(bytes)
            .iter()
            .any(|entry| entry.last_offset < start)
            .then(|| finding(FindingId::TxnIndexEntryWrong)),
    }
}

//! The index cache of tiered storage at a broker's start (`RemoteIndexCache.init`). With tiering off nobody looks at it.

use std::collections::BTreeMap;
use std::path::Path;

use crate::format::Offset;
use crate::format::offset_index::{OFFSET_INDEX_ENTRY, OffsetIndex};
use crate::format::time_index::{TIME_INDEX_ENTRY, TimeIndex};
use crate::format::txn_index::TxnIndex;
use crate::logdir::names::{FileKind, RemoteCacheName, RemoteCacheState};
use crate::logdir::{DirEntry, IoMode, ReadError, SegmentFile, list_directory};
use crate::ops::FindingId;

/// The largest index that is read.
const MOST_INDEX_BYTES: u64 = 512 * 1024 * 1024;

/// The file over which a broker with tiered storage does not start, at every start, and what is wrong with it.
pub(super) fn check_cache(directory: &Path) -> Result<Option<(DirEntry, FindingId)>, ReadError> {
    let mut sets: BTreeMap<(Offset, String), BTreeMap<FileKind, DirEntry>> = BTreeMap::new();
    for entry in list_directory(directory)? {
        if entry.not_a_file.is_some() {
            continue;
        }
        let Some(name) = RemoteCacheName::parse(&entry.name) else {
            return Ok(Some((entry, FindingId::SegmentNameInvalid)));
        };
        if name.state == RemoteCacheState::Cached {
            sets.entry((name.start_offset, name.segment_id)).or_default().insert(name.kind, entry);
        }
    }
    // A set that lacks one of the three is deleted without a look.
    for ((base, _), files) in sets.into_iter().filter(|(_, files)| files.len() == 3) {
        for (kind, entry) in files {
            let file = SegmentFile::open(&directory.join(&entry.name), IoMode::Pread)?;
            let bytes = file.read_whole(MOST_INDEX_BYTES)?;
            if let Some(reason) = fails_sanity_check(kind, base, &bytes) {
                return Ok(Some((entry, reason)));
            }
        }
    }
    Ok(None)
}

/// `sanityCheck` of the three indexes.
fn fails_sanity_check(kind: FileKind, base: Offset, bytes: &[u8]) -> Option<FindingId> {
    match kind {
        FileKind::OffsetIndex => {
            let index = OffsetIndex::new(base, bytes);
            let is_below = index.iter().next_back().is_some_and(|last| last.offset < base);
            match () {
                () if !bytes.len().is_multiple_of(OFFSET_INDEX_ENTRY) => Some(FindingId::OffsetIndexMisaligned),
                () if is_below => Some(FindingId::OffsetIndexEntryOrder),
                () => None,
            }
        }
        FileKind::TimeIndex => {
            let index = TimeIndex::new(base, bytes);
            let is_wrong = match (index.entry(0), index.last()) {
                (Some(first), Some(last)) => last.timestamp < first.timestamp || last.offset < base,
                _ => false,
            };
            match () {
                () if !bytes.len().is_multiple_of(TIME_INDEX_ENTRY) => Some(FindingId::TimeIndexMisaligned),
                () if is_wrong && index.zero_tail_len() > 0 => Some(FindingId::TimeIndexZeroPadded),
                () if is_wrong => Some(FindingId::TimeIndexEntryOrder),
                () => None,
            }
        }
        _ => {
            let mut entries = TxnIndex::new(bytes).iter();
            let is_below = entries.any(|entry| entry.last_offset < base);
            is_below.then_some(FindingId::TxnIndexEntryWrong)
        }
    }
}

//! What cleaning takes from a log file and why.

use std::collections::BTreeMap;

use super::cleaner::Examined;
use super::filter::RecordFate;
use super::verdict::Verdict;
use super::view::BatchView;
use crate::format::{BatchHeader, Offset, Position, TimestampMs};

/// Instants that are told apart in a list of times; later ones are counted together.
const MOST_INSTANTS: usize = 64;

/// Records that go, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Dropped {
    /// A later record has their key.
    pub superseded: u64,
    /// Tombstones whose time is over.
    pub tombstone: u64,
    /// Data of aborted transactions.
    pub aborted: u64,
    /// Without a key.
    pub unkeyed: u64,
    /// Markers of transactions that have no data any more.
    pub marker: u64,
}

impl Dropped {
    /// All of them.
    pub fn total(&self) -> u64 {
        [self.superseded, self.tombstone, self.aborted, self.unkeyed, self.marker]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.superseded = self.superseded.saturating_add(other.superseded);
        self.tombstone = self.tombstone.saturating_add(other.tombstone);
        self.aborted = self.aborted.saturating_add(other.aborted);
        self.unkeyed = self.unkeyed.saturating_add(other.unkeyed);
        self.marker = self.marker.saturating_add(other.marker);
    }

    pub(super) fn count(&mut self, fate: RecordFate, records: u64) {
        let slot = match fate {
            RecordFate::Kept => return,
            RecordFate::Superseded => &mut self.superseded,
            RecordFate::Tombstone => &mut self.tombstone,
            RecordFate::Aborted => &mut self.aborted,
            RecordFate::Marker => &mut self.marker,
            RecordFate::Unkeyed => &mut self.unkeyed,
        };
        *slot = slot.saturating_add(records);
    }
}

/// What goes in and what comes out. Records in are always records kept plus records dropped.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Accounting {
    /// Bytes of the log files.
    pub bytes_in: u64,
    /// Bytes of theirs that come out, rewritten ones included.
    pub bytes_kept: u64,
    /// Records, control records included.
    pub records_in: u64,
    /// Records that come out.
    pub records_kept: u64,
    /// The others, by reason.
    pub dropped: Dropped,
}

impl Accounting {
    /// Whether no record is unaccounted for.
    pub fn adds_up(&self) -> bool {
        self.records_kept.checked_add(self.dropped.total()) == Some(self.records_in)
    }

    /// Adds another log's.
    pub fn add(&mut self, other: &Self) {
        self.bytes_in = self.bytes_in.saturating_add(other.bytes_in);
        self.bytes_kept = self.bytes_kept.saturating_add(other.bytes_kept);
        self.records_in = self.records_in.saturating_add(other.records_in);
        self.records_kept = self.records_kept.saturating_add(other.records_kept);
        self.dropped.add(&other.dropped);
    }
}

/// Tombstones and markers that stay for now.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Waiting {
    /// How many may go, in the first round at or after an instant.
    pub removable_at: BTreeMap<TimestampMs, u64>,
    /// Those whose instants are beyond the list.
    pub later: u64,
    /// Those of the above whose instant the round has set.
    pub stamped_now: u64,
    /// Those without an instant: times of segments decide, or the instant is beyond all time.
    pub unstamped: u64,
}

impl Waiting {
    pub(super) fn count(&mut self, horizon: Option<TimestampMs>, records: u64) {
        let Some(horizon) = horizon else {
            self.unstamped = self.unstamped.saturating_add(records);
            return;
        };
        if self.removable_at.len() < MOST_INSTANTS || self.removable_at.contains_key(&horizon) {
            let slot = self.removable_at.entry(horizon).or_default();
            *slot = slot.saturating_add(records);
        } else {
            self.later = self.later.saturating_add(records);
        }
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.removable_at.values().copied().fold(self.later.saturating_add(self.unstamped), u64::saturating_add)
    }
}

/// What becomes of one log file on the disk.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SegmentTally {
    /// Base offset of the segment whose log it is.
    pub base: Offset,
    /// Base offset of the segment that what stays of it ends up in.
    pub into: Offset,
    /// Bytes and records in and out.
    pub accounting: Accounting,
    /// Batches that were read.
    pub batches_in: u64,
    /// Batches that come out byte for byte.
    pub batches_copied: u64,
    /// Batches that come out rewritten.
    pub batches_rewritten: u64,
    /// Batches of which only the header comes out.
    pub batches_emptied: u64,
    /// Batches with a wrong checksum: nobody verifies them when cleaning, and rewriting gives them a right one.
    pub crc_mismatches: Vec<CrcMismatch>,
    /// Batches with a wrong checksum, all of them.
    pub crc_mismatch_count: u64,
    /// The first record without a key that goes.
    pub first_unkeyed: Option<Offset>,
    /// Abort markers of data that no transaction index lists: it stays as if it were committed.
    pub unlisted_aborts: u64,
    /// Tombstones that stay.
    pub tombstones: Waiting,
    /// Markers that stay.
    pub markers: Waiting,
}

/// Wrong checksums that are listed for each log file.
const MOST_CRC_MISMATCHES: usize = 64;

impl SegmentTally {
    /// A batch is read that no round has read before.
    pub(super) fn count_read(&mut self, header: &BatchHeader, computed: u32) {
        self.batches_in += 1;
        self.accounting.bytes_in = self.accounting.bytes_in.saturating_add(header.size_bytes);
        if computed == header.crc {
            return;
        }
        self.crc_mismatch_count += 1;
        if self.crc_mismatches.len() < MOST_CRC_MISMATCHES {
            self.crc_mismatches.push(CrcMismatch {
                position: header.position,
                size_bytes: header.size_bytes,
                first_offset: header.base_offset,
                last_offset: header.last_offset,
                stored: header.crc,
                computed,
            });
        }
    }

    /// A batch is cleaned. `horizon` is the one that it had before.
    pub(super) fn count(
        &mut self,
        view: &BatchView<'_>,
        verdict: &Verdict<'_>,
        examined: &Examined,
        horizon: Option<TimestampMs>,
    ) {
        let accounting = &mut self.accounting;
        if view.prior.is_none() {
            let found = examined.kept.saturating_add(examined.dropped.total());
            accounting.records_in = accounting.records_in.saturating_add(found);
        }
        accounting.records_kept = accounting.records_kept.saturating_add(examined.kept);
        accounting.dropped.add(&examined.dropped);
        self.first_unkeyed = self.first_unkeyed.or(examined.first_unkeyed);
        match verdict {
            Verdict::Copy => self.batches_copied += 1,
            Verdict::Drop => {}
            Verdict::HeaderOnly { .. } => self.batches_emptied += 1,
            Verdict::Rewrite(_) => self.batches_rewritten += 1,
        }
        let after = if let Verdict::Rewrite(rewrite) = verdict { rewrite.horizon } else { horizon };
        let (waiting, count) = if view.header.is_control() {
            (&mut self.markers, examined.kept)
        } else {
            (&mut self.tombstones, examined.kept_tombstones)
        };
        if count > 0 {
            waiting.count(after, count);
            waiting.stamped_now += if after.is_some() && horizon.is_none() { count } else { 0 };
        }
    }
}

/// A batch with a wrong checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CrcMismatch {
    /// Where in the log file.
    pub position: Position,
    /// Its bytes.
    pub size_bytes: u64,
    /// Its first offset.
    pub first_offset: Offset,
    /// Its last offset.
    pub last_offset: Offset,
    /// What the header says.
    pub stored: u32,
    /// What the bytes have.
    pub computed: u32,
}

//! Which records and batches of a dump are shown.

use super::committed::CommittedView;
use super::decode::names_key;
use crate::format::message::InternalTopic;
use crate::format::record::Record;
use crate::format::{BatchHeader, LeaderEpoch, Offset, ProducerId, TimestampMs};

/// A half-open range; a side that is `None` is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range<T> {
    /// The first value inside.
    pub start: Option<T>,
    /// The first value behind.
    pub end: Option<T>,
}

impl<T> Default for Range<T> {
    fn default() -> Self {
        Self { start: None, end: None }
    }
}

impl<T: PartialOrd> Range<T> {
    fn contains(&self, value: &T) -> bool {
        self.start.as_ref().is_none_or(|start| value >= start) && self.end.as_ref().is_none_or(|end| value < end)
    }

    fn is_open(&self) -> bool {
        self.start.is_none() && self.end.is_none()
    }
}

/// What is shown: the default is everything.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Filter {
    /// Offsets.
    pub offsets: Range<Offset>,
    /// Record timestamps; a record without one is shown only where the range is open.
    pub timestamps: Range<TimestampMs>,
    /// The key's bytes, or what names it in an internal topic.
    pub key: Option<Vec<u8>>,
    /// The producer.
    pub producer_id: Option<ProducerId>,
    /// The leader epoch of the batch.
    pub leader_epoch: Option<LeaderEpoch>,
}

impl Filter {
    /// Whether anything of a batch can be shown, as its header tells. `base_offset` may lie below the true one.
    pub(super) fn admits_batch(&self, header: &BatchHeader, view: Option<&CommittedView>) -> bool {
        let ends_before = self.offsets.start.is_some_and(|start| header.last_offset < start);
        let starts_behind =
            !header.is_legacy_wrapper() && self.offsets.end.is_some_and(|end| header.base_offset >= end);
        !ends_before
            && !starts_behind
            && self.producer_id.is_none_or(|id| header.producer_id == Some(id))
            && self.leader_epoch.is_none_or(|epoch| header.leader_epoch == Some(epoch))
            && view.is_none_or(|view| view.shows(header))
    }

    /// Whether a record of an admitted batch is shown.
    pub(super) fn admits_record(&self, record: &Record<'_>, topic: Option<InternalTopic>) -> bool {
        self.offsets.contains(&record.offset)
            && (self.timestamps.is_open() || record.timestamp.is_some_and(|time| self.timestamps.contains(&time)))
            && self.key.as_ref().is_none_or(|key| is_key(record.key, key, topic))
    }

    /// Whether batches may be left out although they could be read: the filter looks at records.
    pub(super) fn looks_at_records(&self) -> bool {
        !self.timestamps.is_open() || self.key.is_some()
    }
}

fn is_key(found: Option<&[u8]>, wanted: &[u8], topic: Option<InternalTopic>) -> bool {
    let Some(found) = found else { return false };
    found == wanted || topic.is_some_and(|topic| names_key(topic, found, wanted))
}

//! A segment grown by appends, with the index entries that a broker writes on the way.

use super::Batch;
use super::files::{self, AbortedTransaction};
use super::legacy::Message;

/// What one append call can hold: a batch of either kind.
#[derive(Debug, Clone)]
pub(crate) enum Unit {
    Batch(Batch),
    Legacy(Message),
}

impl From<Batch> for Unit {
    fn from(batch: Batch) -> Self {
        Self::Batch(batch)
    }
}

impl From<Message> for Unit {
    fn from(message: Message) -> Self {
        Self::Legacy(message)
    }
}

impl Unit {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Batch(batch) => batch.build(),
            Self::Legacy(message) => message.build(),
        }
    }

    pub(crate) fn last_offset(&self) -> i64 {
        match self {
            Self::Batch(batch) => batch.last_offset(),
            Self::Legacy(message) => message.offset,
        }
    }

    fn max_timestamp_ms(&self) -> i64 {
        match self {
            Self::Batch(batch) => batch.computed_max_timestamp(),
            Self::Legacy(message) if message.magic == 0 => -1,
            Self::Legacy(message) => message.timestamp_ms,
        }
    }
}

/// A segment: its batches and the entries of its indexes.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) base_offset: i64,
    /// `index.interval.bytes`.
    pub(crate) index_interval_bytes: u64,
    pub(crate) units: Vec<Unit>,
    pub(crate) log: Vec<u8>,
    /// Offset and position.
    pub(crate) offset_entries: Vec<(i64, u64)>,
    /// Time and offset.
    pub(crate) time_entries: Vec<(i64, i64)>,
    pub(crate) aborted: Vec<AbortedTransaction>,
    bytes_since_entry: u64,
    /// The largest time so far and the last offset of the earliest batch that has it.
    largest_time: (i64, i64),
}

impl Segment {
    pub(crate) fn at(base_offset: i64) -> Self {
        Self {
            base_offset,
            index_interval_bytes: 4096,
            units: Vec::new(),
            log: Vec::new(),
            offset_entries: Vec::new(),
            time_entries: Vec::new(),
            aborted: Vec::new(),
            bytes_since_entry: 0,
            largest_time: (-1, base_offset),
        }
    }

    pub(crate) fn index_interval_bytes(mut self, bytes: u64) -> Self {
        self.index_interval_bytes = bytes;
        self
    }

    /// One append call per batch, as a leader does.
    pub(crate) fn append(self, unit: impl Into<Unit>) -> Self {
        self.append_together([unit.into()])
    }

    /// One append call with several batches, as a follower does: at most one index entry.
    pub(crate) fn append_together(mut self, units: impl IntoIterator<Item = Unit>) -> Self {
        let position = self.log.len() as u64;
        let mut last_offset = self.base_offset;
        for unit in units {
            self.log.extend(unit.bytes());
            last_offset = unit.last_offset();
            if unit.max_timestamp_ms() > self.largest_time.0 {
                self.largest_time = (unit.max_timestamp_ms(), last_offset);
            }
            self.units.push(unit);
        }
        if self.bytes_since_entry > self.index_interval_bytes {
            self.offset_entries.push((last_offset, position));
            self.offer_time_entry();
            self.bytes_since_entry = 0;
        }
        self.bytes_since_entry += self.log.len() as u64 - position;
        self
    }

    /// What rolling, closing and recovery add: the segment's largest time.
    pub(crate) fn sealed(mut self) -> Self {
        self.offer_time_entry();
        self
    }

    fn offer_time_entry(&mut self) {
        let last = self.time_entries.last().map_or(-1, |entry| entry.0);
        if self.largest_time.0 > last {
            self.time_entries.push(self.largest_time);
        }
    }

    /// With the indexes as recovery rebuilds them: an entry per batch where the interval is exceeded.
    pub(crate) fn recovered(&self) -> Self {
        let fresh = Self { aborted: self.aborted.clone(), ..Self::at(self.base_offset) };
        let mut fresh = fresh.index_interval_bytes(self.index_interval_bytes);
        let mut last_entry_position = 0;
        for unit in &self.units {
            let (position, last_offset) = (fresh.log.len() as u64, unit.last_offset());
            if unit.max_timestamp_ms() > fresh.largest_time.0 {
                fresh.largest_time = (unit.max_timestamp_ms(), last_offset);
            }
            if position - last_entry_position > fresh.index_interval_bytes {
                fresh.offset_entries.push((last_offset, position));
                fresh.offer_time_entry();
                last_entry_position = position;
            }
            fresh.log.extend(unit.bytes());
            fresh.units.push(unit.clone());
        }
        fresh.sealed()
    }

    /// The offset after the last one, or the base offset when there is none.
    pub(crate) fn next_offset(&self) -> i64 {
        self.units.last().map_or(self.base_offset, |unit| unit.last_offset() + 1)
    }

    /// Names and contents of the segment's files.
    pub(crate) fn files(&self) -> Vec<(String, Vec<u8>)> {
        let base = self.base_offset;
        let mut files = vec![
            (files::name(base, "log"), self.log.clone()),
            (files::name(base, "index"), files::offset_index(base, &self.offset_entries)),
            (files::name(base, "timeindex"), files::time_index(base, &self.time_entries)),
        ];
        if !self.aborted.is_empty() {
            files.push((files::name(base, "txnindex"), files::transaction_index(&self.aborted)));
        }
        files
    }
}

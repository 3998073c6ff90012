//! The first pass of a round: latest offsets of the keys in the dirty part (`Cleaner.buildOffsetMap`).

use std::ops::ControlFlow;

use super::failure::{CleanFailure, UncleanableKind};
use super::key_map::{Digest, KeyMap, SLOT_BYTES};
use super::options::CompactOptions;
use super::segments::{CleanerLog, LogSegment};
use super::select::{LogState, Selection};
use super::transactions::{Marker, PassTransactions, TransactionFate};
use super::view::BatchView;
use super::walk::Reading;
use crate::format::record::Record;
use crate::format::{Cursor, Offset, Position, Shape};
use crate::logdir::Scanned;
use crate::ops::RecordReader;

/// What the first pass came to.
#[derive(Debug)]
pub(super) struct Mapped {
    /// Latest offsets by key.
    pub(super) map: KeyMap,
    /// The last offset that the map speaks of; -1 where there is none.
    pub(super) latest: Offset,
    /// Whether all of the dirty part is in it.
    pub(super) coverage: Coverage,
}

impl Mapped {
    /// An empty map that speaks of all offsets below this one.
    pub(super) fn nothing_up_to(end: Offset) -> Result<Self, CleanFailure> {
        let map = KeyMap::new(2 * SLOT_BYTES, 1.0).map_err(CleanFailure::MapTooSmall)?;
        Ok(Self { map, latest: Offset(end.0.saturating_sub(1)), coverage: Coverage::Complete })
    }
}

/// How much of the dirty part a map holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coverage {
    /// All of it.
    Complete,
    /// It was full before.
    Partial,
}

/// Reads the dirty part.
pub(super) fn build_map(
    log: &CleanerLog,
    state: &LogState,
    selection: &Selection,
    options: &CompactOptions,
    reading: &Reading<'_>,
) -> Result<Mapped, CleanFailure> {
    let settings = &options.settings;
    let map = KeyMap::new(settings.map_bytes, settings.load_factor).map_err(CleanFailure::MapTooSmall)?;
    let (from, to) = (selection.first_dirty, selection.first_uncleanable);
    let mut pass = MapPass {
        options,
        reading,
        from,
        mapped: Mapped { map, latest: Offset(-1), coverage: Coverage::Complete },
        transactions: PassTransactions::default(),
        reader: RecordReader::default(),
        keys: Vec::new(),
    };
    let aborted = log.aborted_within(state.log_start, from, to);
    pass.transactions.expect(&aborted);
    let dirty = log.range(from, to);
    let ends = dirty.iter().skip(1).map(|segment| segment.base).chain([to]);
    for (segment, end) in dirty.iter().zip(ends) {
        if pass.map_segment(segment)?.is_break() {
            pass.mapped.coverage = Coverage::Partial;
            break;
        }
        // Over a gap of offsets at once.
        pass.mapped.latest = Offset(end.0.saturating_sub(1));
    }
    Ok(pass.mapped)
}

struct MapPass<'m> {
    options: &'m CompactOptions,
    reading: &'m Reading<'m>,
    from: Offset,
    mapped: Mapped,
    transactions: PassTransactions,
    reader: RecordReader,
    /// Digests and offsets of the batch at hand.
    keys: Vec<(Digest, Offset)>,
}

impl MapPass<'_> {
    fn map_segment(&mut self, segment: &LogSegment) -> Result<ControlFlow<()>, CleanFailure> {
        let start = segment.position_of(self.reading.image, self.from)?;
        let reading = self.reading;
        let mut position = Position(0);
        for source in &segment.sources {
            let is_plain = source.verdicts.is_none();
            let from = if is_plain { start } else { Position(0) };
            let flow = reading.walk(source, from, |scanned, prior| {
                let legacy = self.options.rules.cleaner.legacy_output;
                let Some(view) = BatchView::of(scanned.header(), prior, legacy) else {
                    return Ok(ControlFlow::Continue(()));
                };
                let is_before_start = !is_plain && position < start;
                position = position.advance(view.header.size_bytes);
                if is_before_start { Ok(ControlFlow::Continue(())) } else { self.map_batch(scanned, &view) }
            })?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn map_batch(&mut self, scanned: &Scanned<'_>, view: &BatchView<'_>) -> Result<ControlFlow<()>, CleanFailure> {
        let header = &view.header;
        if header.is_control() {
            let marker = read_marker(scanned, view, &mut self.reader)?;
            self.transactions.on_control(header, marker);
        } else if self.transactions.on_data(header) == TransactionFate::Stays {
            self.hash_records(scanned, view)?;
            self.mapped.map.touch(self.keys.iter().map(|(digest, _)| *digest));
            for (digest, offset) in &self.keys {
                if self.mapped.map.put(*digest, *offset).is_err() {
                    return Ok(ControlFlow::Break(()));
                }
                self.mapped.latest = *offset;
            }
        }
        if header.last_offset >= self.from {
            self.mapped.latest = header.last_offset;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn hash_records(&mut self, scanned: &Scanned<'_>, view: &BatchView<'_>) -> Result<(), CleanFailure> {
        let (keys, from, digest_key) = (&mut self.keys, self.from, self.options.digest_key);
        keys.clear();
        if view.header.records_count == Some(0) {
            return Ok(());
        }
        let mut index = 0u64;
        let read = self.reader.read(scanned, &mut |record: &Record<'_>| {
            let is_there = view.records.contains(index);
            index += 1;
            if let Some(key) = record.key.filter(|_| is_there && record.offset >= from) {
                keys.push((digest_key.digest(key), record.offset));
            }
            ControlFlow::Continue(())
        });
        read.map(drop).map_err(|error| CleanFailure::of_records(error, view.header.position))
    }
}

/// What the first record of a control batch says (`ControlRecordType.parse`).
pub(super) fn read_marker(
    scanned: &Scanned<'_>,
    view: &BatchView<'_>,
    reader: &mut RecordReader,
) -> Result<Marker, CleanFailure> {
    let position = view.header.position;
    if view.header.records_count == Some(0) {
        return Ok(Marker::Emptied);
    }
    let mut found = None;
    let read = reader.read(scanned, &mut |record: &Record<'_>| {
        found = Some(record.key.and_then(marker_type));
        ControlFlow::Break(())
    });
    match (found, read) {
        (Some(Some(marker)), _) => Ok(marker),
        (Some(None), _) => Err(UncleanableKind::MarkerMalformed.at(position)),
        (None, Ok(_)) => Ok(Marker::Emptied),
        (None, Err(error)) => Err(CleanFailure::of_records(error, position)),
    }
}

fn marker_type(key: &[u8]) -> Option<Marker> {
    let mut cursor = Cursor::new(key);
    let version = cursor.read_i16(Shape::ControlRecord).ok()?;
    let marker = match cursor.read_i16(Shape::ControlRecord).ok()? {
        0 => Marker::Abort,
        1 => Marker::Commit,
        _ => Marker::Other,
    };
    (version >= 0).then_some(marker)
}

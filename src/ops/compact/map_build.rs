//! The first pass of a round: latest offsets of the keys in the dirty part (`Cleaner.buildOffsetMap`).

use std::ops::ControlFlow;

use super::failure::{CleanFailure, UncleanableKind};
use super::key_map::{Crowd, Digest, KeyMap, SLOT_BYTES};
use super::options::CompactOptions;
use super::parts::TakeIn;
use super::segments::{CleanerLog, LogSegment, Source};
use super::select::{LogState, Selection};
use super::transactions::{Marker, PassTransactions, TransactionFate};
use super::view::BatchView;
use super::walk::Reading;
use crate::format::record::Record;
use crate::format::{BatchHeader, Cursor, Offset, Position, Shape};
use crate::logdir::Scanned;
use crate::ops::RecordReader;

/// Keys of a batch that are hashed ahead, at most.
const MOST_KEYS: usize = 64 * 1024;

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
        let map = KeyMap::new(2 * SLOT_BYTES, 1.0, Crowd::Few).map_err(CleanFailure::NoMap)?;
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
    let crowd = if selection.cleanable_bytes >= settings.map_bytes { Crowd::Many } else { Crowd::Few };
    let map = KeyMap::new(settings.map_bytes, settings.load_factor, crowd).map_err(CleanFailure::NoMap)?;
    let (from, to) = (selection.first_dirty, selection.first_uncleanable);
    let mut pass = MapPass {
        options,
        reading,
        from,
        mapped: Mapped { map, latest: Offset(-1), coverage: Coverage::Complete },
        transactions: PassTransactions::default(),
        hasher: KeyHasher { options, from, reader: RecordReader::default() },
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
    hasher: KeyHasher<'m>,
}

/// Hashes the keys of batch after batch; one for each thread.
struct KeyHasher<'m> {
    options: &'m CompactOptions,
    from: Offset,
    reader: RecordReader,
}

impl KeyHasher<'_> {
    /// Gives digests and offsets of the records that count, until `take` has enough.
    fn hash(
        &mut self,
        scanned: &Scanned<'_>,
        view: &BatchView<'_>,
        mut take: impl FnMut(Digest, Offset) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, CleanFailure> {
        let (from, digest_key) = (self.from, self.options.digest_key);
        let mut flow = ControlFlow::Continue(());
        if view.header.records_count == Some(0) {
            return Ok(flow);
        }
        let mut index = 0u64;
        let read = self.reader.read(scanned, &mut |record: &Record<'_>| {
            let is_there = view.records.contains(index);
            index += 1;
            if let Some(key) = record.key.filter(|_| is_there && record.offset >= from) {
                flow = take(digest_key.digest(key), record.offset);
            }
            flow
        });
        read.map(|_| flow).map_err(|error| CleanFailure::of_records(error, view.header.position))
    }

    /// What can be done for a batch before its transaction is known.
    fn ahead(&mut self, scanned: &Scanned<'_>) -> HashedBatch {
        let header = *scanned.header();
        let view = BatchView::of(&header, None, self.options.rules.cleaner.legacy_output);
        let (Scanned::Whole(_), Some(view)) = (scanned, view.filter(|_| !header.is_control())) else {
            return HashedBatch { header, keys: None };
        };
        let mut keys = Vec::new();
        let hashed = self.hash(scanned, &view, |digest, offset| {
            keys.push((digest, offset));
            if keys.len() < MOST_KEYS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        HashedBatch { header, keys: matches!(hashed, Ok(ControlFlow::Continue(()))).then_some(keys) }
    }
}

/// A batch whose keys a thread has hashed ahead; without keys it is left to the thread that takes the results in.
struct HashedBatch {
    header: BatchHeader,
    keys: Option<Vec<(Digest, Offset)>>,
}

/// One log file being mapped.
struct SourceMapping<'s, 'm> {
    source: &'s Source,
    pass: &'s mut MapPass<'m>,
}

impl MapPass<'_> {
    fn map_segment(&mut self, segment: &LogSegment) -> Result<ControlFlow<()>, CleanFailure> {
        let start = segment.position_of(self.reading.image, self.from)?;
        let mut position = Position(0);
        for source in &segment.sources {
            let flow = match source.verdicts {
                None => self.map_untouched(source, start),
                Some(_) => self.map_cleaned(source, start, &mut position),
            };
            if flow.map_err(|failure| failure.in_segment(source.base))?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn map_untouched(&mut self, source: &Source, start: Position) -> Result<ControlFlow<()>, CleanFailure> {
        let (reading, options, from) = (self.reading, self.options, self.from);
        let new_hasher = || KeyHasher { options, from, reader: RecordReader::default() };
        let work = |hasher: &mut KeyHasher<'_>, scanned: &Scanned<'_>| hasher.ahead(scanned);
        reading.run(source, start, new_hasher, work, &mut SourceMapping { source, pass: self })
    }

    /// `start` and `position` count in the log as earlier rounds have left it.
    fn map_cleaned(
        &mut self,
        source: &Source,
        start: Position,
        position: &mut Position,
    ) -> Result<ControlFlow<()>, CleanFailure> {
        let reading = self.reading;
        let legacy = self.options.rules.cleaner.legacy_output;
        reading.walk(source, Position(0), |scanned, prior| {
            let Some(view) = BatchView::of(scanned.header(), prior, legacy) else {
                return Ok(ControlFlow::Continue(()));
            };
            let is_before_start = *position < start;
            *position = position.advance(view.header.size_bytes);
            if is_before_start { Ok(ControlFlow::Continue(())) } else { self.map_batch(scanned, &view) }
        })
    }

    fn map_batch(&mut self, scanned: &Scanned<'_>, view: &BatchView<'_>) -> Result<ControlFlow<()>, CleanFailure> {
        let header = &view.header;
        if header.is_control() {
            let marker = read_marker(scanned, view, &mut self.hasher.reader)?;
            self.transactions.on_control(header, marker);
        } else if self.transactions.on_data(header) == TransactionFate::Stays {
            let mapped = &mut self.mapped;
            let put = |digest, offset| {
                if mapped.map.put(digest, offset).is_err() {
                    return ControlFlow::Break(());
                }
                mapped.latest = offset;
                ControlFlow::Continue(())
            };
            if self.hasher.hash(scanned, view, put)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        self.reach(header);
        Ok(ControlFlow::Continue(()))
    }

    fn put(&mut self, keys: &[(Digest, Offset)]) -> ControlFlow<()> {
        std::hint::black_box(self.mapped.map.touch(keys.iter().map(|(digest, _)| *digest)));
        for (digest, offset) in keys {
            if self.mapped.map.put(*digest, *offset).is_err() {
                return ControlFlow::Break(());
            }
            self.mapped.latest = *offset;
        }
        ControlFlow::Continue(())
    }

    fn reach(&mut self, header: &BatchHeader) {
        if header.last_offset >= self.from {
            self.mapped.latest = header.last_offset;
        }
    }
}

impl TakeIn for SourceMapping<'_, '_> {
    type Item = HashedBatch;

    fn take(&mut self, batch: HashedBatch) -> Result<ControlFlow<()>, CleanFailure> {
        let header = &batch.header;
        let Some(keys) = batch.keys else { return self.go_through(header.position, header.end()) };
        if self.pass.transactions.on_data(header) == TransactionFate::Stays && self.pass.put(&keys).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        self.pass.reach(header);
        Ok(ControlFlow::Continue(()))
    }

    fn go_through(&mut self, from: Position, until: Position) -> Result<ControlFlow<()>, CleanFailure> {
        let legacy = self.pass.options.rules.cleaner.legacy_output;
        let reading = self.pass.reading;
        reading.walk_range(self.source, from, until, |scanned| match BatchView::of(scanned.header(), None, legacy) {
            Some(view) => self.pass.map_batch(scanned, &view),
            None => Ok(ControlFlow::Continue(())),
        })
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

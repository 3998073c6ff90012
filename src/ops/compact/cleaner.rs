//! One batch cleaned: which of its records stay, and what comes out of it (`MemoryRecords.filterTo`). One for each thread.

use std::ops::ControlFlow;

use super::failure::{CleanFailure, UncleanableKind};
use super::filter::{Judged, MarkerState, RecordFate, RecordsFate, Retention, RoundFilter, SegmentDeletes};
use super::key_map::Digest;
use super::rewrite::{Rewriter, Rewritten, Shape, write_header_only};
use super::tally::Dropped;
use super::verdict::{KeptRecords, Rewrite, Verdict};
use super::view::{BatchView, OutputBatch};
use crate::format::record::Record;
use crate::format::{BatchHeader, Offset, TimestampMs};
use crate::logdir::Scanned;
use crate::ops::RecordReader;
use crate::ops::broker::cleaner_rules::{DeleteRetention, LegacyOutput};

/// Records that wait at most.
const MOST_PENDING: usize = 1024;

/// Cleans batch after batch. Keeps its buffers and contexts.
#[derive(Debug)]
pub(super) struct BatchCleaner<'f> {
    filter: &'f RoundFilter<'f>,
    reader: RecordReader,
    rewriter: Rewriter,
    scratch: Vec<u8>,
    pending: Vec<Pending>,
}

/// A record that waits until the slots of its batch's keys have been fetched.
#[derive(Clone, Copy, Debug)]
enum Pending {
    /// Of a batch on the disk, but not of the batch that earlier rounds have left.
    NotThere,
    /// Decided without a look-up.
    Decided(RecordFate, PendingRecord),
    /// To be looked up.
    Keyed(Digest, PendingRecord),
}

/// What has to be remembered of a record.
#[derive(Clone, Copy, Debug)]
struct PendingRecord {
    offset: Offset,
    value: Value,
}

/// Whether a record has a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Value {
    /// It has one, if an empty one.
    Present,
    /// It has none.
    Absent,
}

/// What the records of a batch come to.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Examined {
    /// Records that stay.
    pub(super) kept: u64,
    /// Those of them without a value.
    pub(super) kept_tombstones: u64,
    /// The first record without a key that goes.
    pub(super) first_unkeyed: Option<Offset>,
    /// Records that go.
    pub(super) dropped: Dropped,
    has_foreign_magic: bool,
}

impl Examined {
    /// All records of a batch that goes as a whole.
    pub(super) fn discarded(view: &BatchView<'_>) -> Self {
        let reason = if view.header.is_control() { RecordFate::Marker } else { RecordFate::Aborted };
        let mut examined = Self::default();
        examined.dropped.count(reason, view.records_count());
        examined
    }
}

/// What becomes of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Decision {
    /// It stays as the round has met it.
    Unchanged,
    /// It goes.
    Drop,
    /// Its header stays.
    HeaderOnly { max_timestamp: i64, span: Option<(Offset, i32)> },
    /// It is rewritten with the records that stay.
    Rewrite { horizon: Option<TimestampMs>, span: Option<(Offset, i32)>, size_bytes: u64, max_timestamp: i64 },
}

impl Decision {
    /// The verdict that this is on the batch on the disk.
    pub(super) fn verdict<'k>(self, view: &BatchView<'k>, kept: &'k KeptRecords) -> Verdict<'k> {
        match self {
            Self::Unchanged => view.unchanged(),
            Self::Drop => Verdict::Drop,
            Self::HeaderOnly { max_timestamp, span } => Verdict::HeaderOnly { max_timestamp, span },
            Self::Rewrite { horizon, span, size_bytes, max_timestamp } => {
                Verdict::Rewrite(Rewrite { kept: kept.as_view(), horizon, span, size_bytes, max_timestamp })
            }
        }
    }
}

/// A batch, cleaned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cleaned {
    /// What becomes of it.
    pub(super) decision: Decision,
    /// What its records came to.
    pub(super) examined: Examined,
    /// What comes out.
    pub(super) output: Option<OutputBatch>,
}

impl Cleaned {
    /// A batch that goes with all its records.
    pub(super) fn discarded(view: &BatchView<'_>) -> Self {
        Self { decision: Decision::Drop, examined: Examined::discarded(view), output: None }
    }
}

impl<'f> BatchCleaner<'f> {
    pub(super) fn new(filter: &'f RoundFilter<'f>) -> Self {
        Self {
            filter,
            reader: RecordReader::default(),
            rewriter: Rewriter::default(),
            scratch: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// What came out of the batch that was cleaned last, where it was compressed anew: not to be done twice.
    pub(super) fn made(&self, cleaned: &Cleaned, header: &BatchHeader) -> Option<Box<[u8]>> {
        let is_compressed = header.attributes.codec_id() != 0;
        (is_compressed && matches!(cleaned.decision, Decision::Rewrite { .. })).then(|| self.scratch.as_slice().into())
    }

    /// The reader, for control records.
    pub(super) fn reader(&mut self) -> &mut RecordReader {
        &mut self.reader
    }

    /// Cleans a batch of which only its transaction was looked at. Which of its records stay is put into `kept`.
    pub(super) fn clean(
        &mut self,
        scanned: &Scanned<'_>,
        view: &BatchView<'_>,
        judged: &Judged,
        deletes: SegmentDeletes,
        kept: &mut KeptRecords,
    ) -> Result<Cleaned, CleanFailure> {
        kept.clear();
        if judged.retention == Retention::Delete {
            return Ok(Cleaned::discarded(view));
        }
        let mut examined = Examined::default();
        if view.header.records_count != Some(0) {
            let kept = &mut *kept;
            self.examine(scanned, view, (judged.records, deletes), (&mut examined, kept))?;
        }
        let (decision, output) = self.decide(scanned, view, judged, &examined, kept)?;
        Ok(Cleaned { decision, examined, output })
    }

    /// Reads the records and decides on each. Those that are to be looked up wait for one another, so that their slots are fetched
    /// together.
    fn examine(
        &mut self,
        scanned: &Scanned<'_>,
        view: &BatchView<'_>,
        (records, deletes): (RecordsFate, SegmentDeletes),
        (examined, kept): (&mut Examined, &mut KeptRecords),
    ) -> Result<(), CleanFailure> {
        let (filter, pending) = (self.filter, &mut self.pending);
        pending.clear();
        let mut index = 0u64;
        let read = self.reader.read_stored(scanned, |record: &Record<'_>, stored| {
            let is_there = view.records.contains(index);
            index += 1;
            let value = if record.value.is_some() { Value::Present } else { Value::Absent };
            let waiting = PendingRecord { offset: record.offset, value };
            pending.push(if is_there {
                examined.has_foreign_magic |= stored.is_some_and(|message| message.magic != view.header.magic);
                match (filter.fate_without_key(view, records, record), record.key) {
                    (Some(fate), _) => Pending::Decided(fate, waiting),
                    (None, Some(key)) => Pending::Keyed(filter.digest_key.digest(key), waiting),
                    (None, None) => Pending::Decided(RecordFate::Unkeyed, waiting),
                }
            } else {
                Pending::NotThere
            });
            if pending.len() >= MOST_PENDING {
                settle(filter, view, deletes, pending, examined, kept);
            }
            ControlFlow::Continue(())
        });
        settle(filter, view, deletes, pending, examined, kept);
        read.map(drop).map_err(|error| CleanFailure::of_records(error, view.header.position))
    }

    fn decide(
        &mut self,
        scanned: &Scanned<'_>,
        view: &BatchView<'_>,
        judged: &Judged,
        examined: &Examined,
        kept: &KeptRecords,
    ) -> Result<(Decision, Option<OutputBatch>), CleanFailure> {
        let header = &view.header;
        let rules = self.filter.rules;
        if examined.kept == 0 {
            return match judged.retention {
                Retention::RetainEmpty => self.empty(scanned, view),
                _ => Ok((Decision::Drop, None)),
            };
        }
        let horizon = view.horizon(rules.delete_retention);
        let is_stamped_now = rules.delete_retention == DeleteRetention::BatchHorizon
            && horizon.is_none()
            && (examined.kept_tombstones > 0 || judged.marker == MarkerState::OfEmptyTransaction)
            && (!header.is_legacy() || rules.legacy_output == LegacyOutput::BecomesCurrent);
        let is_original = examined.dropped.total() == 0
            && !examined.has_foreign_magic
            && (!header.is_legacy() || rules.legacy_output == LegacyOutput::SameMagic);
        if is_original && !is_stamped_now {
            return Ok((Decision::Unchanged, Some(OutputBatch::of(header))));
        }
        let horizon = if is_stamped_now { Some(self.filter.new_horizon()) } else { horizon };
        let span = match view.prior {
            Some(Verdict::Rewrite(rewrite)) if rules.legacy_output == LegacyOutput::BecomesCurrent => rewrite.span,
            _ => None,
        };
        let shape = Shape { kept: kept.as_view(), horizon, span, legacy: rules.legacy_output };
        self.scratch.clear();
        let out = self.rewriter.rewrite(scanned, &shape, &mut self.reader, &mut self.scratch)?;
        let decision = Decision::Rewrite {
            horizon: horizon.filter(|horizon| horizon.0 >= 0),
            span: scanned.header().is_legacy().then_some((out.base_offset, out.last_offset_delta)),
            size_bytes: out.size_bytes,
            max_timestamp: out.max_timestamp,
        };
        Ok((decision, Some(output_of(&out))))
    }

    fn empty(
        &mut self,
        scanned: &Scanned<'_>,
        view: &BatchView<'_>,
    ) -> Result<(Decision, Option<OutputBatch>), CleanFailure> {
        let header = &view.header;
        if header.is_legacy() {
            return Err(UncleanableKind::EmptyLegacy.at(header.position));
        }
        self.scratch.clear();
        let out = write_header_only(header, &mut self.scratch)?;
        let is_same = matches!(scanned, Scanned::Whole(batch) if batch.bytes() == self.scratch);
        let span = scanned.header().is_legacy().then_some((header.base_offset, header.last_offset_delta));
        let decision =
            if is_same { Decision::Unchanged } else { Decision::HeaderOnly { max_timestamp: out.max_timestamp, span } };
        Ok((decision, Some(output_of(&out))))
    }
}

/// Decides on the records that wait.
fn settle(
    filter: &RoundFilter<'_>,
    view: &BatchView<'_>,
    deletes: SegmentDeletes,
    pending: &mut Vec<Pending>,
    examined: &mut Examined,
    kept: &mut KeptRecords,
) {
    let digests = pending.iter().filter_map(|pending| match pending {
        Pending::Keyed(digest, _) => Some(*digest),
        _ => None,
    });
    std::hint::black_box(filter.map.touch(digests));
    for pending in pending.drain(..) {
        let (fate, record) = match pending {
            Pending::NotThere => {
                kept.drop_next();
                continue;
            }
            Pending::Decided(fate, record) => (fate, record),
            Pending::Keyed(digest, record) => {
                (filter.fate_of_key(view, deletes, digest, (record.offset, record.value)), record)
            }
        };
        if fate == RecordFate::Kept {
            kept.keep();
            examined.kept += 1;
            examined.kept_tombstones += u64::from(record.value == Value::Absent);
        } else {
            kept.drop_next();
            examined.dropped.count(fate, 1);
            if fate == RecordFate::Unkeyed {
                examined.first_unkeyed.get_or_insert(record.offset);
            }
        }
    }
}

fn output_of(out: &Rewritten) -> OutputBatch {
    OutputBatch {
        size_bytes: out.size_bytes,
        last_offset: out.last_offset(),
        last_record_offset: out.last_record_offset,
        max_timestamp: (out.max_timestamp != -1).then_some(TimestampMs(out.max_timestamp)),
    }
}

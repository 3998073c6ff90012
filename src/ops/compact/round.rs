//! The second pass of a round: segments recopied into groups, without the records that go (`Cleaner.cleanSegments`).

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::chunk::Indexer;
use super::failure::{CleanFailure, UncleanableKind};
use super::filter::{
    Judged, LastRecords, MarkerState, RecordFate, RecordsFate, Retention, RoundFilter, SegmentDeletes,
};
use super::group::group_segments;
use super::map_build::{Coverage, Mapped, build_map, read_marker};
use super::options::CompactOptions;
use super::rewrite::{Rewriter, Rewritten, Shape, write_header_only};
use super::segments::{CleanerLog, LogSegment, Source};
use super::select::{LogState, Selection};
use super::tally::{CrcMismatch, Dropped, SegmentTally, Waiting};
use super::transactions::PassTransactions;
use super::verdict::{KeptRecords, Rewrite, Verdict, VerdictWriter};
use super::view::{BatchView, OutputBatch};
use super::walk::Reading;
use crate::format::record::Record;
use crate::format::time_index::TimeIndex;
use crate::format::txn_index::{AbortedTransaction, TxnIndex};
use crate::format::{Offset, Position, TimestampMs, len_u64};
use crate::logdir::Scanned;
use crate::ops::RecordReader;
use crate::ops::broker::cleaner_rules::{DeleteRetention, LastBatch, LegacyOutput};
use crate::ops::broker::index_rules::TxnIndexBuilder;

/// Wrong checksums that are listed for each log file.
const MOST_CRC_MISMATCHES: usize = 64;

/// What a round did.
#[derive(Clone, PartialEq, Debug)]
pub struct RoundReport {
    /// What could be cleaned before it.
    pub selection: Selection,
    /// The first offset that it did not clean.
    pub end: Offset,
    /// Keys in the map.
    pub mapped_keys: u64,
    /// Keys that the map can hold.
    pub most_keys: u64,
    /// Whether the map held all of the dirty part.
    pub coverage: Coverage,
    /// Bytes of the segments that were recopied.
    pub bytes_before: u64,
    /// Bytes that came out.
    pub bytes_after: u64,
    /// Segments that were recopied, by the one that each ended up in.
    pub groups: Vec<(Offset, Vec<Offset>)>,
}

/// What is the same in all rounds of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundInput<'r> {
    pub(super) options: &'r CompactOptions,
    pub(super) state: &'r LogState,
    pub(super) last_records: &'r LastRecords,
    pub(super) reading: &'r Reading<'r>,
}

/// What becomes of each log file on the disk, by the base offset of its segment.
pub(super) type Tallies = BTreeMap<Offset, SegmentTally>;

/// Makes a round.
pub(super) fn run_round(
    input: &RoundInput<'_>,
    log: &mut CleanerLog,
    selection: Selection,
    tallies: &mut Tallies,
) -> Result<RoundReport, CleanFailure> {
    let (options, state) = (input.options, input.state);
    let mapped = build_map(log, state, &selection, options, input.reading)?;
    clean_mapped(input, log, selection, &mapped, tallies)
}

/// The round that a log without dirty data would get if a record came in: only time takes something from it.
pub(super) fn run_idle_round(
    input: &RoundInput<'_>,
    log: &mut CleanerLog,
    selection: Selection,
    tallies: &mut Tallies,
) -> Result<RoundReport, CleanFailure> {
    let mapped = Mapped::nothing_up_to(selection.first_uncleanable)?;
    clean_mapped(input, log, selection, &mapped, tallies)
}

fn clean_mapped(
    input: &RoundInput<'_>,
    log: &mut CleanerLog,
    selection: Selection,
    mapped: &Mapped,
    tallies: &mut Tallies,
) -> Result<RoundReport, CleanFailure> {
    let (options, state) = (input.options, input.state);
    let end = mapped.latest.next();
    let rules = options.rules.cleaner;
    let filter = RoundFilter {
        rules,
        map: &mapped.map,
        digest_key: options.digest_key,
        latest_mapped: mapped.latest,
        last_records: input.last_records,
        protected_end: match rules.last_batch {
            LastBatch::Unprotected => None,
            LastBatch::OfRound => Some(selection.first_uncleanable),
            LastBatch::AtHighWatermark => Some(state.high_watermark),
        },
        now: options.now,
    };
    let legacy_horizon = log
        .range(Offset(0), selection.first_dirty)
        .last()
        .map_or(0, |segment| segment.modified.0.wrapping_sub(options.settings.delete_retention_ms));
    let segments = log.range(Offset(0), end);
    let groups = group_segments(segments, &options.settings, selection.first_uncleanable, rules.empty_segments);
    let mut report = RoundReport {
        end,
        mapped_keys: len_u64(mapped.map.len()),
        most_keys: len_u64(mapped.map.most_keys()),
        coverage: mapped.coverage,
        bytes_before: 0,
        bytes_after: 0,
        groups: Vec::with_capacity(groups.len()),
        selection,
    };
    let mut pass = CleanPass::new(input, &filter, log, legacy_horizon, tallies);
    let mut cleaned_groups = Vec::with_capacity(groups.len());
    for group in groups {
        let Some((first, last)) = group.first().zip(group.last()) else { continue };
        let cleaned = pass.clean_group(group, first, last)?;
        report.bytes_before += group.iter().map(|segment| segment.size_bytes).sum::<u64>();
        report.bytes_after += cleaned.size_bytes;
        report.groups.push((first.base, group.iter().map(|segment| segment.base).collect()));
        cleaned_groups.push((last.base, cleaned));
    }
    for (last, cleaned) in cleaned_groups {
        log.replace(cleaned.base, last.next(), cleaned);
    }
    Ok(report)
}

struct CleanPass<'p> {
    input: &'p RoundInput<'p>,
    filter: &'p RoundFilter<'p>,
    /// The log before the round: groups that are done already have no entries that a later one asks for.
    before: &'p CleanerLog,
    legacy_horizon: i64,
    transactions: PassTransactions,
    reader: RecordReader,
    rewriter: Rewriter,
    tallies: &'p mut Tallies,
    kept: KeptRecords,
    scratch: Vec<u8>,
    verdict_bytes: u64,
}

/// What has come out of a group so far.
struct GroupOutput {
    indexer: Indexer,
    aborted: TxnIndexBuilder,
    size_bytes: u64,
    next_offset: Offset,
}

/// What the records of a batch come to.
#[derive(Clone, Copy, Default)]
struct Examined {
    kept: u64,
    kept_tombstones: u64,
    first_unkeyed: Option<Offset>,
    has_foreign_magic: bool,
    dropped: Dropped,
}

impl Examined {
    /// All records of a batch that goes as a whole.
    fn discarded(view: &BatchView<'_>) -> Self {
        let reason = if view.header.is_control() { RecordFate::Marker } else { RecordFate::Aborted };
        let mut examined = Self::default();
        examined.dropped.count(reason, view.records_count());
        examined
    }
}

impl<'p> CleanPass<'p> {
    fn new(
        input: &'p RoundInput<'p>,
        filter: &'p RoundFilter<'p>,
        before: &'p CleanerLog,
        legacy_horizon: i64,
        tallies: &'p mut Tallies,
    ) -> Self {
        Self {
            input,
            filter,
            before,
            legacy_horizon,
            transactions: PassTransactions::default(),
            reader: RecordReader::default(),
            rewriter: Rewriter::default(),
            tallies,
            kept: KeptRecords::default(),
            scratch: Vec::new(),
            verdict_bytes: 0,
        }
    }

    fn clean_group(
        &mut self,
        group: &[LogSegment],
        first: &LogSegment,
        last: &LogSegment,
    ) -> Result<LogSegment, CleanFailure> {
        let options = self.input.options;
        let mut output = GroupOutput {
            indexer: Indexer::new(first.base, &options.settings, options.rules.append_indexing),
            aborted: TxnIndexBuilder::default(),
            size_bytes: 0,
            next_offset: first.base,
        };
        let mut sources = Vec::new();
        let nexts = group.iter().skip(1).map(|segment| Some(segment.base)).chain([None]);
        for (segment, next) in group.iter().zip(nexts) {
            let upper = match next {
                Some(base) => base,
                None => self.input.reading.next_offset(segment)?,
            };
            let aborted = self.before.aborted_within(self.input.state.log_start, segment.base, upper);
            self.transactions.expect(&aborted);
            self.clean_segment(segment, first.base, &mut output, &mut sources)?;
        }
        let built = output.indexer.finish().map_err(|failure| failure.in_segment(first.base))?;
        let txn_index = output.aborted.finish();
        Ok(LogSegment {
            base: first.base,
            size_bytes: output.size_bytes,
            offset_index_bytes: len_u64(built.offset_index.len()),
            time_index_bytes: len_u64(built.time_index.len()),
            modified: last.modified,
            last_indexed_timestamp: TimeIndex::new(first.base, &built.time_index).last().map(|entry| entry.timestamp),
            aborted: TxnIndex::new(&txn_index).iter().collect(),
            next_offset: Some(output.next_offset),
            sources,
            built: Some(Arc::new(built)),
        })
    }

    fn clean_segment(
        &mut self,
        segment: &LogSegment,
        into: Offset,
        output: &mut GroupOutput,
        sources: &mut Vec<Source>,
    ) -> Result<(), CleanFailure> {
        let deletes =
            if segment.modified.0 > self.legacy_horizon { SegmentDeletes::Retained } else { SegmentDeletes::Discarded };
        let reading = self.input.reading;
        output.indexer.begin_source(segment.size_bytes);
        for source in &segment.sources {
            let mut writer = VerdictWriter::default();
            self.begin_tally(source, into);
            let _ = reading.walk(source, Position(0), |scanned, prior| {
                self.clean_batch(scanned, prior, (source.base, deletes), output, &mut writer)?;
                if self.verdict_bytes + writer.size_bytes() > self.input.options.most_verdict_bytes {
                    return Err(CleanFailure::Limit { bytes: self.input.options.most_verdict_bytes });
                }
                Ok(ControlFlow::Continue(()))
            })?;
            let verdicts = writer.finish();
            self.verdict_bytes += verdicts.size_bytes();
            sources.push(Source { base: source.base, verdicts: Some(Arc::new(verdicts)) });
        }
        output.indexer.end_source().map_err(|failure| failure.in_segment(segment.base))
    }

    /// What a later round finds was counted by the first one; only what stays is counted anew.
    fn begin_tally(&mut self, source: &Source, into: Offset) {
        let tally = self.tallies.entry(source.base).or_default();
        (tally.base, tally.into) = (source.base, into);
        (tally.accounting.bytes_kept, tally.accounting.records_kept) = (0, 0);
        (tally.batches_copied, tally.batches_rewritten, tally.batches_emptied) = (0, 0, 0);
        (tally.tombstones, tally.markers) = (Waiting::default(), Waiting::default());
    }

    fn clean_batch(
        &mut self,
        scanned: &Scanned<'_>,
        prior: Option<Verdict<'_>>,
        (source, deletes): (Offset, SegmentDeletes),
        output: &mut GroupOutput,
        writer: &mut VerdictWriter,
    ) -> Result<(), CleanFailure> {
        let rules = self.filter.rules;
        let Some(view) = BatchView::of(scanned.header(), prior, rules.legacy_output) else {
            writer.push(&Verdict::Drop);
            return Ok(());
        };
        if prior.is_none() {
            self.count_read(scanned, source)?;
        }
        let header = &view.header;
        let fate = if header.is_control() {
            let marker = read_marker(scanned, &view, &mut self.reader)?;
            let (fate, aborted) = self.transactions.on_control(header, marker);
            if prior.is_none() {
                self.tally(source).unlisted_aborts += self.transactions.take_unlisted_aborts();
            }
            keep_aborted(aborted, output, header.position)?;
            fate
        } else {
            self.transactions.on_data(header)
        };
        let judged = self.filter.judge(&view, fate, deletes);
        // Moved out for the time that the verdict borrows it.
        let mut kept = std::mem::take(&mut self.kept);
        kept.clear();
        let examined = match judged.retention {
            Retention::Delete => Examined::discarded(&view),
            _ => self.examine(scanned, &view, (judged.records, deletes), &mut kept)?,
        };
        let (verdict, result) = self.decide(scanned, &view, &judged, &examined, &kept)?;
        self.count(source, &view, &verdict, &examined);
        writer.push(&verdict);
        self.kept = kept;
        self.add_output(header.size_bytes, source, result.as_ref(), output)
    }

    fn add_output(
        &mut self,
        read_bytes: u64,
        source: Offset,
        result: Option<&OutputBatch>,
        output: &mut GroupOutput,
    ) -> Result<(), CleanFailure> {
        output.indexer.add(read_bytes, result)?;
        if let Some(result) = result {
            output.size_bytes = output.size_bytes.saturating_add(result.size_bytes);
            output.next_offset = result.last_offset.next();
            let kept = &mut self.tally(source).accounting.bytes_kept;
            *kept = kept.saturating_add(result.size_bytes);
        }
        Ok(())
    }

    fn examine(
        &mut self,
        scanned: &Scanned<'_>,
        view: &BatchView<'_>,
        (records, deletes): (RecordsFate, SegmentDeletes),
        kept: &mut KeptRecords,
    ) -> Result<Examined, CleanFailure> {
        let filter = self.filter;
        let mut examined = Examined::default();
        if view.header.records_count == Some(0) {
            return Ok(examined);
        }
        let mut index = 0u64;
        let read = self.reader.read_stored(scanned, |record: &Record<'_>, stored| {
            let is_there = view.records.contains(index);
            index += 1;
            if !is_there {
                kept.drop_next();
                return ControlFlow::Continue(());
            }
            let fate = filter.examine(view, records, deletes, record);
            if fate == RecordFate::Kept {
                kept.keep();
                examined.kept += 1;
                examined.kept_tombstones += u64::from(record.value.is_none());
                examined.has_foreign_magic |= stored.is_some_and(|message| message.magic != view.header.magic);
            } else {
                kept.drop_next();
                examined.dropped.count(fate, 1);
                if fate == RecordFate::Unkeyed {
                    examined.first_unkeyed.get_or_insert(record.offset);
                }
            }
            ControlFlow::Continue(())
        });
        read.map_err(|error| CleanFailure::of_records(error, view.header.position))?;
        Ok(examined)
    }

    /// `filterTo`: what comes out of a batch that is not dropped as a whole.
    fn decide<'k>(
        &mut self,
        scanned: &Scanned<'_>,
        view: &BatchView<'k>,
        judged: &Judged,
        examined: &Examined,
        kept: &'k KeptRecords,
    ) -> Result<(Verdict<'k>, Option<OutputBatch>), CleanFailure> {
        let header = &view.header;
        let rules = self.filter.rules;
        if examined.kept == 0 {
            return match judged.retention {
                Retention::RetainEmpty => self.empty(scanned, view),
                _ => Ok((Verdict::Drop, None)),
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
            return Ok((view.unchanged(), Some(OutputBatch::of(header))));
        }
        let horizon = if is_stamped_now { Some(self.new_horizon()) } else { horizon };
        let span = match view.prior {
            Some(Verdict::Rewrite(rewrite)) if rules.legacy_output == LegacyOutput::BecomesCurrent => rewrite.span,
            _ => None,
        };
        let shape = Shape { kept: kept.as_view(), horizon, span, legacy: rules.legacy_output };
        self.scratch.clear();
        let out = self.rewriter.rewrite(scanned, &shape, &mut self.reader, &mut self.scratch)?;
        let span = scanned.header().is_legacy().then_some((out.base_offset, out.last_offset_delta));
        let rewrite = Rewrite {
            kept: kept.as_view(),
            horizon: horizon.filter(|horizon| horizon.0 >= 0),
            span,
            size_bytes: out.size_bytes,
            max_timestamp: out.max_timestamp,
        };
        Ok((Verdict::Rewrite(rewrite), Some(output_of(&out))))
    }

    fn empty<'k>(
        &mut self,
        scanned: &Scanned<'_>,
        view: &BatchView<'k>,
    ) -> Result<(Verdict<'k>, Option<OutputBatch>), CleanFailure> {
        if view.header.is_legacy() {
            return Err(UncleanableKind::EmptyLegacy.at(view.header.position));
        }
        let header = &view.header;
        self.scratch.clear();
        let out = write_header_only(header, &mut self.scratch)?;
        let is_same = matches!(scanned, Scanned::Whole(batch) if batch.bytes() == self.scratch);
        let verdict = if is_same {
            view.unchanged()
        } else {
            let span = scanned.header().is_legacy().then_some((header.base_offset, header.last_offset_delta));
            Verdict::HeaderOnly { max_timestamp: out.max_timestamp, span }
        };
        Ok((verdict, Some(output_of(&out))))
    }

    /// `now + delete.retention.ms`; a sum beyond 64 bits wraps to a negative number, which is no horizon.
    fn new_horizon(&self) -> TimestampMs {
        TimestampMs(self.filter.now.0.wrapping_add(self.input.options.settings.delete_retention_ms))
    }

    fn tally(&mut self, source: Offset) -> &mut SegmentTally {
        self.tallies.entry(source).or_default()
    }

    fn count_read(&mut self, scanned: &Scanned<'_>, source: Offset) -> Result<(), CleanFailure> {
        let header = scanned.header();
        let computed = scanned.computed_crc()?;
        let tally = self.tally(source);
        tally.batches_in += 1;
        tally.accounting.bytes_in = tally.accounting.bytes_in.saturating_add(header.size_bytes);
        if computed != header.crc {
            tally.crc_mismatch_count += 1;
            if tally.crc_mismatches.len() < MOST_CRC_MISMATCHES {
                tally.crc_mismatches.push(CrcMismatch {
                    position: header.position,
                    size_bytes: header.size_bytes,
                    first_offset: header.base_offset,
                    last_offset: header.last_offset,
                    stored: header.crc,
                    computed,
                });
            }
        }
        Ok(())
    }

    fn count(&mut self, source: Offset, view: &BatchView<'_>, verdict: &Verdict<'_>, examined: &Examined) {
        let before = view.horizon(self.filter.rules.delete_retention);
        let is_unstamped = before.is_none();
        let horizon = if let Verdict::Rewrite(rewrite) = verdict { rewrite.horizon } else { before };
        let tally = self.tally(source);
        let accounting = &mut tally.accounting;
        if view.prior.is_none() {
            let found = examined.kept.saturating_add(examined.dropped.total());
            accounting.records_in = accounting.records_in.saturating_add(found);
        }
        accounting.records_kept = accounting.records_kept.saturating_add(examined.kept);
        accounting.dropped.add(&examined.dropped);
        tally.first_unkeyed = tally.first_unkeyed.or(examined.first_unkeyed);
        match verdict {
            Verdict::Copy => tally.batches_copied += 1,
            Verdict::Drop => {}
            Verdict::HeaderOnly { .. } => tally.batches_emptied += 1,
            Verdict::Rewrite(_) => tally.batches_rewritten += 1,
        }
        let is_new = horizon.is_some() && is_unstamped;
        let (waiting, count) = if view.header.is_control() {
            (&mut tally.markers, examined.kept)
        } else {
            (&mut tally.tombstones, examined.kept_tombstones)
        };
        if count > 0 {
            waiting.count(horizon, count);
            waiting.stamped_now += if is_new { count } else { 0 };
        }
    }
}

fn keep_aborted(
    aborted: Option<AbortedTransaction>,
    output: &mut GroupOutput,
    position: Position,
) -> Result<(), CleanFailure> {
    match aborted {
        Some(entry) => output.aborted.add(&entry).map_err(|order| UncleanableKind::TxnIndex(order).at(position)),
        None => Ok(()),
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

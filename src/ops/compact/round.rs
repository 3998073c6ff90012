//! The second pass of a round: segments recopied into groups, without the records that go (`Cleaner.cleanSegments`).

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::chunk::Indexer;
use super::cleaner::{BatchCleaner, Cleaned};
use super::failure::{CleanFailure, UncleanableKind};
use super::filter::{LastRecords, RoundFilter, SegmentDeletes};
use super::group::group_segments;
use super::map_build::{Coverage, Mapped, build_map, read_marker};
use super::options::CompactOptions;
use super::parts::TakeIn;
use super::segments::{CleanerLog, LogSegment, Source};
use super::select::{LogState, Selection};
use super::tally::{SegmentTally, Waiting};
use super::transactions::{PassTransactions, TransactionFate};
use super::verdict::{KeptRecords, Verdict, VerdictWriter};
use super::view::BatchView;
use super::walk::Reading;
use crate::format::time_index::TimeIndex;
use crate::format::txn_index::TxnIndex;
use crate::format::{BatchHeader, Offset, Position, len_u64};
use crate::logdir::Scanned;
use crate::ops::broker::cleaner_rules::LastBatch;
use crate::ops::broker::index_rules::TxnIndexBuilder;

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
        delete_retention_ms: options.settings.delete_retention_ms,
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
    cleaner: BatchCleaner<'p>,
    tallies: &'p mut Tallies,
    kept: KeptRecords,
    verdict_bytes: u64,
    /// Bytes of rewritten batches that may still be kept.
    made_room: u64,
}

/// What has come out of a group so far.
struct GroupOutput {
    indexer: Indexer,
    aborted: TxnIndexBuilder,
    size_bytes: u64,
    next_offset: Offset,
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
            cleaner: BatchCleaner::new(filter),
            tallies,
            kept: KeptRecords::default(),
            verdict_bytes: 0,
            made_room: input.options.most_made_bytes.saturating_sub(before.made_bytes()),
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
        output.indexer.begin_source(segment.size_bytes);
        for source in &segment.sources {
            self.begin_tally(source, into);
            let writer = VerdictWriter::new(self.input.options.part_bytes);
            let mut cleaning = SourceCleaning { source, deletes, output, writer, pass: self };
            cleaning.run().map_err(|failure| failure.in_segment(source.base))?;
            let verdicts = cleaning.writer.finish();
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
}

/// A batch that a thread has worked on ahead, as if it belonged to no aborted transaction.
struct Ahead {
    header: BatchHeader,
    computed_crc: u32,
    result: AheadResult,
}

enum AheadResult {
    /// Left to the thread that takes the results in.
    Later,
    Done(Box<AheadDone>),
    Failed(CleanFailure),
}

struct AheadDone {
    cleaned: Cleaned,
    kept: KeptRecords,
    /// What comes out, where it is worth keeping.
    made: Option<Box<[u8]>>,
}

/// One log file being cleaned.
struct SourceCleaning<'s, 'p> {
    source: &'s Source,
    deletes: SegmentDeletes,
    output: &'s mut GroupOutput,
    writer: VerdictWriter,
    pass: &'s mut CleanPass<'p>,
}

impl SourceCleaning<'_, '_> {
    fn run(&mut self) -> Result<(), CleanFailure> {
        let reading = self.pass.input.reading;
        if self.source.verdicts.is_some() {
            let source = self.source;
            let _ = reading.walk(source, Position(0), |scanned, prior| self.clean(scanned, prior))?;
            return Ok(());
        }
        let (filter, deletes) = (self.pass.filter, self.deletes);
        let work = |cleaner: &mut BatchCleaner<'_>, scanned: &Scanned<'_>| ahead(cleaner, filter, deletes, scanned);
        let _ = reading.run(self.source, Position(0), || BatchCleaner::new(filter), work, self)?;
        Ok(())
    }

    fn clean(&mut self, scanned: &Scanned<'_>, prior: Option<Verdict<'_>>) -> Result<ControlFlow<()>, CleanFailure> {
        let Some(view) = BatchView::of(scanned.header(), prior, self.pass.filter.rules.legacy_output) else {
            self.writer.push(&Verdict::Drop);
            return Ok(ControlFlow::Continue(()));
        };
        if prior.is_none() {
            self.tally().count_read(scanned.header(), scanned.computed_crc()?);
            self.writer.mark(scanned.header().position);
        }
        let fate = self.meet(scanned, &view)?;
        let judged = self.pass.filter.judge(&view, fate, self.deletes);
        let mut kept = std::mem::take(&mut self.pass.kept);
        let cleaned = self.pass.cleaner.clean(scanned, &view, &judged, self.deletes, &mut kept)?;
        let flow = self.settle(&view, &cleaned, &kept);
        self.pass.kept = kept;
        flow
    }

    /// Lets the round's transactions meet the batch.
    fn meet(&mut self, scanned: &Scanned<'_>, view: &BatchView<'_>) -> Result<TransactionFate, CleanFailure> {
        let header = &view.header;
        if !header.is_control() {
            return Ok(self.pass.transactions.on_data(header));
        }
        let marker = read_marker(scanned, view, self.pass.cleaner.reader())?;
        let (fate, aborted) = self.pass.transactions.on_control(header, marker);
        let unlisted = self.pass.transactions.take_unlisted_aborts();
        if view.prior.is_none() {
            self.tally().unlisted_aborts += unlisted;
        }
        if let Some(entry) = aborted {
            self.output.aborted.add(&entry).map_err(|order| UncleanableKind::TxnIndex(order).at(header.position))?;
        }
        Ok(fate)
    }

    /// Notes what has become of a batch.
    fn settle(
        &mut self,
        view: &BatchView<'_>,
        cleaned: &Cleaned,
        kept: &KeptRecords,
    ) -> Result<ControlFlow<()>, CleanFailure> {
        let verdict = cleaned.decision.verdict(view, kept);
        let rule = self.pass.filter.rules.delete_retention;
        self.tally().count(view, &verdict, &cleaned.examined, view.horizon(rule));
        self.writer.push(&verdict);
        self.output.indexer.add(view.header.size_bytes, cleaned.output.as_ref())?;
        if let Some(result) = &cleaned.output {
            self.output.size_bytes = self.output.size_bytes.saturating_add(result.size_bytes);
            self.output.next_offset = result.last_offset.next();
            let bytes_kept = &mut self.tally().accounting.bytes_kept;
            *bytes_kept = bytes_kept.saturating_add(result.size_bytes);
        }
        let most = self.pass.input.options.most_verdict_bytes;
        if self.pass.verdict_bytes + self.writer.size_bytes() > most {
            return Err(CleanFailure::Limit { bytes: most });
        }
        Ok(ControlFlow::Continue(()))
    }

    fn tally(&mut self) -> &mut SegmentTally {
        self.pass.tallies.entry(self.source.base).or_default()
    }
}

/// What can be done for a batch before its transaction is known.
fn ahead(
    cleaner: &mut BatchCleaner<'_>,
    filter: &RoundFilter<'_>,
    deletes: SegmentDeletes,
    scanned: &Scanned<'_>,
) -> Ahead {
    let header = *scanned.header();
    let view = match (scanned, BatchView::of(&header, None, filter.rules.legacy_output)) {
        (Scanned::Whole(_), Some(view)) if !header.is_control() => view,
        _ => return Ahead { header, computed_crc: 0, result: AheadResult::Later },
    };
    let judged = filter.judge(&view, TransactionFate::Stays, deletes);
    let mut kept = KeptRecords::default();
    let result = match (cleaner.clean(scanned, &view, &judged, deletes, &mut kept), scanned.computed_crc()) {
        (Ok(cleaned), Ok(computed_crc)) => {
            let made = cleaner.made(&cleaned, &header);
            let result = AheadResult::Done(Box::new(AheadDone { cleaned, kept, made }));
            return Ahead { header, computed_crc, result };
        }
        (Err(failure), _) => AheadResult::Failed(failure),
        (_, Err(error)) => AheadResult::Failed(error.into()),
    };
    Ahead { header, computed_crc: scanned.computed_crc().unwrap_or(header.crc), result }
}

impl TakeIn for SourceCleaning<'_, '_> {
    type Item = Ahead;

    fn take(&mut self, item: Ahead) -> Result<ControlFlow<()>, CleanFailure> {
        let header = item.header;
        let by_itself = |this: &mut Self| this.go_through(header.position, header.end());
        let AheadDone { cleaned, kept, made } = match item.result {
            AheadResult::Later => return by_itself(self),
            // Nobody looks into a batch that goes as a whole.
            AheadResult::Failed(_) if header.is_transactional() => return by_itself(self),
            AheadResult::Failed(failure) => return Err(failure),
            AheadResult::Done(done) => *done,
        };
        if header.is_transactional() && self.pass.transactions.would_abort(&header) {
            return by_itself(self);
        }
        let Some(view) = BatchView::of(&header, None, self.pass.filter.rules.legacy_output) else {
            return Ok(ControlFlow::Continue(()));
        };
        self.tally().count_read(&header, item.computed_crc);
        self.writer.mark(header.position);
        self.pass.transactions.on_data(&header);
        if let Some(bytes) = made.filter(|bytes| self.pass.made_room >= len_u64(bytes.len())) {
            self.pass.made_room -= len_u64(bytes.len());
            self.writer.keep_made(header.position, bytes);
        }
        self.settle(&view, &cleaned, &kept)
    }

    fn go_through(&mut self, from: Position, until: Position) -> Result<ControlFlow<()>, CleanFailure> {
        let reading = self.pass.input.reading;
        reading.walk_range(self.source, from, until, |scanned| self.clean(scanned, None))
    }
}

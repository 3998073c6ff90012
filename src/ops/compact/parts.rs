//! A log file worked on by several threads, with results in the order of the file.
//!
//! The offset index says where batches start, so that parts of about a megabyte can be given out. It is a hint and no more: a part
//! counts only where the one before it has ended exactly at its start, and otherwise the rest of the file is gone through by one
//! thread. While the results of some parts are taken in, the next ones are worked on.

use std::ops::ControlFlow;

use rayon::prelude::*;

use super::failure::{CleanFailure, UncleanableKind};
use super::walk::{check_magic, stop_failure};
use crate::format::Position;
use crate::format::offset_index::OffsetIndexEntry;
use crate::logdir::{LogScanner, ScanStop, Scanned, SegmentFile};

/// Parts that are in work at a time, for each thread.
const PARTS_PER_THREAD: usize = 2;

/// Records after which no more of a part is worked on ahead.
const MOST_RECORDS: u64 = 64 * 1024;
/// Records that a legacy message is taken to hold.
const UNCOUNTED: i32 = 64;

/// A range of a log file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub(super) start: Position,
    pub(super) end: Position,
}

/// Cuts a range of a file at places where batches start, as far as its index is right, into parts of so many bytes at least.
pub(super) fn cut(range: Part, part_bytes: u64, index: impl Iterator<Item = OffsetIndexEntry>) -> Vec<Part> {
    let Part { start: mut from, end } = range;
    let mut parts = Vec::new();
    for position in index.map(|entry| entry.position).filter(|position| *position < end) {
        if position.since(from) >= part_bytes.max(1) {
            parts.push(Part { start: from, end: position });
            from = position;
        }
    }
    parts.push(Part { start: from, end });
    parts
}

/// What has come of a part.
struct PartResult<T> {
    items: Vec<T>,
    end: Position,
    stop: Option<CleanFailure>,
}

/// Takes the results in, in the order of the file.
pub(super) trait TakeIn {
    /// What a thread makes of a batch.
    type Item: Send;

    /// Takes in what has come of the next batch. `Break` ends the work.
    fn take(&mut self, item: Self::Item) -> Result<ControlFlow<()>, CleanFailure>;

    /// Goes through a range by itself: one that nobody has worked on ahead.
    fn go_through(&mut self, from: Position, until: Position) -> Result<ControlFlow<()>, CleanFailure>;
}

/// Gives parts to threads, and what comes of them to `consume` in order, while the next parts are in work. `Break` ends it.
pub(super) fn in_order<W: Send, R: Send, E: Send>(
    parts: &[Part],
    new_worker: impl Fn() -> W,
    work: impl Fn(&mut W, Part) -> R + Sync,
    mut consume: impl FnMut(Part, R) -> Result<ControlFlow<()>, E> + Send,
) -> Result<ControlFlow<()>, E> {
    let width = rayon::current_num_threads().max(1) * PARTS_PER_THREAD;
    let mut workers: Vec<W> = (0..width.min(parts.len())).map(|_| new_worker()).collect();
    let mut compute = |parts: &[Part]| -> Vec<(Part, R)> {
        workers.par_iter_mut().zip(parts).map(|(worker, part)| (*part, work(worker, *part))).collect()
    };
    let mut consume_all = |results: Vec<(Part, R)>| {
        for (part, result) in results {
            if consume(part, result)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    };
    let mut chunks = parts.chunks(width);
    let mut results = chunks.next().map(&mut compute);
    while let Some(current) = results {
        let next = chunks.next();
        let (taken, computed) = rayon::join(|| consume_all(current), || next.map(&mut compute));
        if taken?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        results = computed;
    }
    Ok(ControlFlow::Continue(()))
}

/// Works through the parts of a file: `work` by any thread for each batch, the consumer in order for what it gives.
pub(super) fn run_parts<W: Send, C: TakeIn + Send>(
    file: &SegmentFile,
    parts: &[Part],
    new_worker: impl Fn() -> W,
    work: impl Fn(&mut W, &Scanned<'_>) -> C::Item + Sync,
    consumer: &mut C,
    tell: &(dyn Fn(u64) -> Result<(), CleanFailure> + Sync),
) -> Result<ControlFlow<()>, CleanFailure> {
    let mut at = parts.first().map_or(Position(0), |part| part.start);
    let mut misfit = None;
    let flow = in_order(
        parts,
        || (new_worker(), Vec::new()),
        |worker, part| scan_part(file, part, worker, &work),
        |part, result| {
            if part.start != at {
                misfit = Some(at);
                return Ok::<_, CleanFailure>(ControlFlow::Break(()));
            }
            let flow = take_in(part, result, consumer, &mut at)?;
            tell(part.end.since(part.start))?;
            Ok(flow)
        },
    )?;
    match misfit {
        Some(at) => consumer.go_through(at, file.end()),
        None => Ok(flow),
    }
}

fn take_in<C: TakeIn>(
    part: Part,
    result: PartResult<C::Item>,
    consumer: &mut C,
    at: &mut Position,
) -> Result<ControlFlow<()>, CleanFailure> {
    for item in result.items {
        if consumer.take(item)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    if let Some(stop) = result.stop {
        return Err(stop);
    }
    *at = result.end.max(part.end);
    // A part of many records is given up half-way, so that what was made of it stays small.
    if result.end < part.end { consumer.go_through(result.end, part.end) } else { Ok(ControlFlow::Continue(())) }
}

/// Works on the batches of a part. Of one whose end is no batch's what can be is done; who takes it in goes through the rest.
fn scan_part<W, T>(
    file: &SegmentFile,
    part: Part,
    (worker, buffer): &mut (W, Vec<u8>),
    work: &impl Fn(&mut W, &Scanned<'_>) -> T,
) -> PartResult<T> {
    let mut scanner = LogScanner::over(file, part.start, part.end).with_buffer(std::mem::take(buffer));
    let is_last = part.end >= file.end();
    let mut items = Vec::new();
    let mut stop = None;
    let mut records = 0u64;
    while scanner.position() < part.end && records < MOST_RECORDS {
        let at = scanner.position();
        match scanner.next_batch() {
            Ok(Some(scanned)) => match check_magic(&scanned, at) {
                Ok(()) => {
                    let count = scanned.header().records_count.unwrap_or(UNCOUNTED);
                    records = records.saturating_add(u64::try_from(count).unwrap_or(0));
                    items.push(work(worker, &scanned));
                }
                Err(failure) => {
                    stop = Some(failure);
                    break;
                }
            },
            Ok(None) | Err(ScanStop::PastEnd { .. }) if !is_last => break,
            Ok(None) => {
                stop = Some(UncleanableKind::CutBatch.at(at));
                break;
            }
            Err(reason) => {
                stop = Some(stop_failure(reason));
                break;
            }
        }
    }
    let end = scanner.position();
    *buffer = scanner.into_buffer();
    PartResult { items, end, stop }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Offset;

    fn entries(positions: &[u64]) -> impl Iterator<Item = OffsetIndexEntry> {
        positions.iter().map(|position| OffsetIndexEntry { offset: Offset(0), position: Position(*position) })
    }

    #[test]
    fn parts_are_cut_at_index_entries_and_cover_the_file() {
        let part = |start, end| Part { start: Position(start), end: Position(end) };
        let parts = cut(part(100, 3000), 1000, entries(&[50, 1000, 1100, 2000, 9000]));
        assert_eq!(parts, [part(100, 1100), part(1100, 3000)]);
        assert_eq!(cut(part(0, 7), 1, entries(&[])), [part(0, 7)]);
    }
}

//! Instants, as ListOffsets finds them (`UnifiedLog.searchOffsetInLocalLog`, `LogSegment.findOffsetByTimestamp`).

use super::answer::{Answer, BatchPlace, ScanUse, Step, Verdict};
use super::offset::first_record;
use super::segment::Lookup;
use crate::format::{BatchHeader, Offset, Position, TimestampMs, len_u64};
use crate::logdir::ReadError;

impl Lookup {
    pub(super) fn find_timestamp(&mut self, wanted: TimestampMs, answer: &mut Answer) -> Result<(), ReadError> {
        // The first segment whose largest timestamp reaches the instant is the only one that is looked into, even where the
        // records that do lie below the log start.
        for index in 0..self.len() {
            let segments = len_u64(self.len());
            let Some(segment) = self.segment(index)? else { continue };
            let largest = segment.largest_timestamp();
            if largest < wanted {
                continue;
            }
            answer.steps.push(Step::Segment {
                base_offset: segment.base_offset,
                segments,
                next_base_offset: segment.next_base_offset,
                largest_timestamp: Some(largest),
                size_bytes: segment.log.size(),
            });
            let from = segment.time_floor(wanted, &mut answer.steps);
            let start = self.range().0;
            return self.scan_for(
                index,
                from.max(start),
                answer,
                &|header| max_of(header) >= wanted,
                &|time, offset| time >= wanted && offset >= start,
            );
        }
        Ok(())
    }

    pub(super) fn find_max_timestamp(&mut self, answer: &mut Answer) -> Result<(), ReadError> {
        let mut best: Option<(usize, TimestampMs, Offset)> = None;
        for index in 0..self.len() {
            let Some(segment) = self.segment(index)? else { continue };
            // A segment without timestamps counts as -1 at its base.
            let none = (TimestampMs(-1), segment.base_offset);
            let (timestamp, offset) = segment.max_timestamp_so_far().unwrap_or(none);
            if best.is_none_or(|(_, known, _)| timestamp > known) {
                best = Some((index, timestamp, offset));
            }
        }
        let Some((index, wanted, offset)) = best else { return Ok(()) };
        let segments = len_u64(self.len());
        if let Some(segment) = self.segment(index)? {
            answer.steps.push(Step::Segment {
                base_offset: segment.base_offset,
                segments,
                next_base_offset: segment.next_base_offset,
                largest_timestamp: Some(wanted),
                size_bytes: segment.log.size(),
            });
        }
        // Magic 0 cannot say which of its records has the largest timestamp.
        let batch_will_do = |header: &BatchHeader| header.magic != 0 && max_of(header) == wanted;
        self.scan_for(index, offset, answer, &batch_will_do, &|time, _| time == wanted)
    }

    /// The first record that will do in the first batches whose largest timestamp will, from the index's place for `from` on.
    fn scan_for(
        &mut self,
        index: usize,
        from: Offset,
        answer: &mut Answer,
        batch_will_do: &dyn Fn(&BatchHeader) -> bool,
        record_will_do: &dyn Fn(TimestampMs, Offset) -> bool,
    ) -> Result<(), ReadError> {
        let Some(segment) = self.segment(index)? else { return Ok(()) };
        let mut entry = segment.start_for(from, &mut answer.steps);
        if !segment.supports(&entry) {
            self.distrust_offset_index(index, (entry.entry_offset, entry.entry_position));
            let Some(segment) = self.segment(index)? else { return Ok(()) };
            entry = segment.start_for(from, &mut answer.steps);
        }
        let Some(Some(segment)) = self.open.get(index) else { return Ok(()) };
        let mut scanner = segment.scan_from(entry.entry_position);
        let mut scan = ScanUse { from_position: entry.entry_position, to_position: Position(0), batches: 0 };
        while let Ok(Some(header)) = scanner.next_header() {
            scan.batches += 1;
            scan.to_position = header.end();
            if !batch_will_do(&header) {
                answer.steps.push(Step::Passed(BatchPlace::of(&header)));
                continue;
            }
            scanner.jump(header.position);
            let Ok(Some(batch)) = scanner.next_batch() else { break };
            let (place, record) = first_record(&mut self.reader, &batch, |record| {
                record_will_do(record.timestamp.unwrap_or(TimestampMs(-1)), record.offset)
            });
            answer.steps.push(Step::Reached(place));
            if let Some(record) = record {
                answer.offset = Some(record.offset);
                answer.record = Some(record);
                answer.batch = Some(place);
                answer.segment_base_offset = Some(segment.base_offset);
                answer.index = Some(entry);
                answer.scan = Some(scan);
                return Ok(());
            }
            answer.steps.push(Step::NoRecordIn(place));
        }
        Ok(())
    }
}

fn max_of(header: &BatchHeader) -> TimestampMs {
    header.max_timestamp.unwrap_or(TimestampMs(-1))
}

impl super::segment::OpenSegment {
    /// The offset that the time index gives for an instant: where its largest timestamp not above it was reached.
    fn time_floor(&self, wanted: TimestampMs, steps: &mut Vec<Step>) -> Offset {
        let mut previous = None;
        let floor = self.time_index().and_then(|index| {
            index.lookup_explained(wanted, |slot, entry| {
                if previous.replace(slot) == Some(slot) {
                    return;
                }
                let verdict = if entry.timestamp > wanted { Verdict::TooHigh } else { Verdict::NotAbove };
                let (slot, timestamp, offset) = (len_u64(slot), entry.timestamp, entry.offset);
                steps.push(Step::TimeProbe { slot, timestamp, offset, verdict });
            })
        });
        let offset = floor.map_or(self.base_offset, |(_, entry)| entry.offset);
        steps.push(Step::TimeFloor { timestamp: floor.map(|(_, entry)| entry.timestamp), offset });
        offset
    }
}

//! Offsets, as a fetch finds them (`LocalLog.read`, `LogSegment.translateOffset`).

use std::ops::ControlFlow;

use super::answer::{Answer, BatchPlace, RecordPlace, ScanUse, Step};
use super::segment::Lookup;
use crate::format::record::Record;
use crate::format::{BatchHeader, Offset};
use crate::logdir::{ReadError, Scanned};
use crate::ops::RecordReader;

impl Lookup {
    pub(super) fn find_offset(&mut self, wanted: Offset, answer: &mut Answer) -> Result<(), ReadError> {
        let (start, end) = self.range();
        if wanted < start || wanted >= end {
            return Ok(());
        }
        // Below the first segment's base only where the log start is: nothing is there, and the first segment comes next.
        let first = self.floor_segment(wanted).unwrap_or(0);
        for index in first..self.len() {
            if self.offset_in_segment(index, wanted, answer)? {
                return Ok(());
            }
            if let Some(next) = self.segment(index)?.and_then(|segment| segment.next_base_offset) {
                answer.steps.push(Step::NextSegment(next));
            }
        }
        Ok(())
    }

    fn offset_in_segment(&mut self, index: usize, wanted: Offset, answer: &mut Answer) -> Result<bool, ReadError> {
        let segments = crate::format::len_u64(self.len());
        let Some(segment) = self.segment(index)? else { return Ok(false) };
        answer.steps.push(Step::Segment {
            base_offset: segment.base_offset,
            segments,
            next_base_offset: segment.next_base_offset,
            largest_timestamp: None,
            size_bytes: segment.log.size(),
        });
        let mut entry = segment.start_for(wanted, &mut answer.steps);
        if !segment.supports(&entry) {
            self.distrust_offset_index(index, (entry.entry_offset, entry.entry_position));
            let Some(segment) = self.segment(index)? else { return Ok(false) };
            entry = segment.start_for(wanted, &mut answer.steps);
        }
        let Some(Some(segment)) = self.open.get(index) else { return Ok(false) };
        let mut scanner = segment.scan_from(entry.entry_position);
        let mut scan = ScanUse { from_position: entry.entry_position, to_position: entry.entry_position, batches: 0 };
        // Headers alone until the batch: what lies before it is nobody's business here.
        while let Ok(Some(header)) = scanner.next_header() {
            scan.batches += 1;
            scan.to_position = header.end();
            if header.last_offset < wanted {
                answer.steps.push(Step::Passed(BatchPlace::of(&header)));
                continue;
            }
            scanner.jump(header.position);
            let Ok(Some(batch)) = scanner.next_batch() else { break };
            let (place, record) = first_record(&mut self.reader, &batch, |record| record.offset >= wanted);
            answer.steps.push(Step::Reached(place));
            if let Some(record) = record {
                answer.offset = Some(record.offset);
                answer.record = Some(record);
                answer.batch = Some(place);
                answer.segment_base_offset = Some(segment.base_offset);
                answer.index = Some(entry);
                answer.scan = Some(scan);
                return Ok(true);
            }
            answer.steps.push(Step::NoRecordIn(place));
        }
        Ok(false)
    }
}

/// The place of a batch, its base offset that of its first record, and the first of its records that will do.
pub(super) fn first_record(
    reader: &mut RecordReader,
    batch: &Scanned<'_>,
    will_do: impl Fn(&Record<'_>) -> bool,
) -> (BatchPlace, Option<RecordPlace>) {
    let header: &BatchHeader = batch.header();
    let mut place = BatchPlace::of(header);
    let mut found = None;
    let mut each = |record: &Record<'_>| {
        if will_do(record) {
            found = Some(RecordPlace { offset: record.offset, timestamp: record.timestamp });
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    // A record that cannot be read is none that will do; the batch is passed over as a consumer would have to.
    if let Some(wrapper) = reader.read(batch, &mut each).ok().and_then(|content| content.wrapper) {
        place.base_offset = wrapper.base_offset;
    }
    (place, found)
}

//! What a consumer with `isolation.level=read_committed` would be given of a partition, from the log alone.

use std::collections::HashMap;
use std::ops::ControlFlow;

use crate::format::record::Record;
use crate::format::{BatchHeader, Offset, ProducerId};
use crate::logdir::{IoMode, PartitionDir, ReadError, Scanned};
use crate::ops::broker::producers::ProducerState;
use crate::ops::broker::transactions::{EndMarker, TransactionOutcome};
use crate::ops::{RecordReader, SoundBatches, SoundItem};

/// The last stable offset of a partition and its aborted transactions.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct CommittedView {
    /// Where the first open transaction begins; a consumer is given nothing from there on.
    last_stable_offset: Option<Offset>,
    /// Per producer the first and last offset of each aborted transaction, in the order of the log.
    aborted: HashMap<ProducerId, Vec<(Offset, Offset)>>,
}

impl CommittedView {
    /// Reads all batch headers and end markers of a partition. A batch that a broker would refuse to load changes nothing.
    pub(super) fn of(partition: &PartitionDir, mode: IoMode, reader: &mut RecordReader) -> Result<Self, ReadError> {
        let mut view = Self::default();
        let mut producers = ProducerState::default();
        let segments = partition.segments();
        for segment in &segments {
            let Some(log) = segment.log.as_ref().filter(|log| log.not_a_file.is_none()) else { continue };
            let file = partition.open_file(&log.name, mode)?;
            let mut batches = SoundBatches::new(&file, segment.base_offset);
            while let Some(item) = batches.next_item() {
                let SoundItem::Batch(batch) = item else { continue };
                if batch.header().producer_id.is_none() {
                    continue;
                }
                let marker = if batch.header().is_control() { end_marker(&batch, reader) } else { None };
                let Ok(Some(ended)) = producers.append(batch.header(), marker.as_ref()) else { continue };
                if ended.outcome == TransactionOutcome::Aborted {
                    view.aborted.entry(ended.producer_id).or_default().push((ended.first_offset, ended.last_offset));
                }
            }
        }
        let start = segments.first().map_or(Offset(0), |segment| segment.base_offset);
        view.last_stable_offset = producers.open_transactions().first_unstable_offset(start);
        Ok(view)
    }

    /// Whether a consumer would be given the records of this batch.
    pub(super) fn shows(&self, header: &BatchHeader) -> bool {
        if header.is_control() || self.last_stable_offset.is_some_and(|stable| header.base_offset >= stable) {
            return false;
        }
        let (true, Some(producer_id)) = (header.is_transactional(), header.producer_id) else { return true };
        let offset = header.base_offset;
        let aborted = self.aborted.get(&producer_id).map_or(&[][..], Vec::as_slice);
        let behind = aborted.partition_point(|(first, _)| *first <= offset);
        behind.checked_sub(1).and_then(|index| aborted.get(index)).is_none_or(|(_, last)| offset > *last)
    }
}

fn end_marker(batch: &Scanned<'_>, reader: &mut RecordReader) -> Option<EndMarker> {
    let mut marker = None;
    let mut first = |record: &Record<'_>| {
        marker = EndMarker::of_record(record);
        ControlFlow::Break(())
    };
    // A control batch whose record cannot be read ends no transaction.
    let _ = reader.read(batch, &mut first);
    marker
}

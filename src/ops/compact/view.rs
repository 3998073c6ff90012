//! A batch as a round meets it: the one on the disk, as earlier rounds have left it.

use super::verdict::{Kept, Rewrite, Verdict};
use crate::format::{Attributes, BATCH_HEADER, BatchHeader, Offset, TimestampMs, len_u64};
use crate::ops::broker::cleaner_rules::{DeleteRetention, LegacyOutput};

const CODEC_BITS: i16 = 0x07;
const HAS_HORIZON: i16 = 0x40;

/// A batch as a round meets it.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchView<'v> {
    /// Its header. Checksum and base timestamp (unless it is a delete horizon) are those on the disk.
    pub(super) header: BatchHeader,
    /// Which records of the batch on the disk are in it.
    pub(super) records: Kept<'v>,
    /// What earlier rounds have decided; `None` before the first.
    pub(super) prior: Option<Verdict<'v>>,
}

impl<'v> BatchView<'v> {
    /// The view of a batch; `None` where an earlier round has dropped it.
    pub(super) fn of(on_disk: &BatchHeader, prior: Option<Verdict<'v>>, legacy: LegacyOutput) -> Option<Self> {
        let (header, records) = match prior {
            None | Some(Verdict::Copy) => (*on_disk, Kept::All),
            Some(Verdict::Drop) => return None,
            Some(Verdict::HeaderOnly { max_timestamp, span }) => {
                (header_only(&placed(on_disk, span, legacy), max_timestamp), Kept::All)
            }
            Some(Verdict::Rewrite(rewrite)) => {
                (rewritten(placed(on_disk, rewrite.span, legacy), &rewrite), rewrite.kept)
            }
        };
        Some(Self { header, records, prior })
    }

    /// The time from which tombstones or the marker of the batch may go; present with any value where the bit is set.
    pub(super) fn horizon(&self, rule: DeleteRetention) -> Option<TimestampMs> {
        let is_set = !self.header.is_legacy() && self.header.attributes.has_delete_horizon();
        let counts = is_set && rule == DeleteRetention::BatchHorizon;
        counts.then(|| self.header.base_timestamp.unwrap_or(TimestampMs(-1)))
    }

    /// The verdict that leaves the batch as this round has met it.
    pub(super) fn unchanged(&self) -> Verdict<'v> {
        self.prior.unwrap_or(Verdict::Copy)
    }

    /// Records in it, as far as the header says.
    pub(super) fn records_count(&self) -> u64 {
        self.header.records_count.map_or(1, |count| u64::try_from(count).unwrap_or(0))
    }
}

/// The header with the offsets, and the magic, that an earlier round has given to a legacy message.
fn placed(on_disk: &BatchHeader, span: Option<(Offset, i32)>, legacy: LegacyOutput) -> BatchHeader {
    let mut header = *on_disk;
    if let Some((base, delta)) = span.filter(|_| on_disk.is_legacy()) {
        (header.base_offset, header.last_offset_delta) = (base, delta);
        header.last_offset = base.saturating_add(i64::from(delta));
        if legacy == LegacyOutput::BecomesCurrent {
            header.magic = 2;
            header.records_count = Some(1);
        }
    }
    header
}

fn rewritten(mut header: BatchHeader, rewrite: &Rewrite<'_>) -> BatchHeader {
    header.size_bytes = rewrite.size_bytes;
    header.max_timestamp = present(rewrite.max_timestamp);
    header.attributes = Attributes(header.attributes.0 & !HAS_HORIZON);
    if let Some(horizon) = rewrite.horizon.filter(|horizon| horizon.0 >= 0) {
        header.attributes = Attributes(header.attributes.0 | HAS_HORIZON);
        header.base_timestamp = Some(horizon);
    }
    if let (Kept::These(bits), Some(_)) = (rewrite.kept, header.records_count) {
        header.records_count = i32::try_from(bits.iter().map(|byte| byte.count_ones()).sum::<u32>()).ok();
    }
    header
}

fn header_only(on_disk: &BatchHeader, max_timestamp: i64) -> BatchHeader {
    BatchHeader {
        size_bytes: len_u64(BATCH_HEADER),
        attributes: Attributes(on_disk.attributes.0 & !(CODEC_BITS | HAS_HORIZON)),
        base_timestamp: None,
        max_timestamp: present(max_timestamp),
        records_count: Some(0),
        ..*on_disk
    }
}

fn present(raw: i64) -> Option<TimestampMs> {
    (raw != -1).then_some(TimestampMs(raw))
}

/// What an index is told of a batch that comes out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OutputBatch {
    /// Its bytes.
    pub(super) size_bytes: u64,
    /// Its last offset.
    pub(super) last_offset: Offset,
    /// Offset of its last record, where it was rewritten; else its last offset.
    pub(super) last_record_offset: Offset,
    /// Its largest timestamp.
    pub(super) max_timestamp: Option<TimestampMs>,
}

impl OutputBatch {
    /// A batch that stays as it was met.
    pub(super) fn of(header: &BatchHeader) -> Self {
        Self {
            size_bytes: header.size_bytes,
            last_offset: header.last_offset,
            last_record_offset: header.last_offset,
            max_timestamp: header.max_timestamp,
        }
    }
}

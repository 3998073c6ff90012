//! An offset, an instant or a leader epoch, found the way a broker finds it (`UnifiedLog.read`, `searchOffsetInLocalLog`,
//! `LeaderEpochFileCache.endOffsetFor`): the segment by its base offset, the place by the index, the batch by a short scan.
//!
//! Indexes are only trusted where they are sound. Where one is not, the answer comes from a scan and a finding says so: what a
//! broker would answer from a damaged index is nothing that anybody wants to know.

mod answer;
mod offset;
mod query;
mod segment;
mod timestamp;

pub use answer::{Answer, BatchPlace, EpochAnswer, IndexUse, RecordPlace, ScanUse, Step, Verdict};
pub use query::{Options, Query};
pub use segment::Lookup;

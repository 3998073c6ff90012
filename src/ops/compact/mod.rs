//! The log cleaner (`LogCleaner`, `Cleaner`, `MemoryRecords.filterTo`): the latest record of each key, offline and explained.
//!
//! A round reads the dirty part of a log into a map from keys to latest offsets, then recopies everything from the first segment on
//! without the records that the map, transactions and time say may go. Its result here is no bytes but [`Verdicts`] on the batches
//! on the disk, out of which the new logs are written when it is known that all is well. Several rounds compose.
//!
//! What comes out equals what the broker's cleaner leaves: offsets, batch headers, record bytes, indexes, transaction indexes,
//! segments and their times. Where a broker's cleaner dies, nothing comes out and the reason is given.

mod chunk;
mod cleaner;
mod failure;
mod filter;
mod group;
mod key_map;
mod map_build;
mod options;
mod partition;
mod parts;
mod plan;
mod recheck;
mod rewrite;
mod round;
mod segments;
mod select;
mod tally;
mod transactions;
mod verdict;
mod view;
mod walk;
mod write;

pub use failure::{CleanFailure, Uncleanable, UncleanableKind};
pub use key_map::{DigestKey, NoMap};
pub use map_build::Coverage;
pub use options::{CleanerSettings, CompactOptions, DEFAULT_PART_BYTES, Purpose, Rounds, UnkeyedRecords};
pub use partition::{CleanStop, CleanedPartition, IfCleaned, PartitionInput, clean_partition};
pub use plan::{CompactError, CompactInput, CompactPlan, PartitionCleaning, Refusal, RefusalReason, plan};
pub use recheck::{RecheckError, recheck};
pub use round::RoundReport;
pub use segments::{CleanerLog, LogSegment, Source};
pub use select::{Bound, CheckpointUse, LogState, Selection};
pub use tally::{Accounting, CrcMismatch, Dropped, SegmentTally, Waiting};
pub use verdict::Verdicts;

//! What is looked for, and how.

use crate::format::{LeaderEpoch, Offset, TimestampMs};
use crate::logdir::IoMode;
use crate::ops::RecordLimits;

/// What is looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Query {
    /// The first record at or after an offset, as a fetch returns it.
    Offset(Offset),
    /// The earliest record at or after an instant, as ListOffsets answers.
    Timestamp(TimestampMs),
    /// The log start offset.
    Earliest,
    /// The log end offset.
    Latest,
    /// The record with the largest timestamp.
    MaxTimestamp,
    /// Where a leader epoch ended.
    LeaderEpoch(LeaderEpoch),
}

/// How it is looked for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Options {
    /// The log start offset, where the checkpoint's is not meant.
    pub log_start_offset: Option<Offset>,
    /// Bounds of decompression.
    pub limits: RecordLimits,
    /// How log files are read.
    pub io: IoMode,
}

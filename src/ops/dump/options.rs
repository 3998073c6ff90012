//! What is asked of a dump.

use super::Filter;
use super::decode::Decode;
use crate::logdir::IoMode;
use crate::ops::RecordLimits;

/// What is shown of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Show {
    /// Its records.
    #[default]
    Records,
    /// Its header.
    Batches,
    /// Its header, then its records.
    Both,
}

/// Whose eyes look at transactions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Isolation {
    /// Everything is shown.
    #[default]
    ReadUncommitted,
    /// Aborted and open transactions, and what lies behind the first open one, are hidden, as from a consumer.
    ReadCommitted,
}

/// How much is shown.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Amount {
    /// All of it.
    #[default]
    All,
    /// The first so many, over everything.
    First(u64),
    /// The last so many of each partition.
    Last(u64),
}

/// What a dump shows.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct DumpOptions {
    /// Records or headers.
    pub show: Show,
    /// Which of them.
    pub filter: Filter,
    /// How many of them.
    pub amount: Amount,
    /// Whose eyes.
    pub isolation: Isolation,
    /// Which records are decoded, so that a filter can name their keys.
    pub decode: Decode,
    /// Bounds of decompression.
    pub limits: RecordLimits,
    /// How files are read.
    pub io: IoMode,
}

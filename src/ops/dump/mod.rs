//! Everything in a data directory as a stream of events, in the order of the log. Decides nothing: what an event looks like is the
//! caller's, and damage is an event among others.
//!
//! A log file is cut into runs of sound batches. Workers turn runs into bytes by the caller's function; the bytes leave in the
//! order of the log, whatever the number of workers. Memory is bounded by the runs in flight.

mod committed;
mod drive;
mod event;
mod filter;
mod log;

use crate::logdir::IoMode;
use crate::ops::RecordLimits;

pub use drive::{DumpError, Dumper, Output};
pub use event::{BatchEvent, DumpSummary, Event, RecordEvent, Source};
pub use filter::{Filter, Range};

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
    /// Bounds of decompression.
    pub limits: RecordLimits,
    /// How files are read.
    pub io: IoMode,
}

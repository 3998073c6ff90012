//! Everything in a data directory as a stream of events, in the order of the log. Decides nothing: what an event looks like is the
//! caller's, and damage is an event among others.
//!
//! A log file is cut into runs of sound batches. Workers turn runs into bytes by the caller's function; the bytes leave in the
//! order of the log, whatever the number of workers. Memory is bounded by the runs in flight.

mod committed;
mod decode;
mod drive;
mod event;
mod files;
mod filter;
mod log;
mod options;

pub use decode::{Decode, DecodedRecord};
pub use drive::{DumpError, Dumper, Output};
pub use event::{BatchEvent, DumpSummary, Event, RecordEvent, Source};
pub use files::{FileEntry, FileShape};
pub use filter::{Filter, Range};
pub use options::{Amount, DumpOptions, Isolation, Show};

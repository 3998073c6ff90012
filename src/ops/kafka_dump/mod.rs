//! Files as Kafka's dump tool walks them (`org.apache.kafka.tools.DumpLogSegments` of 4.4): the same order, the same stops, the same
//! comparisons between index and log. Says what is seen as a stream of [`Event`]s and keeps what the tool reports at the end of a
//! run in a [`Report`].
//!
//! Where the tool ends with an exception the walk says so ([`Trouble`]) and goes on: after an impossible batch at the next sound one,
//! after unreadable records at the next batch, otherwise at the next entry or file.

mod event;
mod index;
mod log;
mod pages;
mod small;
mod steps;
mod undersized;
mod walk;

pub use event::{Event, Heading, IndexFault, IndexFile, MOST_STEPS, Report, SnapshotFault, StoredSizes, Trouble};
pub use pages::Pages;
pub use walk::{Depth, IndexMode, Options, dump_file};

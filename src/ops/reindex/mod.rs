//! `reindex`: offset, time and transaction indexes and producer snapshots, made anew from the log as a broker's recovery makes
//! them.
//!
//! What is wrong is [`super::verify`]'s to say; it is not asked where everything is made anew. Each segment that anything depends
//! on is read once, on any worker, a large one on several ([`scan`], [`large`]); what its producers say folds into their state on one thread, in order ([`fold`]), so
//! that any number of workers gives the same bytes. Nothing is made past damage: what lies there is not known.

mod extent;
mod fold;
mod large;
mod options;
mod plan;
mod scan;

pub use options::{DEFAULT_PART_BYTES, Extent, ReindexOptions};
pub use plan::{Leftovers, ReindexError, plan};

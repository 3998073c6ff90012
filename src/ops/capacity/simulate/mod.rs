//! The disk of one broker, stepped through time.
//!
//! A step writes what the hour's share of the daily traffic brings, rolls by size and time, runs the retention check at
//! its interval, lets removed segments wait for their delete delay, and moves the cleaner on. Replicas on a broker are
//! alike; they are stepped as a few groups whose first segments have different lengths, so that they neither roll nor
//! expire all at once. Compaction assumes that keys are drawn evenly from a fixed number.

mod cleaner;
mod disk;
mod replica;
mod report;

pub use disk::{Cleanup, Compaction, DailyProfile, IndexPreallocation, SimulationOptions, simulate};
pub use report::{Day, Footprint, Simulation};

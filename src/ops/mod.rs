//! Layer 3: the work. Options go in, a report or a plan comes out. No flags, no printing, no clock, no randomness of its own.
//!
//! Every operation has the same shape, in plain functions:
//!
//! ```text
//! pub struct Options { .. }     plain data, Default
//! pub struct Report  { .. }     what was seen: comparable, sorted, without wall-clock time
//! pub struct Plan    { .. }     what would be written, with the reason of each step
//! pub fn inspect(input, &Options, &dyn Progress)      -> Result<Report, OpError>     commands that read
//! pub fn plan   (input, &Options, now)                -> Result<Plan, OpError>       commands that write: first this
//! pub fn apply  (Plan, &impl Fs, &dyn Progress)       -> Result<Report, OpError>     then this, the only caller of `store`
//! ```

pub mod apply;
pub mod broker;
pub mod capacity;
pub mod compact;
pub mod coverage;
mod damage;
pub mod dump;
mod finding;
mod image;
pub mod kafka_dump;
pub mod locate;
mod parallel;
pub mod plan;
pub mod preflight;
mod progress;
mod records;
pub mod reindex;
pub mod repair;
pub mod retain;
mod sound_batches;
pub mod stat;
pub mod verify;
pub mod written;

pub use damage::{Damage, DamageKind};
pub use finding::{Fact, Finding, FindingId, Location, Repair, Severity};
pub use image::{Change, Content, DiskRange, ImageFile, PartitionImage, Recipe};
pub use progress::{Hidden, Progress};
pub use records::{BatchContent, RecordLimits, RecordReader, RecordsError, Visit, WrapperOffsets};
pub(crate) use sound_batches::first_sound_within;
pub use sound_batches::{SoundBatches, SoundItem};

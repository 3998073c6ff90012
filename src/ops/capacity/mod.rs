//! Disk capacity: the storage formula, its calibration from real segments, and the disk of one broker over time.
//!
//! Pure arithmetic over `f64`: a plan is an estimate, and its numbers (bytes of a cluster over years) outgrow 64 bits
//! sooner than they need exactness. Nothing here reads a clock or a file, except `calibrate` and `codecs`.

mod calibrate;
mod codecs;
mod formula;
mod inputs;
mod report;
mod settings;
mod simulate;

pub use calibrate::{Calibration, NoCalibration, calibrate, in_days};
pub use codecs::{CodecTrial, CodecTrials, try_codecs};
pub use formula::{
    Advice, DEFAULT_MAX_MAP_COUNT, DiskPlan, GrowthYear, OpenFilesPlan, Overheads, PartitionPlan, PartitionReason,
    Plan, StoragePlan, plan,
};
pub use inputs::{AssumedCodec, DiskClass, Input, Inputs, Origin};
pub use report::CapacityReport;
pub use settings::TopicSettings;
pub use simulate::{
    Cleanup, Compaction, DailyProfile, Day, Footprint, IndexPreallocation, Simulation, SimulationOptions, simulate,
};

pub(crate) const SECONDS_PER_DAY: f64 = 86_400.0;

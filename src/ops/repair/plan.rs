//! The way in.

use super::like_broker::plan_like_broker;
use super::options::{Mode, RepairError, RepairOptions};
use super::report::RepairPlan;
use super::salvage::plan_salvage;
use crate::ops::Progress;
use crate::ops::plan::PlanInput;

/// Plans a repair.
pub fn plan(
    inputs: &[PlanInput],
    options: &RepairOptions,
    pool: &rayon::ThreadPool,
    progress: &dyn Progress,
) -> Result<RepairPlan, RepairError> {
    match options.mode {
        Mode::LikeBroker => plan_like_broker(inputs, options, pool, progress),
        Mode::Salvage => plan_salvage(inputs, options, pool, progress),
    }
}

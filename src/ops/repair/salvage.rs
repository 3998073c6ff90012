//! To come.
use super::options::{RepairError, RepairInput, RepairOptions};
use super::report::RepairPlan;
use crate::ops::Progress;
pub(super) fn plan_salvage(
    _inputs: &[RepairInput],
    _options: &RepairOptions,
    _pool: &rayon::ThreadPool,
    _progress: &dyn Progress,
) -> Result<RepairPlan, RepairError> {
    Err(RepairError::Cancelled)
}

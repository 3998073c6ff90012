//! All that `plan-capacity` came to.

use super::calibrate::Calibration;
use super::codecs::CodecTrials;
use super::formula::Plan;
use super::simulate::Simulation;

/// The plan, and what else was asked for.
#[derive(Clone, PartialEq, Debug)]
pub struct CapacityReport {
    /// The plan.
    pub plan: Plan,
    /// What real segments said.
    pub calibration: Option<Calibration>,
    /// What other codecs would make of them.
    pub codecs: Option<CodecTrials>,
    /// The disk over time.
    pub simulation: Option<Simulation>,
}

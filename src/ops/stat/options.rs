//! How to measure.

use super::report::Depth;
use crate::logdir::IoMode;

/// How to measure.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StatOptions {
    /// How much is read.
    pub depth: Depth,
    /// How bulk scans read.
    pub io: IoMode,
}

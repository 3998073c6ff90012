//! What a repair is asked for.

use crate::logdir::ReadError;
use crate::ops::preflight;
use crate::ops::{FindingId, verify};

/// Which directory a repair aims at.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Mode {
    /// One that has every batch that verifies.
    #[default]
    Salvage,
    /// The one that a broker's recovery leaves.
    LikeBroker,
}

/// What is done with files that a broker has marked for deletion.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum DeletedFiles {
    /// They are used where they close a hole between live segments.
    #[default]
    CloseHoles,
    /// All that is in them and nowhere else is used.
    Include,
}

/// What a repair is asked for.
#[derive(Clone, PartialEq, Debug)]
pub struct RepairOptions {
    /// Which directory it aims at.
    pub mode: Mode,
    /// What is done with files marked for deletion.
    pub deleted: DeletedFiles,
    /// The broker that starts over the result, and when.
    pub start: preflight::Options,
}

/// Why there is no plan.
#[derive(Debug)]
pub enum RepairError {
    /// Something could not be read.
    Read(ReadError),
    /// A broker does not come up over this log dir, so there is no directory like its.
    StartFails {
        /// The file or directory at fault.
        path: std::path::PathBuf,
        /// What is wrong with it.
        reason: FindingId,
    },
    /// The user asked to stop.
    Cancelled,
}

impl From<ReadError> for RepairError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl From<verify::VerifyError> for RepairError {
    fn from(error: verify::VerifyError) -> Self {
        match error {
            verify::VerifyError::Read(error) => Self::Read(error),
            verify::VerifyError::Cancelled => Self::Cancelled,
        }
    }
}

impl From<preflight::PredictError> for RepairError {
    fn from(error: preflight::PredictError) -> Self {
        match error {
            preflight::PredictError::Read(error) => Self::Read(error),
            preflight::PredictError::Cancelled => Self::Cancelled,
        }
    }
}

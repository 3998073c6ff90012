//! What ends the loading of a log before it is loaded.

use std::ffi::{OsStr, OsString};

use crate::format::Position;
use crate::logdir::ReadError;
use crate::ops::FindingId;

/// What a failure does to the broker.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FailureKind {
    /// The log dir is given up; a broker with one log dir halts.
    LogDirOffline,
    /// The broker exits.
    StartFails,
}

/// A failure of a broker's start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StartFailure {
    /// What it does to the broker.
    pub kind: FailureKind,
    /// What is wrong.
    pub reason: FindingId,
    /// The file that is at fault, by its name in the directory.
    pub file: OsString,
    /// The place in it.
    pub position: Option<Position>,
}

/// Why loading ended early.
#[derive(Debug)]
pub enum LoadStop {
    /// The broker's start fails here.
    Failure(StartFailure),
    /// The file could not be read by this program, so what a broker would make of it is not known.
    Unreadable(ReadError),
    /// The user asked to stop.
    Cancelled,
}

impl LoadStop {
    /// An exception that leaves the loader: the broker exits.
    pub(super) fn fails(reason: FindingId, file: &OsStr, position: impl Into<Option<Position>>) -> Self {
        let position = position.into();
        Self::Failure(StartFailure { kind: FailureKind::StartFails, reason, file: file.to_os_string(), position })
    }

    /// An input/output error that leaves the loader: the log dir is given up.
    pub(super) fn offline(reason: FindingId, file: &OsStr) -> Self {
        let file = file.to_os_string();
        Self::Failure(StartFailure { kind: FailureKind::LogDirOffline, reason, file, position: None })
    }
}

impl From<ReadError> for LoadStop {
    fn from(error: ReadError) -> Self {
        Self::Unreadable(error)
    }
}

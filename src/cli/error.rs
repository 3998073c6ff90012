//! Where errors become sentences: what, where, expected, found, and a hint of what to do.

use std::io;

use super::exit::ExitStatus;
use crate::logdir::ReadError;

/// Why a command ended without its result.
#[derive(Debug)]
pub enum CliError {
    /// The command line cannot be used as it is.
    Usage(Message),
    /// The work could not be done.
    Failed(Message),
    /// The work was refused and nothing was touched.
    Refused(Message),
    /// The user asked to stop.
    Interrupted,
    /// Whoever read the output has gone; nobody is left to tell.
    ClosedPipe,
}

/// A sentence fragment that fits behind `error: `, and what the reader can do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// What is wrong.
    pub text: String,
    /// What to do, where something can be done.
    pub hint: Option<String>,
}

impl Message {
    /// A message without a hint.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), hint: None }
    }

    /// The same message with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl CliError {
    /// A command line that cannot be used.
    pub fn usage(text: impl Into<String>) -> Self {
        Self::Usage(Message::new(text))
    }

    /// Work that could not be done.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::Failed(Message::new(text))
    }

    /// Work that was refused.
    pub fn refused(text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused(Message::new(text).with_hint(hint))
    }

    /// The exit status that this error gives.
    pub fn status(&self) -> ExitStatus {
        match self {
            Self::Usage(_) | Self::Failed(_) => ExitStatus::Incomplete,
            Self::Refused(_) => ExitStatus::Refused,
            Self::Interrupted => ExitStatus::Interrupted,
            Self::ClosedPipe => ExitStatus::Done,
        }
    }

    /// What to print, if there is anybody to print it for.
    pub fn message(&self) -> Option<&Message> {
        match self {
            Self::Usage(message) | Self::Failed(message) | Self::Refused(message) => Some(message),
            Self::Interrupted | Self::ClosedPipe => None,
        }
    }
}

impl From<ReadError> for CliError {
    fn from(error: ReadError) -> Self {
        Self::failed(error.to_string())
    }
}

/// An error of standard output: a closed pipe ends a command quietly, anything else is a failure.
impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::ClosedPipe;
        }
        Self::failed(format!("failed to write the output: {error}"))
    }
}

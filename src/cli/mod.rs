//! Layer 5: arguments to operations to output to exit status.

pub mod args;
pub mod config_file;
mod properties;
mod settings;

use std::process::ExitCode;

/// Runs the process's own arguments.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}

//! What a verification is asked for.

use crate::format::TimestampMs;
use crate::logdir::IoMode;
use crate::ops::RecordLimits;

/// How deep a verification goes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Level {
    /// Framing and checksums: what a broker's recovery looks at.
    Crc,
    /// Decompression and every record too.
    #[default]
    Records,
}

/// What a verification is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// How deep it goes.
    pub level: Level,
    /// Bounds for what a batch may inflate to.
    pub limits: RecordLimits,
    /// How log files are read.
    pub io: IoMode,
    /// The time of the run: timestamps far ahead of it are implausible. Without it only those that no unit of time explains are.
    pub now: Option<TimestampMs>,
    /// Log files of more than twice this size are cut into stretches of about this size, for several workers at once.
    pub stretch_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            level: Level::default(),
            limits: RecordLimits::default(),
            io: IoMode::default(),
            now: None,
            stretch_bytes: 8 * 1024 * 1024,
        }
    }
}

//! What can be read of a small file, beside the reason for which Kafka would not read it.

use super::FormatError;

/// The content of a small file as far as it can be read, and the first thing over which Kafka's own reader stumbles.
///
/// Checkpoints, snapshots and their like are read whole by brokers or not at all. Somebody who looks at a damaged one wants to see
/// what is in it all the same; somebody who computes with it must not: see [`Self::strict`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lenient<T> {
    /// What could be read.
    pub content: T,
    /// Where and why Kafka's reader gives up.
    pub fault: Option<FormatError>,
}

impl<T> Lenient<T> {
    /// The content where Kafka reads it too.
    pub fn strict(self) -> Result<T, FormatError> {
        self.fault.map_or(Ok(self.content), Err)
    }
}

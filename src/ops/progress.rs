//! How far the work has come, told to whoever shows it. No terminal code here.

/// Told of bytes as they are done, from any thread.
pub trait Progress: Sync {
    /// Work of this many bytes has been found to lie ahead.
    fn expect(&self, bytes: u64);
    /// This many bytes are done.
    fn advance(&self, bytes: u64);
    /// Whether the user has asked to stop.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Shows nothing.
#[derive(Clone, Copy, Default, Debug)]
pub struct Hidden;

impl Progress for Hidden {
    fn expect(&self, _bytes: u64) {}
    fn advance(&self, _bytes: u64) {}
}

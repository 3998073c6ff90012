//! Every byte of a file was checked, skipped or refused by the disk; the three must add up to its size.

/// Bytes of one file, by what became of them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Coverage {
    /// Looked at.
    pub checked_bytes: u64,
    /// Left out, and said so.
    pub skipped_bytes: u64,
    /// Refused by the disk.
    pub unreadable_bytes: u64,
}

impl Coverage {
    /// A file that was looked at as a whole.
    pub fn checked(size_bytes: u64) -> Self {
        Self { checked_bytes: size_bytes, ..Self::default() }
    }

    /// A file that was left out.
    pub fn skipped(size_bytes: u64) -> Self {
        Self { skipped_bytes: size_bytes, ..Self::default() }
    }

    /// A file that the disk refused.
    pub fn refused(size_bytes: u64) -> Self {
        Self { unreadable_bytes: size_bytes, ..Self::default() }
    }

    /// Counts bytes that were looked at.
    pub fn check(&mut self, bytes: u64) {
        self.checked_bytes = self.checked_bytes.saturating_add(bytes);
    }

    /// Counts bytes that were left out.
    pub fn skip(&mut self, bytes: u64) {
        self.skipped_bytes = self.skipped_bytes.saturating_add(bytes);
    }

    /// Counts bytes that the disk refused.
    pub fn refuse(&mut self, bytes: u64) {
        self.unreadable_bytes = self.unreadable_bytes.saturating_add(bytes);
    }

    /// All bytes counted.
    pub fn total(&self) -> u64 {
        self.checked_bytes.saturating_add(self.skipped_bytes).saturating_add(self.unreadable_bytes)
    }

    /// Whether every byte was looked at.
    pub fn is_complete(&self) -> bool {
        self.skipped_bytes == 0 && self.unreadable_bytes == 0
    }
}

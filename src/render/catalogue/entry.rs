//! An entry of the manual.

use super::{files, indexes, log};
use crate::ops::FindingId;

/// What the manual says of a finding, in the operator's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The finding.
    pub id: FindingId,
    /// What it means.
    pub means: &'static str,
    /// What a broker will do.
    pub broker: &'static str,
    /// What to do now.
    pub now: &'static str,
}

/// The entry of a finding.
pub fn entry_of(id: FindingId) -> Option<Entry> {
    entries().find(|entry| entry.id == id)
}

/// All entries.
pub(super) fn entries() -> impl Iterator<Item = Entry> {
    [log::ENTRIES, indexes::ENTRIES, files::ENTRIES].into_iter().flatten().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_has_exactly_one_entry() {
        for &id in FindingId::ALL {
            assert_eq!(entries().filter(|entry| entry.id == id).count(), 1, "{}", id.as_str());
        }
        assert_eq!(entries().count(), FindingId::ALL.len());
    }

    #[test]
    fn entries_are_sentences() {
        for entry in entries() {
            for text in [entry.means, entry.broker, entry.now] {
                assert!(text.ends_with('.') && !text.contains("  "), "{}: {text}", entry.id.as_str());
            }
        }
    }
}

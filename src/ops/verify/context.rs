//! What is known around a file: where it is, whether its segment still grows, how the broker stopped. Severities hang on it.

use std::path::PathBuf;

use crate::format::{Offset, Position};
use crate::logdir::TopicPartition;
use crate::ops::{Finding, FindingId, Location, Severity};

/// Whether a segment still grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SegmentRole {
    /// A later segment follows: nothing is written here any more.
    Closed,
    /// The last segment of its log.
    Active,
    /// Nothing is known of the segments around it: a file by itself.
    Alone,
}

/// How the broker stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shutdown {
    /// The clean-shutdown marker is there: the next start believes the files.
    Clean,
    /// It is not: the next start recovers what was not flushed.
    Unclean,
}

/// What a directory is to the next start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DirectoryState {
    /// A live replica.
    Live,
    /// The metadata log, or that of the 2.8 preview: always recovered as a whole, whatever the marker says.
    Metadata,
    /// About to be deleted.
    Doomed,
    /// Moved to here, or not wanted here: data that somebody may still want, indexes that nobody looks at.
    Aside,
}

/// Where a check stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// The log dir.
    pub(super) log_dir: PathBuf,
    /// The partition, where there is one.
    pub(super) topic_partition: Option<TopicPartition>,
    /// The file, relative to the log dir.
    pub(super) path: PathBuf,
}

impl Place {
    /// A finding about the whole file.
    pub(super) fn finding(&self, id: FindingId) -> Finding {
        Finding::new(id, Location::of_path(self.log_dir.clone(), self.topic_partition.clone(), self.path.clone()))
    }

    /// A finding about a range of the file.
    pub(super) fn finding_at(&self, id: FindingId, position: Position, size_bytes: u64) -> Finding {
        let location = Location::of_path(self.log_dir.clone(), self.topic_partition.clone(), self.path.clone());
        Finding::new(id, location.at(position, size_bytes))
    }

    /// The same partition, another file.
    #[must_use]
    pub(super) fn with_path(&self, path: impl Into<PathBuf>) -> Self {
        Self { log_dir: self.log_dir.clone(), topic_partition: self.topic_partition.clone(), path: path.into() }
    }
}

/// A segment's surroundings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SegmentContext {
    /// The offset in the file's name.
    pub(super) base_offset: Offset,
    /// The next segment's.
    pub(super) next_base_offset: Option<Offset>,
    /// Whether it grows.
    pub(super) role: SegmentRole,
    /// How the broker stopped.
    pub(super) shutdown: Shutdown,
    /// What the directory is.
    pub(super) directory: DirectoryState,
}

/// What a damaged end of a log file consists of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tail {
    /// A batch that is cut off.
    Torn,
    /// Zeros, this many.
    Zeros(u64),
    /// Anything else.
    Foreign,
}

/// Up to this many bytes behind the last batch a broker reads as the end, and appends behind them.
const UNNOTICED_TAIL_BYTES: u64 = 17;

impl SegmentContext {
    /// Whether the next start takes the segment's end as it is.
    fn is_believed(&self) -> bool {
        self.shutdown == Shutdown::Clean && self.directory != DirectoryState::Metadata
    }

    /// How bad a damaged end is here. In a closed segment an unclean start drops everything behind it. After a clean stop the end
    /// is believed: whole batches vanish, or later ones are written where nobody finds them. Otherwise the next start cuts it.
    pub(super) fn tail_severity(&self, tail: Tail) -> Severity {
        if self.directory == DirectoryState::Doomed {
            return Severity::Info;
        }
        match (self.role, tail) {
            (SegmentRole::Closed, _) => Severity::Critical,
            (SegmentRole::Active, Tail::Zeros(count)) if self.is_believed() && count > UNNOTICED_TAIL_BYTES => {
                Severity::Error
            }
            (SegmentRole::Active, _) if self.is_believed() => Severity::Critical,
            _ => Severity::Warning,
        }
    }

    /// The severity of damage inside the log: of no interest in a directory that is about to go.
    pub(super) fn log_severity(&self, usual: Severity) -> Severity {
        if self.directory == DirectoryState::Doomed { usual.min(Severity::Info) } else { usual }
    }

    /// The severity of an index that a broker would use as it is.
    pub(super) fn index_severity(&self, usual: Severity) -> Severity {
        match (self.directory, self.role) {
            (DirectoryState::Doomed | DirectoryState::Aside, _) => usual.min(Severity::Info),
            // Rebuilt at the next start.
            (DirectoryState::Metadata, _) => usual.min(Severity::Warning),
            (DirectoryState::Live, SegmentRole::Active) if self.shutdown == Shutdown::Unclean => {
                usual.min(Severity::Warning)
            }
            (DirectoryState::Live, _) => usual,
        }
    }

    /// The severity of an offset index that leads past batches: where a broker uses it as it is, these cannot be fetched.
    pub(super) fn misleading_index_severity(&self, usual: Severity) -> Severity {
        match (self.directory, self.role) {
            (DirectoryState::Live, SegmentRole::Closed) => Severity::Critical,
            (DirectoryState::Live, SegmentRole::Active) if self.shutdown == Shutdown::Clean => Severity::Critical,
            _ => self.index_severity(usual),
        }
    }

    /// The severity of an index that was not cut to its entries: what every crash leaves in the active segment, and what only harm
    /// leaves anywhere else.
    pub(super) fn untrimmed_index_severity(&self, usual: Severity) -> Severity {
        match (self.directory, self.role) {
            (DirectoryState::Doomed | DirectoryState::Aside | DirectoryState::Metadata, _) => usual.min(Severity::Info),
            (DirectoryState::Live, SegmentRole::Active) if self.shutdown == Shutdown::Unclean => Severity::Info,
            (DirectoryState::Live, SegmentRole::Alone) => usual.min(Severity::Warning),
            (DirectoryState::Live, _) => usual,
        }
    }

    /// Whether files that are not in closed state contradict the clean-shutdown marker here.
    pub(super) fn contradicts_marker(&self) -> bool {
        self.shutdown == Shutdown::Clean && self.directory == DirectoryState::Live && self.role == SegmentRole::Active
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(role: SegmentRole, shutdown: Shutdown) -> SegmentContext {
        SegmentContext {
            base_offset: Offset(0),
            next_base_offset: None,
            role,
            shutdown,
            directory: DirectoryState::Live,
        }
    }

    #[test]
    fn a_damaged_end_is_as_bad_as_what_the_next_start_makes_of_it() {
        let crashed = context(SegmentRole::Active, Shutdown::Unclean);
        let stopped = context(SegmentRole::Active, Shutdown::Clean);
        let closed = context(SegmentRole::Closed, Shutdown::Unclean);
        for (tail, after_crash, after_stop) in [
            (Tail::Torn, Severity::Warning, Severity::Critical),
            (Tail::Zeros(18), Severity::Warning, Severity::Error),
            (Tail::Zeros(17), Severity::Warning, Severity::Critical),
            (Tail::Foreign, Severity::Warning, Severity::Critical),
        ] {
            assert_eq!(crashed.tail_severity(tail), after_crash, "{tail:?}");
            assert_eq!(stopped.tail_severity(tail), after_stop, "{tail:?}");
            assert_eq!(closed.tail_severity(tail), Severity::Critical, "{tail:?}");
        }
        let metadata = SegmentContext { directory: DirectoryState::Metadata, ..stopped };
        assert_eq!(metadata.tail_severity(Tail::Torn), Severity::Warning);
    }
}

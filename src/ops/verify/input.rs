//! What a verification looks at: partitions as images, with what their log dir says of them.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use super::context::{DirectoryState, Place, SegmentContext, SegmentRole, Shutdown};
use crate::format::Offset;
use crate::format::control::ControlNumbering;
use crate::logdir::names::{DirName, FileKind, FileName, FileSuffix};
use crate::ops::PartitionImage;

/// A partition directory to look at, and what is known around it.
#[derive(Clone, Debug)]
pub struct PartitionInput {
    /// The directory.
    pub image: PartitionImage,
    /// What its name makes of it.
    pub directory: DirectoryState,
    /// How the broker stopped.
    pub shutdown: Shutdown,
    /// Whether `cleaner-offset-checkpoint` names it: offsets may be missing.
    pub is_cleaned: bool,
    /// Where the log starts, if `log-start-offset-checkpoint` says so.
    pub log_start_offset: Option<Offset>,
    /// How far the log reached at least, by the checkpoints of recovery points and high watermarks.
    pub known_end_offset: Option<Offset>,
}

impl PartitionInput {
    /// What the name of a partition's directory makes of it.
    pub fn directory_of(name: &OsStr) -> DirectoryState {
        match DirName::parse(name) {
            DirName::ClusterMetadata(_) => DirectoryState::Metadata,
            DirName::Delete { .. } => DirectoryState::Doomed,
            DirName::Future { .. } | DirName::Stray { .. } => DirectoryState::Aside,
            _ => DirectoryState::Live,
        }
    }

    /// The place of one of its files.
    pub(super) fn place(&self, name: &OsStr) -> Place {
        Place {
            log_dir: self.image.log_dir().to_path_buf(),
            topic_partition: Some(self.image.topic_partition().clone()),
            path: self.image.relative(name),
        }
    }

    /// The place of the directory.
    pub(super) fn directory_place(&self) -> Place {
        Place {
            log_dir: self.image.log_dir().to_path_buf(),
            topic_partition: Some(self.image.topic_partition().clone()),
            path: self.image.dir_name().into(),
        }
    }

    /// How control records are numbered in its log.
    pub(super) fn numbering(&self) -> ControlNumbering {
        match (self.directory, self.image.topic_partition().topic_str()) {
            (DirectoryState::Metadata, Some("@metadata")) => ControlNumbering::Preview,
            _ => ControlNumbering::Current,
        }
    }

    /// The bytes of all its logs.
    pub(super) fn log_bytes(&self) -> u64 {
        let logs = self.image.files().filter(|(name, _)| log_base(name).is_some());
        logs.map(|(name, _)| self.image.size_of(name)).fold(0, u64::saturating_add)
    }

    /// The segments that have a log, in order.
    pub(super) fn segments(self: &Arc<Self>) -> Vec<SegmentInput> {
        let logs: Vec<(Offset, OsString)> =
            self.image.files().filter_map(|(name, _)| Some((log_base(name)?, name.to_os_string()))).collect();
        let next_bases = logs.iter().skip(1).map(|(base, _)| Some(*base)).chain([None]);
        logs.iter()
            .zip(next_bases)
            .map(|((base_offset, name), next_base_offset)| SegmentInput {
                partition: Arc::clone(self),
                name: name.clone(),
                context: SegmentContext {
                    base_offset: *base_offset,
                    next_base_offset,
                    role: if next_base_offset.is_some() { SegmentRole::Closed } else { SegmentRole::Active },
                    shutdown: self.shutdown,
                    directory: self.directory,
                },
            })
            .collect()
    }
}

/// The base offset in the name of a log.
fn log_base(name: &OsStr) -> Option<Offset> {
    match FileName::parse(name) {
        FileName::Segment { base, kind: FileKind::Log, suffix: FileSuffix::None } => Some(base),
        _ => None,
    }
}

/// One segment to look at.
#[derive(Clone, Debug)]
pub(super) struct SegmentInput {
    pub(super) partition: Arc<PartitionInput>,
    /// The name of its log file.
    pub(super) name: OsString,
    pub(super) context: SegmentContext,
}

impl SegmentInput {
    /// The name of another file of the segment.
    pub(super) fn name_of(&self, kind: FileKind) -> Option<OsString> {
        FileName::Segment { base: self.context.base_offset, kind, suffix: FileSuffix::None }.to_name()
    }
}

//! Layer 1: directories as Kafka lays them out. Opens files for reading only and gives no verdicts.

mod assembled;
mod error;
mod file_system;
mod index_file;
mod lock_probe;
mod log_dir;
mod mapped;
pub mod names;
mod partition;
mod reader;
mod segment_file;
mod topic_partition;

pub use assembled::FilePart;
pub use error::{ReadError, ReadErrorKind};
pub use file_system::{FileSystem, Mount, file_system_of};
pub use index_file::IndexFile;
pub use lock_probe::{LockHolder, probe_lock};
pub use log_dir::{Input, LogDir, LogDirMember, SingleFile};
pub use partition::{DirEntry, PartitionDir, PartitionFile, Segment, list_directory};
pub use reader::{LargeBatch, LogScanner, MOST_HELD, Resync, ScanStop, Scanned};
pub use segment_file::{IoMode, RangeReader, SegmentFile};
pub use topic_partition::{TopicPartition, is_legal_topic};

//! Layer 1: directories as Kafka lays them out. Opens files for reading only and gives no verdicts.

mod error;
mod mapped;
pub mod names;
mod reader;
mod topic_partition;

pub use error::{ReadError, ReadErrorKind};
pub use reader::{IoMode, LargeBatch, LogScanner, MOST_HELD, RangeReader, Resync, ScanStop, Scanned, SegmentFile};
pub use topic_partition::{TopicPartition, is_legal_topic};

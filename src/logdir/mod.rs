//! Layer 1: directories as Kafka lays them out. Opens files for reading only and gives no verdicts.

mod error;
mod mapped;
mod reader;

pub use error::{ReadError, ReadErrorKind};
pub use reader::{IoMode, LargeBatch, LogScanner, MOST_HELD, RangeReader, Resync, ScanStop, Scanned, SegmentFile};

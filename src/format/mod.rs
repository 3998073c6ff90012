//! Layer 0: bytes to typed views and back. No I/O on files, no paths, no clock, no threads, no prose.
//!
//! Everything read from outside enters through [`Cursor`]; nothing here can panic on any input. Views borrow the bytes they
//! describe. A [`FormatError`] is a place and typed facts; whether it matters is decided in `ops`.
//!
//! Layouts follow Apache Kafka's `org.apache.kafka.common.record` and `org.apache.kafka.storage.internals.log`.

mod batch;
mod batches;
pub mod checkpoint;
pub mod compression;
pub mod control;
pub mod crc;
mod cursor;
pub mod encode;
mod error;
mod index_search;
pub mod java_number;
pub mod legacy;
mod lenient;
pub mod message;
pub mod offset_index;
pub mod producer_snapshot;
pub mod record;
pub mod resync;
pub mod time_index;
pub mod txn_index;
mod types;
mod uuid;
pub mod varint;

pub use batch::{
    Attributes, BATCH_HEADER, Batch, BatchHeader, CrcStream, HEADER_UP_TO_MAGIC, LEAST_SIZE, LOG_OVERHEAD,
};
pub use batches::{Batches, is_cut};
pub use cursor::Cursor;
pub use error::{FormatError, FormatErrorKind, Shape};
pub use lenient::Lenient;
pub use types::{
    LeaderEpoch, Offset, Position, ProducerEpoch, ProducerId, Sequence, TimestampMs, TimestampType, len_u64, len_usize,
};
pub use uuid::Uuid;

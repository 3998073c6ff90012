//! Messages of magic 0 and 1, and the compressed wrappers that hold more of them (`LegacyRecord`,
//! `AbstractLegacyRecordBatch.DeepRecordsIterator`).
//!
//! ```text
//!  0        8     12   16 17 18       18 (26)
//!  |offset  |size |crc |m |at|time (1) | keyLength i32, key | valueLength i32, value
//!                      '------------------- covered by CRC-32 ----------------------->
//! ```
//!
//! A message whose attributes name a codec is a wrapper: its value is the compressed concatenation of whole messages. In a wrapper
//! of magic 0 their offsets are absolute. In one of magic 1 they are relative and the wrapper carries the offset of the last, so
//! that the first can be known only after decompression. Wrappers do not nest.
//!
//! What Kafka refuses is an error here. What it reads without a word (a cut last message, a wrong inner checksum, another magic
//! inside) is a [`LegacyOddity`].

mod message;
mod stream;
mod wrapper;

pub use message::LegacyMessage;
pub use stream::{InnerRecordStream, read_facts};
pub use wrapper::{InnerRecords, InnerSet, LegacyOddity, LegacyRecord, SetFacts, Wrapper};

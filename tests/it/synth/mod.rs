//! Writes Kafka's files from the description of their layout, without `segtool::format`: an independent oracle.
//!
//! What a test expects is stated in the builders' words; what the code under test makes of the bytes is compared with
//! that. The builders compute what a writer would (checksums, deltas, counts, index entries, snapshots), and every
//! computed field can be overruled, for data that no writer would make. `vectors` holds them against published bytes.
//!
//! * [`Batch`], [`Record`]: magic 2, all attributes; [`control`]: markers and KRaft control records;
//! * [`legacy`]: magic 0 and 1, plain and wrapped; [`Codec`]: the framings that clients write;
//! * [`files`]: indexes, snapshots, checkpoints;
//! * [`Segment`], [`Partition`], [`LogDir`]: whole directories with consistent companions.

#![allow(dead_code, unused_imports, reason = "a toolbox: each test takes what it needs")]

mod batch;
mod bytes;
mod codec;
pub(crate) mod control;
pub(crate) mod files;
pub(crate) mod legacy;
mod partition;
mod producers;
pub(crate) mod random;
mod segment;
mod vectors;

pub(crate) use batch::{Batch, Record, record};
pub(crate) use bytes::Bytes;
pub(crate) use codec::Codec;
pub(crate) use partition::{LogDir, Partition};
pub(crate) use segment::{Segment, Unit};

/// The time at which synthetic data begins: 2023-11-14T22:13:20Z.
pub(crate) const T: i64 = 1_700_000_000_000;

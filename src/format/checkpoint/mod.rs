//! The text files of log dirs and partitions.
//!
//! A broker reads each of them whole or not at all, and what happens then depends on the exception that its reader throws:
//! see [`reader_exception`]. What can be read of a damaged file comes along all the same ([`Lenient`](super::Lenient)).
//!
//! | file | type |
//! | --- | --- |
//! | `recovery-point-offset-checkpoint` and its three siblings | [`OffsetCheckpoint`] |
//! | `leader-epoch-checkpoint` | [`LeaderEpochCheckpoint`] |
//! | `partition.metadata` | [`PartitionMetadata`] |
//! | `meta.properties` | [`MetaProperties`] |
//! | `.kafka_cleanshutdown` | [`CleanShutdownMarker`] |
//! | `quorum-state` | [`QuorumState`] |

mod clean_shutdown;
mod frame;
pub mod java_properties;
mod leader_epochs;
mod lines;
mod meta_properties;
mod offsets;
mod partition_metadata;
mod quorum_state;

pub use clean_shutdown::{CleanShutdownMarker, MarkerContent};
pub use frame::{ReaderException, reader_exception};
pub use leader_epochs::{EpochEntry, EpochOddity, LeaderEpochCheckpoint};
pub use meta_properties::MetaProperties;
pub use offsets::{OffsetCheckpoint, OffsetEntry, OffsetOddity};
pub use partition_metadata::PartitionMetadata;
pub use quorum_state::QuorumState;

//! Control records: what the broker itself writes into a log. Their batches have attribute bit 5 set.
//!
//! ```text
//!  key    0    2    4
//!         |ver |type| more is ignored      big-endian
//!
//!  value  0 abort, 1 commit     |ver | coordinatorEpoch |           6 bytes, more is ignored
//!         2 leader change       |ver | leader | voters [] | granting voters [] | tags
//!         3 snapshot header     |ver | lastContainedLogTimestamp | tags
//!         4 snapshot footer     |ver | tags
//!         5 kraft version       |ver | kraftVersion | tags
//!         6 kraft voters        |ver | voters [] | tags
//! ```
//!
//! Types 2 to 6 are in the flexible encoding: `[]` is an unsigned varint of one more than the number of elements, text one of one
//! more than its length, tags a number of (tag, size, bytes).
//!
//! The previews of KRaft in 2.7 and 2.8 numbered differently: 2 was a quorum reassignment, 3 the leader change, which had no version
//! in front. Nothing in a record tells; the directory's name does, which is `@metadata-0` there. See [`ControlNumbering`].
//!
//! Rules: `ControlRecordType`, `EndTransactionMarker`, `ControlRecordUtils`, `common/message/*.json`.

mod flexible;
mod record;
mod value;

pub use flexible::TaggedField;
pub use record::{ControlNumbering, ControlRecord, ControlType};
pub use value::{
    ControlValue, EndTxnMarker, Endpoint, KraftVersion, KraftVoter, KraftVoters, LeaderChange, SnapshotFooter,
    SnapshotHeader, Voter,
};

//! Control records: end of a transaction, and those of KRaft.

use super::bytes::Bytes;
use super::{Batch, Record};

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marker {
    Abort,
    Commit,
}

/// The batch of one ABORT or COMMIT marker.
pub(crate) fn end_transaction(
    offset: i64,
    marker: Marker,
    (producer_id, producer_epoch): (i64, i16),
    coordinator_epoch: i32,
    timestamp_ms: i64,
) -> Batch {
    let record = control_record(marker as i16, Bytes::new().i16(0).i32(coordinator_epoch)).at(timestamp_ms);
    Batch::at(offset).producer(producer_id, producer_epoch, -1).transactional().control().record(record)
}

/// A control record of any type; its key is version 0 and the type.
pub(crate) fn control_record(kind: i16, value: Bytes) -> Record {
    Record { key: Some(Bytes::new().i16(0).i16(kind).0), value: Some(value.0), ..Record::default() }
}

pub(crate) fn leader_change(leader: i32, voters: &[i32], granting: &[i32]) -> Record {
    let ids = |bytes: Bytes, ids: &[i32]| {
        ids.iter().fold(bytes.uvarint(ids.len() as u64 + 1), |bytes, id| bytes.i32(*id).raw(NO_TAGS))
    };
    control_record(2, ids(ids(Bytes::new().i16(0).i32(leader), voters), granting).raw(NO_TAGS))
}

pub(crate) fn snapshot_header(last_contained_ms: i64) -> Record {
    control_record(3, Bytes::new().i16(0).i64(last_contained_ms).raw(NO_TAGS))
}

pub(crate) fn snapshot_footer() -> Record {
    control_record(4, Bytes::new().i16(0).raw(NO_TAGS))
}

pub(crate) fn kraft_version(version: i16) -> Record {
    control_record(5, Bytes::new().i16(0).i16(version).raw(NO_TAGS))
}

/// One voter with one endpoint, as `(id, directory id, name, host, port)`.
pub(crate) fn kraft_voter((id, directory, name, host, port): (i32, [u8; 16], &str, &str, u16)) -> Record {
    let voter = Bytes::new().i32(id).raw(&directory).uvarint(2).compact_string(name).compact_string(host);
    let voter = voter.raw(&port.to_be_bytes()).raw(NO_TAGS).i16(0).i16(1).raw(NO_TAGS).raw(NO_TAGS);
    control_record(6, Bytes::new().i16(0).uvarint(2).raw(&voter.0).raw(NO_TAGS))
}

const NO_TAGS: &[u8] = &[0];

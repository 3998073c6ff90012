//! The files beside the log: indexes, producer snapshots, checkpoints.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::bytes::Bytes;

/// `.index`: pairs of an offset and the position of a batch.
pub(crate) fn offset_index(base_offset: i64, entries: &[(i64, u64)]) -> Vec<u8> {
    let entry = |bytes: Bytes, (offset, position): &(i64, u64)| {
        bytes.i32(relative(base_offset, *offset)).i32(i32::try_from(*position).unwrap())
    };
    entries.iter().fold(Bytes::new(), entry).0
}

/// `.timeindex`: pairs of a time and an offset.
pub(crate) fn time_index(base_offset: i64, entries: &[(i64, i64)]) -> Vec<u8> {
    let entry = |bytes: Bytes, (time, offset): &(i64, i64)| bytes.i64(*time).i32(relative(base_offset, *offset));
    entries.iter().fold(Bytes::new(), entry).0
}

fn relative(base_offset: i64, offset: i64) -> i32 {
    i32::try_from(offset - base_offset).unwrap()
}

/// An entry of `.txnindex`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AbortedTransaction {
    pub(crate) producer_id: i64,
    pub(crate) first_offset: i64,
    /// Of the marker.
    pub(crate) last_offset: i64,
    pub(crate) last_stable_offset: i64,
}

/// `.txnindex`.
pub(crate) fn transaction_index(entries: &[AbortedTransaction]) -> Vec<u8> {
    let entry = |bytes: Bytes, entry: &AbortedTransaction| {
        bytes.i16(0).i64(entry.producer_id).i64(entry.first_offset).i64(entry.last_offset).i64(entry.last_stable_offset)
    };
    entries.iter().fold(Bytes::new(), entry).0
}

/// An entry of a producer snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Producer {
    pub(crate) id: i64,
    pub(crate) epoch: i16,
    pub(crate) last_sequence: i32,
    pub(crate) last_offset: i64,
    pub(crate) offset_delta: i32,
    pub(crate) timestamp_ms: i64,
    pub(crate) coordinator_epoch: i32,
    /// -1 without an open transaction.
    pub(crate) transaction_first_offset: i64,
}

/// `<end offset>.snapshot`.
pub(crate) fn producer_snapshot(producers: &[Producer]) -> Vec<u8> {
    let checked =
        producers.iter().fold(Bytes::new().i32(i32::try_from(producers.len()).unwrap()), |bytes, producer| {
            bytes
                .i64(producer.id)
                .i16(producer.epoch)
                .i32(producer.last_sequence)
                .i64(producer.last_offset)
                .i32(producer.offset_delta)
                .i64(producer.timestamp_ms)
                .i32(producer.coordinator_epoch)
                .i64(producer.transaction_first_offset)
        });
    Bytes::new().i16(1).u32(crc32c::crc32c(&checked.0)).raw(&checked.0).0
}

/// One of the four offset checkpoints of a log dir.
pub(crate) fn offset_checkpoint(entries: &[(&str, i32, i64)]) -> String {
    let lines = entries.iter().map(|(topic, partition, offset)| format!("{topic} {partition} {offset}\n"));
    format!("0\n{}\n{}", entries.len(), lines.collect::<String>())
}

/// `leader-epoch-checkpoint`: pairs of an epoch and its first offset.
pub(crate) fn leader_epoch_checkpoint(entries: &[(i32, i64)]) -> String {
    let lines = entries.iter().map(|(epoch, offset)| format!("{epoch} {offset}\n"));
    format!("0\n{}\n{}", entries.len(), lines.collect::<String>())
}

/// `partition.metadata`.
pub(crate) fn partition_metadata(topic_id: [u8; 16]) -> String {
    format!("version: 0\ntopic_id: {}", URL_SAFE_NO_PAD.encode(topic_id))
}

/// `.kafka_cleanshutdown` of 3.7 and later.
pub(crate) fn clean_shutdown(broker_epoch: i64) -> String {
    format!("{{\"version\":0,\"brokerEpoch\":{broker_epoch}}}")
}

/// `meta.properties` of a KRaft node.
pub(crate) fn meta_properties(node_id: i32, cluster_id: [u8; 16], directory_id: [u8; 16]) -> String {
    let (cluster, directory) = (URL_SAFE_NO_PAD.encode(cluster_id), URL_SAFE_NO_PAD.encode(directory_id));
    format!(
        "#\n#Tue Nov 14 22:13:20 UTC 2023\ncluster.id={cluster}\nversion=1\ndirectory.id={directory}\nnode.id={node_id}\n"
    )
}

/// Name of a file of a segment or of a snapshot: 20 digits and the extension.
pub(crate) fn name(offset: i64, extension: &str) -> String {
    format!("{offset:020}.{extension}")
}

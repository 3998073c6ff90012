//! Damaged bytes and batches.

use segtool::ops::FindingId as Id;

use super::fixture::{Fixture, LAST, MIDDLE, batch, closed, of, of_batches, only, orders};
use crate::synth::legacy::{Message, v0, v1, wrapper};
use crate::synth::{Batch, Codec, Partition, Segment, T, record};

pub(super) const FIXTURES: &[Fixture] = &[
    only(Id::BatchCrcMismatch, |root| {
        let second = batch(8).build().len();
        closed(root, orders()).overwrite(&of(MIDDLE, "log"), second + 70, b"!");
    }),
    only(Id::BatchLengthInvalid, |root| {
        let second = batch(8).build().len();
        closed(root, orders()).overwrite(&of(MIDDLE, "log"), second + 8, &[0x7f]);
    }),
    only(Id::BatchTornTail, |root| {
        closed(root, orders()).killed().append(&of(LAST, "log"), &batch(18).build()[..80]);
    }),
    only(Id::LogZeroTail, |root| drop(closed(root, orders()).killed().append(&of(LAST, "log"), &[0; 200]))),
    only(Id::LogTrailingBytes, |root| {
        closed(root, orders())
            .killed()
            .append(&of(LAST, "log"), b"Lorem ipsum dolor sit amet, consectetur adipiscing elit");
    }),
    only(Id::LogDamageInterior, |root| {
        let second = batch(8).build().len();
        closed(root, orders()).overwrite(&of(MIDDLE, "log"), second, &vec![0xaa; second]);
    }),
    only(Id::BatchMagicUnknown, |root| drop(closed(root, of_batches([batch(0), batch(2).magic(3), batch(4)])))),
    only(Id::BatchCodecUnknown, |root| {
        let codec = Codec { id: 5, compress: <[u8]>::to_vec };
        closed(root, of_batches([batch(0), batch(2).codec(codec), batch(4)]));
    }),
    only(Id::BatchAttributesUnknown, |root| {
        drop(closed(root, of_batches([batch(0), batch(2).flags(1 << 9), batch(4)])))
    }),
    only(Id::BatchPayloadUndecodable, |root| {
        let broken = batch(2).codec(Codec::GZIP).payload(b"this is no gzip stream".to_vec());
        closed(root, of_batches([batch(0), broken, batch(4)]));
    }),
    only(Id::BatchPayloadOdd, |root| {
        let written = batch(2).codec(Codec::SNAPPY);
        let mut payload = (Codec::SNAPPY.compress)(&written.encoded_records());
        // The version of its framing, which nobody looks at.
        payload[11] = 2;
        closed(root, of_batches([batch(0), written.payload(payload), batch(4)]));
    }),
    only(Id::BatchRecordsCountMismatch, |root| {
        closed(root, of_batches([batch(0), batch(2).records_count(1), batch(4)]));
    }),
    only(Id::BatchLastOffsetMismatch, |root| {
        closed(root, of_batches([batch(0), batch(2).last_offset_delta(0), batch(4)]));
    }),
    only(Id::BatchTimestampMismatch, |root| {
        closed(root, of_batches([batch(0), batch(2).max_timestamp(T + 2), batch(4)]));
    }),
    only(Id::RecordMalformed, |root| {
        let mut payload = batch(2).encoded_records();
        // The second record is said to be longer than it is.
        let second = payload.len() / 2;
        payload[second] += 20;
        closed(root, of_batches([batch(0), batch(2).payload(payload), batch(4)]));
    }),
    only(Id::BatchOffsetRegression, |root| drop(closed(root, of_batches([batch(0), batch(4), batch(2), batch(6)])))),
    only(Id::BatchOffsetOverlap, |root| {
        let long = batch(2).record(record("key-2", "value 4").at(T + 4));
        closed(root, of_batches([batch(0), long, batch(4)]));
    }),
    only(Id::BatchDuplicate, |root| drop(closed(root, of_batches([batch(0), batch(2), batch(2), batch(4)])))),
    only(Id::BatchBelowSegmentBase, |root| {
        let segment =
            [8, 10, 12].into_iter().fold(Segment::at(10), |segment, base| segment.append(batch(base).leader_epoch(-1)));
        closed(root, Partition { segments: vec![segment], ..Partition::new("orders", 0) });
    }),
    only(Id::BatchOffsetOverflow, |root| {
        let late = Batch::at(1 << 32).record(record("key-0", "far above").at(T));
        closed(root, of_batches([batch(0), late]));
    }),
    only(Id::BatchLeaderEpochRegression, |root| {
        let epochs = [(0, 5), (2, 5), (4, 3), (6, 5)];
        closed(root, of_batches(epochs.map(|(base, epoch)| batch(base).leader_epoch(epoch))));
    }),
    only(Id::BatchTimestampImplausible, |root| {
        let microseconds = Batch::at(2).record(record("key-0", "in microseconds").at(T * 1000));
        closed(root, of_batches([batch(0), microseconds, batch(3)]));
    }),
    only(Id::LegacyInnerMagicMismatch, |root| {
        let old = wrapper(Codec::GZIP, &[v0(0, Some("k"), Some("v")), v0(1, Some("k"), Some("w"))]);
        closed(root, of_messages([Message { magic: 1, timestamp_ms: T, ..old }]));
    }),
    only(Id::LegacyInnerCodec, |root| {
        let inner = wrapper(Codec::GZIP, &[v1(0, T, Some("k"), Some("v")), v1(1, T, None, Some("w"))]);
        closed(root, of_messages([wrapper(Codec::GZIP, &[inner])]));
    }),
    only(Id::LegacyInnerOffset, |root| {
        let twice = [v1(0, T, Some("k"), Some("v")), v1(1, T, None, Some("w")), v1(1, T, None, Some("x"))];
        closed(root, of_messages([wrapper(Codec::GZIP, &twice)]));
    }),
    only(Id::LegacyLz4Checksum, |root| {
        closed(root, of_messages([wrapper(Codec::LZ4_V0, &[v0(0, Some("k"), Some("v")), v0(1, None, Some("w"))])]));
    }),
    Fixture {
        flags: &["--max-memory", "1MiB"],
        ..only(Id::LimitReached, |root| {
            let zeros = Batch::at(2).codec(Codec::GZIP).record(record("zeros", vec![0; 4 << 20]).at(T));
            closed(root, of_batches([batch(0), zeros, batch(3)]));
        })
    },
];

fn of_messages(messages: impl IntoIterator<Item = Message>) -> Partition {
    messages.into_iter().fold(Partition::new("orders", 0), Partition::append)
}

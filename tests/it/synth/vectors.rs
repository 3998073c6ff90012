//! The builders against bytes that Kafka's own classes wrote or read back.

use super::control::{self, Marker, end_transaction};
use super::files::{self, AbortedTransaction, Producer};
use super::legacy::{v0, v1, wrapper};
use super::{Batch, Bytes, Codec, Record, Segment, T, Unit, record};

/// Bytes from hexadecimal; blanks separate fields.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

#[track_caller]
fn assert_bytes(actual: &[u8], expected: &str) {
    let as_hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(as_hex(actual), as_hex(&hex(expected)));
}

const NO_PRODUCER: &str = "ffffffffffffffff ffff ffffffff";
const DIRECTORY: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Three records with and without keys, values and headers.
pub(crate) fn three_records() -> Batch {
    Batch::at(42)
        .leader_epoch(7)
        .record(record("k1", "hello").at(T))
        .record(Record::without_key("x").at(T + 5).header("h", "v").null_header("n"))
        .record(Record::tombstone("k2").at(T + 3))
}

#[test]
fn tv1_three_records_uncompressed() {
    assert_bytes(
        &three_records().build(),
        &format!(
            "000000000000002a 00000057 00000007 02 fb6391af 0000 00000002 0000018bcfe56800 0000018bcfe56805 {NO_PRODUCER}
             00000003 1a000000046b310a68656c6c6f00 1c000a020102780402680276026e01 10000604046b320100"
        ),
    );
}

#[test]
fn tv2_commit_and_abort_markers() {
    assert_bytes(
        &end_transaction(45, Marker::Commit, (4000, 3), 12, T + 10).leader_epoch(7).build(),
        "000000000000002d 00000042 00000007 02 57b0b753 0030 00000000 0000018bcfe5680a 0000018bcfe5680a 0000000000000fa0 0003
         ffffffff 00000001 20 000000 08 00000001 0c 00000000000c 00",
    );
    assert_bytes(
        &end_transaction(46, Marker::Abort, (4000, 3), 12, T + 11).leader_epoch(7).build(),
        "000000000000002e000000420000000702f013fe980030000000000000018bcfe5680b0000018bcfe5680b0000000000000fa00003ffffffff
         000000012000000008000000000c00000000000c00",
    );
}

#[test]
fn tv3_empty_batch_left_by_the_cleaner() {
    let batch = Batch::at(100).leader_epoch(9).producer(4000, 3, 17).transactional();
    assert_bytes(
        &batch.last_offset_delta(4).max_timestamp(T + 20).build(),
        "0000000000000064 00000031 00000009 02 a433e865 0010 00000004 ffffffffffffffff 0000018bcfe56814 0000000000000fa0 0003
         00000011 00000000",
    );
}

#[test]
fn tv4_delete_horizon() {
    let batch = Batch::at(200).leader_epoch(9).delete_horizon(T + 86_400_000);
    assert_bytes(
        &batch.record(Record::tombstone("k9").at(T + 30).offset_delta(3)).build(),
        &format!(
            "00000000000000c8 0000003d 00000009 02 532f46f7 0040 00000003 0000018bd50bc400 0000018bcfe5681e {NO_PRODUCER} 00000001
             16 00 c3efb252 06 04 6b39 01 00"
        ),
    );
}

#[test]
fn tv5_and_tv6_single_legacy_messages() {
    assert_bytes(
        &v0(5, Some("a"), Some("bc")).build(),
        "0000000000000005 00000011 6eebece4 00 00 00000001 61 00000002 6263",
    );
    assert_bytes(
        &v1(6, T, None, Some("bc")).log_append_time(T).build(),
        "0000000000000006 00000018 c83ffaf3 01 08 0000018bcfe56800 ffffffff 00000002 6263",
    );
}

#[test]
fn tv7_snappy_wrappers_of_magic_1() {
    let inner = [v1(10, T + 1, Some("p"), Some("q")), v1(11, T + 2, None, Some("r"))];
    assert_bytes(
        &wrapper(Codec::SNAPPY_STORED, &inner).build(),
        "000000000000000b 00000074 82e53974 01 02 0000018bcfe56802 ffffffff 0000005e 82534e4150505900 0000000100000001 0000004a 47
         f046 0000000000000000 00000018 0fdd3408 0100 0000018bcfe56801 00000001700000000171
         0000000000000001 00000017 c2ff3ee1 0100 0000018bcfe56802 ffffffff0000000172",
    );
    assert_bytes(
        &wrapper(Codec::SNAPPY_RAW_STORED, &inner).build(),
        "000000000000000b000000602f95e51f01020000018bcfe56802ffffffff0000004a47f0460000000000000000000000180fdd340801000000018bcfe5
         680100000001700000000171000000000000000100000017c2ff3ee101000000018bcfe56802ffffffff0000000172",
    );
}

#[test]
fn tv8_lz4_wrappers_with_both_header_checksums() {
    let inner = [v0(20, Some("p"), Some("q")), v0(21, None, Some("r"))];
    assert_bytes(
        &wrapper(Codec::LZ4_V0_STORED, &inner).build(),
        "0000000000000015 00000054 7d93e03d 00 03 ffffffff 00000046 04224d18 60 40 1a 37000080 0000000000000014 00000010
         e899b0f1000000000001700000000171 0000000000000015 0000000f d5617bec0000ffffffff0000000172 00000000",
    );
    let inner = [v1(30, T + 1, Some("p"), Some("q")), v1(31, T + 2, None, Some("r"))];
    assert_bytes(
        &wrapper(Codec::LZ4_STORED, &inner).log_append_time(T + 99).build(),
        "000000000000001f0000006c8dba43bc010b0000018bcfe56863ffffffff0000005604224d18604082470000800000000000000000000000180fdd3408
         01000000018bcfe5680100000001700000000171000000000000000100000017c2ff3ee101000000018bcfe56802ffffffff000000017200000000",
    );
}

#[test]
fn tv9_framings_inside_batches() {
    let (zz, yy) = (Record::without_key("zz"), Record::without_key("yy"));
    let two = Batch::at(300).leader_epoch(9).record(zz.clone().at(T)).record(yy.clone().at(T + 1));
    let plain = two.encoded_records();
    let frames: Vec<u8> = plain.chunks(9).flat_map(|record| (Codec::ZSTD_STORED.compress)(record)).collect();
    assert_bytes(
        &two.codec(Codec::ZSTD).payload(frames).build(),
        &format!(
            "000000000000012c 00000055 00000009 02 6db88e10 0004 00000001 0000018bcfe56800 0000018bcfe56801 {NO_PRODUCER} 00000002
             28b52ffd 00 58 490000 1000000001047a7a00 28b52ffd 0058 490000 100002020104797900"
        ),
    );
    let one = |offset, codec| Batch::at(offset).leader_epoch(9).record(zz.clone().at(T)).codec(codec).build();
    assert_bytes(
        &one(302, Codec::LZ4_STORED),
        &format!(
            "000000000000012e00000049000000090263eba8960003000000000000018bcfe568000000018bcfe56800 {NO_PRODUCER} 00000001
             04224d18604082 09000080 1000000001047a7a00 00000000"
        ),
    );
    assert_bytes(
        &one(301, Codec::SNAPPY_RAW_STORED),
        &format!(
            "000000000000012d0000003c0000000902e8b6f87e0002000000000000018bcfe568000000018bcfe56800 {NO_PRODUCER} 00000001
             09201000000001047a7a00"
        ),
    );
    assert_bytes(
        &one(301, Codec::SNAPPY_STORED),
        &format!(
            "000000000000012d00000050000000090 26e56f23b0002000000000000018bcfe568000000018bcfe56800 {NO_PRODUCER} 00000001
             82534e4150505900 00000001 00000001 0000000b 09201000000001047a7a00"
        ),
    );
}

#[test]
fn tv10_index_entries() {
    assert_bytes(&files::offset_index(50, &[(102, 4130), (167, 8260)]), "00000034 00001022 00000075 00002044");
    assert_bytes(
        &files::time_index(50, &[(T + 5, 102), (T + 9, 167)]),
        "0000018bcfe56805 00000034 0000018bcfe56809 00000075",
    );
    let aborted = AbortedTransaction { producer_id: 4000, first_offset: 42, last_offset: 46, last_stable_offset: 47 };
    assert_bytes(
        &files::transaction_index(&[aborted]),
        "0000 0000000000000fa0 000000000000002a 000000000000002e 000000000000002f",
    );
}

#[test]
fn tv11_producer_snapshot() {
    let producer = Producer {
        id: 4000,
        epoch: 3,
        last_sequence: 19,
        last_offset: 44,
        offset_delta: 2,
        timestamp_ms: T + 5,
        coordinator_epoch: 12,
        transaction_first_offset: -1,
    };
    assert_bytes(
        &files::producer_snapshot(&[producer]),
        "0001 04a3ba25 00000001 0000000000000fa0 0003 00000013 000000000000002c 00000002 0000018bcfe56805 0000000c
         ffffffffffffffff",
    );
    assert_bytes(&files::producer_snapshot(&[]), "000148674bc700000000");
}

#[test]
fn tv12_kraft_control_batches() {
    let at = |offset| Batch::at(offset).leader_epoch(1).control();
    let voter = control::kraft_voter((1, DIRECTORY, "CONTROLLER", "c1", 9093));
    let header = [control::snapshot_header(T), control::kraft_version(1), voter];
    assert_bytes(
        &at(0).records(header.map(|record| record.at(T))).build(),
        &format!(
            "0000000000000000 00000092 00000001 02 392e9238 0020 00000002 0000018bcfe56800 0000018bcfe56800 {NO_PRODUCER} 00000003
             2a 000000 0800000003 16 0000 0000018bcfe56800 00 00 1e 000002 0800000005 0a 0000000100 00 74 000004 0800000006 60
             0000 02 00000001 000102030405060708090a0b0c0d0e0f 02 0b434f4e54524f4c4c4552 036331 2385 00 00000001 000000 00"
        ),
    );
    assert_bytes(
        &at(3).record(control::snapshot_footer().at(T)).build(),
        &format!(
            "00000000000000030000003f00000001028f6608e60020000000000000018bcfe568000000018bcfe56800 {NO_PRODUCER}
             000000011a00000008000000040600000000"
        ),
    );
    assert_bytes(
        &at(0).record(control::leader_change(1, &[1, 2], &[1]).at(T)).build(),
        &format!(
            "0000000000000000000000540000000102725319f00020000000000000018bcfe568000000018bcfe56800 {NO_PRODUCER}
             000000014400000008000000023000000000000103000000010000000002000200000001000000"
        ),
    );
}

#[test]
fn tv13_index_entries_of_appends_and_of_recovery() {
    let batch =
        |offset, timestamp| Batch::at(offset).leader_epoch(3).record(Record::without_key([0; 31]).at(timestamp));
    assert_eq!(batch(50, 1000).build().len(), 99);
    assert_eq!(batch(50, 1000).build()[17..21], hex("deb9b5c6"));
    let segment = Segment::at(50)
        .index_interval_bytes(100)
        .append(batch(50, 1000))
        .append(batch(51, 1010))
        .append_together([batch(52, 1100), batch(53, 1050), batch(54, 1060)].map(Unit::from))
        .append(batch(55, 1070))
        .append(batch(56, 1200))
        .sealed();
    let times = "000000000000044c00000002 00000000000004b000000006";
    let files = segment.files();
    assert_bytes(&files[1].1, "00000004000000c6 00000005000001ef");
    assert_bytes(&files[2].1, times);

    let files = segment.recovered().files();
    assert_bytes(&files[1].1, "00000002000000c6 000000040000018c 0000000600000252");
    assert_bytes(&files[2].1, times);
}

#[test]
fn tv14_varints() {
    for (value, expected) in [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (300, "d804"),
        (i32::MAX, "feffffff0f"),
        (i32::MIN, "ffffffff0f"),
    ] {
        assert_bytes(&Bytes::new().varint(value).0, expected);
    }
    for (value, expected) in [
        (-86_399_970, "c3efb252"),
        (1_099_511_627_776, "808080808040"),
        (i64::MAX, "feffffffffffffffff01"),
        (i64::MIN, "ffffffffffffffffff01"),
    ] {
        assert_bytes(&Bytes::new().varlong(value).0, expected);
    }
}

#[test]
fn tv15_text_files() {
    assert_bytes(
        files::offset_checkpoint(&[("my-topic", 0, 123), ("my-topic", 10, 0)]).as_bytes(),
        "300a320a6d792d746f7069632030203132330a6d792d746f70696320313020300a",
    );
    assert_bytes(files::leader_epoch_checkpoint(&[(0, 0), (3, 42)]).as_bytes(), "300a320a3020300a332034320a");
    assert_bytes(
        files::partition_metadata(DIRECTORY).as_bytes(),
        "76657273696f6e3a20300a746f7069635f69643a2041414543417751464267634943516f4c4441304f4477",
    );
}

#[test]
fn tv16_checksums_of_changed_batches() {
    let changed = |change: fn(Batch) -> Batch| change(three_records()).build()[17..21].to_vec();
    assert_eq!(changed(|batch| batch.records_count(2)), hex("db9d90d1"));
    assert_eq!(changed(|batch| batch.records_count(4)), hex("199997d5"));
    assert_eq!(changed(|batch| batch.records_count(0)), hex("9a61922d"));
    assert_eq!(changed(|batch| batch.records_count(-1)), hex("090da212"));
    assert_eq!(changed(|batch| batch.flags(5)), hex("a3b2800d"));
    assert_eq!(changed(|batch| batch.flags(-128)), hex("678e123f"));
    assert_eq!(changed(|batch| batch.magic(3)), hex("fb6391af"));
}

/// Not from the list of vectors: a producer's transactions across segments, as Kafka's producer state keeps them.
#[test]
fn a_partition_carries_its_producers_from_segment_to_segment() {
    let data =
        |offset, sequence| Batch::at(offset).producer(9, 0, sequence).transactional().record(record("k", "v").at(T));
    let partition = super::Partition::new("orders", 0).append(data(0, 0)).roll().append(end_transaction(
        1,
        Marker::Abort,
        (9, 0),
        4,
        T + 1,
    ));
    let files = partition.files();
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "00000000000000000000.log",
            "00000000000000000000.index",
            "00000000000000000000.timeindex",
            "00000000000000000001.snapshot",
            "00000000000000000001.log",
            "00000000000000000001.index",
            "00000000000000000001.timeindex",
            "00000000000000000001.txnindex",
            "00000000000000000002.snapshot",
            "leader-epoch-checkpoint",
            "partition.metadata",
        ]
    );
    let aborted = AbortedTransaction { producer_id: 9, first_offset: 0, last_offset: 1, last_stable_offset: 2 };
    assert_eq!(files[7].1, files::transaction_index(&[aborted]));
    let open = Producer {
        id: 9,
        epoch: 0,
        last_sequence: 0,
        last_offset: 0,
        offset_delta: 0,
        timestamp_ms: T,
        coordinator_epoch: -1,
        transaction_first_offset: 0,
    };
    assert_eq!(files[3].1, files::producer_snapshot(&[open]));
    let closed = Producer { timestamp_ms: T + 1, coordinator_epoch: 4, transaction_first_offset: -1, ..open };
    assert_eq!(files[8].1, files::producer_snapshot(&[closed]));
}

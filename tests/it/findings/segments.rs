//! Segments that do not fit together, and leftovers.

use std::fs;

use segtool::ops::FindingId as Id;

use super::fixture::{Fixture, MIDDLE, along, batch, closed, of, of_batches, only, orders};
use crate::synth::{LogDir, Partition, Segment, files};

pub(super) const FIXTURES: &[Fixture] = &[
    only(Id::SegmentOverlap, |root| {
        let first = Segment::at(0).append(batch(0)).append(batch(2)).append(batch(4));
        let second = Segment::at(4).append(batch(6)).append(batch(8));
        closed(root, Partition { segments: vec![first, second], ..Partition::new("orders", 0) });
    }),
    along(Id::SegmentMissingLog, &[Id::IndexWithoutLog, Id::SegmentGap], |root| {
        drop(closed(root, orders()).remove(&of(MIDDLE, "log")))
    }),
    along(Id::SegmentEmptyInterior, &[Id::SegmentGap], |root| {
        let mut partition = orders();
        partition.segments[0] = Segment::at(0);
        partition.log_start_offset = 6;
        closed(root, partition);
    }),
    only(Id::SegmentGap, |root| {
        let partition = of_batches([batch(0), batch(2)]).roll_at(8).append(batch(8)).append(batch(10));
        closed(root, partition);
    }),
    only(Id::SegmentNameInvalid, |root| drop(closed(root, orders()).put("18.log", batch(18).build()))),
    only(Id::IndexWithoutLog, |root| {
        closed(root, orders()).put("00000000000000000018.index", files::offset_index(18, &[(19, 0)]));
    }),
    only(Id::LeftoverCleaned, |root| {
        drop(closed(root, orders()).put("00000000000000000000.log.cleaned", batch(0).build()))
    }),
    only(Id::LeftoverSwap, |root| {
        let bytes = orders().segments[1].log.clone();
        closed(root, orders()).put("00000000000000000006.log.swap", bytes);
    }),
    only(Id::LeftoverDeleted, |root| {
        let partition = orders();
        let gone = partition.segments[0].log.clone();
        let segments = partition.segments[1..].to_vec();
        closed(root, Partition { segments, log_start_offset: 6, ..partition })
            .put("00000000000000000000.log.deleted", gone);
    }),
    only(Id::UnknownFile, |root| drop(closed(root, orders()).put("notes.txt", "do not touch\n"))),
    only(Id::StrayDirectory, |root| {
        let dir = closed(root, orders());
        fs::create_dir(dir.join("backup")).unwrap();
        dir.put_top("backup/notes.txt", "copied on Monday\n");
    }),
    only(Id::PartitionTwice, |root| two_dirs(root, [[0x33; 16], [0x44; 16]], [0x22; 16], ["orders", "orders"])),
    only(Id::MetaPropertiesConflict, |root| {
        two_dirs(root, [[0x33; 16], [0x44; 16]], [0x55; 16], ["orders", "customers"])
    }),
];

/// Two log dirs of one node.
fn two_dirs(root: &std::path::Path, directories: [[u8; 16]; 2], cluster_of_second: [u8; 16], topics: [&str; 2]) {
    let clusters = [[0x22; 16], cluster_of_second];
    for (at, name) in ["a", "b"].into_iter().enumerate() {
        let dir = root.join(name);
        fs::create_dir_all(&dir).unwrap();
        LogDir::new([Partition::new(topics[at], 0).append(batch(0))]).write(&dir);
        fs::write(dir.join("meta.properties"), files::meta_properties(1, clusters[at], directories[at])).unwrap();
    }
}

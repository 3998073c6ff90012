//! Damaged indexes.

use segtool::ops::FindingId as Id;

use super::fixture::{Fixture, LAST, MIDDLE, along, batch, closed, of, only, orders};
use super::producers::transactions;
use crate::synth::{T, files};

pub(super) const FIXTURES: &[Fixture] = &[
    only(Id::OffsetIndexMissing, |root| drop(closed(root, orders()).remove(&of(MIDDLE, "index")))),
    only(Id::TimeIndexMissing, |root| drop(closed(root, orders()).remove(&of(MIDDLE, "timeindex")))),
    only(Id::TxnIndexMissing, |root| drop(closed(root, transactions()).remove("00000000000000000000.txnindex"))),
    only(Id::OffsetIndexMisaligned, |root| drop(closed(root, orders()).append(&of(MIDDLE, "index"), &[0, 0, 0]))),
    only(Id::TimeIndexMisaligned, |root| drop(closed(root, orders()).append(&of(MIDDLE, "timeindex"), &[0, 0, 0]))),
    only(Id::TxnIndexMisaligned, |root| {
        closed(root, transactions()).append("00000000000000000000.txnindex", &[0, 0, 0]);
    }),
    only(Id::OffsetIndexZeroPadded, |root| drop(closed(root, orders()).append(&of(MIDDLE, "index"), &[0; 32]))),
    only(Id::TimeIndexZeroPadded, |root| drop(closed(root, orders()).append(&of(MIDDLE, "timeindex"), &[0; 48]))),
    only(Id::OffsetIndexNeverWritten, |root| drop(closed(root, orders()).put(&of(MIDDLE, "index"), [0; 1024]))),
    only(Id::TimeIndexNeverWritten, |root| drop(closed(root, orders()).put(&of(MIDDLE, "timeindex"), [0; 1020]))),
    only(Id::OffsetIndexEntryOrder, |root| {
        let batch = batch(6).build().len() as u64;
        let entries = [(11, 2 * batch), (9, batch)];
        closed(root, orders()).put(&of(MIDDLE, "index"), files::offset_index(6, &entries));
    }),
    only(Id::TimeIndexEntryOrder, |root| {
        closed(root, orders()).put(&of(MIDDLE, "timeindex"), files::time_index(6, &[(T + 11, 11), (T + 9, 9)]));
    }),
    only(Id::OffsetIndexEntryPastEnd, |root| {
        closed(root, orders()).put(&of(MIDDLE, "index"), files::offset_index(6, &[(11, 9000)]));
    }),
    only(Id::OffsetIndexEntryWrong, |root| {
        closed(root, orders()).put(&of(MIDDLE, "index"), files::offset_index(6, &[(11, 40)]));
    }),
    only(Id::TimeIndexEntryWrong, |root| {
        closed(root, orders()).put(&of(MIDDLE, "timeindex"), files::time_index(6, &[(T + 7, 9), (T + 11, 11)]));
    }),
    only(Id::TimeIndexLastEntryLow, |root| {
        closed(root, orders()).put(&of(MIDDLE, "timeindex"), files::time_index(6, &[(T + 9, 9)]));
    }),
    only(Id::TxnIndexEntryWrong, |root| {
        closed(root, transactions()).overwrite("00000000000000000000.txnindex", 17, &[1]);
    }),
    only(Id::TxnIndexEntryMissing, |root| drop(closed(root, transactions()).put("00000000000000000000.txnindex", []))),
    only(Id::TxnIndexVersionUnknown, |root| {
        closed(root, transactions()).overwrite("00000000000000000000.txnindex", 0, &[0, 1]);
    }),
    along(Id::CleanMarkerContradicted, &[Id::TimeIndexZeroPadded], |root| {
        closed(root, orders()).append(&of(LAST, "timeindex"), &[0; 48]);
    }),
];

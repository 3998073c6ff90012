//! Manual entries: indexes.

use super::entry::Entry;
use crate::ops::FindingId as Id;

const fn entry(id: Id, means: &'static str, broker: &'static str, now: &'static str) -> Entry {
    Entry { id, means, broker, now }
}

const REINDEX: &str = "`segtool reindex` writes it again from the log; nothing is lost by it.";
const BEFORE_START: &str = "`segtool reindex` before the broker starts. If it is running: before it is restarted.";

pub(super) const ENTRIES: &[Entry] = &[
    entry(
        Id::OffsetIndexMissing,
        "A segment has no offset index.",
        "The next start recovers the segment, whatever the stop was: the index is written again, and a damaged batch in the segment cuts it without a word.",
        REINDEX,
    ),
    entry(
        Id::TimeIndexMissing,
        "A segment has no time index, though its version writes one.",
        "The next start makes an empty one and does not fill it: retention by time then goes by the modification time of the file, and look-ups by time begin at the segment's start.",
        REINDEX,
    ),
    entry(
        Id::TxnIndexMissing,
        "Transactions were aborted in a segment, and it has no transaction index.",
        "Nobody notices: consumers of committed records are given aborted ones, and the cleaner takes them for committed.",
        BEFORE_START,
    ),
    entry(
        Id::OffsetIndexMisaligned,
        "The size of an offset index is no multiple of 8.",
        "The last bytes are ignored, until later entries follow out of step. A cached index of tiered storage keeps the broker from starting.",
        REINDEX,
    ),
    entry(
        Id::TimeIndexMisaligned,
        "The size of a time index is no multiple of 12.",
        "The last bytes are ignored, until later entries follow out of step. A cached index of tiered storage keeps the broker from starting.",
        REINDEX,
    ),
    entry(
        Id::TxnIndexMisaligned,
        "The size of a transaction index is no multiple of 34.",
        "The last bytes are ignored; the next aborted transaction is written behind them and cannot be read.",
        REINDEX,
    ),
    entry(
        Id::OffsetIndexZeroPadded,
        "Zeros follow the last entry of an offset index. Brokers preallocate the index of the active segment and cut it when they close it; a crash leaves it so.",
        "Brokers take the zeros for entries. In the active segment after a crash the start mends it; elsewhere reads become slow, and a segment counts as full.",
        REINDEX,
    ),
    entry(
        Id::TimeIndexZeroPadded,
        "Zeros follow the last entry of a time index that is not to be written any more, or that a clean-shutdown marker vouches for.",
        "The broker reads the last entry as the time of the youngest record: 1970. Retention by time deletes the segment at once, with all its records (KAFKA-10207, KAFKA-19200).",
        BEFORE_START,
    ),
    entry(
        Id::OffsetIndexNeverWritten,
        "An offset index has its full size and holds nothing but zeros.",
        "It counts as full: the next append begins a new segment. After a crash the start writes the index again.",
        REINDEX,
    ),
    entry(
        Id::TimeIndexNeverWritten,
        "A time index has its full size and holds nothing but zeros.",
        "The segment counts as one of 1970: retention by time deletes it at once. In the active segment the next append begins a new segment, which may fail.",
        BEFORE_START,
    ),
    entry(
        Id::OffsetIndexEntryOrder,
        "The entries of an offset index do not increase. In the active segment after a crash these are left from before a truncation.",
        "Binary search goes astray: reads begin at the wrong place.",
        REINDEX,
    ),
    entry(
        Id::TimeIndexEntryOrder,
        "The entries of a time index do not increase.",
        "Look-ups by time go astray. Retention believes the last entry, whatever it is.",
        BEFORE_START,
    ),
    entry(
        Id::OffsetIndexEntryPastEnd,
        "An entry of an offset index points beyond the end of the log: the log has lost its end, or the index belongs to another.",
        "Reads from there give nothing. In the last segment a clean start takes the log's end from this entry: it believes that the log is empty or short and writes where nobody finds it.",
        BEFORE_START,
    ),
    entry(
        Id::OffsetIndexEntryWrong,
        "An entry of an offset index points to no start of a batch, or past a batch that it should lead to.",
        "Records between cannot be fetched, though they are there. In the last segment a clean start may fail over it or find a wrong end of the log.",
        BEFORE_START,
    ),
    entry(
        Id::TimeIndexEntryWrong,
        "An entry of a time index does not have the largest timestamp up to its offset.",
        "Look-ups by time answer wrongly. A last entry that is too late keeps the segment from being deleted, and those behind it.",
        REINDEX,
    ),
    entry(
        Id::TimeIndexLastEntryLow,
        "The last entry of a closed segment's time index is earlier than its youngest record, or there is none.",
        "Retention by time deletes the segment too early; without any entry it goes by the modification time of the file, which a copy may have changed.",
        BEFORE_START,
    ),
    entry(
        Id::TxnIndexEntryWrong,
        "An entry of a transaction index is not that of an abort marker in the segment.",
        "An entry below the segment's base makes the next start recover the segment. Others hide records that were committed.",
        REINDEX,
    ),
    entry(
        Id::TxnIndexEntryMissing,
        "A transaction was aborted and the index does not say so, while the log still holds its records.",
        "Consumers of committed records are given the aborted ones, and the cleaner takes them for committed.",
        BEFORE_START,
    ),
    entry(
        Id::TxnIndexVersionUnknown,
        "An entry of a transaction index has a version other than 0.",
        "A broker of 4.4 does not start, at any start; earlier ones look at the first byte only.",
        BEFORE_START,
    ),
    entry(
        Id::IndexWithoutLog,
        "An index has no log beside it.",
        "The next start removes it.",
        "Nothing, unless the log was removed by mistake.",
    ),
];

//! Manual entries: log files, batches, records, segments, transactions.

use super::entry::Entry;
use crate::ops::FindingId as Id;

const fn entry(id: Id, means: &'static str, broker: &'static str, now: &'static str) -> Entry {
    Entry { id, means, broker, now }
}

const FROM_REPLICA: &str = "If another replica has this partition, let that one lead and this one fetch it again; else `segtool repair` \
                            keeps every other batch.";

pub(super) const ENTRIES: &[Entry] = &[
    entry(
        Id::BatchCrcMismatch,
        "The bytes of a batch are not those that were written: its checksum does not fit. The frame is whole, so the batches around it are untouched.",
        "Consumers and followers stop at this batch, every time they come to it. A start after a crash that recovers the segment cuts it here and deletes every later segment. A clean start does not look.",
        FROM_REPLICA,
    ),
    entry(
        Id::BatchLengthInvalid,
        "The length field of a batch is wrong: below the least that a batch takes, or past the end of the file although sound batches follow. The length lies outside the checksum; where another length makes the checksum right, that one is given.",
        "Readers lose their way here: the batches behind are found only through later index entries, or not at all. A recovery cuts the segment here and deletes every later one.",
        FROM_REPLICA,
    ),
    entry(
        Id::BatchTornTail,
        "The last batch of the file is cut off, or ends in zeros: its writing was interrupted.",
        "After a crash the next start cuts it off; it had not been acknowledged with acks=all on other replicas, or is there. After a clean stop the end is taken from the index: the broker may believe that the log ends earlier and write where nobody finds it. In a closed segment an unclean start deletes every later segment.",
        "In the active segment after a crash: nothing, the start mends it. Otherwise `segtool repair` before the broker starts.",
    ),
    entry(
        Id::LogZeroTail,
        "From the last batch to the end of the file there is nothing but zeros: a file whose size reached the disk and whose content did not, or one that was preallocated and not cut.",
        "An unclean start cuts the zeros. With a clean-shutdown marker 18 or more of them make the first start fail; fewer go unnoticed, and everything written behind them cannot be read. In a closed segment even one makes an unclean start delete every later segment.",
        "In the active segment after a crash: nothing. Otherwise `segtool repair`: nothing is lost by it.",
    ),
    entry(
        Id::LogTrailingBytes,
        "Bytes follow the last batch that are neither zeros nor the beginning of another one.",
        "An unclean start cuts them off. After a clean stop up to 17 of them go unnoticed and every later write is lost behind them. In a closed segment an unclean start deletes every later segment.",
        "`segtool repair` puts them into quarantine; look there for what they are.",
    ),
    entry(
        Id::LogUnreadableRange,
        "The disk or the operating system refused to read these bytes.",
        "A broker that reads them takes the whole log dir offline.",
        "Look at the kernel's log and the disk's own health. Copy the disk before anything else; then `segtool repair --output` on the copy saves what can be read.",
    ),
    entry(
        Id::LogDamageInterior,
        "A range that is no batch lies between two sound batches: overwritten, zeroed, or garbage.",
        "Readers stop in front of it. A recovery cuts the segment there and deletes every later one.",
        FROM_REPLICA,
    ),
    entry(
        Id::BatchMagicUnknown,
        "The message format of a batch is one that no known version writes, though its checksum is right: the byte lies outside the checksum.",
        "Brokers that read files take it for format 2; those that read from memory refuse it.",
        "If the batch reads well as format 2, as it does for brokers, a flipped bit is likely: fetch the partition from another replica.",
    ),
    entry(
        Id::BatchCodecUnknown,
        "A batch says that it is compressed by a codec that does not exist. Its checksum is right, so it was written like this.",
        "The broker passes it on; every consumer fails on it, and so does the cleaner.",
        "Find the producer that wrote it. Consumers have to seek past its offsets.",
    ),
    entry(
        Id::BatchAttributesUnknown,
        "A batch has attribute bits set that no known version defines.",
        "Brokers and clients ignore them, and drop them when they rewrite the batch.",
        "Nothing. A newer Kafka, or a broken client, has written it.",
    ),
    entry(
        Id::BatchPayloadUndecodable,
        "The checksum of a batch is right, but what it holds cannot be decompressed: its producer wrote it like this, or its memory was damaged.",
        "The broker keeps it for ever; every consumer fails on it, the cleaner gives the partition up, and newer brokers may fail to start when they recover a segment of an old format with it.",
        "Consumers have to seek past its offsets. Find the producer and its compression library.",
    ),
    entry(
        Id::BatchPayloadOdd,
        "A batch reads well, but its payload has something that Kafka passes over without looking: bytes behind the compressed stream, a wrong content checksum or size that readers ignore.",
        "Nothing.",
        "Nothing. Other readers than Kafka's may be stricter.",
    ),
    entry(
        Id::BatchRecordsCountMismatch,
        "The header of a batch counts more or fewer records than it holds, or bytes are left behind the last.",
        "Every consumer fails on the batch, or is not given all of its records.",
        "The records are there: `segtool dump` shows those in front of the fault. Find the client that wrote the batch.",
    ),
    entry(
        Id::BatchLastOffsetMismatch,
        "The last offset in the header of a batch lies before one of its records, or before its own first offset.",
        "Whoever looks for these offsets passes the batch over; the offset after the log's end may be given twice.",
        "Find the client or tool that wrote it. `segtool dump` shows the records.",
    ),
    entry(
        Id::BatchTimestampMismatch,
        "The largest timestamp in the header of a batch is not that of its records.",
        "Time index, retention and look-ups by time follow the header.",
        "Look for records by offset rather than by time here; retention may keep or delete the segment at another time than expected.",
    ),
    entry(
        Id::RecordMalformed,
        "A record breaks the format although the checksum of its batch is right; or a control record is none that Kafka knows, or a message inside a wrapper is damaged.",
        "Consumers fail on the batch. With a control record of a producer, a start that replays it fails, at every start.",
        "Find the client that wrote it. For a control record do not restart the broker uncleanly before the partition has been taken from another replica or repaired.",
    ),
    entry(
        Id::BatchOffsetRegression,
        "Batches have offsets below those of the batch before them, or one batch stands far out of line. Base offsets lie outside the checksum, so a flipped bit looks like this; so does a block written in the wrong place.",
        "Look-ups by offset miss batches. A recovery that has to index such a batch empties the whole segment.",
        FROM_REPLICA,
    ),
    entry(
        Id::BatchOffsetOverlap,
        "A batch begins inside the offsets of the batch before it.",
        "Readers are given some offsets twice or not at all.",
        FROM_REPLICA,
    ),
    entry(
        Id::BatchDuplicate,
        "The same batch is in the log twice, byte for byte.",
        "The second one is out of order: look-ups behind it may miss batches, and a recovery may empty the segment. As the last batch it makes the broker believe that the log ends early.",
        "`segtool repair` keeps one of the two; nothing else is lost.",
    ),
    entry(
        Id::BatchBelowSegmentBase,
        "A batch has an offset below the one in the name of its file: a flipped bit, or a renamed file.",
        "It cannot be found. A start that recovers the segment fails, at every start.",
        "If the file was renamed, give it back its name. Otherwise `segtool repair`.",
    ),
    entry(
        Id::BatchOffsetOverflow,
        "A batch lies more than 2^31-1 offsets above the base offset of its segment, which no index can express.",
        "A start that recovers the segment splits it where only its end is concerned, and fails where a batch in the middle is.",
        "`segtool repair` splits the segment; no record is lost.",
    ),
    entry(
        Id::BatchLeaderEpochRegression,
        "A batch has a leader epoch below one before it, or one batch alone has an epoch above all others. Epochs lie outside the checksum.",
        "Followers may cut their logs at the wrong place; a recovery writes the wrong epoch into leader-epoch-checkpoint and none of the right ones behind it.",
        "Compare with another replica, and fetch the partition from it if that one is in order.",
    ),
    entry(
        Id::BatchTimestampImplausible,
        "The timestamp of a batch lies more than a day ahead of the clock, is negative, or is so large that it must be in another unit than milliseconds.",
        "A segment with a timestamp in the future is never deleted by time, and neither are those behind it. It also makes a new segment begin early.",
        "Set message.timestamp.after.max.ms, or message.timestamp.type=LogAppendTime. To be rid of the data: kafka-delete-records, or retention by size for a while.",
    ),
    entry(
        Id::LegacyInnerMagicMismatch,
        "Messages inside a compressed wrapper have another format than the wrapper: the cleaner of 0.10.0 did this (KAFKA-4298).",
        "They are read by their own format. Cleaning puts it right.",
        "Nothing.",
    ),
    entry(
        Id::LegacyInnerCodec,
        "A message inside a compressed wrapper is itself compressed.",
        "Consumers fail on it; a broker of 4.x may fail to start when it recovers the segment.",
        "Consumers have to seek past its offset. Do not start a 4.x broker on it uncleanly.",
    ),
    entry(
        Id::LegacyInnerOffset,
        "The offsets of messages inside a compressed wrapper do not increase, or contradict the wrapper's.",
        "Where the wrapper's offset is below that of its last message it cannot be read; a wrapper with offset 0 of an old librdkafka reads well.",
        "Nothing for info; otherwise consumers have to seek past its offsets.",
    ),
    entry(
        Id::LegacyLz4Checksum,
        "An LZ4 frame in a message of format 0 has the header checksum that Kafka up to 0.9 computed wrongly, or another wrong one.",
        "Brokers do not look at it in format 0.",
        "Nothing. Readers other than Kafka's may refuse the frame.",
    ),
    entry(
        Id::SegmentOverlap,
        "A segment holds offsets at or beyond the base offset of the next one: copied or renamed files, an interrupted swap, or a flipped bit in an offset.",
        "Readers are given these offsets from one of the two, by where they come from.",
        "`segtool repair` keeps the batches of the later leader epoch.",
    ),
    entry(
        Id::SegmentMissingLog,
        "Files of a segment are there and its log is not; or a partition that held records has no segment at all.",
        "A broker goes on without the segment: its offsets are gone. A partition without segments begins again at 0 or at its log start.",
        "Look for the file: in a backup, under another name, on another replica.",
    ),
    entry(
        Id::SegmentEmptyInterior,
        "A segment without a byte lies between others. Cleaning leaves such, and so does a roll without data.",
        "Nothing.",
        "Nothing.",
    ),
    entry(
        Id::SegmentGap,
        "A segment begins beyond the end of the one before it. Cleaning explains it (then this is only worth knowing); otherwise a segment was deleted, moved away or lost its end.",
        "Consumers jump over the gap without a word.",
        "If nobody cleaned this topic, find out what became of the offsets named here; another replica may have them.",
    ),
    entry(
        Id::TransactionOpen,
        "A transaction has no end marker yet.",
        "Consumers of committed records wait at its first offset until it ends.",
        "Nothing, as long as its producer lives.",
    ),
    entry(
        Id::TransactionHanging,
        "A transaction has had no end marker for more than 15 minutes of the partition's own time: its producer is gone, and the coordinator does not know of it.",
        "Consumers of committed records wait at its first offset for ever, and the cleaner stops there.",
        "`kafka-transactions.sh find-hanging`, then abort it with `kafka-transactions.sh abort`.",
    ),
    entry(
        Id::TransactionForeignBatch,
        "A producer has a transaction open and a batch of it is not part of any transaction.",
        "A start that replays it fails, at every start.",
        "Do not restart the broker. Fetch the partition from another replica, or use `segtool repair`.",
    ),
    entry(
        Id::ProducerSequenceGap,
        "The sequence numbers or epochs of an idempotent producer do not follow each other: records are missing, or were written past the broker's check.",
        "Nothing: logs are not checked for this when they are loaded.",
        "Compare with another replica if records are missed.",
    ),
    entry(
        Id::ControlEpochRegression,
        "An end marker of a transaction has a producer epoch or a coordinator epoch below an earlier one.",
        "It is logged and accepted.",
        "Look whether two transaction coordinators were at work at that time.",
    ),
    entry(
        Id::LimitReached,
        "A bound of segtool's own stopped a check: a batch that inflates beyond --max-memory, a search through damage that grew too long, too many producers or findings in one file. The report is incomplete.",
        "Nothing follows from this.",
        "Run again with more --max-memory, or on a single file.",
    ),
];

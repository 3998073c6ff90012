//! Producer snapshots (`<offset>.snapshot`): what a broker knows about the producers of a log up to an offset.
//!
//! ```text
//!  0    2      6       10
//!  |ver |crc   |count  | entries of 46 bytes, big-endian
//!               '------ covered by CRC-32C, to the end of the file ---->
//!
//!  entry
//!  0            8    10       14            22       26          34       38                    46
//!  | producerId |ep. |lastSeq | lastOffset  |offDelta| timestamp |coordEp.| currentTxnFirstOffset|
//! ```
//!
//! Entries come in the order of a Java hash map. Of up to five batches that a broker remembers of a producer only the last is
//! stored. A file is written over an older one of the same name without cutting that first, so that a longer predecessor leaves
//! its tail, and the checksum fails.
//!
//! Rules: `ProducerStateManager.readSnapshot`, `writeSnapshot`; version 1 since 0.11.

use super::batch::present;
use super::lenient::Lenient;
use super::{
    Cursor, FormatError, FormatErrorKind, Offset, Position, ProducerEpoch, ProducerId, Sequence, Shape, TimestampMs,
    crc, len_u64,
};

/// Bytes in front of the entries.
pub const SNAPSHOT_HEADER: usize = 2 + 4 + 4;
/// Bytes of an entry.
pub const SNAPSHOT_ENTRY: usize = 8 + 2 + 4 + 8 + 4 + 8 + 4 + 8;
/// The only version there is.
pub const SNAPSHOT_VERSION: i16 = 1;
/// Where the checksum begins to cover.
const CRC_START: usize = 2 + 4;
const _: () = assert!(SNAPSHOT_HEADER == 10 && SNAPSHOT_ENTRY == 46);

/// What is stored of one producer. `None` stands for -1; any other value, sound or not, is as stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ProducerEntry {
    /// The producer.
    pub producer_id: ProducerId,
    /// Its newest epoch.
    pub producer_epoch: ProducerEpoch,
    /// Sequence of the last record of its last batch.
    pub last_sequence: Option<Sequence>,
    /// Offset of the last record of its last batch.
    pub last_offset: Option<Offset>,
    /// Last minus first offset of that batch; 0 without one.
    pub offset_delta: i32,
    /// The batch's largest timestamp, or that of a later marker; decides when the producer is forgotten.
    pub timestamp: Option<TimestampMs>,
    /// Epoch of the coordinator that wrote the last marker.
    pub coordinator_epoch: Option<i32>,
    /// First offset of the open transaction.
    pub current_txn_first_offset: Option<Offset>,
}

impl ProducerEntry {
    fn parse(cursor: &mut Cursor<'_>) -> Result<Self, FormatError> {
        let shape = Shape::ProducerSnapshot;
        let mut entry = Cursor::at(cursor.read_array::<SNAPSHOT_ENTRY>(shape)?, cursor.position());
        Ok(Self {
            producer_id: ProducerId(entry.read_i64(shape)?),
            producer_epoch: ProducerEpoch(entry.read_i16(shape)?),
            last_sequence: present(entry.read_i32(shape)?),
            last_offset: present(entry.read_i64(shape)?),
            offset_delta: entry.read_i32(shape)?,
            timestamp: present(entry.read_i64(shape)?),
            coordinator_epoch: present(entry.read_i32(shape)?),
            current_txn_first_offset: present(entry.read_i64(shape)?),
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.producer_id.0.to_be_bytes());
        out.extend_from_slice(&self.producer_epoch.0.to_be_bytes());
        out.extend_from_slice(&self.last_sequence.map_or(-1, |sequence| sequence.0).to_be_bytes());
        out.extend_from_slice(&self.last_offset.map_or(-1, |offset| offset.0).to_be_bytes());
        out.extend_from_slice(&self.offset_delta.to_be_bytes());
        out.extend_from_slice(&self.timestamp.map_or(-1, |timestamp| timestamp.0).to_be_bytes());
        out.extend_from_slice(&self.coordinator_epoch.unwrap_or(-1).to_be_bytes());
        out.extend_from_slice(&self.current_txn_first_offset.map_or(-1, |offset| offset.0).to_be_bytes());
    }
}

/// A producer snapshot.
///
/// ```
/// use segtool::format::producer_snapshot::ProducerSnapshot;
///
/// // What a log without producers has at every roll.
/// let empty = [0, 1, 0x48, 0x67, 0x4b, 0xc7, 0, 0, 0, 0];
/// assert_eq!(ProducerSnapshot::encode(&[]), empty);
/// assert!(ProducerSnapshot::parse(&empty).strict().unwrap().entries.is_empty());
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ProducerSnapshot {
    /// Version of the layout.
    pub version: i16,
    /// The checksum in the file.
    pub stored_crc: u32,
    /// The checksum of everything behind it.
    pub computed_crc: u32,
    /// How many entries the file says it has.
    pub stated_count: i32,
    /// The entries in the file's order, a repeated producer included: to a broker the later one counts.
    pub entries: Vec<ProducerEntry>,
    /// Bytes behind the last entry. Where the checksum holds nevertheless, a broker ignores them.
    pub trailing_bytes: u64,
}

impl ProducerSnapshot {
    /// Reads a snapshot. A broker removes one that is at fault and falls back to an older one.
    ///
    /// Faults are, in this order: too short a header, an unknown version, a wrong checksum, a count that is negative or exceeds
    /// what follows it.
    pub fn parse(data: &[u8]) -> Lenient<Self> {
        let mut cursor = Cursor::new(data);
        let mut content = Self::default();
        if let Err(fault) = content.parse_header(&mut cursor) {
            content.trailing_bytes = len_u64(cursor.remaining());
            return Lenient { content, fault: Some(fault) };
        }
        let covered = data.get(CRC_START..).unwrap_or_default();
        content.computed_crc = crc::crc32c(covered);
        let most = cursor.remaining() / SNAPSHOT_ENTRY;
        let count = usize::try_from(content.stated_count).unwrap_or(0).min(most);
        content.entries = (0..count).map_while(|_| ProducerEntry::parse(&mut cursor).ok()).collect();
        content.trailing_bytes = len_u64(cursor.remaining());
        let fault = content.fault(most);
        Lenient { content, fault }
    }

    fn parse_header(&mut self, cursor: &mut Cursor<'_>) -> Result<(), FormatError> {
        let mut header = Cursor::new(cursor.read_array::<SNAPSHOT_HEADER>(Shape::ProducerSnapshot)?);
        self.version = header.read_i16(Shape::ProducerSnapshot)?;
        self.stored_crc = header.read_u32(Shape::ProducerSnapshot)?;
        self.stated_count = header.read_i32(Shape::ProducerSnapshot)?;
        Ok(())
    }

    fn fault(&self, most: usize) -> Option<FormatError> {
        let shape = Shape::ProducerSnapshot;
        let (position, kind) = if self.version != SNAPSHOT_VERSION {
            (0, FormatErrorKind::UnknownValue { shape, field: "version", found: i64::from(self.version) })
        } else if self.stored_crc != self.computed_crc {
            let (stored, computed) = (self.stored_crc, self.computed_crc);
            (2, FormatErrorKind::ChecksumMismatch { shape, stored, computed })
        } else if usize::try_from(self.stated_count).is_ok_and(|count| count <= most) {
            return None;
        } else {
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let found = i64::from(self.stated_count);
            (CRC_START, FormatErrorKind::LengthOutOfRange { shape, found, least: 0, most })
        };
        Some(FormatError::new(Position(len_u64(position)), kind))
    }

    /// The bytes of a snapshot of these entries, in this order.
    pub fn encode(entries: &[ProducerEntry]) -> Vec<u8> {
        let mut covered = Vec::with_capacity(4 + entries.len().saturating_mul(SNAPSHOT_ENTRY));
        let count = i32::try_from(entries.len()).unwrap_or(i32::MAX);
        covered.extend_from_slice(&count.to_be_bytes());
        for entry in entries.iter().take(i32::MAX as usize) {
            entry.encode(&mut covered);
        }
        let mut out = Vec::with_capacity(CRC_START + covered.len());
        out.extend_from_slice(&SNAPSHOT_VERSION.to_be_bytes());
        out.extend_from_slice(&crc::crc32c(&covered).to_be_bytes());
        out.extend_from_slice(&covered);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Producer 4000 after offsets 42 to 44, sequences 17 to 19; written by Kafka.
    const ONE: [u8; 56] = [
        0, 1, 0x04, 0xa3, 0xba, 0x25, 0, 0, 0, 1, //
        0, 0, 0, 0, 0, 0, 0x0f, 0xa0, 0, 3, 0, 0, 0, 0x13, 0, 0, 0, 0, 0, 0, 0, 0x2c, 0, 0, 0, 2, //
        0, 0, 1, 0x8b, 0xcf, 0xe5, 0x68, 5, 0, 0, 0, 0x0c, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    ];

    fn one() -> ProducerEntry {
        ProducerEntry {
            producer_id: ProducerId(4000),
            producer_epoch: ProducerEpoch(3),
            last_sequence: Some(Sequence(19)),
            last_offset: Some(Offset(44)),
            offset_delta: 2,
            timestamp: Some(TimestampMs(1_700_000_000_005)),
            coordinator_epoch: Some(12),
            current_txn_first_offset: None,
        }
    }

    fn fault_of(data: &[u8]) -> Option<FormatErrorKind> {
        ProducerSnapshot::parse(data).fault.map(|fault| fault.kind)
    }

    #[test]
    fn the_published_snapshots_read_and_write() {
        let snapshot = ProducerSnapshot::parse(&ONE).strict().unwrap();
        assert_eq!(snapshot.entries, [one()]);
        assert_eq!((snapshot.stored_crc, snapshot.trailing_bytes), (0x04a3_ba25, 0));
        assert_eq!(ProducerSnapshot::encode(&[one()]), ONE);
        assert_eq!(ProducerSnapshot::encode(&[]), [0, 1, 0x48, 0x67, 0x4b, 0xc7, 0, 0, 0, 0]);
    }

    #[test]
    fn every_flipped_bit_is_a_fault() {
        for bit in 0..ONE.len() * 8 {
            let mut data = ONE;
            data[bit / 8] ^= 1 << (bit % 8);
            let expected_version = bit < 16;
            match fault_of(&data) {
                Some(FormatErrorKind::UnknownValue { field: "version", .. }) => assert!(expected_version, "bit {bit}"),
                Some(FormatErrorKind::ChecksumMismatch { .. }) => assert!(!expected_version, "bit {bit}"),
                other => panic!("bit {bit}: {other:?}"),
            }
            // What is in it can be seen all the same, but for a count beyond the data.
            assert!(ProducerSnapshot::parse(&data).content.entries.len() <= 1);
        }
    }

    #[test]
    fn every_cut_is_a_fault() {
        for len in 0..ONE.len() {
            let lenient = ProducerSnapshot::parse(&ONE[..len]);
            assert!(lenient.fault.is_some(), "{len}");
            assert_eq!(lenient.content.entries, [], "{len}");
            assert_eq!(lenient.content.trailing_bytes, len_u64(if len < 10 { len } else { len - 10 }), "{len}");
        }
        assert_eq!(ProducerSnapshot::parse(&[]).strict().unwrap_err().position, Position(0));
    }

    #[test]
    fn a_stale_tail_fails_the_checksum_and_a_covered_one_does_not() {
        let stale = [&ONE[..], &ONE[10..]].concat();
        assert!(matches!(fault_of(&stale), Some(FormatErrorKind::ChecksumMismatch { .. })));
        assert_eq!(ProducerSnapshot::parse(&stale).content.trailing_bytes, 46);
        let mut covered = [&ONE[..], &[7, 7, 7]].concat();
        let crc = crc::crc32c(&covered[6..]);
        covered[2..6].copy_from_slice(&crc.to_be_bytes());
        let snapshot = ProducerSnapshot::parse(&covered).strict().unwrap();
        assert_eq!((snapshot.entries.len(), snapshot.trailing_bytes), (1, 3));
    }

    #[test]
    fn a_count_beyond_the_data_allocates_nothing() {
        for (count, expected) in [(-1i32, 0), (2, 1), (i32::MAX, 1)] {
            let mut data = ONE.to_vec();
            data[6..10].copy_from_slice(&count.to_be_bytes());
            let crc = crc::crc32c(&data[6..]);
            data[2..6].copy_from_slice(&crc.to_be_bytes());
            let lenient = ProducerSnapshot::parse(&data);
            let shape = Shape::ProducerSnapshot;
            let kind = FormatErrorKind::LengthOutOfRange { shape, found: i64::from(count), least: 0, most: 1 };
            assert_eq!(lenient.fault, Some(FormatError::new(Position(6), kind)));
            assert_eq!(lenient.content.entries.len(), expected);
        }
    }

    fn entry() -> impl Strategy<Value = ProducerEntry> {
        (any::<[i64; 4]>(), any::<[i32; 3]>(), any::<i16>()).prop_map(|(longs, ints, epoch)| ProducerEntry {
            producer_id: ProducerId(longs[0]),
            producer_epoch: ProducerEpoch(epoch),
            last_sequence: present(ints[0]),
            last_offset: present(longs[1]),
            offset_delta: ints[1],
            timestamp: present(longs[2]),
            coordinator_epoch: present(ints[2]),
            current_txn_first_offset: present(longs[3]),
        })
    }

    proptest! {
        #[test]
        fn entries_read_back_in_order_and_repeated(mut entries in proptest::collection::vec(entry(), 0..20), again: bool) {
            if again {
                entries.extend(entries.first().copied());
            }
            let data = ProducerSnapshot::encode(&entries);
            let snapshot = ProducerSnapshot::parse(&data).strict().unwrap();
            prop_assert_eq!(snapshot.entries, entries);
        }

        #[test]
        fn any_bytes_are_accounted_for(data in proptest::collection::vec(any::<u8>(), 0..200)) {
            let content = ProducerSnapshot::parse(&data).content;
            let header = if data.len() < SNAPSHOT_HEADER { 0 } else { SNAPSHOT_HEADER };
            let read = header + content.entries.len() * SNAPSHOT_ENTRY;
            prop_assert_eq!(len_u64(read) + content.trailing_bytes, len_u64(data.len()));
        }
    }
}

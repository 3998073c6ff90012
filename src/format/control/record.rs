//! Keys of control records, and key and value together.

use super::value::{ControlValue, EndTxnMarker, unknown_version};
use crate::format::{Cursor, FormatError, Shape};

const SHAPE: Shape = Shape::ControlRecord;

/// Which numbers the types of a log have, and whether a leader change has a version.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ControlNumbering {
    /// Those of 3.0 and later, and of every log that is no metadata log.
    #[default]
    Current,
    /// Those of the KRaft previews 2.7 and 2.8, whose metadata topic is `@metadata`.
    Preview,
}

/// What a control record is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ControlType {
    /// A transaction was aborted.
    Abort,
    /// A transaction was committed.
    Commit,
    /// The metadata quorum has a new leader.
    LeaderChange,
    /// A metadata snapshot begins.
    SnapshotHeader,
    /// A metadata snapshot ends.
    SnapshotFooter,
    /// The feature level of KRaft.
    KraftVersion,
    /// The metadata quorum.
    KraftVoters,
    /// Of the preview only; nothing is known to have written one.
    QuorumReassignment,
    /// A type that nobody knows. Consumers pass over it.
    Unknown(i16),
}

impl ControlType {
    /// The type of a number.
    pub fn from_id(id: i16, numbering: ControlNumbering) -> Self {
        match (id, numbering) {
            (0, _) => Self::Abort,
            (1, _) => Self::Commit,
            (2, ControlNumbering::Current) | (3, ControlNumbering::Preview) => Self::LeaderChange,
            (2, ControlNumbering::Preview) => Self::QuorumReassignment,
            (3, ControlNumbering::Current) => Self::SnapshotHeader,
            (4, ControlNumbering::Current) => Self::SnapshotFooter,
            (5, ControlNumbering::Current) => Self::KraftVersion,
            (6, ControlNumbering::Current) => Self::KraftVoters,
            (id, _) => Self::Unknown(id),
        }
    }

    /// Kafka's name in lower case, `unknown` for a number without.
    pub fn name(self) -> &'static str {
        match self {
            Self::Abort => "abort",
            Self::Commit => "commit",
            Self::LeaderChange => "leader_change",
            Self::SnapshotHeader => "snapshot_header",
            Self::SnapshotFooter => "snapshot_footer",
            Self::KraftVersion => "kraft_version",
            Self::KraftVoters => "kraft_voters",
            Self::QuorumReassignment => "quorum_reassignment",
            Self::Unknown(_) => "unknown",
        }
    }

    /// Whether the record ends a transaction.
    pub fn is_end_of_transaction(self) -> bool {
        matches!(self, Self::Abort | Self::Commit)
    }
}

/// A control record: what its key says, and its value as far as it can be decoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControlRecord<'a> {
    /// Version of the key; a later one than 0 is read alike.
    pub key_version: i16,
    /// The number of the type.
    pub type_id: i16,
    /// The type.
    pub control_type: ControlType,
    /// The decoded value.
    pub value: ControlValue<'a>,
    /// The value's bytes; `None` is null.
    pub raw_value: Option<&'a [u8]>,
    /// Bytes behind the decoded value, which Kafka ignores.
    pub trailing_bytes: &'a [u8],
    /// Why the value could not be decoded.
    pub fault: Option<FormatError>,
}

impl<'a> ControlRecord<'a> {
    /// Reads a control record from key and value of a record.
    ///
    /// Errors are those of the key, at which Kafka gives up: null, less than 4 bytes, a negative version. An unknown type or a value
    /// that cannot be decoded is no error: its bytes survive, with the reason in [`Self::fault`].
    pub fn parse(
        key: Option<&[u8]>,
        value: Option<&'a [u8]>,
        numbering: ControlNumbering,
    ) -> Result<Self, FormatError> {
        let (key_version, type_id) = parse_key(key.unwrap_or_default())?;
        let control_type = ControlType::from_id(type_id, numbering);
        let mut cursor = Cursor::new(value.unwrap_or_default());
        let (value_decoded, fault) = match ControlValue::parse(control_type, numbering, &mut cursor) {
            Ok(value) => (value, None),
            Err(fault) => (ControlValue::Undecoded, Some(fault)),
        };
        let trailing_bytes = if value_decoded == ControlValue::Undecoded { &[] } else { cursor.rest() };
        Ok(Self { key_version, type_id, control_type, value: value_decoded, raw_value: value, trailing_bytes, fault })
    }

    /// The marker, where the record ends a transaction and is sound.
    pub fn end_txn_marker(&self) -> Option<EndTxnMarker> {
        match self.value {
            ControlValue::EndTxnMarker(marker) => Some(marker),
            _ => None,
        }
    }

    /// The bytes of the key of a type as Kafka writes it.
    pub fn encode_key(type_id: i16) -> [u8; 4] {
        let [high, low] = type_id.to_be_bytes();
        [0, 0, high, low]
    }
}

/// Version and type of a key (`ControlRecordType.parseTypeId`).
fn parse_key(key: &[u8]) -> Result<(i16, i16), FormatError> {
    let mut cursor = Cursor::new(key);
    let mut fields = Cursor::new(cursor.read_array::<4>(SHAPE)?);
    let version = fields.read_i16(SHAPE)?;
    if version < 0 {
        return Err(Cursor::new(key).error(unknown_version(version)));
    }
    Ok((version, fields.read_i16(SHAPE)?))
}

#[cfg(test)]
mod tests {
    use super::super::{
        Endpoint, KraftVersion, KraftVoter, KraftVoters, LeaderChange, SnapshotFooter, SnapshotHeader, TaggedField,
        Voter,
    };
    use super::*;
    use crate::format::{
        Batch, FormatErrorKind, Position, ProducerEpoch, ProducerId, TimestampMs, Uuid, record::Records,
    };
    use proptest::prelude::*;

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
    }

    fn key(type_id: i16) -> [u8; 4] {
        ControlRecord::encode_key(type_id)
    }

    fn parsed(type_id: i16, value: &[u8]) -> ControlRecord<'_> {
        ControlRecord::parse(Some(&key(type_id)), Some(value), ControlNumbering::Current).unwrap()
    }

    fn voter(voter_id: i32) -> Voter<'static> {
        Voter { voter_id, directory_id: None, tags: Vec::new() }
    }

    #[test]
    fn the_published_values_read_and_write() {
        let (tags, endpoint_tags, range_tags) = (Vec::new(), Vec::new(), Vec::new());
        let voters = vec![KraftVoter {
            voter_id: 1,
            voter_directory_id: Uuid::parse("AAECAwQFBgcICQoLDA0ODw").unwrap(),
            endpoints: vec![Endpoint { name: b"CONTROLLER", host: b"c1", port: 9093, tags: endpoint_tags }],
            min_supported_version: 0,
            max_supported_version: 1,
            range_tags,
            tags: Vec::new(),
        }];
        let last_contained_log_timestamp = TimestampMs(1_700_000_000_000);
        let rows = [
            (1, "00000000000c", ControlValue::EndTxnMarker(EndTxnMarker { version: 0, coordinator_epoch: 12 })),
            (
                2,
                "000000000001030000000100000000020002000000010000",
                ControlValue::LeaderChange(LeaderChange {
                    version: Some(0),
                    leader_id: 1,
                    voters: vec![voter(1), voter(2)],
                    granting_voters: vec![voter(1)],
                    tags: Vec::new(),
                }),
            ),
            (
                3,
                "00000000018bcfe5680000",
                ControlValue::SnapshotHeader(SnapshotHeader { version: 0, last_contained_log_timestamp, tags }),
            ),
            (4, "000000", ControlValue::SnapshotFooter(SnapshotFooter { version: 0, tags: Vec::new() })),
            (
                5,
                "0000000100",
                ControlValue::KraftVersion(KraftVersion { version: 0, kraft_version: 1, tags: Vec::new() }),
            ),
            (
                6,
                "00000200000001000102030405060708090a0b0c0d0e0f020b434f4e54524f4c4c455203633123850000000001000000",
                ControlValue::KraftVoters(KraftVoters { version: 0, voters, tags: Vec::new() }),
            ),
        ];
        for (type_id, text, expected) in rows {
            let bytes = hex(text);
            let record = parsed(type_id, &bytes);
            assert_eq!(record.value, expected);
            assert_eq!((record.trailing_bytes, record.fault, record.raw_value), (&[][..], None, Some(&*bytes)));
            let mut out = Vec::new();
            expected.encode(&mut out);
            assert_eq!(out, bytes);
        }
    }

    /// The records of a published batch, decoded.
    fn control_types(text: &str) -> (Vec<ControlType>, Option<ProducerId>, Option<ProducerEpoch>) {
        let bytes = hex(text);
        let batch = Batch::parse(&bytes, Position(0)).unwrap();
        assert!(batch.crc_matches() && batch.header().is_control());
        let types = Records::new(batch.header(), &bytes[61..]).unwrap().map(|record| {
            let record = record.unwrap();
            let control = ControlRecord::parse(record.key, record.value, ControlNumbering::Current).unwrap();
            assert!(control.fault.is_none() && control.trailing_bytes.is_empty());
            control.control_type
        });
        (types.collect(), batch.header().producer_id, batch.header().producer_epoch)
    }

    #[test]
    fn the_published_batches_hold_what_they_say() {
        let commit = "000000000000002d00000042000000070257b0b753003000000000000001\
            8bcfe5680a0000018bcfe5680a0000000000000fa00003ffffffff00000001200000000800000001\
            0c00000000000c00";
        let abort = "000000000000002e000000420000000702f013fe980030000000000000018bcfe5680b0000018bcfe5680b\
            0000000000000fa00003ffffffff000000012000000008000000000c00000000000c00";
        let producer = (Some(ProducerId(4000)), Some(ProducerEpoch(3)));
        assert_eq!(control_types(commit), (vec![ControlType::Commit], producer.0, producer.1));
        assert_eq!(control_types(abort), (vec![ControlType::Abort], producer.0, producer.1));
        let footer = "00000000000000030000003f00000001028f6608e60020000000000000018bcfe568000000018bcfe56800\
            ffffffffffffffffffffffffffff000000011a00000008000000040600000000";
        assert_eq!(control_types(footer), (vec![ControlType::SnapshotFooter], None, None));
        let leader = "0000000000000000000000540000000102725319f00020000000000000018bcfe568000000018bcfe56800\
            ffffffffffffffffffffffffffff0000000144000000080000000230000000000001030000000100000000020002000000\
            01000000";
        assert_eq!(control_types(leader), (vec![ControlType::LeaderChange], None, None));
        let header = "0000000000000000000000920000000102392e92380020000000020000018bcfe568000000018bcfe56800\
            ffffffffffffffffffffffffffff000000032a000000080000000316\
            00000000018bcfe56800000\
            01e00000208000000050a000000010000\
            740000040800000006600000020000000100\
            0102030405060708090a0b0c0d0e0f020b434f4e54524f4c4c45520363312385000000000100000000";
        let types = vec![ControlType::SnapshotHeader, ControlType::KraftVersion, ControlType::KraftVoters];
        assert_eq!(control_types(header), (types, None, None));
    }

    #[test]
    fn a_cleaned_marker_has_no_records() {
        let empty = "0000000000000064000000310000000902a433e865001000000004ffffffffffffffff0000018bcfe56814\
            0000000000000fa000030000001100000000";
        let bytes = hex(empty);
        let batch = Batch::parse(&bytes, Position(0)).unwrap();
        assert!(batch.crc_matches() && !batch.header().is_control() && batch.header().is_transactional());
        assert_eq!(Records::new(batch.header(), &bytes[61..]).unwrap().count(), 0);
        assert_eq!(batch.header().last_sequence().map(|sequence| sequence.0), Some(21));
    }

    #[test]
    fn keys_are_refused_where_kafka_refuses_them() {
        let parse = |key: Option<&[u8]>| ControlRecord::parse(key, Some(&[0; 6]), ControlNumbering::Current);
        for key in [None, Some(&[][..]), Some(&[0, 0, 0])] {
            assert!(matches!(parse(key).unwrap_err().kind, FormatErrorKind::UnexpectedEnd { .. }), "{key:?}");
        }
        assert_eq!(parse(Some(&[0xff, 0xff, 0, 0])).unwrap_err().kind, unknown_version(-1));
        let later = parse(Some(&[0, 9, 0, 1, 7, 7])).unwrap();
        assert_eq!((later.key_version, later.control_type), (9, ControlType::Commit));
    }

    #[test]
    fn values_that_cannot_be_decoded_survive_as_bytes() {
        for value in [None, Some(&[][..]), Some(&[0, 0, 0, 0, 0])] {
            let record = ControlRecord::parse(Some(&key(0)), value, ControlNumbering::Current).unwrap();
            assert_eq!((record.value.clone(), record.raw_value), (ControlValue::Undecoded, value));
            assert!(record.fault.is_some() && record.end_txn_marker().is_none());
        }
        let negative = parsed(1, &[0xff, 0xff, 0, 0, 0, 0]);
        assert_eq!(negative.fault.map(|fault| fault.kind), Some(unknown_version(-1)));
        let unknown = parsed(7, &[1, 2, 3]);
        assert_eq!((unknown.control_type, unknown.raw_value), (ControlType::Unknown(7), Some(&[1, 2, 3][..])));
        assert_eq!((unknown.fault, unknown.control_type.name()), (None, "unknown"));
        // Longer and newer values are read as the first version.
        let longer = parsed(1, &[0, 5, 0, 0, 0, 12, 9, 9]);
        assert_eq!(longer.end_txn_marker(), Some(EndTxnMarker { version: 5, coordinator_epoch: 12 }));
        assert_eq!(longer.trailing_bytes, [9, 9]);
    }

    #[test]
    fn the_preview_numbers_differently() {
        let from = |id| ControlType::from_id(id, ControlNumbering::Preview);
        let types = [0, 1, 2, 3, 4].map(from);
        let expected = [
            ControlType::Abort,
            ControlType::Commit,
            ControlType::QuorumReassignment,
            ControlType::LeaderChange,
            ControlType::Unknown(4),
        ];
        assert_eq!(types, expected);
        // Written by 2.8.2: no version in front.
        let bytes = hex("0000000102000000010002000000010000");
        let record = ControlRecord::parse(Some(&key(3)), Some(&bytes), ControlNumbering::Preview).unwrap();
        let mut out = Vec::new();
        record.value.encode(&mut out);
        assert_eq!(out, bytes);
        let ControlValue::LeaderChange(change) = record.value else { panic!("{record:?}") };
        assert_eq!((change.version, change.leader_id, change.voters), (None, 1, vec![voter(1)]));
    }

    #[test]
    fn a_leader_change_with_directories_is_read_where_it_fits() {
        let with = Voter { voter_id: 3, directory_id: Some(Uuid([9; 16])), tags: Vec::new() };
        let change = LeaderChange {
            version: Some(1),
            leader_id: 3,
            voters: vec![with.clone(), with],
            granting_voters: Vec::new(),
            tags: vec![TaggedField { tag: 5, data: b"later" }],
        };
        let mut bytes = Vec::new();
        ControlValue::LeaderChange(change.clone()).encode(&mut bytes);
        assert_eq!(parsed(2, &bytes).value, ControlValue::LeaderChange(change));
        // Version 1 in front of the layout of version 0: Kafka looks at the layout only.
        let old = hex("000100000001030000000100000000020002000000010000");
        let record = parsed(2, &old);
        let ControlValue::LeaderChange(change) = record.value else { panic!("{record:?}") };
        assert_eq!((change.version, change.voters), (Some(1), vec![voter(1), voter(2)]));
    }

    #[test]
    fn counts_beyond_the_data_end_at_its_end() {
        for value in ["00000000000100", "000000000001ffffffff0f", "0000ffffffff0f"] {
            let bytes = hex(value);
            for type_id in 2..=6 {
                let record = parsed(type_id, &bytes);
                assert!(record.fault.is_some() || !record.trailing_bytes.is_empty(), "{type_id} {value}");
            }
        }
    }

    fn tags() -> impl Strategy<Value = Vec<(u32, Vec<u8>)>> {
        proptest::collection::vec((any::<u32>(), proptest::collection::vec(any::<u8>(), 0..9)), 0..3)
    }

    fn borrowed(tags: &[(u32, Vec<u8>)]) -> Vec<TaggedField<'_>> {
        tags.iter().map(|(tag, data)| TaggedField { tag: *tag, data }).collect()
    }

    proptest! {
        #[test]
        fn voters_read_back_with_unknown_fields(
            ids in proptest::collection::vec((any::<i32>(), any::<[u8; 16]>(), any::<[u16; 3]>()), 0..4),
            name in proptest::collection::vec(any::<u8>(), 0..200), tags in tags(), version in 0..i16::MAX,
        ) {
            let voters = ids.iter().map(|(voter_id, directory, [port, least, most])| KraftVoter {
                voter_id: *voter_id,
                voter_directory_id: Uuid(*directory),
                endpoints: vec![Endpoint { name: &name, host: b"h", port: *port, tags: borrowed(&tags) }],
                min_supported_version: *least as i16,
                max_supported_version: *most as i16,
                range_tags: borrowed(&tags),
                tags: borrowed(&tags),
            }).collect();
            let value = ControlValue::KraftVoters(KraftVoters { version, voters, tags: borrowed(&tags) });
            let mut bytes = Vec::new();
            value.encode(&mut bytes);
            prop_assert_eq!(&parsed(6, &bytes).value, &value);
            // Every cut is a fault, never a panic.
            for len in 0..bytes.len() {
                prop_assert!(parsed(6, &bytes[..len]).fault.is_some());
            }
        }

        #[test]
        fn any_bytes_are_a_control_record(
            key in proptest::option::of(proptest::collection::vec(0u8..8, 0..8)),
            value in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..80)),
            preview: bool,
        ) {
            let numbering = if preview { ControlNumbering::Preview } else { ControlNumbering::Current };
            if let Ok(record) = ControlRecord::parse(key.as_deref(), value.as_deref(), numbering) {
                prop_assert_eq!(record.raw_value, value.as_deref());
                if !matches!(record.value, ControlValue::Undecoded) {
                    prop_assert!(record.fault.is_none());
                }
            }
        }
    }
}

//! Keys and values of internal topics: the framing around a body, and which schema it has.
//!
//! Coordinator topics have a key of an int16 type and a body, and a value of an int16 version and a body
//! (`CoordinatorRecordSerde`); bytes after a body are ignored by Kafka. Metadata topics have no key; the value is three unsigned
//! varints, frame version (1), api key and version, and a body that must use all the rest (`AbstractApiMessageSerde`).

use std::borrow::Cow;

use super::error::{MessageError, SHAPE};
use super::group::open_embedded;
use super::read::{Body, read_body};
use super::schema::{Role, Schema, schema_named, schemas_of};
use super::value::{Struct, Value};
use crate::format::{Cursor, FormatErrorKind};

/// A topic that Kafka keeps for itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum InternalTopic {
    /// `__consumer_offsets`: commits and groups, of the classic, consumer, share and streams kind.
    ConsumerOffsets,
    /// `__transaction_state`.
    TransactionState,
    /// `__share_group_state`.
    ShareGroupState,
    /// `__cluster_metadata`: KRaft's log and its snapshots.
    ClusterMetadata,
    /// `__remote_log_metadata`.
    RemoteLogMetadata,
}

impl InternalTopic {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::ConsumerOffsets,
        Self::TransactionState,
        Self::ShareGroupState,
        Self::ClusterMetadata,
        Self::RemoteLogMetadata,
    ];

    /// The topic's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ConsumerOffsets => "__consumer_offsets",
            Self::TransactionState => "__transaction_state",
            Self::ShareGroupState => "__share_group_state",
            Self::ClusterMetadata => "__cluster_metadata",
            Self::RemoteLogMetadata => "__remote_log_metadata",
        }
    }

    /// The internal topic of this name; `@metadata` is what the 2.8 preview called the metadata log.
    pub fn by_name(topic: &str) -> Option<Self> {
        match topic {
            "@metadata" => Some(Self::ClusterMetadata),
            name => Self::ALL.into_iter().find(|known| known.name() == name),
        }
    }

    /// Whether values carry their type themselves and keys are null.
    pub fn is_framed(self) -> bool {
        matches!(self, Self::ClusterMetadata | Self::RemoteLogMetadata)
    }
}

/// Which layouts may be tried. Some releases wrote different layouts under the same type and version, and nothing in the bytes
/// tells which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layouts {
    /// Kafka 4.4's only, as its tools do.
    Current,
    /// Kafka 4.4's first; where that fails or leaves bytes over, the older ones that fit exactly.
    WithOlder,
}

/// A decoded key or value.
#[derive(Clone, PartialEq, Debug)]
pub struct Message<'a> {
    /// The schema's name, for example `OffsetCommitValue`.
    pub record: &'static str,
    /// The type on disk.
    pub type_id: i16,
    /// The version as stored; 0 for keys, which have none.
    pub version: i16,
    /// Whether the schema has this version. If not, the nearest was used, as Kafka's readers do.
    pub version_is_known: bool,
    /// The fields.
    pub fields: Struct<'a>,
    /// Bytes left behind the body.
    pub trailing_bytes: usize,
    /// Tagged fields that did not use the size they declare.
    pub tag_size_mismatches: u32,
    /// The releases whose layout this is, newest first, if it is not 4.4's.
    pub older_layout: Option<&'static str>,
}

/// The key or the value of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The key.
    Key,
    /// The value.
    Value,
}

/// A number of the frame of a metadata record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameField {
    /// The version of the frame itself.
    FrameVersion,
    /// The api key.
    Type,
    /// The version of the body.
    Version,
}

/// Why a key or value could not be decoded.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DecodeError {
    /// No schema has this type.
    UnknownType(i16),
    /// A coordinator value has a version that its schema does not list (`CoordinatorRecordSerde`, since 4.x).
    UnknownVersion {
        /// The key's type.
        type_id: i16,
        /// The version.
        version: i16,
    },
    /// Too short for the leading type or version.
    NoVersion(Side),
    /// The body does not follow its schema.
    Body {
        /// Key or value.
        side: Side,
        /// The number in front of the body: a key's type, a value's version.
        version: i16,
        /// The fault.
        error: MessageError,
    },
    /// The body of a framed record does not follow its schema.
    FramedBody {
        /// The api key.
        type_id: i16,
        /// The fault.
        error: MessageError,
    },
    /// A number of the frame cannot be read.
    FrameUnreadable(FrameField),
    /// A number of the frame is above 32767.
    FrameTooLarge(FrameField),
    /// A frame of another version.
    FrameVersion(i16),
    /// Bytes are left behind the body of a framed record.
    TrailingBytes {
        /// The api key.
        type_id: i16,
        /// How many.
        count: usize,
    },
}

/// Decodes a coordinator record's key.
pub fn decode_key(topic: InternalTopic, key: &[u8], layouts: Layouts) -> Result<Message<'_>, DecodeError> {
    let mut cursor = Cursor::new(key);
    let type_id = cursor.read_i16(SHAPE).map_err(|_| DecodeError::NoVersion(Side::Key))?;
    let candidates = candidates(topic, Role::Key, type_id, layouts);
    if candidates.is_empty() {
        return Err(DecodeError::UnknownType(type_id));
    }
    let (schema, body) = read_any(&candidates, cursor, 0).map_err(|error| DecodeError::Body {
        side: Side::Key,
        version: type_id,
        error,
    })?;
    Ok(message(schema, type_id, 0, body))
}

/// Decodes a coordinator record's value; the type is the key's.
pub fn decode_value(
    topic: InternalTopic,
    type_id: i16,
    value: &[u8],
    layouts: Layouts,
) -> Result<Message<'_>, DecodeError> {
    let mut candidates = candidates(topic, Role::Value, type_id, layouts);
    if candidates.is_empty() {
        return Err(DecodeError::UnknownType(type_id));
    }
    let mut cursor = Cursor::new(value);
    let version = cursor.read_i16(SHAPE).map_err(|_| DecodeError::NoVersion(Side::Value))?;
    let refused = |error| DecodeError::Body { side: Side::Value, version, error };
    if layouts == Layouts::WithOlder && topic == InternalTopic::ConsumerOffsets && type_id == 0 && version > 0 {
        // Before 4.0 commits under keys of type 0 had the versions of type 1.
        candidates.splice(0..0, schema_named("OffsetCommitValue"));
    }
    candidates.retain(|schema| schema.versions.contains(version));
    if candidates.is_empty() {
        return Err(DecodeError::UnknownVersion { type_id, version });
    }
    let (schema, body) = read_any(&candidates, cursor, version).map_err(refused)?;
    let mut message = message(schema, type_id, version, body);
    match (topic, message.record) {
        (InternalTopic::ConsumerOffsets, "GroupMetadataValue") => open_embedded(&mut message.fields),
        (InternalTopic::TransactionState, "TransactionLogValue") => name_transaction_status(&mut message.fields),
        _ => {}
    }
    Ok(message)
}

/// Decodes a framed record.
pub fn decode_framed(topic: InternalTopic, value: &[u8], layouts: Layouts) -> Result<Message<'_>, DecodeError> {
    let mut cursor = Cursor::new(value);
    let frame = read_frame_number(&mut cursor, FrameField::FrameVersion)?;
    let is_preview = frame == 0 && topic == InternalTopic::ClusterMetadata && layouts == Layouts::WithOlder;
    if frame != 1 && !is_preview {
        return Err(DecodeError::FrameVersion(frame));
    }
    let type_id = read_frame_number(&mut cursor, FrameField::Type)?;
    let version = read_frame_number(&mut cursor, FrameField::Version)?;
    let mut candidates = candidates(topic, Role::Data, type_id, layouts);
    if is_preview && candidates.iter().any(|schema| schema.releases.contains("2.8.2")) {
        candidates.retain(|schema| schema.releases.contains("2.8.2"));
    }
    if candidates.is_empty() {
        return Err(DecodeError::UnknownType(type_id));
    }
    let (schema, body) =
        read_any(&candidates, cursor, version).map_err(|error| DecodeError::FramedBody { type_id, error })?;
    if body.trailing_bytes > 0 {
        return Err(DecodeError::TrailingBytes { type_id, count: body.trailing_bytes });
    }
    Ok(message(schema, type_id, version, body))
}

/// Decodes the value of a control record that has its version as its first field: leader change, snapshot header and footer,
/// KRaft version, voters (`ControlRecordUtils`). The body is read as schema version 0, whatever that field says.
pub fn decode_control(type_id: i16, value: &[u8]) -> Result<Message<'_>, DecodeError> {
    let name = match type_id {
        2 => "LeaderChangeMessage",
        3 => "SnapshotHeaderRecord",
        4 => "SnapshotFooterRecord",
        5 => "KRaftVersionRecord",
        6 => "VotersRecord",
        _ => return Err(DecodeError::UnknownType(type_id)),
    };
    let schema = schema_named(name).ok_or(DecodeError::UnknownType(type_id))?;
    let body = read_body(schema, Cursor::new(value), 0).map_err(|error| DecodeError::Body {
        side: Side::Value,
        version: 0,
        error,
    })?;
    let stored = body.fields.field("version").and_then(Value::as_int).and_then(|number| i16::try_from(number).ok());
    let mut message = message(schema, type_id, stored.unwrap_or(0), body);
    if type_id == 2 && message.version > 0 {
        add_directory_ids(&mut message.fields);
    }
    Ok(message)
}

/// A leader change that calls itself version 1 is read as version 0 and shown as version 1, whose voters have a directory id: the
/// zero one, since none was read.
fn add_directory_ids(fields: &mut Struct<'_>) {
    for list in ["voters", "grantingVoters"] {
        let Some(Value::Array(voters)) = fields.field_mut(list) else { continue };
        for voter in voters {
            if let Value::Struct(voter) = voter {
                voter.fields.push(("voterDirectoryId", Value::Uuid([0; 16])));
            }
        }
    }
}

fn read_frame_number(cursor: &mut Cursor<'_>, field: FrameField) -> Result<i16, DecodeError> {
    let number = cursor.read_unsigned_varint(SHAPE).map_err(|error| match error.kind {
        FormatErrorKind::VarintTooLong { .. } | FormatErrorKind::UnexpectedEnd { .. } => {
            DecodeError::FrameUnreadable(field)
        }
        _ => DecodeError::FrameTooLarge(field),
    })?;
    // Kafka compares as a signed int and cuts to 16 bits: what is negative there passes.
    let signed = number as i32;
    if signed > i32::from(i16::MAX) {
        return Err(DecodeError::FrameTooLarge(field));
    }
    let [_, _, high, low] = number.to_be_bytes();
    Ok(i16::from_be_bytes([high, low]))
}

fn candidates(topic: InternalTopic, role: Role, type_id: i16, layouts: Layouts) -> Vec<&'static Schema> {
    schemas_of(topic, role, type_id)
        .filter(|schema| layouts == Layouts::WithOlder || schema.releases.is_empty())
        .collect()
}

/// The first layout that fits exactly; if none does, what the first one yields.
fn read_any<'a>(
    candidates: &[&'static Schema],
    cursor: Cursor<'a>,
    version: i16,
) -> Result<(&'static Schema, Body<'a>), MessageError> {
    let mut first = None;
    for schema in candidates {
        let read = read_body(schema, cursor, version).map(|body| (*schema, body));
        if let Ok((_, body)) = &read
            && body.trailing_bytes == 0
            && (schema.releases.is_empty() || body.tag_size_mismatches == 0)
        {
            return read;
        }
        first.get_or_insert(read);
    }
    first.unwrap_or(Err(MessageError { position: cursor.position(), kind: super::MessageErrorKind::End }))
}

fn message<'a>(schema: &'static Schema, type_id: i16, version: i16, body: Body<'a>) -> Message<'a> {
    Message {
        record: schema.record,
        type_id,
        version,
        version_is_known: schema.versions.contains(version),
        fields: body.fields,
        trailing_bytes: body.trailing_bytes,
        tag_size_mismatches: body.tag_size_mismatches,
        older_layout: Some(schema.releases).filter(|releases| !releases.is_empty()),
    }
}

/// Puts the state's name in place of its number, as Kafka's JSON has it since 4.4; an unknown number stays, as text.
fn name_transaction_status(fields: &mut Struct<'_>) {
    let Some(status) = fields.field_mut("transactionStatus") else { return };
    let Some(id) = status.as_int() else { return };
    let name = match id {
        0 => Cow::Borrowed("Empty"),
        1 => Cow::Borrowed("Ongoing"),
        2 => Cow::Borrowed("PrepareCommit"),
        3 => Cow::Borrowed("PrepareAbort"),
        4 => Cow::Borrowed("CompleteCommit"),
        5 => Cow::Borrowed("CompleteAbort"),
        6 => Cow::Borrowed("Dead"),
        7 => Cow::Borrowed("PrepareEpochFence"),
        other => Cow::Owned(other.to_string()),
    };
    *status = Value::Text(match name {
        Cow::Borrowed(name) => Cow::Borrowed(name.as_bytes()),
        Cow::Owned(name) => Cow::Owned(name.into_bytes()),
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digit = |byte: &u8| u8::try_from(char::from(*byte).to_digit(16).unwrap()).unwrap();
        hex.as_bytes().chunks(2).map(|pair| digit(&pair[0]) << 4 | digit(&pair[1])).collect()
    }

    fn names<'a>(message: &Message<'a>) -> Vec<&'a str> {
        message.fields.fields.iter().map(|(name, _)| *name).collect()
    }

    #[test]
    fn a_share_snapshot_of_4_0_is_read_by_its_older_layout() {
        let value = bytes("0000ffff0000000100000002000000000000000302000000000000000300000000000000090200010000");
        let message = decode_value(InternalTopic::ShareGroupState, 0, &value, Layouts::WithOlder).unwrap();
        assert_eq!(message.older_layout, Some("4.0.0"));
        assert_eq!(message.fields.field("snapshotEpoch"), Some(&Value::Int(65535)));
        assert_eq!(names(&message), ["snapshotEpoch", "stateEpoch", "leaderEpoch", "startOffset", "stateBatches"]);
        let current = decode_value(InternalTopic::ShareGroupState, 0, &value, Layouts::Current);
        assert_ne!(current.map(|message| message.trailing_bytes), Ok(0));
    }

    #[test]
    fn records_of_the_2_8_preview_are_read_by_its_layouts() {
        let rows = include_str!("../../../testdata/messages/real.tsv").lines();
        let mut count = 0;
        for row in rows.filter(|row| row.starts_with("__cluster_metadata\t2.8.2\t")) {
            let value = bytes(row.split('\t').nth(4).unwrap());
            let message = decode_framed(InternalTopic::ClusterMetadata, &value, Layouts::WithOlder).unwrap();
            assert!(message.older_layout.is_none_or(|releases| releases.contains("2.8.2")), "{message:?}");
            assert_eq!(message.trailing_bytes, 0);
            count += 1;
        }
        assert!(count >= 8, "{count}");
    }

    #[test]
    fn a_leader_change_of_version_1_shows_directory_ids_that_were_not_read() {
        let value = bytes("00010000000102000000010002000000010000");
        let message = decode_control(2, &value).unwrap();
        assert_eq!((message.record, message.version), ("LeaderChangeMessage", 1));
        let Some(Value::Array(voters)) = message.fields.field("voters") else { panic!("{message:?}") };
        let Some(Value::Struct(voter)) = voters.first() else { panic!("{message:?}") };
        assert_eq!(voter.fields, [("voterId", Value::Int(1)), ("voterDirectoryId", Value::Uuid([0; 16]))]);
    }

    #[test]
    fn a_commit_under_a_key_of_type_0_has_the_versions_of_type_1_before_4_0() {
        let value = bytes("0001000000000000000500036d227800000000000000010000000000000009");
        let message = decode_value(InternalTopic::ConsumerOffsets, 0, &value, Layouts::WithOlder).unwrap();
        assert_eq!((message.record, message.trailing_bytes), ("OffsetCommitValue", 0));
        assert_eq!(message.fields.field("expireTimestamp"), Some(&Value::Int(9)));
    }

    #[test]
    fn unknown_types_versions_and_left_over_bytes_are_facts() {
        for (hex, expected) in [
            ("016300", DecodeError::UnknownType(99)),
            ("011400000102", DecodeError::TrailingBytes { type_id: 20, count: 2 }),
            ("ffffff07", DecodeError::FrameTooLarge(FrameField::FrameVersion)),
            ("01", DecodeError::FrameUnreadable(FrameField::Type)),
        ] {
            let value = bytes(hex);
            assert_eq!(decode_framed(InternalTopic::ClusterMetadata, &value, Layouts::WithOlder), Err(expected));
        }
        let no_op = decode_framed(InternalTopic::ClusterMetadata, &[1, 20, 5, 0], Layouts::WithOlder);
        assert_eq!(no_op.map(|message| message.version_is_known), Ok(false));
        let value = decode_value(InternalTopic::TransactionState, 0, &[0, 9], Layouts::WithOlder);
        assert_eq!(value, Err(DecodeError::UnknownVersion { type_id: 0, version: 9 }));
        let key = bytes("000300016709");
        let key = decode_key(InternalTopic::ConsumerOffsets, &key, Layouts::Current).unwrap();
        assert_eq!((key.record, key.trailing_bytes), ("ConsumerGroupMetadataKey", 1));
    }

    proptest! {
        #[test]
        fn no_bytes_panic_or_read_beyond_their_end(
            head in 0u8..32, version in 0u8..6, rest in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            for layouts in [Layouts::Current, Layouts::WithOlder] {
                for topic in InternalTopic::ALL {
                    let framed = [&[1, head, version][..], &rest].concat();
                    let value = [&[0, version][..], &rest].concat();
                    let key = [&[0, head][..], &rest].concat();
                    let _ = decode_framed(topic, &framed, layouts);
                    if let Ok(message) = decode_key(topic, &key, layouts) {
                        prop_assert!(message.trailing_bytes <= rest.len());
                    }
                    if let Ok(message) = decode_value(topic, head.into(), &value, layouts) {
                        prop_assert!(message.trailing_bytes <= rest.len());
                    }
                }
                let _ = decode_control(head.into(), &rest);
            }
        }
    }
}

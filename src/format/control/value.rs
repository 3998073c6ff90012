//! Values of control records.

use super::flexible::{TaggedField, Tags, read_array, read_bytes, read_tags, write_array, write_bytes, write_tags};
use super::record::{ControlNumbering, ControlType};
use crate::format::{Cursor, FormatError, FormatErrorKind, Shape, TimestampMs, Uuid};

const SHAPE: Shape = Shape::ControlRecord;

/// The end of a transaction: value of ABORT and COMMIT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndTxnMarker {
    /// Version of the value; a later one than 0 is read alike.
    pub version: i16,
    /// Epoch of the transaction coordinator.
    pub coordinator_epoch: i32,
}

impl EndTxnMarker {
    /// Reads the marker. Faults are a value of less than 6 bytes and a negative version (`EndTransactionMarker.deserializeValue`).
    pub fn parse(value: &[u8]) -> Result<Self, FormatError> {
        let mut cursor = Cursor::new(value);
        let mut marker = Cursor::new(cursor.read_array::<6>(SHAPE)?);
        let version = marker.read_i16(SHAPE)?;
        if version < 0 {
            return Err(Cursor::new(value).error(unknown_version(version)));
        }
        Ok(Self { version, coordinator_epoch: marker.read_i32(SHAPE)? })
    }
}

pub(super) fn unknown_version(version: i16) -> FormatErrorKind {
    FormatErrorKind::UnknownValue { shape: SHAPE, field: "version", found: i64::from(version) }
}

/// A member of the metadata quorum, in a leader change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Voter<'a> {
    /// Its node id.
    pub voter_id: i32,
    /// Its directory, from version 1 on.
    pub directory_id: Option<Uuid>,
    /// Unknown fields.
    pub tags: Vec<TaggedField<'a>>,
}

/// A new leader of the metadata quorum.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaderChange<'a> {
    /// Version of the value; the preview wrote none.
    pub version: Option<i16>,
    /// The leader's node id.
    pub leader_id: i32,
    /// The quorum.
    pub voters: Vec<Voter<'a>>,
    /// Those who voted for the leader.
    pub granting_voters: Vec<Voter<'a>>,
    /// Unknown fields.
    pub tags: Vec<TaggedField<'a>>,
}

/// The beginning of a snapshot of the metadata log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotHeader<'a> {
    /// Version of the value.
    pub version: i16,
    /// Timestamp of the last batch that the snapshot covers.
    pub last_contained_log_timestamp: TimestampMs,
    /// Unknown fields.
    pub tags: Vec<TaggedField<'a>>,
}

/// The end of a snapshot of the metadata log; one without is incomplete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotFooter<'a> {
    /// Version of the value.
    pub version: i16,
    /// Unknown fields.
    pub tags: Vec<TaggedField<'a>>,
}

/// The feature level of KRaft.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KraftVersion<'a> {
    /// Version of the value.
    pub version: i16,
    /// The level: 1 is a quorum that can change.
    pub kraft_version: i16,
    /// Unknown fields.
    pub tags: Vec<TaggedField<'a>>,
}

/// Where a voter can be reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint<'a> {
    /// Name of the listener, UTF-8 as a rule.
    pub name: &'a [u8],
    /// Host, UTF-8 as a rule.
    pub host: &'a [u8],
    /// Port.
    pub port: u16,
    /// Unknown fields.
    pub tags: Vec<TaggedField<'a>>,
}

/// A member of the metadata quorum that can change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KraftVoter<'a> {
    /// Its node id.
    pub voter_id: i32,
    /// Its directory.
    pub voter_directory_id: Uuid,
    /// Where it can be reached.
    pub endpoints: Vec<Endpoint<'a>>,
    /// The least KRaft feature level it supports.
    pub min_supported_version: i16,
    /// The highest.
    pub max_supported_version: i16,
    /// Unknown fields of the range of levels.
    pub range_tags: Vec<TaggedField<'a>>,
    /// Unknown fields.
    pub tags: Vec<TaggedField<'a>>,
}

/// The metadata quorum.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KraftVoters<'a> {
    /// Version of the value.
    pub version: i16,
    /// Its members.
    pub voters: Vec<KraftVoter<'a>>,
    /// Unknown fields.
    pub tags: Vec<TaggedField<'a>>,
}

/// A decoded value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ControlValue<'a> {
    /// Of ABORT and COMMIT.
    EndTxnMarker(EndTxnMarker),
    /// Of LEADER_CHANGE.
    LeaderChange(LeaderChange<'a>),
    /// Of SNAPSHOT_HEADER.
    SnapshotHeader(SnapshotHeader<'a>),
    /// Of SNAPSHOT_FOOTER.
    SnapshotFooter(SnapshotFooter<'a>),
    /// Of KRAFT_VERSION.
    KraftVersion(KraftVersion<'a>),
    /// Of KRAFT_VOTERS.
    KraftVoters(KraftVoters<'a>),
    /// Of a type that nobody knows, or without its fields where it could not be decoded; the bytes are with the record.
    Undecoded,
}

impl<'a> ControlValue<'a> {
    /// Decodes a value. The cursor is left behind it; Kafka ignores what follows.
    pub(super) fn parse(
        control_type: ControlType,
        numbering: ControlNumbering,
        cursor: &mut Cursor<'a>,
    ) -> Result<Self, FormatError> {
        Ok(match control_type {
            ControlType::Abort | ControlType::Commit => {
                let marker = EndTxnMarker::parse(cursor.rest())?;
                cursor.read_array::<6>(SHAPE)?;
                Self::EndTxnMarker(marker)
            }
            ControlType::LeaderChange => match numbering {
                ControlNumbering::Current => Self::LeaderChange(read_leader_change(cursor)?),
                ControlNumbering::Preview => Self::LeaderChange(read_fields(cursor, None, Directories::Absent)?),
            },
            ControlType::SnapshotHeader => Self::SnapshotHeader(SnapshotHeader {
                version: cursor.read_i16(SHAPE)?,
                last_contained_log_timestamp: TimestampMs(cursor.read_i64(SHAPE)?),
                tags: read_tags(cursor)?,
            }),
            ControlType::SnapshotFooter => {
                Self::SnapshotFooter(SnapshotFooter { version: cursor.read_i16(SHAPE)?, tags: read_tags(cursor)? })
            }
            ControlType::KraftVersion => Self::KraftVersion(KraftVersion {
                version: cursor.read_i16(SHAPE)?,
                kraft_version: cursor.read_i16(SHAPE)?,
                tags: read_tags(cursor)?,
            }),
            ControlType::KraftVoters => Self::KraftVoters(KraftVoters {
                version: cursor.read_i16(SHAPE)?,
                voters: read_array(cursor, read_kraft_voter)?,
                tags: read_tags(cursor)?,
            }),
            ControlType::QuorumReassignment | ControlType::Unknown(_) => Self::Undecoded,
        })
    }

    /// Appends the value as Kafka writes it. Nothing is appended of a value that is not decoded.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::EndTxnMarker(marker) => {
                out.extend_from_slice(&marker.version.to_be_bytes());
                out.extend_from_slice(&marker.coordinator_epoch.to_be_bytes());
            }
            Self::LeaderChange(change) => {
                if let Some(version) = change.version {
                    out.extend_from_slice(&version.to_be_bytes());
                }
                out.extend_from_slice(&change.leader_id.to_be_bytes());
                write_array(out, &change.voters, write_voter);
                write_array(out, &change.granting_voters, write_voter);
                write_tags(out, &change.tags);
            }
            Self::SnapshotHeader(header) => {
                out.extend_from_slice(&header.version.to_be_bytes());
                out.extend_from_slice(&header.last_contained_log_timestamp.0.to_be_bytes());
                write_tags(out, &header.tags);
            }
            Self::SnapshotFooter(footer) => {
                out.extend_from_slice(&footer.version.to_be_bytes());
                write_tags(out, &footer.tags);
            }
            Self::KraftVersion(level) => {
                out.extend_from_slice(&level.version.to_be_bytes());
                out.extend_from_slice(&level.kraft_version.to_be_bytes());
                write_tags(out, &level.tags);
            }
            Self::KraftVoters(quorum) => {
                out.extend_from_slice(&quorum.version.to_be_bytes());
                write_array(out, &quorum.voters, write_kraft_voter);
                write_tags(out, &quorum.tags);
            }
            Self::Undecoded => {}
        }
    }
}

/// Kafka (up to 4.4) reads every leader change as version 0, whatever it says, and writes no other. The layout of version 1, which
/// exists in the schema, is tried where the value says so, and taken where it fits to the last byte.
fn read_leader_change<'a>(cursor: &mut Cursor<'a>) -> Result<LeaderChange<'a>, FormatError> {
    let version = cursor.read_i16(SHAPE)?;
    let mut ahead = *cursor;
    if version > 0
        && let Ok(change) = read_fields(&mut ahead, Some(version), Directories::Present)
        && ahead.is_empty()
    {
        *cursor = ahead;
        return Ok(change);
    }
    read_fields(cursor, Some(version), Directories::Absent)
}

#[derive(Clone, Copy)]
enum Directories {
    Present,
    Absent,
}

fn read_fields<'a>(
    cursor: &mut Cursor<'a>,
    version: Option<i16>,
    directories: Directories,
) -> Result<LeaderChange<'a>, FormatError> {
    let read_voter = |cursor: &mut Cursor<'a>| {
        let voter_id = cursor.read_i32(SHAPE)?;
        let directory_id = match directories {
            Directories::Present => Some(Uuid(*cursor.read_array(SHAPE)?)),
            Directories::Absent => None,
        };
        Ok(Voter { voter_id, directory_id, tags: read_tags(cursor)? })
    };
    Ok(LeaderChange {
        version,
        leader_id: cursor.read_i32(SHAPE)?,
        voters: read_array(cursor, read_voter)?,
        granting_voters: read_array(cursor, read_voter)?,
        tags: read_tags(cursor)?,
    })
}

fn write_voter(out: &mut Vec<u8>, voter: &Voter<'_>) {
    out.extend_from_slice(&voter.voter_id.to_be_bytes());
    if let Some(directory_id) = voter.directory_id {
        out.extend_from_slice(&directory_id.0);
    }
    write_tags(out, &voter.tags);
}

fn read_kraft_voter<'a>(cursor: &mut Cursor<'a>) -> Result<KraftVoter<'a>, FormatError> {
    let read_endpoint = |cursor: &mut Cursor<'a>| {
        let (name, host) = (read_bytes(cursor)?, read_bytes(cursor)?);
        let port = cursor.read_u16(SHAPE)?;
        let tags: Tags<'a> = read_tags(cursor)?;
        Ok(Endpoint { name, host, port, tags })
    };
    Ok(KraftVoter {
        voter_id: cursor.read_i32(SHAPE)?,
        voter_directory_id: Uuid(*cursor.read_array(SHAPE)?),
        endpoints: read_array(cursor, read_endpoint)?,
        min_supported_version: cursor.read_i16(SHAPE)?,
        max_supported_version: cursor.read_i16(SHAPE)?,
        range_tags: read_tags(cursor)?,
        tags: read_tags(cursor)?,
    })
}

fn write_kraft_voter(out: &mut Vec<u8>, voter: &KraftVoter<'_>) {
    out.extend_from_slice(&voter.voter_id.to_be_bytes());
    out.extend_from_slice(&voter.voter_directory_id.0);
    write_array(out, &voter.endpoints, |out, endpoint| {
        write_bytes(out, endpoint.name);
        write_bytes(out, endpoint.host);
        out.extend_from_slice(&endpoint.port.to_be_bytes());
        write_tags(out, &endpoint.tags);
    });
    out.extend_from_slice(&voter.min_supported_version.to_be_bytes());
    out.extend_from_slice(&voter.max_supported_version.to_be_bytes());
    write_tags(out, &voter.range_tags);
    write_tags(out, &voter.tags);
}

//! Why a log cannot be cleaned.

use crate::format::compression::EncodeError;
use crate::format::encode::TooLarge;
use crate::format::{FormatError, FormatErrorKind, Offset, Position};
use crate::logdir::ReadError;
use crate::ops::broker::index_rules::{IndexRefusal, TxnOrder};
use crate::ops::{FindingId, RecordsError};

/// Why a round ends without a result.
#[derive(Debug)]
pub enum CleanFailure {
    /// A broker's cleaner throws, marks the partition uncleanable and leaves it alone until the next start.
    Uncleanable(Uncleanable),
    /// There is no offset map.
    NoMap(super::key_map::NoMap),
    /// Verdicts or a batch would take more memory than is allowed.
    Limit {
        /// The limit.
        bytes: u64,
    },
    /// The disk refused.
    Read(ReadError),
    /// The user asked to stop.
    Cancelled,
}

/// What a broker's cleaner dies of, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Uncleanable {
    /// Base offset of the segment on the disk; known once the round has put it there.
    pub segment: Option<Offset>,
    /// Where in its log.
    pub position: Position,
    /// What.
    pub kind: UncleanableKind,
}

/// What a broker's cleaner dies of.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UncleanableKind {
    /// The segment ends inside a batch, or with bytes that are none.
    #[error("the segment ends inside a batch")]
    CutBatch,
    /// A batch's size is less than any batch takes.
    #[error("a batch of impossible size")]
    SizeInvalid,
    /// A magic that no version writes.
    #[error("a batch of unknown magic {0}")]
    MagicUnknown(i8),
    /// A codec that does not exist.
    #[error("a batch of unknown codec")]
    CodecUnknown,
    /// Records or messages that cannot be read.
    #[error("records that cannot be read: {0}")]
    Undecodable(FormatError),
    /// A control batch whose first record has no type.
    #[error("a control record without a type")]
    MarkerMalformed,
    /// A legacy message that would have to stay without its records, which only v2 batches can.
    #[error("a legacy message that would have to stay without records")]
    EmptyLegacy,
    /// A record to be rewritten has a timestamp below -1.
    #[error("a timestamp of {0}")]
    TimestampNegative(i64),
    /// Records to be rewritten are out of order.
    #[error("records out of order")]
    OffsetOrder,
    /// Records to be rewritten lie too far apart.
    #[error("records more than 2^31 - 1 offsets apart")]
    OffsetSpan,
    /// A producer without epoch or sequence, or a transaction without producer.
    #[error("a batch with half a producer")]
    ProducerState,
    /// What comes out is more than a batch can hold.
    #[error("{0}")]
    TooLarge(TooLarge),
    /// An offset that the indexes cannot hold: a broker splits the segment first.
    #[error("offset {0} is too far from the segment's first")]
    OffsetOverflow(Offset),
    /// The indexes do not take what they must.
    #[error("{0}")]
    Index(IndexRefusal),
    /// The transaction index does not.
    #[error("{0}")]
    TxnIndex(TxnOrder),
    /// A compressor failed.
    #[error("{0}")]
    Compressor(EncodeError),
}

impl UncleanableKind {
    /// The failure at a place.
    pub(super) fn at(self, position: Position) -> CleanFailure {
        CleanFailure::Uncleanable(Uncleanable { segment: None, position, kind: self })
    }

    /// The finding that names it.
    pub fn finding(&self) -> FindingId {
        match self {
            Self::CutBatch => FindingId::BatchTornTail,
            Self::SizeInvalid => FindingId::BatchLengthInvalid,
            Self::MagicUnknown(_) => FindingId::BatchMagicUnknown,
            Self::CodecUnknown => FindingId::BatchCodecUnknown,
            Self::Undecodable(_) | Self::MarkerMalformed | Self::Compressor(_) | Self::TooLarge(_) => {
                FindingId::BatchPayloadUndecodable
            }
            Self::EmptyLegacy | Self::ProducerState | Self::TimestampNegative(_) => FindingId::RecordMalformed,
            Self::OffsetOrder | Self::OffsetSpan => FindingId::BatchLastOffsetMismatch,
            Self::OffsetOverflow(_) | Self::Index(IndexRefusal::OffsetOverflow { .. }) => {
                FindingId::BatchOffsetOverflow
            }
            Self::Index(_) => FindingId::BatchOffsetRegression,
            Self::TxnIndex(_) => FindingId::TxnIndexEntryWrong,
        }
    }
}

impl CleanFailure {
    /// Records that could not be read.
    pub(super) fn of_records(error: RecordsError, position: Position) -> Self {
        match error {
            RecordsError::Format(error) => match error.kind {
                FormatErrorKind::LimitReached { limit } => Self::Limit { bytes: limit },
                _ => UncleanableKind::Undecodable(error).at(position),
            },
            RecordsError::Read(error) => Self::Read(ReadError::io(std::path::Path::new(""), error)),
        }
    }

    /// The same with the segment named.
    #[must_use]
    pub(super) fn in_segment(mut self, base: Offset) -> Self {
        if let Self::Uncleanable(uncleanable) = &mut self {
            uncleanable.segment.get_or_insert(base);
        }
        self
    }
}

impl From<ReadError> for CleanFailure {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl From<UncleanableKind> for CleanFailure {
    fn from(kind: UncleanableKind) -> Self {
        kind.at(Position(0))
    }
}

impl From<TooLarge> for UncleanableKind {
    fn from(error: TooLarge) -> Self {
        Self::TooLarge(error)
    }
}

impl From<TooLarge> for CleanFailure {
    fn from(error: TooLarge) -> Self {
        UncleanableKind::TooLarge(error).into()
    }
}

impl From<EncodeError> for CleanFailure {
    fn from(error: EncodeError) -> Self {
        UncleanableKind::Compressor(error).into()
    }
}

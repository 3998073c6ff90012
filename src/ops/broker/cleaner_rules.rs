//! How the cleaner's rules differ between versions.

/// How long tombstones and markers stay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeleteRetention {
    /// By the times at which segments were last modified (up to 3.0).
    SegmentTime,
    /// By the horizon that the first round to meet them writes into their batch (KIP-534, 3.1).
    BatchHorizon,
}

/// What bounds cleaning besides the active segment and the lag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CleaningBound {
    /// The first open transaction (up to 3.0).
    FirstUnstable,
    /// The last stable offset, so the high watermark too (KAFKA-13194, 3.1).
    LastStable,
}

/// Whether control records are looked up in the offset map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControlRecords {
    /// Under their four bytes of key, as if they were data (up to 2.8).
    AsData,
    /// Never (KAFKA-14055: 3.3, and the last patches of 3.0 to 3.2).
    Exempt,
}

/// Which batch stays although no record of it does, besides the last ones of producers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LastBatch {
    /// None (up to 3.9.1).
    Unprotected,
    /// The one that ends where the round does (KAFKA-17076, 4.0).
    OfRound,
    /// The one that ends at the high watermark (4.4).
    AtHighWatermark,
}

/// What becomes of messages of magic 0 and 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LegacyOutput {
    /// They stay what they are (up to 3.9).
    SameMagic,
    /// They become batches of magic 2 (4.0).
    BecomesCurrent,
}

/// Whether an empty segment can join a group whose offsets it would stretch too far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EmptySegments {
    /// No (2.8).
    Counted,
    /// Yes (KAFKA-12889, 3.0).
    Exempt,
}

/// The cleaner's rules of one version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CleanerRules {
    /// How long tombstones and markers stay.
    pub delete_retention: DeleteRetention,
    /// What bounds cleaning.
    pub bound: CleaningBound,
    /// Whether control records are looked up in the offset map.
    pub control_records: ControlRecords,
    /// Which batch stays although no record of it does.
    pub last_batch: LastBatch,
    /// What becomes of messages of magic 0 and 1.
    pub legacy_output: LegacyOutput,
    /// Whether empty segments stretch a group.
    pub empty_segments: EmptySegments,
}

impl CleanerRules {
    /// The rules of a version, of which `since` says whether it is at least another.
    pub(super) fn of(since: impl Fn(u8, u8) -> bool) -> Self {
        Self {
            delete_retention: if since(3, 1) { DeleteRetention::BatchHorizon } else { DeleteRetention::SegmentTime },
            bound: if since(3, 1) { CleaningBound::LastStable } else { CleaningBound::FirstUnstable },
            control_records: if since(3, 0) { ControlRecords::Exempt } else { ControlRecords::AsData },
            last_batch: match () {
                () if since(4, 4) => LastBatch::AtHighWatermark,
                () if since(4, 0) => LastBatch::OfRound,
                () => LastBatch::Unprotected,
            },
            legacy_output: if since(4, 0) { LegacyOutput::BecomesCurrent } else { LegacyOutput::SameMagic },
            empty_segments: if since(3, 0) { EmptySegments::Exempt } else { EmptySegments::Counted },
        }
    }
}

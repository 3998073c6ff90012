//! What Kafka reads past without complaint inside a batch, and a careful reader names.

use super::batch::Reporter;
use crate::format::compression::CodecOddity;
use crate::format::legacy::LegacyOddity;
use crate::format::{FormatErrorKind, Shape};
use crate::ops::{BatchContent, Fact, Finding, FindingId, Severity};

/// Adds a finding for each kind of oddity that a batch has.
pub(super) fn report(content: &BatchContent, report: &Reporter<'_>, out: &mut Vec<Finding>) {
    let from = out.len();
    let codec = content.codec_oddities.iter().filter_map(|oddity| of_codec(oddity, report));
    let legacy = content.legacy_oddities.iter().map(|oddity| of_legacy(oddity, report));
    for finding in codec.chain(legacy) {
        // One of a kind is enough to look at the batch.
        if !out.iter().skip(from).any(|seen| seen.id == finding.id) {
            out.push(finding);
        }
    }
}

fn of_codec(oddity: &CodecOddity, report: &Reporter<'_>) -> Option<Finding> {
    let payload = report.finding(FindingId::BatchPayloadOdd);
    let number = |bytes: u64| Fact::Number(i64::try_from(bytes).unwrap_or(i64::MAX));
    Some(match *oddity {
        CodecOddity::SnappyWithoutHeader => return None,
        CodecOddity::WrongSnappyHeader { position } => {
            payload.with_facts(None, Fact::Position(position)).with_severity(Severity::Warning)
        }
        CodecOddity::CutFrame { count, .. } => payload.with_facts(None, number(count)).with_severity(Severity::Warning),
        CodecOddity::BytesIgnored { count, .. } | CodecOddity::FrameIgnored { count, .. } => {
            payload.with_facts(Fact::Number(0), number(count))
        }
        CodecOddity::SnappyVersion { version, compatible_version, .. } => {
            payload.with_facts(Fact::Pair(1, 1), Fact::Pair(i64::from(version), i64::from(compatible_version)))
        }
        CodecOddity::OldLz4HeaderChecksum { stored, computed } => {
            lz4_checksum(report, stored, computed).with_severity(Severity::Info)
        }
        CodecOddity::WrongLz4HeaderChecksum { stored, computed } => {
            lz4_checksum(report, stored, computed).with_severity(Severity::Warning)
        }
        CodecOddity::WrongLz4ContentChecksum { stored, computed, .. } => {
            payload.with_facts(Fact::Checksum(stored), Fact::Checksum(computed)).with_severity(Severity::Warning)
        }
        CodecOddity::WrongLz4ContentSize { stored, computed } => payload.with_facts(number(stored), number(computed)),
    })
}

fn lz4_checksum(report: &Reporter<'_>, stored: u8, computed: u8) -> Finding {
    let (computed, stored) = (Fact::Number(i64::from(computed)), Fact::Number(i64::from(stored)));
    report.finding(FindingId::LegacyLz4Checksum).with_facts(computed, stored)
}

fn of_legacy(oddity: &LegacyOddity, report: &Reporter<'_>) -> Finding {
    let number = |number: i64| Fact::Number(number);
    match *oddity {
        LegacyOddity::CutMessage { count, .. } => {
            let cause = FormatErrorKind::UnexpectedEnd {
                shape: Shape::InnerMessage,
                needed: count.saturating_add(1),
                available: count,
            };
            report.finding(FindingId::RecordMalformed).with_cause(cause)
        }
        // What certain versions of librdkafka wrote, and everybody reads.
        LegacyOddity::WrapperOffsetZero { last_inner_offset } => report
            .finding(FindingId::LegacyInnerOffset)
            .with_severity(Severity::Info)
            .with_facts(Fact::Offset(last_inner_offset), number(0)),
        LegacyOddity::WrapperOffsetDiffers { wrapper_offset, last_inner_offset } => report
            .finding(FindingId::LegacyInnerOffset)
            .with_severity(Severity::Warning)
            .with_facts(Fact::Offset(last_inner_offset), Fact::Offset(wrapper_offset)),
        LegacyOddity::OffsetNotIncreasing { previous, offset, .. } => {
            report.finding(FindingId::LegacyInnerOffset).with_facts(Fact::Offset(previous.next()), Fact::Offset(offset))
        }
        LegacyOddity::MagicDiffers { wrapper_magic, magic, .. } => report
            .finding(FindingId::LegacyInnerMagicMismatch)
            .with_facts(number(i64::from(wrapper_magic)), number(i64::from(magic))),
        LegacyOddity::CrcMismatch { stored, computed, .. } => {
            let cause = FormatErrorKind::ChecksumMismatch { shape: Shape::InnerMessage, stored, computed };
            report.finding(FindingId::RecordMalformed).with_cause(cause)
        }
        LegacyOddity::BytesAfterValue { count, .. } => report
            .finding(FindingId::BatchPayloadOdd)
            .with_facts(number(0), number(i64::try_from(count).unwrap_or(i64::MAX))),
    }
}

//! One sound batch: its header by itself, its records, and whether the two agree.

use std::ops::ControlFlow;

use super::context::{Place, SegmentContext};
use super::oddity;
use super::options::{Level, Options};
use crate::format::compression::Codec;
use crate::format::control::{ControlNumbering, ControlRecord, ControlType};
use crate::format::record::Record;
use crate::format::{BatchHeader, FormatError, FormatErrorKind, Offset, Shape, TimestampMs, TimestampType};
use crate::logdir::Scanned;
use crate::ops::broker::transactions::{EndMarker, TransactionOutcome};
use crate::ops::{BatchContent, Fact, Finding, FindingId, RecordReader, RecordsError, Severity};

/// A timestamp so far behind the clock of the run is taken for a fault.
const MOST_AHEAD_MS: i64 = 24 * 60 * 60 * 1000;
/// The end of the year 9999: what lies behind is in another unit.
const LAST_INSTANT_MS: i64 = 253_402_300_799_999;

/// What the later checks need to know of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchFacts {
    pub(super) header: BatchHeader,
    /// Its first offset: of a legacy wrapper that of its first message, where that was read.
    pub(super) first_offset: Offset,
    /// Whether `first_offset` is known to be the first.
    pub(super) is_first_known: bool,
    /// Records seen; with checksums alone, those that the header counts.
    pub(super) records_count: u64,
    /// The end marker of a control batch.
    pub(super) marker: Option<EndMarker>,
}

/// What is seen of the records of a batch while they pass.
#[derive(Debug, Default)]
struct Seen {
    count: u64,
    largest_timestamp: Option<TimestampMs>,
    below_none: Option<TimestampMs>,
    last_delta: Option<i32>,
    outside: Option<i32>,
    not_increasing: Option<i32>,
    control: Vec<ControlSeen>,
}

#[derive(Debug)]
struct ControlSeen {
    marker: Option<EndMarker>,
    fault: Option<FormatErrorKind>,
    unknown_type: Option<i16>,
}

/// Looks at batch after batch on one thread.
#[derive(Debug)]
pub(super) struct BatchInspector<'a> {
    reader: RecordReader,
    options: &'a Options,
    numbering: ControlNumbering,
    pub(super) findings: Vec<Finding>,
}

impl<'a> BatchInspector<'a> {
    pub(super) fn new(options: &'a Options, numbering: ControlNumbering) -> Self {
        Self { reader: RecordReader::new(options.limits), options, numbering, findings: Vec::new() }
    }

    /// The facts of a batch. What is wrong with it by itself is added to the findings.
    pub(super) fn inspect(&mut self, batch: &Scanned<'_>, place: &Place, context: &SegmentContext) -> BatchFacts {
        let header = *batch.header();
        let report = Reporter { header: &header, place, context };
        check_header(&report, self.options, &mut self.findings);
        let mut facts = BatchFacts {
            header,
            first_offset: header.base_offset,
            is_first_known: !header.is_legacy_wrapper(),
            records_count: u64::try_from(header.records_count.unwrap_or(1)).unwrap_or(0),
            marker: None,
        };
        let is_codec_known = Codec::from_id(header.attributes.codec_id()).is_some();
        if is_codec_known && (self.options.level == Level::Records || header.is_control()) {
            self.read_records(batch, &report, &mut facts);
        }
        facts
    }

    fn read_records(&mut self, batch: &Scanned<'_>, report: &Reporter<'_>, facts: &mut BatchFacts) {
        let header = report.header;
        if header.records_count == Some(0) {
            if header.size_bytes > crate::format::BATCH_HEADER as u64 {
                let extra = header.size_bytes.saturating_sub(crate::format::BATCH_HEADER as u64);
                self.findings.push(
                    report
                        .unreadable(FindingId::BatchRecordsCountMismatch)
                        .with_facts(Fact::Number(0), Fact::Text(format!("{extra} bytes"))),
                );
            }
            return;
        }
        let mut seen = Seen::default();
        let (is_control, numbering) = (header.is_control(), self.numbering);
        let outcome = self.reader.read(batch, &mut |record: &Record<'_>| {
            seen.observe(record, header.last_offset_delta, is_control.then_some(numbering));
            ControlFlow::Continue(())
        });
        facts.records_count = seen.count;
        match outcome {
            Ok(content) => {
                if let Some(wrapper) = content.wrapper {
                    (facts.first_offset, facts.is_first_known) = (wrapper.base_offset, true);
                }
                oddity::report(&content, report, &mut self.findings);
                seen.check(report, &content, &mut self.findings);
            }
            Err(error) => self.findings.push(report.undecodable(&error, &seen)),
        }
        if is_control {
            facts.marker = seen.check_control(report, &mut self.findings);
        }
    }
}

/// Makes findings about one batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reporter<'a> {
    pub(super) header: &'a BatchHeader,
    place: &'a Place,
    context: &'a SegmentContext,
}

impl Reporter<'_> {
    /// A finding of the usual severity about the batch.
    pub(super) fn finding(&self, id: FindingId) -> Finding {
        let header = self.header;
        let mut finding = self.place.finding_at(id, header.position, header.size_bytes);
        finding.severity = self.context.log_severity(finding.severity);
        if header.last_offset >= header.base_offset {
            finding.location = finding.location.offsets(header.base_offset, header.last_offset);
        }
        finding
    }

    /// A finding about a batch whose records no consumer is given.
    fn unreadable(&self, id: FindingId) -> Finding {
        self.finding(id).with_severity(self.context.log_severity(Severity::Critical))
    }

    /// The finding for records that cannot be read to their end.
    fn undecodable(&self, error: &RecordsError, seen: &Seen) -> Finding {
        let error = match error {
            RecordsError::Read(_) => return self.finding(FindingId::LogUnreadableRange),
            RecordsError::Format(error) => error,
        };
        let id = self.id_of(error, seen);
        let counts = (
            self.header.records_count.map(|count| Fact::Number(i64::from(count))),
            Some(Fact::Number(i64::try_from(seen.count).unwrap_or(i64::MAX))),
        );
        let mut finding = self.finding(id).with_cause(error.kind.clone());
        if id != FindingId::LimitReached {
            // Nobody can read on from there.
            finding.severity = self.context.log_severity(Severity::Critical);
        }
        match id {
            FindingId::BatchRecordsCountMismatch => Finding { expected: counts.0, found: counts.1, ..finding },
            _ => finding,
        }
    }

    fn id_of(&self, error: &FormatError, seen: &Seen) -> FindingId {
        let reads_all = seen.count >= u64::try_from(self.header.records_count.unwrap_or(0)).unwrap_or(0);
        match &error.kind {
            FormatErrorKind::LimitReached { .. } => FindingId::LimitReached,
            FormatErrorKind::Mismatch { shape: Shape::InnerMessage, field: "compression type", .. } => {
                FindingId::LegacyInnerCodec
            }
            FormatErrorKind::Mismatch { shape: Shape::LegacyMessage, field: "offset", .. } => {
                FindingId::LegacyInnerOffset
            }
            FormatErrorKind::TrailingBytes { shape: Shape::Record, .. } if reads_all => {
                FindingId::BatchRecordsCountMismatch
            }
            FormatErrorKind::UnexpectedEnd { shape: Shape::Record, available: 0, .. } => {
                FindingId::BatchRecordsCountMismatch
            }
            FormatErrorKind::LengthOutOfRange { shape: Shape::BatchHeader, .. } => FindingId::BatchRecordsCountMismatch,
            // zstd exists, but not for legacy messages.
            FormatErrorKind::Decompression { .. }
            | FormatErrorKind::UnknownValue { field: "compression type", .. }
            | FormatErrorKind::LengthOutOfRange { shape: Shape::LegacyMessage | Shape::InnerMessage, .. } => {
                FindingId::BatchPayloadUndecodable
            }
            _ => FindingId::RecordMalformed,
        }
    }
}

/// What a header says by itself.
fn check_header(report: &Reporter<'_>, options: &Options, out: &mut Vec<Finding>) {
    let header = report.header;
    let number = |number: i64| Some(Fact::Number(number));
    if header.magic > 2 {
        out.push(report.finding(FindingId::BatchMagicUnknown).with_facts(number(2), number(i64::from(header.magic))));
    }
    if Codec::from_id(header.attributes.codec_id()).is_none() {
        let found = number(i64::from(header.attributes.codec_id()));
        out.push(report.unreadable(FindingId::BatchCodecUnknown).with_facts(None, found));
    }
    if !header.is_legacy() {
        if header.attributes.unknown_bits() != 0 {
            let bits = header.attributes.unknown_bits() as u16;
            let found = Some(Fact::Text(format!("{bits:#06x}")));
            out.push(report.finding(FindingId::BatchAttributesUnknown).with_facts(None, found));
        }
        check_counts(report, options.level, out);
    }
    check_timestamps(report, options.now, out);
}

fn check_counts(report: &Reporter<'_>, level: Level, out: &mut Vec<Finding>) {
    let (header, delta) = (report.header, i64::from(report.header.last_offset_delta));
    let count = i64::from(header.records_count.unwrap_or(0));
    if delta < 0 {
        // Whoever looks for its offsets passes it over.
        let finding = report.unreadable(FindingId::BatchLastOffsetMismatch);
        out.push(finding.with_facts(Fact::Number(count.max(1) - 1), Fact::Number(delta)));
    } else if level == Level::Crc && (count < 0 || count > delta + 1) {
        // Whoever reads the records sees it by them.
        let finding = report.finding(FindingId::BatchRecordsCountMismatch);
        out.push(finding.with_facts(Fact::Number(delta + 1), Fact::Number(count)));
    }
}

fn check_timestamps(report: &Reporter<'_>, now: Option<TimestampMs>, out: &mut Vec<Finding>) {
    let Some(timestamp) = report.header.max_timestamp else { return };
    let latest = now.map_or(LAST_INSTANT_MS, |now| now.0.saturating_add(MOST_AHEAD_MS).min(LAST_INSTANT_MS));
    if timestamp.0 > latest || timestamp.0 < 0 {
        out.push(implausible(report, timestamp));
    }
}

fn implausible(report: &Reporter<'_>, timestamp: TimestampMs) -> Finding {
    report.finding(FindingId::BatchTimestampImplausible).with_facts(None, Fact::Timestamp(timestamp))
}

impl Seen {
    fn observe(&mut self, record: &Record<'_>, last_offset_delta: i32, control: Option<ControlNumbering>) {
        self.count += 1;
        if let Some(timestamp) = record.timestamp {
            self.largest_timestamp = self.largest_timestamp.max(Some(timestamp));
            if timestamp.0 < -1 && self.below_none.is_none() {
                self.below_none = Some(timestamp);
            }
        }
        let delta = record.offset_delta;
        if (delta < 0 || delta > last_offset_delta) && self.outside.is_none() {
            self.outside = Some(delta);
        }
        if self.last_delta.is_some_and(|last| delta <= last) && self.not_increasing.is_none() {
            self.not_increasing = Some(delta);
        }
        self.last_delta = Some(delta);
        if let Some(numbering) = control
            && self.control.len() < 2
        {
            self.control.push(ControlSeen::of(record, numbering));
        }
    }

    /// Whether header and records agree, given that all records could be read.
    fn check(&self, report: &Reporter<'_>, content: &BatchContent, out: &mut Vec<Finding>) {
        let header = report.header;
        self.check_largest_timestamp(report, content, out);
        if let Some(timestamp) = self.below_none {
            // Said of the header already where that has it too.
            if header.max_timestamp != Some(timestamp) {
                out.push(implausible(report, timestamp));
            }
        }
        if header.is_legacy() {
            return;
        }
        let delta = |delta: i32| Fact::Number(i64::from(delta));
        if let Some(outside) = self.outside.filter(|_| header.last_offset_delta >= 0) {
            let id = if outside < 0 { FindingId::RecordMalformed } else { FindingId::BatchLastOffsetMismatch };
            out.push(report.finding(id).with_facts(delta(header.last_offset_delta), delta(outside)));
        } else if let Some(found) = self.not_increasing {
            out.push(report.finding(FindingId::RecordMalformed).with_cause(FormatErrorKind::Mismatch {
                shape: Shape::Record,
                field: "offsetDelta",
                expected: i64::from(found).saturating_add(1),
                found: i64::from(found),
            }));
        }
    }

    fn check_largest_timestamp(&self, report: &Reporter<'_>, content: &BatchContent, out: &mut Vec<Finding>) {
        let header = report.header;
        let is_own = header.timestamp_type() == TimestampType::CreateTime && self.count > 0;
        let is_single_legacy = header.is_legacy() && content.wrapper.is_none();
        // Messages of magic 0 in a wrapper of magic 1 have no time.
        let is_comparable = !header.is_legacy() || self.largest_timestamp.is_some();
        if !is_own || is_single_legacy || !is_comparable || self.largest_timestamp == header.max_timestamp {
            return;
        }
        let fact = |timestamp: Option<TimestampMs>| Fact::Timestamp(timestamp.unwrap_or(TimestampMs(-1)));
        let mut finding = report.finding(FindingId::BatchTimestampMismatch);
        if header.is_legacy() && header.max_timestamp > self.largest_timestamp {
            // A wrapper whose youngest message is gone.
            finding.severity = Severity::Info;
        }
        out.push(finding.with_facts(fact(self.largest_timestamp), fact(header.max_timestamp)));
    }

    /// Checks the records of a control batch, and gives the marker if it ends a transaction.
    fn check_control(&self, report: &Reporter<'_>, out: &mut Vec<Finding>) -> Option<EndMarker> {
        let header = report.header;
        let first = self.control.first()?;
        let has_producer = header.producer_id.is_some_and(|id| id.0 >= 0);
        let malformed = |cause: FormatErrorKind| report.finding(FindingId::RecordMalformed).with_cause(cause);
        // With a producer a start that replays it fails, at every start.
        let severity = if has_producer { Severity::Critical } else { Severity::Warning };
        if let Some(fault) = &first.fault {
            out.push(malformed(fault.clone()).with_severity(report.context.log_severity(severity)));
        } else if let Some(type_id) = first.unknown_type {
            let cause = unknown_type(type_id);
            out.push(malformed(cause).with_severity(report.context.log_severity(severity)));
        } else if has_producer && first.marker.is_none() {
            let cause =
                FormatErrorKind::Mismatch { shape: Shape::ControlRecord, field: "type", expected: 1, found: -1 };
            out.push(malformed(cause).with_severity(report.context.log_severity(severity)));
        }
        if has_producer && first.marker.is_some() && self.count > 1 {
            let found = i64::try_from(self.count).unwrap_or(i64::MAX);
            out.push(malformed(FormatErrorKind::Mismatch {
                shape: Shape::ControlRecord,
                field: "recordsCount",
                expected: 1,
                found,
            }));
        }
        first.marker
    }
}

fn unknown_type(type_id: i16) -> FormatErrorKind {
    FormatErrorKind::UnknownValue { shape: Shape::ControlRecord, field: "type", found: i64::from(type_id) }
}

impl ControlSeen {
    fn of(record: &Record<'_>, numbering: ControlNumbering) -> Self {
        match ControlRecord::parse(record.key, record.value, numbering) {
            Err(error) => Self { marker: None, fault: Some(error.kind), unknown_type: None },
            Ok(control) => Self {
                marker: end_marker(&control, record),
                fault: control.fault.as_ref().map(|fault| fault.kind.clone()),
                unknown_type: match control.control_type {
                    ControlType::Unknown(id) => Some(id),
                    _ => None,
                },
            },
        }
    }
}

fn end_marker(control: &ControlRecord<'_>, record: &Record<'_>) -> Option<EndMarker> {
    let outcome = match control.control_type {
        ControlType::Abort => TransactionOutcome::Aborted,
        ControlType::Commit => TransactionOutcome::Committed,
        _ => return None,
    };
    let marker = control.end_txn_marker()?;
    let timestamp = record.timestamp.unwrap_or(TimestampMs(-1));
    Some(EndMarker { outcome, coordinator_epoch: marker.coordinator_epoch, timestamp })
}

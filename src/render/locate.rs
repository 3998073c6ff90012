//! Where an offset or an instant lies: a line, a walk that a person can follow, or JSON.

use std::fmt::Write;

use serde::Serialize;

use super::units;
use super::untrusted::{untrusted, untrusted_path};
use crate::format::{Offset, Position};
use crate::logdir::TopicPartition;
use crate::ops::locate::{Answer, BatchPlace, Query, Step, Verdict};

/// Columns of the drawing of a segment.
const BAR_COLUMNS: u64 = 60;
/// Passed batches that a walk names before it only counts them.
const NAMED_BATCHES: usize = 12;

/// The answer for one partition, as JSON has it.
#[derive(Serialize, Debug)]
pub struct AnswerJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    schema_version: Option<u32>,
    r#type: &'static str,
    query: QueryJson,
    log_dir: String,
    found: bool,
    exact: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic_base64: Option<String>,
    partition: i32,
    log_start_offset: i64,
    log_end_offset: i64,
    offset: Option<i64>,
    segment_base_offset: Option<i64>,
    index: Option<IndexJson>,
    scan: Option<ScanJson>,
    batch: Option<BatchJson>,
    record: Option<RecordJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<EpochJson>,
    findings: Vec<FindingJson>,
}

#[derive(Serialize, Debug, Default)]
struct QueryJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    leader_epoch: Option<i32>,
}

#[derive(Serialize, Debug)]
struct IndexJson {
    entry_offset: i64,
    entry_position: u64,
    entries: u64,
    probes: u64,
}

#[derive(Serialize, Debug)]
struct ScanJson {
    from_position: u64,
    to_position: u64,
    batches: u64,
}

#[derive(Serialize, Debug)]
struct BatchJson {
    position: u64,
    size_bytes: u64,
    base_offset: i64,
    last_offset: i64,
}

#[derive(Serialize, Debug)]
struct RecordJson {
    offset: i64,
    timestamp_ms: Option<i64>,
}

#[derive(Serialize, Debug)]
struct EpochJson {
    requested: i32,
    epoch: Option<i32>,
    end_offset: Option<i64>,
}

#[derive(Serialize, Debug)]
struct FindingJson {
    id: &'static str,
    severity: &'static str,
    path: String,
}

#[derive(Serialize, Debug)]
struct ResultsJson {
    schema_version: u32,
    r#type: &'static str,
    query: QueryJson,
    results: Vec<AnswerJson>,
}

impl QueryJson {
    fn of(query: Query) -> Self {
        let nothing = Self::default();
        match query {
            Query::Offset(offset) => Self { offset: Some(offset.0), ..nothing },
            Query::Timestamp(time) => Self { timestamp_ms: Some(time.0), ..nothing },
            Query::Earliest => Self { timestamp: Some("earliest"), ..nothing },
            Query::Latest => Self { timestamp: Some("latest"), ..nothing },
            Query::MaxTimestamp => Self { timestamp: Some("max"), ..nothing },
            Query::LeaderEpoch(epoch) => Self { leader_epoch: Some(epoch.0), ..nothing },
        }
    }
}

impl AnswerJson {
    fn of(answer: &Answer, schema_version: Option<u32>) -> Self {
        let (topic, topic_base64) = topic_json(&answer.topic_partition);
        Self {
            schema_version,
            r#type: "locate",
            query: QueryJson::of(answer.query),
            log_dir: answer.log_dir.to_string_lossy().into_owned(),
            found: answer.is_found(),
            exact: answer.is_exact(),
            topic,
            topic_base64,
            partition: answer.topic_partition.partition(),
            log_start_offset: answer.range.0.0,
            log_end_offset: answer.range.1.0,
            offset: answer.offset.map(|offset| offset.0),
            segment_base_offset: answer.segment_base_offset.map(|offset| offset.0),
            index: answer.index.map(|index| IndexJson {
                entry_offset: index.entry_offset.0,
                entry_position: index.entry_position.0,
                entries: index.entries,
                probes: index.probes,
            }),
            scan: answer.scan.map(|scan| ScanJson {
                from_position: scan.from_position.0,
                to_position: scan.to_position.0,
                batches: scan.batches,
            }),
            batch: answer.batch.map(|batch| BatchJson {
                position: batch.position.0,
                size_bytes: batch.size_bytes,
                base_offset: batch.base_offset.0,
                last_offset: batch.last_offset.0,
            }),
            record: answer.record.map(|record| RecordJson {
                offset: record.offset.0,
                timestamp_ms: record.timestamp.map(|time| time.0),
            }),
            epoch: answer.epoch.map(|epoch| EpochJson {
                requested: epoch.requested.0,
                epoch: epoch.epoch.map(|epoch| epoch.0),
                end_offset: epoch.end_offset.map(|offset| offset.0),
            }),
            findings: answer
                .findings
                .iter()
                .map(|finding| FindingJson {
                    id: finding.id.as_str(),
                    severity: finding.severity.name(),
                    path: finding.location.path.to_string_lossy().into_owned(),
                })
                .collect(),
        }
    }
}

fn topic_json(topic_partition: &TopicPartition) -> (Option<String>, Option<String>) {
    if let Some(topic) = topic_partition.topic_str() {
        return (Some(topic.to_owned()), None);
    }
    let mut encoded = Vec::new();
    super::base64::push_base64(&mut encoded, topic_partition.topic_bytes());
    (None, String::from_utf8(encoded).ok())
}

/// One answer as a document.
pub fn json(answer: &Answer) -> serde_json::Result<String> {
    serde_json::to_string(&AnswerJson::of(answer, Some(1)))
}

/// The answers of a log dir as a document.
pub fn json_results(query: Query, answers: &[Answer]) -> serde_json::Result<String> {
    let results = answers.iter().map(|answer| AnswerJson::of(answer, None)).collect();
    serde_json::to_string(&ResultsJson { schema_version: 1, r#type: "locate", query: QueryJson::of(query), results })
}

fn name(topic_partition: &TopicPartition) -> String {
    untrusted(topic_partition.dir_name().as_encoded_bytes())
}

fn log_name(base: Offset) -> String {
    format!("{base:0>20}.log", base = base.0)
}

/// One answer in a line.
pub fn line(answer: &Answer) -> String {
    let name = name(&answer.topic_partition);
    let (start, end) = answer.range;
    if let (Query::LeaderEpoch(requested), Some(epoch)) = (answer.query, answer.epoch) {
        return match (epoch.epoch, epoch.end_offset) {
            (Some(known), Some(offset)) if known == requested => {
                format!("{name}: epoch {requested} ends before offset {offset}")
            }
            (Some(known), Some(offset)) => {
                format!(
                    "{name}: epoch {requested} is not known; the one before it, {known}, ends before offset {offset}"
                )
            }
            _ => format!("{name}: epoch {requested} lies beyond every known epoch"),
        };
    }
    match (answer.query, answer.offset, &answer.batch) {
        (Query::Earliest, Some(offset), _) => format!("{name}: the log starts at offset {offset}"),
        (Query::Latest, Some(offset), _) => format!("{name}: the log ends before offset {offset}"),
        (query, Some(offset), Some(batch)) => {
            let segment = answer.segment_base_offset.map(log_name).unwrap_or_default();
            let time = answer
                .record
                .and_then(|record| record.timestamp)
                .map_or_else(|| "no timestamp".to_owned(), units::instant_utc);
            let inexact = match query {
                Query::Offset(wanted) if wanted != offset => format!(" (the first at or after {wanted})"),
                _ => String::new(),
            };
            format!(
                "{name}: offset {offset}{inexact}, {time}, in {segment}, batch {}..{} at position {} ({} B)",
                batch.base_offset, batch.last_offset, batch.position, batch.size_bytes
            )
        }
        (Query::Offset(wanted), _, _) if wanted < start || wanted >= end => {
            format!("{name}: offset {wanted} is out of range; the log holds {start} to {}", end.saturating_add(-1))
        }
        _ => format!("{name}: nothing found; the log holds {start} to {}", end.saturating_add(-1)),
    }
}

/// One answer with every step of the way.
pub fn explanation(answer: &Answer) -> String {
    let mut walk = Walk { text: String::new(), number: 0, passed: Vec::new(), probes: 0, size_bytes: 0 };
    for step in &answer.steps {
        walk.step(step, answer);
    }
    walk.flush_passed();
    let _ = writeln!(walk.text, "=> {}", line(answer));
    if let (Some(index), Some(scan)) = (answer.index, answer.scan) {
        let _ = writeln!(
            walk.text,
            "   cost: {} of {} index entries looked at, {} bytes of log ({} batches) read",
            index.probes,
            index.entries,
            scan.to_position.since(scan.from_position),
            scan.batches
        );
    }
    if let Some(batch) = answer.batch {
        draw(&mut walk.text, batch.position, walk.size_bytes);
    }
    for finding in &answer.findings {
        let _ = writeln!(
            walk.text,
            "   note: {} {}: {}; it was not used",
            untrusted_path(&finding.location.path),
            finding.id.as_str(),
            finding.id.meaning()
        );
    }
    walk.text
}

struct Walk {
    text: String,
    number: u32,
    passed: Vec<BatchPlace>,
    probes: u64,
    size_bytes: u64,
}

impl Walk {
    fn head(&mut self, text: &str) {
        self.flush_passed();
        self.number += 1;
        let _ = writeln!(self.text, "{}. {text}", self.number);
    }

    fn detail(&mut self, text: &str) {
        let _ = writeln!(self.text, "     {text}");
    }

    fn flush_passed(&mut self) {
        let passed = std::mem::take(&mut self.passed);
        for batch in passed.iter().take(NAMED_BATCHES) {
            self.detail(&format!("batch {} at {}: not yet", offsets(batch), batch.position));
        }
        if passed.len() > NAMED_BATCHES {
            self.detail(&format!("... and {} more batches", units::count((passed.len() - NAMED_BATCHES) as u64)));
        }
    }

    fn step(&mut self, step: &Step, answer: &Answer) {
        match step {
            Step::Range { log_start_offset, log_end_offset } => {
                let name = name(&answer.topic_partition);
                self.head(&format!("{name} holds offsets {log_start_offset} to {}", log_end_offset.saturating_add(-1)));
            }
            Step::Segment { base_offset, segments, next_base_offset, largest_timestamp, size_bytes } => {
                self.size_bytes = *size_bytes;
                let why = match (largest_timestamp, next_base_offset) {
                    (Some(time), _) => format!(
                        "the first of {segments} whose largest timestamp ({}) will do",
                        units::instant_utc(*time)
                    ),
                    (None, Some(next)) => {
                        format!("of {segments} segments, the one from {base_offset} to before {next}")
                    }
                    (None, None) => format!("of {segments} segments, the last one, from {base_offset} on"),
                };
                self.head(&format!("segment {}: {why}; {size_bytes} bytes", log_name(*base_offset)));
                self.probes = 0;
            }
            Step::TimeProbe { slot, timestamp, offset, verdict } => {
                if self.probes == 0 {
                    self.head("time index, binary search for the last entry not above the instant");
                }
                self.probes += 1;
                self.detail(&format!(
                    "probe {}: entry {slot} ({}, {offset}) {}",
                    self.probes,
                    units::instant_utc(*timestamp),
                    said(*verdict)
                ));
            }
            Step::TimeFloor { timestamp: Some(time), offset } => {
                self.detail(&format!("up to offset {offset} the largest timestamp is {}", units::instant_utc(*time)));
                self.probes = 0;
            }
            Step::TimeFloor { timestamp: None, offset } => {
                self.head(&format!("time index: no entry at or before the instant, so from offset {offset} on"));
                self.probes = 0;
            }
            Step::OffsetProbe { slot, offset, position, verdict } => {
                if self.probes == 0 {
                    self.head("offset index, binary search for the last entry not above the offset");
                }
                self.probes += 1;
                self.detail(&format!("probe {}: entry {slot} ({offset}, {position}) {}", self.probes, said(*verdict)));
            }
            Step::OffsetFloor { offset, position } => {
                if *position == Position(0) {
                    self.head("log, read from its start");
                } else {
                    self.detail(&format!(
                        "entry ({offset}, {position}): no batch before position {position} can hold it"
                    ));
                    self.head(&format!("log, read from position {position}"));
                }
                self.probes = 0;
            }
            Step::IndexPassedOver => self.head("an index of this segment is not sound and is passed over"),
            Step::Passed(batch) => self.passed.push(*batch),
            Step::Reached(batch) => {
                self.flush_passed();
                self.detail(&format!("batch {} at {}: here", offsets(batch), batch.position));
            }
            Step::NoRecordIn(batch) => {
                self.detail(&format!("batch {} has no record that will do: on behind it", offsets(batch)));
            }
            Step::NextSegment(base) => self.head(&format!("nothing in this segment; the next one starts at {base}")),
        }
    }
}

fn offsets(batch: &BatchPlace) -> String {
    format!("{}..{}", batch.base_offset, batch.last_offset)
}

fn said(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::TooHigh => "lies above: go left",
        Verdict::NotAbove => "does not: go right",
    }
}

/// A line for the segment and a mark for the place.
fn draw(text: &mut String, position: Position, size_bytes: u64) {
    if size_bytes == 0 {
        return;
    }
    let column = u128::from(position.0) * u128::from(BAR_COLUMNS) / u128::from(size_bytes);
    let column = usize::try_from(column).unwrap_or(0).min(usize::try_from(BAR_COLUMNS).unwrap_or(1).saturating_sub(1));
    let rest = usize::try_from(BAR_COLUMNS).unwrap_or(1).saturating_sub(column).saturating_sub(1);
    let percent = u128::from(position.0) * 100 / u128::from(size_bytes);
    let _ = writeln!(text, "   0 |{}#{}| {size_bytes}", "-".repeat(column), "-".repeat(rest));
    let _ = writeln!(text, "      {}^ position {position}, {percent} % into the file", " ".repeat(column));
}

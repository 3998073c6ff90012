//! Every batch that brokers, clients of eight languages and the generator of odd kinds wrote, read as Kafka reads it: records,
//! offsets, times, and which batches are refused.

use std::path::{Path, PathBuf};

use segtool::format::compression::{Codec, CodecOddity, Decompressor, Lz4Checksum};
use segtool::format::legacy::{InnerRecordStream, LegacyMessage, LegacyRecord, Wrapper, read_facts};
use segtool::format::record::{Record, RecordStream, Records};
use segtool::format::{Batch, BatchHeader, Batches, FormatErrorKind, Position, Shape, TimestampType};
use serde_json::Value;

use crate::support::{files_below, json, packs, sha256_hex};

const WHOLE: u64 = 4 << 20;
const STREAMED: u64 = 256 << 20;

/// A record in the terms of the recorded truth.
#[derive(PartialEq, Debug)]
struct Seen {
    offset: i64,
    timestamp: i64,
    timestamp_type: TimestampType,
    key: Option<Bytes>,
    value: Option<Bytes>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

/// Bytes, or length and digest where the truth has no more.
#[derive(PartialEq, Debug)]
enum Bytes {
    All(Vec<u8>),
    Digest(u64, String),
}

impl Bytes {
    /// The digest stands for everything above a size that differs between the recordings.
    fn of(bytes: &[u8]) -> Self {
        if bytes.len() > 1000 { Self::Digest(bytes.len() as u64, sha256_hex(bytes)) } else { Self::All(bytes.to_vec()) }
    }

    fn from_truth(line: &Value, name: &str) -> Option<Self> {
        if let (Some(length), Some(sha256)) =
            (line[format!("{name}Length")].as_u64(), line[format!("{name}Sha256")].as_str())
        {
            return Some(Self::Digest(length, sha256.to_owned()));
        }
        match &line[name] {
            Value::String(text) => Some(Self::of(&json::base64(text))),
            Value::Object(digest) => {
                Some(Self::Digest(digest["length"].as_u64().unwrap(), digest["sha256"].as_str().unwrap().to_owned()))
            }
            _ => None,
        }
    }
}

impl Seen {
    fn of(record: &Record<'_>, header: &BatchHeader) -> Self {
        Self {
            offset: record.offset.0,
            timestamp: record.timestamp.map_or(-1, |t| t.0),
            timestamp_type: header.timestamp_type(),
            key: record.key.map(Bytes::of),
            value: record.value.map(Bytes::of),
            headers: record
                .headers
                .iter()
                .map(|h| (String::from_utf8_lossy(h.key).into_owned(), h.value.map(<[u8]>::to_vec)))
                .collect(),
        }
    }

    /// The recorded type is the batch's where it says so.
    fn of_legacy(record: &LegacyRecord<'_>, batch: &BatchHeader) -> Self {
        Self {
            offset: record.offset.0,
            timestamp: record.timestamp.map_or(-1, |t| t.0),
            timestamp_type: if record.inner_position.is_some() && record.message.magic != batch.magic {
                batch.timestamp_type()
            } else {
                record.timestamp_type
            },
            key: record.key.map(Bytes::of),
            value: record.value.map(Bytes::of),
            headers: vec![],
        }
    }

    fn from_truth(line: &Value) -> Self {
        let kind = line.get("timestampType").or(line.get("batchTimestampType")).and_then(Value::as_str).unwrap();
        Self {
            offset: line["offset"].as_i64().unwrap(),
            timestamp: line["timestamp"].as_i64().unwrap(),
            timestamp_type: match kind {
                "CreateTime" => TimestampType::CreateTime,
                "LogAppendTime" => TimestampType::LogAppendTime,
                _ => TimestampType::None,
            },
            key: Bytes::from_truth(line, "key"),
            value: Bytes::from_truth(line, "value"),
            headers: line["headers"]
                .as_array()
                .unwrap()
                .iter()
                .map(|h| (h[0].as_str().unwrap().to_owned(), h[1].as_str().map(json::base64)))
                .collect(),
        }
    }
}

type Outcome = Result<Vec<Seen>, String>;

fn codec_of(header: &BatchHeader) -> Result<Codec, String> {
    let id = header.attributes.codec_id();
    Codec::from_id(id).ok_or_else(|| format!("unknown codec {id}"))
}

fn read_whole(batch: &Batch<'_>, decompressor: &mut Decompressor) -> Result<Vec<Seen>, segtool::format::FormatError> {
    let header = batch.header();
    if header.is_legacy() {
        let message = LegacyMessage::parse(batch.bytes(), header.position, Shape::LegacyMessage)?;
        return match Wrapper::of(&message)? {
            None => Ok(vec![Seen::of_legacy(&LegacyRecord::alone(message), header)]),
            Some(wrapper) => {
                let set = wrapper.decode(decompressor, WHOLE)?;
                set.records().map(|record| record.map(|r| Seen::of_legacy(&r, header))).collect()
            }
        };
    }
    let codec = codec_of(header).unwrap();
    let content = decompressor.decompress(codec, Lz4Checksum::Verified, batch.records_bytes(), WHOLE)?.bytes;
    Records::new(header, content)?.map(|record| record.map(|r| Seen::of(&r, header))).collect()
}

fn read_streamed(batch: &Batch<'_>, decompressor: &mut Decompressor) -> Outcome {
    let header = batch.header();
    let mut seen = Vec::new();
    if header.is_legacy() {
        let message = LegacyMessage::parse(batch.bytes(), header.position, Shape::LegacyMessage).map_err(text)?;
        let Some(wrapper) = Wrapper::of(&message).map_err(text)? else {
            return Ok(vec![Seen::of_legacy(&LegacyRecord::alone(message), header)]);
        };
        let (codec, lz4) = (wrapper.codec(), wrapper.lz4_checksum());
        let facts =
            read_facts(&message, decompressor.stream(codec, lz4, wrapper.compressed(), STREAMED)).map_err(text)?;
        let content = decompressor.stream(codec, lz4, wrapper.compressed(), STREAMED);
        let mut records = InnerRecordStream::new(&message, &facts, content, STREAMED);
        while let Some(record) = records.next_record().map_err(text)? {
            seen.push(Seen::of_legacy(&record, header));
        }
        return Ok(seen);
    }
    let content = decompressor.stream(codec_of(header)?, Lz4Checksum::Verified, batch.records_bytes(), STREAMED);
    let mut records = RecordStream::new(header, content, STREAMED).map_err(text)?;
    while let Some(record) = records.next_record().map_err(text)? {
        seen.push(Seen::of(&record, header));
    }
    Ok(seen)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// What both ways of reading come to; they must agree on what a batch holds and on whether it can be read.
fn read(batch: &Batch<'_>, decompressor: &mut Decompressor) -> Outcome {
    let streamed = read_streamed(batch, decompressor);
    if !batch.header().is_legacy() {
        codec_of(batch.header())?;
    }
    match read_whole(batch, decompressor) {
        Ok(seen) => assert_eq!(streamed.as_ref(), Ok(&seen)),
        Err(error) if error.kind == (FormatErrorKind::LimitReached { limit: WHOLE }) => {}
        Err(error) => assert!(streamed.is_err(), "whole: {error}, streamed: fine"),
    }
    streamed
}

fn logs(partition: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(partition).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    found.sort();
    found
}

/// The truth files of a case that name records, with their partition directories.
fn record_truths(case: &Path) -> Vec<(PathBuf, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(case.join("truth")) else { return vec![] };
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if let Some(partition) = name.strip_prefix("records-").and_then(|rest| rest.strip_suffix(".jsonl")) {
            found.push((path, case.join("dir").join(partition)));
        }
    }
    found.sort();
    found
}

#[test]
fn every_recorded_record_is_read_as_kafka_reads_it() {
    let mut decompressor = Decompressor::new();
    let mut compared = 0;
    for family in ["eras", "clients", "odd"] {
        for case in packs::cases(family) {
            for (truth, partition) in record_truths(&case) {
                let expected: Vec<Seen> = json::lines_of(&truth).iter().map(Seen::from_truth).collect();
                let mut seen = Vec::new();
                'logs: for log in logs(&partition) {
                    let data = std::fs::read(&log).unwrap();
                    for batch in Batches::new(&data, Position(0)) {
                        let Ok(batch) = batch else { break 'logs };
                        // Kafka's reader looks at the checksum first, and stops for good where it cannot go on.
                        if !batch.crc_matches() {
                            break 'logs;
                        }
                        match read(&batch, &mut decompressor) {
                            Ok(records) => seen.extend(records),
                            Err(_) => break 'logs,
                        }
                    }
                }
                assert_eq!(seen.len(), expected.len(), "{}", truth.display());
                for (seen, expected) in seen.iter().zip(&expected) {
                    assert_eq!(seen, expected, "{}", truth.display());
                }
                compared += expected.len();
            }
        }
    }
    assert!(compared > 9000, "only {compared} records were compared");
}

#[test]
fn the_odd_batches_that_kafka_refuses_are_refused_and_no_others() {
    let mut decompressor = Decompressor::new();
    let mut compared = 0;
    for case in packs::cases("odd") {
        let Ok(reads) = std::fs::read(case.join("truth/reads.json")) else { continue };
        let reads: Value = serde_json::from_slice(&reads).unwrap();
        let each = reads["4.4.0"]["each"].as_array().unwrap();
        let [log] = logs(&case.join("dir/odd-0")).try_into().unwrap();
        let data = std::fs::read(log).unwrap();
        for expected in each {
            let position = expected["position"].as_u64().unwrap();
            let batch = Batch::parse(&data[usize::try_from(position).unwrap()..], Position(position)).unwrap();
            let outcome = read(&batch, &mut decompressor);
            let place = format!("{} at {position}", case.display());
            if let Some(error) = expected["error"].as_str() {
                assert!(outcome.is_err(), "{place}: Kafka says {error}");
            } else {
                let count = outcome.map(|records| records.len() as u64);
                assert_eq!(count, Ok(expected["records"].as_u64().unwrap()), "{place}");
            }
            compared += 1;
        }
    }
    assert!(compared > 200, "only {compared} batches were compared");
}

/// Everything odd about a batch that can be read, by name.
fn oddities(batch: &Batch<'_>, decompressor: &mut Decompressor) -> Vec<String> {
    let header = batch.header();
    if !header.is_legacy() {
        let codec = if header.records_count == Some(0) { Codec::None } else { codec_of(header).unwrap() };
        let done = decompressor.decompress(codec, Lz4Checksum::Verified, batch.records_bytes(), STREAMED).unwrap();
        return done
            .oddities
            .iter()
            .filter(|o| **o != CodecOddity::SnappyWithoutHeader)
            .map(|o| format!("{o:?}"))
            .collect();
    }
    let message = LegacyMessage::parse(batch.bytes(), header.position, Shape::LegacyMessage).unwrap();
    let Some(wrapper) = Wrapper::of(&message).unwrap() else {
        return LegacyRecord::alone(message).oddities().map(|o| format!("{o:?}")).collect();
    };
    let set = wrapper.decode(decompressor, STREAMED).unwrap();
    let codec = set.codec_oddities().iter();
    let codec = codec.filter(|o| !matches!(o, CodecOddity::OldLz4HeaderChecksum { .. })).map(|o| format!("{o:?}"));
    let records = set.records().flat_map(|r| r.unwrap().oddities());
    codec.chain(set.facts().oddities.iter().copied().chain(records).map(|o| format!("{o:?}"))).collect()
}

#[test]
fn nothing_is_odd_about_what_brokers_and_clients_wrote_but_bare_snappy_and_old_checksums() {
    let mut decompressor = Decompressor::new();
    let mut looked_at = 0;
    for family in ["eras", "clients", "modern-2.8.2", "modern-3.9.1", "modern-4.x", "internal"] {
        let root = packs::unpacked(family);
        let files = files_below(&root);
        for log in files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "log")) {
            let data = std::fs::read(root.join(log)).unwrap();
            for batch in Batches::new(&data, Position(0)).map_while(Result::ok).take_while(Batch::crc_matches) {
                let odd = oddities(&batch, &mut decompressor);
                assert!(odd.is_empty(), "{} at {}: {odd:?}", log.display(), batch.header().position);
                looked_at += 1;
            }
        }
    }
    assert!(looked_at > 10_000, "only {looked_at} batches were looked at");
}

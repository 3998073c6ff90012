//! Logs by what they say, not by their bytes: for batches that were compressed anew, by another library than Kafka's.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use segtool::format::record::Record;
use segtool::format::{Batches, Position, TimestampType};
use segtool::ops::RecordReader;

/// The lines of a recorded listing, without the places, sizes and checksums of batches.
pub(crate) fn recorded(listing: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for line in listing.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[0] {
            // Kind, file, (position, size), magic ... control, (checksum); base timestamps go with them.
            "B" => {
                let line = [&["B", fields[1]][..], &fields[4..11], &fields[12..19]].concat().join(" ");
                // Older versions have no delete horizons.
                lines.push(line.replace(" n/a ", " none "));
            }
            "R" => lines.push(fields.join(" ")),
            _ => {}
        }
    }
    lines
}

/// The same of log files.
pub(crate) fn decoded(files: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut reader = RecordReader::default();
    for (name, bytes) in files.iter().filter(|(name, _)| name.strip_suffix(".log").is_some()) {
        for batch in Batches::new(bytes, Position(0)) {
            let batch = batch.unwrap();
            assert!(batch.crc_matches(), "{name}");
            let header = *batch.header();
            let mut records = Vec::new();
            let content = reader
                .read_whole(&batch, &mut |record: &Record<'_>| {
                    records.push(record_line(record));
                    ControlFlow::Continue(())
                })
                .unwrap();
            let base = content.wrapper.map_or(header.base_offset, |wrapper| wrapper.base_offset);
            let count = header.records_count.map_or("null".to_owned(), |count| count.to_string());
            let codec = ["none", "gzip", "snappy", "lz4", "zstd"][usize::from(header.attributes.codec_id())];
            let time = match header.timestamp_type() {
                TimestampType::None => "NoTimestampType",
                TimestampType::CreateTime => "CreateTime",
                TimestampType::LogAppendTime => "LogAppendTime",
            };
            let horizon = header.delete_horizon().map_or("none".to_owned(), |time| time.to_string());
            let raw = |value: Option<i64>| value.unwrap_or(-1).to_string();
            lines.push(
                [
                    "B",
                    name,
                    &header.magic.to_string(),
                    &base.to_string(),
                    &header.last_offset.to_string(),
                    &count,
                    codec,
                    time,
                    &raw(header.max_timestamp.map(|time| time.0)),
                    &horizon,
                    &raw(header.producer_id.map(|id| id.0)),
                    &raw(header.producer_epoch.map(|epoch| epoch.0.into())),
                    &raw(header.base_sequence.map(|sequence| sequence.0.into())),
                    &raw(header.leader_epoch.map(|epoch| epoch.0.into())),
                    &header.is_transactional().to_string(),
                    &header.is_control().to_string(),
                ]
                .join(" "),
            );
            lines.append(&mut records);
        }
    }
    lines
}

fn record_line(record: &Record<'_>) -> String {
    let headers: Vec<String> = record
        .headers
        .iter()
        .map(|header| format!("{}={}", String::from_utf8_lossy(header.key), hex(header.value)))
        .collect();
    let headers = if headers.is_empty() { "-".to_owned() } else { headers.join(",") };
    let sequence = record.sequence.map_or(-1, |sequence| sequence.0);
    let time = record.timestamp.map_or(-1, |time| time.0);
    format!("R {} {time} {} {} {sequence} {headers}", record.offset, hex(record.key), hex(record.value))
}

fn hex(bytes: Option<&[u8]>) -> String {
    let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match bytes {
        None => "null".to_owned(),
        Some([]) => "-".to_owned(),
        Some(bytes) if bytes.len() <= 24 => digits(bytes),
        Some(bytes) => format!("sha256/{}:{}", bytes.len(), &crate::support::sha256_hex(bytes)[..24]),
    }
}

//! The JSON of every command is what segtool-json(5) says: no field is missing from the page, none is there by another type.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::support::{packs, run, run_at, testdata};

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there to be parsed")]
struct Decoded {
    key: Option<DecodedSide>,
    value: Option<DecodedSide>,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there to be parsed")]
struct DecodedSide {
    r#type: Option<String>,
    version: Option<i16>,
    version_known: Option<bool>,
    layout_of: Option<String>,
    trailing_bytes: Option<u64>,
    data: Option<serde_json::Map<String, Value>>,
    error: Option<String>,
}

/// A line of `dump`. Unknown fields fail the test, so that a new one is described before it is printed.
#[derive(Deserialize, Debug)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[expect(dead_code, clippy::large_enum_variant, reason = "the fields are there to be parsed")]
enum DumpLine {
    Record {
        topic: Option<String>,
        topic_base64: Option<String>,
        partition: Option<i32>,
        segment_base_offset: i64,
        position: u64,
        offset: i64,
        timestamp_ms: Option<i64>,
        timestamp_type: String,
        leader_epoch: Option<i32>,
        producer_id: Option<i64>,
        producer_epoch: Option<i16>,
        sequence: Option<i32>,
        transactional: bool,
        control: Option<String>,
        compression: String,
        key: Option<String>,
        key_base64: Option<String>,
        key_hex: Option<String>,
        key_digest: Option<String>,
        key_size_bytes: Option<u64>,
        value: Option<String>,
        value_base64: Option<String>,
        value_hex: Option<String>,
        value_digest: Option<String>,
        value_size_bytes: Option<u64>,
        headers: Vec<Header>,
        decoded: Option<Decoded>,
    },
    Batch {
        topic: Option<String>,
        topic_base64: Option<String>,
        partition: Option<i32>,
        segment_base_offset: i64,
        position: u64,
        size_bytes: u64,
        magic: i8,
        base_offset: i64,
        last_offset: i64,
        last_offset_delta: Option<i32>,
        records_count: Option<i64>,
        crc: String,
        crc_valid: bool,
        attributes: i16,
        compression: String,
        timestamp_type: String,
        base_timestamp_ms: Option<i64>,
        max_timestamp_ms: Option<i64>,
        delete_horizon_ms: Option<i64>,
        leader_epoch: Option<i32>,
        producer_id: Option<i64>,
        producer_epoch: Option<i16>,
        base_sequence: Option<i32>,
        last_sequence: Option<i32>,
        transactional: bool,
        control: bool,
    },
    Damage {
        id: String,
        log_dir: Option<String>,
        log_dir_base64: Option<String>,
        topic: Option<String>,
        topic_base64: Option<String>,
        partition: Option<i32>,
        path: Option<String>,
        path_base64: Option<String>,
        position: Option<u64>,
        size_bytes: Option<u64>,
        first_offset: Option<i64>,
        last_offset: Option<i64>,
        expected: Value,
        found: Value,
        message: String,
    },
    Summary {
        batches: u64,
        records: u64,
        bytes: u64,
        damage: u64,
        complete: bool,
    },
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there to be parsed")]
struct Header {
    key: Option<String>,
    key_base64: Option<String>,
    value: Option<String>,
    value_base64: Option<String>,
    value_hex: Option<String>,
    value_digest: Option<String>,
    value_size_bytes: Option<u64>,
}

/// The words that segtool-json(5) sets in bold: the names of fields among them.
pub(crate) fn described_fields() -> BTreeSet<String> {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("man/segtool-json.5")).unwrap();
    page.lines()
        .filter(|line| {
            line.starts_with(".B") || line.starts_with(".RB") || line.starts_with(".SS") || line.starts_with(".TP")
        })
        .flat_map(|line| {
            line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

/// Every name of a field in a document, at any depth.
pub(crate) fn fields_of(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                into.insert(name.clone());
                fields_of(value, into);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| fields_of(value, into)),
        _ => {}
    }
}

/// The document of `verify`.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there to be parsed")]
struct VerifyDocument {
    schema_version: u32,
    r#type: String,
    complete: bool,
    live: bool,
    files: Vec<VerifiedFile>,
    findings: Vec<VerifyFinding>,
    summary: VerifySummary,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there to be parsed")]
struct VerifiedFile {
    log_dir: String,
    topic: Option<String>,
    partition: Option<i32>,
    path: String,
    kind: String,
    size_bytes: u64,
    checked_bytes: u64,
    skipped_bytes: u64,
    unreadable_bytes: u64,
    batches: u64,
    records: u64,
    first_offset: Option<i64>,
    last_offset: Option<i64>,
    behind_damage: Option<BehindDamage>,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there to be parsed")]
struct BehindDamage {
    batches: u64,
    records: u64,
    first_offset: Option<i64>,
    last_offset: Option<i64>,
    size_bytes: u64,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there to be parsed")]
struct VerifyFinding {
    id: String,
    severity: String,
    log_dir: String,
    topic: Option<String>,
    partition: Option<i32>,
    path: String,
    position: Option<u64>,
    size_bytes: Option<u64>,
    first_offset: Option<i64>,
    last_offset: Option<i64>,
    expected: Value,
    found: Value,
    message: String,
    repair: String,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there to be parsed")]
struct VerifySummary {
    partitions: u64,
    segments: u64,
    files: u64,
    batches: u64,
    records: u64,
    bytes: u64,
    findings: BySeverity,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there to be parsed")]
struct BySeverity {
    critical: u64,
    error: u64,
    warning: u64,
    info: u64,
}

/// The document of `compact`.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there to be parsed")]
struct CompactDocument {
    schema_version: u32,
    r#type: String,
    mode: String,
    kafka_version: String,
    recorded: bool,
    digest: Option<String>,
    undo_id: Option<String>,
    complete: bool,
    partitions: Vec<CompactPartition>,
    findings: Vec<Value>,
    summary: Value,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there to be parsed")]
struct CompactPartition {
    log_dir: String,
    topic: String,
    partition: i32,
    steps: Vec<Value>,
    accounting: Value,
    gaps: Vec<(i64, i64)>,
    blockers: Vec<Value>,
    first_dirty_offset: i64,
    first_uncleanable_offset: i64,
    clean_bytes: u64,
    cleanable_bytes: u64,
    dirty_ratio: Option<f64>,
    overdue_ms: i64,
    checkpoint_offset: Option<i64>,
    rounds: Vec<CompactRound>,
    if_cleaned: Option<CompactRound>,
    segments: Vec<CompactSegment>,
    uncleanable: Option<Uncleanable>,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there to be parsed")]
struct CompactRound {
    first_dirty_offset: i64,
    first_uncleanable_offset: i64,
    end_offset: i64,
    map_keys: u64,
    map_capacity: u64,
    map_complete: bool,
    bytes_before: u64,
    bytes_after: u64,
    groups: Vec<Value>,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there to be parsed")]
struct CompactSegment {
    base_offset: i64,
    into: i64,
    bytes_in: u64,
    bytes_kept: u64,
    records_in: u64,
    records_kept: u64,
    dropped: Value,
    batches_in: u64,
    batches_copied: u64,
    batches_rewritten: u64,
    batches_emptied: u64,
    crc_mismatches: u64,
    unlisted_aborts: u64,
    tombstones: CompactWaiting,
    markers: CompactWaiting,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there to be parsed")]
struct CompactWaiting {
    kept: u64,
    stamped_now: u64,
    unstamped: u64,
    removable: Vec<Value>,
    removable_later: u64,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there to be parsed")]
struct Uncleanable {
    segment_base_offset: Option<i64>,
    position: u64,
    reason: String,
}

#[test]
fn verify_prints_the_fields_that_are_described_and_no_other() {
    let described = described_fields();
    let inputs = std::fs::read_dir(testdata("damaged")).unwrap().map(|entry| entry.unwrap().path().join("dir"));
    let damaged = testdata("real/4.4.0/shop-damaged");
    let mut looked_at = 0;
    for path in inputs.filter(|path| path.is_dir()).chain([damaged]) {
        let output = run_at(1_800_000_000_000, ["verify", "--format", "json", path.to_str().unwrap()]);
        let document = output.json();
        let parsed: VerifyDocument =
            serde_json::from_value(document.clone()).unwrap_or_else(|error| panic!("{error}\n{output}"));
        assert!(!parsed.files.is_empty(), "{}", path.display());
        let mut fields = BTreeSet::new();
        fields_of(&document, &mut fields);
        let missing: Vec<_> = fields.difference(&described).collect();
        assert!(missing.is_empty(), "segtool-json(5) does not say what these are: {missing:?}");
        let words = document["files"].as_array().unwrap().iter().map(|file| file["kind"].as_str().unwrap().to_owned());
        let unknown: Vec<_> = words.filter(|word| !described.contains(word)).collect();
        assert!(unknown.is_empty(), "segtool-json(5) does not name the kinds {unknown:?}");
        looked_at += 1;
    }
    assert!(looked_at > 80, "{looked_at}");
}

#[test]
fn compact_prints_the_fields_that_are_described_and_no_other() {
    let described = described_fields();
    let mut seen = BTreeSet::new();
    for name in ["tombstone-r2", "ratio-exactly-half", "truncated-tail", "null-key", "bad-crc", "txn-abort-r1"] {
        let path = packs::case("compaction", name).join("before");
        let output = run_at(
            1_700_000_009_999,
            ["compact", "--explain", "--format", "json", "--min-cleanable-dirty-ratio", "0.5", path.to_str().unwrap()],
        );
        let document = output.json();
        serde_json::from_value::<CompactDocument>(document.clone()).unwrap_or_else(|error| panic!("{error}\n{output}"));
        fields_of(&document, &mut seen);
    }
    let missing: Vec<_> = seen.difference(&described).collect();
    assert!(missing.is_empty(), "segtool-json(5) does not say what these are: {missing:?}");
    assert!(seen.contains("removable") && seen.contains("if_cleaned") && seen.contains("uncleanable"));
}

#[test]
fn dump_prints_the_fields_that_are_described_and_no_other() {
    let described = described_fields();
    let shop = testdata("real/4.4.0/shop");
    let damaged = testdata("real/4.4.0/shop-damaged");
    let legacy = packs::case("eras", "1.1.1/era-upgrade-0.9.0.1-0.10.2.2-1.1.1").join("dir");
    let mut seen = BTreeSet::new();
    for path in [&shop, &damaged, &legacy] {
        for payload in ["auto", "hex", "base64", "redacted", "none"] {
            let path = path.to_str().unwrap();
            let output = run([
                "dump",
                "--format",
                "json",
                "--decode",
                "none",
                "--records",
                "--batches",
                "--payload",
                payload,
                path,
            ]);
            for line in output.text().lines() {
                let _: DumpLine = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
                let object: Value = serde_json::from_str(line).unwrap();
                seen.insert(object["type"].as_str().unwrap().to_owned());
                let mut fields = BTreeSet::new();
                fields_of(&object, &mut fields);
                let missing: Vec<_> = fields.difference(&described).collect();
                assert!(missing.is_empty(), "segtool-json(5) does not name {missing:?}");
            }
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["batch", "damage", "record", "summary"]);
}

#[test]
fn decoded_records_have_the_members_that_are_described() {
    let case = packs::case("internal", "4.4.0/internal-groups").join("dir");
    let output = run(["dump", "--format", "json", case.to_str().unwrap()]);
    let mut decoded_count = 0;
    for line in output.text().lines() {
        let parsed: DumpLine = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        decoded_count += usize::from(matches!(parsed, DumpLine::Record { decoded: Some(_), .. }));
    }
    assert!(decoded_count > 100, "{decoded_count}");
    let described = described_fields();
    for member in ["decoded", "data", "version", "version_known", "layout_of", "trailing_bytes", "error", "_tagged"] {
        assert!(described.contains(member), "segtool-json(5) does not name {member}");
    }
}

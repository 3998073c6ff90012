//! Random logs against the model, against themselves, and against the words of consumers.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use segtool::format::record::Record as ReadRecord;
use segtool::format::{Batches, Offset, Position, TimestampMs};
use segtool::logdir::IoMode;
use segtool::ops::broker::index_rules::IndexSettings;
use segtool::ops::broker::{RecordFormat, Rules};
use segtool::ops::compact::{
    CleanedPartition, CleanerSettings, CompactOptions, DigestKey, Purpose, Rounds, UnkeyedRecords, clean_partition,
};
use segtool::ops::{Hidden, PartitionImage, RecordReader};

use super::model::{Circumstances, Era, Model, ModelBatch, ModelRecord, ModelSegment};
use super::recording::{bytes_of, input_of};
use crate::support::{Sandbox, set_modified};
use crate::synth::control::Marker;
use crate::synth::random::partition_of;
use crate::synth::{Batch, LogDir, Partition, Record, T, Unit};

/// When the first segment was modified; each later one a second later.
const MODIFIED: i64 = T + 1_000_000;

/// A round as it is asked for; offsets as shares of what there is.
#[derive(Clone, Debug)]
struct Asked {
    dirty_from: usize,
    high_watermark: usize,
    now_ms: i64,
    delete_retention_ms: i64,
    producer_expiration_ms: i64,
    map_slots: u64,
    segment_bytes: u64,
    part_bytes: u64,
    made_bytes: u64,
}

fn asked() -> impl Strategy<Value = Asked> {
    let dirty_from = prop_oneof![3 => Just(0usize), 1 => 0..8usize];
    let high_watermark = prop_oneof![3 => Just(usize::MAX), 1 => 0..60usize];
    (
        dirty_from,
        high_watermark,
        0..200_000i64,
        select(vec![0i64, 1_000, 60_000, i64::MAX]),
        select(vec![1i64, 100_000, 86_400_000]),
        prop_oneof![4 => Just(1000u64), 2 => 2..12u64],
        select(vec![300u64, 1_000, 1 << 20]),
        select(vec![1u64, 300, 1 << 20]),
        select(vec![0u64, 200, 1 << 20]),
    )
        .prop_map(
            |(
                dirty_from,
                high_watermark,
                now,
                delete_retention_ms,
                expiration,
                map_slots,
                segment_bytes,
                part_bytes,
                made_bytes,
            )| Asked {
                dirty_from,
                high_watermark,
                now_ms: T + now,
                delete_retention_ms,
                producer_expiration_ms: expiration,
                map_slots,
                segment_bytes,
                part_bytes,
                made_bytes,
            },
        )
}

/// Few keys, so that they meet; some empty, some absent.
fn record() -> BoxedStrategy<Record> {
    let key = prop_oneof![
        12 => (0..6u8).prop_map(|key| Some(vec![b'k', key])),
        1 => Just(Some(Vec::new())),
        1 => Just(None),
    ];
    let value = prop_oneof![3 => vec(any::<u8>(), 0..30).prop_map(Some), 1 => Just(None)];
    let headers = vec((vec(b'a'..b'd', 0..4), proptest::option::of(vec(any::<u8>(), 0..5))), 0..2);
    (key, value, headers, -5_000..5_000_i64)
        .prop_map(|(key, value, headers, timestamp_ms)| Record {
            key,
            value,
            headers,
            timestamp_ms,
            ..Record::default()
        })
        .boxed()
}

fn era() -> impl Strategy<Value = Era> {
    select(vec![Era::V2_8, Era::V3_9, Era::V4_3, Era::V4_4, Era::V4_4])
}

/// A log, written, with the times of its segments set.
fn written(partition: &Partition) -> Sandbox {
    let sandbox = Sandbox::empty();
    LogDir::new([partition.clone()]).write(sandbox.path());
    for segment in &partition.segments {
        for kind in ["log", "index", "timeindex"] {
            let name = format!("{}/{:020}.{kind}", partition.name(), segment.base_offset);
            set_modified(
                &sandbox.join(name),
                UNIX_EPOCH + Duration::from_millis(modified(segment.base_offset).unsigned_abs()),
            );
        }
    }
    sandbox
}

fn modified(base: i64) -> i64 {
    MODIFIED + base * 1_000
}

fn options(asked: &Asked, era: Era, first_dirty: i64, high_watermark: i64) -> CompactOptions {
    CompactOptions {
        rules: Rules::of(era.version().parse().unwrap()),
        settings: CleanerSettings {
            min_cleanable_dirty_ratio: 0.0,
            delete_retention_ms: asked.delete_retention_ms,
            segment_bytes: asked.segment_bytes,
            index: IndexSettings { interval_bytes: 1_000_000, ..IndexSettings::default() },
            map_bytes: asked.map_slots * 24,
            load_factor: 1.0,
            ..CleanerSettings::default()
        },
        now: TimestampMs(asked.now_ms),
        producer_expiration_ms: asked.producer_expiration_ms,
        record_format: RecordFormat::Current,
        first_dirty_offset: Some(Offset(first_dirty)),
        high_watermark: Some(Offset(high_watermark)),
        log_start_offset: None,
        unkeyed: UnkeyedRecords::Drop,
        rounds: Rounds::One,
        purpose: Purpose::Clean,
        digest_key: DigestKey([3, 5]),
        most_verdict_bytes: 1 << 20,
        most_made_bytes: asked.made_bytes,
        io: IoMode::Pread,
        part_bytes: asked.part_bytes,
        pool: None,
    }
}

fn clean(log_dir: &Path, options: &CompactOptions) -> CleanedPartition {
    let cleaned = clean_partition(&input_of(log_dir, "random-0"), options, &Hidden).unwrap();
    assert_eq!(cleaned.uncleanable, None);
    for tally in &cleaned.segments {
        assert!(tally.accounting.adds_up(), "{tally:?}");
    }
    cleaned
}

/// Puts the result into the place of what it was made of.
fn materialize(log_dir: &Path, cleaned: &CleanedPartition) {
    let directory = log_dir.join("random-0");
    let files = bytes_of(&cleaned.after);
    for entry in fs::read_dir(&directory).unwrap() {
        let entry = entry.unwrap();
        if !files.contains_key(entry.file_name().to_str().unwrap()) {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    for (name, bytes) in &files {
        fs::write(directory.join(name), bytes).unwrap();
        let time = cleaned.after.file(OsStr::new(name)).unwrap().modified;
        set_modified(&directory.join(name), UNIX_EPOCH + Duration::from_millis(time.0.unsigned_abs()));
    }
}

/// The segments of a directory in the model's words.
fn read_back(image: &PartitionImage) -> Vec<ModelSegment> {
    let files = bytes_of(image);
    let logs = files.iter().filter_map(|(name, bytes)| Some((name.strip_suffix(".log")?, bytes)));
    let segment = |(base, bytes): (&str, &Vec<u8>)| ModelSegment {
        base: base.parse().unwrap(),
        modified: image.file(OsStr::new(&format!("{base}.log"))).unwrap().modified.0,
        batches: Batches::new(bytes, Position(0)).map(|batch| batch_of(&batch.unwrap())).collect(),
    };
    logs.map(segment).collect()
}

fn batch_of(batch: &segtool::format::Batch<'_>) -> ModelBatch {
    let header = *batch.header();
    assert!(batch.crc_matches());
    let mut records = Vec::new();
    RecordReader::default()
        .read_whole(batch, &mut |record: &ReadRecord<'_>| {
            let headers = record.headers.iter().map(|h| (h.key.to_vec(), h.value.map(<[u8]>::to_vec)));
            let record = ModelRecord {
                offset: record.offset.0,
                record: Record {
                    key: record.key.map(<[u8]>::to_vec),
                    value: record.value.map(<[u8]>::to_vec),
                    headers: headers.collect(),
                    timestamp_ms: record.timestamp.map_or(-1, |time| time.0),
                    offset_delta: None,
                    attributes: record.attributes,
                },
            };
            records.push(record);
            ControlFlow::Continue(())
        })
        .unwrap();
    let marker =
        header.is_control().then(|| match records.first().map(|record| record.record.key.as_ref().unwrap()[3]) {
            Some(0) => Marker::Abort,
            // Of an emptied marker nobody can tell; the model remembers.
            _ => Marker::Commit,
        });
    ModelBatch {
        base: header.base_offset.0,
        last: header.last_offset.0,
        producer: (
            header.producer_id.map_or(-1, |id| id.0),
            header.producer_epoch.map_or(-1, |epoch| epoch.0),
            header.base_sequence.map_or(-1, |sequence| sequence.0),
        ),
        leader_epoch: header.leader_epoch.map_or(-1, |epoch| epoch.0),
        codec: header.attributes.codec_id(),
        is_transactional: header.is_transactional(),
        marker,
        horizon: header.delete_horizon().map(|time| time.0),
        max_timestamp: header.max_timestamp.map_or(-1, |time| time.0),
        records,
    }
}

/// Sizes of the files of each segment.
fn sizes(directory: &Path) -> BTreeMap<i64, (u64, u64, u64)> {
    let size = |base: &str, kind: &str| fs::metadata(directory.join(format!("{base}.{kind}"))).unwrap().len();
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let bases = names.filter_map(|name| name.strip_suffix(".log").map(str::to_owned));
    bases
        .map(|base| {
            let sizes = (size(&base, "log"), size(&base, "index"), size(&base, "timeindex"));
            (base.parse().unwrap(), sizes)
        })
        .collect()
}

/// Rounds one after the other, each held against the model.
fn hold_against_model(partition: &Partition, era: Era, rounds: &[Asked]) -> Result<(), TestCaseError> {
    let sandbox = written(partition);
    let directory = sandbox.join("random-0");
    let mut model = Model::of(partition, &modified);
    // How far rounds have really cleaned. Who says that more is clean than is, loses values in every cleaner: a tombstone goes
    // while what it hid stays.
    let mut clean_until = 0;
    for asked in rounds {
        let bases: Vec<i64> = model.segments.iter().map(|segment| segment.base).collect();
        let first_dirty = bases.get(asked.dirty_from).copied().unwrap_or(0);
        let high_watermark = i64::try_from(asked.high_watermark).unwrap_or(i64::MAX).min(model.end);
        // A horizon beyond all time is none, in every round anew; the model leaves that out.
        let delete_retention_ms =
            if asked.delete_retention_ms == i64::MAX { 86_400_000 } else { asked.delete_retention_ms };
        let asked = Asked { delete_retention_ms, ..asked.clone() };
        let before = model.last_values();
        let circumstances = Circumstances {
            era,
            now: asked.now_ms,
            first_dirty,
            high_watermark,
            delete_retention_ms,
            producer_expiration_ms: asked.producer_expiration_ms,
            most_keys: usize::try_from(asked.map_slots).unwrap(),
            segment_bytes: asked.segment_bytes,
        };
        let expected = model.clean(&circumstances, &sizes(&directory));
        let cleaned = clean(sandbox.path(), &options(&asked, era, first_dirty, high_watermark));
        let round = cleaned.rounds.first().map(|round| (round.selection.first_uncleanable.0, round.end.0));
        prop_assert_eq!(round, expected.map(|round| (round.first_uncleanable, round.end)), "{:?}", circumstances);
        let ours = read_back(&cleaned.after);
        for (ours, theirs) in ours.iter().zip(&model.segments) {
            for (ours, theirs) in ours.batches.iter().zip(&theirs.batches) {
                prop_assert_eq!(forget_emptied(ours), forget_emptied(theirs), "{:?}", circumstances);
            }
            prop_assert_eq!(ours.batches.len(), theirs.batches.len(), "{:?}", circumstances);
            prop_assert_eq!((ours.base, ours.modified), (theirs.base, theirs.modified));
        }
        prop_assert_eq!(ours.len(), model.segments.len());
        if first_dirty <= clean_until {
            prop_assert_eq!(model.last_values(), before, "the model itself loses a value");
            clean_until = expected.map_or(clean_until, |round| clean_until.max(round.end));
        }
        materialize(sandbox.path(), &cleaned);
    }
    Ok(())
}

fn forget_emptied(batch: &ModelBatch) -> ModelBatch {
    let marker = batch.marker.map(|marker| if batch.records.is_empty() { Marker::Commit } else { marker });
    ModelBatch { marker, ..batch.clone() }
}

fn log() -> impl Strategy<Value = Partition> {
    partition_of(T, 40, record())
}

fn run(cases: u32) {
    let mut runner = TestRunner::new(Config { cases, ..Config::default() });
    let strategy = (log(), era(), vec(asked(), 1..5));
    let result = runner.run(&strategy, |(partition, era, rounds)| hold_against_model(&partition, era, &rounds));
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[test]
fn random_rounds_come_out_as_the_model_says() {
    run(120);
}

#[test]
#[ignore = "takes minutes"]
fn twenty_thousand_random_logs_come_out_as_the_model_says() {
    run(20_000);
}

proptest! {
    #![proptest_config(Config::with_cases(60))]

    #[test]
    fn rounds_until_clean_come_to_the_same_as_one_after_the_other(
        partition in log(),
        era in era(),
        asked in asked(),
        interval in select(vec![0u32, 100, 1_000_000]),
        map_slots in 2..8u64,
    ) {
        let asked = Asked { map_slots, ..asked };
        let (all_at_once, one_by_one) = (written(&partition), written(&partition));
        let high_watermark = i64::try_from(asked.high_watermark).unwrap_or(i64::MAX).min(partition.log_end_offset());
        let mut options = options(&asked, era, 0, high_watermark);
        options.settings.index.interval_bytes = interval;
        let at_once = clean(all_at_once.path(), &CompactOptions { rounds: Rounds::UntilClean, ..options.clone() });
        let mut first_dirty = Some(Offset(0));
        let mut rounds = Vec::new();
        loop {
            let step = clean(one_by_one.path(), &CompactOptions { first_dirty_offset: first_dirty, ..options.clone() });
            materialize(one_by_one.path(), &step);
            let Some(round) = step.rounds.into_iter().next() else { break };
            let is_stuck = first_dirty == Some(round.end);
            first_dirty = Some(round.end);
            rounds.push((round.end, round.bytes_before, round.bytes_after));
            if is_stuck {
                break;
            }
        }
        let ours: Vec<_> = at_once.rounds.iter().map(|round| (round.end, round.bytes_before, round.bytes_after)).collect();
        prop_assert_eq!(ours, rounds);
        let after = input_of(one_by_one.path(), "random-0").image;
        prop_assert_eq!(bytes_of(&at_once.after), bytes_of(&after));
    }

    #[test]
    fn cleaning_twice_changes_nothing(partition in log(), era in era(), asked in asked()) {
        // But for what time takes, and for segments that have become small enough to be joined.
        let asked = Asked { delete_retention_ms: 86_400_000, segment_bytes: 1, map_slots: 1000, ..asked };
        let sandbox = written(&partition);
        let options = options(&asked, era, 0, partition.log_end_offset());
        let mut logs = Vec::new();
        for _ in 0..3 {
            let cleaned = clean(sandbox.path(), &options);
            let segments = read_back(&cleaned.after);
            materialize(sandbox.path(), &cleaned);
            logs.push(segments.into_iter().flat_map(|segment| segment.batches).collect::<Vec<_>>());
        }
        // The first round leaves markers without data; the next one says from when they may go, and from then on all is as it is.
        let data = |log: &[ModelBatch]| log.iter().filter(|batch| batch.marker.is_none()).cloned().collect::<Vec<_>>();
        prop_assert_eq!(data(&logs[1]), data(&logs[0]));
        prop_assert_eq!(logs[1].len(), logs[0].len());
        prop_assert_eq!(&logs[2], &logs[1]);
    }

    #[test]
    fn a_clean_log_is_left_alone(partition in log(), era in era(), asked in asked()) {
        let sandbox = written(&partition);
        let options = CompactOptions {
            rounds: Rounds::UntilClean,
            ..options(&asked, era, 0, partition.log_end_offset())
        };
        let first = clean(sandbox.path(), &options);
        materialize(sandbox.path(), &first);
        let Some(end) = first.checkpoint else { return Ok(()) };
        let again = clean(sandbox.path(), &CompactOptions { first_dirty_offset: Some(end), ..options });
        prop_assert!(again.rounds.is_empty() || again.rounds.iter().all(|round| round.end == end));
        if again.rounds.is_empty() {
            prop_assert_eq!(&again.before, &again.after);
        }
    }

    #[test]
    fn transactions_are_never_torn(partition in log(), era in era(), asked in asked()) {
        let sandbox = written(&partition);
        let cleaned = clean(sandbox.path(), &options(&asked, era, 0, partition.log_end_offset()));
        let ended: BTreeMap<i64, (i64, Marker)> = markers(&partition);
        let after = read_back(&cleaned.after);
        let batches: Vec<&ModelBatch> = after.iter().flat_map(|segment| &segment.batches).collect();
        for batch in batches.iter().filter(|batch| batch.is_transactional && batch.marker.is_none()) {
            // The marker that ended the batch's transaction in the original log, if one did, is there still.
            let original = ended.range(batch.base..).find(|(_, (producer, _))| *producer == batch.producer.0);
            if let Some((offset, _)) = original {
                prop_assert!(batches.iter().any(|other| other.base == *offset && other.marker.is_some()), "{}", offset);
            }
        }
    }
}

/// Markers by offset: producer and kind.
fn markers(partition: &Partition) -> BTreeMap<i64, (i64, Marker)> {
    let batches = partition.segments.iter().flat_map(|segment| &segment.units).filter_map(|unit| match unit {
        Unit::Batch(batch) if batch.is_control() => Some(batch),
        _ => None,
    });
    let kind = |batch: &Batch| {
        if batch.records[0].key.as_ref().unwrap()[3] == 0 { Marker::Abort } else { Marker::Commit }
    };
    batches.map(|batch| (batch.base_offset, (batch.producer_id, kind(batch)))).collect()
}

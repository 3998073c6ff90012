//! Names, indexes, snapshots and text files of recorded log dirs, against what Kafka's own tools and classes said of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use segtool::format::checkpoint::{
    CleanShutdownMarker, LeaderEpochCheckpoint, MarkerContent, MetaProperties, OffsetCheckpoint, PartitionMetadata,
    QuorumState, ReaderException, reader_exception,
};
use segtool::format::control::{ControlNumbering, ControlRecord, ControlType};
use segtool::format::offset_index::OffsetIndex;
use segtool::format::producer_snapshot::ProducerSnapshot;
use segtool::format::record::Records;
use segtool::format::time_index::TimeIndex;
use segtool::format::txn_index::TxnIndex;
use segtool::format::{Batches, FormatError, Offset, Position, TimestampMs};
use segtool::logdir::names::{DirName, FileKind, FileName, FileSuffix, LoaderView, RemoteCacheName, RootName};

use crate::support::{files_below, packs};

/// Families in which nothing was changed by hand.
const HEALTHY: [&str; 6] = ["modern-2.8.2", "modern-3.9.1", "modern-4.x", "eras", "clients", "internal"];

/// Every file below the `dir` directories of some families: its name, its directory's name, its bytes' path.
fn recorded_files(families: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for case in families.iter().flat_map(|family| packs::cases(family)) {
        let dir = case.join("dir");
        if dir.is_dir() {
            files.extend(files_below(&dir).into_iter().map(|file| dir.join(file)));
        }
    }
    assert!(files.len() > 100, "{} files", files.len());
    files
}

fn file_name(path: &Path) -> FileName {
    FileName::parse(path.file_name().unwrap())
}

fn dir_name(path: &Path) -> DirName {
    DirName::parse(path.parent().unwrap().file_name().unwrap())
}

/// Healthy files of segments and snapshots, with the offset in their names.
fn healthy(kind: FileKind) -> Vec<(PathBuf, Offset)> {
    let of_kind = |path: PathBuf| match file_name(&path) {
        FileName::Segment { base, kind: found, .. } if found == kind => Some((path, base)),
        FileName::Snapshot { offset, .. } if kind == FileKind::Snapshot => Some((path, offset)),
        _ => None,
    };
    recorded_files(&HEALTHY).into_iter().filter_map(of_kind).collect()
}

#[test]
fn every_name_of_a_broker_is_understood_and_written_the_same() {
    let mut partitions = 0;
    for path in recorded_files(&HEALTHY) {
        let (name, dir) = (path.file_name().unwrap(), path.parent().unwrap().file_name().unwrap());
        match dir_name(&path) {
            DirName::NotAPartition => {
                // The log dir itself, or what the lab put beside it.
                if let Some(written) = RootName::parse(name).to_name() {
                    assert_eq!(written, name);
                }
            }
            DirName::RemoteIndexCache => {
                assert_eq!(RemoteCacheName::parse(name).unwrap().to_name(), name.to_str().unwrap());
            }
            // What the lab called its directories can be read as a partition, too.
            _ if RootName::parse(name) != RootName::Unknown => {}
            understood => {
                partitions += 1;
                assert_eq!(understood.to_name().unwrap(), dir);
                let parsed = FileName::parse(name);
                if parsed != FileName::Temporary {
                    assert_eq!(parsed.to_name().as_deref(), Some(name), "{}", path.display());
                }
                assert_ne!(LoaderView::of(name), LoaderView::StartFails, "{}", path.display());
            }
        }
    }
    assert!(partitions > 3000, "{partitions}");
}

#[test]
fn a_start_fails_over_the_names_over_which_brokers_failed() {
    let mut failing = Vec::new();
    for case in packs::cases("damaged") {
        let dir = case.join("dir");
        let files = files_below(&dir).into_iter().map(|file| dir.join(file));
        let in_partition = |path: &PathBuf| dir_name(path).topic_partition().is_some();
        if files.filter(in_partition).any(|path| LoaderView::of(path.file_name().unwrap()) == LoaderView::StartFails) {
            failing.push(case.file_name().unwrap().to_str().unwrap().to_owned());
        }
    }
    assert_eq!(failing, ["snapshot-bad-name", "stray-log-name-not-a-number"]);
    for case in failing {
        assert_eq!(outcome_of(&case), "startup-fails");
    }
}

#[test]
fn indexes_of_brokers_are_plausible_up_to_their_padding() {
    for (path, base) in healthy(FileKind::OffsetIndex) {
        let data = fs::read(&path).unwrap();
        let index = OffsetIndex::new(base, &data);
        assert_eq!(index.remainder(), [0u8; 0], "{}", path.display());
        let len = index.plausible_len(Position(u64::MAX));
        assert_eq!(len, index.len() - index.zero_tail_len(), "{}", path.display());
        let mut written = Vec::new();
        for entry in index.truncated(len).iter() {
            entry.encode(base, &mut written).unwrap();
        }
        assert_eq!(written, data[..written.len()]);
    }
    let mut padded = 0;
    for (path, base) in healthy(FileKind::TimeIndex) {
        let data = fs::read(&path).unwrap();
        let index = TimeIndex::new(base, &data);
        // The padding of some was cut to 4 KiB, which is no multiple of 12.
        assert!(index.remainder().iter().all(|byte| *byte == 0), "{}", path.display());
        let len = index.plausible_len();
        assert_eq!(len, index.len() - index.zero_tail_len(), "{}", path.display());
        padded += usize::from(index.zero_tail_len() > 0);
        let mut written = Vec::new();
        // An old cleaner's -1 cannot be written again, and is not.
        for entry in index.truncated(len).iter().take_while(|entry| entry.offset != Offset(-1)) {
            entry.encode(base, &mut written).unwrap();
        }
        assert_eq!(written, data[..written.len()]);
    }
    assert!(padded > 10, "{padded}");
    for (path, _) in healthy(FileKind::TxnIndex) {
        let data = fs::read(&path).unwrap();
        let index = TxnIndex::new(&data);
        let mut written = Vec::new();
        for aborted in index.iter() {
            assert!(
                aborted.first_offset < aborted.last_offset && aborted.last_stable_offset <= aborted.last_offset.next()
            );
            aborted.encode(&mut written);
        }
        assert_eq!(written, data, "{}", path.display());
    }
}

#[test]
fn snapshots_of_brokers_are_sound_and_written_the_same() {
    let mut producers = 0;
    for (path, offset) in healthy(FileKind::Snapshot) {
        let data = fs::read(&path).unwrap();
        let snapshot = ProducerSnapshot::parse(&data).strict().unwrap();
        producers += snapshot.entries.len();
        let covered = |entry: &Option<Offset>| entry.is_none_or(|entry| entry < offset);
        assert!(
            snapshot
                .entries
                .iter()
                .all(|entry| covered(&entry.last_offset) && covered(&entry.current_txn_first_offset))
        );
        assert_eq!(ProducerSnapshot::encode(&snapshot.entries), data, "{}", path.display());
    }
    assert!(producers > 500, "{producers}");
}

/// The numbers that follow the names in a line of Kafka's dump tool.
fn numbers(line: &str) -> BTreeMap<&str, i64> {
    let words: Vec<&str> = line.split(' ').collect();
    let pair = |pair: &[&str]| -> Option<(String, i64)> { Some((pair[0].to_owned(), pair[1].parse().ok()?)) };
    let mut found = BTreeMap::new();
    for window in words.windows(2) {
        if let (Some(name), Some((_, number))) = (window[0].strip_suffix(':'), pair(window)) {
            found.entry(name).or_insert(number);
        }
    }
    found
}

#[test]
fn indexes_and_snapshots_read_as_the_dump_tool_prints_them() {
    let mut lines_compared = 0;
    for case in ["modern-2.8.2", "modern-3.9.1", "modern-4.x"].iter().flat_map(|family| packs::cases(family)) {
        for dump in files_below(&case.join("truth")) {
            let Some(file) = dump.to_str().unwrap().strip_suffix(".dump.txt") else { continue };
            let path = case.join("dir").join(file);
            let Ok(data) = fs::read(&path) else { continue };
            let text = fs::read_to_string(case.join("truth").join(&dump)).unwrap();
            let printed: Vec<_> = text.lines().map(numbers).collect();
            let of = |name: &str| printed.iter().filter_map(|line| line.get(name)).copied().collect::<Vec<i64>>();
            match file_name(&path) {
                FileName::Segment { base, kind: FileKind::OffsetIndex, .. } if !text.contains("Mismatches") => {
                    let index = OffsetIndex::new(base, &data);
                    let entries = index.truncated(index.plausible_len(Position(u64::MAX)));
                    let count = entries.len();
                    // The tool stops at the first entry that is not above the base, and says so only where it is the first.
                    let offsets: Vec<i64> = entries.iter().map(|entry| entry.offset.0).collect();
                    let positions: Vec<i64> = entries.iter().map(|entry| i64::from(entry.stored_position())).collect();
                    assert_eq!(of("offset").get(..count), Some(&*offsets), "{}", path.display());
                    assert_eq!(of("position").get(..count), Some(&*positions), "{}", path.display());
                    lines_compared += count;
                }
                FileName::Segment { base, kind: FileKind::TimeIndex, .. } if !text.contains("Found") => {
                    let index = TimeIndex::new(base, &data);
                    let entries = index.truncated(index.plausible_len());
                    let (timestamps, offsets): (Vec<i64>, Vec<i64>) =
                        entries.iter().map(|entry| (entry.timestamp.0, entry.offset.0)).unzip();
                    assert_eq!(of("timestamp").get(..timestamps.len()), Some(&*timestamps), "{}", path.display());
                    assert_eq!(of("offset").get(..offsets.len()), Some(&*offsets), "{}", path.display());
                    lines_compared += offsets.len();
                }
                FileName::Segment { kind: FileKind::TxnIndex, .. } => {
                    let aborted: Vec<_> = TxnIndex::new(&data).iter().collect();
                    assert_eq!(of("producerId"), aborted.iter().map(|entry| entry.producer_id.0).collect::<Vec<_>>());
                    assert_eq!(of("firstOffset"), aborted.iter().map(|entry| entry.first_offset.0).collect::<Vec<_>>());
                    assert_eq!(of("lastOffset"), aborted.iter().map(|entry| entry.last_offset.0).collect::<Vec<_>>());
                    let stable: Vec<_> = aborted.iter().map(|entry| entry.last_stable_offset.0).collect();
                    assert_eq!(of("lastStableOffset"), stable);
                    lines_compared += aborted.len();
                }
                FileName::Snapshot { .. } => {
                    let entries = ProducerSnapshot::parse(&data).strict().unwrap().entries;
                    assert_eq!(of("producerId"), entries.iter().map(|entry| entry.producer_id.0).collect::<Vec<_>>());
                    assert_eq!(
                        of("coordinatorEpoch"),
                        entries
                            .iter()
                            .map(|entry| i64::from(entry.coordinator_epoch.unwrap_or(-1)))
                            .collect::<Vec<_>>()
                    );
                    let with_data = || entries.iter().filter(|entry| entry.last_offset.is_some());
                    let sequences: Vec<_> =
                        with_data().map(|entry| i64::from(entry.last_sequence.unwrap().0)).collect();
                    assert_eq!(of("lastSequence"), sequences, "{}", path.display());
                    lines_compared += entries.len();
                }
                _ => {}
            }
        }
    }
    assert!(lines_compared > 1000, "{lines_compared}");
}

/// Rows of a table of truth, without its comments.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let Ok(text) = fs::read_to_string(path) else { return Vec::new() };
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

#[test]
fn lookups_find_what_kafkas_indexes_find() {
    let mut probes = 0;
    for case in packs::cases("lookup") {
        let partition = case.join("dir/orders-0");
        let index_of = |base: &str, kind| {
            let name = FileName::Segment { base: Offset(base.parse().unwrap()), kind, suffix: FileSuffix::None };
            (Offset(base.parse().unwrap()), fs::read(partition.join(name.to_name().unwrap())).unwrap_or_default())
        };
        for row in rows(&case.join("truth/segment-offsets.tsv")) {
            let (base, data) = index_of(&row[0], FileKind::OffsetIndex);
            let found = OffsetIndex::new(base, &data).lookup(Offset(row[1].parse().unwrap()));
            let (offset, position) = found.map_or((base, 0), |(_, entry)| (entry.offset, entry.position.0));
            assert_eq!(
                (offset.to_string(), position.to_string()),
                (row[2].clone(), row[3].clone()),
                "{case:?} {row:?}"
            );
            probes += 1;
        }
        for row in rows(&case.join("truth/segment-timestamps.tsv")) {
            let (base, data) = index_of(&row[0], FileKind::TimeIndex);
            let found = TimeIndex::new(base, &data).lookup(TimestampMs(row[1].parse().unwrap()));
            let (timestamp, offset) = found.map_or((-1, base), |(_, entry)| (entry.timestamp.0, entry.offset));
            assert_eq!(
                (timestamp.to_string(), offset.to_string()),
                (row[2].clone(), row[3].clone()),
                "{case:?} {row:?}"
            );
            probes += 1;
        }
    }
    assert!(probes > 1500, "{probes}");
}

#[test]
fn text_files_of_brokers_are_sound() {
    let mut read = BTreeMap::new();
    for path in recorded_files(&HEALTHY) {
        let data = fs::read(&path).unwrap();
        let fault = fault_of(&path, &data);
        assert_eq!(fault, None, "{}", path.display());
        match file_name(&path) {
            FileName::LeaderEpochCheckpoint if !data.is_empty() => {
                let checkpoint = LeaderEpochCheckpoint::parse(&data).content;
                assert_eq!(checkpoint.oddities(), []);
                assert_eq!(LeaderEpochCheckpoint::encode(&checkpoint.entries), data);
            }
            FileName::PartitionMetadata => {
                let topic_id = PartitionMetadata::parse(&data).content.topic_id.unwrap();
                assert_eq!(PartitionMetadata::encode(topic_id), data);
            }
            _ => {}
        }
        match RootName::parse(path.file_name().unwrap()) {
            RootName::Checkpoint(_) if !data.is_empty() => {
                let checkpoint = OffsetCheckpoint::parse(&data).content;
                assert_eq!(checkpoint.oddities(), []);
                let entries = checkpoint.entries.iter().map(|entry| (&*entry.topic, entry.partition, entry.offset));
                assert_eq!(OffsetCheckpoint::encode(entries), data);
            }
            RootName::CleanShutdownMarker => {
                assert_ne!(CleanShutdownMarker::parse(&data).content, MarkerContent::Garbage, "{}", path.display());
            }
            RootName::MetaProperties => assert!(MetaProperties::parse(&data).content.node_id.is_some()),
            _ => {}
        }
        *read.entry(path.file_name().unwrap().to_owned()).or_insert(0) += 1;
    }
    for name in
        ["leader-epoch-checkpoint", "partition.metadata", "meta.properties", "quorum-state", ".kafka_cleanshutdown"]
    {
        assert!(read.get(std::ffi::OsStr::new(name)) > Some(&5), "{name}");
    }
}

/// The fault of a text file, known by its name.
fn fault_of(path: &Path, data: &[u8]) -> Option<FormatError> {
    match RootName::parse(path.file_name().unwrap()) {
        RootName::Checkpoint(_) => return OffsetCheckpoint::parse(data).fault,
        RootName::MetaProperties => return MetaProperties::parse(data).fault,
        _ => {}
    }
    match file_name(path) {
        FileName::LeaderEpochCheckpoint => LeaderEpochCheckpoint::parse(data).fault,
        FileName::PartitionMetadata => PartitionMetadata::parse(data).fault,
        FileName::QuorumState => QuorumState::parse(data).fault,
        _ => None,
    }
}

/// What 4.4.0 made of a damaged case at a clean start.
fn outcome_of(case: &str) -> String {
    let verdicts = rows(&packs::unpacked("damaged").join("verdicts.tsv"));
    let row = verdicts.into_iter().find(|row| row[0] == case && row[1] == "4.4.0" && row[2] == "clean");
    row.unwrap_or_else(|| panic!("no verdict on {case}"))[3].clone()
}

#[test]
fn a_damaged_text_file_is_at_fault_where_brokers_said_so_and_in_the_same_way() {
    let mut outcomes = BTreeMap::new();
    for case in packs::cases("damaged") {
        let name = case.file_name().unwrap().to_str().unwrap();
        if !["epoch-file-", "partition-metadata-", "recovery-point-", "log-start-"]
            .iter()
            .any(|kind| name.starts_with(kind))
        {
            continue;
        }
        let dir = case.join("dir");
        let fault = files_below(&dir).into_iter().find_map(|file| {
            let path = dir.join(file);
            fault_of(&path, &fs::read(&path).unwrap())
        });
        let expected = match fault.as_ref().map(reader_exception) {
            Some(ReaderException::Io) => "log-dir-offline",
            Some(ReaderException::Other) => "startup-fails",
            None => "loaded",
        };
        assert_eq!(outcome_of(name), expected, "{name}: {fault:?}");
        *outcomes.entry(expected).or_insert(0) += 1;
    }
    assert!(
        outcomes["log-dir-offline"] >= 8 && outcomes["startup-fails"] >= 2 && outcomes["loaded"] >= 8,
        "{outcomes:?}"
    );
}

#[test]
fn a_damaged_snapshot_is_at_fault_where_brokers_dropped_it() {
    for (case, sound) in [
        ("snapshot-bad-crc-newest", false),
        ("snapshot-short-newest", false),
        ("snapshot-empty-newest", false),
        ("snapshot-stale-tail", false),
        ("snapshot-version-2", false),
        ("snapshots-all-corrupt", false),
        ("snapshot-claims-open-transaction", true),
        ("snapshot-stray-offset", true),
    ] {
        let dir = packs::case("damaged", case).join("dir");
        let snapshots = files_below(&dir).into_iter().map(|file| dir.join(file));
        let mut snapshots = snapshots.filter(|path| matches!(file_name(path), FileName::Snapshot { .. }));
        let all_sound = snapshots.all(|path| ProducerSnapshot::parse(&fs::read(path).unwrap()).fault.is_none());
        assert_eq!(all_sound, sound, "{case}");
    }
}

#[test]
fn identities_and_votes_are_at_fault_where_whole_brokers_said_so() {
    for (case, file, sound) in [
        ("meta-empty", "meta.properties", true),
        ("meta-garbage-escape", "meta.properties", false),
        ("meta-garbage-metadata-dir", "meta.properties", false),
        ("meta-version-two", "meta.properties", false),
        ("meta-version-zero", "meta.properties", true),
        ("meta-directory-id-missing", "meta.properties", true),
        ("kraft-quorum-state-cut", "quorum-state", false),
        ("kraft-quorum-state-empty", "quorum-state", false),
        ("kraft-quorum-state-old-epoch", "quorum-state", true),
    ] {
        let dir = packs::case("odd", case).join("dir");
        let mut named = files_below(&dir).into_iter().map(|path| dir.join(path)).filter(|path| path.ends_with(file));
        let all_sound = named.all(|path| fault_of(&path, &fs::read(&path).unwrap()).is_none());
        assert_eq!(all_sound, sound, "{case}");
    }
    let reserved = packs::case("odd", "meta-directory-id-reserved").join("dir/meta.properties");
    assert!(MetaProperties::parse(&fs::read(reserved).unwrap()).content.directory_id.unwrap().is_reserved());
}

#[test]
fn the_cache_of_remote_indexes_is_told_from_foreign_files() {
    for (case, all_parse) in
        [("remote-cache-good", true), ("remote-cache-leftovers", true), ("remote-cache-foreign-file", false)]
    {
        let cache = packs::case("odd", case).join("dir/remote-log-index-cache");
        let files = files_below(&cache);
        assert!(!files.is_empty());
        let parse = files.iter().all(|file| RemoteCacheName::parse(file.as_os_str()).is_some());
        assert_eq!(parse, all_parse, "{case}");
    }
}

#[test]
fn control_records_of_brokers_decode_to_the_last_byte() {
    let mut seen: BTreeMap<ControlType, usize> = BTreeMap::new();
    for path in recorded_files(&HEALTHY) {
        let name = file_name(&path);
        let is_log = matches!(name, FileName::Segment { kind: FileKind::Log, .. } | FileName::KraftCheckpoint { .. });
        if !is_log && RootName::parse(path.file_name().unwrap()) != RootName::BootstrapCheckpoint {
            continue;
        }
        let is_preview = dir_name(&path).topic_partition().is_some_and(|partition| partition.topic() == "@metadata");
        let numbering = if is_preview { ControlNumbering::Preview } else { ControlNumbering::Current };
        let data = fs::read(&path).unwrap();
        for batch in Batches::new(&data, Position(0)).map_while(Result::ok).filter(|batch| batch.header().is_control())
        {
            for record in Records::new(batch.header(), batch.records_bytes()).unwrap() {
                let record = record.unwrap();
                let control = ControlRecord::parse(record.key, record.value, numbering).unwrap();
                assert_eq!(control.fault, None, "{}", path.display());
                assert_eq!(control.trailing_bytes, [0u8; 0], "{}", path.display());
                let mut written = Vec::new();
                control.value.encode(&mut written);
                assert_eq!(Some(&*written), record.value);
                *seen.entry(control.control_type).or_default() += 1;
            }
        }
    }
    for control_type in [
        ControlType::Abort,
        ControlType::Commit,
        ControlType::LeaderChange,
        ControlType::SnapshotHeader,
        ControlType::SnapshotFooter,
        ControlType::KraftVersion,
        ControlType::KraftVoters,
    ] {
        assert!(seen.get(&control_type) > Some(&0), "{control_type:?} in {seen:?}");
    }
    assert!(!seen.keys().any(|control_type| matches!(control_type, ControlType::Unknown(_))), "{seen:?}");
}

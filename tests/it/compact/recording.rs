//! Recorded rounds of real cleaners: what went in, with which settings, and what came out.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use segtool::format::{Offset, TimestampMs};
use segtool::logdir::{IoMode, PartitionDir};
use segtool::ops::broker::index_rules::IndexSettings;
use segtool::ops::broker::load::Shutdown;
use segtool::ops::broker::{KafkaVersion, RecordFormat, Rules};
use segtool::ops::compact::{
    CleanStop, CleanedPartition, CleanerSettings, CompactOptions, DigestKey, PartitionInput, Purpose, Rounds,
    UnkeyedRecords, clean_partition,
};
use segtool::ops::{Content, Hidden, PartitionImage};
use serde_json::Value;

use crate::support::{Sandbox, set_modified};

/// A recorded round.
pub(crate) struct Recording {
    pub(crate) path: PathBuf,
    params: Value,
}

impl Recording {
    pub(crate) fn open(path: &Path) -> Self {
        let params = serde_json::from_slice(&fs::read(path.join("truth/params.json")).unwrap()).unwrap();
        Self { path: path.to_path_buf(), params }
    }

    pub(crate) fn name(&self) -> &str {
        self.path.file_name().unwrap().to_str().unwrap()
    }

    /// What the cleaner manager and the cleaner of a version said, if that was recorded.
    pub(crate) fn stats(&self, version: &str) -> Option<Value> {
        let bytes = fs::read(self.path.join(format!("truth/stats-{version}.json"))).ok()?;
        Some(serde_json::from_slice(&bytes).unwrap())
    }

    fn number(&self, name: &str) -> i64 {
        self.params[name].as_i64().unwrap()
    }

    fn setting<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.params["config"][name].as_str().and_then(|text| text.parse().ok())
    }

    /// Whether retention followed.
    pub(crate) fn runs_retention(&self) -> bool {
        self.params["run_retention"].as_bool().unwrap()
    }

    /// A copy of the directory with the times that it had.
    pub(crate) fn before(&self) -> Sandbox {
        let sandbox = Sandbox::copy_of(&self.path.join("before"));
        let times = fs::read_to_string(self.path.join("truth/mtimes-before.tsv")).unwrap();
        for (file, time) in times.lines().filter_map(|line| line.split_once('\t')) {
            let time = Duration::from_millis(time.split('\t').next().unwrap().parse().unwrap());
            if sandbox.join(file).exists() {
                set_modified(&sandbox.join(file), UNIX_EPOCH + time);
            }
        }
        sandbox
    }

    /// The topic's settings as a file.
    pub(crate) fn properties(&self) -> String {
        let settings = self.params["config"].as_object().unwrap().iter();
        let lines = settings.map(|(name, value)| format!("{name}={}\n", value.as_str().unwrap()));
        lines.chain([format!("message.max.bytes={}\n", self.number("max_io_buffer_size"))]).collect()
    }

    /// The other circumstances as flags, for the newest version.
    pub(crate) fn flags(&self) -> Vec<(&'static str, String)> {
        let number = |name| self.params[name].to_string();
        vec![
            ("--now", number("now")),
            ("--high-watermark", number("high_watermark")),
            ("--log-start-offset", number("log_start_offset")),
            ("--producer-id-expiration-ms", number("producer_id_expiration_ms")),
            ("--log-cleaner-dedupe-buffer-size", number("offset_map_memory")),
            ("--log-cleaner-io-buffer-load-factor", number("load_factor")),
        ]
    }

    pub(crate) fn options(&self, version: &str) -> CompactOptions {
        let default = CleanerSettings::default();
        let whole = |name: &str, default: i64| self.setting(name).unwrap_or(default);
        let bytes = |name: &str, default: u64| self.setting(name).unwrap_or(default);
        let index = IndexSettings {
            interval_bytes: self.setting("index.interval.bytes").unwrap_or(default.index.interval_bytes),
            segment_index_bytes: self.setting("segment.index.bytes").unwrap_or(default.index.segment_index_bytes),
        };
        CompactOptions {
            rules: Rules::of(version.parse::<KafkaVersion>().unwrap()),
            settings: CleanerSettings {
                min_cleanable_dirty_ratio: self.setting("min.cleanable.dirty.ratio").unwrap_or(0.5),
                delete_retention_ms: whole("delete.retention.ms", default.delete_retention_ms),
                min_compaction_lag_ms: whole("min.compaction.lag.ms", default.min_compaction_lag_ms),
                max_compaction_lag_ms: whole("max.compaction.lag.ms", default.max_compaction_lag_ms),
                segment_bytes: bytes("segment.bytes", default.segment_bytes),
                index,
                max_message_bytes: bytes("max.message.bytes", default.max_message_bytes),
                max_io_buffer_bytes: self.number("max_io_buffer_size").unsigned_abs(),
                io_buffer_bytes: self.number("io_buffer_size").unsigned_abs(),
                map_bytes: self.number("offset_map_memory").unsigned_abs(),
                load_factor: self.params["load_factor"].as_f64().unwrap(),
            },
            now: TimestampMs(self.number("now")),
            producer_expiration_ms: self.number("producer_id_expiration_ms"),
            record_format: RecordFormat::Current,
            first_dirty_offset: None,
            high_watermark: Some(Offset(self.number("high_watermark"))),
            log_start_offset: Some(Offset(self.number("log_start_offset"))),
            unkeyed: UnkeyedRecords::Drop,
            rounds: Rounds::One,
            purpose: Purpose::Clean,
            digest_key: DigestKey([7, 11]),
            most_verdict_bytes: 1 << 20,
            most_made_bytes: 1 << 20,
            io: IoMode::Pread,
            part_bytes: 200,
            pool: None,
        }
    }

    /// Size and hash, or bytes where they are there, of each file of the partition afterwards.
    pub(crate) fn files_after(&self, version: &str) -> Option<BTreeMap<String, Digest>> {
        let source = self.stats(version)?["same_files_as"].as_str().unwrap_or(version).to_owned();
        let directory = self.path.join(format!("after-{source}/orders-0"));
        if directory.is_dir() {
            return Some(digests(&directory));
        }
        let list = fs::read_to_string(self.path.join(format!("truth/after-{source}.tsv"))).ok()?;
        let rows = list.lines().filter(|line| !line.starts_with('#'));
        let entry = |row: &str| {
            let fields: Vec<&str> = row.split('\t').collect();
            fields[0].strip_prefix("orders-0/").map(|name| (name.to_owned(), Digest(fields[2].to_owned())))
        };
        Some(rows.filter_map(entry).collect())
    }

    /// The recorded batches and records afterwards.
    pub(crate) fn records_after(&self, version: &str) -> Option<String> {
        let source = self.stats(version)?["same_files_as"].as_str().unwrap_or(version).to_owned();
        fs::read_to_string(self.path.join(format!("truth/records-{source}.tsv"))).ok()
    }
}

/// Makes the round.
pub(crate) fn clean(log_dir: &Path, options: &CompactOptions) -> Result<CleanedPartition, CleanStop> {
    clean_partition(&input_of(log_dir, "orders-0"), options, &Hidden)
}

/// The hash of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Digest(pub(crate) String);

impl Digest {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(crate::support::sha256_hex(bytes))
    }
}

fn digests(directory: &Path) -> BTreeMap<String, Digest> {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), Digest::of(&fs::read(&path).unwrap())))
        .collect()
}

/// A partition directory with the checkpoints of the log dir that it is in.
pub(crate) fn input_of(log_dir: &Path, partition: &str) -> PartitionInput {
    let directory = PartitionDir::open(log_dir, OsStr::new(partition)).unwrap();
    let offset = |file: &str| {
        let bytes = fs::read(log_dir.join(file)).unwrap_or_default();
        let checkpoint = segtool::format::checkpoint::OffsetCheckpoint::parse(&bytes).content;
        let (topic, number) = partition.rsplit_once('-').unwrap();
        checkpoint.offset_of(topic, number.parse().unwrap())
    };
    PartitionInput {
        image: PartitionImage::of(&directory),
        shutdown: if log_dir.join(".kafka_cleanshutdown").exists() { Shutdown::Clean } else { Shutdown::Unclean },
        recovery_point: offset("recovery-point-offset-checkpoint").unwrap_or(Offset(0)),
        log_start: offset("log-start-offset-checkpoint").unwrap_or(Offset(0)),
        high_watermark: offset("replication-offset-checkpoint"),
        first_dirty: offset("cleaner-offset-checkpoint"),
    }
}

/// The bytes of all files of an image.
pub(crate) fn bytes_of(image: &PartitionImage) -> BTreeMap<String, Vec<u8>> {
    let bytes = |name: &OsStr, content: &Content| {
        let mut out = Vec::new();
        if let Content::Recipe(recipe) = content {
            recipe.write_to(&mut out).unwrap();
            assert_eq!(out.len() as u64, recipe.size_bytes());
        } else {
            let file = image.open(name, IoMode::Pread).unwrap();
            file.range_reader(segtool::format::Position(0), file.end()).read_to_end(&mut out).unwrap();
        }
        out
    };
    image.files().map(|(name, file)| (name.to_str().unwrap().to_owned(), bytes(name, &file.content))).collect()
}

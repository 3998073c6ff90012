//! A rebuilding as a value, and what a start's recovery makes of the same directory.

use std::collections::BTreeMap;
use std::path::Path;

use segtool::format::checkpoint::OffsetCheckpoint;
use segtool::format::{Offset, TimestampMs};
use segtool::logdir::names::{CheckpointKind, DirName};
use segtool::logdir::{IoMode, LogDir};
use segtool::ops::broker::index_rules::IndexSettings;
use segtool::ops::broker::load::{DirectoryRole, LoadInput, Shutdown, load_log};
use segtool::ops::broker::{KafkaVersion, Rules};
use segtool::ops::plan::{Plan, PlanInput};
use segtool::ops::preflight;
use segtool::ops::reindex::{Extent, ReindexOptions, plan};
use segtool::ops::{Hidden, PartitionImage};

/// Files by name.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// Everything is made anew, at this time and interval.
pub(super) fn everything(now_ms: i64, index: IndexSettings) -> ReindexOptions {
    ReindexOptions { indexes: Extent::All, snapshots: Extent::All, index, ..ReindexOptions::at(TimestampMs(now_ms)) }
}

/// The plan for all partitions of a log dir.
pub(super) fn planned(log_dir: &Path, options: &ReindexOptions, threads: usize) -> Plan {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let log_dir = LogDir::open(log_dir).unwrap();
    let partitions = log_dir.directories().iter().map(|member| member.entry.name.clone()).collect();
    plan(&[PlanInput { log_dir, partitions }], options, &pool, &Hidden).unwrap()
}

/// The same for the live partitions alone; `None` where one of them is refused.
pub(super) fn planned_live(log_dir: &Path, options: &ReindexOptions) -> Option<Plan> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let log_dir = LogDir::open(log_dir).unwrap();
    let live = log_dir.directories().iter().filter(|member| matches!(member.name, DirName::Partition(_)));
    let partitions = live.map(|member| member.entry.name.clone()).collect();
    plan(&[PlanInput { log_dir, partitions }], options, &pool, &Hidden).ok()
}

/// Where the log starts by its log dir's checkpoint.
pub(super) fn log_start_of(log_dir: &Path, image: &PartitionImage) -> i64 {
    let bytes = LogDir::open(log_dir).unwrap().read_checkpoint(CheckpointKind::LogStartOffset).unwrap();
    let checkpoint = OffsetCheckpoint::parse(&bytes.unwrap_or_default()).content;
    let name = image.topic_partition();
    let offset = checkpoint.offset_of(name.topic_str().unwrap(), name.partition());
    offset.map_or(0, |offset| offset.0)
}

/// Whether a file is one that is rebuilt.
pub(super) fn is_derived(name: &str) -> bool {
    [".index", ".timeindex", ".txnindex", ".snapshot"].iter().any(|extension| name.ends_with(extension))
}

/// The indexes and snapshots of an image.
pub(super) fn derived(image: &PartitionImage) -> Files {
    let names = image.names();
    let names = names.iter().filter(|name| is_derived(name.to_str().unwrap()));
    names.map(|name| (name.to_str().unwrap().to_owned(), image.read_small(name, 1 << 30).unwrap().unwrap())).collect()
}

/// What the recovery of the whole log leaves, as the model of a broker's start has it.
pub(super) fn recovered(image: &PartitionImage, log_start: i64, options: &ReindexOptions) -> Files {
    let rules = Rules::of(KafkaVersion::NEWEST);
    let mut start = preflight::Options::at(options.now);
    start.settings.index = options.index;
    start.settings.producer_expiration_ms = options.producer_expiration_ms;
    start.io = IoMode::Pread;
    let input = LoadInput {
        shutdown: Shutdown::Unclean,
        recovery_point: Offset(0),
        log_start: Offset(log_start),
        role: DirectoryRole::Log,
    };
    let mut image = image.clone();
    for name in image.names().iter().filter(|name| is_derived(name.to_str().unwrap())) {
        image.remove(name);
    }
    derived(&load_log(image, &mut start.environment(&rules, &Hidden), input).unwrap().image)
}

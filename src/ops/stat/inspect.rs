//! From targets to the report.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::StatOptions;
use super::distinct::Distinct;
use super::file_system::concerns;
use super::log::{ContentFigures, LogFigures};
use super::partition::{Checkpoints, MeasuredPartition, StatTarget, measure_target};
use super::report::{Depth, FileFigures, LogDirStat, LogSummary, StatReport, TopicStat, Totals};
use super::transactions::TransactionTrail;
use crate::format::len_u64;
use crate::logdir::{LockHolder, file_system_of, probe_lock};
use crate::ops::{Finding, Progress};

/// Measures the targets, on the threads of the pool that this is called in. `log_dirs` are described even where they hold nothing.
pub fn inspect(
    targets: &[StatTarget],
    log_dirs: &[PathBuf],
    options: StatOptions,
    progress: &dyn Progress,
) -> StatReport {
    progress.expect(targets.iter().map(StatTarget::log_bytes).sum());
    let checkpoints: BTreeMap<&Path, Checkpoints> =
        log_dirs.iter().map(|path| (path.as_path(), Checkpoints::read(path))).collect();
    let none = Checkpoints::default();
    let mut sums = Sums::new(options.depth);
    // A bounded number of partitions at a time: their figures are large until they have been summed up.
    for some in targets.chunks(rayon::current_num_threads().saturating_mul(2)) {
        let measured: Vec<MeasuredPartition> = some
            .par_iter()
            .map(|target| measure_target(target, checkpoints.get(target.log_dir()).unwrap_or(&none), options, progress))
            .collect();
        for partition in measured {
            sums.add(partition);
        }
    }
    sums.report(log_dirs, options.depth)
}

/// Topic-wide sums.
#[derive(Default)]
struct TopicSum {
    partitions: u64,
    log_bytes: u64,
    counted_records: u64,
    is_uncounted: bool,
    bytes_per_second: f64,
    keys: Distinct,
}

struct Sums {
    partitions: Vec<super::report::PartitionStat>,
    topics: BTreeMap<OsString, TopicSum>,
    all: LogFigures,
    files: FileFigures,
    findings: Vec<Finding>,
    is_incomplete: bool,
}

impl Sums {
    fn new(depth: Depth) -> Self {
        Self {
            partitions: Vec::new(),
            topics: BTreeMap::new(),
            all: match depth {
                Depth::Headers => LogFigures::default(),
                Depth::Records => LogFigures::with_content(),
            },
            files: FileFigures::default(),
            findings: Vec::new(),
            is_incomplete: false,
        }
    }

    fn add(&mut self, mut measured: MeasuredPartition) {
        let stat = &measured.stat;
        let topic = self.topics.entry(stat.topic_partition.topic().to_owned()).or_default();
        topic.partitions += 1;
        topic.log_bytes += stat.files.log_bytes;
        topic.counted_records += stat.log.records.unwrap_or(0);
        topic.is_uncounted |= stat.log.records.is_none();
        topic.bytes_per_second += stat.log.bytes_per_second().unwrap_or(0.0);
        if let Some(content) = &measured.figures.content {
            topic.keys.merge(&content.keys);
        }
        // Transactions are the partition's own; their sum means nothing.
        measured.figures.transactions = TransactionTrail::default();
        self.all.append(&measured.figures);
        self.files.add(&stat.files);
        self.findings.append(&mut measured.findings);
        self.is_incomplete |= measured.is_incomplete;
        self.partitions.push(measured.stat);
    }

    fn report(mut self, log_dirs: &[PathBuf], depth: Depth) -> StatReport {
        self.all.first_offset = None;
        self.all.last_offset = None;
        let rate = |of: fn(&LogSummary) -> Option<f64>| {
            self.partitions.iter().filter_map(|partition| of(&partition.log)).sum::<f64>()
        };
        let totals = Totals {
            partitions: len_u64(self.partitions.len()),
            topics: len_u64(self.topics.len()),
            files: self.files,
            log: LogSummary::of(&self.all),
            dirty_bytes: self.partitions.iter().map(|partition| partition.cleaning.dirty_bytes).sum(),
            clean_bytes: self.partitions.iter().map(|partition| partition.cleaning.clean_bytes).sum(),
            open_transactions: self.partitions.iter().map(|p| len_u64(p.open_transactions.len())).sum(),
            bytes_per_second: rate(LogSummary::bytes_per_second),
            records_per_second: rate(LogSummary::records_per_second),
        };
        StatReport {
            depth,
            is_complete: !self.is_incomplete,
            is_live: log_dirs.iter().any(|path| probe_lock(path) != LockHolder::Nobody),
            log_dirs: log_dirs.iter().map(|path| describe(path)).collect(),
            topics: topic_stats(self.topics, depth),
            partitions: self.partitions,
            totals,
            findings: self.findings,
        }
    }
}

fn describe(path: &Path) -> LogDirStat {
    let file_system = file_system_of(path).ok();
    let concerns = file_system.as_ref().map_or_else(Vec::new, concerns);
    LogDirStat { path: path.to_path_buf(), file_system, concerns }
}

fn topic_stats(topics: BTreeMap<OsString, TopicSum>, depth: Depth) -> Vec<TopicStat> {
    let mut stats: Vec<TopicStat> = topics
        .into_iter()
        .map(|(topic, sum)| TopicStat {
            topic,
            partitions: sum.partitions,
            log_bytes: sum.log_bytes,
            records: (!sum.is_uncounted).then_some(sum.counted_records),
            bytes_per_second: sum.bytes_per_second,
            distinct_keys: (depth == Depth::Records).then(|| sum.keys.count()),
        })
        .collect();
    stats.sort_by(|a, b| b.log_bytes.cmp(&a.log_bytes).then_with(|| a.topic.cmp(&b.topic)));
    stats
}

/// An empty sum of what records say, where records are read.
pub(super) fn empty_content(depth: Depth) -> Option<ContentFigures> {
    (depth == Depth::Records).then(ContentFigures::default)
}

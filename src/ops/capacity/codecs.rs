//! What other codecs would make of the same batches.

use std::time::Duration;

use crate::format::compression::{Codec, Compressor, Decompressor, Level, Lz4Checksum};
use crate::format::record::Records;
use crate::format::{BATCH_HEADER, Batch, len_u64};
use crate::logdir::{IoMode, PartitionDir, Scanned, Segment, SegmentFile};
use crate::ops::stat::StatTarget;
use crate::ops::{SoundBatches, SoundItem};

/// A batch that inflates to more is left out of the sample.
const MOST_UNCOMPRESSED: u64 = 16 * 1024 * 1024;
const BYTES_PER_GB: f64 = 1e9;

/// The codecs and levels that are tried: what Kafka offers, at the levels people choose.
const TRIALS: [(Codec, Option<i32>); 10] = [
    (Codec::None, None),
    (Codec::Gzip, Some(1)),
    (Codec::Gzip, Some(6)),
    (Codec::Gzip, Some(9)),
    (Codec::Snappy, None),
    (Codec::Lz4, None),
    (Codec::Zstd, Some(1)),
    (Codec::Zstd, Some(3)),
    (Codec::Zstd, Some(9)),
    (Codec::Zstd, Some(19)),
];

/// A sample of batches, recompressed in every way.
#[derive(Clone, PartialEq, Debug)]
pub struct CodecTrials {
    /// Batches in the sample.
    pub batches: u64,
    /// Records in them.
    pub records: u64,
    /// Batches that were left out: legacy ones, damaged ones, huge ones.
    pub skipped_batches: u64,
    /// As they lie on disk.
    pub stored_bytes: u64,
    /// As they would be without compression.
    pub uncompressed_bytes: u64,
    /// Keys, values and headers.
    pub payload_bytes: u64,
    /// One for each codec and level.
    pub trials: Vec<CodecTrial>,
}

/// One codec at one level.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CodecTrial {
    /// The codec.
    pub codec: Codec,
    /// Its level, where it has one.
    pub level: Option<i32>,
    /// The sample's batches with this codec, headers included.
    pub bytes: u64,
    /// CPU time of compression.
    pub compress_time: Duration,
    /// CPU time of decompression.
    pub decompress_time: Duration,
    /// Batches that the codec's library failed on; their uncompressed size stands in `bytes`.
    pub failures: u64,
}

impl CodecTrial {
    /// CPU seconds to compress a GB (10^9 bytes) of uncompressed batches.
    pub fn compress_seconds_per_gb(&self, sample: &CodecTrials) -> f64 {
        per_gb(self.compress_time, sample.uncompressed_bytes)
    }

    /// CPU seconds to decompress to a GB (10^9 bytes) of uncompressed batches.
    pub fn decompress_seconds_per_gb(&self, sample: &CodecTrials) -> f64 {
        per_gb(self.decompress_time, sample.uncompressed_bytes)
    }

    /// Bytes on disk as a share of the payload: what the formula's compression ratio is.
    pub fn compression_ratio(&self, sample: &CodecTrials) -> f64 {
        if sample.payload_bytes > 0 { self.bytes as f64 / sample.payload_bytes as f64 } else { 1.0 }
    }
}

fn per_gb(time: Duration, bytes: u64) -> f64 {
    if bytes > 0 { time.as_secs_f64() * BYTES_PER_GB / bytes as f64 } else { 0.0 }
}

/// Recompresses up to `sample_bytes` (as on disk) of the targets' batches, spread evenly over their segments. `cpu_time` tells the
/// CPU time that this thread has used so far.
pub fn try_codecs(
    targets: &[StatTarget],
    io: IoMode,
    sample_bytes: u64,
    cpu_time: &dyn Fn() -> Duration,
) -> CodecTrials {
    let mut bench = Bench::new(cpu_time);
    let files = log_files(targets);
    let share = (sample_bytes / len_u64(files.len()).max(1)).max(1);
    for (place, segment) in &files {
        let opened = match place {
            Place::Partition(partition) => segment.log.as_ref().and_then(|log| partition.open_file(&log.name, io).ok()),
            Place::File(path) => SegmentFile::open(path, io).ok(),
        };
        let Some(file) = opened else { continue };
        let mut taken = 0;
        let mut batches = SoundBatches::new(&file, segment.base_offset);
        while taken < share
            && let Some(item) = batches.next_item()
        {
            let SoundItem::Batch(batch) = item else {
                bench.result.skipped_batches += 1;
                continue;
            };
            taken += batch.header().size_bytes;
            bench.add(&batch);
        }
    }
    bench.result
}

enum Place<'a> {
    Partition(&'a PartitionDir),
    File(&'a std::path::Path),
}

fn log_files(targets: &[StatTarget]) -> Vec<(Place<'_>, Segment)> {
    let mut files = Vec::new();
    for target in targets {
        match target {
            StatTarget::Partition(partition) => {
                let logs = partition
                    .segments()
                    .into_iter()
                    .filter(|segment| segment.log.as_ref().is_some_and(|log| log.size_bytes > 0));
                files.extend(logs.map(|segment| (Place::Partition(partition), segment)));
            }
            StatTarget::LogFile { path, base_offset, .. } => {
                let segment = Segment {
                    base_offset: *base_offset,
                    log: None,
                    offset_index: None,
                    time_index: None,
                    txn_index: None,
                    snapshot: None,
                };
                files.push((Place::File(path), segment));
            }
        }
    }
    files
}

struct Bench<'c> {
    cpu_time: &'c dyn Fn() -> Duration,
    source: Decompressor,
    compressor: Compressor,
    check: Decompressor,
    result: CodecTrials,
}

impl<'c> Bench<'c> {
    fn new(cpu_time: &'c dyn Fn() -> Duration) -> Self {
        let trial = |(codec, level): (Codec, Option<i32>)| CodecTrial {
            codec,
            level,
            bytes: 0,
            compress_time: Duration::ZERO,
            decompress_time: Duration::ZERO,
            failures: 0,
        };
        Self {
            cpu_time,
            source: Decompressor::new(),
            compressor: Compressor::new(),
            check: Decompressor::new(),
            result: CodecTrials {
                batches: 0,
                records: 0,
                skipped_batches: 0,
                stored_bytes: 0,
                uncompressed_bytes: 0,
                payload_bytes: 0,
                trials: TRIALS.map(trial).to_vec(),
            },
        }
    }

    fn add(&mut self, batch: &Scanned<'_>) {
        let header = batch.header();
        if header.is_control() {
            return;
        }
        let whole = match batch {
            Scanned::Whole(batch) if !header.is_legacy() => batch,
            _ => {
                self.result.skipped_batches += 1;
                return;
            }
        };
        if self.measure(whole).is_none() {
            self.result.skipped_batches += 1;
        }
    }

    fn measure(&mut self, batch: &Batch<'_>) -> Option<()> {
        let header = batch.header();
        let codec = Codec::from_id(header.attributes.codec_id())?;
        let content =
            self.source.decompress(codec, Lz4Checksum::Verified, batch.records_bytes(), MOST_UNCOMPRESSED).ok()?.bytes;
        let mut payload = 0;
        for record in Records::new(header, content).ok()? {
            let record = record.ok()?;
            let headers = record.headers.iter().map(|header| header.key.len() + header.value.map_or(0, <[u8]>::len));
            let parts = record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len);
            payload += len_u64(parts + headers.sum::<usize>());
        }
        let result = &mut self.result;
        result.batches += 1;
        result.records += header.records_count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
        result.stored_bytes += header.size_bytes;
        result.uncompressed_bytes += len_u64(BATCH_HEADER + content.len());
        result.payload_bytes += payload;
        for trial in &mut result.trials {
            let start = (self.cpu_time)();
            let level = trial.level.map_or(Level::Default, Level::Of);
            let compressed = self.compressor.compress(trial.codec, Lz4Checksum::Verified, level, content);
            let middle = (self.cpu_time)();
            let Ok(compressed) = compressed else {
                trial.failures += 1;
                trial.bytes += len_u64(BATCH_HEADER + content.len());
                continue;
            };
            trial.bytes += len_u64(BATCH_HEADER + compressed.len());
            let back = self.check.decompress(trial.codec, Lz4Checksum::Verified, compressed, MOST_UNCOMPRESSED);
            let end = (self.cpu_time)();
            if !back.is_ok_and(|back| back.bytes == content) {
                trial.failures += 1;
            }
            trial.compress_time += middle.saturating_sub(start);
            trial.decompress_time += end.saturating_sub(middle);
        }
        Some(())
    }
}

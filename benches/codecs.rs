//! `verify` of records, codec by codec, against the bare decompressor over the same batches on as many threads, by the time of the
//! processors.
//! `cargo bench --bench codecs`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench may panic"
)]

mod measure;

use std::path::Path;

use flate2::{Decompress, FlushDecompress};
use rayon::ThreadPool;
use segtool::format::BATCH_HEADER;
use segtool::format::compression::Codec;
use segtool::logdir::{Input, IoMode, LogScanner, Scanned, SegmentFile};
use segtool::ops::Hidden;
use segtool::ops::verify::{Options, inspect};
use zstd::zstd_safe::DCtx;

use measure::records::{RECORD, write_log};

const ROUNDS: usize = 7;
const BYTES: usize = 256 << 20;

fn verify(path: &Path, pool: &ThreadPool) {
    let options = Options::default();
    let report = inspect(&[Input::open(path).unwrap()], &|_| true, &options, pool, &Hidden).unwrap();
    assert!(report.is_complete && report.findings.is_empty());
}

/// The libraries alone, with their contexts kept, and nothing checked that they do not check.
struct Bare {
    deflate: Decompress,
    snappy: snap::raw::Decoder,
    zstd: DCtx<'static>,
    out: Vec<u8>,
}

impl Bare {
    fn new() -> Self {
        Self {
            deflate: Decompress::new(false),
            snappy: snap::raw::Decoder::new(),
            zstd: DCtx::create(),
            out: vec![0; 1 << 20],
        }
    }

    /// Bytes that come out. `content` is what stands behind a batch's header.
    fn decompress(&mut self, codec: Codec, content: &[u8]) -> usize {
        match codec {
            Codec::None => {
                self.out[..content.len()].copy_from_slice(content);
                content.len()
            }
            Codec::Gzip => {
                self.deflate.reset(false);
                self.deflate.decompress(&content[10..], &mut self.out, FlushDecompress::Finish).unwrap();
                usize::try_from(self.deflate.total_out()).unwrap()
            }
            Codec::Snappy => {
                let (mut rest, mut filled) = (&content[16..], 0);
                while let Some((length, tail)) = rest.split_first_chunk::<4>() {
                    let (block, tail) = tail.split_at(u32::from_be_bytes(*length) as usize);
                    filled += self.snappy.decompress(block, &mut self.out[filled..]).unwrap();
                    rest = tail;
                }
                filled
            }
            Codec::Lz4 => {
                let (mut rest, mut filled) = (&content[7..], 0);
                while let Some((word, tail)) = rest.split_first_chunk::<4>() {
                    let length = u32::from_be_bytes(*word).swap_bytes() as usize;
                    if length == 0 {
                        break;
                    }
                    let (block, tail) = tail.split_at(length);
                    filled += lz4_flex::block::decompress_into(block, &mut self.out[filled..]).unwrap();
                    rest = tail;
                }
                filled
            }
            Codec::Zstd => self.zstd.decompress(&mut self.out[..], content).unwrap(),
        }
    }
}

/// Decompresses every batch on so many threads: each has every nth batch of the file, all of which it reads.
fn bare(path: &Path, codec: Codec, threads: usize) {
    let decompress = |thread: usize| {
        let file = SegmentFile::open(path, IoMode::Pread).unwrap();
        let mut scanner = LogScanner::new(&file);
        let (mut bare, mut count) = (Bare::new(), 0);
        let mut number = 0;
        while let Ok(Some(Scanned::Whole(batch))) = scanner.next_batch() {
            if number % threads == thread {
                count += bare.decompress(codec, &batch.bytes()[BATCH_HEADER..]);
            }
            number += 1;
        }
        count
    };
    let decompress = &decompress;
    let counts: Vec<usize> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|thread| scope.spawn(move || decompress(thread))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    assert_eq!(counts.into_iter().sum::<usize>(), BYTES / RECORD * RECORD);
}

fn main() {
    let root = tempfile::tempdir().unwrap();
    let partition = root.path().join("orders-0");
    std::fs::create_dir(&partition).unwrap();
    let path = partition.join("00000000000000000000.log");
    for codec in Codec::ALL {
        write_log(&path, codec, BYTES);
        for threads in [1, 2] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            measure::compare(measure::processor, ROUNDS, || verify(&path, &pool), || bare(&path, codec, threads))
                .print(&format!("verify of records, {codec}, threads: {threads}"), BYTES as u64);
        }
    }
}

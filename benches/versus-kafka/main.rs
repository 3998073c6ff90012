//! segtool against Kafka's own classes, in turn, on segments that those have written: `cargo bench --bench versus-kafka`.
//!
//! Kafka's dump tool starts anew for each run, as segtool does; recovery and cleaner run in one JVM that is warm. Needs a JDK, Maven
//! and about five times `--bytes` of space; without Java it says so and does nothing. `-- --help` lists what can be said.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a bench may panic"
)]

#[path = "../../tests/it/interop/kafka.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod kafka;
mod measured;
mod work;

use std::fs;
use std::path::PathBuf;

use clap::Parser;

use measured::{Cost, Series};
use work::{Codec, Kind, Lab};

/// The version to compare with.
const KAFKA: &str = "4.4.0";

/// Measures segtool against Kafka's own classes.
#[derive(Clone, Debug, Parser)]
struct Options {
    /// Rounds that count; one more warms up.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Bytes of each segment.
    #[arg(long, default_value_t = 1 << 30)]
    bytes: u64,
    /// Different keys.
    #[arg(long, default_value_t = 1_000_000)]
    keys: u32,
    /// Where the segments are written: a file system in memory leaves the disk out.
    #[arg(long, default_value = concat!(env!("CARGO_TARGET_TMPDIR"), "/versus-kafka"))]
    directory: PathBuf,
    /// What segtool may use.
    #[arg(long, default_value = "512MiB")]
    max_memory: String,
    /// Only work and codecs whose names contain one of these.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// What `cargo bench` passes.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Options {
    fn wants(&self, kind: Kind, codec: Codec) -> bool {
        let name = format!("{} {}", kind.name(), codec.name());
        self.names.is_empty() || self.names.iter().any(|wanted| name.contains(wanted))
    }
}

fn main() {
    if let Some(command) = measured::command_to_measure() {
        return measured::measure(&command);
    }
    let options = Options::parse();
    if kafka::is_missing() {
        return;
    }
    fs::create_dir_all(&options.directory).unwrap();
    let directory = tempfile::tempdir_in(&options.directory).unwrap();
    for codec in Codec::ALL {
        let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| options.wants(*kind, codec)).collect();
        if kinds.is_empty() {
            continue;
        }
        let mut lab = Lab::new(directory.path(), &options, codec);
        println!("{}: {} bytes, {} records", codec.name(), lab.size_bytes(), lab.records());
        for kind in kinds {
            let mut series = Series::default();
            for round in 0..=options.rounds {
                // Who is first takes turns.
                let (ours, theirs): (Cost, Cost);
                if round % 2 == 0 {
                    (ours, theirs) = (lab.segtool(kind), lab.kafka(kind));
                } else {
                    theirs = lab.kafka(kind);
                    ours = lab.segtool(kind);
                }
                lab.compare(kind);
                if round > 0 {
                    series.add(ours, theirs);
                }
            }
            series.print(kind.name());
        }
    }
}

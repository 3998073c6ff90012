//! Every single flipped bit of small logs in every format and codec, and of the files beside them: noticed where a checksum covers
//! it, and elsewhere noticed by what contradicts it, or listed in the manual among what no reader can tell.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use segtool::logdir::Input;
use segtool::ops::verify::inspect;
use segtool::ops::{FindingId, Hidden, Severity};

use crate::support::{Sandbox, files_below};
use crate::synth::control::{Marker, end_transaction};
use crate::synth::legacy::{v0, v1, wrapper};
use crate::synth::{Batch, Codec, LogDir, Partition, T, Unit, record};
use crate::verify::options;

type Known = BTreeSet<(FindingId, PathBuf, Option<u64>)>;

/// What is found, and the worst severity in the file that was flipped.
fn look(log_dir: &Path, file: &Path) -> (Known, Option<Severity>) {
    static POOL: LazyLock<rayon::ThreadPool> =
        LazyLock::new(|| rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let report = inspect(&[Input::open(log_dir).unwrap()], &|_| true, &options(), &POOL, &Hidden).unwrap();
    let key = |finding: &segtool::ops::Finding| {
        (finding.id, finding.location.path.clone(), finding.location.position.map(|at| at.0))
    };
    let in_file = report.findings.iter().filter(|finding| finding.location.path == file);
    (report.findings.iter().map(key).collect(), in_file.map(|finding| finding.severity).max())
}

/// One flipped bit that nobody notices: file, byte, bit.
type Bit = (String, usize, u32);

/// Flips every bit of a file, one after the other. Gives those that nobody notices, and checks that what a checksum covers is an
/// error at least.
fn unnoticed(sandbox: &Sandbox, file: &Path, covered: &[bool]) -> Vec<Bit> {
    let (known, worst) = look(sandbox.path(), file);
    assert!(worst <= Some(Severity::Info), "{known:?}");
    let path = sandbox.join(file);
    let sound = fs::read(&path).unwrap();
    let mut unnoticed = Vec::new();
    for (position, bit) in (0..sound.len()).flat_map(|position| (0..8).map(move |bit| (position, bit))) {
        let mut bytes = sound.clone();
        bytes[position] ^= 1 << bit;
        fs::write(&path, &bytes).unwrap();
        let (found, worst) = look(sandbox.path(), file);
        if covered.get(position) == Some(&true) {
            assert!(worst >= Some(Severity::Error), "{} byte {position} bit {bit}: {worst:?}", file.display());
        }
        if found == known {
            unnoticed.push((file.to_str().unwrap().to_owned(), position, bit));
        }
    }
    fs::write(&path, &sound).unwrap();
    unnoticed
}

/// Which bytes of a log the checksums of its batches cover.
fn covered_by_checksums(units: &[Unit]) -> Vec<bool> {
    let covered = units.iter().flat_map(|unit| {
        let (bytes, from) = match unit {
            Unit::Batch(batch) => (batch.build(), 17),
            Unit::Legacy(message) => (message.build(), 12),
        };
        (0..bytes.len()).map(move |at| at >= from)
    });
    covered.collect()
}

fn in_log_dir(partition: &Partition) -> Sandbox {
    let sandbox = Sandbox::empty();
    LogDir::new([partition.clone()]).write(sandbox.path());
    sandbox
}

/// Flips the logs of a partition.
fn unnoticed_in_logs(partition: &Partition) -> Vec<Bit> {
    let sandbox = in_log_dir(partition);
    let segments = partition.segments.iter().flat_map(|segment| {
        let file = PathBuf::from(partition.name()).join(format!("{:020}.log", segment.base_offset));
        unnoticed(&sandbox, &file, &covered_by_checksums(&segment.units))
    });
    segments.collect()
}

/// Why nobody notices some bits: the row of the manual's table, and the bits' file and bytes.
type Excuse = (&'static str, &'static str, std::ops::Range<usize>);

/// Every unnoticed bit has its excuse, every excuse is needed and stands in the manual.
#[track_caller]
fn assert_excused(bits: &[Bit], excuses: &[Excuse]) {
    let manual = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("man/segtool-findings.7")).unwrap();
    let excuses_bit = |(_, file, bytes): &Excuse, bit: &Bit| *file == bit.0 && bytes.contains(&bit.1);
    let left: Vec<&Bit> = bits.iter().filter(|bit| !excuses.iter().any(|excuse| excuses_bit(excuse, bit))).collect();
    assert_eq!(left, Vec::<&Bit>::new(), "unnoticed");
    for excuse in excuses {
        assert!(bits.iter().any(|bit| excuses_bit(excuse, bit)), "{excuse:?} is not needed");
        let title = format!(".TP\n.B {}\n", excuse.0.replace('-', "\\-"));
        assert!(manual.contains(&title), "{title}");
    }
}

fn batch(base: i64, codec: Codec) -> Batch {
    let records = (0..2).map(|at| record(format!("k{at}"), format!("value {base}")).at(T + base + at));
    Batch::at(base).codec(codec).records(records)
}

/// With an entry in the offset index for every batch but the first.
fn dense(topic: &str, units: impl IntoIterator<Item = Unit>) -> Partition {
    units.into_iter().fold(Partition::new(topic, 0).index_interval_bytes(1), Partition::append)
}

#[test]
fn batches_of_format_2_in_every_codec() {
    for codec in Codec::ALL {
        let units = [batch(0, codec), batch(2, codec)];
        let last = units[0].build().len();
        // To the next offset, which the index entry of the batch allows.
        let excuse = ("base offset, last batch of a log", "orders-0/00000000000000000000.log", last + 7..last + 8);
        assert_excused(&unnoticed_in_logs(&dense("orders", units.map(Unit::from))), &[excuse]);
    }
}

#[test]
fn messages_of_format_0_in_every_codec() {
    let pair = |base: i64| [v0(base, Some("k"), Some("v")), v0(base + 1, None, Some("w"))];
    assert_excused(&unnoticed_in_logs(&dense("orders", pair(0).map(Unit::from))), &[]);
    for codec in [Codec::GZIP, Codec::SNAPPY, Codec::LZ4_V0] {
        let units = [wrapper(codec, &pair(0)), wrapper(codec, &pair(2))];
        assert_excused(&unnoticed_in_logs(&dense("orders", units.map(Unit::from))), &[]);
    }
}

#[test]
fn messages_of_format_1_in_every_codec() {
    let pair = |base: i64| [v1(base, T + base, Some("k"), Some("v")), v1(base + 1, T + base, None, Some("w"))];
    assert_excused(&unnoticed_in_logs(&dense("orders", pair(0).map(Unit::from))), &[]);
    for codec in [Codec::GZIP, Codec::SNAPPY, Codec::LZ4] {
        let units = [wrapper(codec, &pair(0)), wrapper(codec, &pair(2))];
        assert_excused(&unnoticed_in_logs(&dense("orders", units.map(Unit::from))), &[]);
    }
}

/// Two transactions, one aborted, and an aborted one in the next segment.
fn transactions() -> Partition {
    let data = |base: i64, id: i64| batch(base, Codec::NONE).producer(id, 0, 0).transactional();
    let end = |base: i64, id: i64, marker: Marker| end_transaction(base, marker, (id, 0), 0, T + base);
    let first = [data(0, 1), end(2, 1, Marker::Abort), data(3, 2), end(5, 2, Marker::Commit)];
    let partition = dense("orders", first.map(Unit::from)).append(batch(6, Codec::NONE)).roll();
    partition.append(data(8, 3)).append(end(10, 3, Marker::Abort))
}

#[test]
fn batches_and_markers_of_transactions() {
    assert_excused(&unnoticed_in_logs(&transactions()), &[]);
}

#[test]
fn files_beside_a_log() {
    let sandbox = in_log_dir(&transactions());
    let is_binary = |file: &PathBuf| {
        ["index", "timeindex", "txnindex", "snapshot"].iter().any(|e| file.extension() == Some(e.as_ref()))
    };
    let files = files_below(sandbox.path())
        .into_iter()
        .filter(|file| is_binary(file) || file.ends_with("leader-epoch-checkpoint"));
    let bits: Vec<Bit> = files.flat_map(|file| unnoticed(&sandbox, &file, &[])).collect();
    assert_excused(
        &bits,
        &[
            ("offset index", "orders-0/00000000000000000000.index", 3..4),
            ("offset index", "orders-0/00000000000000000000.index", 27..28),
            ("time index", "orders-0/00000000000000000000.timeindex", 47..48),
            ("transaction index", "orders-0/00000000000000000000.txnindex", 33..34),
            ("leader-epoch-checkpoint", "orders-0/leader-epoch-checkpoint", 7..8),
        ],
    );
}

#[test]
fn files_of_a_log_dir() {
    let sandbox = in_log_dir(&dense("orders", [batch(0, Codec::NONE), batch(2, Codec::NONE)].map(Unit::from)));
    let is_text = |file: &PathBuf| {
        file.components().count() == 1 && file.as_os_str() != ".lock" || file.ends_with("partition.metadata")
    };
    let files = files_below(sandbox.path()).into_iter().filter(is_text);
    let bits: Vec<Bit> = files.flat_map(|file| unnoticed(&sandbox, &file, &[])).collect();
    let (metadata, properties) = ("orders-0/partition.metadata", "meta.properties");
    assert_excused(
        &bits,
        &[
            ("checkpoints", "recovery-point-offset-checkpoint", 13..15),
            ("checkpoints", "replication-offset-checkpoint", 13..15),
            ("names and comments", metadata, 0..7),
            ("names and comments", metadata, 11..19),
            ("ids", metadata, 21..43),
            ("names and comments", properties, 0..31),
            ("ids", properties, 43..65),
            ("names and comments", properties, 65..75),
            ("names and comments", properties, 76..89),
            ("ids", properties, 89..111),
            ("ids", properties, 120..121),
            ("names and comments", ".kafka_cleanshutdown", 0..31),
        ],
    );
}

/// Several records of one time, of which the index names any.
#[test]
fn a_time_index_beside_batches_of_several_records() {
    let batch = |base: i64| Batch::at(base).records((0..4).map(|at| record(format!("k{at}"), "v").at(T + base)));
    let sandbox = in_log_dir(&dense("orders", [batch(0), batch(4)].map(Unit::from)));
    let index = "orders-0/00000000000000000000.timeindex";
    assert_excused(&unnoticed(&sandbox, Path::new(index), &[]), &[("time index", index, 11..12)]);
}

/// A cleaned log whose indexes have no entries, and whose epochs nobody wrote down.
#[test]
fn batches_of_a_cleaned_log_that_no_file_speaks_of() {
    let batch = |base: i64, epoch: i32| batch(base, Codec::NONE).leader_epoch(epoch);
    let partition = Partition::new("orders", 0)
        .append(batch(0, 0))
        .append(batch(16, 2))
        .append(batch(32, 8))
        .roll_at(64)
        .append(batch(64, 8));
    let sandbox = in_log_dir(&partition);
    fs::remove_file(sandbox.join("orders-0/leader-epoch-checkpoint")).unwrap();
    let logs = ["orders-0/00000000000000000000.log", "orders-0/00000000000000000064.log"];
    let bits: Vec<Bit> = logs.iter().flat_map(|log| unnoticed(&sandbox, Path::new(log), &[])).collect();
    assert_excused(
        &bits,
        &[
            ("base offset, other batches", logs[0], 7..8),
            ("leader epoch", logs[0], 15..16),
            ("base offset, other batches", logs[0], 100..101),
            ("leader epoch", logs[0], 108..109),
            ("base offset, other batches", logs[0], 195..196),
            ("base offset, last batch of a log", logs[1], 7..8),
            ("leader epoch", logs[1], 12..16),
        ],
    );
}

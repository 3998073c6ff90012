//! What an input is made of.

use std::fs;
use std::path::{Path, PathBuf};

use segtool::ops::FindingId;

use crate::support::damage;
use crate::synth::{Batch, LogDir, Partition, T, record};

/// The smallest input that has one finding.
pub(super) struct Fixture {
    pub(super) id: FindingId,
    /// Findings that cannot be had without.
    pub(super) with: &'static [FindingId],
    /// Flags for `verify`.
    pub(super) flags: &'static [&'static str],
    /// Writes one or more log dirs as children of a directory.
    pub(super) write: fn(&Path),
}

/// An input with exactly this finding.
pub(super) const fn only(id: FindingId, write: fn(&Path)) -> Fixture {
    along(id, &[], write)
}

/// An input with this finding and others that always come with it.
pub(super) const fn along(id: FindingId, with: &'static [FindingId], write: fn(&Path)) -> Fixture {
    Fixture { id, with, flags: &[], write }
}

/// Two records at their own offsets' times.
pub(super) fn batch(base: i64) -> Batch {
    Batch::at(base)
        .records((0..2).map(|at| record(format!("key-{at}"), format!("value {}", base + at)).at(T + base + at)))
}

/// `orders-0`: three segments of three batches, an index entry each.
pub(super) fn orders() -> Partition {
    let segments = [[0, 2, 4], [6, 8, 10], [12, 14, 16]];
    let mut partition = Partition::new("orders", 0).index_interval_bytes(100);
    for (at, bases) in segments.iter().enumerate() {
        partition = if at == 0 { partition } else { partition.roll() };
        partition = bases.iter().fold(partition, |partition, base| partition.append(batch(*base)));
    }
    partition
}

/// `orders-0` with one segment of these batches.
pub(super) fn of_batches(batches: impl IntoIterator<Item = Batch>) -> Partition {
    batches.into_iter().fold(Partition::new("orders", 0), Partition::append)
}

/// A log dir that a broker closed, with one partition, at `<root>/dir`.
pub(super) fn closed(root: &Path, partition: Partition) -> Damaged {
    closed_with(root, [partition])
}

/// A log dir that a broker closed.
pub(super) fn closed_with(root: &Path, partitions: impl IntoIterator<Item = Partition>) -> Damaged {
    let dir = root.join("dir");
    fs::create_dir_all(&dir).unwrap();
    LogDir::new(partitions).write(&dir);
    Damaged { dir }
}

/// A log dir to be damaged.
pub(super) struct Damaged {
    pub(super) dir: PathBuf,
}

pub(super) const MIDDLE: &str = "00000000000000000006";
pub(super) const LAST: &str = "00000000000000000012";

impl Damaged {
    /// A file of the log dir.
    pub(super) fn join(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// A file of `orders-0`.
    pub(super) fn orders(&self, name: &str) -> PathBuf {
        self.dir.join("orders-0").join(name)
    }

    /// The broker was killed: no marker.
    pub(super) fn killed(self) -> Self {
        fs::remove_file(self.join(".kafka_cleanshutdown")).unwrap();
        self
    }

    /// Replaces or adds a file of `orders-0`.
    pub(super) fn put(self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        fs::write(self.orders(name), bytes).unwrap();
        self
    }

    /// Replaces or adds a file of the log dir.
    pub(super) fn put_top(self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        fs::write(self.join(name), bytes).unwrap();
        self
    }

    /// Removes a file of `orders-0`.
    pub(super) fn remove(self, name: &str) -> Self {
        fs::remove_file(self.orders(name)).unwrap();
        self
    }

    /// Appends to a file of `orders-0`.
    pub(super) fn append(self, name: &str, bytes: &[u8]) -> Self {
        damage::append(&self.orders(name), bytes);
        self
    }

    /// Overwrites a part of a file of `orders-0`.
    pub(super) fn overwrite(self, name: &str, position: usize, bytes: &[u8]) -> Self {
        damage::overwrite(&self.orders(name), position, bytes);
        self
    }
}

/// `<segment>.<extension>`.
pub(super) fn of(segment: &str, extension: &str) -> String {
    format!("{segment}.{extension}")
}

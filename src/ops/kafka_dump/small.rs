//! Transaction indexes and producer snapshots (`dumpTxnIndex`, `dumpProducerIdSnapshot`).

use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::Path;

use super::event::{Event, SnapshotFault, Trouble};
use super::walk::Options;
use crate::format::producer_snapshot::{ProducerSnapshot, SNAPSHOT_HEADER, SNAPSHOT_VERSION};
use crate::format::txn_index::TxnIndex;
use crate::logdir::{IoMode, ReadError, ReadErrorKind, SegmentFile};

type Visit<'v> = dyn FnMut(Event<'_>) -> ControlFlow<()> + 'v;

pub(super) fn dump_txn_index(path: &Path, options: &Options, visit: &mut Visit<'_>) -> ControlFlow<()> {
    let bytes = match read(path, options) {
        Ok(bytes) => bytes,
        // A segment without aborted transactions has no such file.
        Err(ReadError { kind: ReadErrorKind::Io(error), .. }) if error.kind() == ErrorKind::NotFound => {
            return ControlFlow::Continue(());
        }
        Err(error) => return visit(Event::Trouble(Trouble::Unreadable(error))),
    };
    for entry in TxnIndex::new(&bytes).iter() {
        if entry.version != 0 {
            visit(Event::Trouble(Trouble::TransactionVersion { version: entry.version }))?;
        }
        visit(Event::AbortedTransaction(entry))?;
    }
    ControlFlow::Continue(())
}

pub(super) fn dump_producer_snapshot(path: &Path, options: &Options, visit: &mut Visit<'_>) -> ControlFlow<()> {
    let bytes = match read(path, options) {
        Ok(bytes) => bytes,
        Err(error) => return visit(Event::Trouble(Trouble::Unreadable(error))),
    };
    let snapshot = ProducerSnapshot::parse(&bytes);
    if snapshot.fault.is_some() {
        return visit(Event::Trouble(Trouble::Snapshot(fault_of(&snapshot.content, &bytes))));
    }
    for entry in &snapshot.content.entries {
        visit(Event::Producer(entry))?;
    }
    ControlFlow::Continue(())
}

/// What Kafka's reader meets first: it reads everything before it looks at the checksum.
fn fault_of(snapshot: &ProducerSnapshot, bytes: &[u8]) -> SnapshotFault {
    let available = bytes.len().saturating_sub(SNAPSHOT_HEADER);
    let version = bytes.first_chunk().map(|bytes| i16::from_be_bytes(*bytes));
    let count = snapshot.stated_count;
    if let Some(version) = version.filter(|version| *version != SNAPSHOT_VERSION) {
        SnapshotFault::Version(version)
    } else if bytes.len() < SNAPSHOT_HEADER {
        SnapshotFault::Short
    } else if count < 0 {
        SnapshotFault::NegativeCount
    } else if usize::try_from(count).is_ok_and(|count| count > available) {
        SnapshotFault::CountBeyondEnd { count, available }
    } else if usize::try_from(count).is_ok_and(|count| count > snapshot.entries.len()) {
        SnapshotFault::Short
    } else {
        SnapshotFault::Checksum { stored: snapshot.stored_crc, computed: snapshot.computed_crc }
    }
}

fn read(path: &Path, options: &Options) -> Result<Vec<u8>, ReadError> {
    SegmentFile::open(path, IoMode::Pread)?.read_whole(options.max_held)
}

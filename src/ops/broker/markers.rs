//! End markers of transactions, as a broker reads them when it replays a log (`EndTransactionMarker`, `ControlRecordType`).

use std::ops::ControlFlow;

use super::transactions::{EndMarker, TransactionOutcome};
use crate::format::record::Record;
use crate::format::{Cursor, Shape, TimestampMs};
use crate::logdir::Scanned;
use crate::ops::{RecordReader, RecordsError};

/// A control batch of a producer that is no end marker: a broker that replays it does not start, at any start.
#[derive(Debug, thiserror::Error)]
pub enum MarkerError {
    /// The batch's records cannot be read.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// Key or value is absent, too short, of a negative version, or of a type that ends no transaction.
    #[error("control record is no end marker")]
    NotAMarker,
}

/// Reads the marker of a control batch: its first record. `None` where the cleaner has emptied the batch.
pub fn read_end_marker(batch: &Scanned<'_>, reader: &mut RecordReader) -> Result<Option<EndMarker>, MarkerError> {
    let mut found = None;
    let read = reader.read(batch, &mut |record: &Record<'_>| {
        found.get_or_insert_with(|| parse(record));
        // Read on: with the last record a broker sees that nothing follows it.
        ControlFlow::Continue(())
    });
    match found {
        // A broker takes the first record and looks no further, unless it is also the last.
        Some(marker) if read.is_ok() || batch.header().records_count.is_some_and(|count| count > 1) => {
            marker.ok_or(MarkerError::NotAMarker).map(Some)
        }
        _ => {
            read?;
            Ok(None)
        }
    }
}

fn parse(record: &Record<'_>) -> Option<EndMarker> {
    let mut key = Cursor::new(record.key?);
    let version = key.read_i16(Shape::ControlRecord).ok()?;
    let outcome = match key.read_i16(Shape::ControlRecord).ok()? {
        0 => TransactionOutcome::Aborted,
        1 => TransactionOutcome::Committed,
        _ => return None,
    };
    let mut value = Cursor::new(record.value?);
    let value_version = value.read_i16(Shape::ControlRecord).ok()?;
    let coordinator_epoch = value.read_i32(Shape::ControlRecord).ok()?;
    // Newer versions are read as version 0.
    let timestamp = record.timestamp.unwrap_or(TimestampMs(-1));
    (version >= 0 && value_version >= 0).then_some(EndMarker { outcome, coordinator_epoch, timestamp })
}

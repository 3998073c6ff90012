//! From a path to the walk of its kind, by the name alone.

use std::ops::ControlFlow;
use std::path::Path;

use super::event::{Event, Heading, Report, Trouble};
use super::pages::Pages;
use super::{index, log, small};
use crate::format::Offset;
use crate::format::java_number::{parse_java_int, parse_java_long};
use crate::logdir::IoMode;

/// The option that stands for no bound, `Integer.MAX_VALUE`.
const NO_LIMIT: u64 = i32::MAX as u64;

/// What of a log is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Depth {
    /// Batches.
    #[default]
    Batches,
    /// Batches and their records.
    Records,
}

/// What is done with an index.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum IndexMode {
    /// Compare with the log and show the entries.
    #[default]
    Show,
    /// Compare with the log only.
    Verify,
    /// Check as a broker does at its start, without the log.
    SanityCheck,
}

/// How to walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// What of a log is looked at.
    pub depth: Depth,
    /// What is done with an index.
    pub index_mode: IndexMode,
    /// Of a log only this many bytes; 2147483647 is no bound.
    pub max_bytes: u64,
    /// Bytes looked at for the batch that an entry of an offset index points to.
    pub max_message_size: u64,
    /// The largest index or snapshot that is read, in bytes.
    pub max_held: u64,
    /// How logs are read.
    pub io: IoMode,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            depth: Depth::default(),
            index_mode: IndexMode::default(),
            max_bytes: NO_LIMIT,
            max_message_size: 5 * 1024 * 1024,
            max_held: 256 * 1024 * 1024,
            io: IoMode::default(),
        }
    }
}

impl Options {
    /// The bound for a log, if there is one.
    pub(super) fn log_limit(&self) -> Option<u64> {
        Some(self.max_bytes).filter(|limit| *limit != NO_LIMIT)
    }
}

/// Walks one file.
pub fn dump_file<P: Default + Send>(
    path: &Path,
    options: &Options,
    report: &mut Report,
    pages: &mut Pages<'_, P>,
) -> ControlFlow<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let suffix = name.rfind('.').and_then(|dot| name.get(dot..)).unwrap_or_default();
    match suffix {
        ".log" | ".checkpoint" => {
            pages.gather(|visit| visit(if suffix == ".log" { log_heading(&name) } else { snapshot_heading(&name) }))?;
            log::dump(path, options, report, pages)
        }
        _ => pages.gather(|visit| dump_beside_log(path, &name, suffix, (options, report), visit)),
    }
}

/// Walks a file that is no log.
fn dump_beside_log(
    path: &Path,
    name: &str,
    suffix: &str,
    (options, report): (&Options, &mut Report),
    visit: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    match suffix {
        ".index" | ".timeindex" => {
            let base = match leading_offset(name) {
                Ok(offset) => offset,
                Err(text) => {
                    visit(Event::Trouble(Trouble::NameWithoutOffset { text }))?;
                    Offset(0)
                }
            };
            if suffix == ".index" {
                index::dump_offset_index(path, base, options, report, visit)
            } else {
                index::dump_time_index(path, base, options, report, visit)
            }
        }
        ".txnindex" => small::dump_txn_index(path, options, visit),
        ".snapshot" => small::dump_producer_snapshot(path, options, visit),
        _ => visit(Event::Trouble(Trouble::UnknownFile)),
    }
}

fn log_heading(name: &str) -> Event<'static> {
    match leading_offset(name) {
        Ok(offset) => Event::Heading(Heading::Log(offset)),
        Err(text) => Event::Trouble(Trouble::NameWithoutOffset { text }),
    }
}

/// The number in front of the first dot, or the text that is none.
fn leading_offset(name: &str) -> Result<Offset, String> {
    let text = name.split('.').next().unwrap_or_default();
    parse_java_long(text).map(Offset).ok_or_else(|| text.to_owned())
}

/// `<20 digits>-<10 digits>.checkpoint`; the character between them is not looked at (`Snapshots.parse`).
fn snapshot_heading(name: &str) -> Event<'static> {
    if name == "bootstrap.checkpoint" {
        return Event::Heading(Heading::Bootstrap);
    }
    let end_offset = name.get(..20).and_then(parse_java_long);
    let epoch = name.get(21..31).and_then(parse_java_int);
    match end_offset.zip(epoch) {
        Some((end_offset, epoch)) => Event::Heading(Heading::Snapshot { end_offset, epoch }),
        None => Event::Trouble(Trouble::NameWithoutOffset { text: name.to_owned() }),
    }
}

//! What a broker of 3.0 or later does with the names in a partition directory at its start (`LogLoader.load`, passes 1 to 4), on
//! a disk in memory. Written from the specification, without segtool's own reading of names.
//!
//! Log files hold text: `next=<next offset> <anything>`. An index holds any text; whether it belongs to its log is for the test
//! to say. One that the broker rebuilds reads `rebuilt from <log>`.

use std::collections::BTreeMap;

use super::fault_fs::{BROKER, FaultFs};
use segtool::store::Access;

/// A segment as the broker has it after its start: log, offset index, time index, transaction index.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Segment {
    pub(crate) log: String,
    pub(crate) index: String,
    pub(crate) time_index: Option<String>,
    pub(crate) txn_index: Option<String>,
}

fn number(name: &str) -> Option<i64> {
    name.split_once('.')?.0.parse().ok()
}

fn next_offset(base: i64, log: &[u8]) -> i64 {
    let text = String::from_utf8_lossy(log);
    text.strip_prefix("next=").and_then(|rest| rest.split(' ').next()?.parse().ok()).unwrap_or(base)
}

/// Starts a broker on a partition directory: the disk changes as a broker changes it.
pub(crate) fn start(disk: &FaultFs, dir: &str) -> Result<BTreeMap<i64, Segment>, String> {
    for name in disk.files(dir).keys() {
        let access = disk.access(&format!("{dir}/{name}"));
        if access.uid != BROKER && access.mode & 0o004 == 0 {
            return Err(format!("{name} cannot be read"));
        }
    }
    let remove = |name: &str| disk.move_file(dir, name, None);
    let names = || disk.files(dir).into_keys().collect::<Vec<_>>();
    for name in names().iter().filter(|name| name.ends_with(".deleted") && !name.ends_with(".checkpoint.deleted")) {
        remove(name);
    }
    let cleaned: Vec<String> = names().into_iter().filter(|name| name.ends_with(".cleaned")).collect();
    let void_from = cleaned.iter().map(|name| number(name).ok_or(format!("{name} has no number"))).min();
    if let Some(void_from) = void_from.transpose()? {
        for name in names().iter().filter(|name| name.ends_with(".swap")) {
            if number(name).ok_or(format!("{name} has no number"))? >= void_from {
                remove(name);
            }
        }
    }
    cleaned.iter().for_each(|name| remove(name));
    let files = disk.files(dir);
    let swaps = files.iter().filter(|(name, _)| name.ends_with(".log.swap"));
    let ranges: Vec<(i64, i64)> =
        swaps.filter_map(|(name, log)| Some((number(name)?, next_offset(number(name)?, log)))).collect();
    if let (Some(from), Some(to)) = (ranges.iter().map(|r| r.0).min(), ranges.iter().map(|r| r.1).max()) {
        let in_range = |name: &&String| number(name).is_some_and(|at| from <= at && at < to);
        for name in names().iter().filter(|name| !name.ends_with(".swap")).filter(in_range) {
            remove(name);
        }
    }
    for name in names().iter().filter_map(|name| name.strip_suffix(".swap")) {
        disk.move_file(dir, &format!("{name}.swap"), Some(name));
    }
    load(disk, dir)
}

fn load(disk: &FaultFs, dir: &str) -> Result<BTreeMap<i64, Segment>, String> {
    let mut segments = BTreeMap::new();
    let access = Access { uid: BROKER, gid: BROKER, mode: 0o644 };
    for (name, bytes) in disk.files(dir) {
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        if matches!(extension, "log" | "index" | "timeindex" | "txnindex") {
            let base = number(&name).ok_or(format!("{name} has no number"))?;
            let canonical = format!("{base:020}.log");
            let present = disk.files(dir);
            if extension != "log" {
                if !present.contains_key(&canonical) {
                    disk.move_file(dir, &name, None);
                }
                continue;
            }
            if name != canonical {
                segments.insert(base, empty());
                continue;
            }
            let log = String::from_utf8(bytes).unwrap();
            let index = format!("{base:020}.index");
            if !present.contains_key(&index) {
                // The whole segment is recovered, and all its indexes with it.
                for (kind, text) in [("index", "rebuilt from"), ("timeindex", "rebuilt time from")] {
                    let name = format!("{base:020}.{kind}");
                    if present.contains_key(&name) {
                        disk.move_file(dir, &name, None);
                    }
                    disk.add_file(&format!("{dir}/{name}"), format!("{text} {log}").as_bytes(), access);
                }
            }
            let text = |kind: &str| {
                let bytes = disk.files(dir).remove(&format!("{base:020}.{kind}"))?;
                Some(String::from_utf8(bytes).unwrap())
            };
            let index = text("index").unwrap_or_default();
            let (time_index, txn_index) = (text("timeindex"), text("txnindex"));
            segments.insert(base, Segment { log, index, time_index, txn_index });
        }
    }
    Ok(segments)
}

fn empty() -> Segment {
    Segment { log: String::new(), index: String::new(), time_index: None, txn_index: None }
}

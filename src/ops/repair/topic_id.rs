//! The topic id in `partition.metadata`: the one thing that is the same in all partitions of a topic, so that one heals another.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;

use crate::format::checkpoint::PartitionMetadata;
use crate::format::{TimestampMs, Uuid};
use crate::logdir::names::DirName;
use crate::logdir::{LogDir, ReadError};
use crate::ops::PartitionImage;

const FILE: &str = "partition.metadata";
const MOST_BYTES: u64 = 1024 * 1024;

/// The ids of topics, from those that are told, else from partitions that agree.
pub(super) fn known_ids(log_dir: &LogDir, told: &BTreeMap<String, Uuid>) -> Result<BTreeMap<String, Uuid>, ReadError> {
    let mut seen: BTreeMap<String, BTreeSet<Uuid>> = BTreeMap::new();
    for member in log_dir.directories() {
        let DirName::Partition(topic_partition) = &member.name else { continue };
        let partition = log_dir.open_partition(&member.entry.name)?;
        // What cannot be read says nothing here; verification tells of it.
        let bytes = partition.read_small(OsStr::new(FILE), MOST_BYTES).ok().flatten();
        if let Some(id) = bytes.and_then(|bytes| sound_id(&bytes)) {
            let topic = String::from_utf8_lossy(topic_partition.topic_bytes()).into_owned();
            seen.entry(topic).or_default().insert(id);
        }
    }
    let agreed = seen.into_iter().filter(|(_, ids)| ids.len() == 1);
    let mut known: BTreeMap<String, Uuid> =
        agreed.filter_map(|(topic, ids)| Some((topic, ids.first().copied()?))).collect();
    known.extend(told.iter().map(|(topic, id)| (topic.clone(), *id)));
    Ok(known)
}

fn sound_id(bytes: &[u8]) -> Option<Uuid> {
    let parsed = PartitionMetadata::parse(bytes);
    let is_known = parsed.fault.is_none() && parsed.content.version == 0;
    parsed.content.topic_id.filter(|id| is_known && !id.is_reserved())
}

/// Gives a partition its topic's id where it has none or another. An id that no topic can have goes in any case: a broker that
/// knows the topic's id puts the partition aside over it.
pub(super) fn heal(
    image: &mut PartitionImage,
    known: &BTreeMap<String, Uuid>,
    now: TimestampMs,
) -> Result<(), ReadError> {
    let name = OsStr::new(FILE);
    let bytes = image.read_small(name, MOST_BYTES)?;
    let topic = String::from_utf8_lossy(image.topic_partition().topic_bytes()).into_owned();
    match (known.get(&topic), &bytes) {
        (Some(id), bytes) if bytes.as_ref().and_then(|bytes| sound_id(bytes)) != Some(*id) => {
            image.put_bytes(name, PartitionMetadata::encode(*id), now);
        }
        (None, Some(bytes)) => {
            let parsed = PartitionMetadata::parse(bytes);
            if parsed.fault.is_none() && parsed.content.topic_id.is_some_and(Uuid::is_reserved) {
                image.remove(name);
            }
        }
        _ => {}
    }
    Ok(())
}

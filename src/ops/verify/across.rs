//! What must hold between partitions and between log dirs of one broker.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;

use super::context::{DirectoryState, Place};
use super::partition::PartitionOutcome;
use super::root::RootFacts;
use crate::format::Uuid;
use crate::logdir::TopicPartition;
use crate::ops::{Fact, Finding, FindingId, Severity};

const META: &str = "meta.properties";
/// Ids below this are reserved; Kafka never draws one for a topic or a directory (`Uuid.RESERVED`).
const RESERVED_IDS: u128 = 100;

/// Log dirs against each other.
pub(super) fn check_roots(roots: &[RootFacts]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let conflict = |root: &RootFacts, expected: Option<String>, found: Option<String>| {
        root.place(META)
            .finding(FindingId::MetaPropertiesConflict)
            .with_facts(expected.map(Fact::Text), found.map(Fact::Text))
    };
    let known: Vec<_> = roots.iter().filter_map(|root| Some((root, root.meta.as_ref()?))).collect();
    let mut directories = BTreeSet::new();
    for (root, meta) in &known {
        if let Some(id) = meta.directory_id.filter(|id| !directories.insert(*id) || is_reserved(*id)) {
            findings.push(conflict(root, None, Some(id.to_string())));
        }
        let Some((_, first)) = known.first() else { continue };
        if meta.cluster_id != first.cluster_id {
            findings.push(conflict(root, first.cluster_id.clone(), meta.cluster_id.clone()));
        }
        if meta.node_id != first.node_id {
            let text = |id: Option<i32>| id.map(|id| id.to_string());
            findings.push(conflict(root, text(first.node_id), text(meta.node_id)));
        }
    }
    // An empty file reads as one of the days of ZooKeeper that names no node.
    let nameless = |root: &&RootFacts| {
        root.has_metadata_log && root.meta.as_ref().is_some_and(|meta| meta.version == 0 && meta.node_id.is_none())
    };
    findings
        .extend(roots.iter().filter(nameless).map(|root| root.place(META).finding(FindingId::MetaPropertiesMalformed)));
    for root in roots.iter().filter(|root| !root.has_meta) {
        if !known.is_empty() {
            findings.push(conflict(root, Some(META.to_owned()), None));
        } else if root.has_metadata_log {
            findings.push(root.place(META).finding(FindingId::MetaPropertiesMalformed));
        }
    }
    findings
}

fn is_reserved(id: Uuid) -> bool {
    u128::from_be_bytes(id.0) < RESERVED_IDS
}

/// Topic ids of partitions, and partitions that are there twice.
pub(super) fn check_partitions(outcomes: &[PartitionOutcome], roots: &[RootFacts]) -> Vec<Finding> {
    let mut findings = missing_metadata(outcomes, roots);
    let mut ids: BTreeMap<&OsStr, Uuid> = BTreeMap::new();
    let mut seen: BTreeMap<&TopicPartition, &PartitionOutcome> = BTreeMap::new();
    for outcome in outcomes {
        let partition = outcome.input.image.topic_partition();
        let place = outcome.input.place("partition.metadata".as_ref());
        let is_metadata = outcome.input.directory == DirectoryState::Metadata;
        if let Some(id) = outcome.topic_id.filter(|_| outcome.input.directory != DirectoryState::Doomed) {
            let first = *ids.entry(partition.topic()).or_insert(id);
            if first != id || (is_reserved(id) && !is_metadata) {
                let expected = (first != id).then(|| Fact::Text(first.to_string()));
                findings
                    .push(place.finding(FindingId::TopicIdConflict).with_facts(expected, Fact::Text(id.to_string())));
            }
        }
        if outcome.input.directory == DirectoryState::Live
            && let Some(other) = seen.insert(partition, outcome)
        {
            findings.push(twice(outcome, other));
        }
    }
    findings
}

/// A partition in two log dirs: the broker does not start.
fn twice(outcome: &PartitionOutcome, other: &PartitionOutcome) -> Finding {
    let place = outcome.input.directory_place();
    let other = other.input.image.log_dir().join(other.input.image.dir_name());
    let other = Fact::Text(other.to_string_lossy().into_owned());
    place.finding(FindingId::PartitionTwice).with_facts(other, None)
}

/// `partition.metadata` is what a KRaft broker knows a partition by; with ZooKeeper it may be missing.
fn missing_metadata(outcomes: &[PartitionOutcome], roots: &[RootFacts]) -> Vec<Finding> {
    let any_has_it = outcomes.iter().any(|outcome| outcome.has_metadata_file && is_live(outcome));
    let mut findings = Vec::new();
    for outcome in outcomes.iter().filter(|outcome| !outcome.has_metadata_file && is_live(outcome)) {
        let root = roots.iter().find(|root| root.path == outcome.input.image.log_dir());
        let is_kraft = root.and_then(RootFacts::is_kraft);
        let is_needed = match is_kraft {
            Some(true) => true,
            Some(false) => false,
            None => any_has_it,
        };
        let place: Place = outcome.input.place("partition.metadata".as_ref());
        let severity = if is_needed { Severity::Critical } else { Severity::Info };
        findings.push(place.finding(FindingId::PartitionMetadataMissing).with_severity(severity));
    }
    findings
}

fn is_live(outcome: &PartitionOutcome) -> bool {
    outcome.input.directory == DirectoryState::Live
}

//! `meta.properties` of the log dirs of a broker: who it is, and whether the log dirs agree (`MetaPropertiesEnsemble`).

use crate::format::Uuid;
use crate::format::checkpoint::MetaProperties;
use crate::logdir::names::{DirName, RootName};
use crate::logdir::{LogDir, ReadError};
use crate::ops::FindingId;
use crate::ops::broker::FailureKind;

/// A failure over the identity of a log dir.
pub(super) struct IdentityFailure {
    pub(super) index: usize,
    pub(super) kind: FailureKind,
    pub(super) reason: FindingId,
}

/// What is wrong with the identities of the log dirs of one broker, in their order; `configured` is `node.id`. Where no log dir has the file nothing is
/// asked, unless one holds a metadata log: copies of data are looked at without it.
pub(super) fn check_identities(
    log_dirs: &[LogDir],
    configured: Option<i32>,
) -> Result<Vec<IdentityFailure>, ReadError> {
    let mut failures = Vec::new();
    let mut first: Option<MetaProperties> = None;
    let mut directory_ids: Vec<Uuid> = Vec::new();
    let has_any = log_dirs.iter().any(|log_dir| log_dir.file(RootName::MetaProperties).is_some());
    for (index, log_dir) in log_dirs.iter().enumerate() {
        let holds_metadata = holds_metadata_log(log_dir);
        let mut fail = |kind, reason| failures.push(IdentityFailure { index, kind, reason });
        let Some(bytes) = log_dir.read_file("meta.properties".as_ref())? else {
            if has_any || holds_metadata {
                fail(FailureKind::StartFails, FindingId::MetaPropertiesMalformed);
            }
            continue;
        };
        let parsed = MetaProperties::parse(&bytes);
        if parsed.fault.is_some() {
            let is_vital = holds_metadata || log_dirs.len() == 1;
            let kind = if is_vital { FailureKind::StartFails } else { FailureKind::LogDirOffline };
            fail(kind, FindingId::MetaPropertiesMalformed);
            continue;
        }
        let properties = parsed.content;
        if properties.node_id.is_none() {
            fail(FailureKind::StartFails, FindingId::MetaPropertiesMalformed);
            continue;
        }
        let is_repeated = properties.directory_id.is_some_and(|id| id.is_reserved() || directory_ids.contains(&id));
        directory_ids.extend(properties.directory_id);
        let is_other = configured.is_some() && configured != properties.node_id;
        let differs = first.as_ref().is_some_and(|first| {
            first.node_id != properties.node_id
                || matches!((&first.cluster_id, &properties.cluster_id), (Some(a), Some(b)) if a != b)
        });
        if is_repeated || is_other || differs {
            fail(FailureKind::StartFails, FindingId::MetaPropertiesConflict);
        }
        first.get_or_insert(properties);
    }
    Ok(failures)
}

/// Whether the metadata log of KRaft is in this log dir.
pub(super) fn holds_metadata_log(log_dir: &LogDir) -> bool {
    log_dir.directories().iter().any(|member| matches!(member.name, DirName::ClusterMetadata(_)))
}

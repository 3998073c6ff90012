//! Findings and paths inside JSON documents that are made by `serde`.

use std::path::Path;

use serde::Serialize;

use super::finding::push_finding;
use crate::ops::Finding;

/// A finding, with the members that it has everywhere.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct FindingDto(serde_json::Value);

impl From<&Finding> for FindingDto {
    fn from(finding: &Finding) -> Self {
        let mut bytes = Vec::new();
        push_finding(&mut bytes, finding);
        Self(serde_json::from_slice(&bytes).unwrap_or_default())
    }
}

/// A path as JSON text.
pub(super) fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

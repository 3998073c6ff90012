//! What a rebuilding of indexes would do, for people and as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::finding::sentence;
use super::plan::{PlanDto, PlanHead, push_steps};
use super::units::{bytes_binary, count};
use super::untrusted::untrusted;
use crate::ops::plan::Plan;
use crate::ops::{Change, Finding};

/// A partition of this command has no fields of its own.
#[derive(Serialize)]
struct NoMore {}

/// The plan as one JSON document and a newline.
pub fn render_json(plan: &Plan, head: &PlanHead<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = serde_json::to_vec(&PlanDto::new(plan, head, |_| NoMore {}))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The plan as text.
pub fn render_human(plan: &Plan) -> Vec<u8> {
    let mut out = String::new();
    let (mut written, mut removed, mut bytes) = (0u64, 0u64, 0u64);
    for partition in &plan.partitions {
        let changes = partition.changes();
        if changes.is_empty() {
            continue;
        }
        let _ = writeln!(out, "{}", untrusted(partition.before.dir_name().as_encoded_bytes()));
        push_steps(&mut out, partition);
        for change in &changes {
            match change {
                Change::Remove { .. } => removed += 1,
                Change::Create { size_after, .. }
                | Change::Replace { size_after, .. }
                | Change::Truncate { size_after, .. } => {
                    written += 1;
                    bytes = bytes.saturating_add(*size_after);
                }
                Change::Rename { .. } => {}
            }
        }
    }
    for finding in &plan.findings {
        push_finding(&mut out, finding);
    }
    let partitions = count(plan.partitions.len() as u64);
    let _ = match (written, removed) {
        (0, 0) => writeln!(out, "Nothing to rebuild in {partitions} partitions."),
        _ => writeln!(
            out,
            "Rebuilds {} files ({}) and removes {} in {partitions} partitions.",
            count(written),
            bytes_binary(bytes),
            count(removed),
        ),
    };
    out.into_bytes()
}

fn push_finding(out: &mut String, finding: &Finding) {
    let location = &finding.location;
    let path = untrusted(location.path.as_os_str().as_encoded_bytes());
    let _ = write!(out, "{} {}: {path}", finding.severity.name(), finding.id.as_str());
    if let Some(position) = location.position {
        let _ = write!(out, " at position {position}");
    }
    let _ = writeln!(out, ": {}", sentence(finding));
}

//! The steps of a plan for people.

use super::json::reason_name;
use crate::ops::Change;
use crate::ops::plan::{CheckpointPlan, PartitionPlan, PlanReason};
use crate::render::units::bytes_binary;
use crate::render::untrusted::untrusted;

/// Appends one line for each step.
pub fn push_steps(out: &mut String, plan: &PartitionPlan) {
    for change in plan.changes() {
        let name = untrusted(change.name().as_encoded_bytes());
        let what = match &change {
            Change::Create { size_after, .. } => format!("create    {name}, {}", bytes_binary(*size_after)),
            Change::Replace { size_before, size_after, .. } => {
                format!("replace   {name}, {} by {}", bytes_binary(*size_before), bytes_binary(*size_after))
            }
            Change::Truncate { size_before, size_after, .. } => {
                format!("truncate  {name} from {} to {}", bytes_binary(*size_before), bytes_binary(*size_after))
            }
            Change::Remove { size_before, .. } => format!("remove    {name}, {}", bytes_binary(*size_before)),
            Change::Rename { from, .. } => format!("rename    {} to {name}", untrusted(from.as_encoded_bytes())),
        };
        out.push_str("  ");
        out.push_str(&what);
        push_reasons(out, plan.reasons_of(change.name()));
        out.push('\n');
    }
    for quarantined in &plan.quarantined {
        let size = bytes_binary(quarantined.content.size_bytes());
        out.push_str(&format!("  put aside {}, {size}", untrusted(quarantined.name.as_encoded_bytes())));
        push_reasons(out, &quarantined.reasons);
        out.push('\n');
    }
}

/// Appends the line for a checkpoint.
pub fn push_checkpoint(out: &mut String, checkpoint: &CheckpointPlan) {
    out.push_str(&format!("  rewrite   {}\n", checkpoint.kind.file_name()));
}

fn push_reasons(out: &mut String, reasons: &[PlanReason]) {
    let names: Vec<&str> =
        reasons.iter().filter(|reason| **reason != PlanReason::Follows).map(|reason| reason_name(*reason)).collect();
    if !names.is_empty() {
        out.push_str(&format!(" ({})", names.join(", ")));
    }
}

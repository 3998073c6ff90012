//! What a command would change, for people and as JSON: one shape for `reindex`, `repair`, `compact` and `retain`.

mod human;
mod json;

pub use human::{push_checkpoint, push_steps};
pub use json::{PartitionDto, PlanDto, PlanHead, reason_name};

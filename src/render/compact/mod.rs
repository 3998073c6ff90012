//! What cleaning would do, for people and as JSON.

mod human;
mod json;

pub use human::{Detail, refusal_text, render_human};
pub use json::render_json;

//! What a broker's start will do, for people and as JSON.

mod human;
mod json;

pub use human::render_human;
pub use json::{render_json, rule_name};

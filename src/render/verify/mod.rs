//! The report of `verify`: for people, and as one JSON document.

mod human;
mod json;

pub use human::{Page, render_human};
pub use json::render_json;

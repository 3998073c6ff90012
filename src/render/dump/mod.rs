//! The events of a dump as lines: for people, and as JSON Lines.

mod decoded;
mod entries;
mod human;
mod json;
mod names;
mod payload;

pub use human::HumanLines;
pub use json::JsonLines;
pub use payload::Payload;

//! A capacity plan as a page to paste into a design document, and as JSON.

mod human;
mod inputs;
mod json;
mod measured;
mod simulation;

pub use human::render_human;
pub use json::render_json;
pub use simulation::chart_svg;

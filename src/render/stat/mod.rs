//! What `stat` measured: for people, as JSON, as Prometheus text.

mod human;
mod json;
mod prometheus;

pub use human::render_human;
pub use json::render_json;
pub use prometheus::render_prometheus;

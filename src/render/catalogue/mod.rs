//! The manual of the findings: `verify --explain ID` and segtool-findings(7) are made from it.

mod entry;
mod files;
mod indexes;
mod log;
mod manual;

pub use entry::{Entry, entry_of};
pub use manual::{closest, explain, findings_page};

//! Layer 4: reports and plans to bytes. Decides nothing and writes only to the `Write` it is given.

pub mod base64;
pub mod capacity;
pub mod catalogue;
pub mod chart;
pub mod compact;
pub mod dump;
pub mod finding;
pub mod java;
mod json_document;
pub mod json_text;
pub mod kafka;
pub mod locate;
pub mod message;
pub mod plan;
pub mod preflight;
pub mod reindex;
pub mod repair;
pub mod retain;
pub mod stat;
pub mod undo;
pub mod units;
pub mod untrusted;
pub mod verify;

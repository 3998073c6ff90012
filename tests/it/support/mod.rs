//! What the integration tests stand on: recorded Kafka data, sandboxes, the built program, damage.
//!
//! * [`packs`]: the recorded data of `testdata/packs`, unpacked once and shared read-only;
//! * [`Sandbox`]: a directory of a test's own, with copies that keep times and modes;
//! * [`DamagedCase`]: one damaged log dir as a broker would find it at its start;
//! * [`Tree`]: everything a command must not have changed;
//! * [`run`]: the program in a process of its own, [`run_at`]: inside this one, [`CommandOutput`]: everything it said;
//! * [`changing`]: the commands that change something, each with a log dir to change;
//! * [`fault_fs`]: a disk in memory that fails, stops and loses what was not synced; [`start_model`]: a broker's start on it;
//! * [`damage`]: ways to spoil a file, each named for what it does; [`random_damage`]: any of some, for properties;
//! * [`json`]: JSON and JSON Lines;
//! * [`golden`]: expected texts, with one switch to update them.
//!
//! Nothing here may call `segtool::format`: what judges the code must not be made of it.

#![allow(dead_code, unused_imports, reason = "a toolbox: each test takes what it needs")]

pub(crate) mod changing;
mod command;
pub(crate) mod damage;
mod damaged_case;
pub(crate) mod fault_fs;
pub(crate) mod golden;
pub(crate) mod json;
pub(crate) mod packs;
pub(crate) mod random_damage;
mod sandbox;
pub(crate) mod start_model;
mod tree;

pub(crate) use command::{CommandOutput, run, run_at, run_in, run_measured};
pub(crate) use damaged_case::{DamagedCase, Start, damaged_case, properties};
pub(crate) use sandbox::{Sandbox, copy_tree, files_below, set_modified};
pub(crate) use tree::{Entry, Tree};

use std::path::PathBuf;

/// A path below `testdata/`.
pub(crate) fn testdata(relative: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata").join(relative)
}

/// SHA-256 in lower-case hexadecimal.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes).iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

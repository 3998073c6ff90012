//! segtool reads, checks, explains and mends the data directories of Apache Kafka brokers, offline.
//!
//! # Layers
//!
//! A file uses only its own layer and those to its left:
//!
//! ```text
//! format  ->  logdir  ->  store  ->  ops  ->  render  ->  cli  ->  main.rs
//! bytes       files       writes     work     text        flags    process
//! ```
//!
//! `format` turns bytes into typed views and knows no paths. `logdir` knows how Kafka lays files out and only reads.
//! `store` is the one module that creates, renames, syncs or removes. `ops` does the work and returns reports and plans
//! as values. `render` prints those values. `cli` turns arguments into calls and results into exit statuses.
//!
//! # Safety rules
//!
//! * Damage is data: a corrupt batch becomes a finding with a place, it never unwinds a scan.
//! * Nothing is written without a plan that could be printed first; the original is kept in an undo journal.
//! * No length read from a file sizes an allocation without a bound that the caller gave.
//! * Every byte of a file is checked, skipped or unreadable, and the three add up to its length.

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "module docs lead readers of the code, who see the private modules too"
)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::print_stdout,
        clippy::print_stderr
    )
)]

pub mod cli;
pub mod format;
pub mod logdir;
pub mod ops;
pub mod render;
pub mod store;

//! The one integration binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::case_sensitive_file_extension_comparisons,
    clippy::cast_possible_truncation,
    clippy::format_collect,
    clippy::needless_for_each,
    clippy::semicolon_if_nothing_returned,
    clippy::single_match_else,
    clippy::struct_excessive_bools,
    clippy::unnecessary_debug_formatting,
    reason = "a failed test may panic, and need not be fast; it runs where a pointer has 64 bits, on names that it made itself"
)]

mod bit_flips;
mod compact;
mod compression;
mod compression_limits;
mod crash;
mod damage;
mod dump;
mod dump_decoded;
mod dump_kafka;
mod findings;
mod interop;
mod json_contract;
mod kill;
mod legacy;
mod locate;
mod lock;
mod man;
mod memory;
mod plan_capacity;
mod planted;
mod preflight;
mod preflight_damage;
mod readme;
mod recheck;
mod recorded_batches;
mod reindex;
mod repair;
mod repair_campaign;
mod retain;
mod small_files;
mod stat;
mod support;
mod synth;
mod tidy;
mod verify;

//! Real Kafka on what segtool wrote: brokers that start on a log dir, consumers that read it, and the broker's log manager
//! alone where hundreds of log dirs are loaded.
//!
//! Needs a JDK and Maven (Kafka's jars come from Maven Central, once for each version) and is therefore marked
//! `#[ignore]`: `cargo test -- --ignored` runs it. Where there is no Java or Maven such a test says so and passes:
//! it begins with `if kafka::is_missing() { return; }`.

#![allow(dead_code, unused_imports, reason = "a toolbox: each test takes what it needs")]

mod broker;
mod brokers;
mod changed;
pub(crate) mod kafka;
mod loaded;
mod salvaged;
mod shop;
mod synthetic;

pub(crate) use broker::{Broker, Isolation};

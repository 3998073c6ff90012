//! Cleaning held against the broker's cleaner, against a model, and against itself.

mod command;
mod decoded;
mod memory;
mod model;
mod properties;
mod recorded;
mod recording;
mod written;

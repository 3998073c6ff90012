//! Cleaning held against the broker's cleaner, against a model, and against itself.

mod decoded;
mod recorded;
mod recording;

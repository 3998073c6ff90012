//! The lines of Kafka 4.4's dump tool (`org.apache.kafka.tools.DumpLogSegments`), byte for byte.
//!
//! Pure functions from values to text. What Kafka's tool answers with an uncaught exception is a [`Crash`] here: the text that the
//! tool would show, for the caller to report before it goes on.

mod content;
mod control;
mod ending;
mod lines;
mod remote;

pub use content::{Content, Crash, Decoder, ScalarDecoder, content};
pub use ending::{push_crash, push_report, push_trouble};
pub use lines::{RecordMetadata, Style, java_path, push_dumping, push_event};

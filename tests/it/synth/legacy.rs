//! Messages of magic 0 and 1, alone or inside a compressed wrapper.
//!
//! ```text
//! 0 offset · 8 size · 12 crc · 16 magic · 17 attributes · [18 timestamp] · key · value
//! ```

use super::Codec;
use super::bytes::{Bytes, len_i32};

const LOG_APPEND_TIME: u8 = 1 << 3;

/// One message with its offset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) offset: i64,
    pub(crate) magic: u8,
    pub(crate) attributes: u8,
    /// Written for magic 1 only.
    pub(crate) timestamp_ms: i64,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    /// Overrules the checksum.
    pub(crate) crc: Option<u32>,
    /// Overrules the size field.
    pub(crate) size: Option<i32>,
}

/// A message of magic 0.
pub(crate) fn v0(offset: i64, key: Option<&str>, value: Option<&str>) -> Message {
    let (key, value) = (key.map(|key| key.as_bytes().to_vec()), value.map(|value| value.as_bytes().to_vec()));
    Message { offset, key, value, timestamp_ms: -1, ..Message::default() }
}

/// A message of magic 1 with its own time.
pub(crate) fn v1(offset: i64, timestamp_ms: i64, key: Option<&str>, value: Option<&str>) -> Message {
    Message { magic: 1, timestamp_ms, ..v0(offset, key, value) }
}

/// A wrapper of these messages (offsets absolute), in their format: magic 0 keeps the offsets, magic 1 counts them from the
/// first one; the wrapper has the last offset and the largest time.
pub(crate) fn wrapper(codec: Codec, messages: &[Message]) -> Message {
    let (first, last) = (&messages[0], &messages[messages.len() - 1]);
    let base = if first.magic == 0 { 0 } else { first.offset };
    let inner = messages.iter().map(|message| Message { offset: message.offset - base, ..message.clone() });
    let inner: Vec<u8> = inner.flat_map(|message| message.build()).collect();
    Message {
        offset: last.offset,
        magic: first.magic,
        attributes: codec.id,
        timestamp_ms: messages.iter().map(|message| message.timestamp_ms).max().unwrap(),
        value: Some((codec.compress)(&inner)),
        ..Message::default()
    }
}

impl Message {
    /// The broker's time.
    pub(crate) fn log_append_time(mut self, timestamp_ms: i64) -> Self {
        self.attributes |= LOG_APPEND_TIME;
        self.timestamp_ms = timestamp_ms;
        self
    }

    pub(crate) fn build(&self) -> Vec<u8> {
        let checked = Bytes::new().raw(&[self.magic, self.attributes]);
        let checked = if self.magic == 0 { checked } else { checked.i64(self.timestamp_ms) };
        let checked = checked.i32_bytes(self.key.as_deref()).i32_bytes(self.value.as_deref()).0;
        Bytes::new()
            .i64(self.offset)
            .i32(self.size.unwrap_or(4 + len_i32(&checked)))
            .u32(self.crc.unwrap_or_else(|| crc32fast::hash(&checked)))
            .raw(&checked)
            .0
    }
}

//! Codecs of batches and wrappers: bounded decompression exactly as Kafka's readers do it, and the matching encoders.
//!
//! Brokers keep the bytes a client sent, so every framing that a client ever wrote ends up on disk: bare snappy blocks, several
//! gzip members, LZ4 frames with the header checksum of Kafka 0.8. What Kafka accepts is accepted here and what it refuses is
//! an error here, with the reason; what it accepts without looking is named as a [`CodecOddity`].
//!
//! Nothing here trusts a declared size. The caller's limit bounds what comes out, and memory grows with the bytes that really
//! come out, never with those that a header promises. [`Decompressor::decompress`] gives a whole batch in one piece,
//! [`Decompressor::stream`] gives it in pieces and constant memory.
//!
//! Rules: `org.apache.kafka.common.compress` and the libraries it uses (JDK `GZIPInputStream`, xerial `SnappyInputStream`,
//! `Lz4BlockInputStream`, luben `ZstdInputStreamNoFinalizer`).

mod codec;
mod decompressor;
mod encode;
mod fault;
mod gzip;
mod lz4;
mod output;
mod snappy;
mod source;
mod stream;
mod zstd;

pub use codec::{Codec, Lz4Checksum};
pub use decompressor::{Decompressed, Decompressor};
pub use encode::{Compressor, EncodeError, Level};
pub use fault::{CodecFault, CodecOddity, StreamPart, Unsupported};
pub use stream::{Stream, StreamError};

//! What can be wrong, or merely odd, about a compressed stream.

use super::super::Position;

/// A part of a compressed stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StreamPart {
    /// The header of a stream, frame or gzip member.
    Header,
    /// A compressed or stored block, or deflate data.
    Block,
    /// The zero that ends an LZ4 frame.
    EndMark,
    /// The checksum of an LZ4 frame's content, or the checksum and size that end a gzip member.
    Trailer,
    /// A zstd frame.
    Frame,
}

impl StreamPart {
    fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Block => "block",
            Self::EndMark => "end mark",
            Self::Trailer => "trailer",
            Self::Frame => "frame",
        }
    }
}

impl std::fmt::Display for StreamPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A feature of a format that Kafka's reader refuses, though other readers may know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// A gzip member that is not deflate.
    #[error("compression method {0}")]
    Method(u8),
    /// A version of the LZ4 frame format, or of xerial's header, that does not exist.
    #[error("version {0}")]
    Version(i32),
    /// LZ4 blocks that refer to bytes of earlier blocks.
    #[error("dependent blocks")]
    DependentBlocks,
    /// A frame that needs a dictionary.
    #[error("a dictionary")]
    Dictionary,
    /// A bit that must be zero is set.
    #[error("reserved bits {0:#04x}")]
    ReservedBits(u8),
    /// An LZ4 block size code below 4.
    #[error("block size code {0}")]
    BlockSizeCode(u8),
    /// A zstd window of more than 128 MiB.
    #[error("a window above 128 MiB")]
    Window,
}

/// Why a compressed stream cannot be read by Kafka.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecFault {
    /// No bytes at all, where the format has at least a header.
    #[error("no bytes")]
    Empty,
    /// The data ends inside this part.
    #[error("cut off in its {0}")]
    CutOff(StreamPart),
    /// The first bytes of this part are not those of the format.
    #[error("the {0} has a wrong magic number")]
    WrongMagic(StreamPart),
    /// The format allows it, Kafka's reader does not.
    #[error("{0} is not supported by Kafka")]
    Unsupported(#[from] Unsupported),
    /// A checksum over this part, or for a trailer over the content, is wrong.
    #[error("checksum of the {part} is {stored:#010x}, computed {computed:#010x}")]
    ChecksumMismatch {
        /// Where the checksum stands.
        part: StreamPart,
        /// The checksum in the stream.
        stored: u32,
        /// The checksum of the data.
        computed: u32,
    },
    /// An LZ4 header checksum as Kafka 0.8.2 to 0.9 computed it, in a message of magic 1 or 2.
    #[error(
        "header checksum {stored:#04x} is the one of Kafka 0.8 to 0.9, only read in magic 0; right is {computed:#04x}"
    )]
    OldHeaderChecksum {
        /// The checksum in the stream.
        stored: u8,
        /// The right one.
        computed: u8,
    },
    /// The content has another size than the trailer says.
    #[error("size in the trailer is {stored}, computed {computed}")]
    SizeMismatch {
        /// The size in the stream.
        stored: u64,
        /// The size of the content, in as many bits.
        computed: u64,
    },
    /// A block length that cannot be.
    #[error("block of {found} bytes, possible are 1 to {most}")]
    BlockLength {
        /// The length found.
        found: i64,
        /// The most that the format or Kafka's reader allows.
        most: i64,
    },
    /// The codec's own decoder refuses the bytes.
    #[error("the {part} is corrupt: {reason}")]
    Corrupt {
        /// What it was reading.
        part: StreamPart,
        /// What it met.
        reason: &'static str,
    },
}

/// Something that Kafka reads without complaint, and that a careful reader names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CodecOddity {
    /// Bytes after the end of the stream, which Kafka never looks at.
    BytesIgnored {
        /// Where they start in the compressed data.
        position: Position,
        /// How many there are.
        count: u64,
    },
    /// Bytes after the first LZ4 frame that begin another one: a full LZ4 reader would go on, Kafka does not.
    FrameIgnored {
        /// Where it starts in the compressed data.
        position: Position,
        /// Bytes from there to the end.
        count: u64,
    },
    /// Snappy without xerial's header, as librdkafka and old Sarama write it: one block for everything.
    SnappyWithoutHeader,
    /// A xerial header with version words other than 1 and 1.
    SnappyVersion {
        /// Where the header starts in the compressed data.
        position: Position,
        /// The writer's version.
        version: i32,
        /// The least reader version, as the writer sees it.
        compatible_version: i32,
    },
    /// A repeated xerial header with the first four bytes of the magic and then others; it is passed over.
    WrongSnappyHeader {
        /// Where it starts in the compressed data.
        position: Position,
    },
    /// A zstd frame after the first that is cut off; what it yielded counts.
    CutFrame {
        /// Where it starts in the compressed data.
        position: Position,
        /// Bytes of it that are there.
        count: u64,
    },
    /// The LZ4 header checksum of Kafka 0.8.2 to 0.9, in magic 0.
    OldLz4HeaderChecksum {
        /// The checksum in the stream.
        stored: u8,
        /// The right one.
        computed: u8,
    },
    /// An LZ4 header checksum that is neither right nor the old one, in magic 0.
    WrongLz4HeaderChecksum {
        /// The checksum in the stream.
        stored: u8,
        /// The right one.
        computed: u8,
    },
    /// An LZ4 content checksum that is wrong; Kafka reads past it (KAFKA-20528).
    WrongLz4ContentChecksum {
        /// Where it stands in the compressed data.
        position: Position,
        /// The checksum in the stream.
        stored: u32,
        /// The checksum of the content.
        computed: u32,
    },
    /// An LZ4 content size that is wrong; Kafka reads past it.
    WrongLz4ContentSize {
        /// The size in the stream.
        stored: u64,
        /// The size of the content.
        computed: u64,
    },
}

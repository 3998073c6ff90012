//! Codec numbers and names.

use std::fmt;

/// A compression codec: bits 0 to 2 of a batch's or message's attributes (`CompressionType`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Codec {
    /// The records stand as they are.
    None,
    /// RFC 1952.
    Gzip,
    /// Raw snappy blocks, mostly in xerial's framing.
    Snappy,
    /// One LZ4 frame.
    Lz4,
    /// RFC 8878; magic 2 only, since 2.1 (KIP-110).
    Zstd,
}

impl Codec {
    /// Every codec, in the order of their ids.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The codec with this id; 5 to 7 are not assigned.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.id() == id)
    }

    /// The id in the attributes.
    pub fn id(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }

    /// Kafka's name, as in `compression.type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What to make of the header checksum of an LZ4 frame. Kafka 0.8.2 to 0.9 computed it over the wrong bytes (KAFKA-3160), so
/// its readers ignore it in messages of magic 0 and check it everywhere else (`Lz4Compression.wrapForInput`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lz4Checksum {
    /// Magic 1 and 2: a wrong checksum is an error.
    Verified,
    /// Magic 0: a wrong checksum is an oddity.
    IgnoredInMagic0,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_codecs_map_both_ways_and_five_to_seven_are_unknown() {
        for codec in Codec::ALL {
            assert_eq!(Codec::from_id(codec.id()), Some(codec));
        }
        assert_eq!([5, 6, 7, 255].map(Codec::from_id), [None; 4]);
    }
}

//! The numbers of a log, each a type of its own: an offset is always logical, a position always a byte place in a file.

use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl From<$inner> for $name {
            fn from(value: $inner) -> Self {
                Self(value)
            }
        }
    };
}

number! {
    /// A Kafka offset: the logical place of a record in its partition.
    Offset(i64)
}
number! {
    /// A byte place in a file, counted from its start.
    Position(u64)
}
number! {
    /// A partition leader epoch. `-1` on disk is `None` in the views.
    LeaderEpoch(i32)
}
number! {
    /// The id of an idempotent or transactional producer. `-1` on disk is `None` in the views.
    ProducerId(i64)
}
number! {
    /// The epoch of a producer id.
    ProducerEpoch(i16)
}
number! {
    /// A producer's sequence number; wraps from 2^31 - 1 to 0.
    Sequence(i32)
}
number! {
    /// Milliseconds since 1970-01-01T00:00Z, as Kafka stores them: any i64, sound or not.
    TimestampMs(i64)
}

impl Offset {
    /// The offset after this one; stays at the largest offset there is.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// This offset moved by `delta`, held at the ends of the range: damaged headers carry any delta.
    pub fn saturating_add(self, delta: i64) -> Self {
        Self(self.0.saturating_add(delta))
    }

    /// The distance from `base` to this offset, or `None` where it does not fit 64 bits.
    pub fn checked_sub(self, base: Self) -> Option<i64> {
        self.0.checked_sub(base.0)
    }
}

impl Position {
    /// The place `bytes` further on; stays at the largest position there is.
    pub fn advance(self, bytes: u64) -> Self {
        Self(self.0.saturating_add(bytes))
    }

    /// Bytes from `start` to here; 0 where `start` lies behind.
    pub fn since(self, start: Self) -> u64 {
        self.0.saturating_sub(start.0)
    }
}

impl Sequence {
    /// The sequence `delta` records on, wrapping from 2^31 - 1 to 0 (`DefaultRecordBatch.incrementSequence`, whose own arithmetic
    /// wraps too: damaged headers have any delta).
    pub fn increment(self, delta: i32) -> Self {
        if self.0 > i32::MAX.wrapping_sub(delta) {
            return Self(delta.wrapping_sub(i32::MAX.wrapping_sub(self.0)).wrapping_sub(1));
        }
        Self(self.0.wrapping_add(delta))
    }

    /// The sequence `delta` records before this one, wrapping from 0 to 2^31 - 1 (`DefaultRecordBatch.decrementSequence`).
    pub fn decrement(self, delta: i32) -> Self {
        if self.0 < delta {
            return Self(i32::MAX.wrapping_sub(delta.wrapping_sub(self.0)).wrapping_add(1));
        }
        Self(self.0.wrapping_sub(delta))
    }
}

/// What a record's timestamp means (`org.apache.kafka.common.record.TimestampType`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TimestampType {
    /// Magic 0 has no timestamps.
    None,
    /// The producer's time.
    CreateTime,
    /// The broker's time at append, one for the whole batch.
    LogAppendTime,
}

/// A slice's length as the 64 bits that positions and sizes have.
pub fn len_u64(len: usize) -> u64 {
    len as u64
}

/// A byte count as a slice length; one that no address space holds becomes `usize::MAX`, which no slice reaches.
pub fn len_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_wrap_at_the_largest_int_to_zero_and_back() {
        assert_eq!(Sequence(i32::MAX).increment(1), Sequence(0));
        assert_eq!(Sequence(i32::MAX - 2).increment(5), Sequence(2));
        assert_eq!(Sequence(2).decrement(5), Sequence(i32::MAX - 2));
        assert_eq!(Sequence(7).decrement(7), Sequence(0));
    }

    #[test]
    fn damaged_deltas_give_the_sequences_that_java_gives() {
        assert_eq!(Sequence(0).increment(-1), Sequence(i32::MAX));
        assert_eq!(Sequence(544_173_413).increment(-159_338_496), Sequence(-1_762_648_731));
    }
}

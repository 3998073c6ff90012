//! The cleaner's offset map (`SkimpyOffsetMap`): key digest to latest offset, in a table whose size is fixed beforehand.
//!
//! A slot takes 24 bytes as in Kafka, so that the same memory holds as many keys and a round stops at the same record. Digests are
//! SipHash-1-3 of 128 bits under a key that is drawn for each run: whoever chooses record keys cannot make two of them collide, as
//! he could with Kafka's MD5, and have the cleaner drop a live record. Two of ten million keys meet with a probability of 10^-25.

use std::hash::Hasher;

use memmap2::{Advice, MmapMut};
use siphasher::sip128::{Hasher128, SipHasher13};

use crate::format::Offset;

/// Bytes of a slot: sixteen of digest, eight of the offset plus one.
const SLOT: usize = 24;
pub(super) const SLOT_BYTES: u64 = SLOT as u64;
/// What a slot holds that is free: the memory comes zeroed, and nothing of it is touched before it is used.
const FREE: u64 = 0;

/// The secret of a run's digests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DigestKey(pub [u64; 2]);

/// The digest of a record key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Digest(u64, u64);

impl DigestKey {
    /// The digest of a key. An empty key is a key.
    #[inline]
    pub(super) fn digest(&self, key: &[u8]) -> Digest {
        let [first, second] = self.0;
        let mut hasher = SipHasher13::new_with_keys(first, second);
        hasher.write(key);
        let hash = hasher.finish128();
        Digest(hash.h1, hash.h2)
    }
}

/// Why there is no map.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoMap {
    /// It could not hold a single key (`Cleaner`'s requirement).
    #[error("{memory_bytes} bytes are too few for an offset map that holds a key")]
    TooSmall {
        /// What it was given.
        memory_bytes: u64,
    },
    /// The system does not give so much.
    #[error("there is no memory for an offset map of {memory_bytes} bytes")]
    NoMemory {
        /// What was asked for.
        memory_bytes: u64,
    },
}

/// How many keys a map is to hold, as far as anybody knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Crowd {
    /// So few that most of the memory may never be touched.
    Few,
    /// So many that every page of it will.
    Many,
}

/// Latest offsets by key.
#[derive(Debug)]
pub(super) struct KeyMap {
    /// Slots: two words of digest and the offset plus one.
    memory: MmapMut,
    most: usize,
    len: usize,
}

/// A slot in words.
type Slot = [u64; 3];

fn words_of(slot: &[u8; SLOT]) -> Slot {
    let (words, _) = slot.as_chunks::<8>();
    let mut slot = [FREE; 3];
    for (word, bytes) in slot.iter_mut().zip(words) {
        *word = u64::from_be_bytes(*bytes);
    }
    slot
}

impl KeyMap {
    /// An empty map in so many bytes, which counts as full when `load_factor` of its slots are taken.
    pub(super) fn new(memory_bytes: u64, load_factor: f64, crowd: Crowd) -> Result<Self, NoMap> {
        let too_small = NoMap::TooSmall { memory_bytes };
        let slots = usize::try_from(memory_bytes / SLOT_BYTES).map_err(|_| too_small)?;
        let limit = slots as f64 * load_factor;
        if limit <= 1.0 {
            return Err(too_small);
        }
        let bytes = slots.saturating_mul(SLOT);
        let memory = MmapMut::map_anon(bytes).map_err(|_| NoMap::NoMemory { memory_bytes })?;
        if crowd == Crowd::Many {
            // Look-ups go everywhere: with large pages most of them cost a cache line and not a walk through page tables as well.
            // It is only advice.
            let _ = memory.advise(Advice::HugePage);
        }
        Ok(Self { memory, most: most_keys(slots, limit), len: 0 })
    }

    fn slots(&self) -> &[[u8; SLOT]] {
        self.memory.as_chunks().0
    }

    /// Keys that it holds.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Keys that it will hold at most.
    pub(super) fn most_keys(&self) -> usize {
        self.most
    }

    /// Whether it takes no record any more, be its key known or not: Kafka's test comes before the look-up.
    pub(super) fn is_full(&self) -> bool {
        self.len >= self.most
    }

    /// Enters the offset of a key, or replaces it. A full map stays as it is and says so.
    pub(super) fn put(&mut self, digest: Digest, offset: Offset) -> Result<(), MapFull> {
        if self.is_full() {
            return Err(MapFull);
        }
        let place = self.place_of(digest);
        let (slots, _) = self.memory.as_chunks_mut::<SLOT>();
        let Some(slot) = place.and_then(|place| slots.get_mut(place)) else { return Err(MapFull) };
        if words_of(slot)[2] == FREE {
            self.len += 1;
        }
        let (words, _) = slot.as_chunks_mut::<8>();
        for (bytes, word) in words.iter_mut().zip([digest.0, digest.1, offset.next().0 as u64]) {
            *bytes = word.to_be_bytes();
        }
        Ok(())
    }

    /// The offset of a key.
    #[inline]
    pub(super) fn latest(&self, digest: Digest) -> Option<Offset> {
        let [_, _, next] = words_of(self.slots().get(self.place_of(digest)?)?);
        (next != FREE).then(|| Offset((next as i64).wrapping_sub(1)))
    }

    /// The slot of a digest, or the free one where it belongs; `None` where every slot is another's.
    #[inline]
    fn place_of(&self, digest: Digest) -> Option<usize> {
        let start = self.home_of(digest);
        let (before, from) = self.slots().split_at_checked(start)?;
        let is_it = |slot: &[u8; SLOT]| {
            let [first, second, next] = words_of(slot);
            next == FREE || (first == digest.0 && second == digest.1)
        };
        match from.iter().position(is_it) {
            Some(steps) => Some(start + steps),
            None => before.iter().position(is_it),
        }
    }

    /// Where the search for a digest begins: its first word scaled to the number of slots.
    #[inline]
    fn home_of(&self, digest: Digest) -> usize {
        let scaled = u128::from(digest.0) * (self.slots().len() as u128);
        usize::try_from(scaled >> u64::BITS).unwrap_or(0)
    }

    /// Looks at the slots where these digests belong, so that the processor fetches them all at once and not one after the other.
    /// What comes back means nothing.
    #[inline]
    pub(super) fn touch(&self, digests: impl Iterator<Item = Digest>) -> u64 {
        let slots = self.slots();
        // Both ends: a slot may lie on two cache lines.
        let look = |slot| {
            let [first, _, next] = words_of(slot);
            first ^ next
        };
        digests.fold(0, |sum, digest| sum ^ slots.get(self.home_of(digest)).map_or(0, look))
    }
}

/// The map has no room for another key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MapFull;

#[expect(clippy::cast_possible_truncation, reason = "Kafka truncates, and the product is at most the number of slots")]
fn most_keys(slots: usize, limit: f64) -> usize {
    (limit as usize).min(slots)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use proptest::prelude::*;

    const KEY: DigestKey = DigestKey([1, 2]);

    #[test]
    fn capacity_is_that_of_kafka() {
        let of = |memory, factor| KeyMap::new(memory, factor, Crowd::Few).map(|map| map.most_keys());
        assert_eq!(of(134_217_728, 0.9), Ok(5_033_164));
        assert_eq!(of(96, 1.0), Ok(4));
        assert_eq!(of(96, 0.9), Ok(3));
        assert_eq!(of(24, 1.0), Err(NoMap::TooSmall { memory_bytes: 24 }));
        assert_eq!(of(0, 0.9), Err(NoMap::TooSmall { memory_bytes: 0 }));
    }

    #[test]
    fn a_full_map_takes_no_known_key_either_and_still_answers() {
        let mut map = KeyMap::new(72, 1.0, Crowd::Few).unwrap();
        let digests: Vec<_> = [b"a", b"b", b"c", b"d"].map(|key| KEY.digest(key)).into();
        for (offset, digest) in digests.iter().take(3).enumerate() {
            assert_eq!(map.put(*digest, Offset(offset as i64)), Ok(()));
        }
        assert!(map.is_full());
        assert_eq!(map.put(digests[0], Offset(9)), Err(MapFull));
        let latest: Vec<_> = digests.iter().map(|digest| map.latest(*digest)).collect();
        assert_eq!(latest, [Some(Offset(0)), Some(Offset(1)), Some(Offset(2)), None]);
    }

    #[test]
    fn an_empty_key_is_a_key_and_digests_depend_on_the_secret() {
        assert_ne!(KEY.digest(b""), KEY.digest(b"\0"));
        assert_ne!(KEY.digest(b"a"), DigestKey([1, 3]).digest(b"a"));
    }

    proptest! {
        #[test]
        fn it_answers_as_a_hash_map_does(
            entries in proptest::collection::vec((0u8..40, 0i64..1000), 0..200),
            slots in 2u64..60,
            load in 0.55f64..=1.0,
            crowd in proptest::sample::select(vec![Crowd::Few, Crowd::Many]),
        ) {
            let Ok(mut map) = KeyMap::new(slots * SLOT_BYTES, load, crowd) else { return Ok(()) };
            let mut model = HashMap::new();
            for (key, offset) in entries {
                let put = map.put(KEY.digest(&[key]), Offset(offset));
                let expected = if model.len() < map.most_keys() { Ok(()) } else { Err(MapFull) };
                prop_assert_eq!(put, expected);
                if put.is_ok() {
                    model.insert(key, offset);
                }
            }
            prop_assert_eq!(map.len(), model.len());
            for key in 0u8..50 {
                prop_assert_eq!(map.latest(KEY.digest(&[key])).map(|offset| offset.0), model.get(&key).copied());
            }
        }
    }
}

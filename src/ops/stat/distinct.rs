//! How many different keys there are: counted while there are few, estimated by HyperLogLog when there are many.

use std::collections::BTreeSet;
use std::hash::Hasher;

use hyperloglockless::HyperLogLog;
use siphasher::sip::SipHasher13;

/// Up to so many distinct hashes are kept and counted.
const MOST_COUNTED: usize = 2048;
/// 2^14 registers: a standard error of 0.8 % in 16 KiB.
const PRECISION: u8 = 14;

/// A set of keys that knows only its size, and can be merged. The same keys give the same size in any order of merging.
#[derive(Clone, Default)]
pub struct Distinct {
    /// While there are few.
    hashes: BTreeSet<u64>,
    /// When there were many.
    sketch: Option<Box<HyperLogLog>>,
}

impl std::fmt::Debug for Distinct {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Distinct").field("count", &self.count()).field("is_exact", &self.is_exact()).finish()
    }
}

impl Distinct {
    /// Takes a key in.
    pub fn add(&mut self, key: &[u8]) {
        // Fixed hash keys: a report is the same on every run. Who can choose keys can make the estimate wrong, nothing more.
        let mut hasher = SipHasher13::new();
        hasher.write(key);
        self.add_hash(hasher.finish());
    }

    /// Takes in all that another holds.
    pub fn merge(&mut self, other: &Self) {
        if let Some(theirs) = &other.sketch {
            // Both have the same precision and hash keys, so this cannot fail.
            let _ = self.make_sketch().union(theirs);
        }
        for hash in &other.hashes {
            self.add_hash(*hash);
        }
    }

    /// The number of distinct keys, exact or within a few percent.
    pub fn count(&self) -> u64 {
        match &self.sketch {
            Some(sketch) => sketch.count() as u64,
            None => self.hashes.len() as u64,
        }
    }

    /// Whether the number is exact, but for collisions of 64-bit hashes.
    pub fn is_exact(&self) -> bool {
        self.sketch.is_none()
    }

    fn add_hash(&mut self, hash: u64) {
        if let Some(sketch) = &mut self.sketch {
            sketch.insert_hash(hash);
            return;
        }
        self.hashes.insert(hash);
        if self.hashes.len() > MOST_COUNTED {
            self.make_sketch();
        }
    }

    /// The sketch; made of the kept hashes if there is none yet.
    fn make_sketch(&mut self) -> &mut HyperLogLog {
        let hashes = &mut self.hashes;
        self.sketch.get_or_insert_with(|| {
            let mut sketch = Box::new(HyperLogLog::seeded(PRECISION, 0));
            for hash in std::mem::take(hashes) {
                sketch.insert_hash(hash);
            }
            sketch
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(keys: std::ops::Range<u32>) -> Distinct {
        let mut distinct = Distinct::default();
        for key in keys {
            distinct.add(&key.to_be_bytes());
        }
        distinct
    }

    #[test]
    fn few_keys_are_counted_exactly_however_often_they_come() {
        let mut distinct = of(0..2000);
        distinct.merge(&of(1000..2048));
        assert_eq!((distinct.count(), distinct.is_exact()), (2048, true));
    }

    #[test]
    fn many_keys_are_estimated_within_three_percent() {
        for count in [3_000, 50_000, 1_000_000] {
            let distinct = of(0..count);
            let error = (distinct.count() as f64 / f64::from(count) - 1.0).abs();
            assert!(!distinct.is_exact() && error < 0.03, "{count}: {}", distinct.count());
        }
    }

    #[test]
    fn merging_gives_what_one_pass_gives_whatever_the_parts() {
        let whole = of(0..30_000);
        for cut in [0, 10, 1500, 5000, 29_999] {
            let mut forth = of(0..cut);
            forth.merge(&of(cut..30_000));
            let mut back = of(cut..30_000);
            back.merge(&of(0..cut));
            assert_eq!((forth.count(), back.count()), (whole.count(), whole.count()), "{cut}");
        }
    }
}

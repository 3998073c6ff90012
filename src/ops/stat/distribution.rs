//! How sizes are spread: exact up to 2 KiB, within a thousandth above.

/// Values below this have a bucket each.
const EXACT: u64 = 2048;
/// Buckets between two powers of two above that.
const PER_OCTAVE: u64 = EXACT / 2;
/// log2 of [`EXACT`].
const EXACT_BITS: u32 = 11;

/// A histogram of sizes that can be merged: counts in buckets whose width is at most a thousandth of their values.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Distribution {
    counts: Vec<u64>,
    count: u64,
    sum: u64,
    most: u64,
}

/// The figures of a distribution that are reported.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Quantiles {
    /// Half of the values are no larger.
    pub p50: u64,
    /// 95 % are no larger.
    pub p95: u64,
    /// 99 % are no larger.
    pub p99: u64,
    /// The largest.
    pub max: u64,
    /// The mean.
    pub mean: f64,
}

impl Distribution {
    /// Counts a value.
    pub fn add(&mut self, value: u64) {
        let bucket = bucket_of(value);
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.most = self.most.max(value);
    }

    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.most = self.most.max(other.most);
    }

    /// Values counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all values.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The figures to report; `None` where nothing was counted.
    pub fn quantiles(&self) -> Option<Quantiles> {
        (self.count > 0).then(|| Quantiles {
            p50: self.quantile(50),
            p95: self.quantile(95),
            p99: self.quantile(99),
            max: self.most,
            mean: self.sum as f64 / self.count as f64,
        })
    }

    /// The least value that so many percent of all are not larger than (nearest rank).
    fn quantile(&self, percent: u64) -> u64 {
        let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100).max(1);
        let mut seen = 0_u128;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += u128::from(*count);
            if seen >= rank {
                return largest_in(bucket).min(self.most);
            }
        }
        self.most
    }
}

fn bucket_of(value: u64) -> usize {
    if value < EXACT {
        return usize::try_from(value).unwrap_or(usize::MAX);
    }
    // The top eleven bits of the value choose the bucket.
    let octave = u64::from(value.ilog2() - EXACT_BITS + 1);
    let top = value >> octave;
    usize::try_from(octave * PER_OCTAVE + top).unwrap_or(usize::MAX)
}

fn largest_in(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < EXACT {
        return bucket;
    }
    let octave = (bucket - PER_OCTAVE) / PER_OCTAVE;
    let top = bucket - octave * PER_OCTAVE;
    ((top + 1) << octave).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> Distribution {
        let mut distribution = Distribution::default();
        for value in values {
            distribution.add(*value);
        }
        distribution
    }

    #[test]
    fn small_values_have_exact_quantiles() {
        let quantiles = of(&(1..=100).collect::<Vec<_>>()).quantiles().unwrap();
        assert_eq!((quantiles.p50, quantiles.p95, quantiles.p99, quantiles.max), (50, 95, 99, 100));
        assert!((quantiles.mean - 50.5).abs() < 1e-9);
        assert_eq!(of(&[]).quantiles(), None);
        assert_eq!(of(&[7]).quantiles().unwrap().p50, 7);
    }

    #[test]
    fn buckets_follow_each_other_without_gap_up_to_the_largest_value() {
        for value in [0, 1, 2047, 2048, 2049, 4095, 4096, 1 << 20, (1 << 40) + 12_345, u64::MAX] {
            let bucket = bucket_of(value);
            assert!(largest_in(bucket) >= value, "{value}");
            assert!(bucket == 0 || largest_in(bucket - 1) < value, "{value}");
        }
    }

    proptest! {
        #[test]
        fn quantiles_are_within_a_thousandth_and_merging_changes_nothing(
            mut values in proptest::collection::vec(0_u64..10_000_000, 1..300),
            cut in 0_usize..300,
        ) {
            let whole = of(&values);
            let (left, right) = values.split_at(cut.min(values.len()));
            let mut merged = of(left);
            merged.merge(&of(right));
            prop_assert_eq!(merged.quantiles(), whole.quantiles());
            values.sort_unstable();
            for percent in [50, 95, 99] {
                let rank = (values.len() * percent).div_ceil(100).max(1);
                let exact = values[rank - 1] as f64;
                let found = whole.quantile(percent as u64) as f64;
                prop_assert!(found >= exact && found <= exact * 1.001 + 1.0, "{} {} {}", percent, found, exact);
            }
        }
    }
}

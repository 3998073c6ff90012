//! The search that brokers run over an index file (`AbstractIndex.indexSlotRangeFor`).

use std::cmp::Ordering;

/// Bytes at the end of an index that a broker (2.1 and later) probes first: look-ups are mostly near the end.
const WARM_BYTES: usize = 8192;

/// The slot of the largest entry that is not greater than what `compare` looks for; `None` where the first one is greater.
///
/// `compare(slot)` tells how the entry of a slot stands to the target, and so sees every probe in order. Where entries are not
/// sorted the result is the broker's: it depends on the split into the last 8192 bytes and the rest.
pub(super) fn floor_slot(len: usize, entry_size: usize, compare: impl FnMut(usize) -> Ordering) -> Option<usize> {
    match search(len, entry_size, compare) {
        Found::Equal(slot) | Found::Below(slot) => Some(slot),
        Found::Nothing | Found::AllAbove => None,
    }
}

/// The slot of the smallest entry that is not below what `compare` looks for; `None` where all are. As in a broker, a first
/// entry that is equal is passed over for the next one, since no probe has told that it is.
pub(super) fn ceiling_slot(len: usize, entry_size: usize, compare: impl FnMut(usize) -> Ordering) -> Option<usize> {
    match search(len, entry_size, compare) {
        Found::Equal(slot) => Some(slot),
        Found::Below(slot) => slot.checked_add(1).filter(|next| *next < len),
        Found::AllAbove => Some(0),
        Found::Nothing => None,
    }
}

enum Found {
    /// There is no entry.
    Nothing,
    /// Every entry is above the target.
    AllAbove,
    /// A probe met the target.
    Equal(usize),
    /// The slot below the target, or the first slot, which may be equal.
    Below(usize),
}

fn search(len: usize, entry_size: usize, mut compare: impl FnMut(usize) -> Ordering) -> Found {
    let Some(last) = len.checked_sub(1) else { return Found::Nothing };
    let first_warm = last.saturating_sub(WARM_BYTES.checked_div(entry_size).unwrap_or(0));
    if compare(first_warm).is_lt() {
        return binary_search(first_warm, last, compare);
    }
    if compare(0).is_gt() {
        return Found::AllAbove;
    }
    binary_search(0, first_warm, compare)
}

fn binary_search(mut low: usize, mut high: usize, mut compare: impl FnMut(usize) -> Ordering) -> Found {
    while low < high {
        // The upper middle, so that `low = middle` always gains.
        let middle = high.saturating_sub(high.saturating_sub(low) / 2);
        match compare(middle) {
            Ordering::Greater => high = middle.saturating_sub(1),
            Ordering::Less => low = middle,
            Ordering::Equal => return Found::Equal(middle),
        }
    }
    Found::Below(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn floor_and_ceiling_agree_with_a_linear_search(
            mut keys in proptest::collection::vec(0u16..5000, 0..3000), target in 0u16..5010, entry_size in 8usize..35
        ) {
            keys.sort_unstable();
            keys.dedup();
            let mut probes = 0u32;
            let floor = floor_slot(keys.len(), entry_size, |slot| { probes += 1; keys[slot].cmp(&target) });
            prop_assert_eq!(floor, keys.iter().rposition(|key| *key <= target));
            prop_assert!(probes <= keys.len().max(1).ilog2() + 3);
            let ceiling = ceiling_slot(keys.len(), entry_size, |slot| keys[slot].cmp(&target));
            let skipped = usize::from(keys.first() == Some(&target));
            let expected = keys.iter().position(|key| *key >= target).map(|slot| slot + skipped);
            prop_assert_eq!(ceiling, expected.filter(|slot| *slot < keys.len()));
        }

        #[test]
        fn unsorted_keys_end_the_search_all_the_same(keys in proptest::collection::vec(any::<u8>(), 0..2000), target: u8) {
            let floor = floor_slot(keys.len(), 8, |slot| keys[slot].cmp(&target));
            prop_assert!(floor.is_none_or(|slot| slot < keys.len()));
        }
    }
}

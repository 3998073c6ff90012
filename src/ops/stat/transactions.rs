//! Which transactions are open at the end of a log, computed part by part.

use std::collections::BTreeMap;

use crate::format::{BatchHeader, Offset, ProducerId};

/// What a part of a log does to the open transactions: for each producer whether one ended in it, and where one that is open at its
/// end began. Parts can be put together in any grouping, in the order of the log.
///
/// Follows `ProducerStateManager` in what matters here: a transactional batch opens a transaction unless one is open, an end marker
/// closes it. Epochs and sequences are not judged.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TransactionTrail {
    producers: BTreeMap<ProducerId, Trail>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Trail {
    /// An end marker was seen.
    ended: bool,
    /// Where the transaction that is open at the end began, if it began in this part.
    open_since: Option<Offset>,
}

/// A transaction that is open at the end of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenSince {
    /// The producer.
    pub producer_id: ProducerId,
    /// Offset of its first record.
    pub first_offset: Offset,
}

impl TransactionTrail {
    /// A transaction that was open before the log starts, as a producer snapshot says.
    pub fn open_before(&mut self, producer_id: ProducerId, first_offset: Offset) {
        self.producers.entry(producer_id).or_default().open_since = Some(first_offset);
    }

    /// Takes a data batch in; control batches change nothing here.
    pub fn add_data(&mut self, header: &BatchHeader) {
        let Some(producer_id) = header.producer_id else { return };
        if header.is_transactional() && !header.is_control() {
            let trail = self.producers.entry(producer_id).or_default();
            trail.open_since = trail.open_since.or(Some(header.base_offset));
        }
    }

    /// Takes an end marker of a producer in.
    pub fn add_end(&mut self, producer_id: ProducerId) {
        *self.producers.entry(producer_id).or_default() = Trail { ended: true, open_since: None };
    }

    /// Adds the part that follows.
    pub fn append(&mut self, later: &Self) {
        for (producer_id, trail) in &later.producers {
            let mine = self.producers.entry(*producer_id).or_default();
            *mine = Trail {
                ended: mine.ended || trail.ended,
                open_since: if trail.ended { trail.open_since } else { mine.open_since.or(trail.open_since) },
            };
        }
        // What has ended and is not open again says nothing more once nothing comes before it; it stays, since a part
        // before this one may still be put in front.
    }

    /// The transactions that are open at the end, oldest first.
    pub fn open(&self) -> Vec<OpenSince> {
        let mut open: Vec<OpenSince> = self
            .producers
            .iter()
            .filter_map(|(producer_id, trail)| {
                trail.open_since.map(|first_offset| OpenSince { producer_id: *producer_id, first_offset })
            })
            .collect();
        open.sort_by_key(|open| (open.first_offset, open.producer_id));
        open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Some(offset)` is a data batch, `None` an end marker.
    fn trail(events: &[(i64, Option<i64>)]) -> TransactionTrail {
        let mut trail = TransactionTrail::default();
        for (producer, event) in events {
            match event {
                Some(offset) => {
                    let entry = trail.producers.entry(ProducerId(*producer)).or_default();
                    entry.open_since = entry.open_since.or(Some(Offset(*offset)));
                }
                None => trail.add_end(ProducerId(*producer)),
            }
        }
        trail
    }

    #[test]
    fn any_cut_of_a_log_gives_the_same_open_transactions() {
        let events = [(1, Some(0)), (2, Some(1)), (1, None), (1, Some(3)), (2, Some(4)), (3, None), (1, Some(6))];
        let whole = trail(&events);
        let open = whole.open();
        assert_eq!(open.len(), 2);
        assert_eq!((open[0].producer_id, open[0].first_offset), (ProducerId(2), Offset(1)));
        assert_eq!((open[1].producer_id, open[1].first_offset), (ProducerId(1), Offset(3)));
        for cut in 0..=events.len() {
            let (left, right) = events.split_at(cut);
            let mut merged = trail(left);
            merged.append(&trail(right));
            assert_eq!(merged, whole, "{cut}");
        }
    }
}

//! Which transactions a pass over the log has met, aborted and committed (`CleanedTransactionMetadata`): whose data goes, and when a
//! marker has nothing left to end.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::format::txn_index::AbortedTransaction;
use crate::format::{BatchHeader, Offset, ProducerId};

/// What the first record of a control batch is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Marker {
    /// Ends an aborted transaction.
    Abort,
    /// Ends a committed transaction.
    Commit,
    /// A control record that ends none.
    Other,
    /// An earlier round has emptied the batch.
    Emptied,
}

/// What a pass knows of a batch by its transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TransactionFate {
    /// It stays as far as transactions go.
    Stays,
    /// It is data of an aborted transaction, or a marker whose transaction has no data left.
    CanGo,
}

/// An aborted transaction that the pass is inside of.
#[derive(Clone, Copy, Debug)]
struct Aborted {
    entry: AbortedTransaction,
    data: Data,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Data {
    NotSeen,
    Seen,
}

/// The transactions of one pass.
#[derive(Debug, Default)]
pub(super) struct PassTransactions {
    /// Not reached yet, by first offset. Kafka keeps repeated entries; they change nothing.
    pending: BTreeSet<Pending>,
    aborted: HashMap<ProducerId, Aborted>,
    committed: HashSet<ProducerId>,
    unlisted_aborts: u64,
}

/// An entry in the order in which transactions begin.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Pending {
    first: Offset,
    producer: ProducerId,
    last: Offset,
    stable: Offset,
    version: i16,
}

impl Pending {
    fn of(entry: &AbortedTransaction) -> Self {
        Self {
            first: entry.first_offset,
            producer: entry.producer_id,
            last: entry.last_offset,
            stable: entry.last_stable_offset,
            version: entry.version,
        }
    }

    fn entry(&self) -> AbortedTransaction {
        AbortedTransaction {
            version: self.version,
            producer_id: self.producer,
            first_offset: self.first,
            last_offset: self.last,
            last_stable_offset: self.stable,
        }
    }
}

impl PassTransactions {
    /// Makes aborted transactions known that lie ahead.
    pub(super) fn expect<'t>(&mut self, entries: impl IntoIterator<Item = &'t AbortedTransaction>) {
        self.pending.extend(entries.into_iter().map(Pending::of));
    }

    fn begin_up_to(&mut self, offset: Offset) {
        while let Some(next) = self.pending.first().copied().filter(|next| next.first <= offset) {
            self.pending.remove(&next);
            let aborted = Aborted { entry: next.entry(), data: Data::NotSeen };
            self.aborted.entry(next.producer).or_insert(aborted);
        }
    }

    /// Whether a data batch that is met next belongs to an aborted transaction.
    pub(super) fn would_abort(&mut self, header: &BatchHeader) -> bool {
        self.begin_up_to(header.last_offset);
        self.aborted.contains_key(&raw_producer(header))
    }

    /// Meets a data batch.
    pub(super) fn on_data(&mut self, header: &BatchHeader) -> TransactionFate {
        self.begin_up_to(header.last_offset);
        if !header.is_transactional() {
            return TransactionFate::Stays;
        }
        let producer_id = raw_producer(header);
        if let Some(aborted) = self.aborted.get_mut(&producer_id) {
            aborted.data = Data::Seen;
            return TransactionFate::CanGo;
        }
        self.committed.insert(producer_id);
        TransactionFate::Stays
    }

    /// Meets a control batch. An aborted transaction whose marker stays is given back: it stays in the index too.
    pub(super) fn on_control(
        &mut self,
        header: &BatchHeader,
        marker: Marker,
    ) -> (TransactionFate, Option<AbortedTransaction>) {
        self.begin_up_to(header.last_offset);
        let producer_id = raw_producer(header);
        match marker {
            Marker::Other => (TransactionFate::Stays, None),
            Marker::Commit if self.committed.remove(&producer_id) => (TransactionFate::Stays, None),
            Marker::Commit | Marker::Emptied => (TransactionFate::CanGo, None),
            Marker::Abort => match self.aborted.remove(&producer_id) {
                Some(aborted) if aborted.data == Data::Seen => (TransactionFate::Stays, Some(aborted.entry)),
                None if self.committed.contains(&producer_id) => {
                    self.unlisted_aborts += 1;
                    (TransactionFate::CanGo, None)
                }
                _ => (TransactionFate::CanGo, None),
            },
        }
    }
}

impl PassTransactions {
    /// Markers, since the last time this was asked, of aborted transactions that no index lists.
    pub(super) fn take_unlisted_aborts(&mut self) -> u64 {
        std::mem::take(&mut self.unlisted_aborts)
    }
}

/// The producer as Kafka looks it up, absent ones too.
fn raw_producer(header: &BatchHeader) -> ProducerId {
    header.producer_id.unwrap_or(ProducerId(-1))
}

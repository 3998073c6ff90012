//! The leader-epoch checkpoint of a partition as brokers keep it (`LeaderEpochFileCache`, KIP-101): which epoch began at which
//! offset.

use crate::format::checkpoint::EpochEntry;
use crate::format::{LeaderEpoch, Offset};

/// An entry with a negative number: a broker throws, and the start fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("epoch {} at offset {} is below 0", .0.epoch, .0.start_offset)]
pub struct NegativeEpoch(pub EpochEntry);

/// The epochs of a log, ascending in epoch and in start offset.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct EpochHistory {
    entries: Vec<EpochEntry>,
}

impl EpochHistory {
    /// What a broker holds after reading these lines of a file: each is assigned after the one before it, so a line out of order
    /// removes those it contradicts.
    pub fn from_lines(lines: impl IntoIterator<Item = EpochEntry>) -> Result<Self, NegativeEpoch> {
        let mut history = Self::default();
        for line in lines {
            history.assign(line)?;
        }
        Ok(history)
    }

    /// The entries, ascending.
    pub fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }

    /// The latest epoch.
    pub fn latest(&self) -> Option<EpochEntry> {
        self.entries.last().copied()
    }

    /// Enters an epoch as an append or an election does: entries that it contradicts go first.
    pub fn assign(&mut self, new: EpochEntry) -> Result<(), NegativeEpoch> {
        if new.epoch.0 < 0 || new.start_offset.0 < 0 {
            return Err(NegativeEpoch(new));
        }
        let is_needed =
            self.latest().is_none_or(|last| new.epoch != last.epoch || new.start_offset < last.start_offset);
        if is_needed {
            while self.latest().is_some_and(|last| last.epoch >= new.epoch || last.start_offset >= new.start_offset) {
                self.entries.pop();
            }
            self.entries.push(new);
        }
        Ok(())
    }

    /// Enters the epoch of a batch that recovery reads: only one above the latest (`LogSegment.recover`).
    pub fn assign_recovered(&mut self, epoch: Option<LeaderEpoch>, base_offset: Offset) -> Result<(), NegativeEpoch> {
        match epoch {
            Some(epoch) if epoch.0 >= 0 && self.latest().is_none_or(|last| epoch > last.epoch) => {
                self.assign(EpochEntry { epoch, start_offset: base_offset })
            }
            _ => Ok(()),
        }
    }

    /// Drops the epochs that begin at `end` or beyond it.
    pub fn truncate_from_end(&mut self, end: Offset) {
        if end.0 >= 0 && self.latest().is_some_and(|last| last.start_offset >= end) {
            while self.latest().is_some_and(|last| last.start_offset >= end) {
                self.entries.pop();
            }
        }
    }

    /// Drops the epochs that ended before `start`; the one that holds it begins there from now on.
    pub fn truncate_from_start(&mut self, start: Offset) {
        let gone = self.entries.iter().take_while(|entry| entry.start_offset <= start).count();
        // The last of them stays, and begins later.
        self.entries.drain(..gone.saturating_sub(1));
        if let Some(first) = self.entries.first_mut().filter(|_| gone > 0) {
            first.start_offset = start;
        }
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// What a follower that asks for an epoch is told: the largest known epoch not above it, and where that ended
    /// (`endOffsetFor`). `None`: the epoch is beyond every known one.
    pub fn end_offset_for(&self, requested: LeaderEpoch, log_end_offset: Offset) -> Option<EpochEntry> {
        if self.latest().is_some_and(|last| last.epoch == requested) {
            return Some(EpochEntry { epoch: requested, start_offset: log_end_offset });
        }
        let higher = self.entries.iter().find(|entry| entry.epoch > requested)?;
        let floor = self.entries.iter().rfind(|entry| entry.epoch <= requested);
        let epoch = floor.map_or(requested, |entry| entry.epoch);
        Some(EpochEntry { epoch, start_offset: higher.start_offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start((epoch, offset): (i32, i64)) -> EpochEntry {
        EpochEntry { epoch: LeaderEpoch(epoch), start_offset: Offset(offset) }
    }

    fn history(lines: &[(i32, i64)]) -> EpochHistory {
        EpochHistory::from_lines(lines.iter().copied().map(start)).unwrap()
    }

    #[test]
    fn appended_and_recovered_epochs_differ_as_they_do_in_a_broker() {
        let batches = [(1, 0), (1, 1), (4, 2), (3, 3), (5, 4)];
        assert_eq!(history(&batches), history(&[(1, 0), (3, 3), (5, 4)]));
        let mut recovered = EpochHistory::default();
        for (epoch, offset) in batches {
            recovered.assign_recovered(Some(LeaderEpoch(epoch)), Offset(offset)).unwrap();
        }
        assert_eq!(recovered, history(&[(1, 0), (4, 2), (5, 4)]));
    }

    #[test]
    fn a_line_out_of_order_removes_those_it_contradicts() {
        let read = history(&[(0, 0), (1, 15), (2, 30), (1, 45), (4, 60), (5, 75)]);
        assert_eq!(read, history(&[(0, 0), (1, 45), (4, 60), (5, 75)]));
    }

    #[test]
    fn truncation_keeps_the_epoch_that_holds_the_new_start() {
        let mut epochs = history(&[(0, 0), (1, 3), (2, 6), (3, 9)]);
        epochs.truncate_from_start(Offset(4));
        assert_eq!(epochs, history(&[(1, 4), (2, 6), (3, 9)]));
        epochs.truncate_from_end(Offset(9));
        assert_eq!(epochs, history(&[(1, 4), (2, 6)]));
        epochs.truncate_from_start(Offset(2));
        assert_eq!(epochs, history(&[(1, 4), (2, 6)]));
    }

    #[test]
    fn a_follower_is_told_where_its_epoch_ended() {
        let epochs = history(&[(1, 4), (3, 9)]);
        for (requested, expected) in
            [(0, Some((0, 4))), (1, Some((1, 9))), (2, Some((1, 9))), (3, Some((3, 20))), (4, None)]
        {
            assert_eq!(epochs.end_offset_for(LeaderEpoch(requested), Offset(20)), expected.map(start), "{requested}");
        }
    }

    #[test]
    fn negative_numbers_are_refused_as_a_broker_refuses_them() {
        let refused = start((-1, 5));
        assert_eq!(EpochHistory::from_lines([refused]), Err(NegativeEpoch(refused)));
        let mut recovered = EpochHistory::default();
        assert_eq!(recovered.assign_recovered(Some(LeaderEpoch(-7)), Offset(0)), Ok(()));
        assert_eq!(recovered.entries(), []);
    }
}

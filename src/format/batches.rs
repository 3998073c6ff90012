//! The batches of a piece of log, one after the other. Stops at the first thing that is no batch; skipping damage is
//! [`super::resync`]'s business.

use super::batch::{Batch, HEADER_UP_TO_MAGIC};
use super::{FormatError, FormatErrorKind, Position, len_usize};

/// Iterates over the batches of `data` as Kafka's file reader does (`FileLogInputStream.nextBatch`): 17 bytes or fewer at the end
/// are passed over in silence, everything else that is no whole batch is an error, after which the iterator is done.
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    rest: &'a [u8],
    position: Position,
}

impl<'a> Batches<'a> {
    /// The batches of `data`, which lies at `position` of its file.
    pub fn new(data: &'a [u8], position: Position) -> Self {
        Self { rest: data, position }
    }

    /// Where the next batch starts; after an error, where the faulty one does.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The bytes not yet passed: after the end, those too few for a batch.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<Batch<'a>, FormatError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.len() <= HEADER_UP_TO_MAGIC {
            return None;
        }
        let parsed = Batch::parse(self.rest, self.position);
        match &parsed {
            Ok(batch) => {
                let size = batch.header().size_bytes;
                self.rest = self.rest.get(len_usize(size)..).unwrap_or_default();
                self.position = self.position.advance(size);
            }
            Err(_) => self.rest = &[],
        }
        Some(parsed)
    }
}

/// Whether an error of [`Batches`] says that the data ends inside the batch, rather than that the batch is impossible.
pub fn is_cut(error: &FormatError) -> bool {
    matches!(error.kind, FormatErrorKind::UnexpectedEnd { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Offset;

    const V0: [u8; 29] =
        [0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0x11, 0x6e, 0xeb, 0xec, 0xe4, 0, 0, 0, 0, 0, 1, 0x61, 0, 0, 0, 2, 0x62, 0x63];

    #[test]
    fn positions_follow_the_sizes_and_a_short_tail_ends_in_silence() {
        let mut data = [V0, V0].concat();
        data.extend([0; 17]);
        let mut batches = Batches::new(&data, Position(1000));
        let seen: Vec<_> = batches.by_ref().map(|b| b.map(|b| (b.header().position, b.header().base_offset))).collect();
        assert_eq!(seen, vec![Ok((Position(1000), Offset(5))), Ok((Position(1029), Offset(5)))]);
        assert_eq!((batches.position(), batches.rest().len()), (Position(1058), 17));
    }

    #[test]
    fn eighteen_zeros_are_an_error_and_then_the_end() {
        let mut data = V0.to_vec();
        data.extend([0; 18]);
        let seen: Vec<_> = Batches::new(&data, Position(0)).collect();
        assert_eq!(seen.len(), 2);
        let error = seen.last().and_then(|b| b.as_ref().err()).unwrap();
        assert_eq!(error.position, Position(29));
        assert!(!is_cut(error));
    }

    #[test]
    fn a_torn_batch_is_told_from_an_impossible_one() {
        let data = [&V0[..], &V0[..28]].concat();
        let last = Batches::new(&data, Position(0)).last().unwrap();
        assert!(is_cut(&last.unwrap_err()));
    }
}

//! What becomes of each batch of a log file, in the order of the batches: the recipe of a cleaned log without its bytes.
//!
//! Runs of batches that stay or go take two bytes, a rewritten batch about ten and a bit for each record. Verdicts of several rounds
//! are composed, so that they always speak of the batches that are on the disk.
//!
//! ```text
//! op | 0 copy, count | 1 drop, count | 2 header only, flags, time, [base, delta] | 3 rewrite, flags, size, time, [horizon], [base, delta], [records kept]
//! ```

use crate::format::varint::{
    read_unsigned_varlong, write_unsigned_varlong, write_varlong, zigzag_decode_32, zigzag_decode_64,
};
use crate::format::{Offset, Position, TimestampMs};

const COPY: u8 = 0;
const DROP: u8 = 1;
const HEADER_ONLY: u8 = 2;
const REWRITE: u8 = 3;
/// Flags of a rewritten batch.
const HAS_HORIZON: u8 = 1;
const HAS_SPAN: u8 = 2;
const KEEPS_ALL: u8 = 4;

/// Which records of a batch stay, by their place in it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct KeptRecords {
    bits: Vec<u8>,
    len: u64,
    kept: u64,
}

impl KeptRecords {
    /// None of none.
    pub(super) fn clear(&mut self) {
        self.bits.clear();
        (self.len, self.kept) = (0, 0);
    }

    /// Says of the next record that it stays.
    pub(super) fn keep(&mut self) {
        self.push(1);
        self.kept += 1;
    }

    /// Says of the next record that it goes.
    pub(super) fn drop_next(&mut self) {
        self.push(0);
    }

    fn push(&mut self, bit: u8) {
        let shift = self.len % 8;
        match self.bits.last_mut() {
            Some(last) if shift > 0 => *last |= bit << shift,
            _ => self.bits.push(bit),
        }
        self.len += 1;
    }

    /// Whether all do.
    pub(super) fn keeps_all(&self) -> bool {
        self.kept == self.len
    }

    /// The same as a view.
    pub(super) fn as_view(&self) -> Kept<'_> {
        if self.keeps_all() { Kept::All } else { Kept::These(&self.bits) }
    }
}

/// Which records of a batch stay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kept<'a> {
    /// All of them.
    All,
    /// A bit for each, lowest first.
    These(&'a [u8]),
}

impl Kept<'_> {
    /// Whether the record at this place stays.
    #[inline]
    pub(super) fn contains(&self, index: u64) -> bool {
        match self {
            Self::All => true,
            Self::These(bits) => {
                let byte = usize::try_from(index / 8).ok().and_then(|at| bits.get(at)).copied().unwrap_or(0);
                byte >> (index % 8) & 1 == 1
            }
        }
    }
}

/// How a batch is rewritten.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rewrite<'a> {
    /// The records that stay.
    pub(super) kept: Kept<'a>,
    /// The delete horizon that the batch gets or has.
    pub(super) horizon: Option<TimestampMs>,
    /// First offset and last offset delta of a legacy message that an earlier round has made a v2 batch of.
    pub(super) span: Option<(Offset, i32)>,
    /// Bytes that come out.
    pub(super) size_bytes: u64,
    /// The largest timestamp that comes out; -1 where there is none.
    pub(super) max_timestamp: i64,
}

/// What becomes of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict<'a> {
    /// It stays byte for byte.
    Copy,
    /// It goes.
    Drop,
    /// Its header stays, without records, with this as its largest timestamp.
    HeaderOnly {
        /// Raw, -1 for none.
        max_timestamp: i64,
        /// First offset and last offset delta of a legacy message that an earlier round has made a v2 batch of.
        span: Option<(Offset, i32)>,
    },
    /// Some of its records stay, or all of them otherwise encoded.
    Rewrite(Rewrite<'a>),
}

/// The verdicts on the batches of one log file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Verdicts {
    ops: Vec<u8>,
    /// Places from which they can be read: position in the log, and place in `ops`.
    marks: Vec<(Position, usize)>,
    /// Rewritten batches that are there already, by position in the log.
    made: Vec<(Position, Box<[u8]>)>,
}

impl Verdicts {
    /// What comes out of the batch at a position, if it was kept.
    pub(super) fn made_at(&self, position: Position) -> Option<&[u8]> {
        let index = self.made.binary_search_by_key(&position, |(position, _)| *position).ok()?;
        self.made.get(index).map(|(_, bytes)| &**bytes)
    }

    /// Bytes that they take, without those of batches.
    pub fn size_bytes(&self) -> u64 {
        (self.ops.len() + self.marks.len() * 16) as u64
    }

    /// Bytes of the rewritten batches that are kept.
    pub(super) fn made_bytes(&self) -> u64 {
        self.made.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }

    /// Whether every batch stays as it is.
    pub fn copies_all(&self) -> bool {
        let mut reader = self.reader();
        while let Some((op, _)) = reader.read_op() {
            if op != COPY {
                return false;
            }
        }
        true
    }

    /// Where they can be read from: positions in the log.
    pub(super) fn marks(&self) -> impl Iterator<Item = Position> + '_ {
        self.marks.iter().map(|(position, _)| *position)
    }

    /// Reads them from a mark on; from the first batch on where there is none at this position.
    pub(super) fn reader_at(&self, position: Position) -> VerdictReader<'_> {
        let mark = self.marks.binary_search_by_key(&position, |(position, _)| *position).ok();
        let at = mark.and_then(|index| self.marks.get(index)).map_or(0, |(_, at)| *at);
        VerdictReader { rest: self.ops.get(at..).unwrap_or_default(), run: None }
    }

    /// Reads them from the first batch on.
    pub(super) fn reader(&self) -> VerdictReader<'_> {
        VerdictReader { rest: &self.ops, run: None }
    }
}

/// Collects verdicts.
#[derive(Debug, Default)]
pub(super) struct VerdictWriter {
    ops: Vec<u8>,
    marks: Vec<(Position, usize)>,
    run: Option<(u8, u64)>,
    mark_bytes: u64,
    made: Vec<(Position, Box<[u8]>)>,
}

impl VerdictWriter {
    /// With a mark for every so many bytes of log.
    pub(super) fn new(mark_bytes: u64) -> Self {
        Self { mark_bytes, ..Self::default() }
    }

    /// Says where the next batch starts; from time to time that becomes a place from which verdicts can be read.
    pub(super) fn mark(&mut self, position: Position) {
        let last = self.marks.last().map_or(Position(0), |(position, _)| *position);
        if position > last && position.since(last) >= self.mark_bytes {
            self.end_run();
            self.marks.push((position, self.ops.len()));
        }
    }

    /// Adds the verdict on the next batch.
    pub(super) fn push(&mut self, verdict: &Verdict<'_>) {
        match verdict {
            Verdict::Copy => self.lengthen(COPY),
            Verdict::Drop => self.lengthen(DROP),
            Verdict::HeaderOnly { max_timestamp, span } => {
                self.end_run();
                self.ops.extend_from_slice(&[HEADER_ONLY, if span.is_some() { HAS_SPAN } else { 0 }]);
                write_varlong(&mut self.ops, *max_timestamp);
                self.push_span(*span);
            }
            Verdict::Rewrite(rewrite) => {
                self.end_run();
                self.push_rewrite(rewrite);
            }
        }
    }

    fn push_rewrite(&mut self, rewrite: &Rewrite<'_>) {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = flag(rewrite.horizon.is_some(), HAS_HORIZON)
            | flag(rewrite.span.is_some(), HAS_SPAN)
            | flag(rewrite.kept == Kept::All, KEEPS_ALL);
        self.ops.extend_from_slice(&[REWRITE, flags]);
        write_unsigned_varlong(&mut self.ops, rewrite.size_bytes);
        write_varlong(&mut self.ops, rewrite.max_timestamp);
        if let Some(horizon) = rewrite.horizon {
            write_varlong(&mut self.ops, horizon.0);
        }
        self.push_span(rewrite.span);
        if let Kept::These(bits) = rewrite.kept {
            write_unsigned_varlong(&mut self.ops, bits.len() as u64);
            self.ops.extend_from_slice(bits);
        }
    }

    fn push_span(&mut self, span: Option<(Offset, i32)>) {
        if let Some((base, delta)) = span {
            write_varlong(&mut self.ops, base.0);
            write_varlong(&mut self.ops, i64::from(delta));
        }
    }

    fn lengthen(&mut self, op: u8) {
        match &mut self.run {
            Some((running, count)) if *running == op => *count += 1,
            _ => {
                self.end_run();
                self.run = Some((op, 1));
            }
        }
    }

    fn end_run(&mut self) {
        if let Some((op, count)) = self.run.take() {
            self.ops.push(op);
            write_unsigned_varlong(&mut self.ops, count);
        }
    }

    /// Keeps what comes out of a batch; they come in order.
    pub(super) fn keep_made(&mut self, position: Position, bytes: Box<[u8]>) {
        self.made.push((position, bytes));
    }

    /// Bytes taken so far.
    pub(super) fn size_bytes(&self) -> u64 {
        (self.ops.len() + self.marks.len() * 16) as u64
    }

    /// All of them.
    pub(super) fn finish(mut self) -> Verdicts {
        self.end_run();
        self.ops.shrink_to_fit();
        Verdicts { ops: self.ops, marks: self.marks, made: self.made }
    }
}

/// Reads verdicts one batch at a time.
#[derive(Clone, Debug)]
pub(super) struct VerdictReader<'a> {
    rest: &'a [u8],
    run: Option<(u8, u64)>,
}

impl<'a> Iterator for VerdictReader<'a> {
    type Item = Verdict<'a>;

    fn next(&mut self) -> Option<Verdict<'a>> {
        let (op, left) = match self.run.take() {
            Some(run) => run,
            None => self.read_op()?,
        };
        match op {
            COPY | DROP => {
                self.run = left.checked_sub(1).filter(|left| *left > 0).map(|left| (op, left));
                Some(if op == COPY { Verdict::Copy } else { Verdict::Drop })
            }
            HEADER_ONLY => {
                let flags = self.byte()?;
                let max_timestamp = self.signed()?;
                Some(Verdict::HeaderOnly { max_timestamp, span: self.span(flags)? })
            }
            _ => self.read_rewrite().map(Verdict::Rewrite),
        }
    }
}

impl<'a> VerdictReader<'a> {
    fn read_op(&mut self) -> Option<(u8, u64)> {
        let op = self.byte()?;
        let count = if op == COPY || op == DROP { self.unsigned()? } else { 1 };
        Some((op, count))
    }

    fn read_rewrite(&mut self) -> Option<Rewrite<'a>> {
        let flags = self.byte()?;
        let (size_bytes, max_timestamp) = (self.unsigned()?, self.signed()?);
        let horizon = if flags & HAS_HORIZON == 0 { None } else { Some(TimestampMs(self.signed()?)) };
        let span = self.span(flags)?;
        let kept = if flags & KEEPS_ALL == 0 {
            let len = usize::try_from(self.unsigned()?).ok()?;
            let (bits, rest) = self.rest.split_at_checked(len)?;
            self.rest = rest;
            Kept::These(bits)
        } else {
            Kept::All
        };
        Some(Rewrite { kept, horizon, span, size_bytes, max_timestamp })
    }

    #[expect(clippy::option_option, reason = "no span, and no more bytes, are two things")]
    fn span(&mut self, flags: u8) -> Option<Option<(Offset, i32)>> {
        if flags & HAS_SPAN == 0 {
            return Some(None);
        }
        Some(Some((Offset(self.signed()?), self.delta()?)))
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn unsigned(&mut self) -> Option<u64> {
        let (value, len) = read_unsigned_varlong(self.rest).ok()?;
        self.rest = self.rest.get(len..)?;
        Some(value)
    }

    fn signed(&mut self) -> Option<i64> {
        self.unsigned().map(zigzag_decode_64)
    }

    fn delta(&mut self) -> Option<i32> {
        self.unsigned().and_then(|value| u32::try_from(value).ok()).map(zigzag_decode_32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Owned {
        Copy,
        Drop,
        HeaderOnly(i64, Option<(i64, i32)>),
        Rewrite(KeptRecords, Option<i64>, Option<(i64, i32)>, u64, i64),
    }

    fn kept_of(bits: &[bool]) -> KeptRecords {
        let mut kept = KeptRecords::default();
        for bit in bits {
            if *bit { kept.keep() } else { kept.drop_next() }
        }
        kept
    }

    fn verdict(owned: &Owned) -> Verdict<'_> {
        match owned {
            Owned::Copy => Verdict::Copy,
            Owned::Drop => Verdict::Drop,
            Owned::HeaderOnly(max_timestamp, span) => Verdict::HeaderOnly {
                max_timestamp: *max_timestamp,
                span: span.map(|(base, delta)| (Offset(base), delta)),
            },
            Owned::Rewrite(kept, horizon, span, size_bytes, max_timestamp) => Verdict::Rewrite(Rewrite {
                kept: kept.as_view(),
                horizon: horizon.map(TimestampMs),
                span: span.map(|(base, delta)| (Offset(base), delta)),
                size_bytes: *size_bytes,
                max_timestamp: *max_timestamp,
            }),
        }
    }

    fn owned() -> impl Strategy<Value = Owned> {
        let kept = proptest::collection::vec(any::<bool>(), 1..30).prop_map(|bits| kept_of(&bits));
        let span = || proptest::option::of((any::<i64>(), any::<i32>()));
        prop_oneof![
            3 => Just(Owned::Copy),
            3 => Just(Owned::Drop),
            1 => (any::<i64>(), span()).prop_map(|(time, span)| Owned::HeaderOnly(time, span)),
            2 => (kept, proptest::option::of(any::<i64>()), span(), any::<u64>(), any::<i64>())
                .prop_map(|(kept, horizon, span, size, time)| Owned::Rewrite(kept, horizon, span, size, time)),
        ]
    }

    proptest! {
        #[test]
        fn verdicts_read_back_in_their_order(all in proptest::collection::vec(owned(), 0..50)) {
            let mut writer = VerdictWriter::default();
            for owned in &all {
                writer.push(&verdict(owned));
            }
            let verdicts = writer.finish();
            let read: Vec<_> = verdicts.reader().collect();
            prop_assert_eq!(read, all.iter().map(verdict).collect::<Vec<_>>());
        }

        #[test]
        fn bits_are_those_that_were_pushed(bits in proptest::collection::vec(any::<bool>(), 0..40)) {
            let kept = kept_of(&bits);
            prop_assert_eq!(kept.keeps_all(), bits.iter().all(|bit| *bit));
            for (index, bit) in bits.iter().enumerate() {
                prop_assert_eq!(kept.as_view().contains(index as u64), *bit);
            }
        }
    }

    #[test]
    fn a_long_run_takes_few_bytes() {
        let mut writer = VerdictWriter::default();
        (0..1_000_000).for_each(|_| writer.push(&Verdict::Copy));
        assert_eq!(writer.finish().size_bytes(), 4);
    }
}

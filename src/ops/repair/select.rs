//! Which of the sound batches make up the log, where several have the same offsets or stand in the wrong order.
//!
//! Within a file the longest chain of batches with rising offsets is the log; what stands outside it has a wrong offset, which no
//! checksum covers, or is a copy. Between files the higher leader epoch wins, as it does between replicas; then the file in use.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::options::DeletedFiles;
use super::source::{Contents, Origin, Piece, Source, SourceReader, may_use};
use crate::format::Offset;
use crate::logdir::ReadError;
use crate::ops::FindingId;

/// What makes up the log, and what does not though it is sound.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Selection {
    /// In the order of offsets.
    pub(super) kept: Vec<Piece>,
    pub(super) dropped: Vec<Dropped>,
}

/// A sound piece that is not kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Dropped {
    pub(super) piece: Piece,
    pub(super) reason: FindingId,
    /// Whether what is kept has the same records.
    pub(super) is_spare: bool,
}

/// How much a piece is believed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Rank {
    /// In line with the rest of a file in use.
    InLine,
    /// Of a file with a wrong name.
    Misnamed,
    /// Of a file in use, and out of line.
    OutOfLine,
    Swap,
    Deleted,
}

struct Candidate {
    piece: Piece,
    rank: Rank,
}

/// Chooses. `contents` are those of the sources, in the same order.
pub(super) fn select(
    contents: &[Contents],
    reader: &mut SourceReader<'_>,
    deleted: DeletedFiles,
    log_start: Offset,
) -> Result<Selection, ReadError> {
    let sources = reader.sources;
    let mut candidates = Vec::new();
    for (source, contents) in sources.iter().zip(contents) {
        let in_line = chain_of(&contents.pieces, source.base.unwrap_or(Offset(0)));
        for (piece, is_in_line) in contents.pieces.iter().zip(in_line) {
            let rank = match (source.origin, is_in_line) {
                (Origin::Live, true) => Rank::InLine,
                (Origin::Live, false) => Rank::OutOfLine,
                (Origin::Misnamed, _) => Rank::Misnamed,
                (Origin::Swap, _) => Rank::Swap,
                (Origin::Deleted, _) => Rank::Deleted,
            };
            candidates.push(Candidate { piece: *piece, rank });
        }
    }
    demote_beyond_next(&mut candidates, sources);
    let candidates = split_overlapping(candidates, reader)?;
    let mut kept = Kept::default();
    let (deleted_ones, others): (Vec<_>, Vec<_>) =
        candidates.into_iter().partition(|candidate| candidate.rank == Rank::Deleted);
    let end = others.iter().filter(|other| other.rank == Rank::InLine).map(|other| other.piece.last).max();
    for candidate in others {
        // An offset beyond all others, where the file goes on below it, is none that a broker gave.
        let is_astray = candidate.rank == Rank::OutOfLine && Some(candidate.piece.last) > end;
        if is_astray {
            kept.drop(candidate.piece, FindingId::BatchOffsetRegression);
        } else {
            kept.offer(candidate.piece);
        }
    }
    let holes = kept.holes_between_segments(log_start);
    for candidate in deleted_ones {
        let piece = candidate.piece;
        // A file that begins before the hole was merged into the one before it: what it has and that has not was cleaned away.
        let base = sources.get(piece.source).and_then(|source| source.base).unwrap_or(piece.first);
        let closes = holes.iter().any(|(first, last)| *first <= base.min(piece.first) && piece.last <= *last);
        if may_use(deleted, closes) {
            kept.offer(piece);
        }
    }
    Ok(kept.finish(sources))
}

/// Of each piece of a file whether it belongs to the longest chain of rising offsets: as many batches as possible, then as few
/// missing offsets. A later leader's batch that covers earlier ones at the end of a file stands for them.
fn chain_of(pieces: &[Piece], base: Offset) -> Vec<bool> {
    let rises = pieces.windows(2).all(|pair| matches!(pair, [a, b] if a.last < b.first));
    if rises {
        return vec![true; pieces.len()];
    }
    let overwritten = overwritten_by_leader(pieces);
    let mut ends: Vec<Offset> = pieces.iter().map(|piece| piece.last).collect();
    ends.sort_unstable();
    ends.dedup();
    let mut best = PrefixMaximum::new(ends.len());
    let mut chains: Vec<(Score, Option<usize>)> = Vec::with_capacity(pieces.len());
    for (index, piece) in pieces.iter().enumerate() {
        let span = piece.last.0.saturating_sub(piece.first.0).saturating_add(1);
        let before = best.up_to(ends.partition_point(|end| *end < piece.first));
        let (score, previous) = before.map_or((Score::default(), None), |(score, index)| (score, Some(index)));
        let own =
            Score { batches: score.batches.saturating_add(piece.batches), offsets: score.offsets.saturating_add(span) };
        chains.push((own, previous));
        if overwritten.get(index) != Some(&true) {
            best.offer(ends.partition_point(|end| *end < piece.last), own, index);
        }
    }
    let missing = |index: usize, score: &Score| {
        let last = pieces.get(index).map_or(base, |piece| piece.last);
        last.0.saturating_sub(base.0).saturating_sub(score.offsets)
    };
    let eligible = chains.iter().enumerate().filter(|(index, _)| overwritten.get(*index) != Some(&true));
    let mut at = eligible
        .max_by_key(|(index, (score, _))| (score.batches, Reverse(missing(*index, score))))
        .map(|(index, _)| index);
    let mut is_in = vec![false; pieces.len()];
    while let Some(index) = at {
        if let Some(place) = is_in.get_mut(index) {
            *place = true;
        }
        at = chains.get(index).and_then(|(_, previous)| *previous);
    }
    is_in
}

/// Pieces that lie under one of a later leader, with which the file goes on or ends.
fn overwritten_by_leader(pieces: &[Piece]) -> Vec<bool> {
    let mut overwritten = vec![false; pieces.len()];
    for (index, piece) in pieces.iter().enumerate() {
        let (earlier, later) = pieces.split_at(index);
        let Some(previous) = earlier.last().filter(|previous| piece.first <= previous.last) else { continue };
        let goes_on = later.get(1).is_none_or(|next| next.first > piece.last && next.first != previous.last.next());
        let covered = earlier.iter().rposition(|other| other.last < piece.first).map_or(0, |index| index + 1);
        let under = earlier.get(covered..).unwrap_or_default();
        if goes_on && piece.last >= previous.last && under.iter().all(|other| other.epoch < piece.epoch) {
            for place in overwritten.iter_mut().take(index).skip(covered) {
                *place = true;
            }
        }
    }
    overwritten
}

/// How good a chain is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
struct Score {
    batches: u64,
    /// Offsets that it covers.
    offsets: i64,
}

/// The best chain among those that end below a place (a Fenwick tree).
struct PrefixMaximum {
    tree: Vec<Option<(Score, usize)>>,
}

impl PrefixMaximum {
    fn new(len: usize) -> Self {
        Self { tree: vec![None; len + 1] }
    }

    fn offer(&mut self, place: usize, score: Score, index: usize) {
        let mut at = place + 1;
        while let Some(slot) = self.tree.get_mut(at) {
            *slot = (*slot).max(Some((score, index)));
            at += at & at.wrapping_neg();
        }
    }

    fn up_to(&self, places: usize) -> Option<(Score, usize)> {
        let (mut at, mut best) = (places, None);
        while at > 0 {
            best = best.max(self.tree.get(at).copied().flatten());
            at -= at & at.wrapping_neg();
        }
        best
    }
}

/// What lies at or beyond the base of the next file in use is out of line in its own.
fn demote_beyond_next(candidates: &mut [Candidate], sources: &[Source]) {
    for candidate in candidates.iter_mut().filter(|candidate| candidate.rank == Rank::InLine) {
        let next = sources.get(candidate.piece.source + 1).filter(|next| next.origin == Origin::Live);
        if next.and_then(|next| next.base).is_some_and(|base| candidate.piece.last >= base) {
            candidate.rank = Rank::OutOfLine;
        }
    }
}

/// Splits pieces that share offsets with others, and puts all into the order in which they are believed.
fn split_overlapping(
    mut candidates: Vec<Candidate>,
    reader: &mut SourceReader<'_>,
) -> Result<Vec<Candidate>, ReadError> {
    candidates.sort_by_key(|candidate| (candidate.piece.first, candidate.piece.last));
    let mut overlaps = vec![false; candidates.len()];
    let mut reached: Option<Offset> = None;
    for (candidate, flag) in candidates.iter().zip(&mut overlaps) {
        *flag = reached.is_some_and(|reached| candidate.piece.first <= reached);
        reached = reached.max(Some(candidate.piece.last));
    }
    let mut least: Option<Offset> = None;
    for (candidate, flag) in candidates.iter().zip(&mut overlaps).rev() {
        *flag |= least.is_some_and(|least| candidate.piece.last >= least);
        least = Some(least.map_or(candidate.piece.first, |least| least.min(candidate.piece.first)));
    }
    let mut all = Vec::with_capacity(candidates.len());
    for (candidate, overlaps) in candidates.into_iter().zip(overlaps) {
        let must_split = overlaps || candidate.rank == Rank::OutOfLine;
        if must_split && candidate.piece.batches > 1 {
            let pieces = reader.split(&candidate.piece)?;
            all.extend(pieces.into_iter().map(|piece| Candidate { piece, rank: candidate.rank }));
        } else {
            all.push(candidate);
        }
    }
    all.sort_by_key(|candidate| {
        let piece = &candidate.piece;
        (candidate.rank, Reverse(piece.epoch), piece.source, piece.start)
    });
    Ok(all)
}

/// Pieces that do not overlap, by first offset.
#[derive(Default)]
struct Kept {
    pieces: BTreeMap<Offset, Piece>,
    dropped: Vec<(Piece, FindingId)>,
}

impl Kept {
    fn overlapping(&self, piece: &Piece) -> Option<&Piece> {
        self.pieces.range(..=piece.last).next_back().map(|(_, other)| other).filter(|other| other.last >= piece.first)
    }

    fn offer(&mut self, piece: Piece) {
        match self.overlapping(&piece) {
            None => {
                self.pieces.insert(piece.first, piece);
            }
            Some(other) if other.is_copy_of(&piece) => self.drop(piece, FindingId::BatchDuplicate),
            Some(_) => self.drop(piece, FindingId::BatchOffsetOverlap),
        }
    }

    fn drop(&mut self, piece: Piece, reason: FindingId) {
        self.dropped.push((piece, reason));
    }

    /// Offsets that are missing between two files, first and last inclusive.
    fn holes_between_segments(&self, log_start: Offset) -> Vec<(Offset, Offset)> {
        let mut holes = Vec::new();
        let mut previous: Option<&Piece> = None;
        for piece in self.pieces.values() {
            if let Some(previous) = previous
                && previous.source != piece.source
                && previous.last.next() < piece.first
                && log_start <= previous.last.next()
            {
                holes.push((previous.last.next(), Offset(piece.first.0.saturating_sub(1))));
            }
            previous = Some(piece);
        }
        holes
    }

    /// Whether every offset of a range is in some kept piece, or missing inside one file.
    fn covers(&self, piece: &Piece) -> bool {
        let mut at = piece.first;
        while at <= piece.last {
            match self.pieces.range(..=at).next_back() {
                Some((_, other)) if other.last >= at => at = other.last.next(),
                _ => return false,
            }
        }
        true
    }

    fn finish(mut self, sources: &[Source]) -> Selection {
        let dropped = std::mem::take(&mut self.dropped)
            .into_iter()
            .map(|(piece, reason)| {
                let origin = sources.get(piece.source).map(|source| source.origin);
                let is_leftover = matches!(origin, Some(Origin::Swap | Origin::Deleted));
                let is_spare = reason == FindingId::BatchDuplicate || (is_leftover && self.covers(&piece));
                Dropped { piece, reason, is_spare }
            })
            .collect();
        Selection { kept: self.pieces.into_values().collect(), dropped }
    }
}

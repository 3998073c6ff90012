//! Which of the sound batches make up the log, where several have the same offsets or stand in the wrong order.
//!
//! Within a file the longest chain of batches with rising offsets is the log; what stands outside it has a wrong offset, which no
//! checksum covers, or is a copy. So does what lies alone outside the offsets that the names of the files leave to its own. Between
//! files the higher leader epoch wins, as it does between replicas; then the file in use. Of the log that comes out, as few records
//! as possible go until its leader epochs rise: no checksum covers these either.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

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

impl Selection {
    /// Whether every offset of a range is in some kept piece.
    pub(super) fn covers(&self, first: Offset, last: Offset) -> bool {
        let mut at = first;
        let from = self.kept.partition_point(|piece| piece.last < first);
        for piece in self.kept.iter().skip(from) {
            if at > last || at < piece.first {
                break;
            }
            at = piece.last.next();
        }
        at > last
    }
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
    /// In line with the rest of a file in use, and with its name and the next one's.
    InLine,
    /// Of a file with a wrong name.
    Misnamed,
    /// In line with neighbours in a file in use that has a name for other offsets.
    Misplaced,
    /// Of a file in use, and out of line.
    OutOfLine,
    Swap,
    Cleaned,
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
    for (index, (source, contents)) in sources.iter().zip(contents).enumerate() {
        let rank = match source.origin {
            Origin::Live => {
                candidates.extend(of_live_file(&contents.pieces, names_around(sources, index), reader)?);
                continue;
            }
            Origin::Misnamed => Rank::Misnamed,
            Origin::Swap => Rank::Swap,
            Origin::Cleaned => Rank::Cleaned,
            Origin::Deleted => Rank::Deleted,
        };
        candidates.extend(contents.pieces.iter().map(|piece| Candidate { piece: *piece, rank }));
    }
    let candidates = split_overlapping(candidates, reader)?;
    let mut kept = Kept::default();
    let (deleted_ones, others): (Vec<_>, Vec<_>) =
        candidates.into_iter().partition(|candidate| candidate.rank == Rank::Deleted);
    let end = others.iter().filter(|other| other.rank <= Rank::Misplaced).map(|other| other.piece.last).max();
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
    let mut passed_over = Vec::new();
    for candidate in deleted_ones {
        let piece = candidate.piece;
        // A file that begins before the hole was merged into the one before it: what it has and that has not was cleaned away.
        let base = sources.get(piece.source).and_then(|source| source.base).unwrap_or(piece.first);
        // One that fills a hole to the offset is what is missing, whatever it is called.
        let all = contents.get(piece.source).map(|contents| contents.pieces.as_slice()).unwrap_or_default();
        let fills = all.first().zip(all.last()).is_some_and(|(a, b)| holes.contains(&(a.first, b.last)));
        let closes = fills || holes.iter().any(|(first, last)| *first <= base.min(piece.first) && piece.last <= *last);
        if may_use(deleted, closes) {
            kept.offer(piece);
        } else {
            passed_over.push(piece);
        }
    }
    // A file of which something is used goes; the rest of it stays deleted.
    let used: BTreeSet<usize> = kept.pieces.values().map(|piece| piece.source).collect();
    for piece in passed_over.into_iter().filter(|piece| used.contains(&piece.source)) {
        kept.drop(piece, FindingId::LeftoverDeleted);
    }
    Ok(kept.finish(sources))
}

/// The offsets that names leave to a file in use.
#[derive(Clone, Copy, Debug)]
struct Names {
    base: Offset,
    /// The base of the next file.
    next: Option<Offset>,
}

impl Names {
    fn allow(&self, piece: &Piece) -> bool {
        self.base <= piece.first && self.next.is_none_or(|next| piece.last < next)
    }
}

fn names_around(sources: &[Source], index: usize) -> Names {
    let base = |source: &Source| source.base.filter(|_| source.origin == Origin::Live);
    let next = sources.get(index + 1).and_then(base);
    Names { base: sources.get(index).and_then(base).unwrap_or(Offset(0)), next }
}

/// How much the pieces of a file in use are believed.
fn of_live_file(pieces: &[Piece], names: Names, reader: &mut SourceReader<'_>) -> Result<Vec<Candidate>, ReadError> {
    let mut single = Vec::with_capacity(pieces.len());
    for piece in pieces {
        if names.allow(piece) { single.push(*piece) } else { single.extend(reader.split(piece)?) }
    }
    let in_chain = chain_of(&single, names.base);
    let rank_of = |index: usize, piece: &Piece| match in_chain.get(index) {
        Some(true) if names.allow(piece) => Rank::InLine,
        Some(true) if has_neighbour(&single, index) => Rank::Misplaced,
        _ => Rank::OutOfLine,
    };
    Ok(single
        .iter()
        .enumerate()
        .map(|(index, piece)| Candidate { piece: *piece, rank: rank_of(index, piece) })
        .collect())
}

/// Whether the piece before it or behind it in its file goes on where it begins or ends.
fn has_neighbour(pieces: &[Piece], index: usize) -> bool {
    let joins = |pair: &[Piece]| matches!(pair, [a, b] if a.last.next() == b.first);
    let before = index.checked_sub(1).and_then(|before| pieces.get(before..=index));
    let behind = pieces.get(index..index.saturating_add(2));
    before.is_some_and(joins) || behind.is_some_and(joins)
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
        let reached = previous.and_then(|index| pieces.get(index)).map_or(base, |previous| previous.last.next());
        let own = Score {
            batches: score.batches.saturating_add(piece.batches),
            offsets: score.offsets.saturating_add(span),
            joins: score.joins.saturating_add(u64::from(reached == piece.first)),
        };
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
    let last = eligible
        .max_by_key(|(index, (score, _))| (score.batches, Reverse(missing(*index, score)), score.joins))
        .map(|(index, _)| index);
    let previous: Vec<Option<usize>> = chains.into_iter().map(|(_, previous)| previous).collect();
    links_from(last, &previous)
}

/// Of each piece whether it belongs to the chain of epochs that do not fall with the most batches.
fn rising_epochs(pieces: &[Piece]) -> Vec<bool> {
    let mut epochs: Vec<_> = pieces.iter().map(|piece| piece.epoch).collect();
    epochs.sort_unstable();
    epochs.dedup();
    let mut best = PrefixMaximum::new(epochs.len());
    let mut previous = Vec::with_capacity(pieces.len());
    for (index, piece) in pieces.iter().enumerate() {
        let before = best.up_to(epochs.partition_point(|epoch| *epoch <= piece.epoch));
        let (score, of) = before.map_or((Score::default(), None), |(score, index)| (score, Some(index)));
        previous.push(of);
        let own = Score { batches: score.batches.saturating_add(piece.batches), ..score };
        best.offer(epochs.partition_point(|epoch| *epoch < piece.epoch), own, index);
    }
    let last = best.up_to(epochs.len()).map(|(_, index)| index);
    links_from(last, &previous)
}

/// Which places are on the way that leads back from one.
fn links_from(mut at: Option<usize>, previous: &[Option<usize>]) -> Vec<bool> {
    let mut is_on = vec![false; previous.len()];
    while let Some(index) = at {
        if let Some(place) = is_on.get_mut(index) {
            *place = true;
        }
        at = previous.get(index).copied().flatten();
    }
    is_on
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
    /// Pieces that begin where the one before them ends.
    joins: u64,
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
        // A start beyond all data is a mistake, and will be forgotten.
        let has_data_behind = self.pieces.values().next_back().is_some_and(|last| log_start <= last.last.next());
        let log_start = if has_data_behind { log_start } else { Offset(0) };
        for piece in self.pieces.values() {
            if let Some(previous) = previous
                && previous.source != piece.source
                && previous.last.next() < piece.first
                && log_start < piece.first
            {
                holes.push((previous.last.next(), Offset(piece.first.0.saturating_sub(1))));
            }
            previous = Some(piece);
        }
        holes
    }

    /// Drops as few records as possible so that leader epochs do not fall.
    fn drop_falling_epochs(&mut self) {
        let with_epoch: Vec<Piece> = self.pieces.values().filter(|piece| piece.epoch.is_some()).copied().collect();
        if with_epoch.is_sorted_by_key(|piece| piece.epoch) {
            return;
        }
        let mut falling = with_epoch;
        let mut rises = rising_epochs(&falling).into_iter();
        falling.retain(|_| rises.next() == Some(false));
        for piece in &falling {
            self.pieces.remove(&piece.first);
        }
        // A copy with an epoch that fits may have been passed over for one of them.
        for (piece, reason) in std::mem::take(&mut self.dropped) {
            let is_copy = matches!(reason, FindingId::BatchDuplicate | FindingId::BatchOffsetOverlap);
            if is_copy && self.overlapping(&piece).is_none() && self.epoch_fits(&piece) {
                self.pieces.insert(piece.first, piece);
            } else {
                self.drop(piece, reason);
            }
        }
        for piece in falling {
            let has_copy = self.overlapping(&piece).is_some_and(|other| other.is_copy_of(&piece));
            let reason = if has_copy { FindingId::BatchDuplicate } else { FindingId::BatchLeaderEpochRegression };
            self.drop(piece, reason);
        }
    }

    /// Whether leader epochs would not fall with this piece.
    fn epoch_fits(&self, piece: &Piece) -> bool {
        let before = self.pieces.range(..piece.first).next_back().and_then(|(_, other)| other.epoch);
        let behind = self.pieces.range(piece.first..).next().and_then(|(_, other)| other.epoch);
        before <= piece.epoch && behind.is_none_or(|behind| piece.epoch <= Some(behind))
    }

    fn finish(mut self, sources: &[Source]) -> Selection {
        self.drop_falling_epochs();
        let mut selection = Selection { kept: self.pieces.into_values().collect(), dropped: Vec::new() };
        for (piece, reason) in self.dropped {
            let is_leftover = sources.get(piece.source).is_some_and(|source| source.origin.is_leftover());
            let is_spare = matches!(reason, FindingId::BatchDuplicate | FindingId::LeftoverDeleted)
                || (is_leftover && selection.covers(piece.first, piece.last));
            selection.dropped.push(Dropped { piece, reason, is_spare });
        }
        selection
    }
}

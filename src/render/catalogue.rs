//! The manual of the findings.

use crate::ops::FindingId;

/// The manual entry of a finding.
pub fn explain(id: FindingId) -> String {
    format!("{}\n\n{}\n", id.as_str(), id.meaning())
}

/// The id whose name is closest to a misspelled one, if any is close.
pub fn closest(name: &str) -> Option<FindingId> {
    FindingId::ALL
        .iter()
        .copied()
        .map(|id| (distance(name.as_bytes(), id.as_str().as_bytes()), id))
        .filter(|(distance, id)| *distance <= id.as_str().len() / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, id)| id)
}

/// Levenshtein's distance.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b) {
            let above = *cell;
            left = (above + 1).min(left + 1).min(diagonal + usize::from(x != y));
            (diagonal, *cell) = (above, left);
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

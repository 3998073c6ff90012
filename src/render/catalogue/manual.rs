//! The manual of the findings: one entry for a person who asks, all of them as a man page.

use std::fmt::Write as _;

use super::entry::entry_of;
use crate::ops::{FindingId, Repair};

/// Columns of the text that `--explain` prints.
const WIDTH: usize = 100;

/// The manual entry of a finding, as text.
pub fn explain(id: FindingId) -> String {
    let mut out = format!("{}\n{}\n", id.as_str(), wrapped(id.meaning()));
    let _ = writeln!(out, "usual severity: {}    repair: {}\n", severity_text(id), repair_text(id.usual_repair()));
    if let Some(entry) = entry_of(id) {
        for (heading, text) in
            [("What it means", entry.means), ("What a broker will do", entry.broker), ("What to do now", entry.now)]
        {
            let _ = writeln!(out, "{heading}\n{}", wrapped(text));
        }
    }
    out
}

fn severity_text(id: FindingId) -> &'static str {
    id.usual_severity().name()
}

fn repair_text(repair: Repair) -> &'static str {
    match repair {
        Repair::Safe => "safe, nothing is lost by it",
        Repair::Lossy => "lossy, bytes go to quarantine",
        Repair::None => "none",
    }
}

/// Text in lines, indented by two.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        if column > 0 && column + 1 + word.len() > WIDTH - 2 {
            out.push('\n');
            column = 0;
        }
        out.push_str(if column == 0 { "  " } else { " " });
        column += word.len() + 1;
        out.push_str(word);
    }
    out.push('\n');
    out
}

/// segtool-findings(7).
pub fn findings_page() -> Vec<u8> {
    let mut out = String::from(HEAD);
    for &id in FindingId::ALL {
        let Some(entry) = entry_of(id) else { continue };
        let _ = writeln!(out, ".SS {}", roff(id.as_str()));
        let _ = writeln!(out, ".I {}; repair {}", severity_text(id), id.usual_repair().name());
        let _ = writeln!(out, ".PP\n{}", roff(entry.means));
        let _ = writeln!(out, ".PP\n.B Broker:\n{}", roff(entry.broker));
        let _ = writeln!(out, ".PP\n.B Now:\n{}", roff(entry.now));
    }
    out.push_str(TAIL);
    out.into_bytes()
}

/// Text as roff takes it: dashes that can be copied, no line that begins as a request.
fn roff(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    if escaped.starts_with(['.', '\'']) { format!("\\&{escaped}") } else { escaped }
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
        let (mut diagonal, mut left) = (i, i + 1);
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

const HEAD: &str = r#".TH SEGTOOL-FINDINGS 7 "" segtool "segtool manual"
.SH NAME
segtool\-findings \- everything that segtool may find in Kafka's data directories
.SH DESCRIPTION
A finding has an id, a severity, a place (file, bytes, offsets) and says whether it can be mended. Ids are stable;
.B segtool verify \-\-explain ID
prints one of these entries. The severity that stands here is the usual one: the same thing may be milder or worse by where it lies,
whether its segment is still written, and how the broker stopped.
.TP
.B critical
Data is unreadable or will be lost.
.TP
.B error
A file is wrong.
.TP
.B warning
Doubtful, or a crash leftover that costs nothing.
.TP
.B info
Legal, but worth knowing. Never changes the exit status by default.
.PP
Repair is
.B safe
where nothing is lost by it,
.B lossy
where bytes go to quarantine,
.B none
where segtool does not mend it.
.PP
What compaction, retention, transactions, followers and old brokers leave is no finding: gaps between offsets, batches without records,
coarse index entries, a last offset beyond the last record, time index entries inside a batch, files that a version did not write.
.SH FINDINGS
"#;

const TAIL: &str = r".SH WHAT NO READER CAN TELL
A checksum covers most bytes of a log, not all. Of a batch of format 2 the base offset, the length, the leader epoch and the magic lie
outside it; so does the offset of a message of formats 0 and 1, and an index, a checkpoint or a properties file has no checksum at all. These
bytes are held against each other and against the files beside them. What cannot be noticed:
.TP
.B base offset, last batch of a log
A change that leaves the offsets increasing, where no index entry contradicts it.
.TP
.B base offset, other batches
A change to offsets that are free, as cleaning leaves them, where no index entry contradicts it.
.TP
.B leader epoch
A change to an epoch that fits between its neighbours', where there is no leader\-epoch\-checkpoint.
.TP
.B offset index
Another offset that still leads to the right batch: an append of several batches leaves such an entry.
.TP
.B time index
Another offset inside the batch that has the time, and an entry that is missing in front of the last: how dense they are is a setting.
.TP
.B transaction index
The last stable offset, where it lies between the marker and the end of the segment: a follower writes another than its leader.
.TP
.B leader\-epoch\-checkpoint
A start inside the first batch of its epoch, as deleting records leaves it.
.TP
.B checkpoints
An offset that lies inside the log: any such is possible.
.TP
.B ids
Another id in partition.metadata or meta.properties, where no other file names it.
.TP
.B names and comments
Comments and optional lines of meta.properties, words in partition.metadata that only their place gives a meaning, and the broker epoch in
the clean\-shutdown marker: no broker of today reads them.
.SH SEE ALSO
.BR segtool (1),
.BR segtool\-verify (1),
.BR segtool\-json (5)
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_id_leads_to_the_right_one() {
        assert_eq!(closest("batch-crc-missmatch"), Some(FindingId::BatchCrcMismatch));
        assert_eq!(closest("timeindex-zero-padded"), Some(FindingId::TimeIndexZeroPadded));
        assert_eq!(closest("orders"), None);
    }

    #[test]
    fn an_entry_is_wrapped_and_complete() {
        let text = explain(FindingId::TimeIndexZeroPadded);
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        for heading in
            ["time-index-zero-padded\n", "usual severity: critical", "What a broker will do\n", "What to do now\n"]
        {
            assert!(text.contains(heading), "{heading}: {text}");
        }
    }
}

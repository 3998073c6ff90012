//! The report for people: what is wrong, worst first and by partition, what was looked at, and whether data is at risk.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::ops::verify::{FileReport, FileRole, Level, Report, Sound};
use crate::ops::{Finding, Severity};
use crate::render::finding::sentence;
use crate::render::units;
use crate::render::untrusted::untrusted_path;

/// Findings of one severity of one partition that are shown one by one.
const MOST_SHOWN: usize = 20;

/// How the page looks.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// ANSI colours.
    pub coloured: bool,
    /// How deep the verification went.
    pub level: Level,
    /// How long it took, in seconds, where that is to be said.
    pub seconds: Option<f64>,
    /// The least severity that is shown one by one.
    pub least: Severity,
}

const RESET: &str = "\x1b[0m";
const BOLD: &str = "\x1b[1m";

fn colour(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "\x1b[1;31m",
        Severity::Error => "\x1b[31m",
        Severity::Warning => "\x1b[33m",
        Severity::Info => "\x1b[2m",
    }
}

/// The report as text.
pub fn render_human(report: &Report, page: &Page) -> String {
    let mut out = String::new();
    for group in groups(report) {
        write_group(&mut out, &group, page);
    }
    write_table(&mut out, report, page);
    let _ = writeln!(out, "{}", closing(report, page));
    out
}

/// The findings of one partition, or of a log dir's own files.
struct Group<'r> {
    heading: String,
    worst: Severity,
    findings: Vec<&'r Finding>,
    /// What is sound behind the first damage.
    behind_damage: Option<Sound>,
}

/// A directory of a log dir.
type Directory<'r> = (&'r Path, Option<&'r Path>);

/// What is sound behind the first damage of the logs of each directory.
fn behind_damage(report: &Report) -> BTreeMap<Directory<'_>, Sound> {
    let mut behind: BTreeMap<Directory<'_>, Sound> = BTreeMap::new();
    // In order of name, which for logs is that of their offsets.
    for log in report.files.iter().filter(|file| file.role == FileRole::Log) {
        let directory = (log.log_dir.as_path(), log.path.parent());
        match (behind.get_mut(&directory), log.behind_damage) {
            (Some(sound), _) => *sound = sound.and(log.sound),
            (None, Some(first)) => drop(behind.insert(directory, first)),
            (None, None) => {}
        }
    }
    behind
}

fn groups(report: &Report) -> Vec<Group<'_>> {
    let mut by_place: BTreeMap<(String, String), Vec<&Finding>> = BTreeMap::new();
    for finding in &report.findings {
        let location = &finding.location;
        let name = location.topic_partition.as_ref().map_or_else(String::new, |_| {
            // The directory, which for one that is being moved or deleted is not the partition's name.
            location.path.parent().filter(|parent| !parent.as_os_str().is_empty()).map_or_else(
                || location.topic_partition.as_ref().map_or_else(String::new, ToString::to_string),
                untrusted_path,
            )
        });
        by_place.entry((untrusted_path(&location.log_dir), name)).or_default().push(finding);
    }
    let behind = behind_damage(report);
    let mut groups: Vec<Group<'_>> = by_place
        .into_iter()
        .map(|((log_dir, name), mut findings)| {
            // Worst first; places stay in order.
            findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
            let worst = findings.first().map_or(Severity::Info, |finding| finding.severity);
            let heading = if name.is_empty() { log_dir } else { format!("{name}  ({log_dir})") };
            let place = findings.first().map(|finding| &finding.location);
            let directory = place.map(|place| (place.log_dir.as_path(), place.path.parent()));
            let behind_damage = directory.and_then(|directory| behind.get(&directory)).copied();
            Group { heading, worst, findings, behind_damage }
        })
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.worst));
    groups
}

fn write_group(out: &mut String, group: &Group<'_>, page: &Page) {
    if group.worst < page.least {
        return;
    }
    let (bold, reset) = if page.coloured { (BOLD, RESET) } else { ("", "") };
    let _ = writeln!(out, "{bold}{}{reset}", group.heading);
    for severity in Severity::ALL.into_iter().rev().filter(|severity| *severity >= page.least) {
        let of_severity: Vec<_> = group.findings.iter().filter(|finding| finding.severity == severity).collect();
        for finding in of_severity.iter().take(MOST_SHOWN) {
            write_finding(out, finding, page);
        }
        let left = of_severity.len().saturating_sub(MOST_SHOWN);
        if left > 0 {
            let _ = writeln!(out, "  ... and {} more of severity {}", units::count(left as u64), severity.name());
        }
    }
    if let Some(behind) = group.behind_damage
        && let Some((first, last)) = behind.offsets
    {
        let _ = writeln!(
            out,
            "  behind the first damage: {}, {}, offsets {first}..{last} ({})",
            counted(behind.batches, "sound batch", "sound batches"),
            counted(behind.records, "record", "records"),
            units::bytes_binary(behind.bytes),
        );
    }
    out.push('\n');
}

fn write_finding(out: &mut String, finding: &Finding, page: &Page) {
    let (start, reset) = if page.coloured { (colour(finding.severity), RESET) } else { ("", "") };
    let _ = writeln!(out, "  {start}{:<8} {}{reset}", finding.severity.name(), finding.id.as_str());
    let place = place(finding);
    if !place.is_empty() {
        let _ = writeln!(out, "           {place}");
    }
    let _ = writeln!(out, "           {}", sentence(finding));
}

/// File, bytes and offsets of a finding.
fn place(finding: &Finding) -> String {
    let location = &finding.location;
    let name = location.path.file_name().map(|name| untrusted_path(name.as_ref())).unwrap_or_default();
    let mut text = name;
    if let (Some(position), Some(size)) = (location.position, location.size_bytes) {
        let _ = write!(text, "  bytes {}..{} ({})", position, position.advance(size), units::bytes_binary(size));
    }
    match (location.first_offset, location.last_offset) {
        (Some(first), Some(last)) if first == last => {
            let _ = write!(text, "  offset {first}");
        }
        (Some(first), Some(last)) => {
            let _ = write!(text, "  offsets {first}..{last}");
        }
        _ => {}
    }
    text
}

fn write_table(out: &mut String, report: &Report, page: &Page) {
    let summary = &report.summary;
    let coverage = |of: fn(&FileReport) -> u64| report.files.iter().map(of).fold(0, u64::saturating_add);
    let rows = [
        ("partitions", units::count(summary.partitions)),
        ("segments", units::count(summary.segments)),
        ("files", units::count(summary.files)),
        ("batches", units::count(summary.batches)),
        ("records", units::count(summary.records)),
        ("bytes", amount(summary.bytes)),
        ("  checked", amount(coverage(|file| file.coverage.checked_bytes))),
        ("  skipped", amount(coverage(|file| file.coverage.skipped_bytes))),
        ("  unreadable", amount(coverage(|file| file.coverage.unreadable_bytes))),
    ];
    for (name, value) in rows {
        let _ = writeln!(out, "{name:<14} {value}");
    }
    let counts: Vec<_> = Severity::ALL
        .iter()
        .rev()
        .map(|severity| format!("{} {}", units::count(summary.count_of(*severity)), severity.name()))
        .collect();
    let _ = writeln!(out, "{:<14} {}", "findings", counts.join(", "));
    if let Some(seconds) = page.seconds.filter(|seconds| *seconds > 0.0) {
        let rate = units::rate(summary.bytes as f64 / seconds);
        let _ = writeln!(out, "{:<14} {rate} over {seconds:.2} s", "throughput");
    }
    out.push('\n');
}

fn counted(value: u64, one: &str, many: &str) -> String {
    format!("{} {}", units::count(value), if value == 1 { one } else { many })
}

fn amount(bytes: u64) -> String {
    format!("{} ({})", units::count(bytes), units::bytes_binary(bytes))
}

/// The one sentence that says whether data is at risk.
fn closing(report: &Report, page: &Page) -> String {
    let summary = &report.summary;
    let looked_at = match page.level {
        Level::Records => {
            let (batches, records) = (units::count(summary.batches), units::count(summary.records));
            format!(
                "{batches} batches with {records} records were read, every checksum computed and every index, snapshot and checkpoint compared with the log"
            )
        }
        Level::Crc => {
            let batches = units::count(summary.batches);
            format!(
                "the checksums of {batches} batches were computed and every index, snapshot and checkpoint compared with the log; records were not read (--level records)"
            )
        }
    };
    let live =
        if report.is_live { " A broker holds this log dir: what it was writing may have looked torn." } else { "" };
    let incomplete = if report.is_complete { "" } else { " Not everything could be looked at." };
    let verdict = match report.findings.iter().map(|finding| finding.severity).max() {
        Some(Severity::Critical) => {
            let (count, means) = match summary.count_of(Severity::Critical) {
                1 => ("one finding".to_owned(), "means"),
                many => (format!("{} findings", units::count(many)), "mean"),
            };
            format!(
                "Data is at risk: {count} {means} that data is unreadable or will be lost; copy the directory before a broker starts on it."
            )
        }
        Some(Severity::Error) => {
            "No data is lost yet, but files are wrong: a broker may answer wrongly from them.".to_owned()
        }
        Some(Severity::Warning) => "No data is at risk; a few things are doubtful, or left by a crash.".to_owned(),
        Some(Severity::Info) | None => format!("No data is at risk: {looked_at}."),
    };
    format!("{verdict}{incomplete}{live}")
}

//! A simulated disk: the curve and its days.

use std::fmt::Write as _;

use super::human::{both, table};
use super::inputs::size;
use crate::ops::capacity::{Day, Simulation};
use crate::render::chart::{Chart, Level, Point};
use crate::render::units;

const TITLE: &str = "Disk of one broker, day by day";
/// A longer simulation prints every so many-th day, and the last.
const MOST_DAY_ROWS: usize = 15;

/// The curve as SVG.
pub fn chart_svg(simulation: &Simulation) -> String {
    let (points, levels) = curve(simulation);
    Chart { title: TITLE, points: &points, levels: &levels, unit: size }.svg()
}

fn curve(simulation: &Simulation) -> (Vec<Point>, [Level; 2]) {
    let point = |day: &Day| Point { day: f64::from(day.day), least: day.least_bytes, most: day.most_bytes };
    let levels = [
        Level { label: "capacity", value: simulation.capacity_bytes },
        Level { label: "formula without headroom", value: simulation.flat_bytes },
    ];
    (simulation.days.iter().map(point).collect(), levels)
}

/// Writes the section about a simulation.
pub(super) fn write_simulation(out: &mut String, simulation: &Simulation, width: u16) {
    let (points, levels) = curve(simulation);
    let chart = Chart { title: TITLE, points: &points, levels: &levels, unit: size };
    let width = usize::from(width).min(100);
    let _ = writeln!(out, "## Simulation of {} days\n\n```text\n{}```\n", simulation.days.len(), chart.blocks(width));
    write_summary(out, simulation);
    let every = simulation.days.len().div_ceil(MOST_DAY_ROWS).max(1);
    let last = simulation.days.len().saturating_sub(1);
    let shown = simulation.days.iter().enumerate().filter(|(index, _)| index % every == 0 || *index == last);
    let rows = shown.map(|(_, day)| {
        vec![
            day.day.to_string(),
            size(day.written_bytes),
            size(day.least_bytes),
            size(day.mean_bytes),
            size(day.most_bytes),
            free(day.free_bytes),
            units::count(day.segments),
        ]
    });
    let headers = ["day", "written", "least", "mean", "most", "free", "segments"];
    let _ = writeln!(out, "{}\n", table(&headers, rows));
}

fn free(bytes: f64) -> String {
    if bytes < 0.0 { format!("-{}", size(-bytes)) } else { size(bytes) }
}

fn write_summary(out: &mut String, simulation: &Simulation) {
    let peak = simulation.peak.total_bytes();
    let against = if simulation.flat_bytes > 0.0 { peak / simulation.flat_bytes } else { 1.0 };
    let _ = writeln!(
        out,
        "Peak: {} on day {}, {} times the formula's {} without headroom.",
        both(peak),
        units::ratio(simulation.peak_day),
        units::ratio(against),
        size(simulation.flat_bytes)
    );
    let parts = [
        ("active segments", simulation.peak.active_bytes),
        ("closed segments", simulation.peak.closed_bytes),
        ("waiting for deletion", simulation.peak.deleted_bytes),
        ("indexes", simulation.peak.index_bytes),
        ("cleaner's output", simulation.peak.cleaner_bytes),
        ("taken over", simulation.peak.taken_over_bytes),
    ];
    let parts = parts.iter().filter(|(_, bytes)| *bytes >= 1.0);
    let parts: Vec<String> = parts.map(|(name, bytes)| format!("{name} {}", size(*bytes))).collect();
    let _ = writeln!(out, "Then on disk: {}.", parts.join(", "));
    let _ = match simulation.steady_bytes {
        Some(steady) => writeln!(out, "Steady state: {}.", both(steady)),
        None => writeln!(out, "Steady state: not reached; simulate longer than the retention."),
    };
    let _ = match (simulation.full_on_day, simulation.projected_full_day) {
        (Some(day), _) => writeln!(out, "**The disk is full on day {}.**\n", units::ratio(day)),
        (None, Some(day)) => writeln!(out, "With this growth the disk is full on day {day:.0}.\n"),
        (None, None) => writeln!(out, "The disk does not fill.\n"),
    };
}

//! One curve over days, drawn with Unicode blocks for a terminal and as SVG for a document.

use std::fmt::Write as _;

/// A point in time: the least and the most in it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// Days from the start.
    pub day: f64,
    /// The least value of the day.
    pub least: f64,
    /// The most.
    pub most: f64,
}

/// A horizontal line to compare with.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Level {
    /// What it is.
    pub label: &'static str,
    /// Where it is.
    pub value: f64,
}

/// A curve and its levels. `unit` turns a value into the text of an axis.
#[derive(Clone, Debug)]
pub struct Chart<'a> {
    /// What is drawn.
    pub title: &'a str,
    /// In the order of time.
    pub points: &'a [Point],
    /// Lines to compare with.
    pub levels: &'a [Level],
    /// Text of a value.
    pub unit: fn(f64) -> String,
}

const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ROWS: u32 = 12;

impl Chart<'_> {
    /// The largest value that has to be seen.
    fn top(&self) -> f64 {
        let points = self.points.iter().map(|point| point.most);
        points.chain(self.levels.iter().map(|level| level.value)).fold(0.0, f64::max).max(1.0)
    }

    /// Draws with blocks: a column a day, or the fullest of several days where there are more days than columns.
    pub fn blocks(&self, width: usize) -> String {
        let top = self.top();
        let step = top / f64::from(ROWS);
        let most_columns = width.saturating_sub(12).max(8);
        let days_a_column = self.points.len().div_ceil(most_columns).max(1);
        let repeat = (most_columns / self.points.len().max(1)).clamp(1, 3);
        let columns: Vec<f64> = self
            .points
            .chunks(days_a_column)
            .map(|days| days.iter().map(|day| day.most).fold(0.0, f64::max))
            .flat_map(|value| std::iter::repeat_n(value, repeat))
            .collect();
        let mut text = format!("{}\n", self.title);
        for row in (0..ROWS).rev() {
            let floor = f64::from(row) * step;
            let inside = self.levels.iter().filter(|level| level.value > floor && level.value <= floor + step);
            let levels: Vec<&Level> = inside.collect();
            let label = match (levels.first(), row % 3) {
                (Some(level), _) => (self.unit)(level.value),
                (None, 2) => (self.unit)(floor + step),
                _ => String::new(),
            };
            let empty = if levels.is_empty() { ' ' } else { '┈' };
            let line: String = columns.iter().map(|value| block((value - floor) / step, empty)).collect();
            let name = match levels.as_slice() {
                [] => String::new(),
                [only] => only.label.to_owned(),
                several => {
                    let names = several.iter().map(|level| format!("{} {}", level.label, (self.unit)(level.value)));
                    names.collect::<Vec<_>>().join(", ")
                }
            };
            let _ = writeln!(text, "{}", format!("{label:>9} │{line} {name}").trim_end());
        }
        let last = self.points.last().map_or(0.0, |point| point.day + 1.0);
        let _ = writeln!(text, "{:>9} └{}", (self.unit)(0.0), "─".repeat(columns.len()));
        let end = format!("day {last:.0}");
        let _ =
            writeln!(text, "{:>9}  day 0{end:>rest$}", "", rest = columns.len().saturating_sub(5).max(end.len() + 1));
        text
    }

    /// Draws as SVG: the band between least and most, levels dashed.
    pub fn svg(&self) -> String {
        let (left, right, high, low) = (90.0, 930.0, 50.0, 430.0);
        let step = round_step(self.top() / 5.0);
        let top = step * (self.top() * 1.02 / step).ceil();
        let days = self.points.last().map_or(1.0, |point| point.day + 1.0).max(1.0);
        let x = |day: f64| left + (right - left) * day / days;
        let y = |value: f64| low - (low - high) * value / top;
        let mut svg = String::from(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 480\" width=\"960\" height=\"480\" \
             font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"960\" height=\"480\" fill=\"#ffffff\"/>\n",
        );
        let _ = writeln!(svg, "<text x=\"{left}\" y=\"28\" font-size=\"16\">{}</text>", escaped(self.title));
        let ticks = (0..=10_u32).map(|tick| f64::from(tick) * step).take_while(|value| *value <= top * 1.001);
        for value in ticks {
            let _ = writeln!(
                svg,
                "<line x1=\"{left}\" x2=\"{right}\" y1=\"{0:.1}\" y2=\"{0:.1}\" stroke=\"#dddddd\"/>\
                 <text x=\"{1:.1}\" y=\"{2:.1}\" text-anchor=\"end\">{3}</text>",
                y(value),
                left - 8.0,
                y(value) + 4.0,
                escaped(&(self.unit)(value))
            );
        }
        for day in day_ticks(days) {
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">day {day:.0}</text>",
                x(day),
                low + 20.0
            );
        }
        let upper = self.points.iter().map(|point| (x(point.day + 0.5), y(point.most)));
        let lower = self.points.iter().rev().map(|point| (x(point.day + 0.5), y(point.least)));
        let _ = writeln!(
            svg,
            "<polygon points=\"{}\" fill=\"#9ecae9\" stroke=\"none\"/>\n\
             <polyline points=\"{}\" fill=\"none\" stroke=\"#1f5f99\" stroke-width=\"2\"/>",
            coordinates(upper.clone().chain(lower)),
            coordinates(upper)
        );
        let styles = [("#c0392b", right, "end"), ("#5d6d7e", left + 6.0, "start")].into_iter().cycle();
        for (level, (colour, side, anchor)) in self.levels.iter().zip(styles) {
            let _ = writeln!(
                svg,
                "<line x1=\"{left}\" x2=\"{right}\" y1=\"{0:.1}\" y2=\"{0:.1}\" stroke=\"{colour}\" \
                 stroke-width=\"1.5\" stroke-dasharray=\"6 4\"/>\
                 <text x=\"{side:.1}\" y=\"{1:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{2} {3}</text>",
                y(level.value),
                y(level.value) - 5.0,
                escaped(level.label),
                escaped(&(self.unit)(level.value))
            );
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// The block that fills `share` of a cell.
fn block(share: f64, empty: char) -> char {
    let eighths = super::units::saturating_u64((share * 8.0).round().clamp(0.0, 8.0));
    match usize::try_from(eighths).ok().and_then(|eighths| BLOCKS.get(eighths)) {
        Some(' ') | None => empty,
        Some(block) => *block,
    }
}

/// The next of 1, 2, 5 times a power of ten.
fn round_step(least: f64) -> f64 {
    let power = 10.0_f64.powf(least.max(f64::MIN_POSITIVE).log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= least).unwrap_or(least)
}

/// At most about ten days to write under the axis, evenly spaced.
fn day_ticks(days: f64) -> impl Iterator<Item = f64> {
    let step = [1.0, 2.0, 5.0, 7.0, 14.0, 30.0, 90.0, 182.0, 365.0].into_iter().find(|step| days / step <= 10.0);
    let step = step.unwrap_or(days / 10.0);
    (0..=10_u32).map(move |tick| f64::from(tick) * step).take_while(move |day| *day <= days)
}

fn coordinates(points: impl Iterator<Item = (f64, f64)>) -> String {
    points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(days: u32) -> Vec<Point> {
        (0..days)
            .map(|day| Point { day: f64::from(day), least: f64::from(day), most: f64::from(day.min(8)) + 1.0 })
            .collect()
    }

    fn chart(points: &[Point]) -> Chart<'_> {
        let levels = &[Level { label: "capacity", value: 12.0 }, Level { label: "formula", value: 8.0 }];
        Chart { title: "disk <of> one broker", points, levels, unit: |value| format!("{value:.0} GB") }
    }

    #[test]
    fn blocks_rise_with_the_values_and_levels_are_named() {
        let points = ramp(12);
        let text = chart(&points).blocks(80);
        let expected = "\
disk <of> one broker
    12 GB │┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈ capacity
          │
          │
     9 GB │                        ████████████
     8 GB │┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈┈███████████████ formula
          │                  ██████████████████
     6 GB │               █████████████████████
          │            ████████████████████████
          │         ███████████████████████████
     3 GB │      ██████████████████████████████
          │   █████████████████████████████████
          │████████████████████████████████████
     0 GB └────────────────────────────────────
           day 0                         day 12
";
        assert_eq!(text, expected);
    }

    #[test]
    fn more_days_than_columns_show_the_fullest_of_several() {
        let points = ramp(365);
        let text = chart(&points).blocks(80);
        assert!(text.lines().all(|line| line.chars().count() <= 90), "{text}");
        assert!(text.contains("day 365"));
    }

    #[test]
    fn svg_is_well_formed_and_escapes_its_texts() {
        let points = ramp(30);
        let svg = chart(&points).svg();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("disk &lt;of&gt; one broker"));
        assert_eq!(svg.matches("stroke-dasharray").count(), 2);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn no_points_draw_an_empty_frame() {
        assert!(chart(&[]).blocks(80).contains("day 0"));
        assert!(chart(&[]).svg().ends_with("</svg>\n"));
    }
}

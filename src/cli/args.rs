//! Values as people type them on the command line: sizes, durations, instants, counts, ranges.
//!
//! Each `parse_` function is a clap value parser. None reads the clock: an instant such as `2h ago` stays relative until
//! [`InstantArg::resolve`] is given the time of the run.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, SpanRelativeTo, Timestamp};
use parse_size::{ByteSuffix, Config};

use crate::format::{Offset, TimestampMs};

/// Why a value of the command line cannot be used. A sentence fragment; clap adds flag and text in front.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// Not a size.
    #[error("expected a size such as 4096, 64k, 1GiB, 1.5g (powers of 1024) or 1KB, 1GB (powers of 1000)")]
    Size,
    /// Not a size, and not the -1 that stands for no limit.
    #[error("expected a size such as 4096, 64k, 1GiB, or -1 for no limit")]
    SizeOrUnlimited,
    /// Larger than 63 bits hold, which is what Kafka counts with.
    #[error("the size does not fit in 63 bits")]
    SizeTooLarge,
    /// Not a duration.
    #[error("expected a duration in milliseconds or such as 90s, 36h, 7d")]
    Duration,
    /// A duration whose length depends on the calendar.
    #[error("months and years have no fixed length; give days or hours")]
    DurationNeedsCalendar,
    /// Not an instant.
    #[error("expected epoch milliseconds, an RFC 3339 time, a date such as 2026-11-30, `now` or such as `2h ago`")]
    Instant,
    /// An instant before or after all that 64 bits of milliseconds hold.
    #[error("the instant is out of range")]
    InstantOutOfRange,
    /// Not a count.
    #[error("expected a whole number such as 250, 10k, 100M, 1.5G (powers of 1000)")]
    Count,
    /// Not an offset.
    #[error("expected an offset, a whole number from 0 on")]
    Offset,
    /// Not a ratio.
    #[error("expected a number from 0 to 1")]
    Ratio,
    /// Not a positive number.
    #[error("expected a number above 0")]
    Positive,
    /// Not a rate.
    #[error("expected bytes a second such as 50MB/s, 1GiB/s, 1000000")]
    Rate,
    /// Not a growth.
    #[error("expected growth a year such as 0.5 or 50%, above -1")]
    Growth,
    /// Not a range.
    #[error("expected a range A..B; the start is included, the end is not, either may be left out")]
    Range,
    /// A range that ends before it starts.
    #[error("the range ends before it starts")]
    RangeReversed,
}

/// An instant of the command line, perhaps relative to the time of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InstantArg {
    /// A fixed instant.
    At(TimestampMs),
    /// Milliseconds before the run; negative ones lie after it.
    Ago(i64),
}

impl InstantArg {
    /// The instant, for a run that takes place at `now`. Held at the ends of the range of 64 bits.
    pub fn resolve(self, now: TimestampMs) -> TimestampMs {
        match self {
            Self::At(instant) => instant,
            Self::Ago(duration_ms) => TimestampMs(now.0.saturating_sub(duration_ms)),
        }
    }
}

/// A range `A..B`: `start` is included, `end` is not, `None` is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HalfOpen<T> {
    /// The first value inside.
    pub start: Option<T>,
    /// The first value behind.
    pub end: Option<T>,
}

impl<T> Default for HalfOpen<T> {
    fn default() -> Self {
        Self { start: None, end: None }
    }
}

/// Parses a size in bytes: `4096`, `64k`, `1GiB`, `1.5g` in powers of 1024; `1KB`, `2.5GB` in powers of 1000.
pub fn parse_size_bytes(text: &str) -> Result<u64, ValueError> {
    let lower = text.trim().to_ascii_lowercase();
    let decimal = lower.ends_with('b') && !lower.ends_with("ib");
    let config = if decimal { Config::new().with_decimal() } else { Config::new().with_binary() };
    let size_bytes = config.parse_size(&lower).map_err(|_| ValueError::Size)?;
    if size_bytes > i64::MAX as u64 { Err(ValueError::SizeTooLarge) } else { Ok(size_bytes) }
}

/// Parses a size as [`parse_size_bytes`] does, or -1, Kafka's word for no limit.
pub fn parse_size_or_unlimited(text: &str) -> Result<i64, ValueError> {
    if text.trim() == "-1" {
        return Ok(-1);
    }
    match parse_size_bytes(text) {
        Ok(size_bytes) => i64::try_from(size_bytes).map_err(|_| ValueError::SizeTooLarge),
        Err(ValueError::Size) => Err(ValueError::SizeOrUnlimited),
        Err(other) => Err(other),
    }
}

/// Parses a duration into milliseconds: Kafka's plain milliseconds (-1 included) or `90s`, `36h`, `7d`, `1d 12h`.
pub fn parse_duration_ms(text: &str) -> Result<i64, ValueError> {
    let text = text.trim();
    if let Ok(milliseconds) = text.parse::<i64>() {
        return Ok(milliseconds);
    }
    let duration_ms = span_ms(text)?;
    if duration_ms < 0 { Err(ValueError::Duration) } else { Ok(duration_ms) }
}

/// Parses an instant: epoch milliseconds, RFC 3339 (`T` or a space), a civil date or time in UTC, `now`, `2h ago`.
pub fn parse_instant(text: &str) -> Result<InstantArg, ValueError> {
    let text = text.trim();
    if let Ok(milliseconds) = text.parse::<i64>() {
        return Ok(InstantArg::At(TimestampMs(milliseconds)));
    }
    if text.eq_ignore_ascii_case("now") {
        return Ok(InstantArg::Ago(0));
    }
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Ok(InstantArg::At(TimestampMs(instant.as_millisecond())));
    }
    if let Ok(civil) = text.parse::<DateTime>() {
        let zoned = civil.to_zoned_datetime(TimeZone::UTC).map_err(|_| ValueError::InstantOutOfRange)?;
        return Ok(InstantArg::At(TimestampMs(zoned.timestamp().as_millisecond())));
    }
    if !text.ends_with("ago") {
        return Err(ValueError::Instant);
    }
    match span_ms(text) {
        Ok(duration_ms) => Ok(InstantArg::Ago(duration_ms.saturating_neg())),
        Err(ValueError::Duration) => Err(ValueError::Instant),
        Err(other) => Err(other),
    }
}

/// Parses a count: `250`, `10k`, `100M`, `1.5G`, in powers of 1000.
pub fn parse_count(text: &str) -> Result<u64, ValueError> {
    if text.chars().any(|c| matches!(c, 'i' | 'I')) {
        return Err(ValueError::Count);
    }
    let config = Config::new().with_decimal().with_byte_suffix(ByteSuffix::Deny);
    config.parse_size(text.trim()).map_err(|_| ValueError::Count)
}

/// Parses an offset.
pub fn parse_offset(text: &str) -> Result<Offset, ValueError> {
    match text.trim().parse::<i64>() {
        Ok(offset) if offset >= 0 => Ok(Offset(offset)),
        _ => Err(ValueError::Offset),
    }
}

/// Parses a number from 0 to 1.
pub fn parse_ratio(text: &str) -> Result<f64, ValueError> {
    match text.trim().parse::<f64>() {
        Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(ratio),
        _ => Err(ValueError::Ratio),
    }
}

/// Parses a finite number above 0.
pub fn parse_positive(text: &str) -> Result<f64, ValueError> {
    match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err(ValueError::Positive),
    }
}

/// Parses bytes a second: a size, with `/s` or without.
pub fn parse_rate(text: &str) -> Result<u64, ValueError> {
    let text = text.trim();
    let size = text.strip_suffix("/s").or_else(|| text.strip_suffix("ps")).unwrap_or(text);
    parse_size_bytes(size).map_err(|_| ValueError::Rate)
}

/// Parses growth a year as a share: `0.5` and `50%` are the same.
pub fn parse_growth(text: &str) -> Result<f64, ValueError> {
    let text = text.trim();
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent.trim_end(), 100.0));
    match number.parse::<f64>() {
        Ok(growth) if growth.is_finite() && growth / unit > -1.0 => Ok(growth / unit),
        _ => Err(ValueError::Growth),
    }
}

/// Parses a half-open range of offsets: `10..20`, `10..`, `..20`, `..`.
pub fn parse_offset_range(text: &str) -> Result<HalfOpen<Offset>, ValueError> {
    let range = parse_range(text, parse_offset)?;
    match (range.start, range.end) {
        (Some(start), Some(end)) if end < start => Err(ValueError::RangeReversed),
        _ => Ok(range),
    }
}

/// Parses a half-open range of instants, each as in [`parse_instant`]: `2026-11-01..2h ago`.
pub fn parse_instant_range(text: &str) -> Result<HalfOpen<InstantArg>, ValueError> {
    let range = parse_range(text, parse_instant)?;
    match (range.start, range.end) {
        (Some(InstantArg::At(start)), Some(InstantArg::At(end))) if end < start => Err(ValueError::RangeReversed),
        (Some(InstantArg::Ago(start)), Some(InstantArg::Ago(end))) if end > start => Err(ValueError::RangeReversed),
        _ => Ok(range),
    }
}

fn parse_range<T>(text: &str, side: fn(&str) -> Result<T, ValueError>) -> Result<HalfOpen<T>, ValueError> {
    let (start, end) = text.split_once("..").ok_or(ValueError::Range)?;
    let parse_side = |text: &str| if text.trim().is_empty() { Ok(None) } else { side(text).map(Some) };
    Ok(HalfOpen { start: parse_side(start)?, end: parse_side(end)? })
}

/// Milliseconds of a span with units, days being 24 hours long; negative where the text says so (`ago`).
fn span_ms(text: &str) -> Result<i64, ValueError> {
    let span: Span = text.parse().map_err(|_| ValueError::Duration)?;
    if span.get_months() != 0 || span.get_years() != 0 {
        return Err(ValueError::DurationNeedsCalendar);
    }
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| ValueError::InstantOutOfRange)?;
    i64::try_from(duration.as_millis()).map_err(|_| ValueError::InstantOutOfRange)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_multiples_are_binary_and_those_with_b_decimal() {
        let cases = [
            ("4096", 4096),
            ("0", 0),
            ("64k", 65_536),
            ("64K", 65_536),
            ("1GiB", 1 << 30),
            ("1gib", 1 << 30),
            ("1.5g", 3 << 29),
            ("10m", 10 << 20),
            ("1KB", 1000),
            ("1kb", 1000),
            ("2.5 GB", 2_500_000_000),
            ("1TB", 1_000_000_000_000),
            ("12B", 12),
            ("1_000", 1000),
        ];
        for (text, size_bytes) in cases {
            assert_eq!(parse_size_bytes(text), Ok(size_bytes), "{text}");
        }
        for text in ["", "k", "-1", "1x", "1 k B", "GiB", "nan", "1..2"] {
            assert_eq!(parse_size_bytes(text), Err(ValueError::Size), "{text:?}");
        }
        assert_eq!(parse_size_bytes("8EiB"), Err(ValueError::SizeTooLarge));
        assert_eq!(parse_size_or_unlimited("-1"), Ok(-1));
        assert_eq!(parse_size_or_unlimited("1k"), Ok(1024));
        assert_eq!(parse_size_or_unlimited("-2"), Err(ValueError::SizeOrUnlimited));
    }

    #[test]
    fn durations_are_milliseconds_or_carry_units() {
        let cases = [
            ("604800000", 604_800_000),
            ("-1", -1),
            ("0", 0),
            ("7d", 604_800_000),
            ("36h", 129_600_000),
            ("90s", 90_000),
            ("250ms", 250),
            ("1d 12h", 129_600_000),
            ("2w", 1_209_600_000),
            ("5m", 300_000),
            ("1.5h", 5_400_000),
        ];
        for (text, duration_ms) in cases {
            assert_eq!(parse_duration_ms(text), Ok(duration_ms), "{text}");
        }
        for text in ["", "d", "7 parsecs", "2h ago", "-7d"] {
            assert_eq!(parse_duration_ms(text), Err(ValueError::Duration), "{text:?}");
        }
        assert_eq!(parse_duration_ms("1 month"), Err(ValueError::DurationNeedsCalendar));
    }

    #[test]
    fn instants_take_milliseconds_rfc_3339_civil_dates_and_distances() {
        let at = |ms| Ok(InstantArg::At(TimestampMs(ms)));
        let cases = [
            ("1700000000000", at(1_700_000_000_000)),
            ("-1", at(-1)),
            ("2023-11-14T22:13:20Z", at(1_700_000_000_000)),
            ("2023-11-14 22:13:20.5Z", at(1_700_000_000_500)),
            ("2023-11-14T23:13:20+01:00", at(1_700_000_000_000)),
            ("2023-11-14T22:13:20", at(1_700_000_000_000)),
            ("2023-11-14", at(1_699_920_000_000)),
            ("now", Ok(InstantArg::Ago(0))),
            ("2h ago", Ok(InstantArg::Ago(7_200_000))),
            ("7d ago", Ok(InstantArg::Ago(604_800_000))),
        ];
        for (text, instant) in cases {
            assert_eq!(parse_instant(text), instant, "{text}");
        }
        for text in ["", "ago", "2h", "yesterday", "2023-13-01", "12:00"] {
            assert_eq!(parse_instant(text), Err(ValueError::Instant), "{text:?}");
        }
    }

    #[test]
    fn a_distance_is_counted_from_the_time_of_the_run() {
        assert_eq!(InstantArg::Ago(7_200_000).resolve(TimestampMs(10_000_000)), TimestampMs(2_800_000));
        assert_eq!(InstantArg::Ago(i64::MAX).resolve(TimestampMs(i64::MIN)), TimestampMs(i64::MIN));
        assert_eq!(InstantArg::At(TimestampMs(5)).resolve(TimestampMs(10)), TimestampMs(5));
    }

    #[test]
    fn counts_are_decimal() {
        for (text, value) in [("250", 250), ("10k", 10_000), ("100M", 100_000_000), ("1.5G", 1_500_000_000)] {
            assert_eq!(parse_count(text), Ok(value), "{text}");
        }
        for text in ["", "1Ki", "1MB", "-3", "many"] {
            assert_eq!(parse_count(text), Err(ValueError::Count), "{text:?}");
        }
    }

    #[test]
    fn ranges_are_half_open_and_either_side_may_be_empty() {
        let range =
            |start: Option<i64>, end: Option<i64>| Ok(HalfOpen { start: start.map(Offset), end: end.map(Offset) });
        assert_eq!(parse_offset_range("10..20"), range(Some(10), Some(20)));
        assert_eq!(parse_offset_range("10.."), range(Some(10), None));
        assert_eq!(parse_offset_range("..20"), range(None, Some(20)));
        assert_eq!(parse_offset_range(".."), range(None, None));
        assert_eq!(parse_offset_range("7..7"), range(Some(7), Some(7)));
        assert_eq!(parse_offset_range("20..10"), Err(ValueError::RangeReversed));
        assert_eq!(parse_offset_range("10"), Err(ValueError::Range));
        assert_eq!(parse_offset_range("-1..10"), Err(ValueError::Offset));
        assert_eq!(
            parse_instant_range("2023-11-14T22:13:20.000Z..2h ago"),
            Ok(HalfOpen {
                start: Some(InstantArg::At(TimestampMs(1_700_000_000_000))),
                end: Some(InstantArg::Ago(7_200_000))
            })
        );
        assert_eq!(parse_instant_range("1h ago..2h ago"), Err(ValueError::RangeReversed));
    }

    #[test]
    fn ratios_lie_between_0_and_1_and_positive_numbers_above_0() {
        assert_eq!(parse_ratio("0.5"), Ok(0.5));
        assert_eq!(parse_ratio("1"), Ok(1.0));
        assert_eq!(parse_ratio("1.01"), Err(ValueError::Ratio));
        assert_eq!(parse_ratio("NaN"), Err(ValueError::Ratio));
        assert_eq!(parse_positive("1.2"), Ok(1.2));
        assert_eq!(parse_positive("0"), Err(ValueError::Positive));
        assert_eq!(parse_positive("inf"), Err(ValueError::Positive));
        assert_eq!(parse_rate("50MB/s"), Ok(50_000_000));
        assert_eq!(parse_rate("1GiB"), Ok(1 << 30));
        assert_eq!(parse_rate("fast"), Err(ValueError::Rate));
        assert_eq!(parse_growth("50%"), Ok(0.5));
        assert_eq!(parse_growth("-1"), Err(ValueError::Growth));
    }
}

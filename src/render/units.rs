//! Numbers as people read them: sizes, counts, durations, rates, instants. Every text in the project gets them from here.
//!
//! Sizes on disk are binary (`1.2 GiB`), sizes of a plan are decimal (`1.26 TB`), as vendors sell disks. Fractions have
//! at most three significant digits and no trailing zeros.

use std::fmt::Write as _;

use jiff::Timestamp;

use crate::format::TimestampMs;

const BINARY_UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const DECIMAL_UNITS: [&str; 7] = ["B", "KB", "MB", "GB", "TB", "PB", "EB"];
const COUNT_UNITS: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// A size in powers of 1024: `0 B`, `1023 B`, `1.5 KiB`, `1.2 GiB`.
pub fn bytes_binary(size_bytes: u64) -> String {
    scaled(size_bytes, 1024, &BINARY_UNITS, " ")
}

/// A size in powers of 1000: `999 B`, `1.26 TB`.
pub fn bytes_decimal(size_bytes: u64) -> String {
    scaled(size_bytes, 1000, &DECIMAL_UNITS, " ")
}

/// A size in whole decimal gigabytes, for capacity tables: `1260 GB`, `0.42 GB`. From 100 on the fraction is cut off.
pub fn gigabytes(size_bytes: u64) -> String {
    in_unit(size_bytes, 1_000_000_000, "GB")
}

/// A size in whole GiB, for capacity tables: `1201 GiB`. From 100 on the fraction is cut off.
pub fn gibibytes(size_bytes: u64) -> String {
    in_unit(size_bytes, 1 << 30, "GiB")
}

/// A count with its thousands grouped: `1,234,567`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count in a decimal multiple: `999`, `1.23M`.
pub fn count_short(value: u64) -> String {
    scaled(value, 1000, &COUNT_UNITS, "")
}

/// A duration in its two largest units: `250 ms`, `1.5 s`, `2 min 5 s`, `36 h` as `1 d 12 h`, `7 d`.
pub fn duration_ms(duration_ms: i64) -> String {
    let sign = if duration_ms < 0 { "-" } else { "" };
    let value = duration_ms.unsigned_abs();
    if value < SECOND_MS {
        return format!("{sign}{value} ms");
    }
    if value < MINUTE_MS {
        return format!("{sign}{} s", significant(value as f64 / SECOND_MS as f64));
    }
    let (unit, name, below, below_name) = if value < HOUR_MS {
        (MINUTE_MS, "min", SECOND_MS, "s")
    } else if value < DAY_MS {
        (HOUR_MS, "h", MINUTE_MS, "min")
    } else {
        (DAY_MS, "d", HOUR_MS, "h")
    };
    let mut text = format!("{sign}{} {name}", count(value / unit));
    let rest = value % unit / below;
    if rest > 0 {
        let _ = write!(text, " {rest} {below_name}");
    }
    text
}

/// Bytes a second in powers of 1000: `5.79 MB/s`. Not a number, infinite and negative rates read `-`.
pub fn rate(bytes_per_second: f64) -> String {
    match whole(bytes_per_second) {
        Some(bytes) => format!("{}/s", bytes_decimal(bytes)),
        None => "-".to_owned(),
    }
}

/// Events a second: `1,157/s`, `0.25/s`. Not a number, infinite and negative rates read `-`.
pub fn rate_count(per_second: f64) -> String {
    match whole(per_second) {
        Some(whole) if whole >= 100 => format!("{}/s", count(whole)),
        Some(_) => format!("{}/s", significant(per_second)),
        None => "-".to_owned(),
    }
}

/// A ratio with three significant digits: `0.294`, `1`. Not a number reads `-`.
pub fn ratio(value: f64) -> String {
    if value.is_finite() { significant(value) } else { "-".to_owned() }
}

/// A share as percent with three significant digits: `12.5%`.
pub fn percent(share: f64) -> String {
    if share.is_finite() { format!("{}%", significant(share * 100.0)) } else { "-".to_owned() }
}

/// An instant in UTC as RFC 3339 with milliseconds: `2023-11-14T22:13:20.000Z`.
///
/// A Kafka timestamp may be any i64; one outside the years -9999 to 9999 prints as its raw number.
pub fn instant_utc(timestamp: TimestampMs) -> String {
    match Timestamp::from_millisecond(timestamp.0) {
        Ok(instant) => format!("{instant:.3}"),
        Err(_) => timestamp.0.to_string(),
    }
}

/// A rate as whole number, if it is one that can be shown.
fn whole(value: f64) -> Option<u64> {
    if value.is_finite() && value >= 0.0 { Some(saturating_u64(value.round())) } else { None }
}

/// A float as u64, held at the ends of the range.
pub(crate) fn saturating_u64(value: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "a float cast saturates, which is what is asked for")]
    let result = value as u64;
    result
}

fn in_unit(size_bytes: u64, unit_bytes: u64, name: &str) -> String {
    let value = size_bytes as f64 / unit_bytes as f64;
    if value >= 100.0 {
        format!("{} {name}", size_bytes / unit_bytes)
    } else {
        format!("{} {name}", significant(value))
    }
}

fn scaled(value: u64, base: u64, units: &[&str], space: &str) -> String {
    let mut scaled = value as f64;
    let mut names = units.iter();
    let mut name = names.next().copied().unwrap_or_default();
    // 999.5 would print as 1000, so the step up is taken where rounding to three digits takes it.
    let step = if base == 1000 { 999.5 } else { 1023.5 };
    if value < base {
        return format!("{value}{space}{name}");
    }
    while scaled >= step {
        let Some(next) = names.next() else { break };
        name = next;
        scaled /= base as f64;
    }
    format!("{}{space}{name}", significant(scaled))
}

/// Three significant digits (four for whole numbers up to 1023), trailing zeros dropped.
fn significant(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = if magnitude >= 99.95 {
        0
    } else if magnitude >= 9.995 {
        1
    } else if magnitude >= 0.9995 || magnitude == 0.0 {
        2
    } else if magnitude >= 0.09995 {
        3
    } else {
        4
    };
    let text = format!("{value:.decimals$}");
    if decimals == 0 {
        return text;
    }
    let trimmed = text.trim_end_matches('0').trim_end_matches('.');
    if trimmed == "-0" { "0".to_owned() } else { trimmed.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_sizes_keep_three_digits_and_no_trailing_zeros() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (10 << 20, "10 MiB"),
            (1_288_490_189, "1.2 GiB"),
            (1_048_575, "1 MiB"),
            (1023 << 10, "1023 KiB"),
            (u64::MAX, "16 EiB"),
        ];
        for (size, text) in cases {
            assert_eq!(bytes_binary(size), text, "{size}");
        }
    }

    #[test]
    fn decimal_sizes_step_at_a_thousand() {
        assert_eq!(bytes_decimal(999), "999 B");
        assert_eq!(bytes_decimal(1000), "1 KB");
        assert_eq!(bytes_decimal(999_499), "999 KB");
        assert_eq!(bytes_decimal(999_500), "1 MB");
        assert_eq!(bytes_decimal(1_260_000_000_000), "1.26 TB");
        assert_eq!(gigabytes(1_260_000_000_000), "1260 GB");
        assert_eq!(gigabytes(1_290_240_000_000), "1290 GB");
        assert_eq!(gibibytes(1_290_240_000_000), "1201 GiB");
        assert_eq!(gigabytes(420_000_000), "0.42 GB");
    }

    #[test]
    fn counts_are_grouped_by_thousands() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count_short(999), "999");
        assert_eq!(count_short(100_000_000), "100M");
    }

    #[test]
    fn durations_show_their_two_largest_units() {
        let cases = [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_500, "1.5 s"),
            (125_000, "2 min 5 s"),
            (129_600_000, "1 d 12 h"),
            (604_800_000, "7 d"),
            (-60_000, "-1 min"),
        ];
        for (ms, text) in cases {
            assert_eq!(duration_ms(ms), text, "{ms}");
        }
        assert!(duration_ms(i64::MIN).starts_with("-106,751,991,167 d"));
    }

    #[test]
    fn instants_are_utc_with_milliseconds_and_impossible_ones_stay_raw() {
        assert_eq!(instant_utc(TimestampMs(1_700_000_000_000)), "2023-11-14T22:13:20.000Z");
        assert_eq!(instant_utc(TimestampMs(-1)), "1969-12-31T23:59:59.999Z");
        assert_eq!(instant_utc(TimestampMs(253_402_207_200_000)), "9999-12-30T22:00:00.000Z");
        assert_eq!(instant_utc(TimestampMs(253_402_207_200_001)), "253402207200001");
        assert_eq!(instant_utc(TimestampMs(i64::MIN)), i64::MIN.to_string());
    }

    #[test]
    fn rates_and_ratios_never_print_a_nan() {
        assert_eq!(rate(5_787_037.0), "5.79 MB/s");
        assert_eq!(rate(f64::NAN), "-");
        assert_eq!(rate_count(1157.4), "1,157/s");
        assert_eq!(rate_count(0.25), "0.25/s");
        assert_eq!(ratio(0.294_117), "0.294");
        assert_eq!(ratio(f64::INFINITY), "-");
        assert_eq!(percent(0.125), "12.5%");
    }
}

//! Numbers as the JVM reads them from text: `Long.parseLong`, `Integer.parseInt`.
//!
//! File names, checkpoints and properties of a broker all pass through these two. They take a sign, any number of leading zeros
//! and the decimal digits of every script of the Basic Multilingual Plane (`Character.digit`), and nothing else: no blanks, no
//! digits of higher planes, no separators. Brokers in some locales write their file names in such digits.

/// The zeros of the decimal digits that `Character.digit(char, 10)` knows; each is followed by its nine siblings.
const ZEROS: [u32; 37] = [
    0x0030, 0x0660, 0x06f0, 0x07c0, 0x0966, 0x09e6, 0x0a66, 0x0ae6, 0x0b66, 0x0be6, 0x0c66, 0x0ce6, 0x0d66, 0x0de6,
    0x0e50, 0x0ed0, 0x0f20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40,
    0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10,
];

/// The value of a decimal digit of any script that Java's parsers know.
pub fn java_digit(c: char) -> Option<u8> {
    if c.is_ascii() {
        return c.is_ascii_digit().then(|| (c as u8).saturating_sub(b'0'));
    }
    let code = u32::from(c);
    let zero = ZEROS.iter().rev().find(|&&zero| zero <= code)?;
    u8::try_from(code.checked_sub(*zero)?).ok().filter(|digit| *digit < 10)
}

/// `Long.parseLong(text)`; `None` where Java throws `NumberFormatException`.
pub fn parse_java_long(text: &str) -> Option<i64> {
    let (digits, negative) = match text.strip_prefix('-') {
        Some(digits) => (digits, true),
        None => (text.strip_prefix('+').unwrap_or(text), false),
    };
    if digits.is_empty() {
        return None;
    }
    // Counting downwards, so that the least i64 can be read.
    let mut value = 0i64;
    for c in digits.chars() {
        value = value.checked_mul(10)?.checked_sub(i64::from(java_digit(c)?))?;
    }
    if negative { Some(value) } else { value.checked_neg() }
}

/// `Integer.parseInt(text)`; `None` where Java throws `NumberFormatException`.
pub fn parse_java_int(text: &str) -> Option<i32> {
    parse_java_long(text).and_then(|value| i32::try_from(value).ok())
}

/// Whether the text holds a digit that is not ASCII, as names written under some locales do.
pub fn has_foreign_digit(text: &str) -> bool {
    text.chars().any(|c| !c.is_ascii() && java_digit(c).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_a_number_exactly_where_java_says_so() {
        // Each pair as printed by a JVM.
        for (text, expected) in [
            ("5", Some(5)),
            ("+5", Some(5)),
            ("-5", Some(-5)),
            ("", None),
            ("+", None),
            ("-", None),
            ("--5", None),
            ("٣", Some(3)),
            ("٠٠٧", Some(7)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("-9223372036854775808", Some(i64::MIN)),
            ("00000000000000000000000005", Some(5)),
            ("𝟎", None),
            ("5 ", None),
            (" 5", None),
            ("1_0", None),
        ] {
            assert_eq!(parse_java_long(text), expected, "{text:?}");
        }
        assert_eq!(parse_java_int("2147483647"), Some(i32::MAX));
        assert_eq!(parse_java_int("2147483648"), None);
        assert_eq!(parse_java_int("-2147483648"), Some(i32::MIN));
    }

    #[test]
    fn java_knows_370_digits() {
        let digits = (0..0x1_0000u32).filter_map(char::from_u32).filter(|c| java_digit(*c).is_some()).count();
        assert_eq!(digits, 370);
    }

    proptest! {
        #[test]
        fn every_number_reads_back_in_every_script(value: i64, script in 0..ZEROS.len()) {
            let text: String = value.to_string().chars().map(|c| match c.to_digit(10) {
                Some(digit) => char::from_u32(ZEROS[script] + digit).unwrap(),
                None => c,
            }).collect();
            prop_assert_eq!(parse_java_long(&text), Some(value));
            prop_assert_eq!(has_foreign_digit(&text), script > 0);
        }
    }
}

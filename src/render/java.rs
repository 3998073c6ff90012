//! How Java turns numbers and bytes into text, where Rust would do it otherwise.

use std::borrow::Cow;

/// What Java puts in place of bytes that are not UTF-8.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Bytes as `new String(bytes, UTF_8)` prints them: themselves, but where they are malformed.
pub fn as_text(bytes: &[u8]) -> Cow<'_, [u8]> {
    if std::str::from_utf8(bytes).is_ok() {
        return Cow::Borrowed(bytes);
    }
    let mut out = Vec::new();
    push_text(&mut out, bytes);
    Cow::Owned(out)
}

/// Appends bytes as `new String(bytes, UTF_8)` prints them: what is malformed becomes U+FFFD. Unlike in Rust, the encoding of a
/// surrogate (`ED A0..BF`, then possibly a continuation byte) is replaced as a whole.
pub fn push_text(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut rest = bytes;
    while let Some(chunk) = rest.utf8_chunks().next() {
        out.extend_from_slice(chunk.valid().as_bytes());
        let used = chunk.valid().len() + chunk.invalid().len();
        rest = rest.get(used..).unwrap_or_default();
        if chunk.invalid().is_empty() {
            continue;
        }
        out.extend_from_slice(REPLACEMENT);
        if chunk.invalid() == [0xed]
            && let Some((0xa0..=0xbf, after)) = rest.split_first()
        {
            rest = match after.split_first() {
                Some((0x80..=0xbf, after)) => after,
                _ => after,
            };
        }
    }
}

/// Appends a double as `Double.toString` does.
pub fn push_double(out: &mut Vec<u8>, number: f64) {
    if !push_special(out, number) {
        push_decimal(out, &format!("{number:e}"), number.abs() < 1e-3 || number.abs() >= 1e7);
    }
}

/// Appends a float as `Float.toString` does: with the digits that tell it from other floats, not from other doubles.
pub fn push_float(out: &mut Vec<u8>, number: f32) {
    if !push_special(out, f64::from(number)) {
        push_decimal(out, &format!("{number:e}"), number.abs() < 1e-3 || number.abs() >= 1e7);
    }
}

fn push_special(out: &mut Vec<u8>, number: f64) -> bool {
    let text = if number.is_nan() {
        "NaN"
    } else if number == f64::INFINITY {
        "Infinity"
    } else if number == f64::NEG_INFINITY {
        "-Infinity"
    } else if number == 0.0 {
        if number.is_sign_negative() { "-0.0" } else { "0.0" }
    } else {
        return false;
    };
    out.extend_from_slice(text.as_bytes());
    true
}

/// `scientific` is Rust's shortest form, `-d.ddde-n` with the point and fraction only where needed.
fn push_decimal(out: &mut Vec<u8>, scientific: &str, keeps_exponent: bool) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let unsigned = mantissa.strip_prefix('-').unwrap_or(mantissa);
    if unsigned.len() < mantissa.len() {
        out.push(b'-');
    }
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    if keeps_exponent {
        let fraction = if fraction.is_empty() { "0" } else { fraction };
        out.extend_from_slice(format!("{whole}.{fraction}E{exponent}").as_bytes());
        return;
    }
    let digits = [whole, fraction].concat();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.extend((1..exponent.unsigned_abs()).map(|_| b'0'));
        out.extend_from_slice(digits.as_bytes());
        return;
    }
    let places = exponent.unsigned_abs() as usize + 1;
    let whole: String = digits.chars().chain(std::iter::repeat('0')).take(places).collect();
    let fraction = digits.get(places..).filter(|rest| !rest.is_empty()).unwrap_or("0");
    out.extend_from_slice(format!("{whole}.{fraction}").as_bytes());
}

/// The order in which a `java.util.HashMap` gives back these keys, as places in `keys`: by bucket, and in one by insertion.
pub fn java_hash_order(keys: &[Vec<u8>]) -> Vec<usize> {
    let mut buckets = 16u32;
    while keys.len() as u64 * 4 > u64::from(buckets) * 3 && buckets < 1 << 30 {
        buckets *= 2;
    }
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|place| {
        let hash = keys.get(*place).map_or(0, |key| string_hash(&String::from_utf8_lossy(key)));
        (hash ^ (hash >> 16)) & (buckets - 1)
    });
    order
}

/// `String.hashCode`.
fn string_hash(text: &str) -> u32 {
    text.encode_utf16().fold(0, |hash: u32, unit| hash.wrapping_mul(31).wrapping_add(u32::from(unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        push_text(&mut out, bytes);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_encoded_surrogate_is_one_replacement_character() {
        assert_eq!(text(b"a\xed\xa0\x80b"), "a\u{fffd}b");
        assert_eq!(text(b"a\xed\xa0"), "a\u{fffd}");
        assert_eq!(text(b"a\xed\xa0b"), "a\u{fffd}b");
        assert_eq!(text(b"\xed\xa0\x80\xed\xb0\x80"), "\u{fffd}\u{fffd}");
        assert_eq!(text(b"\xed\x41"), "\u{fffd}A");
        assert_eq!(text("\u{d7ff}".as_bytes()), "\u{d7ff}");
    }

    #[test]
    fn other_malformed_bytes_are_replaced_as_in_rust() {
        for bytes in [&b"\xff\xfe"[..], b"\xe2\x82", b"\xf0\x9f\x98", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"x\x80y", b""]
        {
            assert_eq!(text(bytes), String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn doubles_have_a_fraction_and_an_exponent_only_beyond_seven_digits() {
        for (number, expected) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1_048_576.0, "1048576.0"),
            (0.001, "0.001"),
            (0.00123, "0.00123"),
            (1e7, "1.0E7"),
            (9_999_999.5, "9999999.5"),
            (12_345_678.9, "1.23456789E7"),
            (9.9e-4, "9.9E-4"),
            (-0.5, "-0.5"),
            (100.0, "100.0"),
            (1e23, "1.0E23"),
            (f64::MIN_POSITIVE, "2.2250738585072014E-308"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            let mut out = Vec::new();
            push_double(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
        let mut out = Vec::new();
        push_float(&mut out, 0.1);
        push_float(&mut out, 16_777_216.0);
        assert_eq!(out, b"0.11.6777216E7");
    }

    #[test]
    fn keys_come_in_the_order_of_javas_buckets() {
        assert_eq!(string_hash("hello"), 99_162_322);
        let keys = ["b", "a", "q"].map(|key| key.as_bytes().to_vec());
        // 'a' is 97 and 'q' 113: the same bucket of 16, in order of insertion; 'b' is in the next.
        assert_eq!(java_hash_order(&keys), [1, 2, 0]);
    }
}

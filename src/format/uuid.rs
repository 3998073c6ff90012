//! Ids of topics, directories and clusters: 16 bytes, written as 22 letters of base64url (`org.apache.kafka.common.Uuid`).

use std::fmt;

/// Letters of 16 bytes without padding.
const LETTERS: usize = 22;
/// The longest text that is looked at: with padding.
const LONGEST: usize = 24;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// An id of 16 bytes.
///
/// ```
/// use segtool::format::Uuid;
///
/// let id = Uuid::parse("AAECAwQFBgcICQoLDA0ODw").unwrap();
/// assert_eq!(id.0, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
/// assert_eq!(id.to_string(), "AAECAwQFBgcICQoLDA0ODw");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// The id that stands for none.
    pub const ZERO: Self = Self([0; 16]);
    /// The topic id of the metadata log.
    pub const METADATA_TOPIC: Self = Self(1u128.to_be_bytes());

    /// Reads the text of an id as `Uuid.fromString` does: 22 letters, or 24 with the padding. Bits of the last letter that belong to
    /// no byte are ignored.
    pub fn parse(text: &str) -> Option<Self> {
        let letters = match text.len() {
            LETTERS => text,
            LONGEST => text.strip_suffix("==")?,
            _ => return None,
        };
        let mut bits = 0u128;
        for (index, letter) in letters.bytes().enumerate() {
            let six = u128::from(letter_value(letter)?);
            // 21 letters hold 126 bits, the last one the other two.
            bits = if index + 1 < LETTERS { bits << 6 | six } else { bits << 2 | six >> 4 };
        }
        Some(Self(bits.to_be_bytes()))
    }

    /// Whether Kafka keeps the id for itself: no directory and no topic is given one of the first hundred.
    pub fn is_reserved(self) -> bool {
        u128::from_be_bytes(self.0) < 100
    }
}

fn letter_value(letter: u8) -> Option<u8> {
    match letter {
        b'A'..=b'Z' => Some(letter.wrapping_sub(b'A')),
        b'a'..=b'z' => Some(letter.wrapping_sub(b'a').wrapping_add(26)),
        b'0'..=b'9' => Some(letter.wrapping_sub(b'0').wrapping_add(52)),
        b'-' => Some(62),
        b'_' => Some(63),
        _ => None,
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u128::from_be_bytes(self.0);
        for index in 0..LETTERS {
            let six = match 122usize.checked_sub(6 * index) {
                Some(shift) => bits >> shift,
                None => bits << 4,
            };
            let letter = ALPHABET.get(usize::try_from(six & 63).unwrap_or(0)).copied().unwrap_or(b'A');
            fmt::Write::write_char(f, char::from(letter))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uuid({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_an_id_exactly_where_kafka_says_so() {
        // Each verdict from Uuid.fromString of 4.4.0.
        for (text, expected) in [
            ("AAECAwQFBgcICQoLDA0ODw", Some("AAECAwQFBgcICQoLDA0ODw")),
            ("AAECAwQFBgcICQoLDA0ODw==", Some("AAECAwQFBgcICQoLDA0ODw")),
            ("AAECAwQFBgcICQoLDA0ODx", Some("AAECAwQFBgcICQoLDA0ODw")),
            ("_____________________w", Some("_____________________w")),
            ("______________________", Some("_____________________w")),
            ("AAAAAAAAAAAAAAAAAAAAAQ", Some("AAAAAAAAAAAAAAAAAAAAAQ")),
            ("AAECAwQFBgcICQoLDA0ODw=", None),
            ("AAECAwQFBgcICQoLDA0ODw===", None),
            ("AAECAwQFBgcICQoLDA0OD===", None),
            ("AAECAwQFBgcICQoLDA0O=DwA", None),
            ("AAECAwQFBgcICQoLDA0OD", None),
            ("AAECAwQFBgcICQoLDA0ODwA", None),
            ("AAECAwQFBgcICQoLDA0ODwAA", None),
            ("AAECAwQFBgcICQoLDA0OD+", None),
            ("AAECAwQFBgcICQoLDA0O/w", None),
            ("AAECAwQFBgcICQoLDA0OD ", None),
            ("________________________", None),
            ("éAECAwQFBgcICQoLDA0ODw", None),
            ("éAECAwQFBgcICQoLDA0OD", None),
            ("", None),
            ("=", None),
        ] {
            assert_eq!(Uuid::parse(text).map(|id| id.to_string()).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn the_first_hundred_are_reserved() {
        assert!(Uuid::ZERO.is_reserved() && Uuid::METADATA_TOPIC.is_reserved());
        assert_eq!(Uuid::METADATA_TOPIC.to_string(), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert!(Uuid(99u128.to_be_bytes()).is_reserved() && !Uuid(100u128.to_be_bytes()).is_reserved());
    }

    proptest! {
        #[test]
        fn ids_read_back(bytes: [u8; 16]) {
            let text = Uuid(bytes).to_string();
            prop_assert_eq!(text.len(), LETTERS);
            prop_assert_eq!(Uuid::parse(&text), Some(Uuid(bytes)));
            prop_assert_eq!(Uuid::parse(&format!("{text}==")), Some(Uuid(bytes)));
        }
    }
}

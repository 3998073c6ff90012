//! Base64 in the two alphabets that Kafka prints: standard with padding for bytes, URL-safe without for UUIDs.

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Appends `bytes` in the standard alphabet, padded with `=` to a multiple of four.
pub fn push_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    push(out, bytes, STANDARD);
    while !(out.len() - start).is_multiple_of(4) {
        out.push(b'=');
    }
}

/// Appends a UUID as `org.apache.kafka.common.Uuid` prints it: 22 URL-safe characters without padding.
pub fn push_uuid(out: &mut Vec<u8>, id: &[u8; 16]) {
    push(out, id, URL_SAFE);
}

fn push(out: &mut Vec<u8>, bytes: &[u8], alphabet: &[u8; 64]) {
    out.reserve(bytes.len().div_ceil(3).saturating_mul(4));
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..=group.len() {
            let index = (bits >> (18 - 6 * place)) & 0x3f;
            out.extend(alphabet.get(index as usize));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_rfc_4648_and_kafkas_uuids() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            let mut out = Vec::new();
            push_base64(&mut out, bytes.as_bytes());
            assert_eq!(out, text.as_bytes());
        }
        let mut out = Vec::new();
        push_base64(&mut out, &[0xff, 0xfe]);
        push_uuid(&mut out, &[0; 16]);
        push_uuid(&mut out, b"\x52\x3e\x70\x9f\xf1\x6a\x4d\x78\xab\x10\x04\xaf\x55\x94\x58\xd7");
        assert_eq!(out, b"//4=AAAAAAAAAAAAAAAAAAAAAAUj5wn_FqTXirEASvVZRY1w");
    }
}

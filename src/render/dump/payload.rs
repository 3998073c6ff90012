//! Keys, values and header values in the form that was asked for.

use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher13};

use crate::render::base64::push_base64;
use crate::render::json_text::{push_member_base64, push_member_bytes, push_name, push_number};
use crate::render::untrusted::{push_hex_byte, push_untrusted};

/// Bytes of a key or value that a line for people shows unless told otherwise.
const SHOWN_BYTES: usize = 160;

/// How payload bytes are shown.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Payload {
    /// Text where it is UTF-8, else base64; long ones cut in lines for people.
    #[default]
    Auto,
    /// Text; other bytes escaped.
    Utf8,
    /// Hexadecimal digits.
    Hex,
    /// Base64.
    Base64,
    /// Length and a digest: equal payloads can be told to be equal, and not be read.
    Redacted,
    /// Length alone.
    None,
}

impl Payload {
    /// Appends a JSON member, or two: `key`, `key_base64`, `key_hex`, `key_digest` and `key_size_bytes`. Null is always
    /// `"key":null`.
    pub(super) fn push_json(self, out: &mut Vec<u8>, name: &str, bytes: Option<&[u8]>) {
        match (self, bytes) {
            (Self::Auto | Self::Utf8, _) | (_, None) => push_member_bytes(out, name, bytes),
            (Self::Base64, bytes) => push_member_base64(out, name, bytes),
            (Self::Hex, Some(bytes)) => {
                push_name(out, name, "_hex");
                out.push(b'"');
                push_hex(out, bytes);
                out.push(b'"');
            }
            (Self::Redacted, Some(bytes)) => {
                push_name(out, name, "_digest");
                out.push(b'"');
                push_digest(out, bytes);
                out.extend_from_slice(b"\",");
                push_size(out, name, bytes);
            }
            (Self::None, Some(bytes)) => push_size(out, name, bytes),
        }
    }

    /// Appends a payload for people.
    pub(super) fn push_human(self, out: &mut Vec<u8>, bytes: Option<&[u8]>) {
        let Some(bytes) = bytes else {
            out.extend_from_slice(b"null");
            return;
        };
        match self {
            Self::Auto => push_shortened(out, bytes),
            Self::Utf8 => push_quoted(out, bytes),
            Self::Hex => {
                out.extend_from_slice(b"0x");
                push_hex(out, bytes);
            }
            Self::Base64 => {
                out.extend_from_slice(b"base64:");
                push_base64(out, bytes);
            }
            Self::Redacted => {
                out.extend_from_slice(b"digest:");
                push_digest(out, bytes);
            }
            Self::None => out.extend_from_slice(b"..."),
        }
    }
}

fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    for &byte in bytes {
        push_hex_byte(out, byte);
    }
}

fn push_size(out: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    push_name(out, name, "_size_bytes");
    push_number(out, bytes.len());
}

fn push_quoted(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    push_untrusted(out, bytes);
    out.push(b'"');
}

fn push_shortened(out: &mut Vec<u8>, bytes: &[u8]) {
    let shown = bytes.get(..SHOWN_BYTES).unwrap_or(bytes);
    // A character must not be cut in two.
    let cut = match std::str::from_utf8(shown) {
        Err(error) if error.error_len().is_none() && shown.len() < bytes.len() => error.valid_up_to(),
        _ => shown.len(),
    };
    push_quoted(out, shown.get(..cut).unwrap_or(shown));
    if cut < bytes.len() {
        out.extend_from_slice(b"...");
    }
}

/// The key is fixed: the same payload has the same digest in every run, so that dumps can be compared.
fn push_digest(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut hasher = SipHasher13::new();
    hasher.write(bytes);
    let digest = hasher.finish128();
    for byte in digest.h1.to_be_bytes().into_iter().chain(digest.h2.to_be_bytes()) {
        push_hex_byte(out, byte);
    }
}

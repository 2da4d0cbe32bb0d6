//! Lenient Base64: either alphabet, padded or not.

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Accepts trailing bits that no encoder writes, so that a truncated digest is reported by its length.
const TOLERANT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);

/// Decodes a string in either alphabet, padded or not. `None` if it is not Base64.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    // Padding must be complete or absent.
    if text.ends_with('=') && !text.len().is_multiple_of(4) {
        return None;
    }
    let alphabet = if text.contains(['-', '_']) { URL_SAFE } else { STANDARD };
    GeneralPurpose::new(&alphabet, TOLERANT).decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&[u8]>) {
        assert_eq!(decode(text).as_deref(), expected, "{text}");
    }

    #[test]
    fn both_alphabets_are_decoded_with_and_without_padding() {
        check("Zm9vYg==", Some(b"foob"));
        check("Zm9vYg", Some(b"foob"));
        check("+//+", Some(&[0xfb, 0xff, 0xfe]));
        check("-__-", Some(&[0xfb, 0xff, 0xfe]));
    }

    #[test]
    fn invalid_base64_is_rejected() {
        for text in ["A", "AAAAA", "A===", "Zg=", "Zm9v====", "Zm 9", "Zm9v=Zg="] {
            check(text, None);
        }
    }
}

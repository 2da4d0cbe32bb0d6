//! Keys and secrets, and their redaction in output and files.

use std::collections::BTreeSet;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use crate::mode::Mode;

/// The length of the shortest part of a secret that is redacted.
const SECRET_PART_LEN_MIN: usize = 8;
/// The number of views of a text that are searched: as it is, and with one and with two layers of escapes decoded.
const VIEWS: usize = 3;

/// The placeholder of a key.
pub const KEY_PLACEHOLDER: &str = "<key>";

/// A secret string. It prints as a placeholder and cannot be serialized.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a key or another secret.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if the secret is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the secret as text.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the secret part of a key: all but a prefix that names its mode, such as `svc_live_`.
    pub fn secret_part(&self, key_prefix: &str) -> &str {
        key_secret_part(&self.0, key_prefix)
    }
}

/// Returns the secret part of a key, see [`Secret::secret_part`].
pub fn key_secret_part<'k>(key: &'k str, key_prefix: &str) -> &'k str {
    Mode::split_key(key, key_prefix).map_or(key, |(_, tail)| tail)
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(KEY_PLACEHOLDER)
    }
}

/// Redacts the parts of secrets in text: as they are, in base64 or hexadecimal, and escaped for URLs, JSON and HTML.
///
/// Parts, not only whole secrets: the suite also sends keys with a changed end or another prefix, and servers may
/// echo half of a refused key.
#[derive(Clone)]
pub struct Redactor {
    /// The parts to redact, as canonical bytes.
    parts: BTreeSet<Vec<u8>>,
    /// The lengths of the parts.
    part_lengths: BTreeSet<usize>,
    /// A bit set of the first three bytes of the parts. For most positions of the text, one bit shows that no part
    /// starts there.
    prefix_bits: Vec<u64>,
    placeholder: &'static str,
}

/// Text with layers of escapes decoded.
struct DecodedText {
    bytes: Vec<u8>,
    /// The range of each byte in the original text. `None` if nothing was decoded.
    source_ranges: Option<Vec<(usize, usize)>>,
}

impl DecodedText {
    fn source_range(&self, index: usize) -> (usize, usize) {
        self.source_ranges.as_ref().map_or((index, index + 1), |ranges| ranges[index])
    }
}

/// Returns the index of three bytes in the bit set: the low seven bits of each.
fn prefix_slot(bytes: &[u8]) -> usize {
    bytes.iter().take(3).fold(0, |slot, byte| slot << 7 | usize::from(byte & 0x7f))
}

impl Redactor {
    /// Creates a redactor of all parts with [`KEY_SECRET_LEN_MIN`] or more characters. `tails`: the secrets without
    /// their public prefix; `placeholder`: the replacement.
    pub fn new<'a>(tails: impl IntoIterator<Item = &'a str>, placeholder: &'static str) -> Redactor {
        Redactor::with_part_lengths(tails.into_iter().map(|tail| (tail, SECRET_PART_LEN_MIN)), placeholder)
    }

    /// Creates a redactor of whole secrets only. A secret shorter than [`KEY_SECRET_LEN_MIN`] is not redacted.
    pub fn for_whole_secrets<'a>(
        tails: impl IntoIterator<Item = &'a str>,
        placeholder: &'static str,
    ) -> Redactor {
        Redactor::with_part_lengths(
            tails.into_iter().map(|tail| (tail, tail.len().max(SECRET_PART_LEN_MIN))),
            placeholder,
        )
    }

    /// Creates a redactor. Each secret comes with the length of the parts to redact.
    fn with_part_lengths<'a>(
        tails: impl Iterator<Item = (&'a str, usize)>,
        placeholder: &'static str,
    ) -> Redactor {
        const SLOTS: usize = 1 << 21;
        let mut parts = BTreeSet::new();
        let mut add_parts = |text: &[u8], length: usize| {
            parts.extend(canonical_bytes(text).windows(length).map(<[u8]>::to_vec));
        };
        // A key that consists of its prefix has no secret part.
        for (tail, part_length) in tails.filter(|(tail, _)| !tail.is_empty()) {
            add_parts(tail.as_bytes(), part_length);
            add_parts(hex(tail.as_bytes()).as_bytes(), 2 * part_length);
            for shift in 0..3 {
                // Only these digits depend on the part alone.
                add_parts(&base64(tail.as_bytes(), shift), 8 * part_length / 6 - 2);
            }
        }
        let mut prefix_bits = vec![0; SLOTS / 64];
        for part in &parts {
            let slot = prefix_slot(part);
            prefix_bits[slot / 64] |= 1_u64 << (slot % 64);
        }
        let part_lengths = parts.iter().map(Vec::len).collect();
        Redactor { parts, part_lengths, prefix_bits, placeholder }
    }

    /// Returns the text with all parts of secrets redacted.
    pub fn redact(&self, text: &str) -> String {
        let mask = self.redaction_mask(text.as_bytes());
        let mut clean = String::with_capacity(text.len());
        let mut was_hidden = false;
        for (index, character) in text.char_indices() {
            let is_hidden = mask.get(index).copied().unwrap_or(false);
            if !is_hidden {
                clean.push(character);
            } else if !was_hidden {
                clean.push_str(self.placeholder);
            }
            was_hidden = is_hidden;
        }
        clean
    }

    /// Returns the bytes with all parts of secrets redacted.
    pub fn redact_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mask = self.redaction_mask(bytes);
        let mut clean = Vec::with_capacity(bytes.len());
        let mut was_hidden = false;
        for (index, byte) in bytes.iter().enumerate() {
            let is_hidden = mask.get(index).copied().unwrap_or(false);
            if !is_hidden {
                clean.push(*byte);
            } else if !was_hidden {
                clean.extend_from_slice(self.placeholder.as_bytes());
            }
            was_hidden = is_hidden;
        }
        clean
    }

    /// Returns a mask that is `true` for each byte to redact; empty if there is none.
    fn redaction_mask(&self, bytes: &[u8]) -> Vec<bool> {
        let mut hidden = Vec::new();
        if self.parts.is_empty() {
            return hidden;
        }
        let mut view = DecodedText { bytes: bytes.to_vec(), source_ranges: None };
        for _ in 0..VIEWS {
            self.mark_secret_parts(&view, &mut hidden, bytes.len());
            let Some(decoded) = unescape(&view) else { break };
            view = decoded;
        }
        hidden
    }

    /// Marks the parts of secrets in a view in the mask `hidden`, which has `length` bytes once it is used.
    fn mark_secret_parts(&self, view: &DecodedText, hidden: &mut Vec<bool>, length: usize) {
        let bytes = canonical_bytes(&view.bytes);
        for (position, prefix) in bytes.windows(3).enumerate() {
            let slot = prefix_slot(prefix);
            if self.prefix_bits[slot / 64] >> (slot % 64) & 1 == 0 {
                continue;
            }
            for part_length in &self.part_lengths {
                let Some(part) = bytes.get(position..position + part_length) else { break };
                if self.parts.contains(part) {
                    hidden.resize(length, false);
                    let last = position + part_length - 1;
                    hidden[view.source_range(position).0..view.source_range(last).1].fill(true);
                }
            }
        }
    }
}

/// Returns the bytes in lower case, with the URL-safe digits of base64 replaced by the standard ones.
fn canonical_bytes(bytes: &[u8]) -> Vec<u8> {
    let canonical = |byte: &u8| match byte {
        b'-' => b'+',
        b'_' => b'/',
        byte => byte.to_ascii_lowercase(),
    };
    bytes.iter().map(canonical).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the base64 of the bytes after `shift` others, without the digits that depend on neighbouring bytes.
fn base64(bytes: &[u8], shift: usize) -> Vec<u8> {
    let digits = STANDARD_NO_PAD.encode([&vec![0; shift], bytes].concat());
    digits.as_bytes()[(8 * shift).div_ceil(6)..8 * (shift + bytes.len()) / 6].to_vec()
}

/// Decodes one layer of escapes: `%5A`, `\u005a`, `\x5a`, `&#90;`, `&#x5a;`. `None` if there is no escape.
fn unescape(view: &DecodedText) -> Option<DecodedText> {
    let escaped = &view.bytes;
    escaped.iter().position(|byte| matches!(byte, b'%' | b'\\' | b'&'))?;
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut ranges = Vec::with_capacity(escaped.len());
    let mut start = 0;
    while start < escaped.len() {
        let (byte, length) = decode_escape(&escaped[start..]).unwrap_or((escaped[start], 1));
        bytes.push(byte);
        ranges.push((view.source_range(start).0, view.source_range(start + length - 1).1));
        start += length;
    }
    (bytes.len() < escaped.len()).then_some(DecodedText { bytes, source_ranges: Some(ranges) })
}

/// Decodes the escape at the start of the text. Returns its byte and its length.
fn decode_escape(text: &[u8]) -> Option<(u8, usize)> {
    const DIGITS_MAX: usize = 8;
    let number = |digits: &[u8], radix| {
        let text =
            std::str::from_utf8(digits).ok().filter(|text| !text.is_empty() && !text.starts_with('+'))?;
        u8::from_str_radix(text, radix).ok()
    };
    match text {
        [b'%', a, b, ..] => Some((number(&[*a, *b], 16)?, 3)),
        [b'\\', b'u' | b'U', b'0', b'0', a, b, ..] => Some((number(&[*a, *b], 16)?, 6)),
        [b'\\', b'x', a, b, ..] => Some((number(&[*a, *b], 16)?, 4)),
        [b'&', b'#', rest @ ..] => {
            let end = rest.iter().take(DIGITS_MAX).position(|byte| *byte == b';')?;
            let value = match &rest[..end] {
                [b'x' | b'X', digits @ ..] => number(digits, 16)?,
                digits => number(digits, 10)?,
            };
            // The value is between `&#` and `;`.
            Some((value, end + 3))
        }
        _ => None,
    }
}

/// The minimum number of characters of a key after its prefix. A shorter key could not be redacted.
pub const KEY_SECRET_LEN_MIN: usize = SECRET_PART_LEN_MIN;

#[cfg(test)]
mod tests {
    use super::*;

    const TAIL: &str = "Zx81kQm2Pf7T";

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let redactor = Redactor::new([TAIL, "another-secret"], "<key>");
        assert_eq!(redactor.redact(text), expected);
        assert_eq!(redactor.redact_bytes(text.as_bytes()), expected.as_bytes());
    }

    #[test]
    fn only_a_prefix_that_names_a_mode_is_public() {
        let cases = [
            ("svc_live_ab_cd", "ab_cd"),
            ("svc_test_", ""),
            ("acme_test_ab", "acme_test_ab"),
            ("whsec_ab", "whsec_ab"),
        ];
        for (key, tail) in cases {
            assert_eq!(Secret::new(key).secret_part("svc"), tail, "{key}");
        }
    }

    #[test]
    fn a_whole_key_is_redacted_and_its_prefix_stays() {
        check("Bearer svc_live_Zx81kQm2Pf7T.", "Bearer svc_live_<key>.");
    }

    #[test]
    fn a_part_of_a_key_in_any_letter_case_is_redacted() {
        check("no such key: …zx81KQM2", "no such key: …<key>");
        check("svc_test_Zx81kQm2Pf7a", "svc_test_<key>a");
    }

    #[test]
    fn a_redactor_of_whole_secrets_ignores_their_parts() {
        let redactor = Redactor::for_whole_secrets([TAIL, "short"], "<secret>");
        for text in [TAIL.to_owned(), hex(TAIL.as_bytes())] {
            assert_eq!(redactor.redact(&format!("a {text}")), "a <secret>");
        }
        assert!(redactor.redact("dXNlcjpaeDgxa1FtMlBmN1Q=").contains("<secret>"));
        assert_eq!(redactor.redact("Zx81kQm2Pf7 short"), "Zx81kQm2Pf7 short");
    }

    #[test]
    fn an_empty_or_very_short_secret_redacts_nothing() {
        for tail in ["", "k", "ab"] {
            for redactor in [Redactor::new([tail], "<key>"), Redactor::for_whole_secrets([tail], "<key>")] {
                assert_eq!(redactor.redact("a kab aw== Zx81kQm2Pf7T"), "a kab aw== Zx81kQm2Pf7T", "{tail:?}");
            }
        }
    }

    #[test]
    fn text_without_a_secret_is_unchanged() {
        check("ключ Zx81kQm и another", "ключ Zx81kQm и another");
        check("100% \\u0041 &#65; &# %zz \\u00", "100% \\u0041 &#65; &# %zz \\u00");
    }

    #[test]
    fn an_encoded_key_is_redacted() {
        let escaped = |escape: fn(u8) -> String| TAIL.bytes().map(escape).collect::<String>();
        for encoded in [
            hex(TAIL.as_bytes()),
            hex(TAIL.as_bytes()).to_uppercase(),
            escaped(|byte| format!("%{byte:02X}")),
            escaped(|byte| format!("%25{byte:02x}")),
            escaped(|byte| format!("\\u{byte:04x}")),
            escaped(|byte| format!("\\x{byte:02x}")),
            escaped(|byte| format!("&#{byte};")),
            escaped(|byte| format!("&#x{byte:X};")),
        ] {
            check(&format!("a {encoded} b"), "a <key> b");
        }
    }

    #[test]
    fn a_key_in_base64_is_redacted_at_any_offset() {
        // `user:`, `user1:` and `user12:` with the key appended, encoded by another tool.
        for encoded in ["dXNlcjpaeDgxa1FtMlBmN1Q=", "dXNlcjE6Wng4MWtRbTJQZjdU", "dXNlcjEyOlp4ODFrUW0yUGY3VA"]
        {
            let redactor = Redactor::new([TAIL], "<key>");
            let clean = redactor.redact(encoded);
            assert!(clean.contains("<key>") && clean.len() < encoded.len(), "{clean}");
        }
    }

    #[test]
    fn a_secret_does_not_print() {
        let secret = Secret::new("svc_live_Zx81kQm2Pf7T");
        assert_eq!(format!("{secret} {secret:?}"), "<key> Secret(…)");
    }
}

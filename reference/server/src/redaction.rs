//! Redaction of API keys and the sandbox token in stored or printed texts, also when percent-encoded or escaped.

use std::{borrow::Cow, ops::Range};

use memchr::{memchr2, memmem::Finder};

/// Replaces the secrets of a server in texts.
pub(crate) struct Redactor {
    secrets: Vec<SecretPattern>,
}

/// The bytes that identify a secret.
struct SecretPattern {
    /// A prepared searcher, because most texts are short and contain no secret.
    finder: Finder<'static>,
    /// `true` for the prefix of keys: it may be shown, but not the letters and digits after it.
    is_key_start: bool,
}

impl Redactor {
    /// Creates a redactor for keys with these prefixes, and for the token.
    pub(crate) fn new<'k>(key_starts: impl IntoIterator<Item = &'k str>, token: &str) -> Redactor {
        let pattern =
            |text: &str, is_key_start| SecretPattern { finder: Finder::new(text).into_owned(), is_key_start };
        let starts = key_starts.into_iter().map(|start| pattern(start, true));
        Redactor { secrets: starts.chain([pattern(token, false)]).collect() }
    }

    /// Returns the text with the token and the rest of each key replaced by `…`.
    pub(crate) fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let is_encoded = memchr2(b'%', b'\\', text.as_bytes()).is_some();
        if !is_encoded && self.next_secret(text.as_bytes(), 0).is_none() {
            return Cow::Borrowed(text);
        }
        let (bytes, ranges) = decode_escapes(text);
        let (mut redacted, mut copied_to, mut searched_to) = (String::new(), 0, 0);
        while let Some(secret) = self.next_secret(&bytes, searched_to) {
            searched_to = secret.end;
            if let [first, .., last] | [first @ last] = &ranges[secret] {
                redacted.push_str(&text[copied_to..first.start]);
                redacted.push('…');
                copied_to = last.end;
            }
        }
        if copied_to == 0 {
            return Cow::Borrowed(text);
        }
        redacted.push_str(&text[copied_to..]);
        Cow::Owned(redacted)
    }

    /// Returns the range to redact of the first secret after `from`; empty if nothing follows the prefix of a key.
    fn next_secret(&self, bytes: &[u8], from: usize) -> Option<Range<usize>> {
        let found = self.secrets.iter().filter_map(|secret| {
            let start = from + secret.finder.find(&bytes[from..])?;
            let end = start + secret.finder.needle().len();
            if !secret.is_key_start {
                return Some(start..end);
            }
            let length = bytes[end..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
            Some(end..end + length)
        });
        found.min_by_key(|range| range.start)
    }
}

/// Decodes `%41` and `\u0041`, also if nested, such as `%2541`. Returns the bytes, with the range of each in the text.
fn decode_escapes(text: &str) -> (Vec<u8>, Vec<Range<usize>>) {
    let (mut bytes, mut ranges) = (Vec::with_capacity(text.len()), Vec::with_capacity(text.len()));
    for (index, byte) in text.bytes().enumerate() {
        bytes.push(byte);
        ranges.push(index..index + 1);
        // A decoded byte may complete an escape before it.
        while let Some((length, byte)) = escape_at_end(&bytes) {
            let first = bytes.len() - length;
            let start = ranges[first].start;
            bytes.truncate(first);
            ranges.truncate(first);
            bytes.push(byte);
            ranges.push(start..index + 1);
        }
    }
    (bytes, ranges)
}

/// Returns the length of the escape at the end of the bytes, and the byte it encodes.
fn escape_at_end(bytes: &[u8]) -> Option<(usize, u8)> {
    let [.., high, low] = bytes else { return None };
    let hex_digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let byte = hex_digit(high)? * 16 + hex_digit(low)?;
    let before = &bytes[..bytes.len() - 2];
    if before.ends_with(b"%") {
        Some((3, byte))
    } else if before.ends_with(br"\u00") {
        Some((6, byte))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let redactor = Redactor::new(["svc_live_", "svc_test_"], "sandbox_0123456789ab");
        assert_eq!(redactor.redact(text), expected);
    }

    #[test]
    fn secrets_are_redacted_and_the_rest_is_unchanged() {
        check("", "");
        check("a svc_live_0Aq9 and svc_test_abc, svc_live_", "a svc_live_… and svc_test_…, svc_live_");
        check("/v1?token=sandbox_0123456789ab&x=1", "/v1?token=…&x=1");
        check("sandbox_0123456789abc svc_live_1svc_test_2", "…c svc_live_…_test_2");
        check("größer 100% \\u00e9 %zz", "größer 100% \\u00e9 %zz");
    }

    #[test]
    fn an_encoded_secret_is_redacted_too() {
        check("/v1?x=svc%5Flive%5F0Aq9&y=%C3%A9", "/v1?x=svc%5Flive%5F…&y=%C3%A9");
        check("%73%76%63_live_%30%41%71%39", "%73%76%63_live_…");
        check("svc%255flive%25255F0%41q", "svc%255flive%25255F…");
        check("%2%35%37%33vc_test_abc", "%2%35%37%33vc_test_…");
        check(r#"{"a":"svc\u005flive\u005F0\u0041q","b":1}"#, r#"{"a":"svc\u005flive\u005F…","b":1}"#);
        check("t=sandbox%5f0123456789%61b é", "t=… é");
        check("%73andbox_0123456789ab%20", "…%20");
    }
}

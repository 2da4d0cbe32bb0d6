//! Keeps the known secrets out of what is shown and stored.

use crate::Secret;

use super::caught::{Caught, Octets};

const BLANK: &[u8] = b"<secret>";
/// Shorter endings of a secret say nothing about it, and would blank other text.
const TELLING: usize = 8;

/// Blanks every place where a request quotes a secret, whole or without its prefix.
#[derive(Clone, Debug, Default)]
pub struct Withheld {
    // Longest first, so that a whole secret goes before its ending.
    texts: Vec<Secret>,
}

impl Withheld {
    /// Withholds these.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Withheld {
        let mut texts = Vec::new();
        for secret in secrets {
            let whole = secret.expose().trim();
            let tail = whole.strip_prefix("whsec_").unwrap_or(whole);
            let telling = [whole, tail].into_iter().filter(|text| text.len() >= TELLING);
            texts.extend(telling.map(Secret::new));
        }
        texts.sort_by_key(|text| std::cmp::Reverse(text.expose().len()));
        Withheld { texts }
    }

    /// The text without secrets.
    pub fn clean(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for secret in &self.texts {
            if clean.contains(secret.expose()) {
                clean = clean.replace(secret.expose(), "<secret>");
            }
        }
        clean
    }

    /// The request without secrets. One that quotes a secret can't be judged again: its bytes are others.
    pub fn clean_request(&self, caught: &Caught) -> Caught {
        Caught {
            at: caught.at,
            method: self.clean(&caught.method),
            path: self.clean(&caught.path),
            headers: caught
                .headers
                .iter()
                .map(|(name, value)| (self.clean(name), self.clean_octets(value)))
                .collect(),
            body: self.clean_octets(&caught.body),
        }
    }

    fn clean_octets(&self, octets: &Octets) -> Octets {
        let mut bytes = octets.0.clone();
        for secret in &self.texts {
            bytes = replace(&bytes, secret.expose().as_bytes());
        }
        Octets(bytes)
    }
}

fn replace(bytes: &[u8], secret: &[u8]) -> Vec<u8> {
    let mut clean = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, others)) = rest.split_first() {
        match rest.strip_prefix(secret) {
            Some(after) => {
                clean.extend_from_slice(BLANK);
                rest = after;
            }
            None => {
                clean.push(*first);
                rest = others;
            }
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let withheld = Withheld::new([&Secret::new("whsec_0123456789abcdef "), &Secret::new("short")]);
        assert_eq!(withheld.clean(text), expected);
        assert_eq!(withheld.clean_octets(&text.as_bytes().into()), expected.as_bytes().into());
    }

    #[test]
    fn a_quoted_secret_is_blanked_with_and_without_its_prefix() {
        check("a whsec_0123456789abcdef b", "a <secret> b");
        check("a 0123456789abcdef b 0123456789abcdef", "a <secret> b <secret>");
    }

    #[test]
    fn other_text_stays() {
        check("short whsec_0123", "short whsec_0123");
    }
}

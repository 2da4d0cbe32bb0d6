//! Keys, and how they are kept out of everything that is shown or stored.

use std::collections::BTreeSet;
use std::fmt;

/// Shorter runs than this say nothing about a key; longer ones are blanked.
const TELLING_RUN: usize = 8;
const BLANK: &str = "<key>";

/// A text that must not be shown. It prints as a placeholder and is never serialized.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a key as the operator gave it.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key itself. Only the `Authorization` header needs it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(BLANK)
    }
}

/// Blanks every run that a text shares with a key.
///
/// Runs, not whole keys: the suite also sends keys with a changed end or another prefix, and servers
/// like to echo the half of what they refuse.
#[derive(Clone, Default)]
pub(crate) struct Redactor {
    runs: BTreeSet<Vec<u8>>,
}

impl Redactor {
    /// `tails` are the keys without the prefix that names their mode, which is no secret.
    pub(crate) fn new<'a>(tails: impl IntoIterator<Item = &'a str>) -> Redactor {
        let mut runs = BTreeSet::new();
        for tail in tails {
            let tail = tail.to_ascii_lowercase();
            runs.extend(tail.as_bytes().windows(TELLING_RUN).map(<[u8]>::to_vec));
        }
        Redactor { runs }
    }

    /// The text without what it shares with a key.
    pub(crate) fn clean(&self, text: &str) -> String {
        let folded = text.to_ascii_lowercase();
        let mut hidden = vec![false; text.len()];
        for (at, run) in folded.as_bytes().windows(TELLING_RUN).enumerate() {
            if self.runs.contains(run) {
                hidden[at..at + TELLING_RUN].fill(true);
            }
        }
        let mut clean = String::with_capacity(text.len());
        let mut blanked = false;
        for (at, letter) in text.char_indices() {
            if !hidden[at] {
                clean.push(letter);
            } else if !blanked {
                clean.push_str(BLANK);
            }
            blanked = hidden[at];
        }
        clean
    }
}

/// The least number of characters a key has after its prefix, so that it can be blanked.
pub(crate) const KEY_TAIL_MIN: usize = TELLING_RUN;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let redactor = Redactor::new(["Zx81kQm2Pf7T", "another-secret"]);
        assert_eq!(redactor.clean(text), expected);
    }

    #[test]
    fn a_whole_key_is_blanked_and_its_prefix_stays() {
        check("Bearer svc_live_Zx81kQm2Pf7T.", "Bearer svc_live_<key>.");
    }

    #[test]
    fn a_part_of_a_key_and_another_case_are_blanked_too() {
        check("no such key: …zx81KQM2", "no such key: …<key>");
        check("svc_test_Zx81kQm2Pf7a", "svc_test_<key>a");
    }

    #[test]
    fn other_text_stays_as_it_is() {
        check("ключ Zx81kQm и another", "ключ Zx81kQm и another");
    }

    #[test]
    fn a_secret_does_not_print() {
        let secret = Secret::new("svc_live_Zx81kQm2Pf7T");
        assert_eq!(format!("{secret} {secret:?}"), "<key> Secret(…)");
    }
}

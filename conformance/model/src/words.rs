//! Plain words of the specification and of the command line that every layer uses.

use serde::{Deserialize, Serialize};

/// The path of the account behind a key, below the base address.
pub const ACCOUNT_PATH: &str = "/v1/account";

/// One of the two modes a key can act in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Real coins.
    Live,
    /// Test networks.
    Test,
}

impl Mode {
    /// Both modes.
    pub const BOTH: [Mode; 2] = [Mode::Live, Mode::Test];

    /// The word that stands in keys and in `meta.mode`.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Live => "live",
            Mode::Test => "test",
        }
    }

    /// Returns the prefix of keys of this mode, such as `svc_live_`.
    pub fn key_start(self, key_prefix: &str) -> String {
        format!("{key_prefix}_{}_", self.word())
    }

    /// The mode that a key names by its beginning, and what follows; `None` for a key of another form.
    pub fn of_key<'k>(key: &'k str, key_prefix: &str) -> Option<(Mode, &'k str)> {
        Mode::BOTH.into_iter().find_map(|mode| Some((mode, key.strip_prefix(&mode.key_start(key_prefix))?)))
    }

    /// The mode this one must not see into.
    pub fn other(self) -> Mode {
        match self {
            Mode::Live => Mode::Test,
            Mode::Test => Mode::Live,
        }
    }
}

/// Something an operator may declare to be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// No revoked key is at hand.
    Revoked,
    /// No second key of the test key's account and mode is at hand.
    Second,
    /// No key of another account is at hand.
    Other,
    /// No source creates records while the suite pages.
    Inserts,
    /// No receiver takes deliveries.
    Webhooks,
    /// No delivery is answered with a redirect.
    Redirects,
    /// No command adds endpoints.
    Registration,
    /// The endpoints want every type.
    Subset,
    /// The rate limit is not exceeded on purpose.
    Burst,
    /// The service has no payment links, or no charges of one.
    Links,
}

impl Part {
    /// Every part.
    pub const ALL: [Part; 10] = [
        Part::Revoked,
        Part::Second,
        Part::Other,
        Part::Inserts,
        Part::Webhooks,
        Part::Redirects,
        Part::Registration,
        Part::Subset,
        Part::Burst,
        Part::Links,
    ];

    /// The word after `--without`.
    pub fn word(self) -> &'static str {
        match self {
            Part::Revoked => "revoked",
            Part::Second => "second",
            Part::Other => "other",
            Part::Inserts => "inserts",
            Part::Webhooks => "webhooks",
            Part::Redirects => "redirects",
            Part::Registration => "registration",
            Part::Subset => "subset",
            Part::Burst => "burst",
            Part::Links => "links",
        }
    }

    /// The part of that word.
    pub fn named(word: &str) -> Option<Part> {
        Part::ALL.into_iter().find(|part| part.word() == word)
    }
}

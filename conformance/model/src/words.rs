//! The modes of the specification and the parts of `--without`, used by all packages.

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

    /// Returns the name of the mode in keys and in `meta.mode`.
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

    /// Splits a key into the mode of its prefix and the rest; `None` for a key of another form.
    pub fn of_key<'k>(key: &'k str, key_prefix: &str) -> Option<(Mode, &'k str)> {
        Mode::BOTH.into_iter().find_map(|mode| Some((mode, key.strip_prefix(&mode.key_start(key_prefix))?)))
    }

    /// Returns the other mode.
    pub fn other(self) -> Mode {
        match self {
            Mode::Live => Mode::Test,
            Mode::Test => Mode::Live,
        }
    }
}

/// A part of a run that the operator may exclude with `--without`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// No revoked key is available.
    Revoked,
    /// No second key of the test key's account and mode is available.
    Second,
    /// No key of another account is available.
    Other,
    /// No source creates records while the suite pages.
    Inserts,
    /// No receiver is set up for deliveries.
    Webhooks,
    /// No delivery is answered with a redirect.
    Redirects,
    /// No command adds endpoints.
    Registration,
    /// The endpoints subscribe to all event types.
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

    /// Returns the value of `--without`.
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

    /// Returns the part of a `--without` value.
    pub fn named(word: &str) -> Option<Part> {
        Part::ALL.into_iter().find(|part| part.word() == word)
    }
}

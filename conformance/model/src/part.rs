//! The parts of a run that `--without` excludes.

use serde::{Deserialize, Serialize};

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
    pub fn as_str(self) -> &'static str {
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
    pub fn from_name(word: &str) -> Option<Part> {
        Part::ALL.into_iter().find(|part| part.as_str() == word)
    }
}

//! The parts of a run that `--without` excludes.

use serde::{Deserialize, Serialize};

/// A part of a run that the operator may exclude with `--without`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Requests with a revoked key.
    Revoked,
    /// Requests with a second key of the test key's account and mode.
    #[serde(rename = "second")]
    SecondKey,
    /// Requests with a key of another account.
    #[serde(rename = "other")]
    OtherAccount,
    /// Paging while records are created.
    Inserts,
    /// Webhook deliveries.
    Webhooks,
    /// The verification of signatures, for a service with a construction of its own.
    Signatures,
    /// Deliveries that get a redirect as response.
    Redirects,
    /// The registration of endpoints by the command of `--register`.
    Registration,
    /// Endpoints that subscribe to a subset of the event types.
    #[serde(rename = "subset")]
    TypeSubset,
    /// Bursts, which exceed the rate limit.
    Burst,
    /// Payment links, and the charges of a payment link.
    #[serde(rename = "links")]
    PaymentLinks,
}

impl Part {
    /// Every part.
    pub const ALL: [Part; 11] = [
        Part::Revoked,
        Part::SecondKey,
        Part::OtherAccount,
        Part::Inserts,
        Part::Webhooks,
        Part::Signatures,
        Part::Redirects,
        Part::Registration,
        Part::TypeSubset,
        Part::Burst,
        Part::PaymentLinks,
    ];

    /// Returns the value of `--without`.
    pub fn as_str(self) -> &'static str {
        match self {
            Part::Revoked => "revoked",
            Part::SecondKey => "second",
            Part::OtherAccount => "other",
            Part::Inserts => "inserts",
            Part::Webhooks => "webhooks",
            Part::Signatures => "signatures",
            Part::Redirects => "redirects",
            Part::Registration => "registration",
            Part::TypeSubset => "subset",
            Part::Burst => "burst",
            Part::PaymentLinks => "links",
        }
    }

    /// Returns the part that a value of `--without` names.
    pub fn from_name(name: &str) -> Option<Part> {
        Part::ALL.into_iter().find(|part| part.as_str() == name)
    }
}

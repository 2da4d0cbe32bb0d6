//! Groups of probes, which checks need.

use serde::{Deserialize, Serialize};

use crate::words::Part;

/// Probes that run together, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// The account behind each key.
    Account,
    /// Before all but the account: what comes later then runs in a fresh window.
    Burst,
    /// Pages of the three lists and their links.
    Lists,
    /// Lists filtered by what the events show.
    Filters,
    /// Objects that only the other mode has, and objects that nobody has.
    Isolation,
    /// Tokens that are not keys.
    Auth,
    /// A revoked key.
    Revoked,
    /// Single charges, invoices and payment links.
    Objects,
    /// A second key of the same account and mode.
    Second,
    /// A key of another account.
    Other,
    /// Last of those that count against the budget of the two keys: takes what is left of it.
    Leaks,
    /// The choices of the reference server.
    Extended,
    /// After what reads, since the lists are others afterwards.
    Inserts,
    /// Last: whoever causes deliveries changes what the others read.
    Webhooks,
}

impl Group {
    /// The part that an operator declares to be left out when these probes cannot run.
    pub fn part(self) -> Option<Part> {
        match self {
            Group::Burst => Some(Part::Burst),
            Group::Revoked => Some(Part::Revoked),
            Group::Second => Some(Part::Second),
            Group::Other => Some(Part::Other),
            Group::Inserts => Some(Part::Inserts),
            Group::Webhooks => Some(Part::Webhooks),
            _ => None,
        }
    }
}

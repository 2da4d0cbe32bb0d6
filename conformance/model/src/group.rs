//! Groups of probes, on which checks depend.

use serde::{Deserialize, Serialize};

use crate::part::Part;

/// Probes that run together, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// The account behind each key.
    Account,
    /// The rate limit. Runs before all but the account, so that the later groups run in a fresh window.
    Burst,
    /// Pages of the three lists and their links.
    Lists,
    /// Lists filtered by values from the events.
    Filters,
    /// Objects of the other mode, and objects that do not exist.
    Isolation,
    /// Single charges, invoices and payment links.
    Objects,
    /// Tokens that are not keys. Runs after the groups that show which paths are served.
    Auth,
    /// A revoked key.
    Revoked,
    /// A second key of the same account and mode.
    #[serde(rename = "second")]
    SecondKey,
    /// A key of another account.
    #[serde(rename = "other")]
    OtherAccount,
    /// A search for data of the other mode. Runs last of the groups that count against the budget of the two keys,
    /// and uses the rest of it.
    Leaks,
    /// The choices of the reference server.
    Extended,
    /// Lists while records are created. Runs after the groups that only read, because it changes the lists.
    Inserts,
    /// Webhook deliveries. Runs last, because causing deliveries changes the data that the other groups read.
    Webhooks,
}

impl Group {
    /// Returns the part to exclude (`--without`) if these probes cannot run.
    pub fn part_to_exclude(self) -> Option<Part> {
        match self {
            Group::Burst => Some(Part::Burst),
            Group::Revoked => Some(Part::Revoked),
            Group::SecondKey => Some(Part::SecondKey),
            Group::OtherAccount => Some(Part::OtherAccount),
            Group::Inserts => Some(Part::Inserts),
            Group::Webhooks => Some(Part::Webhooks),
            _ => None,
        }
    }
}

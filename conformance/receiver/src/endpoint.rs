//! The known facts about one of the service's endpoints.

use std::collections::BTreeSet;

use conformance_model::deliveries::Place;
use conformance_model::secret::Secret;
use conformance_model::words::Mode;

/// An endpoint of the service that sends to us.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The end of its path, such as `/live`.
    pub path: String,
    /// The mode in which it was added, if it is known.
    pub mode: Option<Mode>,
    /// The types that it wants, if they are known.
    pub events: Option<BTreeSet<String>>,
    /// The secret of its deliveries, if it is known.
    pub secret: Option<Secret>,
}

impl Endpoint {
    /// Returns the facts that may be shown.
    pub fn place(&self) -> Place {
        Place { path: self.path.clone(), mode: self.mode, events: self.events.clone() }
    }
}

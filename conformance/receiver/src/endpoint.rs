//! The known facts about one of the service's endpoints.

use std::collections::BTreeSet;

use conformance_model::deliveries::DeclaredEndpoint;
use conformance_model::mode::Mode;
use conformance_model::secret::Secret;

/// An endpoint of the tested service that posts to this receiver.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The end of its path, such as `/live`.
    pub path: String,
    /// Its mode, if known.
    pub mode: Option<Mode>,
    /// The event types that it is subscribed to, if known.
    pub events: Option<BTreeSet<String>>,
    /// The secret of its deliveries, if known.
    pub secret: Option<Secret>,
}

impl Endpoint {
    /// Returns the declaration without the secret.
    pub fn without_secret(&self) -> DeclaredEndpoint {
        DeclaredEndpoint { path: self.path.clone(), mode: self.mode, events: self.events.clone() }
    }
}

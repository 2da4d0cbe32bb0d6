//! [`Endpoint`]: a webhook endpoint of the tested service.

use std::collections::BTreeSet;

use conformance_model::deliveries::DeclaredEndpoint;
use conformance_model::mode::Mode;
use conformance_model::secret::Secret;

/// A webhook endpoint of the tested service whose deliveries are sent to this receiver.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The ending of its path, such as `/live`.
    pub path: String,
    /// Its mode, if known.
    pub mode: Option<Mode>,
    /// The event types that it is subscribed to, if known.
    pub events: Option<BTreeSet<String>>,
    /// Its signing secret, if known.
    pub secret: Option<Secret>,
}

impl Endpoint {
    /// Returns the declaration without the secret.
    pub fn without_secret(&self) -> DeclaredEndpoint {
        DeclaredEndpoint {
            path: self.path.clone(),
            mode: self.mode,
            events: self.events.clone(),
            has_secret: self.secret.is_some(),
        }
    }
}

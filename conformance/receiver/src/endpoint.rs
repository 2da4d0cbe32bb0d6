//! What is known of an endpoint of the service that sends to us.

use std::collections::BTreeSet;

use conformance_model::deliveries::Place;
use conformance_model::secret::Secret;
use conformance_model::words::Mode;

/// An endpoint of the service that sends to us.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// What the path of its address ends in, such as `/live`.
    pub path: String,
    /// The mode in which it was added, if it is known.
    pub mode: Option<Mode>,
    /// The types that it wants, if they are known.
    pub events: Option<BTreeSet<String>>,
    /// What its deliveries are signed with, if it is known.
    pub secret: Option<Secret>,
}

impl Endpoint {
    /// What may be shown of it.
    pub fn place(&self) -> Place {
        Place { path: self.path.clone(), mode: self.mode, events: self.events.clone() }
    }
}

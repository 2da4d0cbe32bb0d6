//! [`Keyring`]: the secrets for the verification of deliveries.

use conformance_model::secret::Secret;

use super::received_request::WebhookNames;

/// The secrets for the verification of deliveries, each with its display name.
#[derive(Clone, Debug, Default)]
pub struct Keyring {
    /// The names of the webhook headers.
    pub names: WebhookNames,
    /// The secrets of the receiver's endpoints.
    pub secrets: Vec<(String, Secret)>,
    /// The secrets of other endpoints. A delivery that is signed with one of them went to the wrong endpoint, which is
    /// reported as [`Reason::OtherMode`](super::reason::Reason::OtherMode): `receiver` puts only secrets of the other mode
    /// here. `check` also puts those of the same mode here, and does not use that reason's text.
    pub other_endpoints: Vec<(String, Secret)>,
}

impl Keyring {
    /// Returns `true` if no secret is known.
    pub(super) fn is_empty(&self) -> bool {
        self.secrets.is_empty() && self.other_endpoints.is_empty()
    }
}

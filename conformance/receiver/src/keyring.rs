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
    /// The secrets of the other mode's endpoints. A delivery that is signed with one of them went to the wrong endpoint.
    pub other_mode: Vec<(String, Secret)>,
}

impl Keyring {
    /// Returns `true` if no secret is known.
    pub(super) fn is_empty(&self) -> bool {
        self.secrets.is_empty() && self.other_mode.is_empty()
    }
}

//! Webhook endpoints. Their addresses must be public (see [`address_rule`]).

pub mod address_rule;

use std::{collections::BTreeSet, fmt, sync::Arc};

use serde::{Deserialize, Serialize, Serializer};

use crate::{event::EventType, id::Code, rng::RngKey, signature::Signer, time::Timestamp};
use address_rule::EndpointUrl;

const SECRET_LEN: usize = 32;
const SECRET_ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// The number of failed deliveries in a row that disables an endpoint (`open.delivery.switch_off`).
pub(crate) const FAILED_IN_A_ROW_MAX: u32 = 15;

/// The secret that signs deliveries to an endpoint: `whsec_` and 32 characters.
#[derive(Clone, Serialize, Deserialize)]
pub struct Secret(#[serde(with = "crate::shared")] Arc<SecretText>);

/// The text of a secret, with the signer that is derived from it.
#[derive(Deserialize)]
#[serde(from = "String")]
struct SecretText {
    text: String,
    signer: Signer,
}

impl From<String> for SecretText {
    fn from(text: String) -> SecretText {
        let signer = Signer::new(&text);
        SecretText { text, signer }
    }
}

impl Serialize for SecretText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl Secret {
    /// Draws the `nth` secret of a book.
    pub fn draw(rng_key: &RngKey, nth: u64) -> Secret {
        let text = format!("whsec_{}", rng_key.stream(nth).text(SECRET_LEN, SECRET_ALPHABET));
        Secret(Arc::new(text.into()))
    }

    /// Returns the text, to show it to its owner.
    pub fn reveal(&self) -> &str {
        &self.0.text
    }

    /// Returns the value of the signature header for a body.
    pub fn sign(&self, unix_secs: u64, body: &[u8]) -> String {
        self.0.signer.sign(unix_secs, body)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The status of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndpointStatus {
    /// Receives deliveries.
    Enabled,
    /// Disabled by its owner or after too many failures.
    Disabled,
    /// Removed; stored only for the delivery log.
    Removed,
}

impl EndpointStatus {
    /// Returns the name in responses.
    pub const fn as_str(self) -> &'static str {
        match self {
            EndpointStatus::Enabled => "enabled",
            EndpointStatus::Disabled => "disabled",
            EndpointStatus::Removed => "removed",
        }
    }
}

/// A webhook endpoint of one book.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Endpoint {
    /// The id in the dashboard.
    pub id: Code,
    /// The URL that receives deliveries.
    #[serde(with = "crate::shared")]
    pub url: Arc<EndpointUrl>,
    /// The subscribed event types.
    pub events: BTreeSet<EventType>,
    /// The signing secret, used from the next attempt on.
    pub secret: Secret,
    /// The status.
    pub status: EndpointStatus,
    /// The number of failed deliveries since the last successful one, or since the owner enabled the endpoint.
    pub failed_in_a_row: u32,
    /// The time of registration.
    pub created_at: Timestamp,
}

impl Endpoint {
    /// Returns `true` if it is enabled and subscribes to events of this type.
    pub fn receives(&self, kind: EventType) -> bool {
        self.status == EndpointStatus::Enabled && self.events.contains(&kind)
    }
}

//! The webhook deliveries of a recording.
//!
//! No secret is stored here. Facts that need a secret, such as the validity of a signature and its construction, are
//! determined while recording and stored as [`SignatureStatus`].

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::mode::Mode;
use crate::raw_bytes::RawBytes;

/// The deliveries of a run, with the endpoints that received them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deliveries {
    /// The prefix of the webhook headers.
    pub header_prefix: String,
    /// The expected user agent of the sender.
    pub user_agent: String,
    /// The address of the receiver; `None` if the deliveries were captured before the run.
    pub receiver: Option<String>,
    /// The address by which the service reaches the receiver, if it differs from `receiver`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_url: Option<String>,
    /// The start of the receiver, in Unix seconds of its clock.
    #[serde(default, rename = "began", skip_serializing_if = "Option::is_none")]
    pub started_at: Option<i64>,
    /// The time for which the receiver ran, or the time between the first captured delivery and the last.
    #[serde(rename = "lasted")]
    pub duration: Duration,
    /// The time from the start of the receiver to the last read of the lists of events, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed_at: Option<Duration>,
    /// `true` if no further deliveries are expected.
    pub settled: bool,
    /// The error of the command that causes deliveries, if it failed.
    #[serde(rename = "trouble")]
    pub trigger_error: Option<String>,
    /// The endpoints that were declared.
    pub endpoints: Vec<DeclaredEndpoint>,
    /// The deliveries in order of arrival.
    #[serde(rename = "caught")]
    pub received: Vec<Delivery>,
    /// The number of requests that are not deliveries. A public address receives some.
    #[serde(rename = "strays")]
    pub other_requests: u32,
    /// The number of deliveries that were dropped because the recording was full.
    #[serde(rename = "lost")]
    pub dropped: u32,
    /// The addresses that were registered as endpoints, with the responses.
    pub registrations: Vec<Registration>,
}

/// A webhook endpoint declared by the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredEndpoint {
    /// The path of its address.
    pub path: String,
    /// The mode in which it was added, if known.
    pub mode: Option<Mode>,
    /// The event types that it subscribes to, if known.
    pub events: Option<BTreeSet<String>>,
    /// `true` if the operator set its secret, which the service created with the endpoint.
    #[serde(default)]
    pub has_secret: bool,
}

/// A received delivery attempt: one HTTP request. Retries are further attempts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The number of the attempt, counted from 1.
    pub number: u32,
    /// The time from the start of the receiver to the last byte of the delivery.
    pub arrived: Duration,
    /// The index of the declared endpoint that received it.
    pub endpoint: Option<usize>,
    /// `true` if it arrived at the target of a redirect from the receiver.
    pub redirected: bool,
    /// The method as received.
    pub method: String,
    /// Path and query as received.
    pub path: String,
    /// The header fields as received, in order.
    pub headers: Vec<(String, RawBytes)>,
    /// The raw body.
    pub body: DeliveryBody,
    /// The status of the response, if known; 0 if there was none.
    #[serde(rename = "answered")]
    pub response_status: Option<u16>,
    /// The result of verifying its signature.
    #[serde(rename = "signed")]
    pub signature: SignatureStatus,
}

/// The immutable body of a delivery. It is parsed as JSON at most once; clones share the result.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "RawBytes", into = "RawBytes")]
pub struct DeliveryBody {
    bytes: RawBytes,
    json: Arc<OnceLock<Option<Value>>>,
}

impl DeliveryBody {
    /// Returns the body as JSON, or `None` if it is not JSON.
    pub fn json(&self) -> Option<&Value> {
        self.json.get_or_init(|| serde_json::from_slice(&self.bytes.0).ok()).as_ref()
    }
}

impl From<RawBytes> for DeliveryBody {
    fn from(bytes: RawBytes) -> DeliveryBody {
        DeliveryBody { bytes, json: Arc::default() }
    }
}

impl From<Vec<u8>> for DeliveryBody {
    fn from(bytes: Vec<u8>) -> DeliveryBody {
        RawBytes(bytes).into()
    }
}

impl From<DeliveryBody> for RawBytes {
    fn from(body: DeliveryBody) -> RawBytes {
        body.bytes
    }
}

impl Deref for DeliveryBody {
    type Target = RawBytes;

    fn deref(&self) -> &RawBytes {
        &self.bytes
    }
}

impl PartialEq for DeliveryBody {
    fn eq(&self, other: &DeliveryBody) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for DeliveryBody {}

/// The result of verifying a signature with the known secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignatureStatus {
    /// No header has a value that could be a signature.
    #[serde(rename = "nothing")]
    Missing,
    /// The value is a hash without a secret, so anyone can compute it.
    #[serde(rename = "openly")]
    WithoutSecret,
    /// No secret is available for this endpoint.
    NoSecret,
    /// The signature matches no secret in any known construction.
    Unknown,
    /// The signature matches a secret.
    #[serde(rename = "by")]
    Matches {
        /// `true` if the secret belongs to the endpoint that received the delivery.
        own: bool,
        /// The differences of its construction from an HMAC-SHA256 of `<t>.<body>` in lowercase hexadecimal digits.
        #[serde(rename = "differs")]
        differences: Vec<Difference>,
    },
}

/// A deviation of a signature's construction from the specified one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The stable name of the difference, such as `body_only`.
    pub name: String,
    /// The description of the difference, as a clause for reports.
    #[serde(rename = "words")]
    pub clause: String,
}

/// An attempt to register an address as an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// The address.
    pub address: String,
    /// `true` if the address is reachable from the open internet.
    pub public: bool,
    /// `true` if the service accepted it.
    pub accepted: bool,
    /// The response of the service, or the result of the command.
    #[serde(rename = "answer")]
    pub response: String,
}

impl Delivery {
    /// Returns all values of a header field as text, in order. The letter case of its name is ignored.
    pub fn header_values(&self, name: &str) -> Vec<String> {
        let has_name = |header: &&(String, RawBytes)| header.0.eq_ignore_ascii_case(name);
        self.headers.iter().filter(has_name).map(|(_, value)| value.to_string_lossy().into_owned()).collect()
    }

    /// Returns `true` if the response was a redirect: a 3xx other than 304.
    pub fn got_redirect(&self) -> bool {
        self.response_status.is_some_and(|status| (300..400).contains(&status) && status != 304)
    }

    /// Returns `true` if the response was 2xx or is unknown, so that the sender need not retry.
    pub fn was_accepted(&self) -> bool {
        self.response_status.is_none_or(|status| (200..300).contains(&status))
    }
}

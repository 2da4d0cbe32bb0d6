//! What came to the receiver: the part of a recording that the target sent by itself.
//!
//! Secrets are never here. What only a secret can tell, whether a signature fits and how it was made, is found
//! out while recording and kept as [`Signed`].

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::octets::Octets;
use crate::words::Mode;

/// Deliveries, and what is known of the endpoints that they came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deliveries {
    /// What the webhook headers begin with.
    pub header_prefix: String,
    /// What the sender should call itself.
    pub user_agent: String,
    /// Where the receiver listened; nothing if the deliveries were captured before the run.
    pub receiver: Option<String>,
    /// Under which address the service reaches it, if it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_url: Option<String>,
    /// When it began to listen, in Unix seconds of its own clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<i64>,
    /// How long it listened, or the time between the first captured delivery and the last.
    pub lasted: Duration,
    /// Whether it is known that nothing is on its way any more.
    pub settled: bool,
    /// What whoever was to cause the deliveries could not do.
    pub trouble: Option<String>,
    /// The endpoints that were declared.
    pub endpoints: Vec<Place>,
    /// The requests in the order in which they came.
    pub caught: Vec<Delivery>,
    /// Requests that had nothing of a delivery: whoever listens in public gets some.
    pub strays: u32,
    /// Deliveries that came when the recording was full.
    pub lost: u32,
    /// Addresses that were given to the service as endpoints, and what it said.
    pub registrations: Vec<Registration>,
}

/// An endpoint as the operator declared it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The path of its address.
    pub path: String,
    /// The mode in which it was added, if it is known.
    pub mode: Option<Mode>,
    /// The types that it wants, if they are known.
    pub events: Option<BTreeSet<String>>,
}

/// A request that came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Counts from 1.
    pub number: u32,
    /// When its last byte was read, since the receiver began to listen.
    pub arrived: Duration,
    /// The declared endpoint that it came to, by its place in the list.
    pub endpoint: Option<usize>,
    /// Whether it came to where an answer of ours had pointed.
    pub redirected: bool,
    /// The method as it was written.
    pub method: String,
    /// Path and query as they were written.
    pub path: String,
    /// The headers in their order and letters.
    pub headers: Vec<(String, Octets)>,
    /// The raw body.
    pub body: Octets,
    /// The status that it was answered with, if that is known; 0 if it got no answer.
    pub answered: Option<u16>,
    /// What is known of its signature.
    pub signed: Signed,
}

/// What the secrets at hand say of a signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signed {
    /// There is nothing that could be a signature.
    Nothing,
    /// A hash without any secret: anybody can make it.
    Openly,
    /// No secret is at hand for this endpoint.
    NoSecret,
    /// It fits none of the secrets in any way that the suite knows.
    Unknown,
    /// It fits a secret.
    By {
        /// Whether the secret is the one of the endpoint that it came to.
        own: bool,
        /// In what it differs from an HMAC-SHA256 of `<t>.<body>` in small hexadecimal digits.
        differs: Vec<Difference>,
    },
}

/// How a signature was made otherwise than usual.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// A fixed name.
    pub name: String,
    /// The same as a clause.
    pub words: String,
}

/// An address that was to become an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// The address.
    pub address: String,
    /// Whether anybody on the internet can reach it.
    pub public: bool,
    /// Whether the service took it.
    pub accepted: bool,
    /// What it said.
    pub answer: String,
}

impl Delivery {
    /// Every value of a header as text, in order.
    pub fn values(&self, name: &str) -> Vec<String> {
        let fits = |it: &&(String, Octets)| it.0.eq_ignore_ascii_case(name);
        self.headers.iter().filter(fits).map(|(_, value)| value.lossy().into_owned()).collect()
    }

    /// Whether it was answered with a redirect.
    pub fn was_redirected(&self) -> bool {
        self.answered.is_some_and(|status| (300..400).contains(&status) && status != 304)
    }

    /// Whether the sender has no reason to repeat it.
    pub fn was_taken(&self) -> bool {
        self.answered.is_none_or(|status| (200..300).contains(&status))
    }
}

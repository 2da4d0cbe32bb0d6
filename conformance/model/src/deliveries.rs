//! The deliveries of a recording: the requests that the target sent by itself.
//!
//! Secrets are never here. Facts that need a secret, such as the validity of a signature and its construction, are
//! determined while recording and kept as [`Signed`].

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::octets::Octets;
use crate::words::Mode;

/// Deliveries, and what is known of the endpoints that they came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deliveries {
    /// The prefix of the webhook headers.
    pub header_prefix: String,
    /// The expected user agent of the sender.
    pub user_agent: String,
    /// The address of the receiver; `None` if the deliveries were captured before the run.
    pub receiver: Option<String>,
    /// Under which address the service reaches it, if it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_url: Option<String>,
    /// The time at which it began to listen, in Unix seconds of its own clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<i64>,
    /// The time for which it listened, or the time between the first captured delivery and the last.
    pub lasted: Duration,
    /// `true` if no more deliveries can be on their way.
    pub settled: bool,
    /// The failure of the command that was to cause deliveries.
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
    /// The time at which its last byte was read, since the receiver began to listen.
    pub arrived: Duration,
    /// The declared endpoint that it came to, by its place in the list.
    pub endpoint: Option<usize>,
    /// `true` if it arrived at the target of a redirect that the receiver answered.
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
    /// The result of verifying its signature.
    pub signed: Signed,
}

/// The result of verifying a signature with the known secrets.
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
        /// `true` if the secret belongs to the endpoint that received the delivery.
        own: bool,
        /// In what it differs from an HMAC-SHA256 of `<t>.<body>` in small hexadecimal digits.
        differs: Vec<Difference>,
    },
}

/// The deviation of a signature's construction from the usual one.
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
    /// `true` if the address is reachable from the open internet.
    pub public: bool,
    /// `true` if the service accepted it.
    pub accepted: bool,
    /// The response.
    pub answer: String,
}

impl Delivery {
    /// Every value of a header as text, in order.
    pub fn values(&self, name: &str) -> Vec<String> {
        let fits = |it: &&(String, Octets)| it.0.eq_ignore_ascii_case(name);
        self.headers.iter().filter(fits).map(|(_, value)| value.lossy().into_owned()).collect()
    }

    /// Returns `true` if it was answered with a redirect.
    pub fn was_redirected(&self) -> bool {
        self.answered.is_some_and(|status| (300..400).contains(&status) && status != 304)
    }

    /// Returns `true` if the sender has no reason to repeat it.
    pub fn was_taken(&self) -> bool {
        self.answered.is_none_or(|status| (200..300).contains(&status))
    }
}

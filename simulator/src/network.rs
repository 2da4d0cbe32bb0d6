//! The simulated network: delivers attempts to hosts whose name ends in `.sim`. The main type is [`Network`].
//!
//! A merchant named `shop` receives the attempts for all endpoints at `shop.sim`. It accepts only bodies signed with
//! the newest secret of one of its endpoints.

use std::{
    collections::{BTreeMap, VecDeque},
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use bytes::Bytes;
use reference_core::{
    dialect::Dialect,
    endpoint::{Secret, address_rule},
    event::EventType,
    id::{AccountNo, EndpointNo},
    mode::Mode,
    outbox::{AttemptReport, AttemptResult, HttpTrace, SentHeaders},
    time::{Span, Timestamp},
};
use reference_wire::AttemptRequest;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The time between an attempt and its response.
const ROUND_TRIP: Span = Span::millis(40);
/// The time after which the service stops waiting (`open.delivery.time_out`).
const TIME_OUT: Span = Span::secs(15);
/// The response time of a lagging receiver: long enough for attempts to overtake each other, but below the time-out.
const LAG: Span = Span::secs(12);

/// The behaviour of a merchant's receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReceiverBehavior {
    /// Responds with 200 if the signature is valid, otherwise with 401.
    Up,
    /// Refuses connections.
    Down,
    /// Responds after the time-out.
    Slow,
    /// Receives the request, but its response is lost.
    Lost,
    /// Receives the request twice.
    Twice,
    /// Receives the request late, and responds within the time-out.
    Lagging,
    /// Responds with a redirect.
    Redirect,
    /// Its name resolves to a private address.
    Private,
    /// Responds with this status.
    Status(u16),
}

impl ReceiverBehavior {
    /// The names that [`ReceiverBehavior::parse`] accepts, for error messages.
    pub(crate) const NAMES: [&str; 9] =
        ["up", "down", "slow", "lost", "twice", "lagging", "redirect", "private", "a status from 100 to 599"];

    /// Parses `up`, `down`, `slow` (or `timeout`), `lost`, `twice`, `lagging`, `redirect`, `private`, or a status from
    /// 100 to 599; returns `None` for anything else.
    pub fn parse(text: &str) -> Option<ReceiverBehavior> {
        Some(match text {
            "up" => ReceiverBehavior::Up,
            "down" => ReceiverBehavior::Down,
            "slow" | "timeout" => ReceiverBehavior::Slow,
            "lost" => ReceiverBehavior::Lost,
            "twice" => ReceiverBehavior::Twice,
            "lagging" => ReceiverBehavior::Lagging,
            "redirect" => ReceiverBehavior::Redirect,
            "private" => ReceiverBehavior::Private,
            _ => {
                let is_three_digits = text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit());
                let status =
                    text.parse().ok().filter(|status| is_three_digits && (100..=599).contains(status))?;
                ReceiverBehavior::Status(status)
            }
        })
    }
}

/// A merchant's receiver.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Merchant {
    behavior: ReceiverBehavior,
    /// The behaviours for the next attempts, one each; `behavior` applies after them.
    script: VecDeque<ReceiverBehavior>,
    /// The newest secret of each of its endpoints. Bodies signed with an older one are not accepted.
    secrets: BTreeMap<(AccountNo, Mode, EndpointNo), Secret>,
}

impl Default for Merchant {
    fn default() -> Self {
        Merchant { behavior: ReceiverBehavior::Up, script: VecDeque::new(), secrets: BTreeMap::new() }
    }
}

/// An attempt whose result the service has not received yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InFlight {
    /// The account of the delivery.
    pub account: AccountNo,
    /// The mode of the delivery.
    pub mode: Mode,
    /// The request, without its body.
    pub request: AttemptRequest,
    /// The result, which is known in advance, with the sent headers if they are recorded.
    pub result: AttemptReport,
}

/// The arrival of an attempt at a merchant.
#[derive(Clone, Debug, Default)]
pub struct Arrival {
    /// The time of arrival; `None` if it did not arrive.
    pub arrived_at: Option<Timestamp>,
    /// The number of copies that arrived.
    pub copies: u32,
    /// `true` if it arrived although the host name resolves to a private address among others.
    pub is_private: bool,
}

/// Returns the addresses of a merchant's host. A private one follows a public one, so every address must be checked.
fn addresses_of(behavior: ReceiverBehavior) -> Vec<IpAddr> {
    let mut addresses = vec![IpAddr::V4(Ipv4Addr::new(44, 0, 0, 1))];
    if matches!(behavior, ReceiverBehavior::Private) {
        addresses.push(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 5)));
    }
    addresses
}

/// The exchange of one attempt with a merchant.
struct Exchange {
    /// The time from the attempt to its result.
    delay: Span,
    result: AttemptResult,
    arrival: Arrival,
}

/// The level of detail that the delivery log records for an attempt inside the simulated network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogDetail {
    /// The result only.
    Result,
    /// The result and the request headers.
    Headers,
}

/// All merchants, and all attempts in flight.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Network {
    merchants: BTreeMap<String, Merchant>,
    /// By the time at which the service gets the result, then in order of sending.
    flights: BTreeMap<(Timestamp, u64), InFlight>,
    /// The number of attempts so far.
    posted: u64,
}

impl Network {
    /// Sets a merchant's behaviours for the next attempts (`script`), and its behaviour after them. `None`
    /// and an empty `script` keep the previous values.
    pub(crate) fn set_behavior(
        &mut self,
        host: &str,
        behavior: Option<ReceiverBehavior>,
        script: Vec<ReceiverBehavior>,
    ) {
        let merchant = self.merchants.entry(host.to_owned()).or_default();
        merchant.behavior = behavior.unwrap_or(merchant.behavior);
        if !script.is_empty() {
            merchant.script = script.into();
        }
    }

    /// Resets every merchant to `up`.
    pub(crate) fn heal(&mut self) {
        for merchant in self.merchants.values_mut() {
            merchant.behavior = ReceiverBehavior::Up;
            merchant.script.clear();
        }
    }

    /// Sets the secret with which a merchant verifies the deliveries to one of its endpoints.
    pub(crate) fn set_secret(&mut self, host: &str, endpoint: (AccountNo, Mode, EndpointNo), secret: Secret) {
        self.merchants.entry(host.to_owned()).or_default().secrets.insert(endpoint, secret);
    }

    /// Returns the addresses that a name currently resolves to.
    pub fn resolve(&self, host: &str) -> Vec<IpAddr> {
        addresses_of(self.merchants.get(host).map_or(ReceiverBehavior::Up, |merchant| merchant.behavior))
    }

    /// Sends an attempt to the merchant at its URL, and returns its arrival.
    pub fn send_attempt(
        &mut self,
        now: Timestamp,
        (account, mode, attempt): (AccountNo, Mode, &AttemptRequest),
        detail: LogDetail,
    ) -> Arrival {
        let Exchange { delay, result, arrival } = self.exchange(now, attempt);
        let trace = (detail == LogDetail::Headers && arrival.arrived_at.is_some()).then(|| {
            let request_headers =
                SentHeaders::Derived { url: Arc::clone(&attempt.url), secret: attempt.secret.clone() };
            Box::new(HttpTrace { request_headers, ..HttpTrace::default() })
        });
        let result = AttemptReport { result, trace };
        let key = (now.plus(delay), self.posted);
        self.posted += 1;
        self.flights.insert(key, InFlight { account, mode, request: without_body(attempt), result });
        arrival
    }

    fn exchange(&mut self, now: Timestamp, attempt: &AttemptRequest) -> Exchange {
        let without_arrival = |delay, result| Exchange { delay, result, arrival: Arrival::default() };
        let host = attempt.url.host().to_string();
        if !attempt.url.is_simulated() {
            let reason = format!("{host} is not a host of the simulated network; its names end in .sim");
            return without_arrival(ROUND_TRIP, AttemptResult::Unreachable(reason));
        }
        let merchant = self.merchants.entry(host).or_default();
        // The host name is resolved before a request is sent, so a private address precedes the script.
        let resolves_to_private = matches!(merchant.behavior, ReceiverBehavior::Private);
        let scripted = if resolves_to_private { None } else { merchant.script.pop_front() };
        let behavior = scripted.unwrap_or(merchant.behavior);
        let is_private = matches!(behavior, ReceiverBehavior::Private);
        if let Err(refusal) = address_rule::check_resolved(&addresses_of(behavior)) {
            return without_arrival(Span::default(), AttemptResult::NotPublic(refusal.to_string()));
        }
        if matches!(behavior, ReceiverBehavior::Down) {
            let reason = "connection refused".to_owned();
            return without_arrival(ROUND_TRIP, AttemptResult::Unreachable(reason));
        }
        // The signature is valid exactly if the merchant knows the signing secret, so the secrets are compared instead.
        let verify = || {
            let is_known = merchant.secrets.values().any(|secret| secret.reveal() == attempt.secret.reveal());
            AttemptResult::Response(if is_known { 200 } else { 401 })
        };
        let (delay, result) = match behavior {
            ReceiverBehavior::Up | ReceiverBehavior::Twice | ReceiverBehavior::Private => {
                (ROUND_TRIP, verify())
            }
            ReceiverBehavior::Lagging => (LAG, verify()),
            ReceiverBehavior::Lost => {
                (ROUND_TRIP, AttemptResult::Unreachable("the connection broke".to_owned()))
            }
            ReceiverBehavior::Slow => (TIME_OUT, AttemptResult::TimedOut),
            ReceiverBehavior::Redirect => (ROUND_TRIP, AttemptResult::Response(302)),
            ReceiverBehavior::Status(status) => (ROUND_TRIP, AttemptResult::Response(status)),
            ReceiverBehavior::Down => unreachable!("a merchant that is down has returned above"),
        };
        let copies = if matches!(behavior, ReceiverBehavior::Twice) { 2 } else { 1 };
        Exchange { delay, result, arrival: Arrival { arrived_at: Some(now.plus(delay)), copies, is_private } }
    }

    /// Returns the time of the next result.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.flights.first_key_value().map(|((at, _), _)| *at)
    }

    /// Removes and returns the next attempt whose result the service receives by now.
    pub fn take_due(&mut self, now: Timestamp) -> Option<InFlight> {
        let entry = self.flights.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }

    /// Removes and returns all attempts in flight, because the service stopped.
    pub fn drop_all(&mut self) -> Vec<InFlight> {
        std::mem::take(&mut self.flights).into_values().collect()
    }
}

/// Returns all headers of an attempt, in the order in which they are sent.
pub fn delivery_headers(
    dialect: &Dialect,
    (authority, kind, delivery): (&str, EventType, Uuid),
    body_length: usize,
    signature: String,
) -> Vec<(String, String)> {
    let prefix = &dialect.header_prefix;
    vec![
        ("Host".to_owned(), authority.to_owned()),
        ("Content-Type".to_owned(), "application/json".to_owned()),
        ("Content-Length".to_owned(), body_length.to_string()),
        ("User-Agent".to_owned(), dialect.user_agent.clone()),
        (format!("{prefix}-Event"), kind.as_str().to_owned()),
        (format!("{prefix}-Delivery"), delivery.to_string()),
        (format!("{prefix}-Signature"), signature),
    ]
}

/// Returns an attempt without its body.
pub(crate) fn without_body(attempt: &AttemptRequest) -> AttemptRequest {
    AttemptRequest {
        delivery: attempt.delivery,
        id: attempt.id,
        endpoint: attempt.endpoint,
        url: attempt.url.clone(),
        kind: attempt.kind,
        secret: attempt.secret.clone(),
        body: Bytes::new(),
        attempt: attempt.attempt,
    }
}

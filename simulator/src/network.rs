//! The simulated network: posts to hosts whose name ends in `.sim`.
//!
//! A merchant named `shop` receives for all endpoints at `shop.sim`. Like a careful receiver, it accepts only posts
//! signed with a secret that it knows.

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

/// The time between a post and its response.
const ROUND_TRIP: Span = Span::millis(40);
/// The time after which the service stops waiting (`open.delivery.time_out`).
const TIME_OUT: Span = Span::secs(15);
/// The response time of a lagging receiver: long enough for posts to overtake each other, but below the time-out.
const LAG: Span = Span::secs(12);

/// The behaviour of a merchant's receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReceiverBehavior {
    /// Responds with 200 to posts that it can verify, otherwise with 401.
    Up,
    /// Refuses connections.
    Down,
    /// Responds after the time-out.
    Slow,
    /// Processes the post, but its response is lost.
    Lost,
    /// The network delivers the post twice.
    Twice,
    /// Receives the post late, and responds within the time-out.
    Lagging,
    /// Responds with a redirect.
    Redirect,
    /// Its name resolves to a private address.
    Private,
    /// Responds with this status.
    Status(u16),
}

impl ReceiverBehavior {
    /// The words that [`ReceiverBehavior::parse`] accepts, for error messages.
    pub(crate) const WORDS: [&str; 9] =
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
                let digits = text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit());
                let status = text.parse().ok().filter(|status| digits && (100..=599).contains(status))?;
                ReceiverBehavior::Status(status)
            }
        })
    }
}

/// A receiver.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Merchant {
    behavior: ReceiverBehavior,
    /// The scripted responses to the next posts, before its behaviour applies.
    script: VecDeque<ReceiverBehavior>,
    /// The newest secret of each of its endpoints, so that a post signed with an older one is not accepted.
    secrets: BTreeMap<(AccountNo, Mode, EndpointNo), Secret>,
}

impl Default for Merchant {
    fn default() -> Self {
        Merchant { behavior: ReceiverBehavior::Up, script: VecDeque::new(), secrets: BTreeMap::new() }
    }
}

/// A post that is not acknowledged yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InFlight {
    /// The account of the delivery.
    pub account: AccountNo,
    /// The mode of the delivery.
    pub mode: Mode,
    /// The post, without its body.
    pub post: AttemptRequest,
    /// The result, with the sent headers if they are recorded.
    pub result: AttemptReport,
}

/// The arrival of a post at a merchant.
#[derive(Clone, Debug, Default)]
pub struct Arrival {
    /// The time of arrival; `None` if it did not arrive.
    pub arrived: Option<Timestamp>,
    /// The number of copies that arrived.
    pub copies: u32,
    /// `true` if it arrived although one of the addresses of the name is private.
    pub is_private: bool,
}

/// Returns the addresses of a merchant's name. A private one follows a public one, so every address must be checked.
fn addresses_of(behavior: ReceiverBehavior) -> Vec<IpAddr> {
    let mut addresses = vec![IpAddr::V4(Ipv4Addr::new(44, 0, 0, 1))];
    if matches!(behavior, ReceiverBehavior::Private) {
        addresses.push(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 5)));
    }
    addresses
}

/// The details of an attempt inside the network that the delivery log records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogDetail {
    /// The result.
    Result,
    /// The result and the headers.
    Headers,
}

/// All merchants, and all posts in flight.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Network {
    merchants: BTreeMap<String, Merchant>,
    /// By the time at which the service gets the result, then in order of posting.
    flights: BTreeMap<(Timestamp, u64), InFlight>,
    posted: u64,
}

impl Network {
    /// Sets a merchant's responses to the next posts, and its behaviour after them.
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

    /// Gives a merchant the secret of one of its endpoints; replaces an older one.
    pub(crate) fn set_secret(&mut self, host: &str, endpoint: (AccountNo, Mode, EndpointNo), secret: Secret) {
        self.merchants.entry(host.to_owned()).or_default().secrets.insert(endpoint, secret);
    }

    /// Returns the addresses that a name currently resolves to.
    pub fn resolve(&self, host: &str) -> Vec<IpAddr> {
        addresses_of(self.merchants.get(host).map_or(ReceiverBehavior::Up, |merchant| merchant.behavior))
    }

    /// Posts a delivery to the checked address. Returns its arrival. Its headers, which are not read here, are signed
    /// with the time of the attempt.
    pub fn post(
        &mut self,
        now: Timestamp,
        (account, mode, post): (AccountNo, Mode, &AttemptRequest),
        detail: LogDetail,
    ) -> Arrival {
        let (delay, outcome, reception) = self.deliver(now, post);
        let trace = (detail == LogDetail::Headers && reception.arrived.is_some()).then(|| {
            let request_headers = SentHeaders::Of { url: Arc::clone(&post.url), secret: post.secret.clone() };
            Box::new(HttpTrace { request_headers, ..HttpTrace::default() })
        });
        let result = AttemptReport { result: outcome, trace };
        let key = (now.plus(delay), self.posted);
        self.posted += 1;
        self.flights.insert(key, InFlight { account, mode, post: label_of(post), result });
        reception
    }

    fn deliver(&mut self, now: Timestamp, post: &AttemptRequest) -> (Span, AttemptResult, Arrival) {
        let nothing = Arrival::default();
        let host = post.url.host().to_string();
        if !post.url.is_simulated() {
            let why = format!("{host} is not a host of the simulated network; its names end in .sim");
            return (ROUND_TRIP, AttemptResult::Unreachable(why), nothing);
        }
        let merchant = self.merchants.entry(host).or_default();
        let is_private = matches!(merchant.behavior, ReceiverBehavior::Private);
        let scripted = if is_private { None } else { merchant.script.pop_front() };
        let behavior = scripted.unwrap_or(merchant.behavior);
        let is_private = matches!(behavior, ReceiverBehavior::Private);
        if let Err(refusal) = address_rule::judge_resolved(&addresses_of(behavior)) {
            return (Span::default(), AttemptResult::Refused(refusal.to_string()), nothing);
        }
        if matches!(behavior, ReceiverBehavior::Down) {
            return (ROUND_TRIP, AttemptResult::Unreachable("connection refused".to_owned()), nothing);
        }
        // The body was signed just now, so it verifies only with the secret that signed it.
        let verified = || {
            let verifies = merchant.secrets.values().any(|secret| secret.reveal() == post.secret.reveal());
            AttemptResult::Answered(if verifies { 200 } else { 401 })
        };
        let (delay, outcome) = match behavior {
            ReceiverBehavior::Up | ReceiverBehavior::Twice | ReceiverBehavior::Private => {
                (ROUND_TRIP, verified())
            }
            ReceiverBehavior::Lagging => (LAG, verified()),
            ReceiverBehavior::Lost => {
                (ROUND_TRIP, AttemptResult::Unreachable("the connection broke".to_owned()))
            }
            ReceiverBehavior::Slow => (TIME_OUT, AttemptResult::TimedOut),
            ReceiverBehavior::Redirect => (ROUND_TRIP, AttemptResult::Answered(302)),
            ReceiverBehavior::Status(status) => (ROUND_TRIP, AttemptResult::Answered(status)),
            ReceiverBehavior::Down => unreachable!("nothing is sent to it"),
        };
        let copies = if matches!(behavior, ReceiverBehavior::Twice) { 2 } else { 1 };
        (delay, outcome, Arrival { arrived: Some(now.plus(delay)), copies, is_private })
    }

    /// Returns the time of the next result.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.flights.first_key_value().map(|((at, _), _)| *at)
    }

    /// Removes and returns the next post whose result is known by now.
    pub fn take_due(&mut self, now: Timestamp) -> Option<InFlight> {
        let entry = self.flights.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }

    /// Drops all posts in flight because the service stopped; returns them.
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

/// Returns a post without its body.
pub(crate) fn label_of(post: &AttemptRequest) -> AttemptRequest {
    AttemptRequest {
        delivery: post.delivery,
        id: post.id,
        endpoint: post.endpoint,
        url: post.url.clone(),
        kind: post.kind,
        secret: post.secret.clone(),
        body: Bytes::new(),
        attempt: post.attempt,
    }
}

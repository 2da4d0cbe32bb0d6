//! The simulated network: posts to hosts whose name ends in `.sim`.
//!
//! A merchant named `shop` receives for every endpoint at `shop.sim`. It takes what is signed with a
//! secret that it was told, as a careful receiver does.

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

/// The time that a post and its answer take together.
const ROUND_TRIP: Span = Span::millis(40);
/// After this the service gives up waiting (`open.delivery.time_out`).
const TIME_OUT: Span = Span::secs(15);
/// The time that a lagging receiver takes: long enough for posts to overtake each other, short of a time-out.
const LAG: Span = Span::secs(12);

/// The behaviour of a merchant's receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReceiverBehavior {
    /// Answers 200 to what it can verify, 401 to the rest.
    Up,
    /// Takes no connection.
    Down,
    /// Answers after the service has stopped waiting.
    Slow,
    /// Takes the post and acts on it, but the answer gets lost.
    Lost,
    /// The network hands the post over twice.
    Twice,
    /// Gets the post late, and answers in time.
    Lagging,
    /// Answers with a redirect.
    Redirect,
    /// Its name has come to mean a private address.
    Private,
    /// Answers with this status.
    Status(u16),
}

impl ReceiverBehavior {
    /// The words that [`ReceiverBehavior::parse`] reads, for error messages.
    pub(crate) const WORDS: [&str; 9] =
        ["up", "down", "slow", "lost", "twice", "lagging", "redirect", "private", "a status from 100 to 599"];

    /// The behavior of `up`, `down`, `slow` (or `timeout`), `lost`, `twice`, `lagging`, `redirect`, `private`, or a
    /// status from 100 to 599; `None` for anything else.
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

/// One receiver.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Merchant {
    behavior: ReceiverBehavior,
    /// The answers to the next posts, before its usual behavior applies again.
    script: VecDeque<ReceiverBehavior>,
    /// The secret of each of its endpoints: the newest, so that nothing signed with an older one passes.
    secrets: BTreeMap<(AccountNo, Mode, EndpointNo), Secret>,
}

impl Default for Merchant {
    fn default() -> Self {
        Merchant { behavior: ReceiverBehavior::Up, script: VecDeque::new(), secrets: BTreeMap::new() }
    }
}

/// A post on its way, or its answer on the way back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InFlight {
    /// The account of the delivery.
    pub account: AccountNo,
    /// In which mode.
    pub mode: Mode,
    /// The post, without its body.
    pub post: AttemptRequest,
    /// The result, and the sent headers if they are kept.
    pub result: AttemptReport,
}

/// The arrival of a post at a merchant.
#[derive(Clone, Debug, Default)]
pub struct Arrival {
    /// The time of arrival, if it arrived.
    pub arrived: Option<Timestamp>,
    /// The number of copies.
    pub copies: u32,
}

/// The part of an attempt inside the network that the delivery log keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogDetail {
    /// The result alone.
    Result,
    /// Its headers too.
    Headers,
}

/// Every merchant, and every post between the service and one of them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Network {
    merchants: BTreeMap<String, Merchant>,
    /// By the time at which the service learns how it ended, then in order of posting.
    flights: BTreeMap<(Timestamp, u64), InFlight>,
    posted: u64,
}

impl Network {
    /// Sets the behaviour of a merchant from now on, and its answers to the next posts before that.
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

    /// Every merchant is up again.
    pub(crate) fn heal(&mut self) {
        for merchant in self.merchants.values_mut() {
            merchant.behavior = ReceiverBehavior::Up;
            merchant.script.clear();
        }
    }

    /// A merchant learns the secret of one of its endpoints, and forgets the one before.
    pub(crate) fn teach(&mut self, host: &str, endpoint: (AccountNo, Mode, EndpointNo), secret: Secret) {
        self.merchants.entry(host.to_owned()).or_default().secrets.insert(endpoint, secret);
    }

    /// Returns the addresses that a name resolves to now.
    pub fn resolve(&self, host: &str) -> Vec<IpAddr> {
        let behavior = self.merchants.get(host).map_or(ReceiverBehavior::Up, |merchant| merchant.behavior);
        let address = match behavior {
            ReceiverBehavior::Private => Ipv4Addr::new(10, 0, 0, 5),
            _ => Ipv4Addr::new(44, 0, 0, 1),
        };
        vec![IpAddr::V4(address)]
    }

    /// Posts a delivery to the address that was judged. Says what the merchant got of it: what is signed with the time of
    /// the attempt, which nobody reads here.
    pub fn post(
        &mut self,
        now: Timestamp,
        (account, mode, post): (AccountNo, Mode, &AttemptRequest),
        detail: LogDetail,
    ) -> Arrival {
        let (delay, outcome, reception) = self.meet(now, post);
        let trace = (detail == LogDetail::Headers && reception.arrived.is_some()).then(|| {
            let request_headers = SentHeaders::Of { url: Arc::clone(&post.url), secret: post.secret.clone() };
            Box::new(HttpTrace { request_headers, ..HttpTrace::default() })
        });
        let result = AttemptReport { result: outcome, trace };
        let place = (now.plus(delay), self.posted);
        self.posted += 1;
        self.flights.insert(place, InFlight { account, mode, post: label_of(post), result });
        reception
    }

    fn meet(&mut self, now: Timestamp, post: &AttemptRequest) -> (Span, AttemptResult, Arrival) {
        let nothing = Arrival::default();
        let host = post.url.host().to_string();
        if !post.url.is_simulated() {
            let why = format!("{host} is not a host of the simulated network; its names end in .sim");
            return (ROUND_TRIP, AttemptResult::Unreachable(why), nothing);
        }
        if let Err(refusal) = address_rule::judge_resolved(&self.resolve(&host)) {
            return (Span::default(), AttemptResult::Refused(refusal.to_string()), nothing);
        }
        let merchant = self.merchants.entry(host).or_default();
        let behavior = merchant.script.pop_front().unwrap_or(merchant.behavior);
        if matches!(behavior, ReceiverBehavior::Down) {
            return (ROUND_TRIP, AttemptResult::Unreachable("connection refused".to_owned()), nothing);
        }
        if matches!(behavior, ReceiverBehavior::Private) {
            return (Span::default(), AttemptResult::Refused("the address is private".to_owned()), nothing);
        }
        // Signed a moment ago over these very bytes: it verifies by the secret that signed it, and by no other.
        let verified = || {
            let verifies = merchant.secrets.values().any(|secret| secret.reveal() == post.secret.reveal());
            AttemptResult::Answered(if verifies { 200 } else { 401 })
        };
        let (delay, outcome) = match behavior {
            ReceiverBehavior::Up | ReceiverBehavior::Twice => (ROUND_TRIP, verified()),
            ReceiverBehavior::Lagging => (LAG, verified()),
            ReceiverBehavior::Lost => {
                (ROUND_TRIP, AttemptResult::Unreachable("the connection broke".to_owned()))
            }
            ReceiverBehavior::Slow => (TIME_OUT, AttemptResult::TimedOut),
            ReceiverBehavior::Redirect => (ROUND_TRIP, AttemptResult::Answered(302)),
            ReceiverBehavior::Status(status) => (ROUND_TRIP, AttemptResult::Answered(status)),
            ReceiverBehavior::Down | ReceiverBehavior::Private => unreachable!("nothing is sent to these"),
        };
        let copies = if matches!(behavior, ReceiverBehavior::Twice) { 2 } else { 1 };
        (delay, outcome, Arrival { arrived: Some(now.plus(delay)), copies })
    }

    /// Returns the time of the next answer.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.flights.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next post whose outcome is known by now.
    pub fn land(&mut self, now: Timestamp) -> Option<InFlight> {
        let entry = self.flights.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }

    /// The service stopped: whatever was on its way, nobody waits for the answer.
    pub fn cut(&mut self) -> Vec<InFlight> {
        std::mem::take(&mut self.flights).into_values().collect()
    }
}

/// All headers of an attempt, in the order in which they are sent.
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

/// A post without its body, which is on its way.
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

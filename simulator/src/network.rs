//! The simulated network: what becomes of a post to a host whose name ends in `.sim`.
//!
//! A merchant named `shop` receives for every endpoint at `shop.sim`. It verifies signatures with the
//! secrets it was told, as a careful receiver does.

use std::{
    collections::{BTreeMap, VecDeque},
    net::{IpAddr, Ipv4Addr},
};

use reference_core::{
    book::Post,
    endpoint::{Secret, address_rule},
    id::{AccountNo, EndpointNo},
    mode::Mode,
    outbox::Outcome,
    signature,
    time::{Span, Timestamp},
};

/// How long a post and its answer take together.
const ROUND_TRIP: Span = Span::millis(40);
/// After this the service gives up waiting (`open.delivery.time_out`).
const TIME_OUT: Span = Span::secs(15);

/// How a merchant's receiver is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Answers 200 to what it can verify, 401 to the rest.
    Up,
    /// Takes no connection.
    Down,
    /// Answers after the service has stopped waiting.
    Slow,
    /// Answers with a redirect.
    Redirect,
    /// Its name has come to mean a private address.
    Private,
    /// Answers with this status.
    Status(u16),
}

impl Mood {
    /// Reads `up`, `down`, `slow` (or `timeout`), `redirect`, `private`, or a status from 100 to 599.
    pub fn parse(text: &str) -> Option<Mood> {
        Some(match text {
            "up" => Mood::Up,
            "down" => Mood::Down,
            "slow" | "timeout" => Mood::Slow,
            "redirect" => Mood::Redirect,
            "private" => Mood::Private,
            _ => {
                let digits = text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit());
                let status = text.parse().ok().filter(|status| digits && (100..=599).contains(status))?;
                Mood::Status(status)
            }
        })
    }
}

/// One receiver.
#[derive(Clone, Debug)]
struct Merchant {
    mood: Mood,
    /// How the next posts are answered, before its mood counts again.
    script: VecDeque<Mood>,
    /// The secret of each of its endpoints: the newest, so that nothing signed with an older one passes.
    secrets: BTreeMap<(AccountNo, Mode, EndpointNo), Secret>,
}

impl Default for Merchant {
    fn default() -> Self {
        Merchant { mood: Mood::Up, script: VecDeque::new(), secrets: BTreeMap::new() }
    }
}

/// A post on its way, or its answer on the way back.
#[derive(Clone, Debug)]
pub struct Flight {
    /// Whose delivery it is.
    pub account: AccountNo,
    /// In which mode.
    pub mode: Mode,
    /// What was posted.
    pub post: Post,
    /// How it ends.
    pub outcome: Outcome,
}

/// Every merchant, and every post between the service and one of them.
#[derive(Default)]
pub struct Network {
    merchants: BTreeMap<String, Merchant>,
    /// By the time at which the service learns how it ended, then in order of posting.
    flights: BTreeMap<(Timestamp, u64), Flight>,
    posted: u64,
}

impl Network {
    /// How a merchant answers from now on, and how it answers the next posts before that.
    pub fn set_mood(&mut self, host: &str, mood: Option<Mood>, script: Vec<Mood>) {
        let merchant = self.merchants.entry(host.to_owned()).or_default();
        merchant.mood = mood.unwrap_or(merchant.mood);
        if !script.is_empty() {
            merchant.script = script.into();
        }
    }

    /// A merchant learns the secret of one of its endpoints, and forgets the one before.
    pub fn teach(&mut self, host: &str, endpoint: (AccountNo, Mode, EndpointNo), secret: Secret) {
        self.merchants.entry(host.to_owned()).or_default().secrets.insert(endpoint, secret);
    }

    /// What a name resolves to now.
    pub fn resolve(&self, host: &str) -> Vec<IpAddr> {
        let mood = self.merchants.get(host).map_or(Mood::Up, |merchant| merchant.mood);
        let address = match mood {
            Mood::Private => Ipv4Addr::new(10, 0, 0, 5),
            _ => Ipv4Addr::new(44, 0, 0, 1),
        };
        vec![IpAddr::V4(address)]
    }

    /// Posts a delivery: signed with the time of the attempt, to the address that was judged.
    pub fn post(&mut self, now: Timestamp, (account, mode, post): (AccountNo, Mode, Post)) {
        let (delay, outcome) = self.meet(now, &post);
        let place = (now.plus(delay), self.posted);
        self.posted += 1;
        self.flights.insert(place, Flight { account, mode, post, outcome });
    }

    fn meet(&mut self, now: Timestamp, post: &Post) -> (Span, Outcome) {
        let host = post.url.host().to_string();
        if !post.url.is_simulated() {
            let why = format!("{host} is not a host of the simulated network; its names end in .sim");
            return (ROUND_TRIP, Outcome::Unreachable(why));
        }
        if let Err(refusal) = address_rule::judge_resolved(&self.resolve(&host)) {
            return (Span::default(), Outcome::Refused(refusal.to_string()));
        }
        let merchant = self.merchants.entry(host).or_default();
        let mood = merchant.script.pop_front().unwrap_or(merchant.mood);
        match mood {
            Mood::Up => {
                let header = signature::sign(post.secret.reveal(), now.unix_secs(), &post.body);
                let verifies = merchant.secrets.values().any(|secret| {
                    signature::verify(secret.reveal(), &header, &post.body, now.unix_secs()).is_ok()
                });
                (ROUND_TRIP, Outcome::Answered(if verifies { 200 } else { 401 }))
            }
            Mood::Down => (ROUND_TRIP, Outcome::Unreachable("connection refused".to_owned())),
            Mood::Slow => (TIME_OUT, Outcome::TimedOut),
            Mood::Redirect => (ROUND_TRIP, Outcome::Answered(302)),
            Mood::Private => (Span::default(), Outcome::Refused("the address is private".to_owned())),
            Mood::Status(status) => (ROUND_TRIP, Outcome::Answered(status)),
        }
    }

    /// When the next answer comes.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.flights.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next post whose outcome is known by now.
    pub fn land(&mut self, now: Timestamp) -> Option<Flight> {
        let entry = self.flights.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }

    /// The service stopped: whatever was on its way, nobody waits for the answer.
    pub fn cut(&mut self) -> Vec<Flight> {
        std::mem::take(&mut self.flights).into_values().collect()
    }
}

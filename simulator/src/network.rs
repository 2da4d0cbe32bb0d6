//! The simulated network: what becomes of a post to a host whose name ends in `.sim`.
//!
//! A merchant named `shop` receives for every endpoint at `shop.sim`. It takes what is signed with a
//! secret that it was told, as a careful receiver does.

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
    time::{Span, Timestamp},
};

use crate::sandbox::label_of;

/// How long a post and its answer take together.
const ROUND_TRIP: Span = Span::millis(40);
/// After this the service gives up waiting (`open.delivery.time_out`).
const TIME_OUT: Span = Span::secs(15);
/// How long a lagging receiver takes: long enough for posts to overtake each other, short of a time-out.
const LAG: Span = Span::secs(12);

/// How a merchant's receiver is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
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

impl Mood {
    /// Reads `up`, `down`, `slow` (or `timeout`), `lost`, `twice`, `lagging`, `redirect`, `private`, or a status
    /// from 100 to 599.
    pub fn parse(text: &str) -> Option<Mood> {
        Some(match text {
            "up" => Mood::Up,
            "down" => Mood::Down,
            "slow" | "timeout" => Mood::Slow,
            "lost" => Mood::Lost,
            "twice" => Mood::Twice,
            "lagging" => Mood::Lagging,
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
    /// What was posted, without its body.
    pub post: Post,
    /// How it ends.
    pub outcome: Outcome,
}

/// What a merchant got of a post.
#[derive(Clone, Debug, Default)]
pub struct Reception {
    /// When it came, if it came.
    pub arrived: Option<Timestamp>,
    /// How often.
    pub copies: u32,
    /// The signature header that it carried.
    pub signature: String,
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

    /// Every merchant is up again.
    pub fn heal(&mut self) {
        for merchant in self.merchants.values_mut() {
            merchant.mood = Mood::Up;
            merchant.script.clear();
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

    /// Posts a delivery: signed with the time of the attempt, to the address that was judged. Says what the
    /// merchant got of it.
    pub fn post(&mut self, now: Timestamp, (account, mode, post): (AccountNo, Mode, &Post)) -> Reception {
        let (delay, outcome, reception) = self.meet(now, post);
        let place = (now.plus(delay), self.posted);
        self.posted += 1;
        self.flights.insert(place, Flight { account, mode, post: label_of(post), outcome });
        reception
    }

    fn meet(&mut self, now: Timestamp, post: &Post) -> (Span, Outcome, Reception) {
        let nothing = Reception::default();
        let host = post.url.host().to_string();
        if !post.url.is_simulated() {
            let why = format!("{host} is not a host of the simulated network; its names end in .sim");
            return (ROUND_TRIP, Outcome::Unreachable(why), nothing);
        }
        if let Err(refusal) = address_rule::judge_resolved(&self.resolve(&host)) {
            return (Span::default(), Outcome::Refused(refusal.to_string()), nothing);
        }
        let merchant = self.merchants.entry(host).or_default();
        let mood = merchant.script.pop_front().unwrap_or(merchant.mood);
        if matches!(mood, Mood::Down) {
            return (ROUND_TRIP, Outcome::Unreachable("connection refused".to_owned()), nothing);
        }
        if matches!(mood, Mood::Private) {
            return (Span::default(), Outcome::Refused("the address is private".to_owned()), nothing);
        }
        let signature = post.secret.sign(now.unix_secs(), &post.body);
        // Signed a moment ago over these very bytes: it verifies by the secret that signed it, and by no other.
        let verified = || {
            let verifies = merchant.secrets.values().any(|secret| secret.reveal() == post.secret.reveal());
            Outcome::Answered(if verifies { 200 } else { 401 })
        };
        let (delay, outcome) = match mood {
            Mood::Up | Mood::Twice => (ROUND_TRIP, verified()),
            Mood::Lagging => (LAG, verified()),
            Mood::Lost => (ROUND_TRIP, Outcome::Unreachable("the connection broke".to_owned())),
            Mood::Slow => (TIME_OUT, Outcome::TimedOut),
            Mood::Redirect => (ROUND_TRIP, Outcome::Answered(302)),
            Mood::Status(status) => (ROUND_TRIP, Outcome::Answered(status)),
            Mood::Down | Mood::Private => unreachable!("nothing is sent to these"),
        };
        let copies = if matches!(mood, Mood::Twice) { 2 } else { 1 };
        (delay, outcome, Reception { arrived: Some(now.plus(delay)), copies, signature })
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

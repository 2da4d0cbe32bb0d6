//! Wrong services that the machine must find, and how short a list it makes of each.
//!
//! They are the bugs that sweeps are proven with, played here against the service's doors alone.

use std::collections::BTreeMap;

use proptest::test_runner::RngSeed;
use reference_core::{
    book::Post,
    outbox::Outcome,
    time::Timestamp,
    wire::http::{Request, Response},
};
use simulator::{
    law::Law,
    tamper::{OwnRequest, Tamper},
};

use crate::{SHRINKS_MAX, answers, notices, posts, search};

/// A service that is wrong in one way.
pub(crate) struct Bug {
    /// What is wrong.
    pub(crate) name: &'static str,
    /// The laws that a sweep sees broken.
    #[expect(dead_code, reason = "sweeps go by it")]
    pub(crate) laws: &'static [Law],
    pub(crate) make: fn() -> Box<dyn Tamper>,
}

/// What nobody can see here, and why.
const ELSEWHERE: [(&str, &str); 5] = [
    ("late money is accepted where there is none", "it spoils an answer of the sandbox"),
    ("there is no limit", "these keys have none"),
    ("the limit counts all keys of the account", "these keys have none"),
    ("Retry-After is a second, always", "these keys have none"),
    ("a description is kept without what is not ASCII", "these charges say nothing that is not"),
];
/// A bug that so many lists do not show is missed.
const LISTS_MAX: u32 = 400;
/// Fixed, so that the figures below stay true.
const SEED: RngSeed = RngSeed::Fixed(1);
/// What is found must be told in so many deeds, of forty and more that were drawn.
const DEEDS_MAX: usize = 6;
/// Bugs that are told again and again until no deed can be left out: that takes longer than to find them.
const TOLD: [&str; 9] = [
    "one confirmation too few",
    "what vanishes is not noticed",
    "late money is lost",
    "every event goes to one endpoint twice",
    "nothing is tried a third time",
    "an invoice that is over is withdrawn",
    "an isolation leak through one filter",
    "an idempotency key is not heard",
    "a later page lacks its first record",
];

/// Requests are done as often as they are sent.
struct KeyUnheard;

impl Tamper for KeyUnheard {
    fn request(&mut self, _: Timestamp, request: &Request<'_>) -> Option<OwnRequest> {
        Some(OwnRequest { idempotency_key: None, ..OwnRequest::of(request) })
    }
}

/// Whoever uses a key again gets the first answer, whatever was asked.
#[derive(Default)]
struct KeyIsAll {
    answers: BTreeMap<(String, Vec<u8>), Response>,
}

impl Tamper for KeyIsAll {
    fn response(&mut self, _: Timestamp, request: &Request<'_>, response: &mut Response) {
        let Some(key) = request.idempotency_key else { return };
        let place = (request.path.to_owned(), [request.authorization.unwrap_or_default(), key].concat());
        if response.status < 300 {
            self.answers.insert(place, response.clone());
        } else if let Some(first) = self.answers.get(&place) {
            *response = first.clone();
        }
    }
}

/// Locks end when somebody happens to ask.
struct Sleeper;

impl Tamper for Sleeper {
    fn wakes(&mut self, _: Timestamp) -> bool {
        false
    }
}

/// It falls over at a number that nobody thought of.
struct Fragile;

impl Tamper for Fragile {
    fn outcome(&mut self, _: Timestamp, _: &Post, outcome: &mut Outcome) {
        assert!(!matches!(outcome, Outcome::Answered(299)), "no such status");
    }
}

fn bugs() -> Vec<Bug> {
    let mut all = notices::bugs();
    all.extend(posts::bugs());
    all.extend(answers::bugs());
    all.push(Bug { name: "an idempotency key is not heard", laws: &[], make: || Box::new(KeyUnheard) });
    all.push(Bug {
        name: "an idempotency key answers for any request",
        laws: &[],
        make: || Box::<KeyIsAll>::default(),
    });
    all.push(Bug { name: "a receiver's status makes it panic", laws: &[], make: || Box::new(Fragile) });
    all.push(Bug { name: "locks end when somebody asks", laws: &[], make: || Box::new(Sleeper) });
    all
}

#[test]
fn every_wrong_service_is_found() {
    let (seen, unseen): (Vec<Bug>, Vec<Bug>) =
        bugs().into_iter().partition(|bug| ELSEWHERE.iter().all(|(name, _)| *name != bug.name));
    assert_eq!(unseen.len(), ELSEWHERE.len(), "an exception names no bug");
    let half = |part: usize| -> Vec<&str> {
        let own = seen.iter().enumerate().filter(|(place, _)| place % 2 == part).map(|(_, bug)| bug);
        own.filter(|bug| search(LISTS_MAX, SEED, 0, bug.make).is_ok()).map(|bug| bug.name).collect()
    };
    let missed = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        [half(0), other.join().expect("the other half ends")].concat()
    });
    assert!(missed.is_empty(), "missed in {LISTS_MAX} lists: {missed:#?}");
}

#[test]
fn what_is_found_is_told_in_few_deeds() {
    let bugs = bugs();
    for name in TOLD {
        let bug = bugs.iter().find(|bug| bug.name == name).expect("a bug with this name");
        let failure = search(LISTS_MAX, SEED, SHRINKS_MAX, bug.make).expect_err(name);
        assert!(failure.deeds.len() <= DEEDS_MAX, "{name}: {}", failure.report());
    }
}

//! The replay of a recorded world in the model, entry by entry: inputs go to the model too, and recorded responses and
//! posts must be those of the model.

mod answers;
mod asked;
mod calls;
mod faults;
mod posts;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use reference_core::{asset::Asset, mode::Mode, sighting::Sighting, time::Timestamp};

pub use self::faults::FaultSet;
use self::{answers::ListReads, faults::FaultTracker, posts::Posts};
use super::{Findings, Law, Shown};
use crate::{
    model::{Account, Ids, Model, Situation, Subject},
    witness::{BookId, Entry, Observation, Record, RecordedCall},
    workload::Fault,
};

/// An event that must have been recorded, and what was going on around it.
#[derive(Clone, Debug)]
pub struct ExpectedEvent {
    /// Its place in the record: twice the number of the entry that it came before, and one more if that entry led
    /// to it.
    pub place: usize,
    /// The time.
    pub at: Timestamp,
    /// The type of the event.
    pub kind: &'static str,
    /// The code of the charge or the invoice.
    pub subject: String,
    /// The status of the subject then.
    pub status: &'static str,
    /// The situation of the chain for the charge.
    pub situation: Situation,
    /// The faults around it.
    pub faults: FaultSet,
}

/// The facts known when a record begins.
pub struct Beginning<'a> {
    /// The id of the account that the world started with.
    pub account: &'a str,
    /// The relevant settings of that account.
    pub terms: Account,
    /// The key of each mode that the world started with.
    pub keys: [(String, Mode); 2],
    /// The keys that only read.
    pub observers: BTreeMap<BookId, String>,
    /// The objects as they were shown: the ids, addresses and rates that no request fixes.
    pub shown: &'a Shown,
    /// The address of the hosted pages, and of the API.
    pub public_url: &'a str,
}

/// The key of a call. The name of the scheme is taken in either case.
fn bearer(call: &RecordedCall) -> &str {
    let text = call.bearer.as_deref().unwrap_or_default();
    match text.split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => key,
        _ => text,
    }
}

/// The object of a code, as a number in its book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Object {
    Charge(usize),
    Invoice(usize),
    Link(usize),
}

/// The model beside a record.
pub struct Follower<'a> {
    /// The expected state.
    pub model: Model,
    /// The public names of everything.
    pub ids: BTreeMap<BookId, Ids>,
    /// The expected events, in order.
    pub expected: Vec<ExpectedEvent>,
    /// The differences between actual and expected answers and posts.
    pub findings: Findings,
    /// The address of the hosted pages, and of the API.
    pub public_url: &'a str,
    shown: &'a Shown,
    /// In order of opening.
    accounts: Vec<String>,
    bearers: BTreeMap<String, BookId>,
    /// The revoked bearers.
    revoked: BTreeSet<String>,
    /// The bearers of keys by their ids.
    keys: BTreeMap<String, String>,
    /// The places of keys in lists.
    lists: ListReads,
    objects: BTreeMap<String, (BookId, Object)>,
    addresses: BTreeMap<(Mode, Asset, &'a str), (BookId, usize)>,
    answers: Vec<(u16, Bytes)>,
    faults: FaultTracker,
    /// The faults of the transfers of each charge.
    of_charges: BTreeMap<(BookId, usize), FaultSet>,
    posts: Posts<'a>,
    place: usize,
    /// Set by a rule that covers the answer of the current call.
    is_judged: bool,
}

impl<'a> Follower<'a> {
    /// Follows everything that was written down, up to `now`.
    pub fn follow(beginning: Beginning<'a>, record: &'a Record, now: Timestamp) -> Follower<'a> {
        let Beginning { account, terms, keys, observers, shown, public_url } = beginning;
        let mut follower = Follower {
            model: Model::default(),
            ids: BTreeMap::new(),
            expected: Vec::new(),
            findings: Findings::default(),
            public_url,
            revoked: BTreeSet::new(),
            keys: BTreeMap::new(),
            lists: ListReads::default(),
            shown,
            accounts: Vec::new(),
            bearers: BTreeMap::new(),
            objects: BTreeMap::new(),
            addresses: BTreeMap::new(),
            answers: Vec::new(),
            faults: FaultTracker::default(),
            of_charges: BTreeMap::new(),
            posts: Posts::default(),
            place: 0,
            is_judged: false,
        };
        follower.open_account(account.to_owned(), terms, keys);
        follower.bearers.extend(observers.into_iter().map(|(id, key)| (key, id)));
        for (number, Entry { at, what }) in record.seen.iter().enumerate() {
            follower.place = 2 * number;
            follower.wake(*at);
            follower.place += 1;
            match what {
                Observation::Call(call) => follower.call(*at, call),
                Observation::Told(sightings) => follower.hear(*at, sightings),
                Observation::Restarted => {
                    follower.model.restart(*at);
                    follower.lists.restart();
                    follower.faults.strike_everywhere(*at, Fault::Restart);
                }
                Observation::Post(post) => follower.post(*at, post),
                Observation::Landed { delivery, outcome } => {
                    follower.land(*at, *delivery, outcome.is_success());
                }
            }
            follower.note_events();
        }
        follower.place = 2 * record.seen.len();
        follower.wake(now);
        follower.finish_posts();
        follower
    }

    fn open_account(&mut self, id: String, terms: Account, keys: impl IntoIterator<Item = (String, Mode)>) {
        let no = self.model.open_account(terms);
        self.accounts.push(id);
        self.bearers.extend(keys.into_iter().map(|(key, mode)| (key, (no, mode))));
        for mode in Mode::ALL {
            let listed = self.shown.books.get(&(no, mode)).map(|book| &book.events);
            let events = listed.into_iter().flatten().rev().map(|event| event.id.clone()).collect();
            self.ids.insert((no, mode), Ids { events, ..Ids::default() });
        }
    }

    /// The number of an account, by its id.
    fn account(&self, id: &str) -> Option<usize> {
        self.accounts.iter().position(|account| account == id)
    }

    /// Returns the book of the key in a call.
    fn asker(&self, call: &RecordedCall) -> Option<BookId> {
        self.bearers.get(bearer(call)).copied()
    }

    /// Locks end one after the other.
    fn wake(&mut self, now: Timestamp) {
        while let Some(end) = self.model.next_lock().filter(|end| *end <= now) {
            self.model.wake(end);
            self.note_events();
        }
    }

    fn hear(&mut self, now: Timestamp, sightings: &[Sighting]) {
        let mut parts: BTreeMap<BookId, Vec<(usize, &Sighting)>> = BTreeMap::new();
        for sighting in sightings {
            let address = (sighting.mode, sighting.asset, sighting.address.as_str());
            let Some((id, no)) = self.addresses.get(&address).copied() else { continue };
            let all = self.of_charges.entry((id, no)).or_default();
            *all = all.with(self.faults.of(&sighting.txid));
            parts.entry(id).or_default().push((no, sighting));
        }
        for (id, part) in parts {
            self.model.at(id).1.hear(now, part.into_iter());
        }
    }

    /// Notes what the model has recorded since it was last looked at, and what has to be delivered.
    fn note_events(&mut self) {
        for (id, book) in self.model.books() {
            let (events, deliveries) = self.posts.news(id, book);
            for event in &book.events[events] {
                let around = |no: usize| {
                    let chain = (id.1, book.charges[no].terms.asset);
                    let own = self.of_charges.get(&(id, no)).copied().unwrap_or_default();
                    own.with(self.faults.around(event.at, chain))
                };
                let faults = match event.subject {
                    Subject::Charge(no) => around(no),
                    Subject::Invoice(no) => match book.invoices[no].charges.last() {
                        Some(newest) => around(*newest),
                        None => self.faults.everywhere(event.at),
                    },
                };
                self.expected.push(ExpectedEvent {
                    place: self.place,
                    at: event.at,
                    kind: event.kind,
                    subject: self.ids[&id].code(event.subject).to_owned(),
                    status: event.then.status,
                    situation: event.then.situation,
                    faults,
                });
            }
            self.posts.expect(id, deliveries);
        }
    }

    /// An answer that the state of things demands.
    fn must_answer(
        &mut self,
        law: Law,
        at: Timestamp,
        (act, about): (&str, &str),
        expected: u16,
        actual: u16,
    ) {
        self.is_judged = true;
        self.findings.check(law, Some(at), || {
            (expected != actual).then(|| {
                let shape = format!("{act} is answered {actual}, not {expected}");
                (shape, format!("{act} {about} at {at}"))
            })
        });
    }
}

//! The replay of a recorded world in the model, entry by entry. The model gets the same inputs; the recorded responses
//! and webhook attempts must equal those of the model.
//!
//! [`ModelReplay::run`] replays a whole record. Example: for a recorded `POST /v1/charges`, it opens a charge in the
//! model, compares the status and the body of the recorded response with the model's, and expects a delivery of
//! `charge.created` to each endpoint that is registered for it.

mod calls;
mod charges;
mod deliveries;
mod faults;
mod invoices_and_links;
mod refusals;
mod request_fields;
mod response_format;
mod responses;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use reference_core::{
    asset::Asset,
    mode::Mode,
    outbox::AttemptResult,
    sighting::Sighting,
    time::{Span, Timestamp},
};

pub use self::faults::FaultSet;
use self::{deliveries::DeliveryTracker, faults::FaultTracker, responses::ListAnchors};
use super::{ApiState, Findings, Invariant, limits::LimitWindows};
use crate::{
    model::{Account, Ids, Model, Situation, Subject},
    record::{BookId, Entry, Observation, Record, RecordedCall},
    workload::Fault,
};

/// An expected event, and the circumstances at its time.
#[derive(Clone, Debug)]
pub struct ExpectedEvent {
    /// The position in the record: `2 * n` if the event precedes entry `n`, `2 * n + 1` if that entry caused it.
    pub position: usize,
    /// The time.
    pub at: Timestamp,
    /// The type of the event.
    pub kind: &'static str,
    /// The code of the charge or the invoice.
    pub subject: String,
    /// The status of the object at the time.
    pub status: &'static str,
    /// The state of the chain for the charge.
    pub situation: Situation,
    /// The active faults.
    pub faults: FaultSet,
}

/// The facts known before the replay.
pub struct ReplayStart<'a> {
    /// The account that the world started with.
    pub account: Account,
    /// The first keys.
    pub keys: [(String, Mode); 2],
    /// The keys with which the books are read at the end. They send no recorded request that changes anything.
    pub observers: BTreeMap<BookId, String>,
    /// The objects as the API shows them at the end: the source of ids, addresses and rates that no request determines.
    pub api_state: &'a ApiState,
    /// The base URL of the hosted pages and of the API.
    pub public_url: &'a str,
}

/// An object, as a number in its book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Object {
    Charge(usize),
    Invoice(usize),
    Link(usize),
}

/// The charge or invoice of a request.
#[derive(Clone, Copy)]
struct ObjectRef<'c> {
    book: BookId,
    /// The number in the book.
    number: usize,
    code: &'c str,
}

/// A replay of a record in the model.
pub struct ModelReplay<'a> {
    /// The model.
    pub model: Model,
    /// The public ids of all objects.
    pub ids: BTreeMap<BookId, Ids>,
    /// The expected events, in order.
    pub expected: Vec<ExpectedEvent>,
    /// The differences between actual and expected responses and webhook attempts.
    pub findings: Findings,
    /// The base URL of the hosted pages and of the API.
    pub public_url: &'a str,
    api_state: &'a ApiState,
    /// The book of each API key.
    books_by_key: BTreeMap<String, BookId>,
    /// The revoked API keys.
    revoked_keys: BTreeSet<String>,
    /// The API keys by their ids.
    keys_by_id: BTreeMap<String, String>,
    list_anchors: ListAnchors,
    limits: LimitWindows,
    /// The body of the first 401 and of the first 404; all later ones must equal it.
    first_refusals: BTreeMap<u16, Bytes>,
    /// The objects by their codes.
    objects: BTreeMap<String, (BookId, Object)>,
    /// The charges by their deposit addresses, as numbers in their books.
    addresses: BTreeMap<(Mode, Asset, &'a str), (BookId, usize)>,
    /// The statuses and bodies of the responses that are stored for idempotency keys.
    stored_responses: Vec<(u16, Bytes)>,
    faults: FaultTracker,
    /// The faults of the transfers to each charge.
    charge_faults: BTreeMap<(BookId, usize), FaultSet>,
    deliveries: DeliveryTracker<'a>,
    /// The current position, as in [`ExpectedEvent::position`].
    position: usize,
    /// `true` if a check covered the response to the current request.
    is_response_checked: bool,
}

impl<'a> ModelReplay<'a> {
    /// Replays a record up to `now`.
    pub fn run(replay_start: ReplayStart<'a>, record: &'a Record, now: Timestamp) -> ModelReplay<'a> {
        let ReplayStart { account, keys, observers, api_state, public_url } = replay_start;
        let mut replay = ModelReplay {
            model: Model::default(),
            ids: BTreeMap::new(),
            expected: Vec::new(),
            findings: Findings::default(),
            public_url,
            revoked_keys: BTreeSet::new(),
            keys_by_id: BTreeMap::new(),
            list_anchors: ListAnchors::default(),
            limits: LimitWindows::default(),
            first_refusals: BTreeMap::new(),
            api_state,
            books_by_key: BTreeMap::new(),
            objects: BTreeMap::new(),
            addresses: BTreeMap::new(),
            stored_responses: Vec::new(),
            faults: FaultTracker::default(),
            charge_faults: BTreeMap::new(),
            deliveries: DeliveryTracker::default(),
            position: 0,
            is_response_checked: false,
        };
        replay.open_account(account, keys);
        replay.books_by_key.extend(observers.into_iter().map(|(id, key)| (key, id)));
        for (index, Entry { at, observation }) in record.entries.iter().enumerate() {
            replay.position = 2 * index;
            if let Observation::Heights(heights) = observation {
                // Heights are applied before the rate locks that end at the same time expire.
                replay.expire_locks(at.minus(Span(1)));
                replay.model.on_heights(heights);
            }
            replay.expire_locks(*at);
            replay.position += 1;
            match observation {
                Observation::Call(call) => replay.replay_call(*at, call),
                Observation::Sightings(sightings) => replay.on_sightings(*at, sightings),
                Observation::Heights(_) => {}
                Observation::Restart => {
                    replay.model.restart(*at);
                    replay.list_anchors.restart();
                    replay.limits.restart();
                    replay.faults.record_world_fault(*at, Fault::Restart);
                }
                Observation::AttemptStart(attempt) => replay.check_attempt(*at, attempt),
                Observation::AttemptEnd { delivery, outcome } => {
                    let is_success = matches!(outcome, AttemptResult::Response(200..=299));
                    replay.apply_attempt_result(*at, *delivery, is_success);
                }
            }
            replay.process_model_events();
        }
        replay.position = 2 * record.entries.len();
        replay.expire_locks(now);
        replay.check_remaining_deliveries();
        replay
    }

    /// Opens an account with its first keys.
    fn open_account(&mut self, account: Account, keys: impl IntoIterator<Item = (String, Mode)>) {
        let number = self.model.open_account(account);
        self.books_by_key.extend(keys.into_iter().map(|(key, mode)| (key, (number, mode))));
        for mode in Mode::ALL {
            let listed = self.api_state.books.get(&(number, mode)).map(|book| &book.events);
            let events = listed.into_iter().flatten().rev().map(|event| event.id.clone()).collect();
            self.ids.insert((number, mode), Ids { events, ..Ids::default() });
        }
    }

    /// Returns the number of the account with this id.
    fn account_number(&self, id: &str) -> Option<usize> {
        self.model.accounts.iter().position(|account| account.id == id)
    }

    /// Returns the book of the key in a call.
    fn calling_book(&self, call: &RecordedCall) -> Option<BookId> {
        self.books_by_key.get(call.key()).copied()
    }

    /// Expires the rate locks that end by `now`, in order of time.
    fn expire_locks(&mut self, now: Timestamp) {
        while let Some(end) = self.model.next_lock_end().filter(|end| *end <= now) {
            self.model.expire_locks(end);
            self.process_model_events();
        }
    }

    /// Applies the sightings of one moment, book by book.
    fn on_sightings(&mut self, now: Timestamp, sightings: &[Sighting]) {
        let mut by_book: BTreeMap<BookId, Vec<(usize, &Sighting)>> = BTreeMap::new();
        for sighting in sightings {
            let address = (sighting.mode, sighting.asset, sighting.address.as_str());
            let Some((id, number)) = self.addresses.get(&address).copied() else { continue };
            let faults = self.charge_faults.entry((id, number)).or_default();
            *faults = faults.union(self.faults.transaction_faults(&sighting.txid));
            by_book.entry(id).or_default().push((number, sighting));
        }
        for (id, sightings) in by_book {
            self.model.account_and_book_mut(id).1.on_sightings(now, sightings.into_iter());
        }
    }

    /// Processes the events and deliveries that the model recorded since the last call.
    fn process_model_events(&mut self) {
        for (id, book) in self.model.books() {
            let (events, deliveries) = self.deliveries.take_unprocessed(id, book);
            for event in &book.events[events] {
                let faults_around = |number: usize| {
                    let chain = (id.1, book.charges[number].terms.asset);
                    let transfer_faults = self.charge_faults.get(&(id, number)).copied().unwrap_or_default();
                    transfer_faults.union(self.faults.chain_faults(event.at, chain))
                };
                let faults = match event.subject {
                    Subject::Charge(number) => faults_around(number),
                    Subject::Invoice(number) => match book.invoices[number].charges.last() {
                        Some(newest) => faults_around(*newest),
                        None => self.faults.world_faults(event.at),
                    },
                };
                self.expected.push(ExpectedEvent {
                    position: self.position,
                    at: event.at,
                    kind: event.kind,
                    subject: self.ids[&id].code(event.subject).to_owned(),
                    status: event.snapshot.status,
                    situation: event.snapshot.situation,
                    faults,
                });
            }
            self.deliveries.expect_deliveries(id, deliveries);
        }
    }

    /// Checks that the response to a request has the expected status. `action` names the kind of request, `subject` the
    /// object or the path.
    fn check_status(
        &mut self,
        invariant: Invariant,
        now: Timestamp,
        (action, subject): (&str, &str),
        expected: u16,
        actual: u16,
    ) {
        self.is_response_checked = true;
        self.findings.check(invariant, Some(now), || {
            (expected != actual).then(|| {
                let shape = format!("{action}: status {actual}, not {expected}");
                (shape, format!("{action} {subject} at {now}"))
            })
        });
    }
}

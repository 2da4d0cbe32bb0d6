//! Planted faults that only the state-machine test detects: repeated requests of every kind, restarts, and panics.

use std::collections::{BTreeMap, BTreeSet};

use reference_core::{
    outbox::AttemptResult,
    sighting::Sighting,
    time::{Span, Timestamp},
};
use reference_wire::{AttemptRequest, Request, Response};
use serde_json::Value;
use simulator::{
    model::HOLD_MAX,
    tamper::{OwnedRequest, Tamper},
};

use super::PlantedFault;

/// A fault: idempotency keys are ignored.
struct KeyUnheard;

impl Tamper for KeyUnheard {
    fn request(&mut self, _: Timestamp, request: &Request<'_>) -> Option<OwnedRequest> {
        Some(OwnedRequest { idempotency_key: None, ..OwnedRequest::of(request) })
    }
}

/// A fault: a repeated idempotency key gets the first response, whatever the request.
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

/// A fault: locks end only when a request arrives.
struct Sleeper;

impl Tamper for Sleeper {
    fn wakes(&mut self, _: Timestamp) -> bool {
        false
    }
}

/// A fault: the end of a hold of one day, or of a lock while a payment is pending, has no effect.
#[derive(Default)]
struct EndsUnseen {
    ends: BTreeMap<String, Timestamp>,
    seen: BTreeSet<String>,
    after: Span,
}

impl EndsUnseen {
    fn after(after: Span) -> Box<dyn Tamper> {
        Box::new(EndsUnseen { after, ..EndsUnseen::default() })
    }
}

impl Tamper for EndsUnseen {
    fn response(&mut self, _: Timestamp, request: &Request<'_>, response: &mut Response) {
        if request.method == "POST" && request.path == "/v1/charges" {
            let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
            let text = |key: &str| body["data"][key].as_str().unwrap_or_default();
            if let Some(end) = Timestamp::parse(text("expires_at")) {
                self.ends.insert(text("deposit_address").to_owned(), end);
            }
        }
    }

    fn sightings(&mut self, now: Timestamp, sightings: &mut Vec<Sighting>) -> Timestamp {
        self.seen.extend(sightings.iter().map(|sighting| sighting.address.clone()));
        now
    }

    fn wakes(&mut self, now: Timestamp) -> bool {
        !self.ends.iter().any(|(address, end)| end.plus(self.after) == now && self.seen.contains(address))
    }
}

/// A fault: an unusual status causes a panic.
struct Fragile;

impl Tamper for Fragile {
    fn outcome(&mut self, _: Timestamp, _: &AttemptRequest, outcome: &mut AttemptResult) {
        assert!(!matches!(outcome, AttemptResult::Answered(299)), "no such status");
    }
}

pub(super) const FAULTS: &[PlantedFault] = &[
    PlantedFault::new("an idempotency key is ignored", &[], || Box::new(KeyUnheard)),
    PlantedFault::new("an idempotency key answers for any request", &[], || Box::<KeyIsAll>::default()),
    PlantedFault::new("a receiver's status makes it panic", &[], || Box::new(Fragile)),
    PlantedFault::new("locks end at the next request", &[], || Box::new(Sleeper)),
    PlantedFault::new("dust holds a charge open", &[], || EndsUnseen::after(Span(0))),
    PlantedFault::new("a hold has no end", &[], || EndsUnseen::after(HOLD_MAX)),
];

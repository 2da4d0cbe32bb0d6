//! What must be answered when a request comes again under its `Idempotency-Key`.

use std::collections::BTreeMap;

use bytes::Bytes;
use reference_core::time::{Span, Timestamp};

use super::Model;
use crate::{
    law::Law,
    witness::{Call, Whose},
};

/// So long an answer is given again.
const KEPT: Span = Span::hours(24);

/// Answers that are given again, by whose they are, the method with its path, and the key.
pub(super) type Repeats = BTreeMap<(Whose, String, String), Given>;

/// A request and its answer.
pub(super) struct Given {
    at: Timestamp,
    query: Option<String>,
    body: Vec<u8>,
    status: u16,
    answer: Bytes,
}

impl Model<'_> {
    /// Whether a request came before, or only its key: then it does nothing.
    pub(super) fn is_repeat(&mut self, at: Timestamp, call: &Call) -> bool {
        let Some((whose, key)) = self.asker(call).zip(call.idempotency_key.clone()) else { return false };
        let place = (whose, format!("{} {}", call.method, call.path), key);
        let about = format!("{} at {at}", place.1);
        let Some(given) = self.repeats.get(&place).filter(|given| at.since(given.at) < KEPT) else {
            self.findings.check(Law::Once, Some(at), || {
                call.replayed.then(|| ("a first request is answered as a repeated one".to_owned(), about))
            });
            if (200..300).contains(&call.status) {
                let (query, body, answer) = (call.query.clone(), call.body.clone(), call.answer.clone());
                self.repeats.insert(place, Given { at, query, body, status: call.status, answer });
            }
            return false;
        };
        let is_same = (&given.query, &given.body) == (&call.query, &call.body);
        let fits = match is_same {
            true => call.replayed && (given.status, &given.answer) == (call.status, &call.answer),
            false => call.status == 409 && !call.replayed,
        };
        self.findings.check(Law::Once, Some(at), || {
            (!fits).then(|| {
                let shape = match is_same {
                    true => "a request that is repeated is not answered as it was",
                    false => "a key that was used for another request is not refused",
                };
                (shape.to_owned(), format!("{about}, answered {}", call.status))
            })
        });
        true
    }
}

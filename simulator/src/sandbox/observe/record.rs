//! The observer that writes the [`Record`] of a world, for the invariants.

use reference_core::{asset::Asset, mode::Mode, outbox::AttemptResult, sighting::Sighting, time::Timestamp};
use reference_wire::{AttemptRequest, Request, Response};

use super::{AccountBook, Observer, WorldView};
use crate::{
    network::Arrival,
    record::{Entry, Observation, Record, RecordedAttempt, RecordedCall},
};

impl Observer for Record {
    fn on_sightings(&mut self, view: &WorldView<'_>, sightings: &[Sighting]) {
        self.push(view.now, Observation::Sightings(sightings.to_vec()));
    }

    fn on_heights(&mut self, now: Timestamp, heights: &[((Mode, Asset), u64)]) {
        self.push(now, Observation::Heights(heights.to_vec()));
    }

    fn on_attempt(
        &mut self,
        view: &WorldView<'_>,
        (account, mode): AccountBook,
        attempt: &AttemptRequest,
        arrival: &Arrival,
    ) {
        let (signature, body) = self.attempt_contents(view.now, attempt, arrival.arrived_at.is_some());
        let recorded = RecordedAttempt {
            mode,
            endpoint: view.service.account(account).book(mode).endpoint(attempt.endpoint).id,
            host: attempt.url.host().to_string(),
            delivery: attempt.id,
            kind: attempt.kind.as_str(),
            signature,
            body,
            arrived_at: arrival.arrived_at,
            copies: arrival.copies,
            is_private: arrival.is_private,
        };
        self.push(view.now, Observation::AttemptStart(Box::new(recorded)));
    }

    fn on_attempt_result(&mut self, now: Timestamp, attempt: &AttemptRequest, outcome: &AttemptResult) {
        self.push(now, Observation::AttemptEnd { delivery: attempt.id, outcome: outcome.clone() });
    }

    fn on_restart(&mut self, view: &WorldView<'_>) {
        self.push(view.now, Observation::Restart);
    }
}

/// Inserts a call before the events that it caused: at `index`, the length of the record when the call began.
pub(in crate::sandbox) fn insert_call(
    record: &mut Record,
    (index, at): (usize, Timestamp),
    request: &Request<'_>,
    response: &Response,
) {
    let entry = Entry { at, observation: Observation::Call(Box::new(recorded_call(request, response))) };
    record.entries.insert(index.min(record.entries.len()), entry);
}

/// Returns the record of a request and its response, as an outside observer sees them.
fn recorded_call(request: &Request<'_>, response: &Response) -> RecordedCall {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let bearer = request.authorization.map(text);
    RecordedCall {
        method: request.method.to_owned(),
        path: request.path.to_owned(),
        query: request.query.map(str::to_owned),
        bearer: bearer.map(|value| value.strip_prefix("Bearer ").map(str::to_owned).unwrap_or(value)),
        idempotency_key: request.idempotency_key.map(text),
        content_type: request.content_type.map(text),
        body: request.body.to_vec(),
        status: response.status,
        headers: response.headers.clone(),
        response_body: response.body.clone(),
    }
}

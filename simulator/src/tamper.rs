//! Tampering: tests simulate a faulty service by changing its input or output. The main type is the trait [`Tamper`].
//!
//! The service itself has no switch for faults: only code can install a [`Tamper`] in a world. The few faults that a
//! user of `sweep` and `play` can enable in simulated worlds are in [`crate::demo`].

use reference_core::{mode::Mode, outbox::AttemptResult, sighting::Sighting, time::Timestamp};
use reference_wire::{AttemptRequest, Request, Response};
use serde::{Deserialize, Serialize};

/// A request with owned values.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are those of the request")]
pub struct OwnedRequest {
    pub method: String,
    pub path: String,
    pub query: Option<String>,
    pub authorization: Option<Vec<u8>>,
    pub content_type: Option<Vec<u8>>,
    pub idempotency_key: Option<Vec<u8>>,
    pub base: String,
    pub body: Vec<u8>,
}

impl OwnedRequest {
    /// Copies a borrowed request.
    pub fn from_request(request: &Request<'_>) -> OwnedRequest {
        OwnedRequest {
            method: request.method.to_owned(),
            path: request.path.to_owned(),
            query: request.query.map(str::to_owned),
            authorization: request.authorization.map(<[u8]>::to_vec),
            content_type: request.content_type.map(<[u8]>::to_vec),
            idempotency_key: request.idempotency_key.map(<[u8]>::to_vec),
            base: request.base.to_owned(),
            body: request.body.to_vec(),
        }
    }

    /// Returns the request with borrowed values.
    pub fn borrow(&self) -> Request<'_> {
        Request {
            method: &self.method,
            path: &self.path,
            query: self.query.as_deref(),
            authorization: self.authorization.as_deref(),
            content_type: self.content_type.as_deref(),
            idempotency_key: self.idempotency_key.as_deref(),
            base: &self.base,
            body: &self.body,
        }
    }
}

/// The handling of an outgoing attempt.
pub enum AttemptFate {
    /// The attempt is sent.
    Unchanged,
    /// The attempt is not sent, and the service receives a success.
    Dropped,
    /// The attempt is sent, after this extra one.
    WithExtra(Box<AttemptRequest>),
}

/// A hook between the service and the world that can change inputs and outputs. The default methods change nothing.
pub trait Tamper: Send {
    /// Returns a replacement for an incoming request, if any.
    fn on_request(&mut self, _now: Timestamp, _request: &Request<'_>) -> Option<OwnedRequest> {
        None
    }

    /// Changes an outgoing response.
    fn on_response(&mut self, _now: Timestamp, _request: &Request<'_>, _response: &mut Response) {}

    /// Changes the watchers' sightings after they were recorded. Returns the time at which the service receives
    /// them, which must not be before an earlier input.
    fn on_sightings(&mut self, now: Timestamp, _sightings: &mut Vec<Sighting>) -> Timestamp {
        now
    }

    /// Changes an outgoing attempt, and decides how it is handled.
    fn on_attempt(&mut self, _now: Timestamp, _mode: Mode, _attempt: &mut AttemptRequest) -> AttemptFate {
        AttemptFate::Unchanged
    }

    /// Changes the result of an attempt before the service receives it.
    fn on_attempt_result(
        &mut self,
        _now: Timestamp,
        _attempt: &AttemptRequest,
        _outcome: &mut AttemptResult,
    ) {
    }

    /// Called after the service was restarted.
    fn on_restart(&mut self, _now: Timestamp) {}
}

//! Tampering: a test makes a faulty service by changing its input or output.
//!
//! The service itself has no switch to be wrong: only code can hand a [`Tamper`] to a world. The few faults that a
//! user of `sweep` and `play` can enable in simulated worlds are in [`crate::demo`].

use reference_core::{mode::Mode, outbox::AttemptResult, sighting::Sighting, time::Timestamp};
use reference_wire::{AttemptRequest, Request, Response};
use serde::{Deserialize, Serialize};

/// A request with nothing borrowed.
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
    /// A copy.
    pub fn of(request: &Request<'_>) -> OwnedRequest {
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

    /// The request, to be handed on.
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

/// The fate of an outgoing post.
pub enum PostFate {
    /// It goes as it is.
    AsItIs,
    /// It never leaves, and the service believes that it arrived.
    Dropped,
    /// Another one goes right after it.
    WithAnother(Box<AttemptRequest>),
}

/// A change between the service and the world. By default it changes nothing.
pub trait Tamper: Send {
    /// A request on its way in; another one may take its place.
    fn request(&mut self, _now: Timestamp, _request: &Request<'_>) -> Option<OwnedRequest> {
        None
    }

    /// An answer on its way out.
    fn response(&mut self, _now: Timestamp, _request: &Request<'_>, _response: &mut Response) {}

    /// Changes the watchers' sightings after they were recorded. Returns the time at which the service gets them:
    /// never before an earlier input.
    fn sightings(&mut self, now: Timestamp, _sightings: &mut Vec<Sighting>) -> Timestamp {
        now
    }

    /// A post on its way out.
    fn post(&mut self, _now: Timestamp, _mode: Mode, _post: &mut AttemptRequest) -> PostFate {
        PostFate::AsItIs
    }

    /// Changes the result of a post on its way in.
    fn outcome(&mut self, _now: Timestamp, _post: &AttemptRequest, _outcome: &mut AttemptResult) {}

    /// Returns `true` if the service is woken now, as it asked. Only a driver that steps a service asks: a world
    /// goes on when all that is due is done, so there the service is always woken.
    fn wakes(&mut self, _now: Timestamp) -> bool {
        true
    }

    /// The service stopped and started again.
    fn restarted(&mut self, _now: Timestamp) {}
}

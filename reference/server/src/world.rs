//! The interface between the host and a world.

use std::net::IpAddr;

use reference_core::{error::ApiError, outbox::AttemptReport, time::Timestamp};
use reference_wire::{Request, Response};
use simulator::{
    api::WorldEvent,
    sandbox::{AdmittedRequest, AttemptId, FirstKeys, OutgoingAttempt, PendingAdvance, Progress, Sandbox},
};

/// The head of a request, known before its body arrives.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// `POST`, …
    pub method: &'a str,
    /// The path as received, without any prefix of the host's.
    pub path: &'a str,
    /// The `Authorization` header; `None` if there is none or more than one.
    pub authorization: Option<&'a [u8]>,
}

/// The relation of a replayed world to the one that it replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreKind {
    /// The same world at its last commit.
    LastCommit,
    /// The same world at an earlier position.
    Rewind {
        /// The number of records up to that position.
        to: u64,
    },
}

/// A simulated service that the host drives: it responds to requests, and events happen in it as time passes.
pub trait World: Send {
    /// Returns the time of the service clock.
    fn now(&self) -> Timestamp;

    /// Returns the time of the next scheduled event; `None` if nothing is scheduled.
    fn next_due(&self) -> Option<Timestamp>;

    /// Advances the clock to `now`; everything due by then happens.
    fn advance_to(&mut self, now: Timestamp);

    /// Returns the sandbox, for typed reads; `None` for a world without one.
    fn sandbox(&self) -> Option<&Sandbox> {
        None
    }

    /// Responds to a request to `/v1` or `/sandbox`. Afterwards the service clock may be later than `now`. A call that
    /// moves the clock may have to wait for attempts to end.
    fn respond(&mut self, now: Timestamp, request: &Request<'_>) -> Progress;

    /// Returns the keys that the world started with.
    fn first_keys(&self) -> FirstKeys;

    /// Authenticates a request to `/v1` before its body arrives, for [`World::respond_as`].
    /// `Ok(None)` if only [`World::respond`] can decide, with the body.
    ///
    /// # Errors
    ///
    /// The error response, if no body could change it.
    fn admit_head(
        &mut self,
        _now: Timestamp,
        _head: RequestHead<'_>,
    ) -> Result<Option<AdmittedRequest>, Response> {
        Ok(None)
    }

    /// Returns `true` if a key was created in this world, revoked or not.
    fn knows_key(&self, _authorization: &[u8]) -> bool {
        true
    }

    /// Authenticates a request, for [`World::respond_as`].
    ///
    /// # Errors
    ///
    /// The error response. A world without keys refuses every request.
    fn admit(&mut self, _now: Timestamp, _authorization: Option<&[u8]>) -> Result<AdmittedRequest, Response> {
        Err(Response::refusal(&ApiError::Unauthenticated))
    }

    /// Responds to an authenticated request, without counting it against the limit again.
    fn respond_as(
        &mut self,
        _now: Timestamp,
        _admitted: &AdmittedRequest,
        _request: &Request<'_>,
    ) -> Progress {
        unreachable!("only a world with keys has authenticated requests")
    }

    /// Returns the number of observable events so far. Pages update when it changes.
    fn event_count(&self) -> u64 {
        0
    }

    /// Returns the estimated memory of the world and its records in bytes.
    fn held_bytes(&self) -> u64 {
        0
    }

    /// Returns the events after the `n`th that are still stored.
    fn events_after(&self, _n: u64) -> Vec<WorldEvent> {
        Vec::new()
    }

    // A world that delivers nothing over the network needs none of the following methods.

    /// Continues a call that moves the clock, after an attempt ended.
    fn continue_call(&mut self, _now: Timestamp, _pending: PendingAdvance) -> Progress {
        unreachable!("only a world that delivers over the network waits for an attempt to end")
    }

    /// Returns the delivery attempts that the host must send. Each is returned once.
    fn take_outgoing(&mut self) -> Vec<OutgoingAttempt> {
        Vec::new()
    }

    /// Reports the result of an attempt that the host sent.
    fn on_attempt_result(&mut self, _now: Timestamp, _id: AttemptId, _report: AttemptReport) {}

    /// Reports the addresses of a name that the host resolved.
    fn on_name_resolved(&mut self, _host: &str, _addresses: Vec<IpAddr>) {}

    /// Reports that the host forwards deliveries to this name, whatever its addresses are.
    fn declare_forwarded(&mut self, _host: &str) {}

    /// Replaces this world with a replayed one that has the same journal.
    fn replace(&mut self, _replacement: Sandbox, _restore_kind: RestoreKind) {
        unreachable!("only a world with a journal can be replayed")
    }
}

impl World for Sandbox {
    fn now(&self) -> Timestamp {
        Sandbox::now(self)
    }

    fn next_due(&self) -> Option<Timestamp> {
        Sandbox::next_due(self)
    }

    fn advance_to(&mut self, now: Timestamp) {
        Sandbox::advance_to(self, now);
    }

    fn sandbox(&self) -> Option<&Sandbox> {
        Some(self)
    }

    fn respond(&mut self, now: Timestamp, request: &Request<'_>) -> Progress {
        self.call(now, request)
    }

    fn admit_head(
        &mut self,
        now: Timestamp,
        head: RequestHead<'_>,
    ) -> Result<Option<AdmittedRequest>, Response> {
        Sandbox::admit_head(self, now, head.method, head.path, head.authorization).map(Some)
    }

    fn knows_key(&self, authorization: &[u8]) -> bool {
        Sandbox::knows_key(self, authorization)
    }

    fn admit(&mut self, now: Timestamp, authorization: Option<&[u8]>) -> Result<AdmittedRequest, Response> {
        Sandbox::admit(self, now, authorization)
    }

    fn respond_as(&mut self, now: Timestamp, admitted: &AdmittedRequest, request: &Request<'_>) -> Progress {
        self.call_as(now, admitted, request)
    }

    fn continue_call(&mut self, now: Timestamp, pending: PendingAdvance) -> Progress {
        Sandbox::continue_call(self, now, pending)
    }

    fn take_outgoing(&mut self) -> Vec<OutgoingAttempt> {
        Sandbox::take_outgoing(self)
    }

    fn on_attempt_result(&mut self, now: Timestamp, id: AttemptId, report: AttemptReport) {
        Sandbox::on_attempt_result(self, now, id, report);
    }

    fn on_name_resolved(&mut self, host: &str, addresses: Vec<IpAddr>) {
        Sandbox::set_resolution(self, host, addresses);
    }

    fn declare_forwarded(&mut self, host: &str) {
        Sandbox::declare_forwarded(self, host);
    }

    fn first_keys(&self) -> FirstKeys {
        Sandbox::first_keys(self)
    }

    fn event_count(&self) -> u64 {
        self.log().count()
    }

    fn held_bytes(&self) -> u64 {
        Sandbox::estimated_bytes(self)
    }

    fn events_after(&self, n: u64) -> Vec<WorldEvent> {
        self.log().events_after(n).cloned().collect()
    }
}

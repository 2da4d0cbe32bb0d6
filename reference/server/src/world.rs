//! The interface between the host and a world.

use std::net::IpAddr;

use reference_core::{error::ApiError, outbox::AttemptReport, time::Timestamp};
use reference_wire::{Request, Response};
use simulator::{
    api::WorldEvent,
    sandbox::{Admitted, AttemptId, FirstKeys, OutgoingAttempt, PendingAdvance, Progress, Sandbox},
};

/// The head of a request, known before its body arrives.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// `POST`, …
    pub method: &'a str,
    /// The path as received, without any prefix of the host's.
    pub path: &'a str,
    /// The `Authorization` header; nothing if there is none or more than one.
    pub authorization: Option<&'a [u8]>,
}

/// The reason why another world takes the place of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Succession {
    /// It is the same one, as far as it was kept.
    Kept,
    /// It is the same one at an earlier moment: after so many of its records.
    WentBack {
        /// The number.
        to: u64,
    },
}

/// A world that a host can keep: it answers, and things happen in it as time goes by.
pub trait World: Send {
    /// Returns the time of the service clock.
    fn now(&self) -> Timestamp;

    /// Returns the time of the next event that happens by itself; `None` if the world is at rest.
    fn next_due(&self) -> Option<Timestamp>;

    /// Lets everything happen that is due up to `now`.
    fn advance_to(&mut self, now: Timestamp);

    /// Returns the sandbox, for typed reads; `None` for a world without one.
    fn sandbox(&self) -> Option<&Sandbox> {
        None
    }

    /// Answers a request to `/v1` or `/sandbox`. Its own time may be later afterwards than `now`. A call that
    /// moves the clock may have to wait for landings.
    fn respond(&mut self, now: Timestamp, request: &Request<'_>) -> Progress;

    /// The keys that the world started with.
    fn first_keys(&self) -> FirstKeys;

    /// Authenticates a request to `/v1` before its body arrives: [`World::respond_as`] answers it then.
    /// `Ok(None)`: only [`World::respond`] can tell, with the body.
    ///
    /// # Errors
    ///
    /// The refusal as it goes back, where no body could change it.
    fn admit_head(&mut self, _now: Timestamp, _head: RequestHead<'_>) -> Result<Option<Admitted>, Response> {
        Ok(None)
    }

    /// Returns `true` if a key was created in this world, revoked or not: a key of another world does not mean
    /// this one.
    fn knows_key(&self, _authorization: &[u8]) -> bool {
        true
    }

    // A world that knows no keys lets nobody in.

    /// Authenticates a request that is answered by [`World::respond_as`].
    ///
    /// # Errors
    ///
    /// The refusal as it goes back.
    fn admit(&mut self, _now: Timestamp, _authorization: Option<&[u8]>) -> Result<Admitted, Response> {
        Err(Response::refusal(&ApiError::UnknownKey))
    }

    /// Answers a request of a key that was let in, which does not count again.
    fn respond_as(&mut self, _now: Timestamp, _admitted: &Admitted, _request: &Request<'_>) -> Progress {
        unreachable!("only a world that lets keys in has admitted keys")
    }

    /// Counts what happened so far, as far as somebody outside could notice it. Pages look again when it changes.
    fn happened(&self) -> u64 {
        0
    }

    /// Bytes of memory that the world and its records hold, estimated.
    fn held_bytes(&self) -> u64 {
        0
    }

    /// Returns the events after the `n`th, as far as they are still known.
    fn events_after(&self, _n: u64) -> Vec<WorldEvent> {
        Vec::new()
    }

    // A world that posts nothing over the network needs none of what follows.

    /// Goes on with a call after an attempt that ended.
    fn go_on(&mut self, _now: Timestamp, _pending: PendingAdvance) -> Progress {
        unreachable!("only a world that posts over the network waits for an attempt to end")
    }

    /// Deliveries for the host to post, each handed out once.
    fn take_outgoing(&mut self) -> Vec<OutgoingAttempt> {
        Vec::new()
    }

    /// A delivery that the host posted has ended.
    fn on_attempt_result(&mut self, _now: Timestamp, _id: AttemptId, _report: AttemptReport) {}

    /// The host looked a name up.
    fn learn_name(&mut self, _host: &str, _addresses: Vec<IpAddr>) {}

    /// The host has a way of its own to a name.
    fn vouch_for(&mut self, _host: &str) {}

    /// Becomes another world, with the same journal.
    fn replace(&mut self, _with: Sandbox, _succession: Succession) {
        unreachable!("only a world with a journal can be made again")
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

    fn admit_head(&mut self, now: Timestamp, head: RequestHead<'_>) -> Result<Option<Admitted>, Response> {
        Sandbox::admit_head(self, now, head.method, head.path, head.authorization).map(Some)
    }

    fn knows_key(&self, authorization: &[u8]) -> bool {
        Sandbox::knows_key(self, authorization)
    }

    fn admit(&mut self, now: Timestamp, authorization: Option<&[u8]>) -> Result<Admitted, Response> {
        Sandbox::admit(self, now, authorization)
    }

    fn respond_as(&mut self, now: Timestamp, admitted: &Admitted, request: &Request<'_>) -> Progress {
        self.call_as(now, admitted, request)
    }

    fn go_on(&mut self, now: Timestamp, pending: PendingAdvance) -> Progress {
        Sandbox::go_on(self, now, pending)
    }

    fn take_outgoing(&mut self) -> Vec<OutgoingAttempt> {
        Sandbox::take_outgoing(self)
    }

    fn on_attempt_result(&mut self, now: Timestamp, id: AttemptId, report: AttemptReport) {
        Sandbox::on_attempt_result(self, now, id, report);
    }

    fn learn_name(&mut self, host: &str, addresses: Vec<IpAddr>) {
        Sandbox::learn_name(self, host, addresses);
    }

    fn vouch_for(&mut self, host: &str) {
        Sandbox::vouch_for(self, host);
    }

    fn first_keys(&self) -> FirstKeys {
        Sandbox::first_keys(self)
    }

    fn happened(&self) -> u64 {
        self.log().count()
    }

    fn held_bytes(&self) -> u64 {
        Sandbox::held_bytes(self)
    }

    fn events_after(&self, n: u64) -> Vec<WorldEvent> {
        self.log().after(n).cloned().collect()
    }
}

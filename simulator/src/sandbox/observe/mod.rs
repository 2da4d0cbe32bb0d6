//! The observers of a world: the public log, the record for the invariants, and the tampering of tests.
//!
//! The world reports what crosses the service's boundary and stores none of it. An [`Observer`] changes nothing; a
//! [`Tamper`] does. It is next to the service: inputs are recorded before it changes them, outputs after.

mod log;
mod record;
mod stored;

use std::fmt;

use bytes::Bytes;
use reference_core::{
    asset::Asset,
    book::Notice,
    id::{AccountNo, Code},
    mode::Mode,
    outbox::AttemptResult,
    service::Service,
    sighting::Sighting,
    time::Timestamp,
};
use reference_wire::{AttemptRequest, Request, Response};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use self::log::LogWriter;
pub use self::log::WorldLog;
pub(super) use self::record::note_call;
use crate::{
    network::Arrival,
    record::Record,
    tamper::{OwnedRequest, PostFate, Tamper},
};

/// A book: its account and mode.
pub(super) type BookOf = (AccountNo, Mode);

/// The view of the world that an observer gets.
pub(super) struct WorldView<'a> {
    /// The time on the service clock.
    pub(super) now: Timestamp,
    /// The service.
    pub(super) service: &'a Service,
}

/// An observer of everything that crosses the boundary of the service.
pub(super) trait Observer {
    /// Called when watchers saw transfers on a chain, before the service receives them.
    fn on_sightings(&mut self, _scene: &WorldView<'_>, _seen: &[Sighting]) {}

    /// Called before the service receives the heights of chains.
    fn on_heights(&mut self, _now: Timestamp, _heights: &[((Mode, Asset), u64)]) {}

    /// Called for a notice of the service.
    fn on_notice(&mut self, _scene: &WorldView<'_>, _book: BookOf, _notice: &Notice) {}

    /// Called when a post was sent, with the result in the network so far.
    fn on_post(&mut self, _scene: &WorldView<'_>, _book: BookOf, _post: &AttemptRequest, _arrival: &Arrival) {
    }

    /// Called before the service receives the result of a post.
    fn on_attempt_result(&mut self, _now: Timestamp, _post: &AttemptRequest, _outcome: &AttemptResult) {}

    /// Called after the service received the result of a post, with the time of the next attempt.
    fn on_attempt_end(
        &mut self,
        _scene: &WorldView<'_>,
        _book: BookOf,
        _post: &AttemptRequest,
        _end: &AttemptEnd,
        _next_at: Option<Timestamp>,
    ) {
    }

    /// Called when the newest blocks of a chain were replaced.
    fn on_reorg(&mut self, _now: Timestamp, _chain: (Mode, Asset), _depth: u32) {}

    /// Called after a restart of the service.
    fn on_restart(&mut self, _scene: &WorldView<'_>) {}
}

/// The result of an attempt, as the log shows it.
pub(super) enum AttemptEnd {
    Answered(u16),
    Unreachable,
    TimedOut,
    Refused(String),
    Lost,
}

impl AttemptEnd {
    pub(super) fn from_result(outcome: &AttemptResult) -> AttemptEnd {
        match outcome {
            AttemptResult::Answered(status) => AttemptEnd::Answered(*status),
            AttemptResult::Unreachable(_) => AttemptEnd::Unreachable,
            AttemptResult::TimedOut => AttemptEnd::TimedOut,
            AttemptResult::Refused(why) => AttemptEnd::Refused(why.clone()),
        }
    }
}

impl fmt::Display for AttemptEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttemptEnd::Answered(status) => write!(f, "{status}"),
            AttemptEnd::Unreachable => f.write_str("unreachable"),
            AttemptEnd::TimedOut => f.write_str("timeout"),
            AttemptEnd::Refused(why) => write!(f, "refused: {why}"),
            AttemptEnd::Lost => f.write_str("lost"),
        }
    }
}

/// An ended post, with the data that scripts can refer to.
#[derive(Clone, Copy, Debug)]
pub struct EndedAttempt {
    /// The mode of the delivery's book.
    pub mode: Mode,
    /// The id of the delivery.
    pub delivery: Uuid,
    /// The id of the endpoint.
    pub endpoint: Code,
    /// The time of the next attempt; `None` if there is none.
    pub next_at: Option<Timestamp>,
}

impl Observer for Vec<EndedAttempt> {
    fn on_attempt_end(
        &mut self,
        view: &WorldView<'_>,
        (account, mode): BookOf,
        post: &AttemptRequest,
        _end: &AttemptEnd,
        next_at: Option<Timestamp>,
    ) {
        let endpoint = view.service.account(account).book(mode).endpoint(post.endpoint).id;
        self.push(EndedAttempt { mode, delivery: post.id, endpoint, next_at });
    }
}

/// The observers of a world.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Observers {
    log: LogWriter,
    /// The ended attempts; `None` if the log is written instead.
    #[serde(skip)]
    ended_attempts: Option<Vec<EndedAttempt>>,
    #[serde(skip)]
    pub(super) record: Option<Record>,
    #[serde(skip)]
    tamper: Option<Box<dyn Tamper>>,
}

impl Observers {
    fn notify_all(&mut self, notify: impl Fn(&mut dyn Observer)) {
        match &mut self.ended_attempts {
            Some(ended) => notify(ended),
            None => notify(&mut self.log),
        }
        if let Some(record) = &mut self.record {
            notify(record);
        }
    }

    /// Returns the observers for a new world that replaces this one: its log is empty.
    pub(super) fn take_for_new_world(&mut self) -> Observers {
        let before = std::mem::take(self);
        Observers {
            log: LogWriter::default(),
            ended_attempts: before.ended_attempts.map(|_| Vec::new()),
            ..before
        }
    }

    pub(super) fn log(&self) -> &WorldLog {
        &self.log.log
    }

    pub(super) fn is_log_disabled(&self) -> bool {
        self.ended_attempts.is_some()
    }

    pub(super) fn disable_log(&mut self) {
        self.ended_attempts.get_or_insert_default();
    }

    pub(super) fn take_ended(&mut self) -> Vec<EndedAttempt> {
        self.ended_attempts.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn tamper_with(&mut self, tamper: Box<dyn Tamper>) {
        self.tamper = Some(tamper);
    }

    /// Returns `true` if an observer reads the bodies of posts inside the simulated network.
    pub(super) fn read_posts(&self) -> bool {
        self.record.is_some() || self.is_tampered()
    }

    /// Returns the body of an earlier attempt, if every observer has it already.
    pub(super) fn known_body(&self, delivery: Uuid) -> Option<Bytes> {
        self.record.as_ref().filter(|_| !self.is_tampered())?.body_of(delivery)
    }

    /// Returns `true` if a tamper is installed.
    pub(super) fn is_tampered(&self) -> bool {
        self.tamper.is_some()
    }

    /// Lets the tamper replace an incoming request.
    pub(super) fn tamper_request(&mut self, now: Timestamp, request: &Request<'_>) -> Option<OwnedRequest> {
        self.tamper.as_mut()?.on_request(now, request)
    }

    /// Lets the tamper change an outgoing response.
    pub(super) fn tamper_response(&mut self, now: Timestamp, request: &Request<'_>, response: &mut Response) {
        if let Some(tamper) = &mut self.tamper {
            tamper.on_response(now, request, response);
        }
    }

    /// Lets the tamper change an outgoing post.
    pub(super) fn tamper_post(&mut self, now: Timestamp, mode: Mode, post: &mut AttemptRequest) -> PostFate {
        self.tamper.as_mut().map_or(PostFate::Unchanged, |tamper| tamper.on_post(now, mode, post))
    }

    pub(super) fn on_sightings(&mut self, view: &WorldView<'_>, seen: &[Sighting]) {
        self.notify_all(|observer| observer.on_sightings(view, seen));
    }

    /// Returns the sightings that reach the service, and the time at which they do.
    pub(super) fn tamper_sightings(
        &mut self,
        now: Timestamp,
        mut seen: Vec<Sighting>,
    ) -> (Timestamp, Vec<Sighting>) {
        let at = self.tamper.as_mut().map_or(now, |tamper| tamper.on_sightings(now, &mut seen));
        (at, seen)
    }

    pub(super) fn on_heights(&mut self, now: Timestamp, heights: &[((Mode, Asset), u64)]) {
        self.notify_all(|observer| observer.on_heights(now, heights));
    }

    pub(super) fn on_notice(&mut self, view: &WorldView<'_>, book: BookOf, notice: &Notice) {
        self.notify_all(|observer| observer.on_notice(view, book, notice));
    }

    pub(super) fn on_post(
        &mut self,
        view: &WorldView<'_>,
        book: BookOf,
        post: &AttemptRequest,
        arrival: &Arrival,
    ) {
        self.notify_all(|observer| observer.on_post(view, book, post, arrival));
    }

    /// Reports the result of a post, which the tamper may change before the service receives it.
    pub(super) fn on_attempt_result(
        &mut self,
        now: Timestamp,
        post: &AttemptRequest,
        outcome: &mut AttemptResult,
    ) {
        self.notify_all(|observer| observer.on_attempt_result(now, post, outcome));
        if let Some(tamper) = &mut self.tamper {
            tamper.on_outcome(now, post, outcome);
        }
    }

    pub(super) fn on_attempt_end(
        &mut self,
        view: &WorldView<'_>,
        book: BookOf,
        post: &AttemptRequest,
        end: &AttemptEnd,
        next_at: Option<Timestamp>,
    ) {
        self.notify_all(|observer| observer.on_attempt_end(view, book, post, end, next_at));
    }

    pub(super) fn on_reorg(&mut self, now: Timestamp, chain: (Mode, Asset), depth: u32) {
        self.notify_all(|observer| observer.on_reorg(now, chain, depth));
    }

    pub(super) fn on_restart(&mut self, view: &WorldView<'_>) {
        self.notify_all(|observer| observer.on_restart(view));
        if let Some(tamper) = &mut self.tamper {
            tamper.on_restart(view.now);
        }
    }
}

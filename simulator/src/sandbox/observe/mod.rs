//! The observers of a world: the public log, the record for the invariants, and the tampering of tests.
//!
//! The world reports every input and output of the service to them, and stores none itself. An [`Observer`] changes
//! nothing. A [`Tamper`] changes inputs after the observers were notified of them, and outputs before.

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
pub(super) use self::record::insert_call;
use crate::{
    network::Arrival,
    record::Record,
    tamper::{AttemptFate, OwnedRequest, Tamper},
};

/// A book: its account and mode.
pub(super) type AccountBook = (AccountNo, Mode);

/// The state of the world that an observer can read.
pub(super) struct WorldView<'a> {
    /// The time on the service clock.
    pub(super) now: Timestamp,
    /// The service.
    pub(super) service: &'a Service,
}

/// An observer of the inputs and outputs of the service.
pub(super) trait Observer {
    /// Called when watchers saw transfers on a chain, before the service receives them.
    fn on_sightings(&mut self, _view: &WorldView<'_>, _sightings: &[Sighting]) {}

    /// Called before the service receives the heights of chains.
    fn on_heights(&mut self, _now: Timestamp, _heights: &[((Mode, Asset), u64)]) {}

    /// Called for a notice of the service.
    fn on_notice(&mut self, _view: &WorldView<'_>, _book: AccountBook, _notice: &Notice) {}

    /// Called when an attempt was sent, with its arrival.
    fn on_attempt(
        &mut self,
        _view: &WorldView<'_>,
        _book: AccountBook,
        _attempt: &AttemptRequest,
        _arrival: &Arrival,
    ) {
    }

    /// Called before the service receives the result of an attempt.
    fn on_attempt_result(&mut self, _now: Timestamp, _attempt: &AttemptRequest, _outcome: &AttemptResult) {}

    /// Called after the service received the result of an attempt, with the time of the next attempt.
    fn on_attempt_end(
        &mut self,
        _view: &WorldView<'_>,
        _book: AccountBook,
        _attempt: &AttemptRequest,
        _end: &AttemptEnd,
        _next_at: Option<Timestamp>,
    ) {
    }

    /// Called when the newest blocks of a chain were replaced.
    fn on_reorg(&mut self, _now: Timestamp, _chain: (Mode, Asset), _depth: u32) {}

    /// Called after a restart of the service.
    fn on_restart(&mut self, _view: &WorldView<'_>) {}
}

/// The result of an attempt, as the log shows it.
pub(super) enum AttemptEnd {
    Responded(u16),
    Unreachable,
    TimedOut,
    Refused(String),
    /// The service restarted before the result arrived.
    Lost,
}

impl AttemptEnd {
    pub(super) fn from_result(outcome: &AttemptResult) -> AttemptEnd {
        match outcome {
            AttemptResult::Response(status) => AttemptEnd::Responded(*status),
            AttemptResult::Unreachable(_) => AttemptEnd::Unreachable,
            AttemptResult::TimedOut => AttemptEnd::TimedOut,
            AttemptResult::NotPublic(reason) => AttemptEnd::Refused(reason.clone()),
        }
    }
}

impl fmt::Display for AttemptEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttemptEnd::Responded(status) => write!(f, "{status}"),
            AttemptEnd::Unreachable => f.write_str("unreachable"),
            AttemptEnd::TimedOut => f.write_str("timeout"),
            AttemptEnd::Refused(reason) => write!(f, "refused: {reason}"),
            AttemptEnd::Lost => f.write_str("lost"),
        }
    }
}

/// An ended attempt, with the data to which scripts can refer.
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
        (account, mode): AccountBook,
        attempt: &AttemptRequest,
        _end: &AttemptEnd,
        next_at: Option<Timestamp>,
    ) {
        let endpoint = view.service.account(account).book(mode).endpoint(attempt.endpoint).id;
        self.push(EndedAttempt { mode, delivery: attempt.id, endpoint, next_at });
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

    /// Moves the observers to a new world that replaces this one. Its log is empty.
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

    pub(super) fn install_tamper(&mut self, tamper: Box<dyn Tamper>) {
        self.tamper = Some(tamper);
    }

    /// Returns `true` if an observer reads the bodies of attempts inside the simulated network.
    pub(super) fn reads_bodies(&self) -> bool {
        self.record.is_some() || self.is_tampered()
    }

    /// Returns the body of an earlier attempt, if the record allows reusing it and no tamper is installed.
    pub(super) fn known_body(&self, delivery: Uuid) -> Option<Bytes> {
        self.record.as_ref().filter(|_| !self.is_tampered())?.reusable_body(delivery)
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

    /// Lets the tamper change or drop an outgoing attempt.
    pub(super) fn tamper_attempt(
        &mut self,
        now: Timestamp,
        mode: Mode,
        attempt: &mut AttemptRequest,
    ) -> AttemptFate {
        self.tamper.as_mut().map_or(AttemptFate::Unchanged, |tamper| tamper.on_attempt(now, mode, attempt))
    }

    pub(super) fn on_sightings(&mut self, view: &WorldView<'_>, sightings: &[Sighting]) {
        self.notify_all(|observer| observer.on_sightings(view, sightings));
    }

    /// Lets the tamper change sightings. Returns those that the service receives, and the time at which it does.
    pub(super) fn tamper_sightings(
        &mut self,
        now: Timestamp,
        mut sightings: Vec<Sighting>,
    ) -> (Timestamp, Vec<Sighting>) {
        let at = self.tamper.as_mut().map_or(now, |tamper| tamper.on_sightings(now, &mut sightings));
        (at, sightings)
    }

    pub(super) fn on_heights(&mut self, now: Timestamp, heights: &[((Mode, Asset), u64)]) {
        self.notify_all(|observer| observer.on_heights(now, heights));
    }

    pub(super) fn on_notice(&mut self, view: &WorldView<'_>, book: AccountBook, notice: &Notice) {
        self.notify_all(|observer| observer.on_notice(view, book, notice));
    }

    pub(super) fn on_attempt(
        &mut self,
        view: &WorldView<'_>,
        book: AccountBook,
        attempt: &AttemptRequest,
        arrival: &Arrival,
    ) {
        self.notify_all(|observer| observer.on_attempt(view, book, attempt, arrival));
    }

    /// Reports the result of an attempt, which the tamper may change before the service receives it.
    pub(super) fn on_attempt_result(
        &mut self,
        now: Timestamp,
        attempt: &AttemptRequest,
        outcome: &mut AttemptResult,
    ) {
        self.notify_all(|observer| observer.on_attempt_result(now, attempt, outcome));
        if let Some(tamper) = &mut self.tamper {
            tamper.on_attempt_result(now, attempt, outcome);
        }
    }

    pub(super) fn on_attempt_end(
        &mut self,
        view: &WorldView<'_>,
        book: AccountBook,
        attempt: &AttemptRequest,
        end: &AttemptEnd,
        next_at: Option<Timestamp>,
    ) {
        self.notify_all(|observer| observer.on_attempt_end(view, book, attempt, end, next_at));
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

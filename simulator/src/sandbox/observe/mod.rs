//! The observers of a world: the public log, the record for the judges, and the tampering of tests.
//!
//! The world reports what crosses its border and keeps none of it. An [`Observer`] changes nothing; only a
//! [`Tamper`] does, and it stands next to the service: input is recorded before it is spoiled, output is spoiled
//! before it is recorded.

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
    tamper::{OwnedRequest, PostFate, Tamper},
    witness::Record,
};

/// A book: whose, and in which mode.
pub(super) type BookOf = (AccountNo, Mode);

/// The view of the world that an observer gets.
pub(super) struct Scene<'a> {
    /// The time on the service clock.
    pub(super) now: Timestamp,
    /// The service.
    pub(super) service: &'a Service,
}

/// An observer of everything that crosses the border of the service.
pub(super) trait Observer {
    /// Watchers saw this on a chain, and the service is about to hear of it.
    fn saw(&mut self, _scene: &Scene<'_>, _seen: &[Sighting]) {}

    /// The service has something to tell.
    fn heard(&mut self, _scene: &Scene<'_>, _book: BookOf, _notice: &Notice) {}

    /// A post left, and the network took it so far.
    fn posted(&mut self, _scene: &Scene<'_>, _book: BookOf, _post: &AttemptRequest, _arrival: &Arrival) {}

    /// The service is about to learn how a post ended.
    fn learns(&mut self, _now: Timestamp, _post: &AttemptRequest, _outcome: &AttemptResult) {}

    /// The service has learned how a post ended, and says when it is tried again.
    fn ended(
        &mut self,
        _scene: &Scene<'_>,
        _book: BookOf,
        _post: &AttemptRequest,
        _end: &AttemptEnd,
        _next_at: Option<Timestamp>,
    ) {
    }

    /// The newest blocks of a chain were replaced.
    fn reorganised(&mut self, _now: Timestamp, _chain: (Mode, Asset), _depth: u32) {}

    /// The service stopped and started again.
    fn restarted(&mut self, _scene: &Scene<'_>) {}
}

/// The result of an attempt, in the words of the log.
pub(super) enum AttemptEnd {
    Answered(u16),
    Unreachable,
    TimedOut,
    Refused(String),
    Lost,
}

impl AttemptEnd {
    pub(super) fn of(outcome: &AttemptResult) -> AttemptEnd {
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

/// A post whose end is known, as far as a script can name it.
#[derive(Clone, Copy, Debug)]
pub struct EndedAttempt {
    /// The mode of its book.
    pub mode: Mode,
    /// The delivery.
    pub delivery: Uuid,
    /// The endpoint.
    pub endpoint: Code,
    /// The time of the next attempt.
    pub next_at: Option<Timestamp>,
}

impl Observer for Vec<EndedAttempt> {
    fn ended(
        &mut self,
        scene: &Scene<'_>,
        (account, mode): BookOf,
        post: &AttemptRequest,
        _end: &AttemptEnd,
        next_at: Option<Timestamp>,
    ) {
        let endpoint = scene.service.account(account).book(mode).endpoint(post.endpoint).id;
        self.push(EndedAttempt { mode, delivery: post.id, endpoint, next_at });
    }
}

/// Everybody who watches a world.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Observers {
    log: LogWriter,
    /// The ended attempts, which a terse world notes in place of its log.
    #[serde(skip)]
    terse: Option<Vec<EndedAttempt>>,
    #[serde(skip)]
    pub(super) record: Option<Record>,
    #[serde(skip)]
    tamper: Option<Box<dyn Tamper>>,
}

impl Observers {
    fn each(&mut self, tell: impl Fn(&mut dyn Observer)) {
        match &mut self.terse {
            Some(ended) => tell(ended),
            None => tell(&mut self.log),
        }
        if let Some(record) = &mut self.record {
            tell(record);
        }
    }

    /// Those of a new world that begins in place of this one: its log begins anew.
    pub(super) fn of_new_world(&mut self) -> Observers {
        let before = std::mem::take(self);
        Observers { log: LogWriter::default(), terse: before.terse.map(|_| Vec::new()), ..before }
    }

    pub(super) fn log(&self) -> &WorldLog {
        &self.log.log
    }

    pub(super) fn is_terse(&self) -> bool {
        self.terse.is_some()
    }

    pub(super) fn be_terse(&mut self) {
        self.terse.get_or_insert_default();
    }

    pub(super) fn take_ended(&mut self) -> Vec<EndedAttempt> {
        self.terse.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn tamper_with(&mut self, tamper: Box<dyn Tamper>) {
        self.tamper = Some(tamper);
    }

    /// Returns `true` if posts inside the simulated network are read.
    pub(super) fn read_posts(&self) -> bool {
        self.record.is_some() || self.is_tampered()
    }

    /// The body of an earlier attempt, if all who read know it from there.
    pub(super) fn known_body(&self, delivery: Uuid) -> Option<Bytes> {
        self.record.as_ref().filter(|_| !self.is_tampered())?.body_of(delivery)
    }

    /// Returns `true` if the service is tampered with.
    pub(super) fn is_tampered(&self) -> bool {
        self.tamper.is_some()
    }

    /// A request on its way in; another one may take its place.
    pub(super) fn asks(&mut self, now: Timestamp, request: &Request<'_>) -> Option<OwnedRequest> {
        self.tamper.as_mut()?.request(now, request)
    }

    /// An answer on its way out.
    pub(super) fn answers(&mut self, now: Timestamp, request: &Request<'_>, response: &mut Response) {
        if let Some(tamper) = &mut self.tamper {
            tamper.response(now, request, response);
        }
    }

    /// A post on its way out.
    pub(super) fn sends(&mut self, now: Timestamp, mode: Mode, post: &mut AttemptRequest) -> PostFate {
        self.tamper.as_mut().map_or(PostFate::AsItIs, |tamper| tamper.post(now, mode, post))
    }

    pub(super) fn saw(&mut self, scene: &Scene<'_>, seen: &[Sighting]) {
        self.each(|observer| observer.saw(scene, seen));
    }

    /// Returns the sightings that reach the service, and the time at which they do.
    pub(super) fn hears(&mut self, now: Timestamp, mut seen: Vec<Sighting>) -> (Timestamp, Vec<Sighting>) {
        let at = self.tamper.as_mut().map_or(now, |tamper| tamper.sightings(now, &mut seen));
        (at, seen)
    }

    pub(super) fn heard(&mut self, scene: &Scene<'_>, book: BookOf, notice: &Notice) {
        self.each(|observer| observer.heard(scene, book, notice));
    }

    pub(super) fn posted(
        &mut self,
        scene: &Scene<'_>,
        book: BookOf,
        post: &AttemptRequest,
        arrival: &Arrival,
    ) {
        self.each(|observer| observer.posted(scene, book, post, arrival));
    }

    /// Passes on the result of a post to the service.
    pub(super) fn learns(&mut self, now: Timestamp, post: &AttemptRequest, outcome: &mut AttemptResult) {
        self.each(|observer| observer.learns(now, post, outcome));
        if let Some(tamper) = &mut self.tamper {
            tamper.outcome(now, post, outcome);
        }
    }

    pub(super) fn ended(
        &mut self,
        scene: &Scene<'_>,
        book: BookOf,
        post: &AttemptRequest,
        end: &AttemptEnd,
        next_at: Option<Timestamp>,
    ) {
        self.each(|observer| observer.ended(scene, book, post, end, next_at));
    }

    pub(super) fn reorganised(&mut self, now: Timestamp, chain: (Mode, Asset), depth: u32) {
        self.each(|observer| observer.reorganised(now, chain, depth));
    }

    pub(super) fn restarted(&mut self, scene: &Scene<'_>) {
        self.each(|observer| observer.restarted(scene));
        if let Some(tamper) = &mut self.tamper {
            tamper.restarted(scene.now);
        }
    }
}

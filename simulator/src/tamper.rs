//! How a test makes a wrong service out of the right one: by spoiling what goes in or what comes out.
//!
//! The service itself has no switch to be wrong, and no program offers one: only code can hand a [`Tamper`] to a
//! world.

use reference_core::{
    book::Post,
    mode::Mode,
    outbox::Outcome,
    sighting::Sighting,
    time::Timestamp,
    wire::http::{Request, Response},
};

pub use crate::sandbox::OwnRequest;

/// What becomes of a post on its way out.
pub enum Sent {
    /// It goes as it is.
    AsItIs,
    /// It never leaves, and the service believes that it arrived.
    Swallowed,
    /// Another one goes right after it.
    WithAnother(Box<Post>),
}

/// Somebody between the service and the world. As it stands it changes nothing.
pub trait Tamper: Send {
    /// A request on its way in; another one may take its place.
    fn request(&mut self, _now: Timestamp, _request: &Request<'_>) -> Option<OwnRequest> {
        None
    }

    /// An answer on its way out.
    fn response(&mut self, _now: Timestamp, _request: &Request<'_>, _response: &mut Response) {}

    /// What the watchers tell the service, after it was written down. Says when the service hears of it: never
    /// before an earlier input.
    fn sightings(&mut self, now: Timestamp, _sightings: &mut Vec<Sighting>) -> Timestamp {
        now
    }

    /// A post on its way out.
    fn post(&mut self, _now: Timestamp, _mode: Mode, _post: &mut Post) -> Sent {
        Sent::AsItIs
    }

    /// How a post ended, on its way in.
    fn outcome(&mut self, _now: Timestamp, _post: &Post, _outcome: &mut Outcome) {}

    /// Whether the service is woken now, when it asked to be.
    fn wakes(&mut self, _now: Timestamp) -> bool {
        true
    }

    /// The service stopped and started again.
    fn restarted(&mut self, _now: Timestamp) {}
}

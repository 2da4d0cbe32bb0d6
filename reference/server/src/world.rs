//! What the host needs of a world, and no more.

use reference_core::{
    time::Timestamp,
    wire::http::{Request, Response},
};
use simulator::sandbox::{FirstKeys, Sandbox};

/// A world that a host can keep: it answers, and things happen in it as time goes by.
pub trait World: Send {
    /// What the service clock shows.
    fn now(&self) -> Timestamp;

    /// When something will happen by itself; nothing if the world is at rest.
    fn next_due(&self) -> Option<Timestamp>;

    /// Lets everything happen that is due up to `now`.
    fn advance_to(&mut self, now: Timestamp);

    /// Answers a request to `/v1` or `/sandbox`. Its own time may be later afterwards than `now`.
    fn respond(&mut self, now: Timestamp, request: &Request<'_>) -> Response;

    /// The keys that the world started with.
    fn first_keys(&self) -> FirstKeys;
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

    fn respond(&mut self, now: Timestamp, request: &Request<'_>) -> Response {
        Sandbox::respond(self, now, request)
    }

    fn first_keys(&self) -> FirstKeys {
        Sandbox::first_keys(self)
    }
}

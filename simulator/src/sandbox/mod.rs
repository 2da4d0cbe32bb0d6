//! A service and its chains: the one thing that both hosts own.

use reference_core::{
    draw::Seed,
    time::Timestamp,
    wire::http::{Request, Response},
};

/// How a world begins.
#[derive(Clone, Debug)]
pub struct Setup {
    /// What every draw of this world hangs on.
    pub seed: Seed,
    /// What the service clock shows at first.
    pub start: Timestamp,
    /// The address under which hosted pages are reached, without a slash at the end.
    pub public_url: String,
    /// Requests per minute and key; nothing for no limit.
    pub rate_limit: Option<u32>,
}

/// A service, its chains and its simulated network, at one moment.
pub struct Sandbox {
    now: Timestamp,
}

/// The keys that a new world starts with.
#[derive(Clone, Debug)]
pub struct FirstKeys {
    /// A key of mode live.
    pub live: String,
    /// A key of mode test.
    pub test: String,
}

impl Sandbox {
    /// A new world.
    pub fn new(setup: &Setup) -> Sandbox {
        Sandbox { now: setup.start }
    }

    /// What the service clock shows.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The keys that this world started with.
    pub fn first_keys(&self) -> FirstKeys {
        FirstKeys { live: String::new(), test: String::new() }
    }

    /// When something will happen by itself; nothing if the world is at rest.
    pub fn next_due(&self) -> Option<Timestamp> {
        None
    }

    /// Lets everything happen that is due up to `now`.
    pub fn advance_to(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
    }

    /// Answers a request to `/v1` or `/sandbox`. Who may use `/sandbox` is the host's to say.
    pub fn respond(&mut self, now: Timestamp, _request: &Request<'_>) -> Response {
        self.advance_to(now);
        Response { status: 404, headers: Vec::new(), body: b"{\"message\":\"Not found.\"}".to_vec() }
    }
}

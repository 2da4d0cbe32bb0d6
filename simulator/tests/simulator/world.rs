//! The world that the tests of `/sandbox` send requests to.

use reference_core::{rng::Seed, time::Timestamp};
use reference_wire::{Request, Response};
use simulator::sandbox::{Progress, Sandbox, Setup};

const BASE: &str = "http://localhost";

/// The start of the clock: 2026-09-20T10:00:00Z.
const START: Timestamp = Timestamp(1_789_898_400_000_000);

/// Creates a world that can be restarted and has no rate limit.
pub(crate) fn open() -> Sandbox {
    Sandbox::new(&Setup { journal: true, ..Setup::new(Seed(1), START, BASE) })
}

/// Sends a request with a key. An empty key is refused where one is required.
pub(crate) fn send(sandbox: &mut Sandbox, method: &str, target: &str, key: &str, body: &str) -> Response {
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let bearer = format!("Bearer {key}");
    let request =
        Request { query, authorization: Some(bearer.as_bytes()), ..Request::json(BASE, method, path, body) };
    sandbox.respond(sandbox.now(), &request)
}

/// Sends a request with an authenticated key, which restricts `/sandbox` to its own book.
pub(crate) fn send_authenticated(
    sandbox: &mut Sandbox,
    method: &str,
    path: &str,
    key: &str,
    body: &str,
) -> Response {
    let bearer = format!("Bearer {key}");
    let now = sandbox.now();
    let authenticated = match sandbox.admit(now, Some(bearer.as_bytes())) {
        Ok(authenticated) => authenticated,
        Err(refusal) => return refusal,
    };
    match sandbox.call_as(now, &authenticated, &Request::json(BASE, method, path, body)) {
        Progress::Done(response) => response,
        Progress::Waiting(_) => panic!("a world in a test does not wait for an external receiver"),
    }
}

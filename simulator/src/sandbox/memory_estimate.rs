//! An estimate of the memory that a world uses, because the allocator cannot count the bytes of one world among many.
//!
//! Counts are multiplied by sizes that were measured with thousands of each kind and rounded up. Memory that is
//! bounded elsewhere, or freed within an hour, counts as permanent, so the estimate tends to be high.

use reference_wire::{Request, Response};

use super::Sandbox;

/// The bytes of a new world without its account and two keys; 60,000 were measured with them.
pub const WORLD_BYTES: u64 = 48 * 1_024;
/// The bytes of a key and of half its account, which starts with two keys; 22,000 were measured for an
/// account with two keys.
const KEY_BYTES: u64 = 12 * 1_024;
/// The bytes of an object created by a call, besides its strings; 1,000 to 1,400 were measured for a charge with its
/// event.
const CALL_BYTES: u64 = 1_280;
/// The bytes of a stored response of an idempotent call.
const STORED_RESPONSE_BYTES: u64 = 3 * 1_024;
/// The bytes of an event, delivery or attempt with its log entry; 340 to 420 were measured.
const EVENT_BYTES: u64 = 512;

/// Returns the bytes that a call adds permanently. Strings are stored twice: in the object and in its JSON.
pub(super) fn bytes_added(request: &Request<'_>, response: &Response) -> u64 {
    let is_change = !matches!(request.method, "GET" | "HEAD") && response.status < 400;
    let bytes = request.path.len() + request.body.len();
    let object_bytes = if is_change { CALL_BYTES + 2 * bytes as u64 } else { 0 };
    let response_bytes =
        request.idempotency_key.map_or(0, |key| STORED_RESPONSE_BYTES + 2 * key.len() as u64);
    object_bytes + response_bytes
}

impl Sandbox {
    /// Returns the estimated bytes of memory that this world uses.
    pub fn estimated_bytes(&self) -> u64 {
        let keys = self.service().keys().iter().count() as u64;
        WORLD_BYTES + KEY_BYTES * keys + EVENT_BYTES * self.log().count() + self.world.input_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::route::tests::world;

    /// Checks the estimate for a call: the numbers of objects, of bytes in strings (the path has 11), and of
    /// stored responses.
    #[track_caller]
    fn check(
        method: &str,
        body: &str,
        key: Option<&[u8]>,
        status: u16,
        (objects, text, responses): (u64, u64, u64),
    ) {
        let request = Request {
            method,
            path: "/v1/charges",
            query: None,
            authorization: None,
            content_type: None,
            idempotency_key: key,
            base: "",
            body: body.as_bytes(),
        };
        let response = Response { status, headers: Vec::new(), body: Vec::new().into() };
        let bytes = CALL_BYTES * objects + 2 * text + STORED_RESPONSE_BYTES * responses;
        assert_eq!(bytes_added(&request, &response), bytes, "{method} {status}");
    }

    #[test]
    fn a_call_counts_its_object_and_its_stored_response() {
        let body = r#"{"asset":"BTC"}"#;
        check("POST", body, None, 201, (1, 11 + 15, 0));
        check("POST", "", None, 399, (1, 11, 0));
        check("POST", body, None, 400, (0, 0, 0));
        check("POST", body, None, 422, (0, 0, 0));
        check("POST", body, Some(b"again"), 422, (0, 5, 1));
        check("PATCH", body, Some(b"again"), 200, (1, 11 + 15 + 5, 1));
        check("GET", "", None, 200, (0, 0, 0));
        check("HEAD", "", None, 200, (0, 0, 0));
    }

    #[test]
    fn memory_counts_keys_and_inputs() {
        let mut world = world();
        let keys = |world: &Sandbox| world.service().keys().iter().count() as u64;
        assert_eq!((keys(&world), world.estimated_bytes()), (2, WORLD_BYTES + 2 * KEY_BYTES));
        for (path, body) in
            [("/sandbox/accounts", r#"{"id":"bakery"}"#), ("/sandbox/keys", r#"{"mode":"live"}"#)]
        {
            let (bytes_before, keys_before) = (world.estimated_bytes(), keys(&world));
            let now = world.now();
            let response = world.respond(now, &Request::json("", "POST", path, body));
            assert_eq!(response.status, 200);
            let call_bytes = CALL_BYTES + 2 * (path.len() + body.len()) as u64;
            assert_eq!(
                world.estimated_bytes() - bytes_before,
                call_bytes + KEY_BYTES * (keys(&world) - keys_before),
                "{path}"
            );
        }
        assert_eq!(keys(&world), 5);
    }
}

//! How much memory a world holds, estimated: no allocator tells the bytes of one world among many.
//!
//! Sizes that were measured with thousands of each, a little above what was found, times how many there are. What is
//! bounded elsewhere and what an hour frees again counts as if it stayed, so that the estimate is rather too high.

use reference_wire::{Request, Response};

use super::Sandbox;

/// Bytes of a world that was told nothing: 60,000 were found.
pub const WORLD_BYTES: u64 = 48 * 1_024;
/// Of a key, with half of an account, which begins with two: 22,000 of an account with its two keys.
const KEY_BYTES: u64 = 12 * 1_024;
/// Of what a call makes, besides what it says: 1,000 to 1,400 of a charge with its event.
const CALL_BYTES: u64 = 1_280;
/// Of the answer that is kept for a call that may be repeated.
const ANSWER_BYTES: u64 = 3 * 1_024;
/// Of something that happened, with its place in the log: 340 to 420 of an event, a delivery or an attempt.
const HAPPENING_BYTES: u64 = 512;

/// Bytes that a world holds on to after a call: what was said is kept as an object and as texts of it.
pub(super) fn bytes_of(request: &Request<'_>, response: &Response) -> u64 {
    let changes = !matches!(request.method, "GET" | "HEAD") && response.status < 400;
    let said = request.path.len() + request.body.len();
    let made = if changes { CALL_BYTES + 2 * said as u64 } else { 0 };
    let kept = request.idempotency_key.map_or(0, |key| ANSWER_BYTES + 2 * key.len() as u64);
    made + kept
}

impl Sandbox {
    /// Bytes of memory that this world holds, estimated.
    pub fn held_bytes(&self) -> u64 {
        let keys = self.service().keys().iter().count() as u64;
        WORLD_BYTES + KEY_BYTES * keys + HAPPENING_BYTES * self.log().count() + self.world.told_bytes
    }
}

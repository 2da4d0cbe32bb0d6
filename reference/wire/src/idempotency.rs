//! Writes that are sent twice and done once (`open.idempotency`).

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use reference_core::time::{Span, Timestamp};

use crate::http::Response;

const KEPT: Span = Span::hours(24);
/// A bound on memory, far above what the rate limit lets through in a day.
const ANSWERS_MAX: usize = 500_000;
/// The same for the answers' bytes: a few that are huge weigh as much as many that are small.
const BYTES_MAX: usize = 64 << 20;

/// What a repeated request meets.
pub(crate) enum Lookup {
    /// The key is new.
    New,
    /// The same request was answered before.
    Repeated(Response),
    /// The key was used for another request.
    OtherRequest,
}

/// The answers of one book's writes, for a day.
#[derive(Default)]
pub(crate) struct IdempotencyCache {
    kept: BTreeMap<String, Kept>,
    /// Oldest first.
    order: BTreeMap<(Timestamp, u64), String>,
    stored: u64,
    /// Of all that is kept: keys and bodies.
    bytes: usize,
}

struct Kept {
    at: Timestamp,
    request: [u8; 32],
    answer: Response,
}

fn weight(scope: &str, answer: &Response) -> usize {
    // The scope is kept twice.
    2 * scope.len() + answer.body.len()
}

/// Tells one request from another under the same key.
pub(crate) fn fingerprint(query: Option<&str>, body: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    let query = query.unwrap_or("");
    hash.update((query.len() as u64).to_be_bytes());
    hash.update(query);
    hash.update(body);
    hash.finalize().into()
}

impl IdempotencyCache {
    /// What is known of this method, path and key.
    pub(crate) fn look_up(&self, now: Timestamp, scope: &str, request: &[u8; 32]) -> Lookup {
        match self.kept.get(scope) {
            Some(kept) if now.since(kept.at) < KEPT => {
                if kept.request == *request {
                    Lookup::Repeated(kept.answer.clone())
                } else {
                    Lookup::OtherRequest
                }
            }
            _ => Lookup::New,
        }
    }

    /// Keeps an answer, and lets go of the oldest ones where there is no room. Only successful ones are given here.
    pub(crate) fn keep(&mut self, now: Timestamp, scope: String, request: [u8; 32], answer: Response) {
        let more = weight(&scope, &answer);
        while let Some(entry) = self.order.first_entry() {
            let has_room = self.kept.len() < ANSWERS_MAX && self.bytes + more <= BYTES_MAX;
            if now.since(entry.key().0) < KEPT && has_room {
                break;
            }
            let scope = entry.remove();
            self.forget(&scope);
        }
        self.forget(&scope);
        self.order.insert((now, self.stored), scope.clone());
        self.stored += 1;
        self.bytes += more;
        self.kept.insert(scope, Kept { at: now, request, answer });
    }

    fn forget(&mut self, scope: &str) {
        if let Some(kept) = self.kept.remove(scope) {
            self.bytes -= weight(scope, &kept.answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_answers_push_out_the_oldest() {
        let mut answers = IdempotencyCache::default();
        let request = [0; 32];
        let large = || Response { status: 201, headers: Vec::new(), body: vec![b'x'; BYTES_MAX / 4].into() };
        for n in 0..6 {
            answers.keep(Timestamp(n), format!("key {n}"), request, large());
        }
        let known = |n: u64| {
            matches!(answers.look_up(Timestamp(9), &format!("key {n}"), &request), Lookup::Repeated(_))
        };
        assert_eq!((0..6).map(known).collect::<Vec<_>>(), [false, false, false, true, true, true]);
        assert!(answers.bytes <= BYTES_MAX, "{}", answers.bytes);
    }
}

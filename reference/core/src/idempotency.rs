//! Writes that are sent twice and done once (`open.idempotency`).

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::{
    time::{Span, Timestamp},
    wire::http::Response,
};

const KEPT: Span = Span::hours(24);
/// A bound on memory, far above what the rate limit lets through in a day.
const ANSWERS_MAX: usize = 500_000;

/// What a repeated request meets.
pub enum Known {
    /// Nothing: it is new.
    Fresh,
    /// The same request was answered before.
    Same(Response),
    /// The key was used for another request.
    Other,
}

/// The answers of one book's writes, for a day.
#[derive(Default)]
pub struct Answers {
    kept: BTreeMap<String, Kept>,
    /// Oldest first.
    order: BTreeMap<(Timestamp, u64), String>,
    stored: u64,
}

struct Kept {
    at: Timestamp,
    request: [u8; 32],
    answer: Response,
}

/// Tells one request from another under the same key.
pub fn fingerprint(query: Option<&str>, body: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    let query = query.unwrap_or("");
    hash.update((query.len() as u64).to_be_bytes());
    hash.update(query);
    hash.update(body);
    hash.finalize().into()
}

impl Answers {
    /// What is known of this method, path and key.
    pub fn look_up(&self, now: Timestamp, scope: &str, request: &[u8; 32]) -> Known {
        match self.kept.get(scope) {
            Some(kept) if now.since(kept.at) < KEPT => {
                if kept.request == *request {
                    Known::Same(kept.answer.clone())
                } else {
                    Known::Other
                }
            }
            _ => Known::Fresh,
        }
    }

    /// Keeps an answer. Only successful ones are given here.
    pub fn keep(&mut self, now: Timestamp, scope: String, request: [u8; 32], answer: Response) {
        while let Some(entry) = self.order.first_entry() {
            if now.since(entry.key().0) < KEPT && self.kept.len() < ANSWERS_MAX {
                break;
            }
            let scope = entry.remove();
            self.kept.remove(&scope);
        }
        self.order.insert((now, self.stored), scope.clone());
        self.stored += 1;
        self.kept.insert(scope, Kept { at: now, request, answer });
    }
}

//! The latest sandbox calls that changed the world, for the history page.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use reference_core::time::Timestamp;
use reference_wire::{Request, Response};

/// The maximum number of stored calls.
const MUTATIONS_MAX: usize = 100;
/// The maximum number of stored characters of a request body.
const BODY_CHARS_MAX: usize = 160;

/// A sandbox call that changed the world.
#[derive(Debug)]
pub(crate) struct RecentMutation {
    /// The service clock after the call.
    pub(crate) at: Timestamp,
    pub(crate) method: String,
    pub(crate) path: String,
    /// The start of the request body.
    pub(crate) body: String,
}

#[derive(Default)]
pub(super) struct RecentMutations(Mutex<VecDeque<Arc<RecentMutation>>>);

impl RecentMutations {
    /// Records a call if it is a sandbox call that succeeded and does more than read.
    pub(super) fn record(&self, at: Timestamp, request: &Request<'_>, response: &Response) {
        let Request { method, path, body, .. } = *request;
        let is_read = matches!(method, "GET" | "HEAD");
        if is_read || !path.starts_with("/sandbox/") || !(200..300).contains(&response.status) {
            return;
        }
        let body = String::from_utf8_lossy(body).chars().take(BODY_CHARS_MAX).collect();
        let mutation = RecentMutation { at, method: method.to_owned(), path: path.to_owned(), body };
        let mut stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if stored.len() >= MUTATIONS_MAX {
            stored.pop_front();
        }
        stored.push_back(Arc::new(mutation));
    }

    /// Returns the stored calls, newest first.
    pub(super) fn newest_first(&self) -> Vec<Arc<RecentMutation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().rev().map(Arc::clone).collect()
    }
}

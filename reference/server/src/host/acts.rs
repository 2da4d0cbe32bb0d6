//! The last calls of the sandbox that changed something, for people who look back.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use reference_core::time::Timestamp;
use reference_wire::{Request, Response};

/// Calls that are kept.
const ACTS_MAX: usize = 100;
/// Characters that are kept of what a call says.
const BODY_CHARS_KEPT: usize = 160;

/// A call of the sandbox that changed something.
#[derive(Debug)]
pub(crate) struct SandboxAct {
    /// The time on the clock afterwards.
    pub(crate) at: Timestamp,
    pub(crate) method: String,
    pub(crate) path: String,
    /// The beginning of what it said.
    pub(crate) body: String,
}

#[derive(Default)]
pub(super) struct Acts(Mutex<VecDeque<Arc<SandboxAct>>>);

impl Acts {
    /// Notes a call that was answered, if it is one of these.
    pub(super) fn note(&self, at: Timestamp, request: &Request<'_>, response: &Response) {
        let Request { method, path, body, .. } = *request;
        let reads = matches!(method, "GET" | "HEAD");
        if reads || !path.starts_with("/sandbox/") || !(200..300).contains(&response.status) {
            return;
        }
        let body = String::from_utf8_lossy(body).chars().take(BODY_CHARS_KEPT).collect();
        let act = SandboxAct { at, method: method.to_owned(), path: path.to_owned(), body };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= ACTS_MAX {
            kept.pop_front();
        }
        kept.push_back(Arc::new(act));
    }

    /// Those that are kept, the newest first.
    pub(super) fn newest(&self) -> Vec<Arc<SandboxAct>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().rev().map(Arc::clone).collect()
    }
}

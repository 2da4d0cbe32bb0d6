//! A webhook receiver that records every attempt. It responds with 200 or 503, and is sometimes slow.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use testkit::response;

/// A received delivery attempt: the ids of its delivery and event.
#[derive(Clone)]
pub(crate) struct Post {
    pub(crate) delivery: String,
    pub(crate) event: String,
}

/// A receiver that runs until the process ends.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    attempts: Arc<Mutex<Vec<Post>>>,
}

impl Receiver {
    pub(crate) fn start() -> Result<Receiver, String> {
        let attempts = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&attempts);
        let address = testkit::serve(move |request, connection| {
            let body = request.json();
            let field = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
            let attempt = Post { delivery: field("id"), event: field("event_id") };
            let nth = {
                let mut attempts = shared.lock().unwrap_or_else(PoisonError::into_inner);
                attempts.push(attempt);
                attempts.len()
            };
            if nth % 7 == 0 {
                thread::park_timeout(Duration::from_millis(30));
            }
            connection.send(response(if nth % 5 == 0 { 503 } else { 200 }, ""))?;
            Ok(ControlFlow::Break(()))
        });
        let address = address.map_err(|error| format!("the receiver cannot start: {error}"))?;
        Ok(Receiver { address, attempts })
    }

    /// Returns all attempts so far.
    pub(crate) fn deliveries(&self) -> Vec<Post> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

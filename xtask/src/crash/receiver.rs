//! A receiver that records every delivery. It accepts some, refuses some, and is sometimes slow.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use testkit::response;

/// A received delivery.
#[derive(Clone)]
pub(crate) struct Post {
    pub(crate) delivery: String,
    pub(crate) event: String,
}

/// A receiver for the life of the process.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Post>>>,
}

impl Receiver {
    pub(crate) fn start() -> Result<Receiver, String> {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&seen);
        let address = testkit::serve(move |request, connection| {
            let body = request.json();
            let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
            let post = Post { delivery: text("id"), event: text("event_id") };
            let nth = {
                let mut seen = recorded.lock().unwrap_or_else(PoisonError::into_inner);
                seen.push(post);
                seen.len()
            };
            if nth % 7 == 0 {
                thread::park_timeout(Duration::from_millis(30));
            }
            connection.send(response(if nth % 5 == 0 { 503 } else { 200 }, ""))?;
            Ok(ControlFlow::Break(()))
        });
        let address = address.map_err(|error| format!("the receiver cannot start: {error}"))?;
        Ok(Receiver { address, seen })
    }

    /// Returns all deliveries so far.
    pub(crate) fn deliveries(&self) -> Vec<Post> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

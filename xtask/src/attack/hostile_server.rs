//! A server that sends endless interim responses.

use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Starts a server that responds correctly to the first `valid_responses` requests, and to each later one with
/// endless `100 Continue` responses.
pub(crate) fn start_interim_flood(valid_responses: usize) -> io::Result<SocketAddr> {
    const VALID_RESPONSE: &[u8] =
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    let remaining = AtomicUsize::new(valid_responses);
    let interim = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(4_096);
    testkit::serve(move |_, connection| {
        if remaining.fetch_update(Relaxed, Relaxed, |remaining| remaining.checked_sub(1)).is_ok() {
            return connection.send(VALID_RESPONSE).map(ControlFlow::Continue);
        }
        // Ends when the client closes the connection.
        loop {
            connection.send(&interim)?;
        }
    })
}

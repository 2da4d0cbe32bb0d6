//! A hostile server.

use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Starts a server that answers some requests correctly, and each later one with endless interim responses.
pub(crate) fn interim_flood(good: usize) -> io::Result<SocketAddr> {
    const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    let left = AtomicUsize::new(good);
    let interim = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(4_096);
    testkit::serve(move |_, connection| {
        if left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            return connection.send(GOOD).map(ControlFlow::Continue);
        }
        // Ends when the client closes the connection.
        loop {
            connection.send(&interim)?;
        }
    })
}

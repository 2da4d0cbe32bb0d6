//! Servers in threads that run until the process ends: receivers of webhooks, and servers that respond to a client under
//! test.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::ops::ControlFlow;
use std::sync::mpsc::{self, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::message::{Message, response};

/// Starts a server with one thread per connection, and returns its address. `respond` gets each request and its
/// connection. The connection is closed when `respond` returns `Break` or an error.
///
/// # Errors
/// There is no free port.
pub fn serve(
    respond: impl Fn(&Message, &mut Connection) -> io::Result<ControlFlow<()>> + Send + Sync + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let respond = Arc::new(respond);
    thread::spawn(move || {
        // A connection that cannot be accepted is skipped: the error concerns only one client.
        for stream in listener.incoming().flatten() {
            let respond = Arc::clone(&respond);
            thread::spawn(move || -> io::Result<()> {
                let mut connection = Connection::from_stream(stream, address.to_string())?;
                loop {
                    let request = connection.message()?;
                    if respond(&request, &mut connection)?.is_break() {
                        return Ok(());
                    }
                }
            });
        }
    });
    Ok(address)
}

/// Starts a server that responds to every request with this status and the body that `body` returns for the request's
/// API key, and then closes the connection. Returns the base URL.
///
/// # Errors
/// There is no free port.
pub fn serve_status(
    status: u16,
    body: impl Fn(&str) -> String + Send + Sync + 'static,
) -> io::Result<String> {
    let address = serve(move |request, connection| {
        connection.send(response(status, &body(request.key())))?;
        Ok(ControlFlow::Break(()))
    })?;
    Ok(format!("http://{address}"))
}

/// A receiver of webhooks, which passes the received requests to the test.
pub struct Receiver {
    /// The listening address.
    pub address: SocketAddr,
    requests: mpsc::Receiver<(Message, Instant)>,
}

impl Receiver {
    /// Starts a receiver. `respond` gets the connection of each request; the connection closes when `respond` returns,
    /// unless it keeps a copy of the stream.
    ///
    /// # Errors
    /// There is no free port.
    pub fn start(
        respond: impl Fn(&mut Connection) -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<Receiver> {
        let (sender, requests) = channel();
        let address = serve(move |request, connection| {
            // Fails if the test has dropped the receiver; the response is still sent.
            let _ = sender.send((request.clone(), Instant::now()));
            respond(connection).map(ControlFlow::Break)
        })?;
        Ok(Receiver { address, requests })
    }

    /// Starts a receiver that responds with 200 at once.
    ///
    /// # Errors
    /// There is no free port.
    pub fn ok() -> io::Result<Receiver> {
        Receiver::start(|connection| connection.send(response(200, "")))
    }

    /// Starts a receiver that never responds. It holds up to `CONNECTIONS_MAX` connections and then closes the oldest.
    ///
    /// # Errors
    /// There is no free port.
    pub fn silent() -> io::Result<Receiver> {
        const CONNECTIONS_MAX: usize = 4_096;
        let connections = Mutex::new(VecDeque::new());
        Receiver::start(move |connection| {
            let mut connections = connections.lock().unwrap_or_else(PoisonError::into_inner);
            connections.push_back(connection.stream().try_clone()?);
            if connections.len() > CONNECTIONS_MAX {
                connections.pop_front();
            }
            Ok(())
        })
    }

    /// Returns the next request and its time; `None` after the timeout.
    pub fn next(&self, timeout: Duration) -> Option<(Message, Instant)> {
        self.requests.recv_timeout(timeout).ok()
    }

    /// Returns the time at which the next request to this path arrived; `None` after the timeout. Other requests are
    /// skipped.
    pub fn arrival_time(&self, path: &str, timeout: Duration) -> Option<Instant> {
        let deadline = Instant::now() + timeout;
        loop {
            match self.next(deadline.saturating_duration_since(Instant::now()))? {
                (request, arrived_at) if request.path() == path => return Some(arrived_at),
                _ => {}
            }
        }
    }

    /// Returns the value of `--forward` that maps a host to this receiver.
    pub fn forward_option(&self, host: &str) -> String {
        format!("https://{host}=http://{}", self.address)
    }
}

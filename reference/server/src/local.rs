//! [`Local`]: a server for tests written in Rust, started by one line and stopped on drop.

use std::{
    io,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};

use reference_core::{dialect::Dialect, rng::Seed, time::Timestamp};
use reference_wire::Request;
use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
};

use crate::{
    Bounds, ClockKind, Config, McpClockAccess, SandboxAccess, SenderConfig, Server,
    backend::Backend,
    worlds::{OpenError, OpenedWorld, WORLDS_MAX, WorldOptions, Worlds},
};

/// The rate limit of the specification: requests per minute and key.
const RATE_LIMIT: u32 = 120;

impl Config {
    /// Returns the configuration of [`Local`]: loopback, a free port, a fixed seed, real time, 120 requests per minute
    /// and key, and simulated deliveries.
    ///
    /// ```
    /// use reference_server::{ClockKind, Config};
    ///
    /// let config = Config { clock: ClockKind::Frozen, ..Config::local() };
    /// assert_eq!(config.rate_limit, Some(120));
    /// ```
    pub fn local() -> Config {
        Config {
            address: ([127, 0, 0, 1], 0).into(),
            seed: Seed(1),
            start: None,
            rate_limit: Some(RATE_LIMIT),
            public_url: None,
            tls: None,
            clock: ClockKind::Wall,
            dialect: Dialect::default(),
            sandbox_access: SandboxAccess::default(),
            sandbox_token: None,
            mcp_clock: McpClockAccess::default(),
            bounds: Bounds::default(),
            log: None,
            sender: SenderConfig::default(),
            data: None,
            exported_world: None,
        }
    }
}

/// A server in its own thread, on a free port of this machine. Stops on drop.
///
/// Works with and without an async runtime. Every server has the same seed and its own world, so tests may run in
/// parallel.
///
/// ```
/// use reference_server::Local;
/// # use std::io::{Read, Write};
/// # fn open_charge(url: &str, key: &str) -> String {
/// #     let host = url.trim_start_matches("http://");
/// #     let body = r#"{"asset":"BTC","amount":"49.90","currency":"EUR"}"#;
/// #     let mut stream = std::net::TcpStream::connect(host).unwrap();
/// #     write!(stream, "POST /v1/charges HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n\
/// #         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
/// #     let mut response = String::new();
/// #     stream.read_to_string(&mut response).unwrap();
/// #     response.split_once(r#""code":""#).unwrap().1[..12].to_owned()
/// # }
///
/// // The clock is frozen until the test moves it.
/// let server = Local::frozen("2026-01-05T09:00:00Z")?;
///
/// // Your own client, with the server's address and a key.
/// let charge = open_charge(server.url(), server.test_key());
///
/// // The customer pays, and a block is mined.
/// server.sandbox("pay", &format!(r#"{{"charge":"{charge}"}}"#))?;
/// let events = server.sandbox("mine", r#"{"asset":"BTC","blocks":1}"#)?;
/// assert!(events.contains("charge.paid"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Local {
    url: String,
    keys: (String, String),
    worlds: Arc<Worlds>,
    runtime: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Local {
    /// Starts a server on real time.
    ///
    /// # Errors
    ///
    /// The operating system's error: there is no free port, or no thread.
    pub fn start() -> io::Result<Local> {
        Local::with(Config::local())
    }

    /// Starts a server whose clock starts at `at`, such as `2026-01-05T09:00:00Z`, and moves only when the sandbox
    /// moves it. Retries, expiries and confirmations then take no real time.
    ///
    /// # Errors
    ///
    /// The errors of [`Local::start`], and `InvalidInput` if `at` is not an RFC 3339 time.
    pub fn frozen(at: &str) -> io::Result<Local> {
        let start = Timestamp::parse(at).ok_or_else(|| {
            let message = format!("`{at}` is not a start time; use RFC 3339, such as 2026-01-05T09:00:00Z");
            io::Error::new(io::ErrorKind::InvalidInput, message)
        })?;
        Local::with(Config { clock: ClockKind::Frozen, start: Some(start), ..Config::local() })
    }

    /// Starts a server with this configuration, such as another seed, no rate limit, or a handler that receives
    /// forwarded webhooks.
    ///
    /// # Errors
    ///
    /// The errors of [`Server::start`].
    pub fn with(config: Config) -> io::Result<Local> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("chargeproof".to_owned()).spawn(move || {
            let runtime = match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(sender.send(Err(error))),
            };
            runtime.block_on(async {
                match Server::start(config).await {
                    Err(error) => drop(sender.send(Err(error))),
                    Ok(server) => {
                        let worlds = server.worlds();
                        if sender.send(Ok((worlds, Handle::current()))).is_ok() {
                            // An error means that `Local` was dropped: stop as well.
                            let _ = stopped.await;
                        }
                    }
                }
            });
        })?;
        let stopped_early = || io::Error::other("the server stopped while starting");
        let (worlds, runtime) = receiver.recv().map_err(|_| stopped_early())??;
        let keys = worlds.first().host.first_keys().map_err(|_| stopped_early())?;
        Ok(Local {
            url: worlds.first().addresses.url().to_owned(),
            keys: (keys.live, keys.test),
            worlds,
            runtime,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Returns the URL of the server: `http://127.0.0.1:49152`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns a key of mode live.
    pub fn live_key(&self) -> &str {
        &self.keys.0
    }

    /// Returns a key of mode test.
    pub fn test_key(&self) -> &str {
        &self.keys.1
    }

    /// Sends `POST /sandbox/{call}` without an HTTP client, for every sandbox call: pay, mine, advance and so on.
    /// Returns the response, JSON with the recorded events.
    ///
    /// Blocks while webhooks are delivered, so a runtime that also runs your handler needs a second thread.
    ///
    /// # Errors
    ///
    /// `InvalidInput` with the response body, JSON with a `message`, if the status is not 2xx; another kind after an
    /// internal error of the server.
    pub fn sandbox(&self, call: &str, body: &str) -> io::Result<String> {
        call_sandbox(&self.runtime, self.worlds.first(), call, body)
    }

    /// Opens a separate world on this server, with its own clock, chains, keys and limits and the server's settings.
    /// Takes a few milliseconds, so every test may have one. Closed on drop.
    ///
    /// Worlds with the same name have the same seed, so they give the same responses.
    ///
    /// ```
    /// use reference_server::Local;
    ///
    /// let server = Local::frozen("2026-01-05T09:00:00Z")?;
    /// let (one, two) = (server.world("one")?, server.world("two")?);
    /// assert!(one.url().starts_with(server.url()) && one.live_key() != two.live_key());
    ///
    /// // Time passes in one of them.
    /// assert!(one.sandbox("advance", r#"{"by":"1d"}"#)?.contains("2026-01-06T09:00:00"));
    /// assert!(two.sandbox("advance", r#"{"by":"1s"}"#)?.contains("2026-01-05T09:00:01"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The maximum number of worlds is open, the memory limit is reached, or the server failed with an internal error.
    pub fn world(&self, name: &str) -> io::Result<LocalWorld> {
        let defaults = WorldOptions::from_parameters(self.worlds.defaults());
        let options = WorldOptions { name: Some(name.to_owned()), ..defaults };
        // The world's timer runs on the server's runtime.
        let _runtime = self.runtime.enter();
        let world = self.worlds.open(options).map_err(|error| match error {
            OpenError::NotStored(error) => error,
            OpenError::OutOfMemory(reason) => {
                io::Error::other(format!("{reason}; drop a world before opening another"))
            }
            _ => io::Error::other(format!("the maximum of {WORLDS_MAX} worlds is open; drop one first")),
        })?;
        let keys = world.backend.host.first_keys().map_err(|_| internal_error())?;
        Ok(LocalWorld {
            url: world.backend.addresses.url().to_owned(),
            keys: (keys.live, keys.test),
            world,
            worlds: Arc::clone(&self.worlds),
            runtime: self.runtime.clone(),
        })
    }
}

/// A world of a [`Local`] server, for one test. Closed on drop, or with its server.
pub struct LocalWorld {
    url: String,
    keys: (String, String),
    world: Arc<OpenedWorld>,
    worlds: Arc<Worlds>,
    runtime: Handle,
}

impl LocalWorld {
    /// Returns the URL of the world, to which `/v1` and the other paths are added:
    /// `http://127.0.0.1:49152/w/0a1b2c3d4e5f`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns a key of mode live. The server's own URL also routes it to this world.
    pub fn live_key(&self) -> &str {
        &self.keys.0
    }

    /// Returns a key of mode test.
    pub fn test_key(&self) -> &str {
        &self.keys.1
    }

    /// Sends `POST /sandbox/{call}` in this world, as [`Local::sandbox`].
    ///
    /// # Errors
    ///
    /// The errors of [`Local::sandbox`].
    pub fn sandbox(&self, call: &str, body: &str) -> io::Result<String> {
        call_sandbox(&self.runtime, &self.world.backend, call, body)
    }
}

impl Drop for LocalWorld {
    fn drop(&mut self) {
        self.worlds.end(self.world.id);
    }
}

fn call_sandbox(runtime: &Handle, backend: &Arc<Backend>, call: &str, body: &str) -> io::Result<String> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let (backend, path, request_body) = (Arc::clone(backend), format!("/sandbox/{call}"), body.to_owned());
    runtime.spawn(async move {
        let request = Request::json(backend.addresses.url(), "POST", &path, &request_body);
        let response = backend.host.respond(&request).await;
        // The caller waits for the response, so the receiver exists.
        let _ = sender.send(response);
    });
    let response = receiver.recv().map_err(|_| internal_error())?.map_err(|_| internal_error())?;
    let body = String::from_utf8(response.body.into()).map_err(io::Error::other)?;
    match response.status {
        200..=299 => Ok(body),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, body)),
    }
}

fn internal_error() -> io::Error {
    io::Error::other("the server failed with an internal error; see its output")
}

impl Drop for Local {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was already printed, and a second one here would hide that of the test.
            let _ = thread.join();
        }
    }
}

//! A server for the tests of a program in Rust: one line starts it, and dropping it stops it.

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
    Bounds, ClockKind, Config, McpClock, SandboxAccess, SenderConfig, Server,
    backend::Backend,
    worlds::{NotOpened, OpenedWorld, WORLDS_MAX, WorldOptions, Worlds},
};

/// Requests per minute and key, as the specification has it.
const RATE_LIMIT: u32 = 120;

impl Config {
    /// The configuration of [`Local`]: this machine, a free port, always the same world, real time, 120 requests
    /// per minute and key, and deliveries that stay inside the process.
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
            mcp_clock: McpClock::default(),
            bounds: Bounds::default(),
            log: None,
            sender: SenderConfig::default(),
            data: None,
            from: None,
        }
    }
}

/// A server of its own, on a free port of this machine, in a thread of its own. Stops when it is dropped.
///
/// It needs no runtime, so it serves tests with and without one. Each has a world of its own, the same every
/// time, so tests may run side by side.
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
/// #     let mut answer = String::new();
/// #     stream.read_to_string(&mut answer).unwrap();
/// #     answer.split_once(r#""code":""#).unwrap().1[..12].to_owned()
/// # }
///
/// // Time stands still until the test moves it.
/// let server = Local::frozen("2026-01-05T09:00:00Z")?;
///
/// // Your own client, with the server's address and a key.
/// let charge = open_charge(server.url(), server.live_key());
///
/// // The customer pays, and two blocks come.
/// server.sandbox("pay", &format!(r#"{{"charge":"{charge}"}}"#))?;
/// let happened = server.sandbox("mine", r#"{"asset":"BTC","blocks":2}"#)?;
/// assert!(happened.contains("charge.paid"));
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
    /// Starts one on real time.
    ///
    /// # Errors
    ///
    /// The operating system's: there is no free port, or no thread.
    pub fn start() -> io::Result<Local> {
        Local::with(Config::local())
    }

    /// Starts one whose clock shows `at`, such as `2026-01-05T09:00:00Z`, and moves only when the sandbox
    /// moves it. Retries, expiries and confirmations then take no time.
    ///
    /// # Errors
    ///
    /// Those of [`Local::start`], and `InvalidInput` if `at` is not an RFC 3339 time.
    pub fn frozen(at: &str) -> io::Result<Local> {
        let start = Timestamp::parse(at).ok_or_else(|| {
            let message =
                format!("the clock's start is `{at}`; it takes a moment such as 2026-01-05T09:00:00Z");
            io::Error::new(io::ErrorKind::InvalidInput, message)
        })?;
        Local::with(Config { clock: ClockKind::Frozen, start: Some(start), ..Config::local() })
    }

    /// Starts one as configured: another seed, no rate limit, a handler that webhooks are forwarded to.
    ///
    /// # Errors
    ///
    /// Those of [`Server::start`].
    pub fn with(config: Config) -> io::Result<Local> {
        let (tell, told) = mpsc::sync_channel(1);
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("chargeproof".to_owned()).spawn(move || {
            let runtime = match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(tell.send(Err(error))),
            };
            runtime.block_on(async {
                match Server::start(config).await {
                    Err(error) => drop(tell.send(Err(error))),
                    Ok(server) => {
                        let worlds = server.worlds();
                        if tell.send(Ok((worlds, Handle::current()))).is_ok() {
                            // An error is a drop, which means the same.
                            let _ = stopped.await;
                        }
                    }
                }
            });
        })?;
        let ended = || io::Error::other("the server ended before it began");
        let (worlds, runtime) = told.recv().map_err(|_| ended())??;
        let keys = worlds.first().host.first_keys().map_err(|_| ended())?;
        Ok(Local {
            url: worlds.first().addresses.url().to_owned(),
            keys: (keys.live, keys.test),
            worlds,
            runtime,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The address to call it by: `http://127.0.0.1:49152`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A key of mode live.
    pub fn live_key(&self) -> &str {
        &self.keys.0
    }

    /// A key of mode test.
    pub fn test_key(&self) -> &str {
        &self.keys.1
    }

    /// `POST /sandbox/{call}` without a client: pay, mine, advance, and all else that the sandbox can. Gives
    /// the answer, JSON with what happened.
    ///
    /// Waits for posts to your own handler, so a runtime that runs both has to have a second thread.
    ///
    /// # Errors
    ///
    /// `InvalidInput` with the answer of the sandbox, JSON with a `message`, if its status is not 2xx; another kind if the
    /// server met a bug of its own.
    pub fn sandbox(&self, call: &str, body: &str) -> io::Result<String> {
        ask_sandbox(&self.runtime, self.worlds.first(), call, body)
    }

    /// Opens a world of its own on this server: with its own clock, chains, keys and limits, on the same terms as the
    /// server's. Takes a few milliseconds, so every test may have one. It ends when it is dropped.
    ///
    /// Worlds of one name have the same seed, so the second one answers as the first did.
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
    /// As many worlds are open as may be, or the server met a bug of its own.
    pub fn world(&self, name: &str) -> io::Result<LocalWorld> {
        let usual = WorldOptions::usual(self.worlds.usual());
        let options = WorldOptions { name: Some(name.to_owned()), ..usual };
        // The timer of the world runs where the server does.
        let _inside = self.runtime.enter();
        let world = self.worlds.open(options).map_err(|why| match why {
            NotOpened::NotStored(error) => error,
            NotOpened::NoRoom(why) => io::Error::other(format!("{why}; drop one before you open another")),
            _ => io::Error::other(format!("{WORLDS_MAX} worlds are open; drop one before you open another")),
        })?;
        let keys = world.backend.host.first_keys().map_err(|_| broken())?;
        Ok(LocalWorld {
            url: world.backend.addresses.url().to_owned(),
            keys: (keys.live, keys.test),
            world,
            worlds: Arc::clone(&self.worlds),
            runtime: self.runtime.clone(),
        })
    }
}

/// A world of a [`Local`] server, for one test. It ends when it is dropped, or with its server.
pub struct LocalWorld {
    url: String,
    keys: (String, String),
    world: Arc<OpenedWorld>,
    worlds: Arc<Worlds>,
    runtime: Handle,
}

impl LocalWorld {
    /// The address to call it by, with `/v1` and the other paths after it: `http://127.0.0.1:49152/w/0a1b2c3d4e5f`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A key of mode live. It leads to this world at the server's own address too.
    pub fn live_key(&self) -> &str {
        &self.keys.0
    }

    /// A key of mode test.
    pub fn test_key(&self) -> &str {
        &self.keys.1
    }

    /// `POST /sandbox/{call}` in this world, as [`Local::sandbox`].
    ///
    /// # Errors
    ///
    /// Those of [`Local::sandbox`].
    pub fn sandbox(&self, call: &str, body: &str) -> io::Result<String> {
        ask_sandbox(&self.runtime, &self.world.backend, call, body)
    }
}

impl Drop for LocalWorld {
    fn drop(&mut self) {
        self.worlds.end(self.world.id);
    }
}

fn ask_sandbox(runtime: &Handle, backend: &Arc<Backend>, call: &str, body: &str) -> io::Result<String> {
    let (tell, told) = mpsc::sync_channel(1);
    let (backend, path, body) = (Arc::clone(backend), format!("/sandbox/{call}"), body.to_owned());
    runtime.spawn(async move {
        let request = Request::json(backend.addresses.url(), "POST", &path, &body);
        let answer = backend.host.respond(&request).await;
        // The caller waits for it.
        let _ = tell.send(answer);
    });
    let response = told.recv().map_err(|_| broken())?.map_err(|_| broken())?;
    let text = String::from_utf8(response.body.into()).map_err(io::Error::other)?;
    match response.status {
        200..=299 => Ok(text),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, text)),
    }
}

fn broken() -> io::Error {
    io::Error::other("the server met a bug of its own; its output says more")
}

impl Drop for Local {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in it was printed already, and a second one here would hide the test's own.
            let _ = thread.join();
        }
    }
}

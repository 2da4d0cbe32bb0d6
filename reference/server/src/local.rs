//! A server for the tests of a program in Rust: one line starts it, and dropping it stops it.

use std::{
    io,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};

use reference_core::{dialect::Dialect, draw::Seed, time::Timestamp, wire::http::Request};
use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
};

use crate::{Bounds, ClockKind, Config, CourierConfig, Server, front::Front};

/// Requests per minute and key, as the specification has it.
const RATE_LIMIT: u32 = 120;

impl Config {
    /// What [`Local`] starts with: this machine, a free port, always the same world, real time.
    pub fn local() -> Config {
        Config {
            address: ([127, 0, 0, 1], 0).into(),
            seed: Seed(1),
            start: None,
            rate_limit: Some(RATE_LIMIT),
            public_url: None,
            clock: ClockKind::Wall,
            dialect: Dialect::default(),
            bounds: Bounds::default(),
            courier: CourierConfig::default(),
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
    front: Arc<Front>,
    runtime: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Local {
    /// Starts one on real time.
    ///
    /// Fails if there is no free port or no thread to be had.
    pub fn start() -> io::Result<Local> {
        Local::with(Config::local())
    }

    /// Starts one whose clock shows `at`, such as `2026-01-05T09:00:00Z`, and moves only when the sandbox
    /// moves it. Retries, expiries and confirmations then take no time.
    ///
    /// Fails like [`Local::start`], and if `at` is no moment.
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
    /// Fails like [`Server::start`].
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
                        let front = server.front();
                        if tell.send(Ok((front, Handle::current()))).is_ok() {
                            // An error is a drop, which means the same.
                            let _ = stopped.await;
                        }
                    }
                }
            });
        })?;
        let ended = || io::Error::other("the server ended before it began");
        let (front, runtime) = told.recv().map_err(|_| ended())??;
        let keys = front.host.first_keys().map_err(|_| ended())?;
        Ok(Local {
            url: front.addresses.url().to_owned(),
            keys: (keys.live, keys.test),
            front,
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
    /// Fails with what the sandbox has to say against it. Waits for posts to your own handler, so a runtime
    /// that runs both has to have a second thread.
    pub fn sandbox(&self, call: &str, body: &str) -> io::Result<String> {
        let (tell, told) = mpsc::sync_channel(1);
        let (front, path, body) = (Arc::clone(&self.front), format!("/sandbox/{call}"), body.to_owned());
        self.runtime.spawn(async move {
            let request = Request {
                method: "POST",
                path: &path,
                query: None,
                authorization: None,
                content_type: Some(b"application/json"),
                idempotency_key: None,
                base: front.addresses.url(),
                body: body.as_bytes(),
            };
            let answer = front.host.respond(&request).await;
            // The caller waits for it.
            let _ = tell.send(answer);
        });
        let broken = || io::Error::other("the server met a bug of its own; its output says more");
        let response = told.recv().map_err(|_| broken())?.map_err(|_| broken())?;
        let text = String::from_utf8(response.body.into()).map_err(io::Error::other)?;
        if response.status == 200 { Ok(text) } else { Err(io::Error::new(io::ErrorKind::InvalidInput, text)) }
    }
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

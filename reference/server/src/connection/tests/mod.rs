//! Tests: the time limits, in virtual time over a pipe, so that no test has to wait.

use std::{convert::Infallible, net::Ipv4Addr};

use hyper_util::server::graceful::GracefulShutdown;
use reference_core::{dialect::Dialect, rng::Seed, time::Timestamp};
use reference_wire::{Request, Response};
use simulator::sandbox::{FirstKeys, Progress};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    task::JoinHandle,
    time::sleep,
};

use super::*;
use crate::{
    address::Addresses,
    backend::{SharedState, WorldParameters},
    clock::ClockKind,
    config::SandboxAccess,
    journal::RunningWorld,
    response_budget::ResponseBudget,
    sandbox_access::SandboxToken,
    world::World,
    worlds::Worlds,
};

mod bytes;

const HEAD_TIME: Duration = Duration::from_secs(10);
const BODY_TIME: Duration = Duration::from_secs(15);
const IDLE_TIME: Duration = Duration::from_secs(75);
const STALL_TIME: Duration = Duration::from_secs(15);
const SECOND: Duration = Duration::from_secs(1);

const GET: &str = "GET /v1/a HTTP/1.1\r\nHost: a\r\n\r\n";

/// A [`World`], the service behind the server, that responds with the length of the request body; to `/v1/megabyte`,
/// with a megabyte.
struct BodyLengthWorld;

impl World for BodyLengthWorld {
    fn now(&self) -> Timestamp {
        Timestamp(0)
    }

    fn next_due(&self) -> Option<Timestamp> {
        None
    }

    fn advance_to(&mut self, _now: Timestamp) {}

    fn respond(&mut self, _now: Timestamp, request: &Request<'_>) -> Progress {
        let body = match request.path {
            "/v1/megabyte" => vec![b'x'; 1_000_000],
            _ => format!("{} bytes\n", request.body.len()).into_bytes(),
        };
        Progress::Done(Response { status: 200, headers: Vec::new(), body: body.into() })
    }

    fn first_keys(&self) -> FirstKeys {
        FirstKeys { live: String::new(), test: String::new() }
    }
}

/// The client's end of a connection through a pipe, and the task that serves it.
struct Pipe {
    stream: DuplexStream,
    server: JoinHandle<()>,
    started_at: Instant,
    /// Held, because dropping it stops the connection.
    shutdown: GracefulShutdown,
}

/// Returns a router with this world.
fn router_of(world: Box<dyn World>) -> Arc<Router> {
    let bounds = Bounds {
        head_time: HEAD_TIME,
        body_time: BODY_TIME,
        idle_time: IDLE_TIME,
        stall_time: STALL_TIME,
        ..Bounds::default()
    };
    let shared = SharedState {
        addresses: Addresses::new(([127, 0, 0, 1], 8080).into(), None, SandboxAccess::default()),
        token: Arc::new(SandboxToken::generate().expect("the system generates random bytes")),
        bounds,
        in_flight: Arc::new(ResponseBudget::new(bounds.bytes_in_flight)),
        dialect: Dialect::default(),
        log: None,
        webhook_sender: None,
        #[cfg(feature = "mcp")]
        mcp_clock: crate::config::McpClockAccess::default(),
    };
    let parameters = WorldParameters {
        seed: Seed(1),
        start: Some(Timestamp(0)),
        clock: ClockKind::Frozen,
        rate_limit: None,
    };
    let worlds = Worlds::new(shared, parameters, |setup| {
        Ok::<_, Infallible>(RunningWorld::without_journal(world, setup))
    });
    let Ok(worlds) = worlds.map(Arc::new);
    Arc::new(
        Router::new(worlds, &Dialect::default(), Arc::default()).expect("the system generates random bytes"),
    )
}

/// Opens a connection to a [`BodyLengthWorld`].
fn connect() -> Pipe {
    connect_to(router_of(Box::new(BodyLengthWorld)))
}

/// Opens a connection through a pipe that buffers 64 KiB in each direction.
fn connect_to(router: Arc<Router>) -> Pipe {
    let (stream, server_stream) = duplex(65_536);
    let addrs = ConnectionAddrs { remote: Ipv4Addr::LOCALHOST.into(), local: Ipv4Addr::LOCALHOST.into() };
    let shutdown = GracefulShutdown::new();
    let server =
        tokio::spawn(serve(router, server_stream, addrs, Arc::new(Activity::new()), shutdown.watcher()));
    Pipe { stream, server, started_at: Instant::now(), shutdown }
}

impl Pipe {
    async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.expect("the server accepts the bytes");
    }

    /// Checks that the server closes the connection at the time `after` since it was opened. The bytes that the
    /// client has not read yet must be one complete response with `connection: close` that starts with `expected`, or
    /// none if `expected` is empty.
    #[track_caller]
    fn check_closes(self, after: Duration, expected: &'static str) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        let Pipe { mut stream, server, started_at, shutdown } = self;
        async move {
            server.await.expect("the connection task does not panic");
            drop(shutdown);
            let deviation = started_at.elapsed().abs_diff(after);
            assert!(
                deviation < Duration::from_millis(10),
                "{caller}: closed after {:?}",
                started_at.elapsed()
            );
            let mut received = String::new();
            stream.read_to_string(&mut received).await.expect("the output is UTF-8");
            assert!(
                received.starts_with(expected) && received.is_empty() == expected.is_empty(),
                "{caller}: {received}"
            );
            if let Some((head, body)) = received.split_once("\r\n\r\n") {
                assert!(head.contains(&format!("content-length: {}", body.len())), "{caller}: {received}");
                assert!(head.contains("connection: close"), "{caller}: {received}");
            }
        }
    }

    /// Reads one response of a [`BodyLengthWorld`], whose body ends with `bytes` and a line feed.
    async fn read_response(&mut self) -> String {
        let mut response = String::new();
        while !response.ends_with("bytes\n") {
            response.push(self.stream.read_u8().await.expect("the server sends a response").into());
        }
        response
    }
}

const REQUEST_TIMEOUT: &str = "HTTP/1.1 408 Request Timeout\r\n";

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_closed_without_a_response() {
    connect().check_closes(HEAD_TIME, "").await;
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_head_times_out() {
    let mut pipe = connect();
    pipe.send("GET /v1/a HT").await;
    pipe.check_closes(HEAD_TIME, REQUEST_TIMEOUT).await;
}

#[tokio::test(start_paused = true)]
async fn a_head_sent_in_small_pieces_times_out_too() {
    let mut pipe = connect();
    for piece in ["GET", " /v1/a", " HTTP/1.1", "\r\nX: x", "\r\nX: x"] {
        pipe.send(piece).await;
        sleep(2 * SECOND).await;
    }
    pipe.check_closes(HEAD_TIME, REQUEST_TIMEOUT).await;
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_of_a_head_starts_with_its_first_byte() {
    let mut pipe = connect();
    sleep(8 * SECOND).await;
    pipe.send("GET /v1/a HTTP/1.1\r\n").await;
    sleep(9 * SECOND).await;
    pipe.send("Host: a\r\n\r\n").await;
    pipe.read_response().await;
    sleep(60 * SECOND).await;
    pipe.send("GET").await;
    pipe.check_closes(8 * SECOND + 9 * SECOND + 60 * SECOND + HEAD_TIME, REQUEST_TIMEOUT).await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_after_its_last_response() {
    let mut pipe = connect();
    for _ in 0..5 {
        pipe.send(GET).await;
        pipe.read_response().await;
        sleep(70 * SECOND).await;
    }
    pipe.check_closes(280 * SECOND + IDLE_TIME, "").await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_with_an_incomplete_pipelined_request_counts_as_idle() {
    let mut pipe = connect();
    pipe.send(&format!("{GET}GET /v1/b")).await;
    pipe.read_response().await;
    pipe.check_closes(IDLE_TIME, "").await;
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_body_times_out() {
    let mut pipe = connect();
    pipe.send("POST /v1/a HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf").await;
    pipe.check_closes(BODY_TIME, REQUEST_TIMEOUT).await;
}

#[tokio::test(start_paused = true)]
async fn a_body_sent_in_small_pieces_times_out_too() {
    let mut pipe = connect();
    pipe.send("POST /v1/a HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n").await;
    for _ in 0..7 {
        sleep(2 * SECOND).await;
        pipe.send("part").await;
    }
    pipe.check_closes(BODY_TIME, REQUEST_TIMEOUT).await;
}

#[tokio::test(start_paused = true)]
async fn a_body_may_take_longer_than_a_head() {
    let mut pipe = connect();
    pipe.send("POST /v1/a HTTP/1.1\r\nHost: a\r\nContent-Length: 28\r\n\r\n").await;
    for _ in 0..7 {
        sleep(2 * SECOND).await;
        pipe.send("part").await;
    }
    assert!(pipe.read_response().await.ends_with("28 bytes\n"));
    // The idle time starts at the response; no time limit of the body remains.
    pipe.check_closes(14 * SECOND + IDLE_TIME, "").await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_its_response_is_disconnected() {
    let mut pipe = connect();
    pipe.send("GET /v1/megabyte HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let Pipe { mut stream, server, started_at, shutdown } = pipe;
    server.await.expect("the connection task does not panic");
    drop(shutdown);
    assert!(
        started_at.elapsed().abs_diff(STALL_TIME) < Duration::from_millis(10),
        "{:?}",
        started_at.elapsed()
    );
    let mut received = Vec::new();
    stream.read_to_end(&mut received).await.expect("a pipe can be read");
    assert_eq!(received.len(), 65_536, "the full buffer of the pipe, without an error response");
    assert!(received.ends_with(b"xxx"));
}

//! Property test: random bytes through hyper's parser and the server's router, with a real world. The server returns
//! complete responses or closes the connection, within a bounded time.

use proptest::{prelude::*, sample::select};
use reference_core::rng::Seed;
use simulator::sandbox::{Sandbox, Setup};
use tokio::{runtime::Builder, time::timeout};

use super::*;

/// The maximum duration of a connection: a head, a body, an idle client and a stalled write, each as slow as allowed.
const DURATION_MAX: Duration = Duration::from_secs(10 + 15 + 75 + 15);

const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "get", "G\0T", ""];
const TARGETS: &[&str] = &[
    "/v1/charges",
    "/v1/charges?page=2&per_page=100&status=paid",
    "/v1/invoices/abc/send",
    "/sandbox/advance",
    "/sandbox/endpoints",
    "/sandbox/books/acme/live/charges",
    "/dashboard/acme/test/charges",
    "/c/aaaaaaaaaaaa",
    "/assets/none",
    "/mcp",
    "/openapi.json",
    "/metrics",
    "/",
    "*",
    "http://localhost/healthz",
    "//",
    "/%00%ff",
    "/v1/../sandbox",
    "/\u{e9}",
];
const VERSIONS: &[&str] = &["HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/1.", "http/1.1", ""];
const LINE_ENDS: &[&str] = &["\r\n", "\n", "\r", "\r\n\r\n", ""];
const HEADERS: &[&str] = &[
    "Host: localhost",
    "Host: localhost",
    "Host: evil.example",
    "Host: ",
    "Content-Type: application/json",
    "Content-Type: application/x-www-form-urlencoded",
    "Content-Length: 12",
    "Content-Length: 0",
    "Content-Length: -1",
    "Content-Length: 99999999999999999999",
    "Content-Length: 300000",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked",
    "Expect: 100-continue",
    "Connection: close",
    "Connection: upgrade",
    "Upgrade: h2c",
    "Accept: application/json, text/event-stream",
    "Idempotency-Key: a",
    "Authorization: Bearer svc_test_x",
    "Origin: null",
    "X : y",
    " folded",
    ": nothing",
    "X: \u{0}\u{7f}",
];
const BODIES: &[&str] = &[
    "",
    "",
    "{\"by\":\"1s\"}\n",
    "{\"url\":\"a\"}\n",
    "5\r\n{\"a\":\r\n2\r\n1}\r\n0\r\n\r\n",
    "ffffffffffffffff\r\n",
    "0\r\nX: y\r\n\r\n",
    "[[[[[[[[[[[[",
];

/// Generates a request, each part of which may be invalid.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let request_line = (select(METHODS), select(TARGETS), select(VERSIONS));
    let headers = prop::collection::vec((select(HEADERS), select(LINE_ENDS)), 0..8);
    (request_line, headers, select(BODIES), any::<[bool; 3]>()).prop_map(
        |(
            (method, target, version),
            headers,
            body,
            [has_known_version, has_head_end, has_valid_line_ends],
        )| {
            let version = if has_known_version { "HTTP/1.1" } else { version };
            let mut text = format!("{method} {target} {version}\r\n");
            for (header, end) in headers {
                text += header;
                text += if has_valid_line_ends { "\r\n" } else { end };
            }
            (text + if has_head_end { "\r\n" } else { "" } + body).into_bytes()
        },
    )
}

/// Generates the chunks that a client sends: pipelined requests and random bytes, with up to two bytes changed.
fn chunks() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let noise = prop::collection::vec(any::<u8>(), 0..200);
    let requests = prop::collection::vec(prop_oneof![8 => request(), 1 => noise], 1..5);
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    let cuts = prop::collection::vec(any::<prop::sample::Index>(), 0..4);
    (requests, changes, cuts).prop_map(|(requests, changes, cuts)| {
        let mut bytes = requests.concat();
        for (index, byte) in changes {
            if !bytes.is_empty() {
                let index = index.index(bytes.len());
                bytes[index] = byte;
            }
        }
        let mut bounds: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        bounds.extend([0, bytes.len()]);
        bounds.sort_unstable();
        bounds.windows(2).map(|pair| bytes[pair[0]..pair[1]].to_vec()).collect()
    })
}

/// Generates `true` if the client closes its sending side.
fn any_half_close() -> impl Strategy<Value = bool> {
    any::<bool>()
}

fn router() -> Arc<Router> {
    let world = Sandbox::new(&Setup::new(Seed(1), Timestamp(1_789_898_741_000_000), "http://localhost"));
    router_of(Box::new(world))
}

/// Sends the chunks and returns all bytes of the server.
async fn run_connection(router: Arc<Router>, chunks: Vec<Vec<u8>>, half_closes: bool) -> Vec<u8> {
    let Pipe { stream, server, shutdown, .. } = connect_to(router);
    let (mut from_server, mut to_server) = tokio::io::split(stream);
    let sending = async {
        for chunk in chunks {
            // The server may have closed the connection.
            if to_server.write_all(&chunk).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        if half_closes {
            let _ = to_server.shutdown().await;
        }
    };
    let mut received = Vec::new();
    let session = async {
        let (_, read) = tokio::join!(sending, from_server.read_to_end(&mut received));
        read.expect("a pipe can be read");
        server.await.expect("no connection panics");
    };
    timeout(DURATION_MAX, session).await.expect("every connection ends within the maximum duration");
    drop(shutdown);
    received
}

/// Parses complete responses and returns their statuses. `HEAD` is not among the methods, so every response has its
/// body.
fn statuses(mut bytes: &[u8]) -> Result<Vec<u16>, String> {
    let mut statuses = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n").ok_or("a head has no end")?;
        let head = std::str::from_utf8(&bytes[..end]).map_err(|error| error.to_string())?;
        let status: u16 = head
            .strip_prefix("HTTP/1.")
            .and_then(|rest| rest.get(2..5)?.parse().ok())
            .ok_or_else(|| format!("{head:?} is not a response"))?;
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let length: usize = length.unwrap_or(0);
        bytes = bytes.get(end + 4 + length..).ok_or_else(|| format!("the response {status} is truncated"))?;
        statuses.push(status);
    }
    Ok(statuses)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_get_complete_responses_or_a_closed_connection(
        connections in prop::collection::vec((chunks(), any_half_close()), 1..4),
    ) {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
        runtime.block_on(async {
            let router = router();
            for (chunks, half_closes) in connections {
                let received = run_connection(Arc::clone(&router), chunks, half_closes).await;
                let statuses = statuses(&received);
                prop_assert!(statuses.is_ok(), "{statuses:?}: {}", String::from_utf8_lossy(&received));
                // 501 and 505 are hyper's; 500 would be an internal error of the server.
                prop_assert!(!statuses.unwrap_or_default().contains(&500), "{}", String::from_utf8_lossy(&received));
                prop_assert!(!router.backend.host.is_broken(), "the world failed with an internal error");
            }
            Ok(())
        })?;
    }
}

#[tokio::test(start_paused = true)]
async fn requests_get_the_expected_statuses() {
    let router = router();
    for (text, expected) in [
        (
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /v1/account HTTP/1.1\r\nHost: a\r\n\r\n",
            &[200, 401][..],
        ),
        ("GET /sandbox HTTP/1.1\r\nHost: localhost\r\n\r\n", &[200]),
        ("nonsense\r\n\r\n", &[400]),
        ("", &[]),
    ] {
        let received = run_connection(Arc::clone(&router), vec![text.as_bytes().to_vec()], true).await;
        assert_eq!(statuses(&received).as_deref(), Ok(expected), "{text}");
    }
}

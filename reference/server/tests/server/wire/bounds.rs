//! Limits on sizes and numbers. Time limits are tested with a virtual clock in the unit tests of the server.

use super::{Client, config, start, start_frozen};
use reference_server::{Bounds, ClockKind, Config, Server};

const BODY_MAX: usize = 256 * 1_024;

/// Starts a server with these limits, and connects to it.
async fn start_with_bounds(bounds: Bounds) -> (Server, Client) {
    let (server, _) = start(Config { bounds, ..config(ClockKind::Frozen) }).await;
    let client = Client::connect(server.address()).await;
    (server, client)
}

/// Returns the head of a `POST` with this `Content-Length` and these additional header lines.
fn head_with_length(length: usize, header_lines: &str) -> String {
    format!("POST /v1/charges HTTP/1.1\r\nHost: a\r\n{header_lines}Content-Length: {length}\r\n\r\n")
}

#[tokio::test]
async fn a_body_may_have_the_maximum_size() {
    let (_server, mut client) = start_frozen().await;
    client.send(head_with_length(BODY_MAX, "")).await;
    let response = client.call("x".repeat(BODY_MAX)).await;
    assert_eq!(response.status, 200);
    assert!(response.body.len() > BODY_MAX);
}

#[track_caller]
fn check_too_large(response: Option<testkit::Message>) {
    let response = response.expect("the server responds");
    assert_eq!(response.status, 413);
    assert_eq!(response.body, "{\"message\":\"The body may have at most 262144 bytes.\"}");
    assert_eq!(response.header("connection"), Some("close"));
}

#[tokio::test]
async fn a_slightly_oversized_body_is_read_before_the_413() {
    let (_server, mut client) = start_frozen().await;
    client.send(head_with_length(BODY_MAX + 1, "")).await;
    client.send("x".repeat(BODY_MAX + 1)).await;
    check_too_large(client.message().await);
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn a_far_too_large_content_length_is_refused_without_reading_the_body() {
    let (_server, mut client) = start_frozen().await;
    client.send(head_with_length(usize::MAX / 4, "")).await;
    check_too_large(client.message().await);
}

#[tokio::test]
async fn an_oversized_body_with_expect_continue_is_refused_without_reading_it() {
    let (_server, mut client) = start_frozen().await;
    client.send(head_with_length(BODY_MAX + 1, "Expect: 100-continue\r\n")).await;
    check_too_large(client.message().await);
}

#[tokio::test]
async fn the_body_limit_applies_to_the_sum_of_chunks() {
    let (_server, mut client) = start_frozen().await;
    client.send("POST /v1/a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    for _ in 0..4 {
        client.send(&chunk).await;
    }
    client.send("1\r\nx\r\n0\r\n\r\n").await;
    check_too_large(client.message().await);
}

#[tokio::test]
async fn endless_chunks_are_not_read_forever() {
    let (_server, mut client) = start_frozen().await;
    client.send("POST /v1/a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    // One chunk more than the server discards; it responds without waiting for the last chunk.
    for _ in 0..17 {
        client.try_send(&chunk).await;
    }
    check_too_large(client.message().await);
}

#[tokio::test]
async fn a_head_above_the_limit_gets_431() {
    for head in [
        format!("GET /v1/a HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(40_000)),
        format!("GET /v1/{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(40_000)),
        format!("GET /v1/a HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: x\r\n".repeat(101)),
    ] {
        let (server, mut client) = start_frozen().await;
        client.try_send(head).await;
        let response = client.message().await.expect("the server responds");
        assert_eq!((response.status, &*response.body), (431, ""));

        let mut client = Client::connect(server.address()).await;
        assert_eq!(client.call("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await.status, 200);
    }
}

#[tokio::test]
async fn a_head_below_the_limit_is_accepted() {
    let (_server, mut client) = start_frozen().await;
    let response =
        client.call(format!("GET /v1/a HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(30_000))).await;
    assert_eq!(response.status, 200);
}

const GET: &str = "GET /v1/a HTTP/1.1\r\nHost: a\r\n\r\n";

#[tokio::test]
async fn a_new_connection_evicts_the_longest_idle_one() {
    let (server, mut first) = start_with_bounds(Bounds { connections: 2, ..Bounds::default() }).await;
    let mut second = Client::connect(server.address()).await;
    for client in [&mut first, &mut second] {
        assert_eq!(client.call(GET).await.status, 200);
    }
    let mut third = Client::connect(server.address()).await;
    assert_eq!(third.call(GET).await.status, 200);
    assert!(first.is_closed().await);
    let page = second.call("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").await.body;
    assert!(page.contains("chargeproof_http_connections 2\n"), "{page}");
}

#[tokio::test]
async fn a_client_with_an_incomplete_body_is_evicted() {
    let (server, mut first) = start_with_bounds(Bounds { connections: 2, ..Bounds::default() }).await;
    let mut second = Client::connect(server.address()).await;
    for client in [&mut first, &mut second] {
        client.send(head_with_length(4, "Expect: 100-continue\r\n")).await;
        assert_eq!(client.message().await.expect("100 Continue").status, 100);
    }
    let mut third = Client::connect(server.address()).await;
    assert_eq!(third.call(GET).await.status, 200);
    assert!(first.is_closed().await);
    assert_eq!(second.call("body").await.status, 200);
}

/// Returns a request for a response of this size.
fn request_for_bytes(bytes: usize) -> String {
    let length = bytes.to_string();
    format!("POST /v1/long HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{length}", length.len())
}

#[tokio::test]
async fn an_unread_response_blocks_other_large_responses() {
    // Larger than the socket buffers.
    const LARGE: usize = 64 << 20;
    let (server, mut not_reading) =
        start_with_bounds(Bounds { bytes_in_flight: LARGE, ..Bounds::default() }).await;
    not_reading.send(request_for_bytes(LARGE)).await;
    let mut other = Client::connect(server.address()).await;
    // Repeated until the first response takes up the budget.
    let refused = loop {
        let response = other.call(request_for_bytes(100_000)).await;
        if response.status != 200 {
            break response;
        }
    };
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert!(refused.body.contains("Retry in a second"), "{refused:?}");
    assert_eq!(other.call(GET).await.status, 200, "a small response fits in the budget");
    assert_eq!(not_reading.message().await.expect("the whole response arrives").body.len(), LARGE);
    assert_eq!(other.call(request_for_bytes(100_000)).await.status, 200);
}

//! Start, shutdown, and the state after a panic.

use std::{io::ErrorKind, time::Duration};

use super::{Client, config, start, start_frozen};
use reference_server::{Bounds, ClockKind, Config, Server};

const GET: &str = "GET /v1/a HTTP/1.1\r\nHost: a\r\n\r\n";

/// Starts a request and returns once the server waits for its body.
async fn start_request(client: &mut Client) {
    client.send("POST /v1/a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n").await;
    assert_eq!(client.message().await.expect("100 Continue").status, 100);
}

#[tokio::test]
async fn a_stopping_server_finishes_running_requests() {
    let (server, mut busy) = start_frozen().await;
    let mut idle = Client::connect(server.address()).await;
    idle.call(GET).await;
    start_request(&mut busy).await;

    let address = server.address();
    let stopping = tokio::spawn(server.stop());
    assert!(idle.is_closed().await, "an idle connection is closed at once");
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "the port is closed");
    let response = busy.call("body").await;
    assert!(response.body.ends_with("body=body"), "{response:?}");
    assert!(busy.is_closed().await);
    assert_eq!(stopping.await.expect("the server stops"), 0);
}

#[tokio::test]
async fn a_stopping_server_closes_running_requests_after_the_drain_time() {
    let bounds = Bounds { drain_time: Duration::from_millis(50), ..Bounds::default() };
    let (server, _) = start(Config { bounds, ..config(ClockKind::Frozen) }).await;
    let mut client = Client::connect(server.address()).await;
    start_request(&mut client).await;
    assert_eq!(server.stop().await, 1);
    assert!(client.message().await.is_none());
}

#[tokio::test]
async fn a_server_runs_until_it_is_stopped() {
    let (server, mut client) = start_frozen().await;
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let running = tokio::spawn(server.run_until(async { stopped.await.expect("the server is stopped") }));
    assert_eq!(client.call(GET).await.status, 200);
    stop.send(()).expect("the server listens");
    assert_eq!(running.await.expect("the server stops"), 0);
}

#[tokio::test]
async fn a_dropped_server_closes_its_connections() {
    let (server, mut client) = start_frozen().await;
    start_request(&mut client).await;
    drop(server);
    assert!(client.message().await.is_none());
}

#[tokio::test]
async fn after_a_panic_of_the_world_every_request_gets_500() {
    let (server, mut client) = start_frozen().await;
    for path in ["/v1/bug", "/v1/a", "/v1/a"] {
        let response = client.call(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        assert_eq!(response.status, 500, "{path}");
        assert!(
            response.body.starts_with("{\"message\":\"The server failed with an internal error"),
            "{response:?}"
        );
    }
    let response = client.call("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!((response.status, &*response.body), (503, "{\"status\":\"broken\"}"));
    let page = client.call("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").await.body;
    assert!(page.contains("chargeproof_healthy 0\n"), "{page}");
    assert!(server.first_keys().is_none());
    assert_eq!(server.now(), None);
    assert_eq!(server.stop().await, 0);
}

#[tokio::test]
async fn the_public_url_contains_the_bound_address() {
    let (server, mut client) = start_frozen().await;
    let response = client.call("GET /v1/public HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(response.body, format!("http://{}", server.address()));
    assert_eq!(server.url(), response.body);
    assert_ne!(server.address().port(), 0);
}

#[tokio::test]
async fn a_server_serves_the_sandbox_by_default() {
    let server = Server::start(config(ClockKind::Frozen)).await.expect("loopback has a free port");
    let mut client = Client::connect(server.address()).await;
    let response = client.call("GET /v1/nowhere HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!((400..500).contains(&response.status), "{response:?}");
    assert_eq!(response.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn a_server_that_cannot_start_returns_the_reason() {
    let (server, _client) = start_frozen().await;
    let in_use = Config { address: server.address(), ..config(ClockKind::Frozen) };
    let error = Server::start(in_use).await.err().expect("the address is in use");
    assert_eq!(error.kind(), ErrorKind::AddrInUse);

    let invalid = Config { public_url: Some("shop.example".to_string()), ..config(ClockKind::Frozen) };
    let error = Server::start(invalid).await.err().expect("the public URL is invalid");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("`shop.example`"), "{error}");
}

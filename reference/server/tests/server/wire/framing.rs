//! HTTP framing: where a request ends and the next one begins, and which parts of it the server passes to the world.

use super::{Client, config, start, start_frozen};
use reference_server::{ClockKind, Config};

/// Sends a request on a new connection and checks status and body. `BOUND` in `expected` is the listening address.
#[track_caller]
fn check(request: &str, expected: &str) {
    check_with(config(ClockKind::Frozen), request, expected);
}

/// Like [`check`], with this configuration.
#[track_caller]
fn check_with(config: Config, request: &str, expected: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (found, bound) = runtime.block_on(async {
        let (server, _) = start(config).await;
        let mut client = Client::connect(server.address()).await;
        let response = client.call(request).await;
        (format!("{} {}", response.status, response.body), server.address().to_string())
    });
    assert_eq!(found.replace(&bound, "BOUND"), expected);
}

#[test]
fn requests_reach_the_world_unchanged() {
    check(
        "GET /v1/charges?status=paid&x=%20 HTTP/1.1\r\nHost: shop.example:81\r\n\r\n",
        "200 GET /v1/charges ?status=paid&x=%20 auth=- type=- key=- base=http://shop.example:81 body=",
    );
    check(
        "POST /v1/charges HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer k\r\nContent-Type: application/json\r\n\
         Idempotency-Key: once\r\nContent-Length: 2\r\n\r\n{}",
        "200 POST /v1/charges ?- auth=Bearer k type=application/json key=once base=http://a body={}",
    );
}

#[test]
fn path_escapes_are_not_decoded() {
    check(
        "GET /v1/%2e%2E/a%2Fb//c/../d HTTP/1.1\r\nHost: a\r\n\r\n",
        "200 GET /v1/%2e%2E/a%2Fb//c/../d ?- auth=- type=- key=- base=http://a body=",
    );
    check("GET /%761/charges HTTP/1.1\r\nHost: a\r\n\r\n", "404 {\"message\":\"Not found.\"}");
}

#[test]
fn repeated_authorization_counts_as_missing() {
    check(
        "GET /v1/account HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer k\r\nAuthorization: Bearer l\r\n\r\n",
        "200 GET /v1/account ?- auth=- type=- key=- base=http://a body=",
    );
}

#[test]
fn an_absolute_target_determines_the_base_of_links() {
    check(
        "GET http://other.example:82/v1/charges?page=2 HTTP/1.1\r\nHost: a\r\n\r\n",
        "200 GET /v1/charges ?page=2 auth=- type=- key=- base=http://other.example:82 body=",
    );
}

#[test]
fn links_use_the_server_address_if_the_host_is_invalid() {
    check(
        "GET /v1/a HTTP/1.1\r\nHost: \"><script>\r\n\r\n",
        "200 GET /v1/a ?- auth=- type=- key=- base=http://BOUND body=",
    );
    check("GET /v1/a HTTP/1.0\r\n\r\n", "200 GET /v1/a ?- auth=- type=- key=- base=http://BOUND body=");
}

#[test]
fn exactly_one_host_header_is_required() {
    let refusal = "400 {\"message\":\"An HTTP/1.1 request has exactly one Host header.\"}";
    check("GET /v1/a HTTP/1.1\r\n\r\n", refusal);
    check("GET /v1/a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", refusal);
    check("GET /v1/a HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", refusal);
}

#[test]
fn the_public_url_starts_every_link_and_its_path_is_stripped() {
    for target in ["/pay/v1/charges", "/v1/charges", "http://elsewhere/pay/v1/charges"] {
        let public_url = Some("https://shop.example/pay/".to_string());
        check_with(
            Config { public_url, ..config(ClockKind::Frozen) },
            &format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"),
            "200 GET /v1/charges ?- auth=- type=- key=- base=https://shop.example/pay body=",
        );
    }
}

#[test]
fn a_chunked_body_arrives_in_one_piece() {
    check(
        "POST /v1/a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
         3\r\none\r\n4;x=y\r\n,two\r\n1\r\n.\r\n0\r\nTrailer: t\r\n\r\n",
        "200 POST /v1/a ?- auth=- type=- key=- base=http://a body=one,two.",
    );
}

#[test]
fn invalid_chunks_are_refused() {
    check(
        "POST /v1/a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "400 {\"message\":\"The body ended early, or its chunked encoding is invalid.\"}",
    );
}

#[test]
fn invalid_http_gets_an_empty_error() {
    for garbage in
        ["\x16\x03\x01\x02\x00\r\n\r\n", "hello\r\n\r\n", "GET /v1/a\r\n\r\n", "GET /v1 /a HTTP/1.1\r\n\r\n"]
    {
        check(garbage, "400 ");
    }
}

#[tokio::test]
async fn a_connection_serves_several_requests() {
    let (_server, mut client) = start_frozen().await;
    for n in 0..3 {
        let response = client.call(format!("GET /v1/{n} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        assert!(response.body.starts_with(&format!("GET /v1/{n} ")), "{response:?}");
        assert_eq!(response.header("connection"), None);
    }
}

#[tokio::test]
async fn pipelined_requests_get_responses_in_order() {
    let (_server, mut client) = start_frozen().await;
    let mut packet = String::new();
    for n in 0..20 {
        packet += &format!("POST /v1/{n} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nbody{}", n % 10);
    }
    client.send(packet).await;
    for n in 0..20 {
        let response = client.message().await.expect("every request gets a response");
        assert!(response.body.starts_with(&format!("POST /v1/{n} ")), "{response:?}");
        assert!(response.body.ends_with(&format!("body=body{}", n % 10)), "{response:?}");
    }
}

#[tokio::test]
async fn a_connection_closes_when_the_client_requests_it() {
    for request in [
        "GET /v1/a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "GET /v1/a HTTP/1.0\r\nHost: a\r\n\r\n",
    ] {
        let (_server, mut client) = start_frozen().await;
        assert_eq!(client.call(request).await.status, 200);
        assert!(client.is_closed().await);
    }
}

#[tokio::test]
async fn a_half_closed_connection_gets_its_responses() {
    let (_server, mut client) = start_frozen().await;
    client.send("GET /v1/1 HTTP/1.1\r\nHost: a\r\n\r\nGET /v1/2 HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client.close_sending_side().await;
    for n in 1..3 {
        let response = client.message().await.expect("both requests get a response");
        assert!(response.body.starts_with(&format!("GET /v1/{n} ")), "{response:?}");
    }
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn truncated_requests_affect_no_others() {
    let (server, mut client) = start_frozen().await;
    client.send("GET /v1/a HT").await;
    client.close_sending_side().await;
    assert!(client.is_closed().await);

    let mut client = Client::connect(server.address()).await;
    client.send("POST /v1/a HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf").await;
    client.close_sending_side().await;
    assert_eq!(client.message().await.expect("the server responds").status, 400);

    let mut client = Client::connect(server.address()).await;
    assert_eq!(client.call("GET /v1/a HTTP/1.1\r\nHost: a\r\n\r\n").await.status, 200);
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let (_server, mut client) = start_frozen().await;
    for path in ["/v1/charges", "/healthz", "/metrics", "/", "/nowhere"] {
        let get = client.call(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        client.send(format!("HEAD {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        let head = client.head().await.expect("the server responds");
        assert_eq!(head.status, get.status, "{path}");
        assert_eq!(head.header("content-type"), get.header("content-type"), "{path}");
        // The echoed request contains the method, which is one letter longer. The metrics page grows with each request.
        let length = get.body.len() + usize::from(path == "/v1/charges");
        let is_same = head.header("content-length") == Some(&*length.to_string());
        assert!(is_same || path == "/metrics", "{path}: {head:?}");
    }
    // This response could not be parsed after an unexpected body.
    assert_eq!(client.call("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await.body, "{\"status\":\"ok\"}");
}

#[tokio::test]
async fn responses_have_a_content_type_and_no_store() {
    let (_server, mut client) = start_frozen().await;
    for path in ["/v1/charges", "/nowhere", "/healthz"] {
        let response = client.call(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        for (name, value) in [
            ("content-type", "application/json"),
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
        ] {
            assert_eq!(response.header(name), Some(value), "{path}");
        }
        assert!(response.header("date").is_some(), "{path}");
    }
}

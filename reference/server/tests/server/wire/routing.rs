//! Routing of paths to the world and to the server itself, and access to the sandbox.

use super::{Client, config, start, start_frozen};
use reference_server::{ClockKind, Config, SandboxAccess};

/// Sends a request without a body to the host `localhost`; checks the status and a part of the body.
#[track_caller]
fn check(method: &str, path: &str, status: u16, part: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let response = runtime.block_on(async {
        let (_server, mut client) = start_frozen().await;
        client.call(format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")).await
    });
    assert_eq!(response.status, status, "{method} {path}: {response:?}");
    assert!(response.body.contains(part), "{method} {path}: {response:?}");
}

#[test]
fn requests_to_the_api_and_the_sandbox_reach_the_world() {
    for path in ["/v1", "/v1/", "/v1/charges/x", "/sandbox", "/sandbox/", "/sandbox/keys/x"] {
        check("GET", path, 200, &format!("GET {path} "));
        check("POST", path, 200, &format!("POST {path} "));
    }
}

#[test]
fn healthz_metrics_and_the_index_are_served_without_the_world() {
    check("GET", "/healthz", 200, r#"{"status":"ok"}"#);
    check("GET", "/metrics", 200, "chargeproof_http_connections 1\n");
    check("GET", "/", 200, r#""sandbox":"/sandbox""#);
    for path in ["/healthz", "/metrics", "/"] {
        check("POST", path, 405, "GET and HEAD only");
    }
}

#[test]
fn other_paths_are_not_found() {
    for path in ["/v2", "/v1x", "/sandboxes", "//v1", "/healthz/", "/V1", "/favicon.ico"] {
        check("GET", path, 404, r#"{"message":"Not found."}"#);
    }
    check("OPTIONS", "*", 404, r#"{"message":"Not found."}"#);
}

#[tokio::test]
async fn metrics_count_responses() {
    let (_server, mut client) = start_frozen().await;
    for path in ["/v1/a", "/v1/b", "/nowhere"] {
        client.call(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    }
    let response = client.call("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").await;
    for line in [
        "requests_total{class=\"2xx\"} 2\n",
        "requests_total{class=\"4xx\"} 1\n",
        "_time_seconds 1789898741.0\n",
    ] {
        assert!(response.body.contains(line), "{}", response.body);
    }
    assert_eq!(response.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let accepts = "Accept: application/openmetrics-text; version=1.0.0, text/plain;q=0.5\r\n";
    let response = client.call(format!("GET /metrics HTTP/1.1\r\nHost: a\r\n{accepts}\r\n")).await;
    assert_eq!(
        response.header("content-type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    assert!(response.body.ends_with("# EOF\n"), "{}", response.body);
}

/// Sends a `POST` with a body to `/sandbox/pay`, with these header lines.
async fn post_with_headers(client: &mut Client, lines: &str) -> (u16, String) {
    let response =
        client.call(format!("POST /sandbox/pay HTTP/1.1\r\n{lines}Content-Length: 2\r\n\r\n{{}}")).await;
    (response.status, response.body)
}

#[tokio::test]
async fn sandbox_errors_explain_how_to_get_access() {
    let (server, mut client) = start_frozen().await;
    let json = "Content-Type: application/json\r\n";
    let port = server.address().port();
    for (lines, status, expected) in [
        (format!("Host: localhost\r\n{json}"), 200, "POST /sandbox/pay"),
        (format!("Host: evil.example\r\n{json}"), 403, "--public-url"),
        (format!("Host: localhost\r\nOrigin: http://evil.example\r\n{json}"), 403, "another origin"),
        (format!("Host: localhost:{port}\r\nOrigin: http://localhost:{port}\r\n{json}"), 200, "POST"),
        (format!("Host: localhost\r\nVia: 1.1 proxy\r\n{json}"), 403, "token"),
        ("Host: localhost\r\nContent-Type: text/plain\r\n".to_string(), 415, "application/json"),
        ("Host: localhost\r\n".to_string(), 415, "application/json"),
        (
            format!(
                "Host: localhost\r\nVia: 1.1 p\r\nAuthorization: Bearer {}\r\n{json}",
                server.sandbox_token()
            ),
            200,
            "POST",
        ),
    ] {
        let (found, body) = post_with_headers(&mut client, &lines).await;
        assert_eq!(found, status, "{lines}{body}");
        assert!(body.contains(expected), "{lines}{body}");
        assert!(status == 200 || body.starts_with(r#"{"message":""#), "{body}");
    }
}

#[tokio::test]
async fn pages_of_other_sites_cannot_call_the_sandbox() {
    let (_server, mut client) = start_frozen().await;
    for (method, site, mode, status) in [
        ("POST", "cross-site", "no-cors", 403),
        ("POST", "cross-site", "navigate", 403),
        ("POST", "same-site", "cors", 403),
        ("DELETE", "cross-site", "cors", 403),
        ("GET", "cross-site", "no-cors", 403),
        ("GET", "cross-site", "navigate", 200),
        ("POST", "same-origin", "cors", 200),
        ("GET", "none", "navigate", 200),
    ] {
        let lines = format!("Host: localhost\r\nSec-Fetch-Site: {site}\r\nSec-Fetch-Mode: {mode}\r\n");
        let response = client.call(format!("{method} /sandbox/x HTTP/1.1\r\n{lines}\r\n")).await;
        assert_eq!(response.status, status, "{method} {lines}{}", response.body);
        assert_eq!(response.body.contains("another origin"), status == 403, "{}", response.body);
    }
    let twice = "Host: localhost\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site\r\n";
    let response = client.call(format!("POST /sandbox/x HTTP/1.1\r\n{twice}\r\n")).await;
    assert_eq!(response.status, 403, "{}", response.body);
}

#[tokio::test]
async fn an_absolute_target_sets_the_host() {
    let (_server, mut client) = start_frozen().await;
    for (target, host, status) in
        [("http://evil.example/sandbox", "localhost", 403), ("http://localhost/sandbox", "evil.example", 200)]
    {
        let response = client.call(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
        assert_eq!(response.status, status, "{target}");
    }
}

#[tokio::test]
async fn the_public_path_prefix_does_not_change_access() {
    let public_url = Some("https://shop.example/pay".to_string());
    let (server, _) = start(Config { public_url, ..config(ClockKind::Frozen) }).await;
    let mut client = Client::connect(server.address()).await;
    for path in ["/pay/sandbox", "/sandbox"] {
        let response = client.call(format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n\r\n")).await;
        assert_eq!(response.status, 403, "{path}: {response:?}");
    }
    assert_eq!(client.call("GET /pay HTTP/1.1\r\nHost: shop.example\r\n\r\n").await.status, 200);
}

#[tokio::test]
async fn a_public_url_requires_the_token_unless_loopback_is_trusted() {
    let public_url = Some("https://shop.example".to_string());
    for (access, status) in [(SandboxAccess::TokenWhenPublic, 403), (SandboxAccess::TrustLoopback, 200)] {
        let config =
            Config { public_url: public_url.clone(), sandbox_access: access, ..config(ClockKind::Frozen) };
        let (server, _) = start(config).await;
        let mut client = Client::connect(server.address()).await;
        let head = "GET /sandbox HTTP/1.1\r\nHost: localhost\r\n";
        assert_eq!(client.call(format!("{head}\r\n")).await.status, status, "{access:?}");
        let token = server.sandbox_token();
        let response = client.call(format!("{head}Authorization: Bearer {token}\r\n\r\n")).await;
        assert_eq!(response.status, 200, "{access:?}");
        let dashboard = client.call("GET /dashboard/acme/live HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        assert_eq!(dashboard.status == 401, status == 403, "{access:?}: {dashboard:?}");
    }
}

#[tokio::test]
async fn http_1_0_requests_count_as_proxied() {
    let (_server, mut client) = start_frozen().await;
    let response = client.call("GET /sandbox HTTP/1.0\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(response.status, 403, "{response:?}");
}

//! Access to `/mcp`: keys, origins and rate limits.

use serde_json::json;

use super::{Client, config, start};
use reference_server::Config;

#[tokio::test]
async fn requests_without_a_valid_key_get_401() {
    let (_server, live, _) = start(config()).await;
    for unknown in [live.with_key(""), live.with_key("svc_live_0000000000000000000000000000000000000000")] {
        let response = unknown.send_rpc("tools/list", json!({})).await;
        assert_eq!(
            (response.status, response.header("www-authenticate")),
            (401, Some("bearer")),
            "{response:?}"
        );
        assert_eq!(response.body, json!({ "message": "Unauthenticated." }));
    }
}

#[tokio::test]
async fn calls_share_the_rate_limit_of_the_api() {
    let (_server, live, test) = start(config()).await;
    let response = live.send_rpc("ping", json!({})).await;
    assert_eq!(response.header("x-ratelimit-limit"), Some("120"));
    assert_eq!(response.header("x-ratelimit-remaining"), Some("119"));
    // A tool call is one request, not two.
    let response = live.send_rpc("tools/call", json!({ "name": "get_account", "arguments": {} })).await;
    assert_eq!(response.header("x-ratelimit-remaining"), Some("118"), "{response:?}");
    let response = live.send("GET", "/v1/account", "").await;
    assert_eq!(response.header("x-ratelimit-remaining"), Some("117"));
    // Rejected requests count too, except those with an unknown key.
    assert_eq!(live.send("GET", "/mcp", "").await.header("x-ratelimit-remaining"), Some("116"));
    assert_eq!(live.with_host("evil.example").send_rpc("ping", json!({})).await.status, 403);
    assert_eq!(live.with_key("x").send_rpc("ping", json!({})).await.status, 401);
    for remaining in (0..115).rev() {
        let response = live.send("GET", "/v1/account", "").await;
        assert_eq!(response.header("x-ratelimit-remaining"), Some(remaining.to_string().as_str()));
    }
    for response in [live.send_rpc("ping", json!({})).await, live.send("GET", "/v1/account", "").await] {
        assert_eq!((response.status, response.header("retry-after")), (429, Some("60")), "{response:?}");
        assert!(response.body["message"].as_str().is_some_and(|text| text.contains("120 a minute")));
    }
    // The other key has its own limit, and the limit uses the service clock.
    Client::success(test.call_tool("advance", json!({ "by": "60s" })).await);
    assert_eq!(live.send_rpc("ping", json!({})).await.status, 200);
}

#[tokio::test]
async fn requests_with_foreign_hosts_or_origins_are_refused() {
    let public_url = Some("https://pay.example/shop".to_owned());
    let (server, live, _) = start(Config { public_url, ..config() }).await;
    let port = server.address().port();
    for (host, origin, status) in [
        ("localhost", "", 200),
        ("[::1]:80", "", 200),
        ("pay.example", "", 200),
        ("pay.example", "https://pay.example", 200),
        ("evil.example", "", 403),
        ("127.0.0.1.evil.example", "", 403),
        ("localhost", "http://localhost", 200),
        ("localhost", "http://evil.example", 403),
        ("localhost", "null", 403),
        ("pay.example", "https://pay.example.evil.example", 403),
    ] {
        let origin = if origin.is_empty() { String::new() } else { format!("Origin: {origin}\r\n") };
        let client = live.with_host(host).with_header_lines(&origin);
        let response = client.send_rpc("ping", json!({})).await;
        assert_eq!(response.status, status, "{host} {origin}{response:?}");
        // A refused host or origin does not reveal if the key is valid.
        let unknown = client.with_key("").send_rpc("ping", json!({})).await;
        assert_eq!(unknown.status, if status == 200 { 401 } else { 403 });
    }
    let same_origin = live.with_header_lines(&format!("Origin: http://127.0.0.1:{port}\r\n"));
    assert_eq!(same_origin.send_rpc("ping", json!({})).await.status, 200);
    let with_prefix = live.send("GET", "/shop/mcp", "").await;
    assert_eq!(with_prefix.status, 405);
}

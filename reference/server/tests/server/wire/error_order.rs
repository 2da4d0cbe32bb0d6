//! The order of errors: a request with several gets the first of 401, 429, 404, 405, 413, 415, 400, 422, 409. Errors
//! that do not depend on the body are returned before it arrives.

use reference_server::{Config, Server};
use testkit::Message;

use super::Client;

/// A body over the limit, too long to be read to its end.
const FAR_TOO_LARGE: usize = 4 << 20;

struct Shop {
    server: Server,
    live: String,
    test: String,
}

impl Shop {
    async fn start(rate_limit: u32) -> Shop {
        let config = Config { rate_limit: Some(rate_limit), ..crate::config() };
        let server = Server::start(config).await.expect("loopback has a free port");
        let keys = server.first_keys().expect("the world has no internal error");
        Shop { server, live: keys.live, test: keys.test }
    }

    async fn client(&self) -> Client {
        Client::connect(self.server.address()).await
    }

    /// Sends a request with these additional header lines on a new connection. `announced`: its `Content-Length`, which
    /// the body may not reach.
    async fn call(
        &self,
        method_and_path: &str,
        key: &str,
        header_lines: &str,
        (announced, body): (usize, &str),
    ) -> Message {
        let mut client = self.client().await;
        client
            .call(format!(
                "{method_and_path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n{header_lines}Content-Length: {announced}\r\n\r\n{body}"
            ))
            .await
    }

    /// Creates a charge and returns its id.
    async fn create_charge(&self, key: &str) -> String {
        let body = r#"{"asset":"BTC","amount":"1"}"#;
        let response = self.call("POST /v1/charges", key, JSON, (body.len(), body)).await;
        assert_eq!(response.status, 201, "{response:?}");
        let charge: serde_json::Value = serde_json::from_str(&response.body).expect("JSON");
        charge["data"]["id"].as_str().expect("an id").to_owned()
    }
}

const JSON: &str = "Content-Type: application/json\r\n";
const TEXT: &str = "Content-Type: text/plain\r\n";
const BLANK_KEY: &str = "Content-Type: application/json\r\nIdempotency-Key:  \t \r\n";
const EMPTY_KEY: &str = "Content-Type: application/json\r\nIdempotency-Key:\r\n";

#[tokio::test]
async fn the_first_error_in_the_order_is_returned() {
    let shop = Shop::start(120).await;
    let (canceled, foreign) = (shop.create_charge(&shop.live).await, shop.create_charge(&shop.test).await);
    let cancel = format!("POST /v1/charges/{canceled}/cancel");
    assert_eq!(shop.call(&cancel, &shop.live, JSON, (2, "{}")).await.status, 200);
    let put_foreign = format!("PUT /v1/charges/{foreign}/cancel");
    let (invalid, large) = (r#"{"asset":"XYZ","amount":"1"}"#, (FAR_TOO_LARGE, ""));
    // Each request has all the errors of the following ones, where possible.
    let mut previous = None;
    for (line, key, header_lines, body, status) in [
        ("PUT /v1/nowhere", "svc_live_x", TEXT, large, 401),
        ("PUT /v1/nowhere", &shop.live, TEXT, large, 404),
        (&put_foreign, &shop.live, TEXT, large, 404),
        ("PUT /v1/charges/aaaaaaaaaaaa/cancel", &shop.live, TEXT, large, 404),
        ("PUT /v1/charges", &shop.live, TEXT, large, 405),
        ("POST /v1/charges", &shop.live, TEXT, large, 413),
        ("POST /v1/charges", &shop.live, TEXT, (1, "{"), 415),
        ("POST /v1/charges", &shop.live, EMPTY_KEY, (invalid.len(), invalid), 400),
        ("POST /v1/charges", &shop.live, BLANK_KEY, (invalid.len(), invalid), 400),
        ("POST /v1/charges", &shop.live, JSON, (1, "{"), 400),
        ("POST /v1/charges", &shop.live, JSON, (invalid.len(), invalid), 422),
        (&cancel, &shop.live, JSON, (1, "["), 400),
        (&cancel, &shop.live, JSON, (2, "{}"), 409),
    ] {
        let response = shop.call(line, key, header_lines, body).await;
        assert_eq!(response.status, status, "{line} {header_lines}{body:?}: {response:?}");
        assert_eq!(response.header("allow"), (status == 405).then_some("GET, HEAD, POST"), "{response:?}");
        let remaining = response.header("x-ratelimit-remaining").map(|n| n.parse::<u32>().expect("a number"));
        if status == 401 {
            assert_eq!(remaining, None, "a request with an unknown key counts: {response:?}");
        } else {
            assert_eq!(
                remaining,
                previous.map_or(remaining, |previous: u32| Some(previous - 1)),
                "{line}: {response:?}"
            );
            assert_eq!(response.header("x-ratelimit-limit"), Some("120"), "{response:?}");
            previous = remaining;
        }
    }
}

#[tokio::test]
async fn errors_of_the_head_are_returned_before_the_body_arrives() {
    let shop = Shop::start(2).await;
    for (line, key, status) in [
        ("POST /v1/charges", "svc_live_x", 401),
        ("POST /v1/nowhere", &*shop.live, 404),
        ("DELETE /v1/charges", &shop.live, 405),
        ("POST /v1/charges", &shop.live, 429),
        ("POST /v1/nowhere", &shop.live, 429),
    ] {
        let response = shop.call(line, key, JSON, (9, "")).await;
        assert_eq!(response.status, status, "{line}: {response:?}");
        assert_eq!(response.header("retry-after").is_some(), status == 429, "{response:?}");
    }
}

#[tokio::test]
async fn pages_and_the_sandbox_return_errors_of_the_head_before_the_body_arrives() {
    let shop = Shop::start(120).await;
    const PROXY: &str = "Via: 1.1 proxy\r\n";
    for (line, header_lines, status) in [
        ("POST /c/aaaaaaaaaaaa/sandbox", "", 404),
        ("POST /i/aaaaaaaaaaaa/sandbox", "", 404),
        ("POST /i/aaaaaaaaaaaa/coin", "", 404),
        ("POST /pay/aaaaaaaaaaaa", "", 404),
        ("POST /pay/aaaaaaaaaaaa/nowhere", "", 404),
        ("POST /c/aaaaaaaaaaaa", "", 405),
        ("POST /dashboard/acme/live/nowhere", "", 404),
        ("POST /dashboard/nowhere", "", 404),
        ("PUT /dashboard/acme/live/keys", "", 405),
        ("POST /dashboard/acme/live/keys", PROXY, 401),
        ("POST /dashboard/login", "Origin: http://elsewhere.example\r\n", 403),
        ("POST /sandbox/nowhere", "", 404),
        ("PUT /sandbox/pay", "", 405),
        ("POST /sandbox/pay", PROXY, 403),
        ("POST /healthz", "", 405),
    ] {
        let head = format!("{line} HTTP/1.1\r\nHost: localhost\r\n{header_lines}Content-Length: 9\r\n\r\n");
        let response = shop.client().await.call(head).await;
        assert_eq!(response.status, status, "{line} {header_lines}: {response:?}");
    }
}

#[tokio::test]
async fn a_body_that_arrives_after_the_error_response_is_discarded() {
    let shop = Shop::start(120).await;
    let mut client = shop.client().await;
    for _ in 0..2 {
        let head = format!("POST /v1/charges HTTP/1.1\r\nHost: a\r\n{JSON}Content-Length: 200000\r\n\r\n");
        assert_eq!(client.call(head).await.status, 401);
        client.send("x".repeat(200_000)).await;
    }
    assert_eq!(client.call("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await.status, 200);
    let expecting = format!(
        "POST /v1/charges HTTP/1.1\r\nHost: a\r\n{JSON}Expect: 100-continue\r\nContent-Length: 9\r\n\r\n"
    );
    assert_eq!(client.call(expecting).await.status, 401, "no 100 Continue is sent");
}

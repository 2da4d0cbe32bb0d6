//! Deliveries over real sockets.
//!
//! The address rule, which allows only public addresses, cannot be disabled for tests. They reach loopback as
//! developers do: by a [`Forward`] of deliveries for a public host to a local port.

mod address_rule;
mod attempt_results;
mod authority;
mod fairness;
mod forwards;
mod load;
mod log;
pub(crate) mod receiver;
pub(crate) mod resolver;
mod stop;
mod time;
mod worlds;

use std::{sync::Arc, time::Duration};

use receiver::Receiver;
use reference_server::{Config, Forward, Reach, SenderBounds, SenderConfig, Server};
use resolver::TestResolver;
use serde_json::{Value, json};
use testkit::{AsyncConnection, Request};

const RESPONSE_200: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Shop: one\r\n\r\nok";
const RESPONSE_500: &str = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n";

/// Limits of the webhook sender: long enough for a busy machine, short enough for a test.
const BOUNDS: SenderBounds = SenderBounds {
    connect_timeout: Duration::from_secs(5),
    attempt_timeout: Duration::from_secs(10),
    attempts: 256,
    abort_after: Duration::from_secs(10),
    attempts_per_host: 8,
    lookups: 64,
    lookups_per_account: 8,
};

pub(crate) fn config(sender: SenderConfig) -> Config {
    Config { sender, ..crate::config() }
}

/// Returns a sender configuration with this resolver and these forwards.
pub(crate) fn sender_config(resolver: &TestResolver, forwards: &[String]) -> SenderConfig {
    SenderConfig {
        reach: Reach::Network,
        extra_roots: None,
        forwards: forwards.iter().map(|text| Forward::parse(text).expect("the forward is valid")).collect(),
        resolver: Arc::new(resolver.clone()),
        bounds: BOUNDS,
    }
}

/// Returns a forward from `https://shop.example` to this receiver.
pub(crate) fn shop_forward(receiver: &Receiver) -> String {
    format!("https://shop.example=http://{}", receiver.address)
}

/// A payment server with a frozen clock unless configured otherwise, and its live endpoint
/// `https://shop.example/hooks?a=1`.
struct PaymentService {
    server: Server,
    /// The id of the endpoint.
    endpoint: String,
    secret: String,
}

impl PaymentService {
    async fn start(sender: SenderConfig) -> PaymentService {
        PaymentService::start_with(config(sender)).await
    }

    async fn start_with(config: Config) -> PaymentService {
        let server = Server::start(config).await.expect("loopback has a free port");
        let (status, response) = add_endpoint(&server, "https://shop.example/hooks?a=1").await;
        assert_eq!(status, 200, "{response}");
        let text = |name: &str| response["endpoint"][name].as_str().expect("a string").to_owned();
        PaymentService { endpoint: text("id"), secret: text("secret"), server }
    }

    /// Sends a test delivery and returns its id.
    async fn send(&self) -> String {
        let path = format!("/sandbox/endpoints/{}/test", self.endpoint);
        let (status, response) = call(&self.server, "POST", &path, &json!({})).await;
        assert_eq!(status, 200, "{response}");
        response["delivery"].as_str().expect("an id").to_owned()
    }

    /// Waits until every attempt in flight has ended: an advance of the clock waits for them.
    async fn wait_for_attempts(&self) {
        let (status, response) = call(&self.server, "POST", "/sandbox/advance", &json!({ "by": "1s" })).await;
        assert_eq!(status, 200, "{response}");
    }

    /// Returns the log entry of a delivery.
    async fn delivery_record(&self, delivery: &str) -> Value {
        call(&self.server, "GET", &format!("/sandbox/deliveries/{delivery}"), &Value::Null).await.1["delivery"]
            .take()
    }

    /// Sends a test delivery and returns the log entry of its only attempt.
    async fn make_attempt(&self) -> Value {
        let delivery = self.send().await;
        self.wait_for_attempts().await;
        let mut delivery = self.delivery_record(&delivery).await;
        assert_eq!(delivery["attempts"].as_array().map(Vec::len), Some(1), "{delivery}");
        delivery["attempts"][0].take()
    }
}

/// Adds a live endpoint with this URL.
pub(crate) async fn add_endpoint(server: &Server, url: &str) -> (u16, Value) {
    call(server, "POST", "/sandbox/endpoints", &json!({ "mode": "live", "url": url })).await
}

/// Sends a JSON request with the live key on a new connection; returns status and body (null if it is not JSON).
pub(crate) async fn call(server: &Server, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, text) = call_text(server, method, path, &body).await;
    (status, serde_json::from_str(&text).unwrap_or(Value::Null))
}

/// Sends a request with the live key on a new connection; returns status and body as text.
pub(crate) async fn call_text(server: &Server, method: &str, path: &str, body: &str) -> (u16, String) {
    let key = server.first_keys().expect("the world has no internal error").live;
    let request = Request { method, body, key: Some(&key), ..Request::get(path) };
    let response = AsyncConnection::connect(server.address()).await.call_once(request).await;
    (response.status, response.body)
}

//! [`Shop`]: a running server, with methods that send requests to the API and the sandbox.

use std::path::Path;

use reference_core::time::Timestamp;
use reference_server::{Bounds, ClockKind, Config, SandboxAccess, Server};
use serde_json::{Value, json};

use testkit::{AsyncConnection, browser::Page};

const START: Timestamp = Timestamp(1_789_898_741_000_000); // 2026-09-20T10:05:41Z

/// A running server with the account `acme`.
pub(crate) struct Shop {
    pub(crate) server: Server,
}

impl Shop {
    /// Starts a server with a frozen clock.
    pub(crate) async fn frozen() -> Shop {
        Shop::with_clock(ClockKind::Frozen).await
    }

    /// Starts a server with this clock.
    pub(crate) async fn with_clock(clock: ClockKind) -> Shop {
        Shop::start(clock, None, Bounds::default()).await
    }

    /// Starts a server with a public URL.
    pub(crate) async fn with_public_url(public_url: &str) -> Shop {
        Shop::start(ClockKind::Frozen, Some(public_url), Bounds::default()).await
    }

    /// Starts a server that accepts at most this number of connections.
    pub(crate) async fn with_connections(connections: usize) -> Shop {
        Shop::start(ClockKind::Frozen, None, Bounds { connections, ..Bounds::default() }).await
    }

    async fn start(clock: ClockKind, public_url: Option<&str>, bounds: Bounds) -> Shop {
        let config = Config {
            start: Some(START),
            rate_limit: None,
            public_url: public_url.map(str::to_owned),
            clock,
            bounds,
            sandbox_access: SandboxAccess::TrustLoopback,
            ..Config::local()
        };
        Shop { server: Server::start(config).await.expect("loopback has a free port") }
    }

    /// Returns the URL of a path on the server.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address())
    }

    /// Sends `GET` to the API with a key and returns the status.
    pub(crate) async fn status_with_key(&self, key: &str, path: &str) -> u16 {
        let address = self.server.address();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\r\n");
        AsyncConnection::connect(address).await.call(request).await.status
    }

    /// Sends `GET` to the sandbox and returns the body of the response.
    pub(crate) async fn read(&self, path: &str) -> Value {
        self.send("GET", path, None, &Value::Null).await
    }

    async fn send(&self, method: &str, path: &str, key: Option<&str>, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let bearer = key.map(|key| format!("Authorization: Bearer {key}\r\n")).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{bearer}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.server.address(),
            body.len(),
        );
        let response = AsyncConnection::connect(self.server.address()).await.call(request).await;
        assert!(
            matches!(response.status, 200..300),
            "{method} {path} {body}: {} {}",
            response.status,
            response.body
        );
        serde_json::from_str(&response.body).expect("responses are JSON")
    }

    /// Calls the API with the live key and returns `data`.
    pub(crate) async fn api(&self, method: &str, path: &str, body: Value) -> Value {
        let keys = self.server.first_keys().expect("the world has no internal error");
        self.send(method, path, Some(&keys.live), &body).await["data"].take()
    }

    /// Sends `POST` to `/sandbox/{path}`.
    pub(crate) async fn sandbox(&self, path: &str, body: Value) -> Value {
        self.send("POST", &format!("/sandbox/{path}"), None, &body).await
    }

    /// Sends `PATCH` to a path of the sandbox, which starts with `/sandbox`.
    pub(crate) async fn patch(&self, path: &str, body: Value) -> Value {
        self.send("PATCH", path, None, &body).await
    }

    /// Creates an object through the API and returns the path of its page, such as `/c/` and a code.
    pub(crate) async fn create(&self, kind: &str, body: Value) -> String {
        let created = self.api("POST", &format!("/v1/{kind}"), body).await;
        let code = created["code"].as_str().expect("a code");
        match kind {
            "charges" => format!("/c/{code}"),
            "invoices" => format!("/i/{code}"),
            _ => format!("/pay/{code}"),
        }
    }

    /// Creates a charge of 49.90 EUR in a coin, and returns the path of its page.
    pub(crate) async fn create_charge(&self, asset: &str) -> String {
        let body =
            json!({ "asset": asset, "amount": "49.90", "currency": "EUR", "description": "Order 1001" });
        self.create("charges", body).await
    }

    /// Returns the last segment of a path: the code in the path of an object's page.
    pub(crate) fn code(path: &str) -> &str {
        path.rsplit('/').next().expect("a path has parts")
    }

    /// Pays this share of the amount due of a charge, advances the clock by ten seconds, and mines blocks.
    pub(crate) async fn pay(&self, charge: &str, share: &str, blocks: u32) {
        let code = Shop::code(charge);
        self.sandbox("pay", json!({ "charge": code, "share": share })).await;
        self.sandbox("advance", json!({ "by": "10s" })).await;
        if blocks > 0 {
            let asset = self.api("GET", &format!("/v1/charges/{code}"), Value::Null).await["asset"].take();
            self.sandbox("mine", json!({ "mode": "live", "asset": asset, "blocks": blocks })).await;
        }
    }
}

/// Stores a screenshot of a page in the target directory if `CHARGEPROOF_PICTURES` is set.
pub(crate) async fn save_screenshot(page: &Page, name: &str) {
    if std::env::var_os("CHARGEPROOF_PICTURES").is_some() {
        page.screenshot(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures").join(format!("{name}.png")))
            .await;
    }
}

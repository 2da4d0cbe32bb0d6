//! `/openapi.json` over a real socket.

use reference_core::dialect::Dialect;
use reference_server::{Config, Server};
use serde_json::Value;
use testkit::{AsyncConnection, Request};

use super::document::{self, Document};
use crate::config;

/// Sends a request without a body; returns status, head and body of the response.
async fn call(server: &Server, method: &str, path: &str, host: &str) -> (u16, String, String) {
    let request = Request { method, host, ..Request::get(path) };
    let response = AsyncConnection::connect(server.address()).await.call_once(request).await;
    (response.status, response.head().to_lowercase(), response.body)
}

#[tokio::test]
async fn the_document_contains_the_address_of_the_request() {
    let server = Server::start(config()).await.expect("loopback has a free port");
    let (status, head, body) = call(&server, "GET", "/openapi.json", "localhost:7").await;
    assert_eq!(status, 200);
    assert!(head.contains("content-type: application/json"), "{head}");
    assert_eq!(body, document::TEXT.replace("http://127.0.0.1:8402", "http://localhost:7"));
    let value: Value = serde_json::from_str(&body).expect("the document is JSON");
    assert_eq!(value["servers"][0]["url"], "http://localhost:7");
}

#[tokio::test]
async fn the_document_contains_the_public_url_and_the_dialect() {
    let dialect = Dialect {
        key_prefix: "acme".into(),
        header_prefix: "X-Acme".into(),
        user_agent: "Acme-Webhooks/1.0".into(),
    };
    let public_url = Some("https://pay.example/shop".to_owned());
    let server = Server::start(Config { dialect, public_url, ..config() }).await.expect("a free port");
    for path in ["/openapi.json", "/shop/openapi.json"] {
        let (_, _, body) = call(&server, "GET", path, "pay.example").await;
        let value: Value = serde_json::from_str(&body).expect("the document is JSON");
        assert_eq!(value["servers"][0]["url"], "https://pay.example/shop");
        assert_eq!(value["components"]["parameters"]["webhookEvent"]["name"], "X-Acme-Event");
        assert!(!body.contains("svc_") && !body.contains("X-Service") && !body.contains("8402"));
    }
}

#[tokio::test]
async fn the_document_is_read_only() {
    let server = Server::start(config()).await.expect("a free port");
    let (status, head, body) = call(&server, "HEAD", "/openapi.json", "localhost").await;
    assert!(status == 200 && body.is_empty() && head.contains("content-length: "), "{head}");
    assert_eq!(call(&server, "POST", "/openapi.json", "localhost").await.0, 405);
    assert_eq!(call(&server, "GET", "/openapi.json/", "localhost").await.0, 404);
}

#[tokio::test]
async fn responses_of_the_server_itself_match_the_document() {
    let server = Server::start(config()).await.expect("a free port");
    let mut document = Document::read();
    for (path, host, status) in [
        ("/healthz", "localhost", 200),
        ("/openapi.json", "localhost", 200),
        ("/sandbox", "evil.example", 403),
        ("/sandbox", "localhost", 200),
        ("/v1/account", "localhost", 401),
        // A second `Host` header.
        ("/v1/account", "localhost\r\nHost: again", 400),
    ] {
        let (found, head, body) = call(&server, "GET", path, host).await;
        assert_eq!(found, status, "{path}: {body}");
        let operation = document.find("GET", path).unwrap_or_else(|| panic!("{path} is not documented"));
        let value = serde_json::from_str(&body).expect("the body is JSON");
        document
            .validate_response(&operation, status, &value)
            .unwrap_or_else(|error| panic!("{path} {head}: {error}"));
    }
    let (status, head, _) = call(&server, "GET", "/metrics", "localhost").await;
    let types = &document.value["paths"]["/metrics"]["get"]["responses"][status.to_string()]["content"];
    let documented: Vec<&String> = types.as_object().expect("the response has a type").keys().collect();
    assert!(documented.iter().all(|kind| head.contains(&format!("content-type: {kind}"))), "{head}");
}

//! The request that a receiver gets, and its entry in the delivery log.

use std::time::SystemTime;

use hmac::{Hmac, KeyInit, Mac};
use reference_core::dialect::Dialect;
use reference_server::Config;
use serde_json::{Value, json};
use sha2::Sha256;
use testkit::Message;

use super::{
    PaymentService, RESPONSE_200, call, config,
    receiver::{Receiver, ReceiverBehavior},
    resolver::TestResolver,
    sender_config, shop_forward,
};

/// Returns `true` if the signature header of a request matches its body and the secret.
pub(super) fn is_signed(request: &Message, header: &str, secret: &str) -> bool {
    let value = request.header(header).expect("a signature");
    let (time, signature) = value.split_once(',').expect("the signature has two parts");
    let time = time.strip_prefix("t=").expect("the first part is the time");
    let signature = signature.strip_prefix("v1=").expect("the second part is the signature");
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC accepts keys of any length");
    mac.update(time.as_bytes());
    mac.update(b".");
    mac.update(request.body.as_bytes());
    hex::encode(mac.finalize().into_bytes()) == signature
}

/// Returns the `t` of a signature, in seconds since 1970.
fn signed_at(request: &Message) -> i64 {
    let value = request.header("X-Service-Signature").expect("a signature");
    value["t=".len()..].split(',').next().and_then(|t| t.parse().ok()).expect("a time")
}

fn unix_time() -> i64 {
    let elapsed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    i64::try_from(elapsed.as_secs()).expect("the time fits i64")
}

#[tokio::test]
async fn a_delivery_is_a_signed_post_with_the_headers_of_the_specification() {
    let mut receiver = Receiver::http(ReceiverBehavior::RespondAndClose(RESPONSE_200)).await;
    let service =
        PaymentService::start(sender_config(&TestResolver::default(), &[shop_forward(&receiver)])).await;
    let delivery = service.send().await;
    let request = receiver.next_request().await;
    assert_eq!(request.start_line, "POST /hooks?a=1 HTTP/1.1");
    for (name, value) in [
        ("Host", "shop.example"),
        ("Content-Type", "application/json"),
        ("User-Agent", "Service-Webhooks/1.0"),
        ("X-Service-Event", "charge.paid"),
        ("X-Service-Delivery", &delivery),
        ("Content-Length", &request.body.len().to_string()),
    ] {
        assert_eq!(request.header(name), Some(value), "{name}");
    }
    // Those six, and the signature.
    assert_eq!(request.headers.len(), 7, "the request has other headers: {:?}", request.headers);
    assert!(is_signed(&request, "X-Service-Signature", &service.secret));
    assert!(!is_signed(&request, "X-Service-Signature", "whsec_other"));
    let body: Value = serde_json::from_str(&request.body).expect("the body is JSON");
    assert_eq!(body["id"], json!(delivery));
}

#[tokio::test]
async fn the_signature_has_the_real_time_and_the_body_the_service_time() {
    let mut receiver = Receiver::http(ReceiverBehavior::RespondAndClose(super::RESPONSE_500)).await;
    let service =
        PaymentService::start(sender_config(&TestResolver::default(), &[shop_forward(&receiver)])).await;
    service.send().await;
    service.wait_for_attempts().await;
    call(&service.server, "POST", "/sandbox/advance", &json!({ "by": "2m" })).await;
    let (first, second) = (receiver.next_request().await, receiver.next_request().await);
    for request in [&first, &second] {
        let difference = signed_at(request).abs_diff(unix_time());
        assert!(difference < 60, "{difference} s");
        assert!(is_signed(request, "X-Service-Signature", &service.secret));
    }
    assert_eq!(first.body, second.body, "attempts differ in their signatures only");
    let body: Value = serde_json::from_str(&first.body).expect("the body is JSON");
    assert_eq!(body["created_at"], "2026-09-20T10:05:41.000000Z");
}

#[tokio::test]
async fn header_names_follow_the_dialect() {
    let mut receiver = Receiver::http(ReceiverBehavior::RespondAndClose(RESPONSE_200)).await;
    let dialect =
        Dialect { header_prefix: "X-Acme".to_owned(), user_agent: "Acme/2".to_owned(), ..Dialect::default() };
    let sender = sender_config(&TestResolver::default(), &[shop_forward(&receiver)]);
    let service = PaymentService::start_with(Config { dialect, ..config(sender) }).await;
    service.send().await;
    let request = receiver.next_request().await;
    assert_eq!(request.header("X-Acme-Event"), Some("charge.paid"));
    assert_eq!(request.header("User-Agent"), Some("Acme/2"));
    assert!(is_signed(&request, "X-Acme-Signature", &service.secret));
}

#[tokio::test]
async fn the_log_contains_request_and_response_headers() {
    let mut receiver = Receiver::http(ReceiverBehavior::RespondAndClose(RESPONSE_200)).await;
    let service =
        PaymentService::start(sender_config(&TestResolver::default(), &[shop_forward(&receiver)])).await;
    let attempt = service.make_attempt().await;
    let request = receiver.next_request().await;
    let sent: Vec<String> = attempt["request_headers"]
        .as_array()
        .expect("headers")
        .iter()
        .map(|header| {
            let text = |field: &str| header[field].as_str().expect("a string");
            format!("{}: {}", text("name"), text("value"))
        })
        .collect();
    let mut received = request.headers;
    let mut logged = sent.clone();
    received.sort();
    logged.sort();
    assert_eq!(logged, received, "the log has exactly the received headers");
    assert_eq!(attempt["address"], json!(receiver.address.to_string()));
    assert_eq!(attempt["response_headers"][1], json!({ "name": "x-shop", "value": "one" }));
    assert_eq!(attempt["response_body"], "ok");
    assert!(attempt["duration_ms"].is_u64(), "{attempt}");
}

#[tokio::test]
async fn the_log_stores_the_beginning_of_a_long_response() {
    let endless = "HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n";
    let receiver = Receiver::http(ReceiverBehavior::RespondEndlessly(endless, "äöü")).await;
    let attempt = PaymentService::start(sender_config(&TestResolver::default(), &[shop_forward(&receiver)]))
        .await
        .make_attempt()
        .await;
    let excerpt = attempt["response_body"].as_str().expect("a string");
    assert_eq!(excerpt.len(), 2_048);
    assert!(excerpt.starts_with("äöü") && !excerpt.contains('\u{fffd}'));
    let duration = attempt["duration_ms"].as_u64().expect("a duration");
    assert!(duration < 5_000, "the rest of the response was read until the timeout: {duration} ms");
}

#[tokio::test]
async fn responses_of_the_sandbox_contain_no_signing_secret() {
    let receiver = Receiver::http(ReceiverBehavior::RespondAndClose(RESPONSE_200)).await;
    let service =
        PaymentService::start(sender_config(&TestResolver::default(), &[shop_forward(&receiver)])).await;
    let delivery = service.send().await;
    service.wait_for_attempts().await;
    for path in ["/sandbox/deliveries", "/sandbox/happenings", "/sandbox/endpoints", "/sandbox"] {
        let (_, response) = call(&service.server, "GET", path, &Value::Null).await;
        assert!(!response.to_string().contains("whsec_"), "{path}: {response}");
    }
    assert!(!service.delivery_record(&delivery).await.to_string().contains("whsec_"));
}

#[tokio::test]
async fn a_rotated_secret_signs_the_next_attempt() {
    let mut receiver = Receiver::http(ReceiverBehavior::RespondAndClose(RESPONSE_200)).await;
    let service =
        PaymentService::start(sender_config(&TestResolver::default(), &[shop_forward(&receiver)])).await;
    let path = format!("/sandbox/endpoints/{}/rotate", service.endpoint);
    let (_, response) = call(&service.server, "POST", &path, &json!({})).await;
    service.send().await;
    let secret = response["endpoint"]["secret"].as_str().expect("a secret");
    assert!(is_signed(&receiver.next_request().await, "X-Service-Signature", secret));
}

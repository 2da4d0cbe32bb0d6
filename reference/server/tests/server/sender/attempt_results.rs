//! Results of attempts, by the behaviour of the receiver.

use std::time::Duration;

use reference_server::{SenderBounds, SenderConfig};
use serde_json::json;
use wiremock::{Mock, MockServer, ResponseTemplate, matchers::any};

use super::{
    PaymentService, RESPONSE_200, RESPONSE_500,
    authority::{CertificateAuthority, self_signed},
    receiver::{Receiver, ReceiverBehavior},
    resolver::{PANIC_ADDRESS, TestResolver},
    sender_config, shop_forward,
};

const SHORT: Duration = Duration::from_millis(300);

/// Returns the log entry of an attempt at the receiver.
async fn attempt_at(receiver: &Receiver, bounds: SenderBounds) -> serde_json::Value {
    let sender =
        SenderConfig { bounds, ..sender_config(&TestResolver::default(), &[shop_forward(receiver)]) };
    PaymentService::start(sender).await.make_attempt().await
}

/// Checks the result of an attempt at a receiver with this behaviour: the status, or a part of the error.
async fn check(behavior: ReceiverBehavior, status: Option<u16>, error: Option<&str>) {
    let bounds =
        if matches!(behavior, ReceiverBehavior::RespondAndClose(_) | ReceiverBehavior::ResetConnection) {
            super::BOUNDS
        } else {
            SenderBounds { attempt_timeout: SHORT, ..super::BOUNDS }
        };
    let receiver = Receiver::http(behavior).await;
    let attempt = attempt_at(&receiver, bounds).await;
    assert_eq!(attempt["status"].as_u64(), status.map(u64::from), "{attempt}");
    match error {
        None => assert!(attempt["error"].is_null(), "{attempt}"),
        Some(error) => {
            assert!(attempt["error"].as_str().is_some_and(|found| found.contains(error)), "{attempt}")
        }
    }
    assert_eq!(receiver.connections(), 1, "an attempt makes one connection");
}

#[tokio::test]
async fn the_result_of_an_attempt_is_the_response_status() {
    check(ReceiverBehavior::RespondAndClose(RESPONSE_200), Some(200), None).await;
    check(ReceiverBehavior::RespondAndClose("HTTP/1.1 204 No Content\r\n\r\n"), Some(204), None).await;
    check(ReceiverBehavior::RespondAndClose("HTTP/1.0 200 OK\r\n\r\nuntil the end"), Some(200), None).await;
    check(ReceiverBehavior::RespondAndClose(RESPONSE_500), Some(500), None).await;
    check(
        ReceiverBehavior::RespondAndClose("HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"),
        Some(410),
        None,
    )
    .await;
}

#[tokio::test]
async fn the_result_does_not_depend_on_the_response_body() {
    check(
        ReceiverBehavior::RespondAndClose("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\ntorn"),
        Some(200),
        None,
    )
    .await;
    check(
        ReceiverBehavior::RespondAndHang("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nslow"),
        Some(200),
        None,
    )
    .await;
    let endless = "HTTP/1.1 200 OK\r\nContent-Length: 9999999999999\r\n\r\n";
    check(ReceiverBehavior::RespondEndlessly(endless, "and so on "), Some(200), None).await;
}

#[tokio::test]
async fn interim_responses_are_bounded_with_the_head() {
    const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";
    const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
    check(ReceiverBehavior::RespondAndClose(HINTS), Some(200), None).await;
    check_endless(CONTINUE, CONTINUE, "interim responses before it exceed 32 KiB").await;
}

/// Checks that an attempt whose response head never ends fails before its timeout. `part`: a part of the error.
async fn check_endless(first: &'static str, then: &'static str, part: &str) {
    let receiver = Receiver::http(ReceiverBehavior::RespondEndlessly(first, then)).await;
    let attempt = attempt_at(&receiver, super::BOUNDS).await;
    let error = attempt["error"].as_str().unwrap_or_default();
    assert!(error.starts_with("unreachable: ") && error.contains(part), "{attempt}");
}

#[tokio::test]
async fn a_missing_response_is_a_timeout() {
    check(ReceiverBehavior::RespondAndHang(""), None, Some("timeout")).await;
    check(ReceiverBehavior::RespondAndHang("HTTP/1.1 200 OK\r\nContent-"), None, Some("timeout")).await;
}

#[tokio::test]
async fn an_invalid_response_is_a_failure() {
    check(ReceiverBehavior::ResetConnection, None, Some("unreachable: ")).await;
    check(ReceiverBehavior::RespondAndClose(""), None, Some("unreachable: ")).await;
    check(ReceiverBehavior::RespondAndClose("I speak no HTTP\r\n\r\n"), None, Some("unreachable: ")).await;
    check_endless("HTTP/1.1 200 OK\r\n", "X-Endless: yes\r\n", "").await;
}

#[tokio::test]
async fn a_closed_port_is_unreachable() {
    let receiver = Receiver::http(ReceiverBehavior::RespondAndClose(RESPONSE_200)).await;
    let forward = shop_forward(&receiver);
    let address = receiver.address;
    drop(receiver);
    let attempt =
        PaymentService::start(sender_config(&TestResolver::default(), &[forward])).await.make_attempt().await;
    let error = attempt["error"].as_str().expect("an error");
    assert!(error.starts_with(&format!("unreachable: {address}: ")), "{attempt}");
    assert!(error.to_lowercase().contains("refused"), "{attempt}");
    assert!(attempt["address"].is_null(), "{attempt}");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let receiver = MockServer::start().await;
    let elsewhere = format!("{}/elsewhere", receiver.uri());
    let redirect = ResponseTemplate::new(307).insert_header("location", elsewhere.as_str());
    Mock::given(any()).respond_with(redirect).mount(&receiver).await;
    let forward = format!("https://shop.example={}", receiver.uri());
    let attempt =
        PaymentService::start(sender_config(&TestResolver::default(), &[forward])).await.make_attempt().await;
    assert_eq!(attempt["status"], 307, "{attempt}");
    let requests = receiver.received_requests().await.expect("the mock server records requests");
    assert_eq!(requests.len(), 1, "{requests:?}");
    assert_eq!(requests[0].url.path(), "/hooks");
}

/// Checks the result of an attempt at the host shop.example with this certificate.
async fn check_certificate(acceptor: tokio_rustls::TlsAcceptor, roots: Option<Vec<u8>>, error: Option<&str>) {
    let mut receiver = Receiver::https(acceptor, ReceiverBehavior::RespondAndClose(RESPONSE_200)).await;
    let forward = format!("https://shop.example=https://{}", receiver.address);
    let sender = SenderConfig { extra_roots: roots, ..sender_config(&TestResolver::default(), &[forward]) };
    let attempt = PaymentService::start(sender).await.make_attempt().await;
    match error {
        None => assert_eq!(attempt["status"], 200, "{attempt}"),
        Some(error) => {
            assert!(attempt["error"].as_str().is_some_and(|e| e.contains(error)), "{attempt}");
            assert!(receiver.requests.try_recv().is_err(), "an untrusted receiver gets no request");
        }
    }
}

#[tokio::test]
async fn a_certificate_must_match_the_host_and_have_a_trusted_root() {
    let authority = CertificateAuthority::new();
    let roots = || Some(authority.pem());
    check_certificate(authority.acceptor("shop.example"), roots(), None).await;
    check_certificate(authority.acceptor("other.example"), roots(), Some("not valid for name")).await;
    check_certificate(authority.acceptor("shop.example"), None, Some("UnknownIssuer")).await;
    check_certificate(self_signed("shop.example"), roots(), Some("invalid peer certificate")).await;
}

#[tokio::test]
async fn a_missing_handshake_times_out_early() {
    let receiver = Receiver::http(ReceiverBehavior::ReadNothing).await;
    let forward = format!("https://shop.example=https://{}", receiver.address);
    let bounds = SenderBounds { connect_timeout: SHORT, ..super::BOUNDS };
    let sender = SenderConfig { bounds, ..sender_config(&TestResolver::default(), &[forward]) };
    let attempt = PaymentService::start(sender).await.make_attempt().await;
    let error = attempt["error"].as_str().expect("the attempt failed");
    assert!(error.ends_with("TLS: no handshake in time"), "{error}");
}

#[tokio::test]
async fn the_first_address_that_accepts_a_connection_is_used() {
    let receiver = Receiver::http(ReceiverBehavior::RespondAndClose(RESPONSE_200)).await;
    let names = TestResolver::default();
    names.set("localhost", &["127.0.0.2", "127.0.0.3", "127.0.0.1"]);
    let forward = format!("https://shop.example=http://localhost:{}", receiver.address.port());
    let attempt = PaymentService::start(sender_config(&names, &[forward])).await.make_attempt().await;
    assert_eq!(
        (&attempt["status"], &attempt["address"]),
        (&json!(200), &json!(receiver.address.to_string()))
    );
}

#[tokio::test]
async fn a_panic_is_a_failed_attempt_and_frees_its_slot() {
    let names = TestResolver::default();
    names.set("shop.example", &["93.184.216.34"]);
    let bounds = SenderBounds { attempts: 1, attempts_per_host: 1, ..super::BOUNDS };
    let service = PaymentService::start(SenderConfig { bounds, ..sender_config(&names, &[]) }).await;
    names.set("shop.example", &[PANIC_ADDRESS]);
    for _ in 0..3 {
        let attempt = service.make_attempt().await;
        assert_eq!(attempt["error"], "unreachable: shop.example: the resolver failed with an internal error");
    }
}

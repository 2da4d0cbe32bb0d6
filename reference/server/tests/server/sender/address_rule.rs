//! The address rule: only public addresses receive deliveries. It is checked when an endpoint is saved, and before each
//! attempt.

use std::time::Duration;

use reference_server::{SenderBounds, SenderConfig, Server};
use serde_json::json;

use super::{
    PaymentService, RESPONSE_200, add_endpoint, call, config,
    receiver::{Receiver, ReceiverBehavior},
    resolver::{STALLED_NAME, TestResolver},
    sender_config,
};

const PUBLIC: &str = "93.184.216.34";

/// Checks that an endpoint is saved or refused if shop.example resolves to these addresses (`None`: an unknown name).
/// `refusal`: a part of the error message; `None` if the endpoint is saved.
async fn check_save(url: &str, addresses: Option<&[&str]>, refusal: Option<&str>) {
    let names = TestResolver::default();
    if let Some(addresses) = addresses {
        names.set("shop.example", addresses);
    }
    let bounds = SenderBounds { connect_timeout: Duration::from_millis(200), ..super::BOUNDS };
    let sender = SenderConfig { bounds, ..sender_config(&names, &[]) };
    let server = Server::start(config(sender)).await.expect("loopback has a free port");
    let (status, response) = add_endpoint(&server, url).await;
    match refusal {
        None => assert_eq!(status, 200, "{response}"),
        Some(part) => {
            assert_eq!(status, 422, "{response}");
            let message = response["errors"]["url"][0].as_str().expect("a reason");
            assert!(message.contains(part), "{message}");
        }
    }
}

#[tokio::test]
async fn an_endpoint_is_saved_if_all_its_addresses_are_public() {
    let url = "https://shop.example/hooks";
    check_save(url, Some(&[PUBLIC, "2606:2800:220:1::1"]), None).await;
    check_save(url, Some(&[PUBLIC, "10.0.0.1"]), Some("a private address")).await;
    check_save(url, Some(&["127.0.0.1"]), Some("a loopback address")).await;
    check_save(url, Some(&["::ffff:169.254.169.254"]), Some("metadata")).await;
    check_save(url, Some(&[]), Some("resolves to no address")).await;
    check_save(url, None, Some("resolves to no address")).await;
    check_save(&format!("https://{STALLED_NAME}"), None, Some("could not be looked up in time")).await;
}

#[tokio::test]
async fn a_url_with_an_address_is_checked_without_a_lookup() {
    check_save(&format!("https://{PUBLIC}/hooks"), None, None).await;
    check_save("https://127.1/hooks", None, Some("a loopback address")).await;
    check_save("https://[fd00::1]/hooks", None, Some("a unique-local address")).await;
}

#[tokio::test]
async fn the_refusal_of_a_local_address_explains_forwards() {
    let instructions =
        |url: &str| format!("start the server with `--forward-to {url}`, or send {{\"to\":\"{url}\"}} to");
    for url in
        ["http://localhost:3000/hooks", "https://10.0.0.1/", "http://127.0.0.1:8000/a?b=c", "http://shop:80/"]
    {
        let normalized = url.replace(":80/", "/");
        check_save(url, None, Some(&instructions(&normalized))).await;
    }
    check_save(
        "https://shop.example/x",
        Some(&["192.168.0.7"]),
        Some(&instructions("https://shop.example/x")),
    )
    .await;
    for url in ["http://shop.example/hooks", "http://169.254.169.254/", "http://localhost/#x"] {
        let names = TestResolver::default();
        let server =
            Server::start(config(sender_config(&names, &[]))).await.expect("loopback has a free port");
        let (status, response) = add_endpoint(&server, url).await;
        assert_eq!(status, 422, "{response}");
        assert!(!response.to_string().contains("--forward-to"), "{response}");
    }
}

#[tokio::test]
async fn a_changed_url_is_checked() {
    let names = TestResolver::default();
    names.set("shop.example", &[PUBLIC]);
    names.set("inside.example", &["192.168.0.1"]);
    let service = PaymentService::start(sender_config(&names, &[])).await;
    let path = format!("/sandbox/endpoints/{}", service.endpoint);
    let change = |url: &str| json!({ "url": url });
    assert_eq!(call(&service.server, "PATCH", &path, &change("https://inside.example")).await.0, 422);
    assert_eq!(call(&service.server, "PATCH", &path, &change("https://shop.example/other")).await.0, 200);
}

/// Saves an endpoint whose name resolves to a public address, then changes the name to these addresses, and checks the
/// error of the next attempt.
async fn check_delivery(later: &[&str], refusal: &str) {
    let receiver = Receiver::http(ReceiverBehavior::RespondAndClose(RESPONSE_200)).await;
    let names = TestResolver::default();
    names.set("shop.example", &[PUBLIC]);
    let service = PaymentService::start(sender_config(&names, &[])).await;
    let path = format!("/sandbox/endpoints/{}", service.endpoint);
    let url = format!("https://shop.example:{}/hooks", receiver.address.port());
    assert_eq!(call(&service.server, "PATCH", &path, &json!({ "url": url })).await.0, 200);
    names.set("shop.example", later);
    let attempt = service.make_attempt().await;
    assert_eq!(attempt["error"], refusal);
    assert!(attempt["address"].is_null() && attempt["request_headers"] == json!([]), "{attempt}");
    assert_eq!(receiver.connections(), 0, "no connection is made");
}

#[tokio::test]
async fn a_name_that_becomes_private_is_refused_at_delivery() {
    let loopback = "is a loopback address; only public addresses are allowed; to reach a handler on this machine, start \
         with `chargeproof serve --forward-to http://localhost:3000/hooks`";
    check_delivery(&["127.0.0.1"], &format!("refused: shop.example: `127.0.0.1` {loopback}")).await;
    check_delivery(&[PUBLIC, "127.0.0.1"], &format!("refused: shop.example: `127.0.0.1` {loopback}")).await;
    check_delivery(&["127.0.0.1", PUBLIC], &format!("refused: shop.example: `127.0.0.1` {loopback}")).await;
}

#[tokio::test]
async fn a_name_without_addresses_is_unreachable() {
    let reason = "the name resolves to no address; a name with public addresses is allowed";
    check_delivery(&[], &format!("unreachable: shop.example: {reason}")).await;
}

#[tokio::test]
async fn a_forward_applies_to_one_host_and_port() {
    let receiver = Receiver::http(ReceiverBehavior::RespondAndClose(RESPONSE_200)).await;
    let names = TestResolver::default();
    names.set("other.example", &["127.0.0.1"]);
    names.set("shop.example", &["127.0.0.1"]);
    let service = PaymentService::start(sender_config(&names, &[super::shop_forward(&receiver)])).await;
    for url in ["https://other.example", "https://shop.example:8443"] {
        let (status, response) = add_endpoint(&service.server, url).await;
        assert_eq!(status, 422, "{url}: {response}");
    }
    let attempt = service.make_attempt().await;
    assert_eq!(attempt["status"], 200, "{attempt}");
    let note =
        format!("forwarded to http://{}; the address rule refuses 127.0.0.1: loopback", receiver.address);
    assert_eq!(attempt["note"], json!(note));
}

#[tokio::test]
async fn only_the_target_of_a_forward_is_looked_up() {
    let receiver = Receiver::http(ReceiverBehavior::RespondAndClose(RESPONSE_200)).await;
    let names = TestResolver::default();
    names.set("localhost", &["127.0.0.1"]);
    let forward = format!("https://shop.example=http://localhost:{}", receiver.address.port());
    let attempt = PaymentService::start(sender_config(&names, &[forward])).await.make_attempt().await;
    assert_eq!(attempt["status"], 200, "{attempt}");
    assert_eq!(attempt["address"], json!(receiver.address.to_string()));
}

#[tokio::test]
async fn a_public_address_can_be_forwarded() {
    let receiver = Receiver::http(ReceiverBehavior::RespondAndClose(RESPONSE_200)).await;
    let forwards = [super::shop_forward(&receiver), format!("https://{PUBLIC}=http://{}", receiver.address)];
    let service = PaymentService::start(sender_config(&TestResolver::default(), &forwards)).await;
    let (status, _) = call(
        &service.server,
        "PATCH",
        &format!("/sandbox/endpoints/{}", service.endpoint),
        &json!({
            "url": format!("https://{PUBLIC}/hooks"),
        }),
    )
    .await;
    assert_eq!(status, 200);
    let attempt = service.make_attempt().await;
    assert_eq!(attempt["status"], 200, "{attempt}");
    assert_eq!(attempt["request_headers"][0], json!({ "name": "Host", "value": PUBLIC }));
}

//! Deliveries of worlds opened on request, and attempts in flight or waiting when their world is closed.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{
    BOUNDS, call, config,
    receiver::{Receiver, ReceiverBehavior},
    resolver::TestResolver,
    sender_config, shop_forward,
};
use reference_server::{SenderBounds, SenderConfig, Server};

/// Starts a server that makes one attempt at a time per host, and opens a world with an endpoint; returns the server, the
/// id of the world, and the path that sends a test delivery.
async fn start_with_world(receiver: &Receiver) -> (Server, String, String) {
    let bounds = SenderBounds { attempts_per_host: 1, ..BOUNDS };
    let sender =
        SenderConfig { bounds, ..sender_config(&TestResolver::default(), &[shop_forward(receiver)]) };
    let server = Server::start(config(sender)).await.expect("loopback has a free port");
    let (status, world) = call(&server, "POST", "/sandbox/worlds", &json!({})).await;
    assert_eq!(status, 201, "{world}");
    let id = world["world"].as_str().expect("an id").to_owned();
    let path = format!("/w/{id}");
    let body = json!({ "url": "https://shop.example/hooks" });
    let (status, saved) = call(&server, "POST", &format!("{path}/sandbox/endpoints"), &body).await;
    assert_eq!(status, 200, "{saved}");
    let endpoint = saved["endpoint"]["id"].as_str().expect("an id").to_owned();
    (server, id, format!("{path}/sandbox/endpoints/{endpoint}/test"))
}

#[tokio::test]
async fn deliveries_of_an_opened_world_are_sent_and_logged() {
    let mut receiver = Receiver::http(ReceiverBehavior::RespondAndClose(super::RESPONSE_200)).await;
    let (server, id, test_path) = start_with_world(&receiver).await;
    let (_, sent) = call(&server, "POST", &test_path, &json!({})).await;
    receiver.next_request().await;
    let advance = format!("/w/{id}/sandbox/advance");
    assert_eq!(call(&server, "POST", &advance, &json!({ "by": "1s" })).await.0, 200);
    let delivery = sent["delivery"].as_str().expect("an id");
    let (_, log) =
        call(&server, "GET", &format!("/w/{id}/sandbox/deliveries/{delivery}"), &Value::Null).await;
    assert_eq!(log["delivery"]["attempts"].as_array().map(Vec::len), Some(1), "{log}");
}

#[tokio::test]
async fn a_closed_world_starts_no_attempt_and_waiting_requests_end() {
    let permits = Arc::new(Semaphore::new(0));
    let mut receiver = Receiver::http(ReceiverBehavior::RespondWithPermit(Arc::clone(&permits))).await;
    let (server, id, test_path) = start_with_world(&receiver).await;
    for _ in 0..3 {
        assert_eq!(call(&server, "POST", &test_path, &json!({})).await.0, 200);
    }
    receiver.next_request().await;
    let server = Arc::new(server);
    let waiting = {
        let (server, advance) = (Arc::clone(&server), format!("/w/{id}/sandbox/advance"));
        tokio::spawn(async move { call(&server, "POST", &advance, &json!({ "by": "1h" })).await })
    };
    // Let the call run until it waits for the attempt.
    tokio::task::yield_now().await;
    let (status, closed) = call(&server, "DELETE", &format!("/sandbox/worlds/{id}"), &Value::Null).await;
    assert_eq!((status, &closed["world"]), (200, &json!(id)));
    // 409 if the advance was waiting, 404 if it arrived after the world was closed.
    let (status, response) = waiting.await.expect("the request gets a response");
    assert!(matches!(status, 404 | 409), "{status} {response}");
    permits.add_permits(9);
    // A delivery of another world gets the freed slot; no other attempt follows.
    let body = json!({ "url": "https://shop.example/hooks" });
    let (_, saved) = call(&server, "POST", "/sandbox/endpoints", &body).await;
    let first_world_test =
        format!("/sandbox/endpoints/{}/test", saved["endpoint"]["id"].as_str().expect("an id"));
    let (_, sent) = call(&server, "POST", &first_world_test, &json!({})).await;
    let request = receiver.next_request().await;
    assert_eq!(
        request.header("x-service-delivery").or(request.header("X-Service-Delivery")),
        sent["delivery"].as_str()
    );
    assert_eq!(receiver.connections(), 2);
}

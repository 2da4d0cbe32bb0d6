//! Advances of the service clock wait for attempts in flight, and make retries at their times.

use std::{sync::Arc, time::Duration};

use reference_server::{Bounds, ClockKind, Config, SenderBounds, SenderConfig};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{
    PaymentService, RESPONSE_200, RESPONSE_500, add_endpoint, call, config,
    receiver::{Receiver, ReceiverBehavior},
    resolver::TestResolver,
    sender_config, shop_forward,
};

async fn start_service(behavior: ReceiverBehavior) -> (PaymentService, Receiver) {
    let receiver = Receiver::http(behavior).await;
    (
        PaymentService::start(sender_config(&TestResolver::default(), &[shop_forward(&receiver)])).await,
        receiver,
    )
}

/// Returns time, number and result of each attempt in the history that an advance returns.
fn attempts(response: &Value) -> Vec<String> {
    let happened = response["happened"].as_array().expect("a list");
    happened
        .iter()
        .filter(|entry| entry["what"] == "post")
        .map(|attempt| {
            let time = attempt["at"].as_str().expect("a time");
            format!("{time} {} {}", attempt["attempt"], attempt["answer"])
        })
        .collect()
}

#[tokio::test]
async fn an_advance_makes_the_retries_at_their_times() {
    let (service, receiver) = start_service(ReceiverBehavior::RespondAndClose(RESPONSE_500)).await;
    service.send().await;
    let (_, response) = call(&service.server, "POST", "/sandbox/advance", &json!({ "by": "1h" })).await;
    assert_eq!(
        attempts(&response),
        [
            "2026-09-20T10:05:41.000000Z 1 \"500\"",
            "2026-09-20T10:06:41.000000Z 2 \"500\"",
            "2026-09-20T10:11:41.000000Z 3 \"500\"",
            "2026-09-20T10:41:41.000000Z 4 \"500\"",
        ]
    );
    assert_eq!(response["now"], "2026-09-20T11:05:41.000000Z");
    assert_eq!(receiver.connections(), 4);
}

#[tokio::test]
async fn mining_waits_for_the_deliveries_of_its_events() {
    let (service, receiver) = start_service(ReceiverBehavior::RespondAndClose(RESPONSE_200)).await;
    let charge = json!({ "asset": "BTC", "amount": "49.90", "currency": "EUR" });
    let (status, charge) = call(&service.server, "POST", "/v1/charges", &charge).await;
    assert_eq!(status, 201, "{charge}");
    let code = charge["data"]["code"].as_str().expect("a code");
    assert_eq!(call(&service.server, "POST", "/sandbox/pay", &json!({ "charge": code })).await.0, 200);
    let mine = json!({ "asset": "BTC", "blocks": 3 });
    let (_, response) = call(&service.server, "POST", "/sandbox/mine", &mine).await;
    let last = response["happened"].as_array().and_then(|all| all.last()).expect("the history has entries");
    assert_eq!((&last["what"], &last["type"]), (&json!("post"), &json!("charge.paid")), "{response}");
    assert_eq!(receiver.connections(), 3, "created, detected, paid");
}

#[tokio::test]
async fn other_requests_are_served_while_an_advance_waits() {
    let permits = Arc::new(Semaphore::new(0));
    let (service, mut receiver) =
        start_service(ReceiverBehavior::RespondWithPermit(Arc::clone(&permits))).await;
    service.send().await;
    receiver.next_request().await;
    let to = json!({ "to": "2026-10-01T00:00:00Z" });
    let mut advance = Box::pin(call(&service.server, "POST", "/sandbox/advance", &to));
    let no_body = Value::Null;
    for _ in 0..20 {
        tokio::select! {
            biased;
            response = &mut advance => panic!("the advance does not wait for the attempt: {response:?}"),
            (status, response) = call(&service.server, "GET", "/sandbox", &no_body) => {
                assert_eq!(status, 200);
                assert_eq!(response["now"], "2026-09-20T10:05:41.000000Z", "the time at which the attempt started");
            }
        }
    }
    permits.add_permits(1);
    let (status, response) = advance.await;
    assert_eq!((status, &response["now"]), (200, &json!("2026-10-01T00:00:00.000000Z")));
    assert_eq!(attempts(&response), ["2026-09-20T10:05:41.000000Z 1 \"200\""]);
}

#[tokio::test]
async fn with_a_wall_clock_only_advances_wait_for_attempts() {
    let permits = Arc::new(Semaphore::new(0));
    let mut receiver = Receiver::http(ReceiverBehavior::RespondWithPermit(Arc::clone(&permits))).await;
    let sender = sender_config(&TestResolver::default(), &[shop_forward(&receiver)]);
    let service = PaymentService::start_with(Config { clock: ClockKind::Wall, ..config(sender) }).await;
    let delivery = service.send().await;
    receiver.next_request().await;
    assert_eq!(service.delivery_record(&delivery).await["status"], "in_flight");
    permits.add_permits(1);
    service.wait_for_attempts().await;
    assert_eq!(service.delivery_record(&delivery).await["status"], "delivered");
}

#[tokio::test]
async fn a_client_that_waits_for_a_response_is_not_idle() {
    let receiver = Receiver::http(ReceiverBehavior::RespondAndHang("")).await;
    let bounds = SenderBounds { attempt_timeout: Duration::from_millis(600), ..super::BOUNDS };
    let sender =
        SenderConfig { bounds, ..sender_config(&TestResolver::default(), &[shop_forward(&receiver)]) };
    let bounds = Bounds { idle_time: Duration::from_millis(200), ..Bounds::default() };
    let service = PaymentService::start_with(Config { bounds, ..config(sender) }).await;
    service.send().await;
    let (status, response) = call(&service.server, "POST", "/sandbox/advance", &json!({ "by": "1s" })).await;
    assert_eq!(status, 200);
    assert_eq!(attempts(&response), ["2026-09-20T10:05:41.000000Z 1 \"timeout\""]);
}

#[tokio::test]
async fn a_slow_host_does_not_delay_another() {
    let permits = Arc::new(Semaphore::new(0));
    let (slow, mut quick) = (
        Receiver::http(ReceiverBehavior::RespondWithPermit(Arc::clone(&permits))).await,
        Receiver::http(ReceiverBehavior::RespondAndClose(RESPONSE_200)).await,
    );
    let forwards = [shop_forward(&slow), format!("https://quick.example=http://{}", quick.address)];
    let bounds = SenderBounds { attempts: 6, attempts_per_host: 2, ..super::BOUNDS };
    let service =
        PaymentService::start(SenderConfig { bounds, ..sender_config(&TestResolver::default(), &forwards) })
            .await;
    for _ in 0..10 {
        service.send().await;
    }
    let (_, response) = add_endpoint(&service.server, "https://quick.example").await;
    let path = format!("/sandbox/endpoints/{}/test", response["endpoint"]["id"].as_str().expect("an id"));
    for _ in 0..10 {
        assert_eq!(call(&service.server, "POST", &path, &json!({})).await.0, 200);
        quick.next_request().await;
    }
    assert!(slow.connections() <= 2, "{}", slow.connections());
    permits.add_permits(10);
    service.wait_for_attempts().await;
    assert_eq!(slow.connections(), 10);
}

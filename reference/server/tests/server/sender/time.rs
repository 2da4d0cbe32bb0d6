//! Moving the clock while an attempt is in flight.

use std::{sync::Arc, time::Duration};

use reference_server::{Bounds, ClockKind, Config, SenderBounds, SenderConfig};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{
    BROKEN, OK, Shop, call, config,
    names::Names,
    receiver::{Receiver, ReceiverBehavior},
    save, sender, shop_forward,
};

async fn shop(behavior: ReceiverBehavior) -> (Shop, Receiver) {
    let receiver = Receiver::plain(behavior).await;
    (Shop::open(sender(&Names::default(), &[shop_forward(&receiver)])).await, receiver)
}

fn posts(response: &Value) -> Vec<String> {
    let happened = response["happened"].as_array().expect("what happened");
    happened
        .iter()
        .filter(|entry| entry["what"] == "post")
        .map(|post| {
            format!("{} {} {}", post["at"].as_str().expect("a time"), post["attempt"], post["answer"])
        })
        .collect()
}

#[tokio::test]
async fn retries_happen_at_their_times_when_the_clock_is_moved_past_them() {
    let (shop, receiver) = shop(ReceiverBehavior::Says(BROKEN)).await;
    shop.send().await;
    let (_, response) = call(&shop.server, "POST", "/sandbox/advance", &json!({ "by": "1h" })).await;
    assert_eq!(
        posts(&response),
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
async fn mining_waits_for_the_deliveries_that_it_causes() {
    let (shop, receiver) = shop(ReceiverBehavior::Says(OK)).await;
    let charge = json!({ "asset": "BTC", "amount": "49.90", "currency": "EUR" });
    let (status, charge) = call(&shop.server, "POST", "/v1/charges", &charge).await;
    assert_eq!(status, 201, "{charge}");
    let code = charge["data"]["code"].as_str().expect("a code");
    assert_eq!(call(&shop.server, "POST", "/sandbox/pay", &json!({ "charge": code })).await.0, 200);
    let mine = json!({ "asset": "BTC", "blocks": 3 });
    let (_, response) = call(&shop.server, "POST", "/sandbox/mine", &mine).await;
    let last = response["happened"].as_array().and_then(|all| all.last()).expect("something happened");
    assert_eq!((&last["what"], &last["type"]), (&json!("post"), &json!("charge.paid")), "{response}");
    assert_eq!(receiver.connections(), 3, "created, detected, paid");
}

#[tokio::test]
async fn other_requests_are_answered_while_a_call_waits() {
    let permits = Arc::new(Semaphore::new(0));
    let (shop, mut receiver) = shop(ReceiverBehavior::Waits(Arc::clone(&permits))).await;
    shop.send().await;
    receiver.next().await;
    let to = json!({ "to": "2026-10-01T00:00:00Z" });
    let mut advance = Box::pin(call(&shop.server, "POST", "/sandbox/advance", &to));
    let nothing = Value::Null;
    for _ in 0..20 {
        tokio::select! {
            biased;
            response = &mut advance => panic!("it does not wait: {response:?}"),
            (status, response) = call(&shop.server, "GET", "/sandbox", &nothing) => {
                assert_eq!(status, 200);
                assert_eq!(response["now"], "2026-09-20T10:05:41.000000Z", "where the post left");
            }
        }
    }
    permits.add_permits(1);
    let (status, response) = advance.await;
    assert_eq!((status, &response["now"]), (200, &json!("2026-10-01T00:00:00.000000Z")));
    assert_eq!(posts(&response), ["2026-09-20T10:05:41.000000Z 1 \"200\""]);
}

#[tokio::test]
async fn on_real_time_calls_wait_only_on_request() {
    let permits = Arc::new(Semaphore::new(0));
    let mut receiver = Receiver::plain(ReceiverBehavior::Waits(Arc::clone(&permits))).await;
    let sender = sender(&Names::default(), &[shop_forward(&receiver)]);
    let shop = Shop::open_with(Config { clock: ClockKind::Wall, ..config(sender) }).await;
    let delivery = shop.send().await;
    receiver.next().await;
    assert_eq!(shop.delivery_record(&delivery).await["status"], "in_flight");
    permits.add_permits(1);
    shop.wait_for_attempts().await;
    assert_eq!(shop.delivery_record(&delivery).await["status"], "delivered");
}

#[tokio::test]
async fn a_client_whose_call_waits_is_not_idle() {
    let receiver = Receiver::plain(ReceiverBehavior::Hangs("")).await;
    let bounds = SenderBounds { total_time: Duration::from_millis(600), ..super::BOUNDS };
    let sender = SenderConfig { bounds, ..sender(&Names::default(), &[shop_forward(&receiver)]) };
    let bounds = Bounds { idle_time: Duration::from_millis(200), ..Bounds::default() };
    let shop = Shop::open_with(Config { bounds, ..config(sender) }).await;
    shop.send().await;
    let (status, response) = call(&shop.server, "POST", "/sandbox/advance", &json!({ "by": "1s" })).await;
    assert_eq!(status, 200);
    assert_eq!(posts(&response), ["2026-09-20T10:05:41.000000Z 1 \"timeout\""]);
}

#[tokio::test]
async fn a_slow_host_delays_no_other() {
    let permits = Arc::new(Semaphore::new(0));
    let (slow, mut quick) = (
        Receiver::plain(ReceiverBehavior::Waits(Arc::clone(&permits))).await,
        Receiver::plain(ReceiverBehavior::Says(OK)).await,
    );
    let forwards = [shop_forward(&slow), format!("https://quick.example=http://{}", quick.address)];
    let bounds = SenderBounds { posts: 6, posts_per_host: 2, ..super::BOUNDS };
    let shop = Shop::open(SenderConfig { bounds, ..sender(&Names::default(), &forwards) }).await;
    for _ in 0..10 {
        shop.send().await;
    }
    let (_, response) = save(&shop.server, "https://quick.example").await;
    let path = format!("/sandbox/endpoints/{}/test", response["endpoint"]["id"].as_str().expect("an id"));
    for _ in 0..10 {
        assert_eq!(call(&shop.server, "POST", &path, &json!({})).await.0, 200);
        quick.next().await;
    }
    assert!(slow.connections() <= 2, "{}", slow.connections());
    permits.add_permits(10);
    shop.wait_for_attempts().await;
    assert_eq!(slow.connections(), 10);
}

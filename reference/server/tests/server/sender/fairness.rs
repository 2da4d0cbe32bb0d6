//! Fairness between accounts: slow receivers and slow DNS lookups of one account do not delay another.

use std::{future::Future, sync::Arc, time::Duration};

use reference_server::{SenderBounds, SenderConfig};
use serde_json::json;
use testkit::Message;
use tokio::{sync::Semaphore, time::timeout};

use super::{
    PaymentService, RESPONSE_200, add_endpoint, call,
    receiver::{Receiver, ReceiverBehavior},
    resolver::TestResolver,
    sender_config, shop_forward,
};

/// Shorter than any hanging attempt in these tests, so that a delivery that waits for one is detected.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits for an operation, which must end within [`DELIVERY_TIMEOUT`].
async fn without_delay<T>(operation: impl Future<Output = T>) -> T {
    timeout(DELIVERY_TIMEOUT, operation).await.expect("other receivers and lookups cause no delay")
}

/// Creates another account with an endpoint at `url`; returns the path that sends a test delivery to it.
async fn add_second_account(service: &PaymentService, url: &str) -> String {
    let account = json!({ "id": "neighbour" });
    let (status, response) = call(&service.server, "POST", "/sandbox/accounts", &account).await;
    assert_eq!(status, 200, "{response}");
    let endpoint = json!({ "account": "neighbour", "url": url });
    let (status, response) = call(&service.server, "POST", "/sandbox/endpoints", &endpoint).await;
    assert_eq!(status, 200, "{response}");
    format!("/sandbox/endpoints/{}/test", response["endpoint"]["id"].as_str().expect("an id"))
}

/// Sends a test delivery and returns its id.
async fn send(service: &PaymentService, path: &str) -> String {
    let (status, response) = call(&service.server, "POST", path, &json!({})).await;
    assert_eq!(status, 200, "{response}");
    response["delivery"].as_str().expect("an id").to_owned()
}

fn delivery_id(request: &Message) -> &str {
    request.header("X-Service-Delivery").expect("every attempt has the header")
}

/// Creates endpoints of the first account at these hosts; returns the paths that send test deliveries to them.
async fn add_endpoints(service: &PaymentService, hosts: impl Iterator<Item = String>) -> Vec<String> {
    let mut paths = Vec::new();
    for host in hosts {
        let (status, response) = add_endpoint(&service.server, &format!("https://{host}/")).await;
        assert_eq!(status, 200, "{response}");
        paths
            .push(format!("/sandbox/endpoints/{}/test", response["endpoint"]["id"].as_str().expect("an id")));
    }
    paths
}

/// Sends a test delivery by each path; returns their ids.
async fn send_all(service: &PaymentService, paths: &[String]) -> Vec<String> {
    let mut ids = Vec::new();
    for path in paths {
        ids.push(send(service, path).await);
    }
    ids
}

#[tokio::test]
async fn slow_hosts_of_one_account_do_not_delay_another() {
    let permits = Arc::new(Semaphore::new(0));
    let (slow, mut quick) = (
        Receiver::http(ReceiverBehavior::RespondWithPermit(Arc::clone(&permits))).await,
        Receiver::http(ReceiverBehavior::RespondAndClose(RESPONSE_200)).await,
    );
    let host = |n: usize| format!("slow{n}.example");
    let mut forwards: Vec<String> =
        (0..20).map(|n| format!("https://{}=http://{}", host(n), slow.address)).collect();
    forwards.extend([shop_forward(&slow), format!("https://quick.example=http://{}", quick.address)]);
    let bounds = SenderBounds { attempts: 8, attempts_per_host: 2, ..super::BOUNDS };
    let service =
        PaymentService::start(SenderConfig { bounds, ..sender_config(&TestResolver::default(), &forwards) })
            .await;
    let paths = add_endpoints(&service, (0..20).map(host)).await;
    let waiting = send_all(&service, &paths).await;

    let path = add_second_account(&service, "https://quick.example/").await;
    let sent = send(&service, &path).await;
    assert_eq!(delivery_id(&without_delay(quick.next_request()).await), sent);

    // Waiting for a slot is not an attempt: each delivery arrives with its first attempt.
    permits.add_permits(99);
    service.wait_for_attempts().await;
    for delivery in waiting {
        let delivery = service.delivery_record(&delivery).await;
        let attempts = delivery["attempts"].as_array().map(Vec::len);
        assert_eq!((&delivery["status"], attempts), (&json!("delivered"), Some(1)));
    }
}

/// More accounts than there are slots each send a delivery to a receiver that never responds. Another account's first
/// delivery still arrives.
#[tokio::test]
async fn an_account_without_a_slot_gets_one_when_other_accounts_use_all() {
    let (mut slow, mut quick) = (
        Receiver::http(ReceiverBehavior::RespondAndHang("")).await,
        Receiver::http(ReceiverBehavior::RespondAndClose(RESPONSE_200)).await,
    );
    let forwards = [shop_forward(&slow), format!("https://quick.example=http://{}", quick.address)];
    let bounds = SenderBounds {
        attempts: 4,
        abort_after: Duration::ZERO,
        attempt_timeout: 100 * DELIVERY_TIMEOUT,
        ..super::BOUNDS
    };
    let service =
        PaymentService::start(SenderConfig { bounds, ..sender_config(&TestResolver::default(), &forwards) })
            .await;
    let path = add_second_account(&service, "https://quick.example/").await;
    let mut hanging = Vec::new();
    for n in 0..6 {
        let name = format!("hostile-{n}");
        assert_eq!(call(&service.server, "POST", "/sandbox/accounts", &json!({ "id": name })).await.0, 200);
        let endpoint = json!({ "account": name, "url": "https://shop.example/" });
        let (status, response) = call(&service.server, "POST", "/sandbox/endpoints", &endpoint).await;
        assert_eq!(status, 200, "{response}");
        let id = response["endpoint"]["id"].as_str().expect("an id").to_owned();
        hanging.push(send(&service, &format!("/sandbox/endpoints/{id}/test")).await);
        // The fifth and the sixth account get the slots of aborted attempts.
        without_delay(slow.next_request()).await;
    }
    let sent = send(&service, &path).await;
    assert_eq!(delivery_id(&without_delay(quick.next_request()).await), sent);
    let first = service.delivery_record(&hanging[0]).await;
    let error = first["attempts"][0]["error"].as_str().unwrap_or_default();
    assert!(error.contains("without a response: all 4 delivery slots were in use"), "{first}");
}

#[tokio::test]
async fn a_slow_host_shared_by_two_accounts_leaves_slots_for_both() {
    let permits = Arc::new(Semaphore::new(0));
    let mut slow = Receiver::http(ReceiverBehavior::RespondWithPermit(Arc::clone(&permits))).await;
    let bounds = SenderBounds { attempts: 8, attempts_per_host: 2, ..super::BOUNDS };
    let service = PaymentService::start(SenderConfig {
        bounds,
        ..sender_config(&TestResolver::default(), &[shop_forward(&slow)])
    })
    .await;
    for _ in 0..10 {
        service.send().await;
    }
    for _ in 0..2 {
        without_delay(slow.next_request()).await;
    }
    let path = add_second_account(&service, "https://shop.example/").await;
    let sent = send(&service, &path).await;
    assert_eq!(delivery_id(&without_delay(slow.next_request()).await), sent);
    permits.add_permits(99);
    service.wait_for_attempts().await;
    assert_eq!(slow.connections(), 11);
}

#[tokio::test]
async fn slow_lookups_of_one_account_do_not_delay_another_and_time_out() {
    let mut quick = Receiver::http(ReceiverBehavior::RespondAndClose(RESPONSE_200)).await;
    let names = TestResolver::default();
    names.set("localhost", &["127.0.0.1"]);
    let host = |n: usize| format!("slow{n}.example");
    (0..12).for_each(|n| names.set(&host(n), &["8.8.8.8"]));
    let port = quick.address.port();
    let forwards = [
        "https://shop.example=http://127.0.0.1:9".to_owned(),
        format!("https://quick.example=http://localhost:{port}"),
    ];
    let bounds = SenderBounds {
        lookups: 8,
        lookups_per_account: 3,
        connect_timeout: Duration::from_secs(1),
        ..super::BOUNDS
    };
    let service = PaymentService::start(SenderConfig { bounds, ..sender_config(&names, &forwards) }).await;
    let paths = add_endpoints(&service, (0..12).map(host)).await;
    let path = add_second_account(&service, "https://quick.example/").await;
    // From now on, lookups of these names never end and keep their slots.
    names.stall("slow");
    let stalled = send_all(&service, &paths).await;

    let sent = send(&service, &path).await;
    assert_eq!(delivery_id(&without_delay(quick.next_request()).await), sent);

    service.wait_for_attempts().await;
    for delivery in stalled {
        let attempt = service.delivery_record(&delivery).await["attempts"][0].take();
        let error = attempt["error"].as_str().expect("the attempt failed");
        assert!(error.ends_with(".example: the name lookup timed out"), "{error}");
    }
    let (status, response) = add_endpoint(&service.server, "https://slow99.example/").await;
    let message = response["errors"]["url"][0].as_str().unwrap_or_default();
    assert!(status == 422 && message.contains("slow99.example could not be looked up in time"), "{response}");
}

#[tokio::test]
async fn saving_an_endpoint_with_a_slow_lookup_does_not_delay_another_account() {
    let names = TestResolver::default();
    names.set("good.example", &["8.8.8.8"]);
    names.stall("slow");
    let bounds = SenderBounds {
        lookups: 8,
        lookups_per_account: 1,
        connect_timeout: Duration::from_secs(1),
        ..super::BOUNDS
    };
    let forward = "https://shop.example=http://127.0.0.1:9".to_owned();
    let service = PaymentService::start(SenderConfig { bounds, ..sender_config(&names, &[forward]) }).await;
    let account = json!({ "id": "neighbour" });
    assert_eq!(call(&service.server, "POST", "/sandbox/accounts", &account).await.0, 200);
    let save_for = async |account: &str, url: &str| {
        let endpoint = json!({ "account": account, "url": url });
        call(&service.server, "POST", "/sandbox/endpoints", &endpoint).await
    };
    let neighbour = async {
        names.wait_for_stall().await;
        save_for("neighbour", "https://good.example/").await
    };
    let ((slow_status, _), (status, response)) =
        tokio::join!(save_for("acme", "https://slow.example/"), neighbour);
    assert_eq!((slow_status, status), (422, 200), "{response}");
}

#[tokio::test]
async fn a_book_has_at_most_fifty_endpoints() {
    let receiver = Receiver::http(ReceiverBehavior::RespondAndClose(RESPONSE_200)).await;
    let service =
        PaymentService::start(sender_config(&TestResolver::default(), &[shop_forward(&receiver)])).await;
    // The service already has one.
    add_endpoints(&service, (0..49).map(|n| format!("h{n}.sim"))).await;
    let (status, response) = add_endpoint(&service.server, "https://h49.sim/").await;
    let message = response["errors"]["url"][0].as_str().unwrap_or_default();
    assert!(status == 422 && message.starts_with("There are 50 webhook endpoints already"), "{response}");
    let path = format!("/sandbox/endpoints/{}", service.endpoint);
    assert_eq!(call(&service.server, "DELETE", &path, &json!(null)).await.0, 200);
    assert_eq!(add_endpoint(&service.server, "https://h49.sim/").await.0, 200);
}

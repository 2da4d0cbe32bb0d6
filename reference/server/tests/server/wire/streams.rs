//! Live updates of open pages by server-sent events.

use reference_server::{ClockKind, Server};
use serde_json::{Value, json};

use super::{Client, config};
use crate::sender::call;

/// Creates a live charge and returns its code.
async fn open_charge(server: &Server) -> String {
    let body = json!({ "asset": "BTC", "amount": "10.00", "currency": "EUR" });
    let (status, response) = call(server, "POST", "/v1/charges", &body).await;
    assert_eq!(status, 201, "{response}");
    response["data"]["code"].as_str().expect("a code").to_owned()
}

/// Opens the stream at this path.
async fn open_stream(server: &Server, path: &str) -> Client {
    let mut client = Client::connect(server.address()).await;
    client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")).await;
    client
}

/// Returns the ids of the page's parts that a message replaces.
fn parts(event: &Value) -> Vec<&str> {
    event["parts"].as_array().expect("a list").iter().filter_map(|part| part["id"].as_str()).collect()
}

#[tokio::test]
async fn streams_of_a_checkout_report_changes_of_its_charge_only() {
    let server = Server::start(config(ClockKind::Frozen)).await.expect("loopback has a free port");
    let code = open_charge(&server).await;
    let path = format!("/c/{code}/live");
    let mut first = open_stream(&server, &path).await;
    assert_eq!(parts(&first.event().await), ["payment", "sandbox"]);
    let mut second = open_stream(&server, &path).await;
    assert_eq!(parts(&second.event().await), ["payment", "sandbox"]);
    // The page is rendered again for the second stream; nothing changed for the first.
    assert_eq!(parts(&first.event().await), Vec::<&str>::new());
    for _ in 0..3 {
        open_charge(&server).await;
    }
    let (status, response) = call(&server, "POST", "/sandbox/pay", &json!({ "charge": code })).await;
    assert_eq!(status, 200, "{response}");
    // The other charges caused no message in between.
    let (first_event, second_event) = (first.event().await, second.event().await);
    assert_eq!(parts(&first_event), ["payment", "sandbox"]);
    assert_eq!(first_event, second_event);
}

#[tokio::test]
async fn a_stream_sends_the_time_when_the_clock_is_advanced() {
    let server = Server::start(config(ClockKind::Frozen)).await.expect("loopback has a free port");
    let path = format!("/c/{}/live", open_charge(&server).await);
    let mut stream = open_stream(&server, &path).await;
    let before = stream.event().await["now"].as_u64().expect("a time");
    let (status, response) = call(&server, "POST", "/sandbox/advance", &json!({ "by": "1s" })).await;
    assert_eq!(status, 200, "{response}");
    assert_eq!(stream.event().await["now"].as_u64(), Some(before + 1_000));
}

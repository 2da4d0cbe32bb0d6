//! Live updates of open pages.

use reference_server::{ClockKind, Server};
use serde_json::{Value, json};

use super::{Client, config};
use crate::sender::call;

/// Opens a charge in mode live and returns its code.
async fn charge(server: &Server) -> String {
    let body = json!({ "asset": "BTC", "amount": "10.00", "currency": "EUR" });
    let (status, response) = call(server, "POST", "/v1/charges", &body).await;
    assert_eq!(status, 201, "{response}");
    response["data"]["code"].as_str().expect("a code").to_owned()
}

async fn open(server: &Server, path: &str) -> Client {
    let mut client = Client::connect(server.address()).await;
    client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")).await;
    client
}

/// Returns the ids of the parts in a message.
fn parts(event: &Value) -> Vec<&str> {
    event["parts"].as_array().expect("a list").iter().filter_map(|part| part["id"].as_str()).collect()
}

#[tokio::test]
async fn streams_of_a_checkout_follow_its_charge_and_no_other() {
    let server = Server::start(config(ClockKind::Frozen)).await.expect("loopback has a free port");
    let code = charge(&server).await;
    let path = format!("/c/{code}/live");
    let mut first = open(&server, &path).await;
    assert_eq!(parts(&first.event().await), ["payment", "sandbox"]);
    let mut second = open(&server, &path).await;
    assert_eq!(parts(&second.event().await), ["payment", "sandbox"]);
    // The rendering that the second stream started with.
    assert_eq!(parts(&first.event().await), Vec::<&str>::new());
    for _ in 0..3 {
        charge(&server).await;
    }
    let (status, response) = call(&server, "POST", "/sandbox/pay", &json!({ "charge": code })).await;
    assert_eq!(status, 200, "{response}");
    // The other charges caused no message in between.
    let (one, other) = (first.event().await, second.event().await);
    assert_eq!(parts(&one), ["payment", "sandbox"]);
    assert_eq!(one, other);
}

#[tokio::test]
async fn a_stream_sends_the_time_when_the_clock_is_moved() {
    let server = Server::start(config(ClockKind::Frozen)).await.expect("loopback has a free port");
    let path = format!("/c/{}/live", charge(&server).await);
    let mut stream = open(&server, &path).await;
    let before = stream.event().await["now"].as_u64().expect("a time");
    let (status, response) = call(&server, "POST", "/sandbox/advance", &json!({ "by": "1s" })).await;
    assert_eq!(status, 200, "{response}");
    assert_eq!(stream.event().await["now"].as_u64(), Some(before + 1_000));
}

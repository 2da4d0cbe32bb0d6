//! Other requests are served while a request advances the clock over many events.

use reference_core::time::{Span, Timestamp};
use reference_server::{ClockKind, Server};
use serde::Deserialize;
use simulator::api::{EndpointResponse, Overview};

use super::{Client, config};
use crate::START;

const DELIVERIES: usize = 250;

async fn call<T: for<'de> Deserialize<'de>>(client: &mut Client, method: &str, path: &str, body: &str) -> T {
    let response = client
        .call(format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    assert_eq!(response.status, 200, "{path}: {}", response.body);
    serde_json::from_str(&response.body).unwrap_or_else(|error| panic!("{path}: {error}: {}", response.body))
}

/// The field that every response of the sandbox has.
#[derive(Deserialize)]
struct Now {
    now: String,
}

#[tokio::test]
async fn other_requests_are_served_during_a_long_advance() {
    let server = Server::start(config(ClockKind::Frozen)).await.expect("loopback has a free port");
    let mut client = Client::connect(server.address()).await;
    let url = r#"{"url":"https://shop.sim"}"#;
    let added: EndpointResponse = call(&mut client, "POST", "/sandbox/endpoints", url).await;
    let down = r#"{"name":"shop","state":"down","answers":[]}"#;
    let _: Now = call(&mut client, "POST", "/sandbox/merchants", down).await;
    let test_path = format!("/sandbox/endpoints/{}/test", added.endpoint.id);
    for _ in 0..DELIVERIES {
        let _: Now = call(&mut client, "POST", &test_path, "").await;
    }

    let address = server.address();
    let advance = tokio::spawn(async move {
        let mut client = Client::connect(address).await;
        call::<Now>(&mut client, "POST", "/sandbox/advance", r#"{"by":"10d"}"#).await
    });
    let (end, mut served_between) = (START.plus(Span::days(10)), 0);
    while !advance.is_finished() {
        let Now { now } = call(&mut client, "GET", "/sandbox/keys", "").await;
        let now = Timestamp::parse(&now).expect("a time");
        served_between += usize::from(START < now && now < end);
    }
    assert_eq!(advance.await.expect("the advance ends").now, end.to_string());
    assert!(served_between > 0, "no request was served in between");
    let overview: Overview = call(&mut client, "GET", "/sandbox", "").await;
    // The merchant is down, so every delivery is attempted 14 times.
    assert!(overview.happenings >= 14 * DELIVERIES as u64, "{}", overview.happenings);
}

#[tokio::test]
async fn other_requests_are_served_while_many_rate_locks_expire_at_once() {
    const CHARGES: u64 = 1_000;
    let server = Server::start(config(ClockKind::Frozen)).await.expect("loopback has a free port");
    let mut client = Client::connect(server.address()).await;
    let url = r#"{"url":"https://shop.sim"}"#;
    let _: EndpointResponse = call(&mut client, "POST", "/sandbox/endpoints", url).await;
    let live = server.first_keys().expect("the world has no internal error").live;
    let charge = r#"{"asset":"BTC","amount":"1","currency":"EUR"}"#;
    for _ in 0..CHARGES {
        let request = format!(
            "POST /v1/charges HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {live}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{charge}",
            charge.len()
        );
        assert_eq!(client.call(request).await.status, 201);
    }
    // All deliveries about the opened charges are made.
    let _: Now = call(&mut client, "POST", "/sandbox/advance", r#"{"by":"1m"}"#).await;
    let before: Overview = call(&mut client, "GET", "/sandbox", "").await;

    let address = server.address();
    let advance = tokio::spawn(async move {
        let mut client = Client::connect(address).await;
        call::<Now>(&mut client, "POST", "/sandbox/advance", r#"{"by":"30m"}"#).await
    });
    // A read during the advance sees a state in which only some of the rate locks have expired.
    let mut served_between = 0;
    while !advance.is_finished() {
        let overview: Overview = call(&mut client, "GET", "/sandbox", "").await;
        let new_entries = overview.happenings - before.happenings;
        served_between += u64::from((1..CHARGES).contains(&new_entries));
    }
    advance.await.expect("the advance ends");
    assert!(served_between > 0, "no request was served in between");
}

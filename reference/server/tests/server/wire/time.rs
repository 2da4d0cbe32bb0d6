//! The service clock, and the timer that wakes the world.

use std::{num::NonZeroU32, time::Duration};

use super::{Client, config, start};
use crate::START;
use reference_core::time::{Span, Timestamp};
use reference_server::{ClockKind, Server};
use tokio::sync::mpsc::UnboundedReceiver;

/// A clock with an hour per millisecond.
const FAST: ClockKind = ClockKind::Fast { factor: NonZeroU32::new(3_600_000).unwrap() };

async fn post(server: &Server, path: &str, body: &str) -> (u16, String) {
    let mut client = Client::connect(server.address()).await;
    let response = client
        .call(format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    (response.status, response.body)
}

async fn service_time(server: &Server) -> Timestamp {
    Timestamp::parse(&post(server, "/v1/now", "").await.1).expect("the world responds with its time")
}

/// Returns the time at which the timer woke the world. Its timeout is shorter than the ten seconds after which the
/// timer checks again even if it was not set.
async fn next_wakeup(wakeups: &mut UnboundedReceiver<Timestamp>) -> Timestamp {
    let wakeup = tokio::time::timeout(Duration::from_secs(5), wakeups.recv()).await;
    wakeup.expect("the timer fires in time").expect("the world exists")
}

#[tokio::test]
async fn a_frozen_clock_is_advanced_only_by_the_sandbox() {
    let (server, _) = start(config(ClockKind::Frozen)).await;
    assert_eq!(service_time(&server).await, START);
    assert_eq!(service_time(&server).await, START);
    post(&server, "/sandbox/advance", "10d").await;
    assert_eq!(service_time(&server).await, START.plus(Span::days(10)));
    assert_eq!(server.now(), Some(START.plus(Span::days(10))));
}

#[tokio::test]
async fn a_running_clock_continues_from_the_time_to_which_the_sandbox_advanced_it() {
    for clock in [ClockKind::Wall, FAST] {
        let (server, _) = start(config(clock)).await;
        let before = service_time(&server).await;
        assert!(before >= START);
        post(&server, "/sandbox/advance", "3000d").await;
        let after = service_time(&server).await;
        assert!(after >= before.plus(Span::days(3_000)), "{before} {after}");
    }
}

#[tokio::test]
async fn the_timer_wakes_the_world() {
    let (server, mut wakeups) = start(config(FAST)).await;
    post(&server, "/v1/due", "30h").await;
    let due = next_wakeup(&mut wakeups).await;
    assert!(due >= START.plus(Span::hours(30)), "{due}");
    assert!(server.now().expect("the world has no internal error") >= due);
}

#[tokio::test]
async fn the_timer_is_reset_when_an_earlier_time_becomes_due() {
    let (server, mut wakeups) = start(config(FAST)).await;
    post(&server, "/v1/due", "20000d").await;
    post(&server, "/v1/due", "1h").await;
    let due = next_wakeup(&mut wakeups).await;
    assert!(due < START.plus(Span::days(20_000)), "{due}");
}

#[tokio::test]
async fn the_timer_is_reset_when_the_sandbox_advances_the_clock() {
    let (server, mut wakeups) = start(config(ClockKind::Wall)).await;
    post(&server, "/v1/due", "10d").await;
    post(&server, "/sandbox/advance", "10d").await;
    next_wakeup(&mut wakeups).await;
    assert!(server.now().expect("the world has no internal error") >= START.plus(Span::days(10)));
}

#[tokio::test]
async fn a_new_world_needs_a_frozen_clock() {
    let (server, _) = start(config(ClockKind::Frozen)).await;
    assert_eq!(server.first_keys().expect("the world has no internal error").live, "live1");
    assert_eq!(post(&server, "/sandbox/world", "{}").await, (200, "another world".to_string()));
    assert_eq!(server.first_keys().expect("the world has no internal error").live, "live2");
    assert_eq!(service_time(&server).await, Timestamp(0));

    for clock in [ClockKind::Wall, FAST] {
        let (server, _) = start(config(clock)).await;
        let (status, body) = post(&server, "/sandbox/world", "{}").await;
        assert_eq!(status, 409);
        assert!(body.contains("frozen clock"), "{body}");
        assert_eq!(server.first_keys().expect("the world has no internal error").live, "live1");
    }
}

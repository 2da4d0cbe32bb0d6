//! Endpoints that get no deliveries, or no more.

use std::collections::BTreeSet;
use std::time::Duration;

use conformance_model::deliveries::{DeclaredEndpoint, Delivery};
use conformance_model::mode::Mode;
use conformance_model::recording::{Caller, Purpose, Recording};

use super::deliveries::{delivery, endpoint, recording_of};
use super::{check, exchange, recording};

use serde_json::{Value, json};

const TYPES: [&str; 3] = ["charge.created", "charge.paid", "charge.expired"];

/// The second at which an event was recorded, and the second at which its delivery arrived, if it did.
type Event = (u64, Option<u64>);

/// Returns a run of 200 seconds with events of the test and the live mode, oldest first, whose types alternate. The clock of
/// the service is an hour ahead.
fn run_with_events(modes: [&[Event]; 2]) -> Recording {
    let (mut received, mut lists) = (Vec::new(), Vec::new());
    for (index, (mode, events)) in [Mode::Test, Mode::Live].into_iter().zip(modes).enumerate() {
        let row = |(number, (second, _)): (usize, &Event)| {
            json!({
                "id": format!("{}-{number}", mode.as_str()),
                "type": TYPES[number % TYPES.len()],
                "created_at": format!("2026-02-01T11:{:02}:{:02}Z", second / 60, second % 60),
            })
        };
        let rows: Vec<_> = events.iter().enumerate().map(row).collect();
        received.extend(events.iter().zip(&rows).filter_map(|((_, arrived), row)| {
            let body = json!({ "event_id": row["id"], "event": row["type"], "mode": mode.as_str() });
            let arrived = Duration::from_secs((*arrived)?);
            Some(Delivery { endpoint: Some(index), arrived, ..delivery(&body) })
        }));
        let body = json!({ "data": Value::from_iter(rows.into_iter().rev()) });
        lists.push(exchange(Caller::Own(mode), Purpose::AfterDeliveries, "/v1/events", 200, &body));
    }
    let mut recording = Recording { exchanges: recording(lists).exchanges, ..recording_of(received) };
    let all = recording.deliveries.as_mut().expect("the run had a receiver");
    let events: BTreeSet<_> = TYPES.map(str::to_owned).into();
    all.endpoints = [("/test", Mode::Test), ("/live", Mode::Live)]
        .map(|(path, mode)| DeclaredEndpoint {
            events: Some(events.clone()),
            has_secret: true,
            ..endpoint(path, mode)
        })
        .into();
    all.duration = Duration::from_secs(200);
    recording
}

/// Returns events that are recorded every `step` seconds until a second, of which those before `stopped` are delivered after
/// the given delay.
fn events(step: u64, until: u64, stopped: u64, delay: u64) -> Vec<Event> {
    let seconds = (0..until).step_by(usize::try_from(step).unwrap_or(1));
    seconds.map(|second| (second, (second < stopped).then_some(second + delay))).collect()
}

#[test]
fn deliveries_do_not_stop() {
    for (all, expected) in [
        (events(5, 200, 200, 1), "pass"),
        (events(5, 200, 60, 1), "fail"),
        // The silence or the events after the last delivered one are too recent.
        (events(5, 200, 160, 1), "not judged"),
        (events(5, 75, 65, 1), "not judged"),
        // A sender of batches, or with few deliveries before the silence.
        (events(20, 200, 60, 1), "not judged"),
        (events(5, 200, 15, 1), "not judged"),
        (events(5, 200, 60, 0).iter().map(|(at, sent)| (*at, sent.map(|_| 61))).collect(), "not judged"),
        (
            events(5, 200, 60, 0).iter().map(|(at, sent)| (*at, sent.map(|sent| 2 * sent))).collect(),
            "not judged",
        ),
    ] {
        check(&run_with_events([&all, &[]]), "webhooks.pushed", expected);
    }
    let stopped = run_with_events([&events(5, 200, 60, 1), &[]]);
    for (public_url, expected) in [
        ("https://tunnel.example", "not judged"),
        ("http://localhost:8080/hooks", "fail"),
        ("http://192.168.0.7:8080", "fail"),
    ] {
        let mut stopped = stopped.clone();
        stopped.deliveries.as_mut().expect("the run had a receiver").public_url = Some(public_url.into());
        check(&stopped, "webhooks.pushed", expected);
    }
    // Only events after the last failed delivery are judged.
    for (failed, expected) in [(1, "fail"), (56, "pass")] {
        let mut refused = stopped.clone();
        for delivery in &mut refused.deliveries.as_mut().expect("the run had a receiver").received {
            delivery.response_status = Some(if delivery.arrived.as_secs() == failed { 500 } else { 200 });
        }
        check(&refused, "webhooks.pushed", expected);
    }
}

#[test]
fn every_endpoint_with_a_secret_gets_deliveries() {
    let (served, silent) = (events(5, 200, 200, 1), events(5, 200, 0, 1));
    check(&run_with_events([&served, &silent]), "webhooks.pushed", "fail");
    check(&run_with_events([&silent, &served]), "webhooks.pushed", "fail");
    check(&run_with_events([&silent, &silent]), "webhooks.pushed", "not judged");
    // Few events, or recent ones.
    check(&run_with_events([&served, &silent[..4]]), "webhooks.pushed", "not judged");
    check(&run_with_events([&served, &silent[30..]]), "webhooks.pushed", "not judged");
    let change = |change: fn(&mut Recording)| {
        let mut changed = run_with_events([&served, &silent]);
        change(&mut changed);
        changed
    };
    let without_secret = change(|run| {
        run.deliveries.as_mut().expect("the run had a receiver").endpoints[1].has_secret = false
    });
    check(&without_secret, "webhooks.pushed", "not judged");
    let with_other_path = change(|run| {
        let received = &mut run.deliveries.as_mut().expect("the run had a receiver").received;
        received.push(Delivery { endpoint: None, path: "/live/".into(), ..received[0].clone() });
    });
    check(&with_other_path, "webhooks.pushed", "not judged");
}

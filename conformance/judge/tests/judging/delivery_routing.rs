//! Deliveries compared with the API, and with the endpoints that received them.

use std::collections::BTreeSet;
use std::time::Duration;

use conformance_model::catalogue::EVENT_TYPES;
use conformance_model::deliveries::{DeclaredEndpoint, Delivery, Registration};
use conformance_model::mode::Mode;
use conformance_model::raw_bytes::RawBytes;
use conformance_model::recording::{Caller, Exchange, Purpose, Recording, Side};

use super::deliveries::{delivery, endpoint, recording_of};
use super::{LIVE, TEST, check, check_verdict_text, exchange};

use serde_json::{Value, json};

const ID: &str = "0190a5c7-7f3e-7ddd-8def-000000000002";

fn event_delivery(kind: &str, mode: &str) -> Delivery {
    delivery(&json!({ "event_id": ID, "event": kind, "mode": mode }))
}

fn read(caller: Caller, side: Side, status: u16, body: &Value) -> Exchange {
    let purpose = Purpose::DeliveredEvent { id: ID.into(), side };
    exchange(caller, purpose, "/v1/events/x", status, body)
}

fn list_after_deliveries(caller: Caller, rows: &Value) -> Exchange {
    exchange(caller, Purpose::AfterDeliveries, "/v1/events", 200, &json!({ "data": rows }))
}

fn recording_with(deliveries: Vec<Delivery>, exchanges: Vec<Exchange>) -> Recording {
    Recording { exchanges: super::recording(exchanges).exchanges, ..recording_of(deliveries) }
}

#[test]
fn a_delivery_names_an_event_that_the_api_shows() {
    let event = json!({ "id": ID, "type": "charge.paid" });
    let other_type = json!({ "id": ID, "type": "charge.created" });
    let other = json!({ "id": "another", "type": "charge.created" });
    let none = json!({});
    let refused = exchange(TEST, Purpose::Account, "/v1/account", 404, &none);
    for (exchanges, expected) in [
        (vec![read(TEST, Side::Own, 200, &event)], "pass"),
        (vec![read(TEST, Side::Own, 200, &json!({ "data": event }))], "pass"),
        (vec![list_after_deliveries(TEST, &json!([event]))], "pass"),
        (vec![read(TEST, Side::Own, 200, &other_type)], "fail"),
        (vec![list_after_deliveries(TEST, &json!([other_type]))], "fail"),
        (vec![read(TEST, Side::Own, 404, &none)], "fail"),
        // The event in the other mode means that the modes are confused.
        (vec![read(TEST, Side::Own, 404, &none), read(LIVE, Side::Foreign, 200, &event)], "not judged"),
        (vec![read(TEST, Side::Own, 200, &other)], "not judged"),
        (vec![read(TEST, Side::Own, 503, &event)], "not judged"),
        (vec![read(LIVE, Side::Own, 404, &none)], "not judged"),
        (vec![refused], "not judged"),
        (vec![], "not judged"),
    ] {
        check(
            &recording_with(vec![event_delivery("charge.paid", "test")], exchanges),
            "webhooks.event_id",
            expected,
        );
    }
    let twice = vec![event_delivery("charge.paid", "test"), event_delivery("charge.paid", "test")];
    let shown = recording_with(twice, vec![read(TEST, Side::Own, 200, &event)]);
    check_verdict_text(&shown, "webhooks.event_id", "\"2 deliveries name events that the API shows");
}

#[test]
fn a_delivery_names_the_mode_whose_key_sees_the_event() {
    let event = json!({ "id": ID, "type": "charge.paid" });
    let own = read(TEST, Side::Own, 200, &event);
    let foreign = |status| read(LIVE, Side::Foreign, status, &event);
    for (exchanges, mode, isolated) in [
        (vec![own.clone(), foreign(404)], "pass", "pass"),
        (vec![own.clone(), foreign(200)], "pass", "fail"),
        (vec![own.clone(), foreign(503)], "pass", "not judged"),
        (vec![own.clone(), list_after_deliveries(LIVE, &json!([event]))], "pass", "fail"),
        (vec![own], "pass", "not judged"),
        (vec![foreign(200)], "fail", "not judged"),
        (vec![], "pass", "not judged"),
    ] {
        let recording = recording_with(vec![event_delivery("charge.paid", "test")], exchanges);
        check(&recording, "webhooks.mode", mode);
        check(&recording, "isolation.delivered", isolated);
    }
}

/// Returns a recording of these deliveries with two endpoints: index 0 in test mode, which subscribes to `charge.paid`
/// only, and index 1 in live mode. An endpoint of another index is not declared.
fn with_subscription(deliveries: Vec<Delivery>, exchanges: Vec<Exchange>) -> Recording {
    let mut recording = recording_with(deliveries, exchanges);
    let all = recording.deliveries.as_mut().expect("the run had a receiver");
    all.endpoints[0].events = Some(["charge.paid".to_owned()].into());
    all.endpoints.push(endpoint("/all", Mode::Live));
    recording
}

fn at_endpoint(endpoint: usize, delivery: Delivery) -> Delivery {
    Delivery { endpoint: Some(endpoint), ..delivery }
}

fn test_delivery(kind: &str, mode: &str) -> Delivery {
    delivery(&json!({ "event_id": null, "event": kind, "mode": mode, "test": true }))
}

#[test]
fn an_endpoint_passes_only_if_events_of_other_types_occurred_and_it_got_none() {
    let paid = || event_delivery("charge.paid", "test");
    let listed = |kind: &str| list_after_deliveries(TEST, &json!([{ "id": "new", "type": kind }]));
    for (deliveries, exchanges, subscribed, mode_endpoints) in [
        (vec![paid()], vec![], "not judged", "not judged"),
        (vec![event_delivery("charge.expired", "test")], vec![], "fail", "not judged"),
        (vec![test_delivery("charge.expired", "test")], vec![], "not judged", "not judged"),
        (
            vec![paid(), at_endpoint(2, event_delivery("charge.expired", "test"))],
            vec![],
            "pass",
            "not judged",
        ),
        (
            vec![paid(), at_endpoint(2, test_delivery("charge.expired", "test"))],
            vec![],
            "not judged",
            "not judged",
        ),
        (
            vec![paid(), at_endpoint(2, event_delivery("charge.expired", "live"))],
            vec![],
            "not judged",
            "pass",
        ),
        (
            vec![paid(), at_endpoint(2, event_delivery("charge.unheard_of", "test"))],
            vec![],
            "not judged",
            "not judged",
        ),
        (
            vec![paid(), at_endpoint(2, test_delivery("charge.expired", "live"))],
            vec![],
            "not judged",
            "not judged",
        ),
        (vec![paid(), at_endpoint(1, event_delivery("charge.paid", "test"))], vec![], "not judged", "fail"),
        (vec![paid()], vec![listed("charge.expired")], "pass", "not judged"),
        (vec![paid()], vec![listed("charge.paid")], "not judged", "not judged"),
        (vec![paid()], vec![list_after_deliveries(LIVE, &json!([{ "id": "new" }]))], "not judged", "pass"),
        (vec![paid()], vec![list_after_deliveries(LIVE, &json!([]))], "not judged", "not judged"),
    ] {
        let recording = with_subscription(deliveries, exchanges);
        check(&recording, "webhooks.subscribed", subscribed);
        check(&recording, "webhooks.mode_endpoints", mode_endpoints);
    }
}

/// The type of an event, and the second of its delivery, if any.
type Event = (&'static str, Option<u64>);

/// Returns a run of 1,000 seconds with events of both modes, newest first, and endpoints of these types in both.
fn run_with_events(modes: [&[Event]; 2], types: &[&str]) -> Recording {
    let id = |mode: Mode, index: usize| format!("{}-{index}", mode.as_str());
    let (mut received, mut lists) = (Vec::new(), Vec::new());
    for (endpoint, (mode, events)) in [Mode::Test, Mode::Live].into_iter().zip(modes).enumerate() {
        let rows = events
            .iter()
            .enumerate()
            .map(|(index, (kind, _))| json!({ "id": id(mode, index), "type": kind }));
        lists.push(list_after_deliveries(Caller::Own(mode), &Value::from_iter(rows)));
        received.extend(events.iter().enumerate().filter_map(|(index, (kind, second))| {
            let body = json!({ "event_id": id(mode, index), "event": kind, "mode": mode.as_str() });
            Some(at_endpoint(
                endpoint,
                Delivery { arrived: Duration::from_secs((*second)?), ..delivery(&body) },
            ))
        }));
    }
    let mut recording = recording_with(received, lists);
    let all = recording.deliveries.as_mut().expect("the run had a receiver");
    let events: BTreeSet<_> = types.iter().map(|kind| (*kind).to_owned()).collect();
    all.endpoints = [("/test", Mode::Test), ("/live", Mode::Live)]
        .map(|(path, mode)| DeclaredEndpoint { events: Some(events.clone()), ..endpoint(path, mode) })
        .into();
    all.duration = Duration::from_secs(1_000);
    recording
}

/// Checks the verdict on these events of test mode. The only event of live mode has a type that no endpoint subscribes
/// to.
#[track_caller]
fn check_pushed(events: &[Event], settled: bool, expected: &str) {
    let mut recording =
        run_with_events([events, &[("charge.created", Some(0))]], &["charge.paid", "charge.expired"]);
    recording.deliveries.as_mut().expect("the run had a receiver").settled = settled;
    check(&recording, "webhooks.pushed", expected);
}

/// Checks a delivery 100 seconds after the start of the receiver. `signed_at` and `created`: its times in seconds since
/// the start. If the suite controls the clock of the service (`settled`), the statement is not applicable.
#[track_caller]
fn check_clock(signed_at: i64, created: i64, event: &str, expected: &str) {
    const STARTED_AT: i64 = 1_769_940_000;
    let created = time::OffsetDateTime::from_unix_timestamp(STARTED_AT + created).unwrap();
    let created = created.format(&time::format_description::well_known::Rfc3339).unwrap();
    let body = json!({ "event_id": event, "event": "charge.paid", "mode": "test", "created_at": created });
    let mut delivered = Delivery { arrived: Duration::from_secs(100), ..delivery(&body) };
    let header = format!("t={},v1=ab", STARTED_AT + signed_at);
    delivered.headers.push(("X-Service-Signature".into(), RawBytes(header.into_bytes())));
    let list =
        |purpose, id: &str| exchange(TEST, purpose, "/v1/events", 200, &json!({ "data": [{ "id": id }] }));
    let lists = [(Purpose::BeforeDeliveries, "old"), (Purpose::AfterDeliveries, "new")];
    let mut recording = recording_with(vec![delivered], lists.map(|(purpose, id)| list(purpose, id)).into());
    let all = recording.deliveries.as_mut().expect("the run had a receiver");
    all.started_at = Some(STARTED_AT);
    check(&recording, "webhooks.clock", expected);
    recording.deliveries.as_mut().expect("the run had a receiver").settled = true;
    check(&recording, "webhooks.clock", "not applicable");
}

/// Checks the verdicts on `t` and `created_at` of deliveries that arrived 100 seconds after the start of the receiver. `times`:
/// `t` and `created_at` of each, in seconds since the start. `recorded`: the time of their events in the API.
#[track_caller]
fn check_times(times: &[[i64; 2]], recorded: i64, [signing, creation]: [&str; 2]) {
    const STARTED_AT: i64 = 1_769_940_000;
    let text = |seconds: i64| {
        let time = time::OffsetDateTime::from_unix_timestamp(STARTED_AT + seconds).unwrap();
        let [hour, minute, second] = [time.hour(), time.minute(), time.second()];
        format!("{}T{hour:02}:{minute:02}:{second:02}.000000Z", time.date())
    };
    let id = |number: usize| format!("0190a5c7-7f3e-7ddd-8def-{number:012}");
    let deliveries = times.iter().enumerate().map(|(number, [signed, created])| {
        let body = json!({
            "event_id": id(number), "event": "charge.paid", "mode": "test", "created_at": text(*created),
        });
        let header = format!("t={},v1=ab{number}", STARTED_AT + signed);
        let headers = vec![("X-Service-Signature".into(), RawBytes(header.into_bytes()))];
        Delivery { headers, arrived: Duration::from_secs(100), ..delivery(&body) }
    });
    let rows = (0..times.len())
        .map(|number| json!({ "id": id(number), "type": "charge.paid", "created_at": text(recorded) }));
    let list = list_after_deliveries(TEST, &Value::from_iter(rows));
    let mut recording = recording_with(deliveries.collect(), vec![list]);
    recording.deliveries.as_mut().expect("the run had a receiver").started_at = Some(STARTED_AT);
    check(&recording, "webhooks.signature_shape", signing);
    check(&recording, "webhooks.created_at", creation);
    // The suite controls the clock of the service.
    recording.deliveries.as_mut().expect("the run had a receiver").settled = true;
    check(&recording, "webhooks.signature_shape", "pass");
}

#[test]
fn the_times_of_a_delivery_are_those_of_its_event_or_later() {
    check_times(&[[99, 99]; 3], 98, ["pass", "pass"]);
    check_times(&[[401, 99]; 3], 98, ["fail", "pass"]);
    check_times(&[[401, 99]; 2], 98, ["pass", "pass"]);
    check_times(&[[-203, 99]; 3], 98, ["fail", "pass"]);
    check_times(&[[-202, 400]; 3], 98, ["pass", "pass"]);
    check_times(&[[99, 401]; 3], 98, ["pass", "fail"]);
    check_times(&[[99, 1_900]; 3], 98, ["pass", "fail"]);
    // The service uses another clock.
    check_times(&[[99, 9_000]; 3], 8_000, ["pass", "pass"]);
}

#[test]
fn an_event_has_one_notation_of_its_id() {
    let event = |id: &str| json!({ "id": id, "type": "charge.paid" });
    let delivered = |id: &str| {
        let list = list_after_deliveries(TEST, &json!([event(id)]));
        recording_with(vec![event_delivery("charge.paid", "test")], vec![list])
    };
    check(&delivered(ID), "webhooks.event_id", "pass");
    check(&delivered(&ID.to_uppercase()), "webhooks.event_id", "fail");
}

#[test]
fn events_during_the_run_have_times_of_the_run() {
    check_clock(100, 99, "new", "pass");
    check_clock(-300, -300, "new", "pass");
    check_clock(400, 400, "new", "pass");
    check_clock(401, 99, "new", "warn");
    check_clock(100, -301, "new", "warn");
    check_clock(100, 7_200, "new", "warn");
    check_clock(100, 7_200, "old", "not judged");
}

#[test]
fn an_event_whose_newer_events_were_delivered_long_ago_is_not_delivered() {
    let (paid, expired) = ("charge.paid", "charge.expired");
    for (events, expected) in [
        (vec![], "not judged"),
        (vec![(paid, None)], "not judged"),
        (vec![(paid, Some(1))], "pass"),
        (vec![(paid, None), (paid, Some(1))], "not judged"),
        // Deliveries still arrive in order when the run ends.
        (vec![(paid, None), (paid, None), (paid, Some(990)), (paid, Some(980))], "pass"),
        (vec![(paid, None), (paid, Some(989))], "not judged"),
        (vec![(paid, None), (paid, Some(995)), (paid, None), (paid, Some(1))], "not judged"),
        // A newer event was delivered ten minutes before the end, and less.
        (vec![(paid, Some(400)), (paid, None), (paid, Some(1))], "fail"),
        (vec![(paid, Some(401)), (paid, None), (paid, Some(1))], "not judged"),
        // Two events of a type that is never delivered; a newer one was delivered half a minute before the end, and less.
        (vec![(paid, Some(970)), (expired, None), (expired, None), (paid, Some(1))], "fail"),
        (vec![(paid, Some(971)), (expired, None), (expired, None), (paid, Some(1))], "not judged"),
        // The second of them was overtaken less than half a minute before the end.
        (
            vec![(paid, Some(971)), (expired, None), (paid, Some(970)), (expired, None), (paid, Some(1))],
            "not judged",
        ),
        (vec![(paid, Some(970)), (expired, None), (paid, None), (paid, Some(1))], "not judged"),
        (vec![(paid, Some(970)), (expired, None), (paid, Some(1))], "not judged"),
        (vec![(expired, Some(970)), (expired, None), (expired, None), (paid, Some(1))], "not judged"),
        (vec![(paid, Some(970)), (expired, None), (expired, None)], "pass"),
    ] {
        check_pushed(&events, false, expected);
    }
    check_pushed(&[(paid, Some(999)), (paid, None), (paid, Some(1))], true, "fail");
}

#[test]
fn a_type_that_no_endpoint_receives_is_not_delivered() {
    let (paid, expired) = ("charge.paid", "charge.expired");
    let all = [paid, expired];
    let once: &[Event] = &[(paid, Some(970)), (expired, None), (paid, Some(1))];
    let delivered: &[Event] = &[(paid, Some(970)), (expired, Some(900)), (paid, Some(1))];
    let late: &[Event] = &[(paid, Some(971)), (expired, None), (paid, Some(1))];
    for (modes, expected) in [
        ([once, once], "fail"),
        ([once, delivered], "not judged"),
        ([once, late], "not judged"),
        ([once, &[(paid, Some(970))]], "not judged"),
        ([delivered, delivered], "pass"),
    ] {
        check(&run_with_events(modes, &all), "webhooks.pushed", expected);
    }
    check(&run_with_events([once, once], &[paid]), "webhooks.pushed", "pass");
}

#[test]
fn only_events_after_the_last_failed_delivery_are_judged() {
    let (paid, expired) = ("charge.paid", "charge.expired");
    let events: &[Event] =
        &[(paid, Some(900)), (expired, None), (expired, None), (paid, Some(500)), (paid, Some(1))];
    for (failed, expected) in [(1, "fail"), (500, "pass"), (900, "pass")] {
        let mut recording = run_with_events([events, &[(paid, Some(1))]], &[paid, expired]);
        for delivery in &mut recording.deliveries.as_mut().expect("the run had a receiver").received {
            delivery.response_status =
                Some(if delivery.arrived == Duration::from_secs(failed) { 302 } else { 200 });
        }
        check(&recording, "webhooks.pushed", expected);
    }
}

#[test]
fn a_registered_endpoint_receives_the_events_of_its_mode() {
    let registered = |path: &str, accepted| Registration {
        address: format!("https://hooks.example{path}"),
        public: true,
        accepted,
        response: "the command ended with 0".into(),
    };
    let (none, once): (&[Event], &[Event]) = (&[("charge.paid", None)], &[("charge.paid", Some(1))]);
    for (modes, registrations, seconds, expected) in [
        ([none, once], vec![registered("/added", true)], 30, "fail"),
        ([none, once], vec![registered("/added", true)], 29, "not judged"),
        ([none, once], vec![registered("/added", false)], 30, "not judged"),
        ([none, once], vec![registered("/live", true)], 30, "not judged"),
        ([none, once], vec![], 30, "not judged"),
        ([once, none], vec![registered("/added", true)], 30, "not judged"),
    ] {
        let mut recording = run_with_events(modes, &["charge.paid"]);
        let all = recording.deliveries.as_mut().expect("the run had a receiver");
        (all.registrations, all.duration) = (registrations, Duration::from_secs(seconds));
        for delivery in &mut all.received {
            delivery.path = "/live".into();
        }
        check(&recording, "webhooks.pushed", expected);
    }
}

#[test]
fn an_endpoint_that_receives_few_types_may_be_registered_for_these() {
    let (paid, none) = ("charge.paid", None);
    let few: &[Event] = &[
        (paid, Some(970)),
        ("charge.created", none),
        ("charge.created", none),
        ("charge.expired", none),
        (paid, Some(1)),
    ];
    let recording = run_with_events([few, &[(paid, Some(1))]], &EVENT_TYPES);
    check(&recording, "webhooks.pushed", "not judged");
    check_verdict_text(&recording, "webhooks.pushed", "name its types with `--subscribed`");
    // The operator named the types.
    let named = run_with_events([few, &[(paid, Some(1))]], &[paid, "charge.created", "charge.expired"]);
    check(&named, "webhooks.pushed", "fail");
}

#[test]
fn unreadable_bodies_are_judged_by_webhooks_post() {
    let mut recording = run_with_events([&[("charge.paid", Some(1))], &[]], &["charge.paid"]);
    for delivery in &mut recording.deliveries.as_mut().expect("the run had a receiver").received {
        delivery.body = b"payload=%7B%7D".to_vec().into();
    }
    for id in ["webhooks.pushed", "webhooks.mode_endpoints", "webhooks.subscribed"] {
        check_verdict_text(&recording, id, "see webhooks.post");
    }
}

/// Checks a delivery that arrived after `arrived` seconds, in a run whose last list of events was read after 100. `rows`:
/// the listed events.
#[track_caller]
fn check_listed(arrived: u64, created_at: &str, rows: &[&str], expected: &str) {
    let event =
        |id: &str, created_at: &str| json!({ "id": id, "type": "charge.paid", "created_at": created_at });
    let rows = rows.iter().map(|id| event(id, "2026-02-01T10:00:00Z"));
    let delivered =
        Delivery { arrived: Duration::from_secs(arrived), ..event_delivery("charge.paid", "test") };
    let exchanges = vec![
        list_after_deliveries(TEST, &Value::from_iter(rows)),
        read(TEST, Side::Own, 200, &event(ID, created_at)),
    ];
    let mut recording = recording_with(vec![delivered], exchanges);
    recording.deliveries.as_mut().expect("the run had a receiver").listed_at = Some(Duration::from_secs(100));
    check(&recording, "webhooks.event_id", expected);
}

#[test]
fn an_event_is_listed_some_time_after_its_delivery() {
    let later = "2026-02-01T10:01:00Z";
    check_listed(10, later, &["old"], "fail");
    check_listed(39, later, &["old"], "fail");
    check_listed(41, later, &["old"], "pass");
    check_listed(10, later, &["old", ID], "pass");
    // An event older than the listed ones may be on the next page.
    check_listed(10, "2026-02-01T09:59:59Z", &["old"], "pass");
    check_listed(10, later, &[], "pass");
}

/// Checks deliveries of events that the API returns one by one. `seconds`: the second of each event's creation and
/// delivery. The list was read after 50 seconds and has only events of the given seconds.
#[track_caller]
fn check_unlisted(seconds: &[u64], listed: &[u64], expected: &str) {
    let event = |second: &u64| {
        json!({
            "id": format!("0190a5c7-7f3e-7ddd-8def-{second:012}"),
            "type": "charge.paid",
            "created_at": format!("2026-02-01T10:00:{second:02}Z"),
        })
    };
    let id = |second: &u64| event(second)["id"].as_str().unwrap_or_default().to_owned();
    let deliveries = seconds.iter().map(|second| {
        let body = json!({ "event_id": id(second), "event": "charge.paid", "mode": "test" });
        Delivery { arrived: Duration::from_secs(*second), ..delivery(&body) }
    });
    let singles = seconds.iter().map(|second| {
        let purpose = Purpose::DeliveredEvent { id: id(second), side: Side::Own };
        exchange(TEST, purpose, "/v1/events/x", 200, &event(second))
    });
    let list = list_after_deliveries(TEST, &Value::from_iter(listed.iter().map(event)));
    let mut recording = recording_with(deliveries.collect(), singles.chain([list]).collect());
    recording.deliveries.as_mut().expect("the run had a receiver").listed_at = Some(Duration::from_secs(50));
    check(&recording, "webhooks.event_id", expected);
}

#[test]
fn several_events_are_listed_before_newer_ones() {
    check_unlisted(&[10, 20], &[40, 0], "fail");
    check_unlisted(&[10, 20], &[40, 20, 0], "pass");
    // The list shows no newer event, or one that is little newer.
    check_unlisted(&[10, 20], &[0], "pass");
    check_unlisted(&[10, 20], &[29, 0], "pass");
    // The second event was delivered too short a time before the list was read.
    check_unlisted(&[10, 31], &[45, 0], "pass");
    // Older events may be on the next page.
    check_unlisted(&[10, 20], &[40, 25], "pass");
}

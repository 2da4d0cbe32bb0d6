//! Lists and single reads of objects whose life takes a few seconds, a while after their final events.

use std::time::Duration;

use conformance_judge::judge;
use conformance_model::deliveries::Delivery;
use conformance_model::recording::{Exchange, List, ObjectKind, PageRequest, Purpose, Recording, Side};
use serde_json::{Value, json};

use super::deliveries::{delivery, recording_of};
use super::{TEST, events_request, exchange, page, recording};

/// Returns an exchange at a second of the run.
pub(super) fn at(second: u64, exchange: Exchange) -> Exchange {
    let time = Duration::from_secs(second);
    Exchange { sent: time, ended: time, ..exchange }
}

pub(super) fn event_id(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

/// Checks that a statement fails exactly if `expected` is `fail`. Other statements about these lists may have too few pages.
#[track_caller]
pub(super) fn check_fail(recording: &Recording, id: &str, expected: &str) {
    let rows = judge(recording);
    let row = rows.iter().find(|row| row.id == id).expect("the statement exists");
    assert_eq!(row.verdict.as_str() == "fail", expected == "fail", "{:?}", row.verdict);
}

/// Returns an event of an object, recorded in a second of the run.
pub(super) fn event(number: usize, kind: &str, second: u64, object: &Value) -> Value {
    let member = kind.split('.').next().unwrap_or_default();
    json!({
        "id": event_id(number),
        "type": kind,
        "details": {},
        member: object,
        "created_at": format!("2026-02-01T10:{:02}:{:02}.000000Z", second / 60, second % 60),
    })
}

/// Returns the delivery of an event, which arrives when it is recorded.
pub(super) fn delivery_of(event: &Value) -> Delivery {
    let kind = event["type"].as_str().expect("the type is a text");
    let member = kind.split('.').next().unwrap_or_default();
    let text = event["created_at"].as_str().expect("the time is a text");
    let number =
        |range| text.get(range).and_then(|digits: &str| digits.parse::<u64>().ok()).unwrap_or_default();
    let body = json!({
        "id": event["id"],
        "event_id": event["id"],
        "event": kind,
        "mode": "test",
        "created_at": text,
        "data": { member: event[member] },
    });
    Delivery { arrived: Duration::from_secs(number(14..16) * 60 + number(17..19)), ..delivery(&body) }
}

/// Returns the read of a list at a second of the run.
pub(super) fn list(list: List, second: u64, rows: &[Value]) -> Exchange {
    let request = PageRequest { list, ..events_request(None, 100) };
    at(second, page(request, &json!(rows), [1, 1, 100, rows.len() as u64]))
}

/// Returns the read of a single object at a second of the run.
pub(super) fn single(kind: ObjectKind, second: u64, object: &Value) -> Exchange {
    let id = object["code"].as_str().expect("the code is a text").to_owned();
    let target = format!("/v1/{}s/{id}", kind.json_name());
    let purpose = Purpose::Object { kind, id, side: Side::Own, round: 1 };
    at(second, exchange(TEST, purpose, &target, 200, &json!({ "data": object })))
}

/// Returns a recording of these exchanges, which ends with a read of all events at `end`, and of the deliveries of the events.
pub(super) fn run(mut exchanges: Vec<Exchange>, events: &[Value], end: u64) -> Recording {
    let mut newest_first = events.to_vec();
    newest_first.sort_by_key(|event| std::cmp::Reverse(event["created_at"].to_string()));
    let body = json!({ "data": newest_first });
    exchanges.push(at(end, exchange(TEST, Purpose::AfterDeliveries, "/v1/events?per_page=100", 200, &body)));
    let deliveries = recording_of(events.iter().map(delivery_of).collect());
    let mut run = Recording { exchanges: recording(exchanges).exchanges, ..deliveries };
    run.deliveries.as_mut().expect("the run had a receiver").listed_at = Some(Duration::from_secs(end));
    run
}

fn charge(index: usize, status: &str, received: &str, paid_at: &Value) -> Value {
    json!({
        "code": format!("ch{index}"), "status": status, "fiat_amount": "10.00", "fiat_currency": "EUR",
        "asset": "BTC", "asset_amount": "0.5", "received_amount": received, "customer_email": null,
        "description": null, "metadata": {}, "payment_link": null, "paid_at": paid_at,
    })
}

/// The second of the final events.
const ENDED: u64 = 10;

/// Returns the events of four charges, each of which ends after ten seconds.
fn life(kind: &str, ended: &Value) -> Vec<Value> {
    let numbered = |index: usize, object: &Value| {
        let mut object = object.clone();
        object["code"] = json!(format!("ch{index}"));
        object
    };
    (0..4)
        .flat_map(|index| {
            let new = charge(index, "pending", "0", &Value::Null);
            [
                event(10 * index, "charge.created", 1, &new),
                event(10 * index + 1, kind, ENDED, &numbered(index, ended)),
            ]
        })
        .collect()
}

/// Returns the rows of a list in which the first charges have one state, and the others have another one.
fn rows(outdated: usize, before: &Value, after: &Value) -> Vec<Value> {
    (0..4)
        .map(|index| {
            let mut row = if index < outdated { before } else { after }.clone();
            row["code"] = json!(format!("ch{index}"));
            row
        })
        .collect()
}

#[test]
fn a_list_shows_the_status_after_the_final_event() {
    let time = json!("2026-02-01T10:00:10.000000Z");
    for (kind, status, shown, outdated, second, expected) in [
        ("charge.expired", "expired", "pending", 4, 120, "fail"),
        ("charge.expired", "expired", "pending", 3, 120, "fail"),
        ("charge.canceled", "canceled", "pending", 3, 120, "fail"),
        ("charge.refunded", "refunded", "pending", 3, 120, "fail"),
        // The events are outdated, too.
        ("charge.expired", "pending", "pending", 4, 120, "fail"),
        // Two charges only.
        ("charge.expired", "expired", "pending", 2, 120, "pass"),
        // An index may be a minute late.
        ("charge.expired", "expired", "pending", 4, 70, "pass"),
        // The names in lists may differ from those in events.
        ("charge.expired", "expired", "Expired", 4, 120, "pass"),
        ("charge.canceled", "canceled", "closed", 4, 120, "pass"),
        // A later event is not known.
        ("charge.paid", "paid", "refunded", 4, 120, "pass"),
    ] {
        let ended = charge(0, status, "0", &Value::Null);
        let before = charge(0, shown, "0", &Value::Null);
        let list = list(List::Charges, second, &rows(outdated, &before, &ended));
        // The list of events shows that the charges are complete.
        check_fail(&run(vec![list], &life(kind, &ended), 130), "lists.complete", expected);
    }
    let paid = charge(0, "paid", "0.5", &time);
    for (shown, outdated, expected) in [
        (charge(0, "paid", "0.5", &Value::Null), 3, "fail"),
        (charge(0, "paid", "0.5", &json!("2026-02-01T10:01:10.000000Z")), 3, "fail"),
        (charge(0, "paid", "0.5", &json!("2026-02-01T10:00:10Z")), 3, "pass"),
        (charge(0, "paid", "0.5", &Value::Null), 2, "pass"),
        (charge(0, "refunded", "0.5", &Value::Null), 4, "pass"),
    ] {
        let list = list(List::Charges, 120, &rows(outdated, &shown, &paid));
        let read = run(vec![list], &life("charge.paid", &paid), 130);
        check_fail(&read, "lists.complete", expected);
    }
}

#[test]
fn a_list_shows_the_received_amount() {
    let time = json!("2026-02-01T10:00:10.000000Z");
    let paid = charge(0, "paid", "0.5", &time);
    for (kind, shown, outdated, expected) in [
        ("charge.underpaid", "0.000", 3, "fail"),
        // charges.amounts judges these.
        ("charge.paid", "0", 3, "pass"),
        ("charge.underpaid", "0", 2, "pass"),
        ("charge.underpaid", "0.25", 4, "pass"),
        ("charge.refunded", "0", 4, "pass"),
    ] {
        let list = list(List::Charges, 120, &rows(outdated, &charge(0, "paid", shown, &time), &paid));
        let mut read = run(vec![list], &life(kind, &paid), 130);
        check_fail(&read, "lists.complete", expected);
        read.exact_amounts = false;
        check_fail(&read, "lists.complete", "pass");
    }
}

#[test]
fn single_objects_are_not_cached_for_more_than_a_minute() {
    let new = |index| charge(index, "confirming", "0", &Value::Null);
    let expired = |index| charge(index, "expired", "0", &Value::Null);
    let life = life("charge.expired", &expired(0));
    for (outdated, early, late, expected) in [
        (2, 5, 120, "fail"),
        (1, 5, 120, "pass"),
        (2, 5, 60, "pass"),
        (0, 5, 120, "pass"),
        // Not a status that the charges had before.
        (2, 90, 120, "pass"),
    ] {
        let reads = (0..2).flat_map(|index| {
            let later = if index < outdated { new(index) } else { expired(index) };
            [single(ObjectKind::Charge, early, &new(index)), single(ObjectKind::Charge, late, &later)]
        });
        let mut reads: Vec<_> = reads.collect();
        reads.sort_by_key(|exchange| exchange.sent);
        check_fail(&run(reads, &life, 130), "charges.status", expected);
    }
}

#[test]
fn a_late_delivery_does_not_show_the_status_of_new_objects() {
    let expired = charge(0, "expired", "0", &Value::Null);
    let list = list(List::Charges, 120, &rows(0, &expired, &expired));
    for (delay, expected) in [(30, "pass"), (0, "fail")] {
        let mut read = run(vec![list.clone()], &life("charge.expired", &expired), 130);
        for delivery in &mut read.deliveries.as_mut().expect("the run had a receiver").received {
            let mut body = delivery.body.json().expect("the body is JSON").clone();
            if body["event"] == "charge.created" {
                // Rendered when it is sent.
                body["data"]["charge"]["status"] = json!("expired");
                delivery.body = body.to_string().into_bytes().into();
                delivery.arrived += Duration::from_secs(delay);
            }
        }
        check_fail(&read, "lists.complete", expected);
    }
}

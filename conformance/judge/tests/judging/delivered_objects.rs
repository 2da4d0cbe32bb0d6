//! The objects in deliveries, compared with the API and with each other; the events that belong to one transfer; and a
//! quota that two keys share.

use conformance_model::deliveries::Delivery;
use conformance_model::mode::Mode;
use conformance_model::recording::{Burst, Caller, Exchange, ExchangeOutcome, Purpose, Recording};
use serde_json::{Value, json};

use super::deliveries::{delivery, recording_of};
use super::{LIVE, TEST, check, events_request, exchange, page, recording};

fn event_id(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

fn charge_delivery(number: usize, kind: &str, charge: &Value) -> Delivery {
    delivery(&json!({
        "id": event_id(100 + number),
        "event_id": event_id(number),
        "event": format!("charge.{kind}"),
        "mode": "test",
        "created_at": "2026-02-01T10:00:00.000000Z",
        "data": { "charge": charge },
    }))
}

/// Returns a recording with a delivery and the event in the API for each pair of charges.
fn with_pairs(pairs: &[(Value, Value)], created_at: &str) -> Recording {
    let deliveries =
        pairs.iter().enumerate().map(|(number, (sent, _))| charge_delivery(number, "paid", sent));
    let event = |(number, (_, shown)): (usize, &(Value, Value))| {
        json!({
            "id": event_id(number),
            "type": "charge.paid",
            "details": {},
            "charge": shown,
            "invoice": null,
            "created_at": created_at,
        })
    };
    let rows: Vec<_> = pairs.iter().enumerate().map(event).collect();
    let list = exchange(TEST, Purpose::AfterDeliveries, "/v1/events", 200, &json!({ "data": rows }));
    Recording { exchanges: recording(vec![list]).exchanges, ..recording_of(deliveries.collect()) }
}

#[test]
fn a_delivered_charge_has_the_texts_of_the_charge_in_the_api() {
    let (plain, escaped) = (json!("Tea & cake"), json!("Tea &amp; cake"));
    for (name, sent, shown, expected) in [
        ("description", &plain, &plain, "pass"),
        ("description", &plain, &escaped, "fail"),
        ("customer_email", &json!("a***@pay.example"), &json!("ada@pay.example"), "fail"),
        ("payment_link", &Value::Null, &json!("tea"), "fail"),
        // A link may be shown by its address.
        ("payment_link", &json!("tea"), &json!("https://pay.example/tea"), "pass"),
        ("metadata", &json!({}), &json!({ "order": "7" }), "fail"),
        ("metadata", &json!({ "order": 7 }), &json!({ "order": "7" }), "pass"),
        ("metadata", &json!({ "order": "007" }), &json!({ "order": 7 }), "fail"),
        ("metadata", &json!({ "order id": "7" }), &json!({ "orderId": "7" }), "fail"),
        ("metadata", &json!({ "order": "7" }), &json!({ "order": "7", "cart": "8" }), "pass"),
    ] {
        let pair = |code: &str| (json!({ "code": code, name: sent }), json!({ "code": code, name: shown }));
        check(
            &with_pairs(&[pair("ch1"), pair("ch2")], "2026-02-01T10:00:00Z"),
            "webhooks.event_id",
            expected,
        );
        // The owner may have edited one charge.
        let unedited = (json!({ "code": "ch2" }), json!({ "code": "ch2" }));
        check(&with_pairs(&[pair("ch1"), unedited], "2026-02-01T10:00:00Z"), "webhooks.event_id", "pass");
    }
}

#[test]
fn deliveries_have_the_time_zone_of_their_events() {
    let pair = |code: &str| (json!({ "code": code }), json!({ "code": code }));
    let (two, three) = ([pair("ch1"), pair("ch2")], [pair("ch1"), pair("ch2"), pair("ch3")]);
    check(&with_pairs(&three, "2026-02-01T09:59:58Z"), "webhooks.created_at", "pass");
    check(&with_pairs(&three, "2026-02-01T12:00:00Z"), "webhooks.created_at", "fail");
    check(&with_pairs(&three, "2026-02-01T12:20:00Z"), "webhooks.created_at", "pass");
    check(&with_pairs(&two, "2026-02-01T12:00:00Z"), "webhooks.created_at", "pass");
}

/// The type of an event without `charge.`, and the status, received amount and minute of payment of its charge.
type State = (&'static str, &'static str, &'static str, Option<u32>);

#[track_caller]
fn check_charge(states: &[State], expected: &str) {
    let sent = states.iter().enumerate().map(|(number, (kind, status, received, minute))| {
        let paid_at = minute.map(|minute| format!("2026-02-01T10:{minute:02}:00.000000Z"));
        let charge = json!({
            "code": "ch1", "status": status, "received_amount": received, "paid_at": paid_at,
        });
        charge_delivery(number, kind, &charge)
    });
    check(&recording_of(sent.collect()), "webhooks.data", expected);
}

#[test]
fn a_refund_keeps_amount_and_time_of_the_payment_or_clears_both() {
    let created = ("created", "pending", "0", None);
    let paid = ("paid", "paid", "2", Some(5));
    check_charge(&[created, paid, ("refunded", "paid", "2", Some(5))], "pass");
    check_charge(&[created, paid, ("refunded", "refunded", "0", None)], "pass");
    check_charge(&[created, paid, ("refunded", "paid", "2", Some(9))], "fail");
    check_charge(&[created, paid, ("refunded", "pending", "0", None)], "fail");
    // A second transfer may pay the charge again.
    let detected = ("payment_detected", "pending", "0", None);
    check_charge(&[created, detected, detected, paid, ("refunded", "paid", "2", Some(9))], "pass");
}

#[test]
fn a_second_transfer_adds_to_the_first() {
    let underpaid = ("underpaid", "underpaid", "1.5", None);
    check_charge(&[underpaid, ("paid", "paid", "2", Some(5))], "pass");
    check_charge(&[underpaid, ("paid", "paid", "0.5", Some(5))], "fail");
    check_charge(
        &[underpaid, ("refunded", "underpaid", "0", None), ("paid", "paid", "0.5", Some(5))],
        "pass",
    );
}

#[test]
fn a_canceled_charge_has_another_status_than_a_new_one() {
    let deliveries = |canceled_status: &'static str, paid_status: &'static str| -> Vec<Delivery> {
        let states = [("created", "pending"), ("canceled", canceled_status)];
        let events_of = |code: &'static str, states: [(&'static str, &'static str); 2]| {
            states.map(|(kind, status)| (kind, json!({ "code": code, "status": status })))
        };
        let other = [("created", "pending"), ("paid", paid_status)];
        let all = [events_of("ch1", states), events_of("ch2", states), events_of("ch3", other)];
        let sent = all.iter().flatten().enumerate();
        sent.map(|(number, (kind, charge))| charge_delivery(number, kind, charge)).collect()
    };
    check(&recording_of(deliveries("canceled", "paid")), "webhooks.data", "pass");
    check(&recording_of(deliveries("pending", "paid")), "webhooks.data", "fail");
    // No charge changes its status: the deliveries may show a later state.
    check(&recording_of(deliveries("pending", "pending")), "webhooks.data", "pass");
}

/// The minute of an event, its type without `charge.`, and the id of the transaction.
type Event = (u32, &'static str, &'static str);

/// Checks the verdict on two charges, each with these events and this status, and a newer event of another charge.
#[track_caller]
fn check_events(events: &[Event], status: &str, id: &str, expected: &str) {
    let row = |code: &str, (minute, kind, txid): &Event| {
        json!({
            "id": format!("{code}-{minute}-{kind}"),
            "type": format!("charge.{kind}"),
            "details": if txid.is_empty() { json!({}) } else { json!({ "txid": format!("{txid}-{code}-0123456789") }) },
            "charge": { "code": code, "status": status, "received_amount": "1" },
            "created_at": format!("2026-02-01T10:{minute:02}:00Z"),
        })
    };
    let mut rows: Vec<_> =
        events.iter().flat_map(|event| ["ch1", "ch2"].map(|code| row(code, event))).collect();
    rows.push(row("ch3", &(59, "created", "")));
    rows.sort_by_key(|row| std::cmp::Reverse(row["created_at"].to_string()));
    let total = rows.len() as u64;
    check(&recording(vec![page(events_request(None, 100), &json!(rows), [1, 1, 100, total])]), id, expected);
}

#[test]
fn a_transfer_is_detected_before_it_is_confirmed() {
    let created = (1, "created", "");
    let id = "events.recorded";
    check_events(&[created, (2, "payment_detected", "a"), (9, "paid", "a")], "paid", id, "not judged");
    check_events(&[created, (9, "payment_detected", "a"), (2, "paid", "a")], "paid", id, "fail");
    check_events(&[created, (9, "payment_detected", "b"), (2, "paid", "a")], "paid", id, "not judged");
    // After a reorganisation, the transfer may be detected again.
    let again = [created, (2, "payment_detected", "a"), (3, "paid", "a"), (9, "payment_detected", "a")];
    check_events(&again, "paid", id, "not judged");
}

#[test]
fn funds_after_the_end_of_a_charge_are_late() {
    let (created, expired) = ((1, "created", ""), (5, "expired", ""));
    let id = "events.recorded";
    check_events(&[created, expired, (9, "payment_detected", "a"), (12, "paid", "a")], "paid", id, "fail");
    let late = [created, expired, (9, "payment_detected", "a"), (12, "late_payment", "a"), (20, "paid", "a")];
    check_events(&late, "paid", id, "not judged");
    // The transfer was sent in time and seen at the end.
    check_events(
        &[created, (6, "payment_detected", "a"), (6, "expired", ""), (12, "paid", "a")],
        "paid",
        id,
        "not judged",
    );
}

#[test]
fn a_canceled_charge_is_not_paid() {
    let events = [(1, "created", ""), (5, "canceled", "")];
    check_events(&events, "canceled", "events.recorded", "not judged");
    check_events(&events, "paid", "events.recorded", "fail");
}

#[test]
fn details_belong_to_the_object_of_the_event() {
    let rows = |created_txid: &str| -> Vec<Value> {
        let row = |code: &str, kind: &str, txid: &str| {
            json!({
                "id": format!("{code}-{kind}"),
                "type": format!("charge.{kind}"),
                "details": { "txid": txid },
                "charge": { "code": code },
                "created_at": "2026-02-01T10:00:00Z",
            })
        };
        let txid = "0123456789abcdef0123";
        vec![
            row("ch1", "paid", txid),
            row("ch2", "created", created_txid),
            row("ch3", "expired", created_txid),
        ]
    };
    for (created_txid, expected) in
        [("0123456789abcdef0123", "fail"), ("", "pass"), ("fedcba9876543210fedc", "pass")]
    {
        let page = page(events_request(None, 100), &json!(rows(created_txid)), [1, 1, 100, 3]);
        check(&recording(vec![page]), "events.details", expected);
    }
}

/// Returns a request of a burst, whose response states this remaining quota.
fn burst_request(caller: Caller, quota: u64, status: u16) -> Exchange {
    let burst = match caller {
        Caller::Own(Mode::Live) => Burst::ConcurrentLiveKey { series: 1 },
        _ => Burst::UntilRefused { series: 1 },
    };
    let mut exchange =
        exchange(caller, Purpose::Burst(burst), "/v1/account", status, &json!({ "message": "m" }));
    if let ExchangeOutcome::Answered(response) = &mut exchange.outcome {
        response.headers.push(("x-ratelimit-remaining".into(), quota.to_string()));
        response.headers.push(("retry-after".into(), "60".into()));
    }
    exchange
}

#[test]
fn a_quota_that_two_keys_share_is_a_violation() {
    // `skipped`: the quotas that the responses to the test key do not state.
    let burst = |largest: u64, live: &[u64], skipped: &[u64]| {
        let live_requests = live.iter().map(|quota| burst_request(LIVE, *quota, 200));
        let mut all: Vec<_> = live_requests.collect();
        let quotas = (largest - 119..=largest).rev().filter(|quota| !skipped.contains(quota));
        all.extend(quotas.map(|quota| burst_request(TEST, quota, 200)));
        all.push(burst_request(TEST, 0, 429));
        recording(all)
    };
    let live = [110, 100, 90];
    check(&burst(119, &live, &live), "limits.per_key", "fail");
    check(&burst(119, &live, &[]), "limits.per_key", "not judged");
    // A larger quota, such as one for an account and a day, may be shared.
    let daily = live.map(|quota| quota + 9_000);
    check(&burst(9_119, &daily, &daily), "limits.per_key", "not judged");
}

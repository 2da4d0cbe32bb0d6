//! The objects in deliveries, compared with the API and with each other; and the events of one transfer or object.

use std::time::Duration;

use conformance_model::deliveries::Delivery;
use conformance_model::recording::{List, PageRequest, Purpose, Recording};
use serde_json::{Value, json};

use super::deliveries::{delivery, recording_of};
use super::{TEST, check, events_request, exchange, page, recording};

fn event_id(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

pub(super) fn charge_delivery(number: usize, kind: &str, charge: &Value) -> Delivery {
    delivery(&json!({
        "id": event_id(100 + number),
        "event_id": event_id(number),
        "event": format!("charge.{kind}"),
        "mode": "test",
        "created_at": "2026-02-01T10:00:00.000000Z",
        "data": { "charge": charge },
    }))
}

/// Returns a recording of the events of an object. Each pair has the object in the delivery of an event and the object in
/// the event that the API returns. The last list of events was read after 30 seconds.
fn with_copies(kind: &str, pairs: &[(Value, Value)]) -> Recording {
    let member = kind.split('.').next().unwrap_or_default();
    let deliveries = pairs.iter().enumerate().map(|(number, (delivered, _))| {
        delivery(&json!({
            "id": event_id(100 + number),
            "event_id": event_id(number),
            "event": kind,
            "mode": "test",
            "created_at": "2026-02-01T10:00:00.000000Z",
            "data": { member: delivered },
        }))
    });
    let event = |(number, (_, in_api)): (usize, &(Value, Value))| {
        json!({
            "id": event_id(number),
            "type": kind,
            "details": {},
            member: in_api,
            "created_at": "2026-02-01T10:00:00Z",
        })
    };
    let rows: Vec<_> = pairs.iter().enumerate().map(event).collect();
    let list = exchange(TEST, Purpose::AfterDeliveries, "/v1/events", 200, &json!({ "data": rows }));
    let mut recording =
        Recording { exchanges: recording(vec![list]).exchanges, ..recording_of(deliveries.collect()) };
    recording.deliveries.as_mut().expect("the run had a receiver").listed_at = Some(Duration::from_secs(30));
    recording
}

/// Checks the verdict on the deliveries of `count` objects with these values of a field, in deliveries and in the API.
#[track_caller]
fn check_copies(kind: &str, name: &str, [delivered, in_api]: [Value; 2], count: usize, expected: &str) {
    let object = |number: usize, value: &Value| json!({ "code": format!("c{number}"), name: value });
    let pairs: Vec<_> =
        (0..count).map(|number| (object(number, &delivered), object(number, &in_api))).collect();
    check(&with_copies(kind, &pairs), "webhooks.event_id", expected);
}

#[test]
fn a_delivery_does_not_lack_what_the_api_shows() {
    let (none, text) = (json!(null), json!("Tea"));
    check_copies("charge.paid", "description", [none.clone(), text.clone()], 3, "fail");
    check_copies("charge.paid", "description", [none.clone(), text.clone()], 2, "pass");
    check_copies("charge.paid", "description", [none.clone(), none.clone()], 3, "pass");
    // The description may be set after the creation.
    check_copies("charge.created", "description", [none.clone(), text.clone()], 3, "pass");
    // Customers may enter their address, and shops their metadata, after the payment.
    check_copies("charge.paid", "customer_email", [none.clone(), text.clone()], 5, "pass");
    check_copies("charge.expired", "customer_email", [none.clone(), text.clone()], 3, "fail");
    check_copies("charge.expired", "customer_email", [none.clone(), text.clone()], 2, "pass");
    check_copies("invoice.sent", "number", [none.clone(), text.clone()], 3, "fail");
    check_copies("invoice.created", "number", [none.clone(), text.clone()], 3, "pass");
    check_copies("charge.paid", "metadata", [none.clone(), json!({ "order": "7" })], 5, "pass");
    check_copies("invoice.sent", "hosted_url", [none.clone(), text.clone()], 3, "fail");
    // One delivery has a description.
    let object = |number: usize, value: &Value| json!({ "code": number.to_string(), "description": value });
    let pairs: Vec<_> = (0..4)
        .map(|number| (object(number, if number == 0 { &text } else { &none }), object(number, &text)))
        .collect();
    check(&with_copies("charge.paid", &pairs), "webhooks.event_id", "pass");
}

#[test]
fn a_delivered_invoice_agrees_with_the_api() {
    let customer = |email: &str| json!({ "email": email, "seen": "2026-02-01" });
    let other_customer = || [customer("a@pay.example"), customer("b@pay.example")];
    let check_customers = |pairs: &[[Value; 2]], expected: &str| {
        let invoice =
            |number: usize, customer: &Value| json!({ "code": number.to_string(), "customer": customer });
        let pairs: Vec<_> = (0..)
            .zip(pairs)
            .map(|(number, [delivered, in_api])| (invoice(number, delivered), invoice(number, in_api)))
            .collect();
        check(&with_copies("invoice.sent", &pairs), "webhooks.event_id", expected);
    };
    let reversed = [customer("b@pay.example"), customer("a@pay.example")];
    check_customers(&[other_customer(), reversed], "fail");
    check_customers(&[other_customer()], "pass");
    // The owner may have changed one customer of two invoices.
    check_customers(&[other_customer(), other_customer()], "pass");
    let masked = |name: &str| [json!("***@pay.example"), json!(format!("{name}@pay.example"))];
    check_customers(&[masked("ada"), masked("bob")], "fail");
    // The customer may be represented by the name or the address.
    check_copies("invoice.sent", "customer", [json!("Ada"), json!("ada@pay.example")], 2, "pass");
    let charges = |codes: &[&str]| Value::from_iter(codes.iter().map(|code| json!({ "code": code })));
    check_copies("invoice.paid", "charges", [charges(&["c1"]), charges(&["c1", "c2"])], 2, "pass");
    check_copies("invoice.paid", "charges", [charges(&["c1"]), charges(&["c2"])], 2, "fail");
    check_copies("invoice.paid", "charges", [charges(&[]), charges(&["c1"])], 2, "fail");
    check_copies("invoice.paid", "charges", [charges(&[]), charges(&["c1"])], 1, "pass");
    check_copies("invoice.paid", "charges", [charges(&[]), charges(&[])], 2, "pass");
    // An unpaid invoice may show its current charge.
    check_copies("invoice.sent", "charges", [charges(&["c1"]), charges(&["c2"])], 2, "pass");
    check_copies("invoice.sent", "status", [json!("SENT"), json!("sent")], 2, "fail");
    // The status may have changed since the delivery.
    check_copies("invoice.sent", "status", [json!("sent"), json!("viewed")], 2, "pass");
    check_copies("invoice.sent", "amount", [json!(4990), json!(49.9)], 1, "fail");
    check_copies("invoice.sent", "amount", [json!(50), json!(50.0)], 1, "pass");
}

#[test]
fn a_delivery_has_a_status_of_the_api() {
    let statuses = || [json!("settled"), json!("paid")];
    check_copies("invoice.paid", "status", statuses(), 3, "fail");
    check_copies("invoice.paid", "status", statuses(), 2, "pass");
    check_copies("invoice.paid", "status", [json!("paid"), json!("paid")], 3, "pass");
    check_copies("charge.canceled", "status", [json!("aborted"), json!("canceled")], 3, "fail");
    // The status changes without an event.
    check_copies("invoice.sent", "status", [json!("sending"), json!("sent")], 3, "pass");
    // Another invoice has this status.
    let invoice = |number: usize, status: &str| json!({ "code": format!("in{number}"), "status": status });
    let pair =
        |number: usize, [delivered, in_api]: [&str; 2]| (invoice(number, delivered), invoice(number, in_api));
    let mut pairs: Vec<_> = (0..3).map(|number| pair(number, ["settled", "paid"])).collect();
    check(&with_copies("invoice.paid", &pairs), "webhooks.event_id", "fail");
    pairs.push(pair(3, ["settled", "settled"]));
    check(&with_copies("invoice.paid", &pairs), "webhooks.event_id", "pass");
}

#[test]
fn a_delivery_does_not_cut_amounts() {
    let amounts = || [json!("84.00"), json!("84.78")];
    check_copies("invoice.paid", "amount", amounts(), 3, "fail");
    check_copies("invoice.paid", "amount", amounts(), 2, "pass");
    check_copies("invoice.sent", "amount", [json!("84"), json!("84.78")], 3, "fail");
    check_copies("charge.paid", "fiat_amount", amounts(), 3, "fail");
    check_copies("invoice.paid", "amount", [json!("84.780"), json!("84.78")], 3, "pass");
    check_copies("invoice.paid", "amount", [json!("84.78"), json!("84.7812")], 3, "pass");
    check_copies("charge.paid", "asset_amount", [json!("0.50"), json!("0.5012")], 3, "pass");
}

#[test]
fn a_delivered_invoice_has_its_own_page() {
    let invoice = |number: usize, page: usize| json!({ "code": format!("in{number}"), "hosted_url": format!("https://pay.example/{page}") });
    let deliveries = |pages: [usize; 3], pages_in_api: [usize; 3]| {
        let pairs = (0..).zip(pages.into_iter().zip(pages_in_api));
        let pairs: Vec<_> =
            pairs.map(|(number, (page, in_api))| (invoice(number, page), invoice(number, in_api))).collect();
        with_copies("invoice.sent", &pairs)
    };
    check(&deliveries([0, 1, 2], [0, 1, 2]), "webhooks.event_id", "pass");
    check(&deliveries([0, 0, 1], [0, 1, 2]), "webhooks.event_id", "fail");
    check(&deliveries([0, 0, 2], [0, 1, 2]), "webhooks.event_id", "pass");
    // The address contains a token of the request, or does not identify the invoice.
    check(&deliveries([7, 8, 9], [0, 1, 2]), "webhooks.event_id", "pass");
    check(&deliveries([0, 0, 0], [0, 0, 0]), "webhooks.event_id", "pass");
}

#[test]
fn a_delivery_has_the_time_of_payment_of_the_api() {
    let time = |time: &str| json!(format!("2026-02-01T10:{time}Z"));
    for (delivered, in_api, count, expected) in [
        (time("00:00.900000"), time("00:00"), 3, "pass"),
        (time("00:05.000000"), time("00:00"), 3, "fail"),
        // A second transfer may pay a charge again.
        (time("00:05.000000"), time("00:00"), 2, "pass"),
    ] {
        check_copies("charge.paid", "paid_at", [delivered, in_api], count, expected);
    }
    let null = json!(null);
    let zero = json!("0001-01-01T00:00:00.000000Z");
    check_copies("charge.created", "paid_at", [zero.clone(), null.clone()], 3, "fail");
    check_copies("charge.created", "paid_at", [zero.clone(), null.clone()], 2, "pass");
    check_copies("charge.created", "paid_at", [null.clone(), null.clone()], 3, "pass");
    // The charges were paid before the deliveries were sent.
    check_copies("charge.late_payment", "paid_at", [zero, null], 3, "pass");
}

/// Returns a recording of `charge.paid` events. Each pair has the charge in the delivery of an event and the charge in the
/// event that the API returns; `created_at` is the time of these events in the API.
fn with_pairs(pairs: &[(Value, Value)], created_at: &str) -> Recording {
    let deliveries =
        pairs.iter().enumerate().map(|(number, (delivered, _))| charge_delivery(number, "paid", delivered));
    let event = |(number, (_, in_api)): (usize, &(Value, Value))| {
        json!({
            "id": event_id(number),
            "type": "charge.paid",
            "details": {},
            "charge": in_api,
            "invoice": null,
            "created_at": created_at,
        })
    };
    let rows: Vec<_> = pairs.iter().enumerate().map(event).collect();
    let list = exchange(TEST, Purpose::AfterDeliveries, "/v1/events", 200, &json!({ "data": rows }));
    Recording { exchanges: recording(vec![list]).exchanges, ..recording_of(deliveries.collect()) }
}

#[test]
fn a_delivered_charge_agrees_with_the_api_in_what_its_owner_sets() {
    let (plain, escaped) = (json!("Tea & cake"), json!("Tea &amp; cake"));
    for (name, delivered, in_api, expected) in [
        ("description", &plain, &plain, "pass"),
        ("description", &plain, &escaped, "fail"),
        ("customer_email", &json!("a***@pay.example"), &json!("ada@pay.example"), "fail"),
        ("payment_link", &Value::Null, &json!("tea"), "fail"),
        // A link may be represented by its code or its address.
        ("payment_link", &json!("tea"), &json!("https://pay.example/tea"), "pass"),
        ("metadata", &json!({}), &json!({ "order": "7" }), "fail"),
        // A number may be written as a string, but a string must not be parsed and written as another number.
        ("metadata", &json!({ "order": 7 }), &json!({ "order": "7" }), "pass"),
        ("metadata", &json!({ "order": "007" }), &json!({ "order": 7 }), "fail"),
        // Keys must not be converted.
        ("metadata", &json!({ "order id": "7" }), &json!({ "orderId": "7" }), "fail"),
        ("metadata", &json!({ "gift": 1 }), &json!({ "gift": true }), "fail"),
        ("metadata", &json!({ "gift": "true" }), &json!({ "gift": true }), "pass"),
        ("metadata", &json!({ "note": "Tea &amp; cake" }), &json!({ "note": "Tea & cake" }), "fail"),
        // The owner may have replaced the value since the delivery.
        ("metadata", &json!({ "state": "open" }), &json!({ "state": "shipped" }), "pass"),
        ("payment_link", &json!("17"), &json!("tea"), "fail"),
        // The owner may have added a key since the delivery.
        ("metadata", &json!({ "order": "7" }), &json!({ "order": "7", "cart": "8" }), "pass"),
    ] {
        let pair =
            |code: &str| (json!({ "code": code, name: delivered }), json!({ "code": code, name: in_api }));
        check(
            &with_pairs(&[pair("ch1"), pair("ch2")], "2026-02-01T10:00:00Z"),
            "webhooks.event_id",
            expected,
        );
        // The owner may have edited one charge, so a single difference is not a violation, unless it is one of HTML.
        let unedited = (json!({ "code": "ch2" }), json!({ "code": "ch2" }));
        let expected = if in_api == &escaped { "fail" } else { "pass" };
        check(&with_pairs(&[pair("ch1"), unedited], "2026-02-01T10:00:00Z"), "webhooks.event_id", expected);
    }
}

#[test]
fn deliveries_have_the_time_zone_of_their_events() {
    let pair = |code: &str| (json!({ "code": code }), json!({ "code": code }));
    let (two, three) = ([pair("ch1"), pair("ch2")], [pair("ch1"), pair("ch2"), pair("ch3")]);
    // The deliveries state 10:00:00. Only whole hours are a difference of time zones.
    check(&with_pairs(&three, "2026-02-01T09:59:58Z"), "webhooks.created_at", "pass");
    check(&with_pairs(&three, "2026-02-01T12:00:00Z"), "webhooks.created_at", "fail");
    check(&with_pairs(&three, "2026-02-01T12:20:00Z"), "webhooks.created_at", "pass");
    // Two deliveries are too few for a violation.
    check(&with_pairs(&two, "2026-02-01T12:00:00Z"), "webhooks.created_at", "pass");
}

#[test]
fn deliveries_are_created_after_their_events() {
    // The seconds from the event to its delivery, for each of several events.
    for (delays, expected) in [
        ([0, 0, 0, -6, -7, -8], "fail"),
        ([0, 0, 0, 0, -7, -8], "pass"),
        ([0, 0, 0, -3, -4, -5], "pass"),
        // The clocks differ.
        ([-6, -6, -6, -6, -6, -6], "pass"),
        ([0, 0, 0, 60, 70, 80], "pass"),
    ] {
        let pairs: Vec<_> = (0..delays.len())
            .map(|number| (json!({ "code": number.to_string() }), json!({ "code": number.to_string() })))
            .collect();
        let mut recording = with_pairs(&pairs, "2026-02-01T10:00:00Z");
        let received = &mut recording.deliveries.as_mut().expect("the run had a receiver").received;
        for (delivery, delay) in received.iter_mut().zip(delays) {
            let mut body = delivery.body.json().expect("the body is JSON").clone();
            let seconds = 36_000 + delay;
            let [hour, minute, second] = [seconds / 3_600, seconds / 60 % 60, seconds % 60];
            body["created_at"] = json!(format!("2026-02-01T{hour:02}:{minute:02}:{second:02}.000000Z"));
            delivery.body = body.to_string().into_bytes().into();
        }
        check(&recording, "webhooks.created_at", expected);
    }
}

/// The type of a delivered event without `charge.`, and the status, received amount and minute of payment of its charge.
type State = (&'static str, &'static str, &'static str, Option<u32>);

/// Checks the verdict on deliveries of one charge in these states.
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
    // The first transfer was refunded.
    check_charge(
        &[underpaid, ("refunded", "underpaid", "0", None), ("paid", "paid", "0.5", Some(5))],
        "pass",
    );
}

#[test]
fn a_canceled_charge_has_another_status_than_a_new_one() {
    let deliveries = |canceled_status: &'static str, paid_status: &'static str| -> Vec<Delivery> {
        let canceled = [("created", "pending"), ("canceled", canceled_status)];
        let events_of = |code: &'static str, states: [(&'static str, &'static str); 2]| {
            states.map(|(kind, status)| (kind, json!({ "code": code, "status": status })))
        };
        let paid = [("created", "pending"), ("paid", paid_status)];
        let all = [("ch1", canceled), ("ch2", canceled), ("ch3", paid), ("ch4", paid)];
        let all = all.map(|(code, states)| events_of(code, states));
        let sent = all.iter().flatten().enumerate();
        sent.map(|(number, (kind, charge))| charge_delivery(number, kind, charge)).collect()
    };
    check(&recording_of(deliveries("canceled", "paid")), "webhooks.data", "pass");
    check(&recording_of(deliveries("pending", "paid")), "webhooks.data", "fail");
    check(&recording_of(deliveries("canceled", "canceled")), "webhooks.data", "pass");
    // No charge has two statuses, so it is unknown whether new charges are pending: the deliveries of the creations may have
    // been sent late, with a later status.
    check(&recording_of(deliveries("pending", "pending")), "webhooks.data", "pass");
}

#[test]
fn a_paid_charge_has_another_status_than_a_new_one() {
    // The statuses of four charges in the deliveries of their creation and of another event.
    let deliveries = |kind: &str, statuses: [[&str; 2]; 4]| {
        let sent = statuses.iter().enumerate().flat_map(|(number, statuses)| {
            let charge = |status: &str| json!({ "code": format!("ch{number}"), "status": status });
            let [created, later] = statuses.map(charge);
            [charge_delivery(2 * number, "created", &created), charge_delivery(2 * number + 1, kind, &later)]
        });
        recording_of(sent.collect())
    };
    let (paid, stale) = (["new", "paid"], ["new", "new"]);
    check(&deliveries("paid", [paid; 4]), "webhooks.data", "pass");
    check(&deliveries("paid", [paid, paid, stale, stale]), "webhooks.data", "fail");
    check(&deliveries("paid", [paid, paid, paid, stale]), "webhooks.data", "pass");
    // An expired charge may still accept a payment.
    let expired = ["new", "expired"];
    check(&deliveries("expired", [expired, expired, stale, stale]), "webhooks.data", "pass");
    // The creations were delivered after the payments.
    let (refunded, both_paid) = (["paid", "refunded"], ["paid", "paid"]);
    check(&deliveries("paid", [refunded, refunded, both_paid, both_paid]), "webhooks.data", "pass");
}

/// The minute of an event, its type without `charge.`, and the start of its transaction id; empty without a transaction.
type Event = (u32, &'static str, &'static str);

/// Checks the verdict on two charges, each with these events and this status, and a newer event of another charge.
/// Without a violation, `events.recorded` is not judged, because the recording has no list of charges.
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
    // Another transfer was detected.
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
    let rows = |unpaid_txid: &str| -> Vec<Value> {
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
        vec![row("ch1", "paid", txid), row("ch2", "created", unpaid_txid), row("ch3", "expired", unpaid_txid)]
    };
    // The transaction id in the events without a payment: that of another charge, none, or one that pays no charge.
    for (unpaid_txid, expected) in
        [("0123456789abcdef0123", "fail"), ("", "pass"), ("fedcba9876543210fedc", "pass")]
    {
        let page = page(events_request(None, 100), &json!(rows(unpaid_txid)), [1, 1, 100, 3]);
        check(&recording(vec![page]), "events.details", expected);
    }
}

#[test]
fn deliveries_show_the_status_at_the_time_of_the_event() {
    let with_statuses = |paid: [&str; 3], voided: [&str; 3], listed: [&str; 2]| {
        let invoices = (0..).zip(
            paid.map(|status| ("paid", status)).into_iter().chain(voided.map(|status| ("voided", status))),
        );
        let deliveries = invoices.map(|(number, (kind, status))| {
            delivery(&json!({
                "id": event_id(100 + number), "event_id": event_id(number), "event": format!("invoice.{kind}"),
                "mode": "test", "created_at": "2026-02-01T10:00:00.000000Z",
                "data": { "invoice": {
                    "code": format!("in{number}"), "number": "1", "status": status, "amount": "5.00", "currency": "EUR",
                    "customer": { "name": "Ann" }, "hosted_url": "https://pay.example/1", "charges": [],
                } },
            }))
        });
        let rows = listed.map(|status| json!({ "code": status, "status": status }));
        let list = page(
            PageRequest { list: List::Invoices, ..events_request(None, 100) },
            &json!(rows),
            [1, 1, 100, 2],
        );
        Recording { exchanges: recording(vec![list]).exchanges, ..recording_of(deliveries.collect()) }
    };
    for (paid, voided, listed, expected) in [
        (["open"; 3], ["open"; 3], ["open", "paid"], "fail"),
        (["open"; 3], ["open"; 3], ["open", "open"], "pass"),
        (["open"; 3], ["open", "void", "open"], ["open", "paid"], "pass"),
        (["paid"; 3], ["void"; 3], ["open", "paid"], "pass"),
    ] {
        check(&with_statuses(paid, voided, listed), "webhooks.data", expected);
    }
}

//! The order of the events of objects whose life takes a few seconds.

use serde_json::{Value, json};

use super::{check, events_request, page, recording};

/// The type of an event, its second, and the id of a transaction, if it has one.
type Event = (&'static str, u32, &'static str);

/// Returns the listed events of objects, newest first. A transaction `tx` has another id for each object.
fn rows(objects: &[Vec<Event>]) -> Vec<Value> {
    let row = |object: usize, (kind, second, transaction): &Event| {
        let (member, other) =
            if kind.starts_with("charge") { ("charge", "invoice") } else { ("invoice", "charge") };
        let details = match *transaction {
            "" => json!({}),
            "tx" => json!({ "txid": format!("{object:064}") }),
            // That of the next object.
            _ => json!({ "txid": format!("{:064}", object + 1) }),
        };
        json!({
            "id": format!("00000000-0000-4000-8000-{object:06}{second:06}"),
            "type": kind,
            "details": details,
            member: { "code": format!("ob{object}"), "status": "open" },
            other: null,
            "created_at": format!("2026-02-01T10:{:02}:{:02}Z", second / 60, second % 60),
        })
    };
    let mut rows: Vec<_> = objects
        .iter()
        .enumerate()
        .flat_map(|(object, events)| events.iter().map(move |event| row(object, event)))
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row["created_at"].to_string()));
    rows
}

/// Checks the verdict on five objects: `violating` with the faulty events, the others with the correct ones.
#[track_caller]
fn check_events(violating: usize, faulty: &[Event], correct: &[Event], id: &str, expected: &str) {
    let objects: Vec<_> =
        (0..5).map(|index| if index < violating { faulty } else { correct }.to_vec()).collect();
    let rows = rows(&objects);
    let total = rows.len() as u64;
    check(&recording(vec![page(events_request(None, 100), &json!(rows), [1, 1, 100, total])]), id, expected);
}

/// Checks the verdict on the order of events. Without a violation it is not judged, because no list of charges was read.
#[track_caller]
fn check_order(violating: usize, faulty: &[Event], correct: &[Event], expected: &str) {
    check_events(violating, faulty, correct, "events.recorded", expected);
}

#[test]
fn most_objects_are_created_before_other_events() {
    let correct = [("invoice.created", 10, ""), ("invoice.sent", 12, "")];
    let early = [("invoice.sent", 4, ""), ("invoice.created", 10, "")];
    check_order(5, &correct, &correct, "not judged");
    check_order(3, &early, &correct, "fail");
    check_order(2, &early, &correct, "not judged");
    // At about the same time.
    check_order(5, &[("invoice.sent", 9, ""), ("invoice.created", 10, "")], &correct, "not judged");
}

#[test]
fn a_voided_invoice_is_not_paid() {
    let created = ("invoice.created", 1, "");
    let voided = [created, ("invoice.voided", 10, "")];
    let paid = |second| [created, ("invoice.voided", 10, ""), ("invoice.paid", second, "")];
    check_order(2, &paid(16), &voided, "fail");
    check_order(1, &paid(16), &voided, "not judged");
    check_order(5, &paid(11), &voided, "not judged");
    check_order(3, &paid(13), &voided, "fail");
    check_order(2, &paid(13), &voided, "not judged");
}

#[test]
fn a_charge_that_is_still_paid_was_not_canceled() {
    let canceled = [("charge.created", 1, ""), ("charge.canceled", 9, "")];
    let paid = [("charge.created", 1, ""), ("charge.paid", 5, ""), ("charge.canceled", 9, "")];
    for (violating, status, expected) in
        [(3, "paid", "fail"), (2, "paid", "not judged"), (5, "canceled", "not judged")]
    {
        let objects: Vec<_> =
            (0..5).map(|index| if index < violating { &paid[..] } else { &canceled }.to_vec()).collect();
        let mut rows = rows(&objects);
        rows.iter_mut().for_each(|row| row["charge"]["status"] = json!(status));
        let total = rows.len() as u64;
        let list = page(events_request(None, 100), &json!(rows), [1, 1, 100, total]);
        check(&recording(vec![list]), "events.recorded", expected);
    }
}

#[test]
fn a_charge_without_a_transfer_is_not_refunded() {
    let created = ("charge.created", 1, "");
    let expired = [created, ("charge.expired", 10, "")];
    let refunded = |kind| [created, (kind, 10, ""), ("charge.refunded", 12, "")];
    check_order(3, &refunded("charge.expired"), &expired, "fail");
    check_order(2, &refunded("charge.expired"), &expired, "not judged");
    for kind in ["charge.payment_detected", "charge.paid", "charge.underpaid", "charge.late_payment"] {
        check_order(5, &refunded(kind), &expired, "not judged");
    }
    // The creation is not listed, so a transfer may also be missing.
    check_order(5, &refunded("charge.expired")[1..], &expired, "not judged");
}

#[test]
fn a_transfer_after_the_end_of_a_charge_is_late() {
    let created = ("charge.created", 1, "");
    let ended = [created, ("charge.canceled", 5, "")];
    let in_time = [created, ("charge.payment_detected", 2, "tx"), ("charge.paid", 4, "tx")];
    let with = |events: &[Event]| [&ended, events].concat();
    let detected = ("charge.payment_detected", 45, "tx");
    let confirmed = with(&[detected, ("charge.paid", 48, "tx")]);
    check_order(3, &confirmed, &in_time, "fail");
    check_order(2, &confirmed, &in_time, "not judged");
    check_order(3, &with(&[("charge.paid", 48, "tx")]), &in_time, "fail");
    // The owner settled the charges manually.
    check_order(5, &with(&[("charge.paid", 48, "")]), &in_time, "not judged");
    // The transfer is reported as late when it is confirmed.
    check_order(5, &with(&[detected, ("charge.late_payment", 48, "tx")]), &in_time, "not judged");
    // Sent before the end, and detected later.
    let soon_detected = ("charge.payment_detected", 30, "tx");
    check_order(5, &with(&[soon_detected]), &in_time, "not judged");
    check_order(5, &with(&[soon_detected, ("charge.paid", 33, "tx")]), &in_time, "not judged");
    // Not confirmed yet: a confirmation takes three seconds, or an unknown time if another coin was confirmed.
    let judge = |transfer: Event, newest: u32, in_time_count: usize, coin: &str, expected: &str| {
        let late = with(&[transfer]);
        let mut objects: Vec<_> = (0..3).map(|_| late.clone()).collect();
        objects.extend((0..in_time_count).map(|_| in_time.to_vec()));
        objects.push(vec![("charge.created", newest, "")]);
        let mut rows = rows(&objects);
        let is_late =
            |row: &Value| ["ob0", "ob1", "ob2"].contains(&row["charge"]["code"].as_str().unwrap_or(""));
        rows.iter_mut().filter(|row| is_late(row)).for_each(|row| row["charge"]["asset"] = json!(coin));
        rows.iter_mut().filter(|row| !is_late(row)).for_each(|row| row["charge"]["asset"] = json!("LTC"));
        let total = rows.len() as u64;
        let list = page(events_request(None, 100), &json!(rows), [1, 1, 100, total]);
        check(&recording(vec![list]), "events.recorded", expected);
    };
    judge(detected, 100, 3, "LTC", "fail");
    judge(soon_detected, 100, 3, "LTC", "fail");
    judge(detected, 100, 3, "BTC", "not judged");
    judge(detected, 100, 2, "LTC", "not judged");
    judge(detected, 50, 3, "LTC", "not judged");
}

#[test]
fn a_confirmed_transfer_is_one_of_the_detected_ones() {
    let payment = |transaction| {
        [("charge.created", 1, ""), ("charge.payment_detected", 2, "tx"), ("charge.paid", 4, transaction)]
    };
    let (own, other, none) = (payment("tx"), payment("of another"), payment(""));
    check_events(3, &other, &own, "events.details", "fail");
    check_events(2, &other, &own, "events.details", "pass");
    check_events(5, &none, &own, "events.details", "pass");
    // A transfer that was replaced before its confirmation: no charge has a detection of the new transaction.
    let undetected = [("charge.created", 1, ""), ("charge.paid", 4, "of another")];
    check_events(5, &undetected, &own, "events.details", "pass");
}

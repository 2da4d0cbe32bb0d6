//! The events of a paid invoice.

use conformance_model::recording::{PageRequest, Recording};

use super::deliveries::{delivery, recording_of};
use super::{check, check_verdict_text, events_request, page, recording};

use serde_json::{Value, json};

const EVENT_TIME: &str = "2026-02-01T10:00:00Z";
/// A time at which all events related to one of `EVENT_TIME` must be listed.
const LATER: &str = "2026-02-01T11:00:00Z";
/// A time at which related events may still be missing.
const TOO_SOON: &str = "2026-02-01T10:09:59Z";

/// Returns an event of this type with the invoice `in1` and its charges.
fn invoice_event(kind: &str, charges: Value) -> Value {
    let invoice = json!({ "code": "in1", "charges": charges });
    json!({ "id": "i", "type": kind, "invoice": invoice, "created_at": EVENT_TIME })
}

/// Returns the event `charge.paid` of a charge.
fn paid_event(code: &str) -> Value {
    json!({ "id": "c", "type": "charge.paid", "charge": { "code": code }, "created_at": EVENT_TIME })
}

/// Returns the events of a mode, and one at the time `newest`. `more`: the number of events on later pages.
fn events(rows: &[Value], newest: &str, more: u64) -> Recording {
    let last = json!({ "id": "z", "type": "charge.created", "created_at": newest });
    let rows = [&[last], rows].concat();
    let total = rows.len() as u64 + more;
    recording(vec![page(events_request(None, 100), &json!(rows), [1, 1, 100, total])])
}

#[test]
fn an_invoice_is_paid_by_a_charge() {
    let paid = |charges| invoice_event("invoice.paid", charges);
    for (rows, newest, more, both, invoice_paid) in [
        (vec![paid(json!(["c1"])), paid_event("c1")], LATER, 0, "pass", "pass"),
        (vec![paid(json!([{ "code": "c1" }])), paid_event("c1")], LATER, 0, "pass", "pass"),
        (vec![paid(json!(["c1"])), paid_event("c2")], LATER, 0, "fail", "fail"),
        (vec![paid(json!(["c1"])), paid_event("c2")], TOO_SOON, 0, "not judged", "not judged"),
        (vec![paid(json!(["c1"])), paid_event("c2")], LATER, 1, "not judged", "not judged"),
        (vec![paid(json!(["c1"])), json!({ "type": "charge.paid" })], LATER, 0, "not judged", "not judged"),
        (vec![paid(json!([]))], LATER, 0, "not judged", "fail"),
        (vec![paid(Value::Null)], LATER, 0, "not judged", "fail"),
        (vec![paid(json!({}))], LATER, 0, "not judged", "fail"),
        (vec![paid(json!([{ "code": "c1", "status": "paid" }]))], LATER, 0, "fail", "pass"),
        // An unknown format proves nothing.
        (vec![paid(json!([{}])), paid_event("c1")], LATER, 0, "not judged", "not judged"),
        (vec![paid(json!(1))], LATER, 0, "not judged", "not judged"),
    ] {
        let recording = events(&rows, newest, more);
        check(&recording, "events.both_paid", both);
        check(&recording, "types.invoice_paid", invoice_paid);
    }
    let alone = events(&[paid(json!(["c1"]))], LATER, 0);
    check_verdict_text(&alone, "events.both_paid", "beside invoice.paid i");
}

#[test]
fn a_paid_charge_settles_its_invoice_unless_it_is_void() {
    let with_charge = |kind| invoice_event(kind, json!(["c1"]));
    for (kinds, newest, more, expected) in [
        (vec!["invoice.created", "invoice.paid"], LATER, 0, "pass"),
        (vec!["invoice.created"], LATER, 0, "fail"),
        (vec!["invoice.created"], TOO_SOON, 0, "not judged"),
        (vec!["invoice.created"], LATER, 1, "not judged"),
        (vec!["invoice.created", "invoice.voided"], LATER, 0, "not judged"),
    ] {
        let rows: Vec<_> = kinds.into_iter().map(with_charge).chain([paid_event("c1")]).collect();
        check(&events(&rows, newest, more), "invoices.settled", expected);
    }
}

#[test]
fn several_invoices_are_not_all_settled_by_earlier_charges() {
    let event = |id: &str, kind: &str, created_at: &str, member: &str, object: Value| json!({ "id": id, "type": kind, "created_at": created_at, member: object });
    let older = event("old", "charge.created", "2026-02-01T09:00:00Z", "charge", json!({ "code": "c9" }));
    let unsettled = |count: usize| {
        let each = (0..count).flat_map(|n| {
            let (invoice, charge) = (format!("in{n}"), format!("c{n}"));
            let (issued, paid) = (json!({ "code": invoice, "charges": [charge] }), json!({ "code": charge }));
            [
                event(&invoice, "invoice.sent", EVENT_TIME, "invoice", issued),
                event(&charge, "charge.paid", EVENT_TIME, "charge", paid),
            ]
        });
        each.chain([older.clone()]).collect::<Vec<_>>()
    };
    let settled = invoice_event("invoice.paid", json!([]));
    let oldest = unsettled(3)[..6].to_vec();
    for (rows, newest, expected) in [
        (unsettled(3), LATER, "fail"),
        (unsettled(2), LATER, "not judged"),
        (unsettled(3), TOO_SOON, "not judged"),
        // The invoices may have been settled before the oldest listed event.
        (oldest, LATER, "not judged"),
        ([unsettled(3), vec![settled]].concat(), LATER, "pass"),
    ] {
        check(&events(&rows, newest, 1), "invoices.settled", expected);
    }
}

#[test]
fn a_page_of_a_charge_proves_a_missing_event_only_if_it_was_read_after_the_invoice_event() {
    let mut events = events(&[], LATER, 100).exchanges;
    let filtered = |name: &str, value: &str, row: Value| {
        let filters = vec![(name.to_owned(), value.to_owned())];
        page(PageRequest { filters, ..events_request(None, 100) }, &json!([row]), [1, 1, 100, 1])
    };
    let paid = filtered("type", "invoice.paid", invoice_event("invoice.paid", json!(["c1"])));
    let opened =
        json!({ "id": "o", "type": "charge.created", "charge": { "code": "c1" }, "created_at": EVENT_TIME });
    let charge = filtered("charge", "c1", opened);
    let long = events.remove(0);
    for (exchanges, expected) in
        [(vec![long.clone(), paid.clone(), charge.clone()], "fail"), (vec![long, charge, paid], "not judged")]
    {
        check(&recording(exchanges), "events.both_paid", expected);
    }
}

#[test]
fn the_events_since_the_creation_of_an_object_are_complete() {
    let event = |id: &str, kind: &str, minute: u32, member: &str, object: Value| {
        let created_at = format!("2026-02-01T10:{minute:02}:00Z");
        json!({ "id": id, "type": kind, "created_at": created_at, member: object })
    };
    let invoice = json!({ "code": "in1", "charges": [{ "code": "c1" }] });
    let issued = event("1", "invoice.created", 1, "invoice", invoice.clone());
    let opened = event("2", "charge.created", 2, "charge", json!({ "code": "c1" }));
    let charge_paid = event("3", "charge.paid", 3, "charge", json!({ "code": "c1" }));
    let invoice_paid = event("4", "invoice.paid", 3, "invoice", invoice);
    let [both_paid, settled] = ["events.both_paid", "invoices.settled"];
    for (rows, newest, id, expected) in [
        ([&invoice_paid, &opened, &issued], LATER, both_paid, "fail"),
        ([&invoice_paid, &issued, &issued], LATER, both_paid, "not judged"),
        ([&invoice_paid, &opened, &issued], "2026-02-01T10:12:59Z", both_paid, "not judged"),
        ([&invoice_paid, &charge_paid, &opened], LATER, both_paid, "pass"),
        ([&charge_paid, &opened, &issued], LATER, settled, "fail"),
        ([&charge_paid, &opened, &issued], "2026-02-01T10:12:59Z", settled, "not judged"),
        ([&invoice_paid, &charge_paid, &issued], LATER, settled, "pass"),
    ] {
        let older = event("0", "charge.created", 0, "charge", json!({ "code": "c0" }));
        check(&events(&[&rows.map(Value::clone)[..], &[older]].concat(), newest, 50), id, expected);
        // Events of the same time may be on the next page.
        let expected = if expected == "fail" && id == settled { "not judged" } else { expected };
        check(&events(&rows.map(Value::clone), newest, 50), id, expected);
    }
    // The oldest events of the invoice may be on later pages.
    let sent = event("5", "invoice.sent", 2, "invoice", json!({ "code": "in1", "charges": ["c1"] }));
    check(&events(&[charge_paid, sent, opened], LATER, 50), settled, "not judged");
}

#[test]
fn settled_invoices_show_a_paid_charge() {
    let rows = |embedded: &str, others: &str| {
        let invoice = |index: usize| {
            let status = if index == 0 { others } else { embedded };
            let charges = json!([{ "code": format!("c{index}"), "status": status }]);
            let invoice = json!({ "code": format!("in{index}"), "charges": charges });
            json!({ "id": format!("i{index}"), "type": "invoice.paid", "invoice": invoice, "created_at": EVENT_TIME })
        };
        let charge = |index: usize, kind: &str, status: &str| {
            let charge = json!({ "code": format!("c{index}"), "status": status });
            json!({ "id": format!("{kind}{index}"), "type": kind, "charge": charge, "created_at": EVENT_TIME })
        };
        let of_charge =
            |index| [charge(index, "charge.paid", "paid"), charge(index, "charge.created", "pending")];
        (0..3).map(invoice).chain((0..3).flat_map(of_charge)).collect::<Vec<_>>()
    };
    for (embedded, others, expected) in [
        ("paid", "paid", "pass"),
        ("pending", "pending", "fail"),
        ("pending", "paid", "pass"),
        // Another name of the status.
        ("confirmed", "confirmed", "pass"),
    ] {
        check(&events(&rows(embedded, others), LATER, 0), "types.invoice_paid", expected);
    }
}

#[test]
fn the_invoice_of_a_test_delivery_may_have_no_charges() {
    let invoice = json!({ "code": "in1", "charges": [] });
    for (is_test, expected) in [(false, "fail"), (true, "not judged")] {
        let body = json!({ "event": "invoice.paid", "mode": "test", "test": is_test, "data": { "invoice": invoice } });
        check(&recording_of(vec![delivery(&body)]), "types.invoice_paid", expected);
    }
}

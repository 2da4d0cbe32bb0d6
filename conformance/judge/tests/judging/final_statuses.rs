//! The statuses of objects at their final events, and the copies of events on several pages.

use serde_json::{Value, json};

use super::{check, events_request, page, recording};

fn invoice_event(invoice: usize, kind: &str, status: &str) -> Value {
    json!({
        "id": format!("00000000-0000-4000-8000-{invoice:06}{:06}", kind.len()),
        "type": format!("invoice.{kind}"),
        "details": {},
        "charge": null,
        "invoice": { "code": format!("in{invoice}"), "status": status },
        "created_at": "2026-02-01T10:00:00Z",
    })
}

/// Checks a list of four invoices, given by their statuses at their creation and in their `invoice.voided`.
#[track_caller]
fn check_voided(statuses: [[&str; 2]; 4], expected: &str) {
    let rows = (0..).zip(statuses).flat_map(|(invoice, [created, voided])| {
        [invoice_event(invoice, "voided", voided), invoice_event(invoice, "created", created)]
    });
    let list = page(events_request(None, 100), &Value::from_iter(rows), [1, 1, 100, 8]);
    check(&recording(vec![list]), "events.recorded", expected);
}

#[test]
fn a_final_event_in_a_list_changes_the_status() {
    let (voided, unchanged, current) = (["open", "void"], ["open", "open"], ["void", "void"]);
    check_voided([voided; 4], "not judged");
    check_voided([voided, voided, unchanged, unchanged], "fail");
    // A single invoice may have been reopened.
    check_voided([voided, voided, voided, unchanged], "not judged");
    // One invoice may have been voided while the page was rendered.
    check_voided([voided, unchanged, unchanged, unchanged], "not judged");
    // Events that contain the current object.
    check_voided([current; 4], "not judged");
    check_voided([voided, voided, current, current], "not judged");
}

#[test]
fn an_event_is_the_same_on_all_pages() {
    for (name, first, later, expected) in [
        ("created_at", json!("2026-02-01T10:00:00.123456Z"), json!("2026-02-01T10:00:00Z"), "pass"),
        ("created_at", json!("2026-02-01T10:00:00Z"), json!("2026-02-01T12:00:00Z"), "fail"),
        ("type", json!("invoice.sent"), json!("invoice.viewed"), "fail"),
        ("details", json!({ "to": "ann" }), json!({}), "fail"),
        ("details", json!({}), json!({ "to": "ann" }), "pass"),
    ] {
        let pages = |changed: usize| {
            let rows = |value: &Value, count: usize| {
                let row = |invoice| {
                    let mut row = invoice_event(invoice, "sent", "open");
                    row[name] = if invoice < count { value.clone() } else { first.clone() };
                    row
                };
                Value::from_iter((0..2).map(row))
            };
            let list = |value, count| page(events_request(None, 100), &rows(value, count), [1, 1, 100, 2]);
            recording(vec![list(&first, 2), list(&later, changed)])
        };
        check(&pages(2), &format!("events.{name}"), expected);
        check(&pages(1), &format!("events.{name}"), "pass");
    }
}

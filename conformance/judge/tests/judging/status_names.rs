//! Statuses that are named after an event type, and the types of the object's events.

use std::time::Duration;

use conformance_model::recording::{ExchangeOutcome, List, PageRequest, Recording};
use serde_json::{Value, json};

use super::deliveries::{delivery, recording_of};
use super::{check, events_request, page, recording};

fn event(member: &str, code: &str, kind: &str, status: &str, minute: u32) -> Value {
    json!({
        "id": format!("{code}-{kind}"),
        "type": format!("{member}.{kind}"),
        "details": {},
        member: { "code": code, "status": status },
        "created_at": format!("2026-02-01T10:{minute:02}:00Z"),
    })
}

/// Returns the creation of an object and a second event, in which it has the given status.
fn history(member: &str, code: &str, kind: &str, status: &str) -> [Value; 2] {
    [event(member, code, kind, status, 9), event(member, code, "created", "open", 1)]
}

/// Checks the verdict on a list of events: these histories, and a newer event of another charge.
#[track_caller]
fn check_types(histories: &[[Value; 2]], expected: &str) {
    let mut rows = vec![event("charge", "newer", "created", "open", 59)];
    rows.extend(histories.iter().map(|history| history[0].clone()));
    rows.extend(histories.iter().map(|history| history[1].clone()));
    let total = rows.len() as u64;
    let events = page(events_request(None, 100), &json!(rows), [1, 1, 100, total]);
    check(&recording(vec![events]), "events.recorded", expected);
}

#[test]
fn a_refund_is_not_recorded_as_a_cancelation() {
    let charge = |code: &str, status: &str| history("charge", code, "canceled", status);
    let refunds = [charge("ch1", "refunded"), charge("ch2", "refunded")];
    check_types(&[&refunds[..], &[charge("ch3", "cancelled")]].concat(), "fail");
    check_types(&refunds, "not judged");
    check_types(&[charge("ch1", "refunded"), charge("ch3", "canceled")], "not judged");
    let closed = [charge("ch1", "closed"), charge("ch2", "closed"), charge("ch3", "canceled")];
    check_types(&closed, "not judged");
}

#[test]
fn a_voided_invoice_is_not_recorded_as_paid() {
    let invoice = |code: &str, status: &str| history("invoice", code, "paid", status);
    let voided = [invoice("in1", "void"), invoice("in2", "void"), invoice("in3", "paid")];
    check_types(&voided, "fail");
}

/// Checks the verdict on two listed objects of a status, whose newest event, of 1 February, has this
/// type. `read_on`: the weekday and day of the list's `Date`.
#[track_caller]
fn check_listed(list: List, status: &str, kind: &str, read_on: &str, expected: &str) {
    let member = if list == List::Charges { "charge" } else { "invoice" };
    let histories = ["a1", "a2"].map(|code| history(member, code, kind, status));
    let [newer, older] = [0, 1].map(|index| histories.each_ref().map(|history| history[index].clone()));
    let rows = [newer, older].concat();
    let events = page(events_request(None, 100), &json!(rows), [1, 1, 100, 4]);
    let request = PageRequest { list, per_page: Some(100), ..events_request(None, 100) };
    let listed = json!([{ "code": "a2", "status": status }, { "code": "a1", "status": status }]);
    let mut listed = page(request, &listed, [1, 1, 100, 2]);
    if let ExchangeOutcome::Answered(response) = &mut listed.outcome {
        response.headers.push(("date".into(), format!("{read_on} Feb 2026 10:30:00 GMT")));
    }
    check(&recording(vec![listed, events]), "events.recorded", expected);
}

#[test]
fn events_date_a_list_without_a_date() {
    let histories = ["a1", "a2"].map(|code| history("invoice", code, "sent", "voided"));
    let [newer, older] = [0, 1].map(|index| histories.each_ref().map(|history| history[index].clone()));
    let request = PageRequest { list: List::Invoices, per_page: Some(100), ..events_request(None, 100) };
    let listed = json!([{ "code": "a2", "status": "voided" }, { "code": "a1", "status": "voided" }]);
    for (newest, expected) in [("2026-02-06T10:00:00Z", "fail"), ("2026-02-01T10:30:00Z", "not judged")] {
        let mut latest = event("charge", "ch1", "created", "open", 0);
        latest["created_at"] = json!(newest);
        let earlier = page(events_request(None, 1), &json!([latest]), [1, 5, 1, 5]);
        let listed = page(request.clone(), &listed, [1, 1, 100, 2]);
        let rows = [&[latest][..], &newer, &older].concat();
        let events = page(events_request(None, 100), &json!(rows), [1, 1, 100, 5]);
        check(&recording(vec![earlier, listed, events]), "events.recorded", expected);
    }
}

#[test]
fn a_listed_status_has_its_event() {
    let (later, same_day) = ("Fri, 06", "Sun, 01");
    check_listed(List::Invoices, "voided", "sent", later, "fail");
    check_listed(List::Invoices, "voided", "voided", later, "not judged");
    check_listed(List::Invoices, "voided", "sent", same_day, "not judged");
    check_listed(List::Charges, "refunded", "paid", later, "fail");
    check_listed(List::Charges, "canceled", "expired", later, "not applicable");
    check_listed(List::Charges, "expired", "payment_detected", later, "fail");
    check_listed(List::Charges, "paid", "late_payment", later, "not applicable");
    check_listed(List::Charges, "closed", "paid", later, "not applicable");
}

/// Checks the verdict on two charges that are listed as canceled at 10:30:00 without such an event, by the time of the newest event
/// in the later list.
#[track_caller]
fn check_listed_recently(newest: &str, expected: &str) {
    let created = ["a1", "a2"].map(|code| event("charge", code, "created", "open", 28));
    let mut newer = event("charge", "newer", "created", "open", 30);
    newer["created_at"] = json!(newest);
    let earlier = page(events_request(None, 100), &json!(created), [1, 1, 100, 2]);
    let later = page(events_request(None, 100), &json!([newer, created[0], created[1]]), [1, 1, 100, 3]);
    let request = PageRequest { list: List::Charges, per_page: Some(100), ..events_request(None, 100) };
    let rows = json!([{ "code": "a2", "status": "canceled" }, { "code": "a1", "status": "canceled" }]);
    let mut listed = page(request, &rows, [1, 1, 100, 2]);
    if let ExchangeOutcome::Answered(response) = &mut listed.outcome {
        response.headers.push(("date".into(), "Sun, 01 Feb 2026 10:30:00 GMT".into()));
    }
    check(&recording(vec![earlier, listed, later]), "events.recorded", expected);
}

#[test]
fn a_recent_status_has_its_event_if_the_events_are_not_late() {
    check_listed_recently("2026-02-01T10:30:20Z", "fail");
    check_listed_recently("2026-02-01T10:30:05Z", "not applicable");
}

/// Returns a recording of the deliveries of `count` voided invoices, each with a charge that has this status and with a paid one,
/// and of a list of events that was read after `waited` seconds. The first charges have no other event than their creation, or
/// one of the type `kind`.
fn voided_invoices(count: usize, status: &str, kind: Option<&str>, waited: u64) -> Recording {
    let voided = |index: usize| {
        let [own, paid] = [("ch", status), ("p", "paid")]
            .map(|(name, status)| json!({ "code": format!("{name}{index}"), "status": status }));
        let charges = json!([own, paid]);
        delivery(&json!({
            "id": format!("00000000-0000-4000-8000-1{index:011}"),
            "event_id": format!("00000000-0000-4000-8000-0{index:011}"),
            "event": "invoice.voided",
            "mode": "test",
            "created_at": "2026-02-01T10:09:30.000000Z",
            "data": { "invoice": { "code": format!("in{index}"), "status": "void", "charges": charges } },
        }))
    };
    let mut rows = vec![event("charge", "newer", "created", "pending", 10)];
    for index in 0..count {
        let code = format!("ch{index}");
        rows.extend(kind.map(|kind| event("charge", &code, kind, status, 9)));
        rows.push(event("charge", &code, "created", "pending", 9));
        rows.extend(history("charge", &format!("p{index}"), "paid", "paid"));
    }
    let total = rows.len() as u64;
    let events = page(events_request(None, 100), &json!(rows), [1, 1, 100, total]);
    let mut read = Recording {
        exchanges: recording(vec![events]).exchanges,
        ..recording_of((0..count).map(voided).collect())
    };
    read.deliveries.as_mut().expect("the run had a receiver").listed_at = Some(Duration::from_secs(waited));
    read
}

#[test]
fn a_delivered_charge_has_the_event_of_its_status() {
    let id = "events.recorded";
    check(&voided_invoices(3, "canceled", None, 30), id, "fail");
    check(&voided_invoices(2, "canceled", None, 30), id, "not judged");
    check(&voided_invoices(3, "canceled", Some("canceled"), 30), id, "not judged");
    // The service may use one status for both.
    check(&voided_invoices(3, "canceled", Some("expired"), 30), id, "not judged");
    check(&voided_invoices(3, "closed", None, 30), id, "not judged");
    check(&voided_invoices(3, "expired", None, 30), id, "not judged");
    // The events may be listed later.
    check(&voided_invoices(3, "canceled", None, 5), id, "not judged");
}

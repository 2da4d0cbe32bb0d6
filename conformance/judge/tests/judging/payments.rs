//! The events of a charge, compared with its amounts and its time of payment.

use conformance_model::recording::{PageRequest, Recording};
use serde_json::{Value, json};

use super::delivered_objects::charge_delivery;
use super::deliveries::recording_of;
use super::{check, events_request, page, recording};

/// The state of a charge at an event. The amount due is always 10.00.
#[derive(Clone, Copy)]
struct State {
    received: &'static str,
    /// `true` if the charge has a time of payment.
    is_paid: bool,
}

const OPEN: State = State { received: "0.00", is_paid: false };
const HALF: State = State { received: "5.00", is_paid: false };
const FULL: State = State { received: "10.00", is_paid: false };
const PAID: State = State { received: "10.00", is_paid: true };
const PAID_SHORT: State = State { received: "5.00", is_paid: true };

/// The minute of an event, its type without `charge.`, and the state of the charge.
type Event = (u32, &'static str, State);

/// Returns the listed events of a charge. Its time of payment is always 10:00.
fn rows(code: &str, events: &[Event]) -> Vec<Value> {
    let row = |(minute, kind, state): &Event| {
        json!({
            "id": format!("{code}-{minute}-{kind}"),
            "type": format!("charge.{kind}"),
            "details": {},
            "charge": {
                "code": code,
                "status": kind,
                "fiat_amount": "10.00",
                "fiat_currency": "EUR",
                "asset_amount": "10.00",
                "received_amount": state.received,
                "paid_at": state.is_paid.then_some("2026-02-01T10:00:00.000000Z"),
            },
            "created_at": format!("2026-02-01T10:{minute:02}:00Z"),
        })
    };
    events.iter().map(row).collect()
}

/// Returns a recording of a list of these events and a newer event of another charge, in minute 59. An event shows the
/// state of its time only if it was read over a minute later, and the newest event counts as the time of reading.
fn listed_events(mut all: Vec<Value>) -> Recording {
    all.extend(rows("newer", &[(59, "expired", OPEN)]));
    all.sort_by_key(|row| std::cmp::Reverse(row["created_at"].to_string()));
    let total = all.len() as u64;
    recording(vec![page(events_request(None, 100), &json!(all), [1, 1, 100, total])])
}

/// Returns the events of one charge, all with its newest state.
fn with_current_object(events: &[Event]) -> Vec<Value> {
    let mut rows = rows("ch1", events);
    let newest = rows.last().expect("the history has an event")["charge"].clone();
    rows.iter_mut().for_each(|row| row["charge"] = newest.clone());
    rows
}

/// Checks a history whose events contain the object as it was (`snapshots`), and as it is now (`current_objects`).
#[track_caller]
fn check_history(id: &str, events: &[Event], snapshots: &str, current_objects: &str) {
    check(&listed_events(rows("ch1", events)), id, snapshots);
    check(&listed_events(with_current_object(events)), id, current_objects);
}

#[test]
fn a_charge_has_no_time_of_payment_before_it_is_paid() {
    let (id, unjudged) = ("charges.paid_at", "not judged");
    let early = State { is_paid: true, ..OPEN };
    check_history(id, &[(0, "created", early), (9, "payment_detected", HALF)], "fail", unjudged);
    check_history(id, &[(0, "created", early), (9, "payment_detected", early)], "fail", "fail");
    check_history(id, &[(0, "created", OPEN), (9, "payment_detected", early)], "fail", "fail");
    check_history(id, &[(0, "created", OPEN), (9, "expired", early)], "fail", "fail");
    check_history(id, &[(0, "created", OPEN), (9, "paid", PAID)], "pass", "pass");
    // A copy that was taken a moment later may show the payment.
    check_history(id, &[(0, "created", PAID), (1, "paid", PAID)], "pass", "pass");
    // After an underpayment or a late payment, the charge may have a time of payment.
    check_history(
        id,
        &[(0, "created", OPEN), (5, "underpaid", HALF), (9, "expired", PAID_SHORT)],
        "pass",
        "pass",
    );
    check_history(
        id,
        &[(0, "created", OPEN), (5, "expired", OPEN), (9, "late_payment", PAID)],
        "pass",
        "pass",
    );
    // The list was read within a minute of this event, so the payment may not be listed yet.
    check_history(id, &[(58, "created", early)], "pass", "pass");
    // The creation is not listed, so an event of a payment may also be missing.
    check_history(id, &[(9, "expired", early)], "pass", "pass");
}

#[test]
fn a_filtered_list_may_lack_the_payment_of_a_listed_charge() {
    // The payment of the first charge is neither in the filtered list nor on the first page of all events.
    let paid_charge = with_current_object(&[(0, "created", OPEN), (9, "paid", PAID)]);
    let newest = rows("ch2", &[(20, "created", OPEN)]);
    let filters = vec![("type".to_owned(), "charge.created".to_owned())];
    let created = json!([newest[0], paid_charge[0]]);
    let first_page = page(events_request(None, 100), &json!(newest), [1, 2, 100, 150]);
    let filtered = page(PageRequest { filters, ..events_request(None, 100) }, &created, [1, 1, 100, 2]);
    check(&recording(vec![first_page, filtered]), "charges.paid_at", "pass");
}

#[test]
fn a_full_amount_is_not_underpaid() {
    let (id, inapplicable) = ("types.charge_underpaid", "not applicable");
    // Returns a history with detected transfers at these minutes, and this state when it is underpaid.
    let history = |detections: &[u32], state| {
        let detected = detections.iter().map(|minute| (*minute, "payment_detected", HALF));
        [(0, "created", OPEN)]
            .into_iter()
            .chain(detected)
            .chain([(20, "underpaid", state)])
            .collect::<Vec<_>>()
    };
    let overpaid = State { received: "11.50", is_paid: false };
    check_history(id, &history(&[5], HALF), "pass", "pass");
    check_history(id, &history(&[5], FULL), "fail", "fail");
    check_history(id, &history(&[5], overpaid), "fail", "fail");
    check_history(id, &history(&[], FULL), "fail", "fail");
    // The amount may include a second transfer that is not confirmed.
    check_history(id, &history(&[5, 9], FULL), inapplicable, inapplicable);
    // If the events show the current object, its amount may include a later transfer.
    let topped_up = [history(&[5], FULL), vec![(30, "paid", PAID)]].concat();
    check_history(id, &topped_up, "fail", inapplicable);
    // The creation is not listed, so the detection of a second transfer may also be missing.
    check_history(id, &[(20, "underpaid", FULL)], inapplicable, inapplicable);
    // Redacted amounts can only be compared for equality.
    for (state, expected) in [(overpaid, "pass"), (FULL, "fail")] {
        let mut redacted = listed_events(rows("ch1", &history(&[5], state)));
        redacted.exact_amounts = false;
        check(&redacted, id, expected);
    }
}

#[test]
fn a_charge_that_lacks_more_than_an_underpaid_one_is_not_paid() {
    let underpaid = State { received: "6.00", is_paid: false };
    let charge = |minute: u32, kind, state| {
        let code: &str = Box::leak(format!("ch{minute}").into_boxed_str());
        let detected = (minute + 5, "payment_detected", HALF);
        rows(code, &[(minute, "created", OPEN), detected, (minute + 10, kind, state)])
    };
    let under = |minute| charge(minute, "underpaid", underpaid);
    // Paid, although less was received than for the underpaid charges.
    let short = |minute| charge(minute, "paid", PAID_SHORT);
    let id = "types.charge_underpaid";
    let fails = [under(0), short(3), short(6), short(9), under(20)].concat();
    check(&listed_events(fails.clone()), id, "fail");
    // The owner may have accepted a few payments.
    check(&listed_events([under(0), short(3), short(6), under(20)].concat()), id, "pass");
    // Charges are paid before and after the underpaid one, which one change of the tolerance does not explain.
    check(&listed_events([short(0), under(3), short(6), short(9)].concat()), id, "fail");
    // All are paid after it, or all before it: the tolerance may have been changed in between.
    check(&listed_events([under(0), short(3), short(6), short(9)].concat()), id, "pass");
    check(&listed_events([short(0), short(3), short(6), under(20)].concat()), id, "pass");
    // Redacted amounts cannot be compared by size.
    let mut redacted = listed_events(fails);
    redacted.exact_amounts = false;
    check(&redacted, id, "pass");
    // The paid charges lack less than the underpaid ones.
    let within = |minute| charge(minute, "paid", State { received: "9.90", is_paid: true });
    check(&listed_events([under(0), within(3), within(6), within(9), under(20)].concat()), id, "pass");
}

#[test]
fn a_busy_account_does_not_pay_charges_that_lack_more_than_underpaid_ones() {
    let underpaid = State { received: "9.00", is_paid: false };
    let paid = State { received: "6.00", is_paid: true };
    let charge = |second: u32, kind, state| {
        let code: &str = Box::leak(format!("ch{second}").into_boxed_str());
        let mut rows = rows(code, &[(0, "created", OPEN), (0, "payment_detected", HALF), (0, kind, state)]);
        for (offset, row) in (0_u32..).zip(&mut rows) {
            row["id"] = json!(format!("{code}-{offset}"));
            row["created_at"] = json!(format!("2026-02-01T10:00:{:02}Z", second + offset));
        }
        rows
    };
    let read_at_once = |charges: &[Vec<Value>]| {
        let mut rows = charges.concat();
        rows.sort_by_key(|row| std::cmp::Reverse(row["created_at"].to_string()));
        let total = rows.len() as u64;
        recording(vec![page(events_request(None, 100), &json!(rows), [1, 1, 100, total])])
    };
    let (under, short) =
        (|second| charge(second, "underpaid", underpaid), |second| charge(second, "paid", paid));
    let id = "types.charge_underpaid";
    let faulty = [under(1), short(5), short(9), short(13), under(20)];
    check(&read_at_once(&faulty), id, "fail");
    // The owner may have accepted a few payments, or changed the tolerance.
    check(&read_at_once(&faulty[2..]), id, "not applicable");
    check(&read_at_once(&faulty[..4]), id, "not applicable");
    // Refunded charges may show what is left.
    let mut refunded = faulty.clone();
    for rows in &mut refunded[1..4] {
        let mut refund = rows[2].clone();
        refund["type"] = json!("charge.refunded");
        refund["id"] = json!(format!("{}-refund", refund["id"]));
        rows.push(refund);
    }
    check(&read_at_once(&refunded), id, "not applicable");
}

#[test]
fn a_paid_charge_does_not_expire() {
    let check = |events: &[Event], expected| check_history("events.recorded", events, expected, expected);
    // Without a violation, the statement is not judged, because the recording has no list of charges.
    check(&[(0, "created", OPEN), (5, "paid", PAID), (9, "expired", PAID)], "fail");
    // The creation is not listed, so a late payment may also be missing.
    check(&[(5, "paid", PAID), (9, "expired", PAID)], "not judged");
    // Events within a minute may have either order.
    check(&[(0, "created", OPEN), (5, "paid", PAID), (6, "expired", PAID)], "not judged");
    // The payment was late.
    check(&[(0, "created", OPEN), (5, "expired", OPEN), (9, "paid", PAID)], "not judged");
    // The owner accepted a late payment before the expiry was recorded.
    let accepted = [(0, "created", OPEN), (5, "late_payment", OPEN), (6, "paid", PAID), (9, "expired", PAID)];
    check(&accepted, "not judged");
}

#[test]
fn one_payment_is_recorded_once() {
    let (id, unviolated) = ("events.recorded", "not judged");
    // Returns a history with two payments, these events between them, and this state at the second one.
    let twice = |between: &[Event], second| {
        let first = [(0, "created", OPEN), (5, "payment_detected", HALF), (9, "paid", PAID)];
        [&first, between, &[(20, "paid", second)]].concat()
    };
    check_history(id, &twice(&[], PAID), "fail", unviolated);
    // More was received, or an event in between explains the second payment.
    check_history(id, &twice(&[], State { received: "12.00", is_paid: true }), unviolated, unviolated);
    for kind in ["payment_detected", "refunded", "late_payment", "underpaid"] {
        check_history(id, &twice(&[(15, kind, PAID)], PAID), unviolated, unviolated);
    }
    // If the events show the current object, only equal details show that it is one payment.
    let mut events = with_current_object(&twice(&[], PAID));
    check(&listed_events(events.clone()), id, unviolated);
    for row in events.iter_mut().filter(|row| row["type"] == "charge.paid") {
        row["details"] = json!({ "txid": "ab" });
    }
    check(&listed_events(events.clone()), id, "fail");
    events[3]["details"] = json!({ "txid": "cd" });
    check(&listed_events(events), id, unviolated);
}

#[test]
fn delivered_charges_are_not_underpaid_with_the_full_amount() {
    let charge = |index: usize, received: &str, status: &str| json!({ "code": format!("ch{index}"), "status": status, "received_amount": received, "asset_amount": "2.00" });
    let check_charges = |received: [&str; 3], status: &str, detections: usize, expected: &str| {
        let mut sent = Vec::new();
        for (index, received) in (0..).zip(received) {
            let charge = charge(index, received, status);
            sent.extend(
                (0..detections).map(|n| charge_delivery(10 * index + n, "payment_detected", &charge)),
            );
            sent.push(charge_delivery(10 * index + 9, "underpaid", &charge));
        }
        let deliveries = recording_of(sent).deliveries;
        let events = listed_events(rows("other", &[(0, "created", OPEN)]));
        check(&Recording { deliveries, ..events }, "types.charge_underpaid", expected);
    };
    let (full, inapplicable) = (["2.00"; 3], "not applicable");
    check_charges(full, "pending", 1, "fail");
    check_charges(["2.00", "2.00", "1.50"], "pending", 1, inapplicable);
    // Two transfers, or paid before the delivery.
    check_charges(full, "pending", 2, inapplicable);
    check_charges(full, "paid", 1, inapplicable);
}

//! The events of a charge, compared with its amounts and its time of payment.

use conformance_model::recording::{PageRequest, Recording};
use serde_json::{Value, json};

use super::{check, events_request, page, recording};

/// The state of a charge at an event: the received amount of ten, and whether it has a time of payment.
#[derive(Clone, Copy)]
struct State {
    received: &'static str,
    is_paid: bool,
}

const OPEN: State = State { received: "0.00", is_paid: false };
const HALF: State = State { received: "5.00", is_paid: false };
const FULL: State = State { received: "10.00", is_paid: false };
const PAID: State = State { received: "10.00", is_paid: true };
const PAID_SHORT: State = State { received: "5.00", is_paid: true };

/// The minute of an event, its type without `charge.`, and the state of the charge.
type Event = (u32, &'static str, State);

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

/// Returns a list of these events and a newer event of another charge.
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
    let (id, none) = ("charges.paid_at", "not judged");
    let early = State { is_paid: true, ..OPEN };
    check_history(id, &[(0, "created", early), (9, "payment_detected", HALF)], "fail", none);
    check_history(id, &[(0, "created", early), (9, "payment_detected", early)], "fail", "fail");
    check_history(id, &[(0, "created", OPEN), (9, "payment_detected", early)], "fail", "fail");
    check_history(id, &[(0, "created", OPEN), (9, "expired", early)], "fail", "fail");
    check_history(id, &[(0, "created", OPEN), (9, "paid", PAID)], "pass", "pass");
    // A copy that was taken a moment later may show the payment.
    check_history(id, &[(0, "created", PAID), (1, "paid", PAID)], "pass", "pass");
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
    check_history(id, &[(58, "created", early)], "pass", "pass");
    // An earlier event may not be listed.
    check_history(id, &[(9, "expired", early)], "pass", "pass");
}

#[test]
fn events_after_one_of_a_filtered_list_may_be_unlisted() {
    let paid = with_current_object(&[(0, "created", OPEN), (9, "paid", PAID)]);
    let newest = rows("ch2", &[(20, "created", OPEN)]);
    let filters = vec![("type".to_owned(), "charge.created".to_owned())];
    let created = json!([newest[0], paid[0]]);
    let long = page(events_request(None, 100), &json!(newest), [1, 2, 100, 150]);
    let filtered = page(PageRequest { filters, ..events_request(None, 100) }, &created, [1, 1, 100, 2]);
    check(&recording(vec![long, filtered]), "charges.paid_at", "pass");
}

#[test]
fn a_full_amount_is_not_underpaid() {
    let (id, none) = ("types.charge_underpaid", "not applicable");
    let with = |detections: &[u32], state| {
        let detected = detections.iter().map(|minute| (*minute, "payment_detected", HALF));
        [(0, "created", OPEN)]
            .into_iter()
            .chain(detected)
            .chain([(20, "underpaid", state)])
            .collect::<Vec<_>>()
    };
    let more = State { received: "11.50", is_paid: false };
    check_history(id, &with(&[5], HALF), "pass", "pass");
    check_history(id, &with(&[5], FULL), "fail", "fail");
    check_history(id, &with(&[5], more), "fail", "fail");
    check_history(id, &with(&[], FULL), "fail", "fail");
    // The amount may include a second transfer that is not confirmed.
    check_history(id, &with(&[5, 9], FULL), none, none);
    let topped_up = [with(&[5], FULL), vec![(30, "paid", PAID)]].concat();
    check_history(id, &topped_up, "fail", none);
    check_history(id, &[(20, "underpaid", FULL)], none, none);
    // Redacted amounts cannot be compared by size.
    for (state, expected) in [(more, "pass"), (FULL, "fail")] {
        let mut hidden = listed_events(rows("ch1", &with(&[5], state)));
        hidden.exact_amounts = false;
        check(&hidden, id, expected);
    }
}

#[test]
fn a_charge_that_lacks_more_than_an_underpaid_one_is_not_paid() {
    let (lacking, paid) = (State { received: "6.00", is_paid: false }, PAID_SHORT);
    let charge = |minute: u32, kind, state| {
        let code: &str = Box::leak(format!("ch{minute}").into_boxed_str());
        let detected = (minute + 5, "payment_detected", HALF);
        rows(code, &[(minute, "created", OPEN), detected, (minute + 10, kind, state)])
    };
    let under = |minute| charge(minute, "underpaid", lacking);
    let short = |minute| charge(minute, "paid", paid);
    let id = "types.charge_underpaid";
    let fails = [under(0), short(3), short(6), short(9), under(20)].concat();
    check(&listed_events(fails.clone()), id, "fail");
    // The owner may have accepted a few, or the tolerance may have changed.
    check(&listed_events([under(0), short(3), short(6), under(20)].concat()), id, "pass");
    check(&listed_events([short(0), under(3), short(6), short(9)].concat()), id, "fail");
    check(&listed_events([under(0), short(3), short(6), short(9)].concat()), id, "pass");
    check(&listed_events([short(0), short(3), short(6), under(20)].concat()), id, "pass");
    let mut hidden = listed_events(fails);
    hidden.exact_amounts = false;
    check(&hidden, id, "pass");
    let within = |minute| charge(minute, "paid", State { received: "9.90", is_paid: true });
    check(&listed_events([under(0), within(3), within(6), within(9), under(20)].concat()), id, "pass");
}

#[test]
fn a_paid_charge_does_not_expire() {
    let check = |events: &[Event], expected| check_history("events.recorded", events, expected, expected);
    check(&[(0, "created", OPEN), (5, "paid", PAID), (9, "expired", PAID)], "fail");
    check(&[(5, "paid", PAID), (9, "expired", PAID)], "not judged");
    check(&[(0, "created", OPEN), (5, "paid", PAID), (6, "expired", PAID)], "not judged");
    check(&[(0, "created", OPEN), (5, "expired", OPEN), (9, "paid", PAID)], "not judged");
    let accepted = [(0, "created", OPEN), (5, "late_payment", OPEN), (6, "paid", PAID), (9, "expired", PAID)];
    check(&accepted, "not judged");
}

#[test]
fn one_payment_is_recorded_once() {
    let (id, unviolated) = ("events.recorded", "not judged");
    let twice = |between: &[Event], second| {
        let first = [(0, "created", OPEN), (5, "payment_detected", HALF), (9, "paid", PAID)];
        [&first, between, &[(20, "paid", second)]].concat()
    };
    check_history(id, &twice(&[], PAID), "fail", unviolated);
    // More was received, or the payment was refunded or late.
    check_history(id, &twice(&[], State { received: "12.00", is_paid: true }), unviolated, unviolated);
    for kind in ["payment_detected", "refunded", "late_payment", "underpaid"] {
        check_history(id, &twice(&[(15, kind, PAID)], PAID), unviolated, unviolated);
    }
    let mut same = with_current_object(&twice(&[], PAID));
    check(&listed_events(same.clone()), id, unviolated);
    for row in same.iter_mut().filter(|row| row["type"] == "charge.paid") {
        row["details"] = json!({ "txid": "ab" });
    }
    check(&listed_events(same.clone()), id, "fail");
    same[3]["details"] = json!({ "txid": "cd" });
    check(&listed_events(same), id, unviolated);
}

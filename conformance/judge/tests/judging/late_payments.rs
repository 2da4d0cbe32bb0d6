//! Payments that are recorded as late although they were not, and charges that are listed in the other mode.

use conformance_model::recording::Purpose;
use serde_json::{Value, json};

use super::{LIVE, TEST, check, events_request, exchange, page, recording};

fn event(code: &str, kind: &str, minute: u32) -> Value {
    json!({
        "id": format!("{code}-{kind}"),
        "type": format!("charge.{kind}"),
        "details": {},
        "charge": { "code": code, "status": "open" },
        "created_at": format!("2026-02-01T10:{minute:02}:00Z"),
    })
}

/// Checks the verdict on two charges with these events after their creation, beside a charge that expired after 30 minutes.
#[track_caller]
fn check_late(events: &[(&str, u32)], expected: &str) {
    let mut rows =
        vec![event("newer", "created", 59), event("expired", "created", 1), event("expired", "expired", 31)];
    for code in ["ch1", "ch2"] {
        rows.push(event(code, "created", 1));
        rows.extend(events.iter().map(|(kind, minute)| event(code, kind, *minute)));
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row["created_at"].to_string()));
    let total = rows.len() as u64;
    check(
        &recording(vec![page(events_request(None, 100), &json!(rows), [1, 1, 100, total])]),
        "events.recorded",
        expected,
    );
}

#[test]
fn a_payment_within_the_rate_lock_is_not_late() {
    check_late(&[("late_payment", 5)], "fail");
    check_late(&[("canceled", 3), ("late_payment", 5)], "not judged");
    // The expiry may be recorded after the payment.
    check_late(&[("late_payment", 32)], "not judged");
}

#[test]
fn charges_that_are_paid_do_not_expire_at_the_same_time() {
    let histories = |count: usize, expired_at: u32| {
        let mut rows = vec![event("newer", "created", 59)];
        for code in ["ch1", "ch2", "ch3"].into_iter().take(count) {
            let mut expired = event(code, "expired", expired_at);
            expired["created_at"] = json!(format!("2026-02-01T10:{expired_at:02}:01Z"));
            rows.extend([event(code, "created", 1), event(code, "paid", 5), expired]);
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row["created_at"].to_string()));
        let total = rows.len() as u64;
        recording(vec![page(events_request(None, 100), &json!(rows), [1, 1, 100, total])])
    };
    check(&histories(3, 5), "events.recorded", "fail");
    check(&histories(2, 5), "events.recorded", "not judged");
    check(&histories(3, 4), "events.recorded", "not judged");
}

#[test]
fn a_charge_that_the_test_key_created_is_not_listed_to_the_live_key() {
    let charge = |code: &str| json!({ "data": { "code": code } });
    let created = exchange(TEST, Purpose::Create, "/v1/charges", 201, &charge("created123"));
    let events = |caller, code: &str| {
        let rows = json!([{ "id": format!("{code}-{caller:?}"), "type": "charge.created", "charge": { "code": code } }]);
        let mut events = page(events_request(None, 100), &rows, [1, 1, 100, 1]);
        events.caller = caller;
        events
    };
    for (live, test, expected) in [
        ("created123", "charge4567", "fail"),
        ("charge4567", "created123", "pass"),
        // Each mode may number its own charges.
        ("created123", "created123", "pass"),
    ] {
        let all = vec![created.clone(), events(LIVE, live), events(TEST, test)];
        check(&recording(all), "isolation.lists", expected);
    }
}
